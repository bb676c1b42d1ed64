"""What the runs wrote down, and what it says: which tests fail with ours that pass with plain `jax.jit`."""

from __future__ import annotations

import dataclasses
import pathlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .jsonlines import lines
from .replaced import OURS, WHY

PASSED, LOST = "passed", "did not run"
PLAIN, NEW, ERRORS, KERNELS = "fail with plain jax.jit", "new failures", "errors behind the guard", "tests with kernels"
BITS = "ask for equal bits"
UNEQUAL = ("not equal", "array(false, dtype=bool) is not true")  # how tests say that bits differ
COLUMNS = ("tests", "passed", PLAIN, BITS, NEW, ERRORS, KERNELS)
PROGRAMS = ("programs", "programs with kernels", "programs that fell back")
COUNTS = ("functions", *PROGRAMS, "calls", "calls traced", "calls with kernels")


def read(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    """The last line of each test."""
    return {line["test"]: line for line in lines(path) if "test" in line}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One suite, compared: nodes by what became of them, and what the replaced jit did in all of its tests."""

    suite: str
    tests: int
    passed: tuple[str, ...]
    plain: tuple[str, ...]  # fail with plain jax.jit
    new: Mapping[str, str]  # fail with ours alone: the test and its error
    seen: Counter[str]
    exercised: int  # tests in which a kernel ran
    bits: tuple[str, ...] = ()  # ask for the very bits of XLA's own program, and fail with ours alone

    @property
    def errors(self) -> int:
        """Programs that fell back because of an error of the library's own, which the guard hides from the test."""
        return sum(n for what, n in self.seen.items() if what.startswith(WHY + OURS))

    @property
    def facts(self) -> dict[str, Any]:
        """The verdict as a JSON object, with the tests' names."""
        named = {
            PLAIN: list(self.plain),
            BITS: list(self.bits),
            NEW: dict(self.new),
            ERRORS: self.errors,
            KERNELS: self.exercised,
        }
        return {"suite": self.suite, "tests": self.tests, "passed": len(self.passed), **named, "seen": dict(self.seen)}

    def row(self) -> list[str]:
        figures = [
            self.tests,
            len(self.passed),
            len(self.plain),
            len(self.bits),
            len(self.new),
            self.errors,
            self.exercised,
        ]
        return [self.suite, *map(str, figures), *(str(self.seen[c]) for c in COUNTS)]


def compare(
    suite: str,
    ours: Mapping[str, Mapping[str, Any]],
    plain: Mapping[str, Mapping[str, Any]],
    exact: Collection[str] = (),
) -> Verdict:
    """A test counts as a new failure when it passes with plain `jax.jit` and does anything else with ours.

    `exact`: tests that compare bit for bit with XLA's own program; they are listed apart when arrays differ.
    """
    passed, fails, bits, new = [], [], [], {}
    for test in sorted({*ours, *plain}):
        mine, reference = ours.get(test, {"outcome": LOST}), plain.get(test)
        if mine["outcome"] == PASSED:
            passed.append(test)
        elif test in exact and any(words in mine.get("error", "").lower() for words in UNEQUAL):
            bits.append(test)
        elif reference is None or reference["outcome"] == PASSED:
            new[test] = mine.get("error") or mine["outcome"]
        if reference is not None and reference["outcome"] == "failed":
            fails.append(test)
    seen: Counter[str] = Counter()
    for line in ours.values():
        seen.update(line.get("seen", {}))
    exercised = sum(bool(x.get("seen", {}).get("calls with kernels")) for x in ours.values())
    return Verdict(suite, len({*ours, *plain}), tuple(passed), tuple(fails), new, seen, exercised, tuple(bits))


def table(verdicts: Sequence[Verdict]) -> str:
    head = ["suite", *COLUMNS, *COUNTS]
    rows = [head, *(v.row() for v in verdicts)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(head), *rows[1:]])


def causes(verdicts: Iterable[Verdict], width: int = 150) -> str:
    """New failures by how their errors begin, most frequent first, with one test each."""
    groups: dict[str, list[str]] = {}
    for v in verdicts:
        for test, error in v.new.items():
            groups.setdefault(" ".join(error.split())[:width], []).append(f"{v.suite}: {test}")
    ordered = sorted(groups.items(), key=lambda g: -len(g[1]))
    return "\n".join(f"{len(tests):5d}  {error}\n       {tests[0]}" for error, tests in ordered)


def reasons(verdicts: Iterable[Verdict], most: int = 30) -> str:
    """Why functions, or layers of them, had no kernels."""
    seen: Counter[str] = Counter()
    for v in verdicts:
        seen.update({k.removeprefix(WHY): n for k, n in v.seen.items() if k.startswith(WHY)})
    return "\n".join(f"{n:5d}  {why}" for why, n in seen.most_common(most))
