"""MLPerf's generator over ours and others: what is read from its logs, and what answers its queries."""

from __future__ import annotations

import threading
import types
from typing import Any

import numpy as np
import pytest

from benchmarks import loadgen


def test_what_the_generator_says_is_what_counts() -> None:
    said = "Scenario : SingleStream\n90.0th percentile latency (ns) : 2500000\nResult is : {}\n"
    assert loadgen.judged(said.format("VALID"), loadgen.SINGLE) == (True, 2.5)
    assert loadgen.judged(said.format("INVALID"), loadgen.SINGLE) == (False, 2.5)
    assert loadgen.judged("Result is : INVALID", loadgen.SERVER) == (False, None)


def test_the_highest_rate_that_is_valid() -> None:
    tried: list[float] = []
    valid = lambda rate: tried.append(rate) is None and rate <= 30.0
    assert loadgen.most(valid, 10.0, 90.0, 14) == pytest.approx(30.0, abs=0.5)
    assert tried[0] > 70.0 and min(tried) > 25.0  # from above: runs at low rates take long
    assert loadgen.most(lambda rate: False, 10.0, 90.0) == 0.0
    assert loadgen.most(lambda rate: rate <= 10.0, 10.0, 90.0, 30) == pytest.approx(10.0, abs=0.5)


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
