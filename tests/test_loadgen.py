"""MLPerf's generator over ours and others: what is read from its logs, and what answers its queries."""

from __future__ import annotations

import threading
import types
from typing import Any

import numpy as np
import pytest

from benchmarks import loadgen, undisturbed


def test_what_the_generator_says_is_what_counts() -> None:
    said = "Scenario : SingleStream\n90.0th percentile latency (ns) : 2500000\nResult is : {}\n"
    assert loadgen.judged(said.format("VALID"), loadgen.SINGLE) == (True, 2.5)
    assert loadgen.judged(said.format("INVALID"), loadgen.SINGLE) == (False, 2.5)
    assert loadgen.judged("Result is : INVALID", loadgen.SERVER) == (False, None)


def found(limit: float, low: float, high: float, steps: int = loadgen.STEPS) -> tuple[float, list[float]]:
    """The rate that a search finds where all up to `limit` are valid, and those that it tried."""
    tried: list[float] = []
    valid = lambda rate: tried.append(rate) is None and rate <= limit
    return loadgen.in_turn({"a": valid}, {"a": (low, high)})["a"], tried


@pytest.mark.parametrize("limit", [6.0, 11.0, 30.0, 44.0, 89.0])
def test_the_highest_rate_that_is_valid(limit: float) -> None:
    best, tried = found(limit, 5.0, 90.0)
    assert limit / loadgen.FINE < best <= limit
    assert tried[0] == 45.0 and len(tried) <= 9  # each is a run of a minute


def test_rates_that_are_not_valid_are_no_figure() -> None:
    assert found(0.0, 10.0, 90.0) == (0.0, [45.0, 22.5, 11.25, 10.0])
    assert found(1e9, 10.0, 90.0)[0] > 90.0 / loadgen.FINE  # not beyond what calls alone reach


def test_engines_are_tried_in_turn() -> None:
    order: list[str] = []
    valid = lambda e, limit: lambda rate: order.append(e) is None and rate <= limit
    best = loadgen.in_turn({"a": valid("a", 7.0), "b": valid("b", 3.0)}, {"a": (1.0, 8.0), "b": (1.0, 8.0)})
    assert 6.3 < best["a"] <= 7.0 and 2.7 < best["b"] <= 3.0
    assert order[:6] == ["a", "b"] * 3


@pytest.mark.parametrize(
    ("runs", "kept"),
    [
        ([(100, "VALID")], True),
        ([(100, "INVALID"), (90, "VALID")], True),
        ([(100, "INVALID"), (90, "INVALID")], False),
        ([(500, "INVALID")], False),
    ],
)
def test_a_rate_that_few_late_queries_decide_is_tried_once_more(runs: list[tuple[int, str]], kept: bool) -> None:
    said = [f"99.00 percentile latency (ns) : {ms}000000\nResult is : {word}\n" for ms, word in runs]
    contest = types.SimpleNamespace(bound=0.4, log=lambda line: None, go=lambda *_: (said.pop(0), []))
    assert loadgen.Contest.keeps(contest, "a", 5.0) is kept  # type: ignore[arg-type]
    assert not said  # all of these runs were made, and no other


def test_batches_that_an_engine_computes() -> None:
    rates = {1: 10.0, 2: 12.0, 4: 11.0, 8: 16.0}
    assert loadgen.usable(rates) == [1, 2, 8]  # 4 at once are slower than 2
    assert loadgen.usable(rates, 0.2) == [1, 2] and loadgen.usable(rates, 0.0) == [1]


def test_all_images_count_for_the_accuracy() -> None:
    row = lambda i, c: {"qsl_idx": i, "data": np.int64(c).tobytes().hex()}
    assert loadgen.agreement([row(0, 3), row(1, 4)], np.array([3, 4])) == 1.0
    assert loadgen.agreement([row(0, 3), row(1, 5)], np.array([3, 4])) == 0.5
    assert loadgen.agreement([row(0, 3)], np.array([3, 4])) == 0.5


class Generator:
    """Asks for images, and notes the answers."""

    def __init__(self) -> None:
        self.answers: dict[int, int] = {}
        self.all = threading.Event()
        self.wanted = 0

    def ConstructSUT(self, issue: Any, flush: Any) -> int:
        self.issue = issue
        return 1

    def DestroySUT(self, handle: int) -> None:
        assert handle == 1

    def QuerySampleResponse(self, id: int, address: int, size: int) -> tuple[int, int]:
        import ctypes

        assert size == 8
        return id, ctypes.c_int64.from_address(address).value

    def QuerySamplesComplete(self, responses: list[tuple[int, int]]) -> None:
        self.answers.update(responses)
        if len(self.answers) == self.wanted:
            self.all.set()


def test_every_image_of_every_query_is_answered() -> None:
    images = np.eye(7, dtype=np.float32)
    shapes = []

    def call(x: np.ndarray) -> np.ndarray:
        shapes.append(len(x))
        return x * 2

    lg = Generator()
    asked = [0, 3, 6, 1, 1, 5, 2, 4, 0, 6, 3]
    lg.wanted = len(asked)
    samples = [types.SimpleNamespace(id=i, index=at) for i, at in enumerate(asked)]
    with loadgen.System(lg, call, images, [1, 2, 4]).running():
        lg.issue(samples[:7])
        for sample in samples[7:]:
            lg.issue([sample])
        assert lg.all.wait(20)
    assert [lg.answers[i] for i in range(len(asked))] == asked
    assert set(shapes) <= {1, 2, 4} and shapes[:3] == [4, 2, 1]  # several at once, in batches of known sizes
    assert sum(shapes) == len(asked)  # nothing is computed twice


@pytest.mark.parametrize("scenario", [loadgen.SINGLE, loadgen.OFFLINE])
def test_the_generator_itself(scenario: str) -> None:
    lg = pytest.importorskip("mlperf_loadgen", reason="MLPerf's generator is missing (pip install mlcommons-loadgen)")
    images = np.eye(8, dtype=np.float32)
    call = lambda x: x * 2
    for accuracy in (False, True):
        given = loadgen.settings(lg, scenario, 0.2, 1000.0, 1.0, accuracy)
        summary, log = loadgen.run(call, images, [1, 4], scenario, given, lg)
        if accuracy:
            assert loadgen.agreement(log, np.arange(8)) == 1.0
        else:
            valid, figure = loadgen.judged(summary, scenario)
            assert figure is not None and figure > 0 and (valid or "INVALID" in summary)


def test_a_run_that_others_disturb_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now, busy, made = [0.0], [0.0], []
    monkeypatch.setattr(undisturbed.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(undisturbed.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(undisturbed.time, "sleep", lambda s: now.__setitem__(0, now[0] + s))
    monkeypatch.setattr(undisturbed, "others", lambda: busy[0])

    def work(shares: list[float]) -> int:
        share = shares[len(made)]
        now[0], busy[0] = now[0] + 10.0, busy[0] + 10.0 * 2 * share
        made.append(share)
        return len(made)

    assert undisturbed.undisturbed(lambda: work([0.5, 0.2, 0.01]), 2) == (3, pytest.approx(0.01))
    made.clear()
    assert undisturbed.undisturbed(lambda: work([0.5, 0.2, 0.01]), 2, tries=2) == (2, pytest.approx(0.2))


def test_what_other_processes_have_had_only_rises() -> None:
    before = undisturbed.others()
    assert undisturbed.others() >= before - 0.05 and before >= 0.0  # in ticks of 10 ms
