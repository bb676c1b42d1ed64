"""What reports, plans, streams and tasks say of themselves: what matters first, units, four digits, 80 columns."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

import xcoexec
from xcoexec.codegen.runtime.peaks import Peaks
from xcoexec.ir.text import columns, duration, number, shortened
from xcoexec.session.report import NARROW, LayerReport, Report, believed
from xcoexec.streams import Served, Stats
from xcoexec.streams.jobs import Block, Task, Way

from .support import array

ROOF = Peaks(1e11, 1e10, 2)


def _layer(i: int, seconds: float | None) -> LayerReport:
    return LayerReport(
        f"Net/Block_{i}/Conv_{i}", "host", "winograd(4x4)+gemm", 10**6, 10**4, 1e-3, seconds, 1e-4, None, calls=5
    )


def _report(layers: int) -> Report:
    found = tuple(_layer(i, 1e-4 * (i + 1) if i else None) for i in range(layers))
    return Report("xco", "fastest of jit, host by measurement", found, {"jit": 0.012346, "host": 0.0040004}, 1, ROOF)


def test_what_matters_comes_first_and_the_slowest_layers_follow() -> None:
    text = str(_report(30))
    lines = text.splitlines()
    assert lines[0] == "jax.jit 12.35 ms, xcoexec 4 ms a call: 3.09 times as fast."
    assert "fastest of jit, host by measurement" in lines[1]
    names = [line.split()[0] for line in lines if "Conv_" in line]
    assert names == [f"Block_{i}/Conv_{i}" for i in range(29, 19, -1)] and "20 more layers: report(all=True)" in text
    assert all(len(line) <= 80 for line in lines)
    whole = _report(30).text(all=True)
    assert [line.split()[0] for line in whole.splitlines() if "Conv_" in line] == [
        f"Block_{i}/Conv_{i}" for i in range(30)
    ]
    assert re.search(r"Block_0/Conv_0 .* - +- +- +-$", whole, re.M), "nothing was stamped there"


def test_too_few_calls_are_no_median() -> None:
    once = dataclasses.replace(_layer(3, 1e-4), calls=4)
    text = str(dataclasses.replace(_report(1), layers=(once,)))
    assert re.search(r"^Net/Block_3/Conv_3 .* - +- +- +-$|^Block_3/Conv_3 .* - +- +- +-$", text, re.M)
    assert once.measured == 1e-4


def test_a_report_without_times_claims_none() -> None:
    plain = Report("jit", "it is being planned", (), {}, 0, None)
    assert str(plain) == "Plain jax.jit runs.\nWhy: it is being planned." and plain.gain is None
    forced = dataclasses.replace(_report(2), measured={})
    assert str(forced).startswith("The plan runs; it was not compared with jax.jit.") and forced.seconds is None


@pytest.mark.parametrize(
    ("seconds", "flops", "nbytes", "shown"),
    [
        (1e-5, 10**6, 0, True),  # 100 GFLOP/s, the machine's own
        (0.3e-5, 10**6, 0, True),  # Winograd
        (1e-6, 10**6, 0, False),  # ten times the machine
        (1e-6, 0, 10**5, True),  # 100 GB/s: caches
        (1e-7, 0, 10**5, False),  # 1000 GB/s: more than the cores load
        (0.0, 0, 0, False),
        (None, 10, 10, False),
    ],
)
def test_what_cannot_be_is_not_shown(seconds: float | None, flops: int, nbytes: int, shown: bool) -> None:
    assert believed(seconds, flops, nbytes, ROOF) == (seconds if shown else None)


def test_units_for_narrow_elements_do_more_than_an_fma() -> None:
    """Ten times the machine's rate in f32 is what AMX does."""
    assert believed(1e-6, 10**6, 0, ROOF, NARROW) == 1e-6
    assert believed(1e-7, 10**6, 0, ROOF, NARROW) is None


def test_html_escapes_and_has_a_row_a_layer() -> None:
    page = dataclasses.replace(_report(3), why="a < b")._repr_html_()
    assert page.count("<tr>") == 4 and "a &lt; b" in page
    plan = xcoexec.Plan("host", (), chosen="x & y")
    assert "x &amp; y" in plan._repr_html_() and "no layers" in repr(plan)


def test_functions_say_what_they_are() -> None:
    w, x = array(16, 24), array(5, 16)
    fast = xcoexec.jit(lambda w, x: x @ w, strategy="host", strict=True).bind(w)
    assert "1 weights, 0.0 MB; not called yet" in repr(fast)
    np.testing.assert_allclose(fast(x), np.asarray(x) @ np.asarray(w), rtol=1e-4)
    assert "plan host: 1 on host" in repr(fast) and repr(fast.plan()).startswith("<xcoexec plan host: 1 on host")
    fixed = xcoexec.compile(lambda x: x * 2, x)
    assert "float32[5,16]" in repr(fixed)


def test_streams_and_tasks_are_short() -> None:
    stats = Stats(7, 0.0123456, 0.5, 123.456, {"read": 0.002, "network": 0.008}, {"read": 0.25, "network": 1.0})
    lines = str(stats).splitlines()
    assert lines[0] == "7 items, 123.5 a second; latency: median 12.35 ms, 99 % within 500 ms"
    assert lines[2].split() == ["read", "2", "ms", "25", "%"] and stats._repr_html_().count("<tr>") == 3
    served = Served(
        4, {"done": 3, "skipped": 1}, 0.25, 1.0, 2.0, {"host": 1.0}, 0.0, {}, {"a": {"done": 3, "skipped": 1}}, {}
    )
    text = str(served)
    assert text.startswith("4 jobs in 2 s, 25.0 % missed their deadlines; at work: host 50 %")
    assert text.splitlines()[2].split() == ["a", "3", "1", "25.0", "%"]
    task = Task("detect", (Block("b", (Way("host", 0.004), Way("device", 0.002))),), 0.05)
    assert len(repr(task)) < 200 and "deadline 50 ms" in repr(task) and "whole on host" in str(task)


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0123456, "0.01235"), (12345.6, "12346"), (0.00001, "0.00001"), (3.0, "3"), (None, "-"), (float("nan"), "-")],
)
def test_numbers_have_four_digits_and_no_exponent(x: float | None, text: str) -> None:
    assert number(x) == text


def test_units() -> None:
    shown = [duration(s) for s in (2.5, 0.0123, 0.0000042, 3e-9, 0.0, None, float("inf"))]
    assert shown == ["2.5 s", "12.3 ms", "4.2 us", "0.003 us", "0 s", "-", "inf s"]


def test_long_columns_lose_their_middle() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij" and shortened("abcdefghijk", 10) == "ab..fghijk"
    rows = [["layer", "n"], ["x" * 100, "1"], ["short", "22"]]
    text = columns(rows, (1,), 40)
    assert all(len(line) <= 40 for line in text.splitlines()) and "short" in text and "22" in text


def test_shortened_names_of_layers_stay_apart() -> None:
    """Modules of a path keep their numbers where there is room for them."""
    blocks = [f"InvertedResidual_{i}/ConvNorm_{j}/Conv_0" for i in range(17) for j in range(3)]
    for most in (20, 22, 30):
        short = [shortened(name, most) for name in blocks]
        assert len(set(short)) == len(blocks) and max(map(len, short)) <= most, short
    assert shortened(blocks[-1], 24) == "Inve..16/ConvN..2/Conv_0" and len(shortened(blocks[-1], 9)) == 9
