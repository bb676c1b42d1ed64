"""Runs the tests of chex, optax and flax with `jax.jit` replaced by `xcoexec.jit`, and with plain `jax.jit` beside it.

Exits with 1 when a test that passes with plain `jax.jit` does not pass with ours, or passes because the guard hides an
error of the library's own. A run that was cut off goes on where it
stopped; results are kept under out/outside as long as neither the library nor any version changes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from .results import PASSED, Verdict, causes, compare, read, reasons, table
from .sources import OUT, ROOT, SUITES, Suite, fetch

PARTS = "all tests, or those of the short run, in which plain jax.jit runs only what does not pass with ours"
JITS = "host: kernels wherever they exist; auto: as users get it; device: XLA alone"
MODES = ("host", "auto", "device")
PLAIN = "plain"
VERSIONS = ("jax", "jaxlib", "numpy", "pytest")
DEFAULTS = {"XCOEXEC_CACHE_DIR": str(OUT / "cache"), "XCOEXEC_ADAPT": "0", "JAX_PLATFORMS": "cpu"}
TEST_SECONDS = 600  # a test that takes longer ends its process, and counts as failed
OURS = ("tests/outside/replaced.py", "xcoexec/**/*.py", "codegen/**/*.py", "models/**/*.py")
HARNESS = ("tests/outside/plugin.py",)

Lines = dict[str, dict[str, Any]]  # a test's name -> what was written down of it


def fingerprint(*patterns: str) -> str:
    """Changes with the text of any of these files."""
    digest = hashlib.sha256()
    for path in sorted(p for pattern in patterns for p in ROOT.glob(pattern)):
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def identity(suite: Suite, mode: str) -> dict[str, Any]:
    """What results depend on: results of another identity are not taken up again."""
    versions = {name: version(name) for name in (*VERSIONS, suite.package)}
    files = HARNESS if mode == PLAIN else (*HARNESS, *OURS)
    settings = {"settings": dict(suite.settings), "files": fingerprint(*files)}
    return {"python": platform.python_version(), **versions, **settings}


def commit() -> str:
    git = ["git", "-C", str(ROOT)]
    found = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True)
    return (found.stdout.strip() or "unknown") + "+" * bool(changed.stdout.strip())


def machine() -> str:
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [x.split(":")[1].strip() for x in lines if x.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(os.sched_getaffinity(0))} cores"


def home(suite: Suite, mode: str, part: str) -> pathlib.Path:
    folder = OUT / f"python{sys.version_info[0]}.{sys.version_info[1]}-jax{version('jax')}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{suite.package}-{part}-{mode}.jsonl"


def kept(suite: Suite, mode: str, options: argparse.Namespace) -> Lines:
    """What ran before under the same identity. Without it, or when everything is to be fresh, the file begins anew."""
    path, who = home(suite, mode, options.part), json.dumps({"identity": identity(suite, mode)})
    if options.fresh or not path.exists() or path.read_text().splitlines()[:1] != [who]:
        path.write_text(who + "\n")
    return read(path)


def run(suite: Suite, mode: str, options: argparse.Namespace, only: Iterable[str] | None = None) -> Lines:
    """A suite, or `only` some of its tests, in pytest in a process of its own; what ran before is not run again."""
    path, done, source = home(suite, mode, options.part), kept(suite, mode, options), fetch(suite)
    env = {
        **DEFAULTS,
        "XCOEXEC_THREADS": str(max(1, len(os.sched_getaffinity(0)) // options.workers)),
        **os.environ,
        **suite.settings,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *([str(source)] if suite.inside else [])]),
        "XCOEXEC_OUTSIDE_JIT": mode,
        "XCOEXEC_OUTSIDE_RESULTS": str(path),
        "XCOEXEC_OUTSIDE_DONE": _listed(path.with_suffix(".done"), done),
    }
    if only is not None:
        env["XCOEXEC_OUTSIDE_ONLY"] = _listed(path.with_suffix(".only"), only)
    print(f"-- {suite.package} {suite.version}, {options.part}, jit={mode}: {len(done)} tests are done", flush=True)
    ended = subprocess.run(command(suite, source, options), env=env, cwd=OUT).returncode
    if ended not in (0, 1, 5):  # passed, failed, or nothing was left to run
        raise SystemExit(f"tests.outside.suites: pytest ended with {ended} in {suite.package}; results are missing.")
    return read(path)


def command(suite: Suite, source: pathlib.Path, options: argparse.Namespace) -> list[str]:
    out = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--no-summary"]
    out += ["-p", "tests.outside.plugin", "-p", "no:cacheprovider"]
    out += ["--rootdir", str(source), "-c", str(source / "pyproject.toml"), "--continue-on-collection-errors"]
    out += [f"--timeout={TEST_SECONDS}", "--timeout-method=thread", "-n", str(options.workers), "--dist", "loadfile"]
    out += [x for file in suite.left_out for x in ("--ignore", str(source / file))]
    return out + [str(source / t) for t in (suite.tests if options.part == "all" else suite.ci)]


def _listed(path: pathlib.Path, tests: Iterable[str]) -> str:
    path.write_text("\n".join(tests))
    return str(path)


def judge(suite: Suite, options: argparse.Namespace) -> Verdict:
    """Both runs of a suite, compared. Raises `SystemExit` where a file cannot be imported even with plain `jax.jit`."""
    whole = options.part == "all"
    plain = run(suite, PLAIN, options) if whole else {}
    ours = run(suite, options.jit, options)
    if not whole:
        wrong = [test for test, line in ours.items() if line["outcome"] != PASSED]
        plain = {t: line for t, line in run(suite, PLAIN, options, wrong).items() if t in ours}
    broken = [test for test, line in plain.items() if "::" not in test]
    if broken:
        why = plain[broken[0]]["error"][:500]
        raise SystemExit(f"tests.outside.suites: {', '.join(broken)} cannot be imported with plain jax.jit ({why}).")
    return compare(suite.package, ours, plain, suite.exact)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.outside.suites", description=__doc__)
    parser.add_argument("--part", choices=("all", "ci"), default="all", help=PARTS)
    parser.add_argument("--jit", choices=MODES, default="host", help=JITS)
    names = [s.package for s in SUITES]
    parser.add_argument("--suite", action="append", choices=names, help="only this one, or several")
    parser.add_argument("--workers", type=int, default=2, help="processes that run tests")
    parser.add_argument("--fresh", action="store_true", help="run again what is done")
    return parser.parse_args()


def main() -> int:
    options, began = arguments(), time.time()
    chosen = [s for s in SUITES if not options.suite or s.package in options.suite]
    verdicts = [judge(suite, options) for suite in chosen]
    head = {"part": options.part, "jit": options.jit, "commit": commit(), "machine": machine()}
    with (OUT / "report.jsonl").open("a") as file:
        for suite, v in zip(chosen, verdicts, strict=True):
            file.write(json.dumps({**head, **identity(suite, options.jit), **v.facts}) + "\n")
    new, errors = sum(len(v.new) for v in verdicts), sum(v.errors for v in verdicts)
    print(f"\n{table(verdicts)}\n\nwhy functions or layers had no kernels:\n{reasons(verdicts)}")
    print(f"\n{new} new failures{':' * bool(new)}\n{causes(verdicts)}")
    print(f"{errors} errors behind the guard\n{time.time() - began:.0f} s; {file.name}")
    return int(new + errors > 0)


if __name__ == "__main__":
    sys.exit(main())
