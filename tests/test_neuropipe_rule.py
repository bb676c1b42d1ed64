"""NeuroPipe's model and its rule for the cut (sections III-B and III-C) on made stages with known answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xcoexec.ir.costs import Costs
from xcoexec.streams.neuropipe import best_rear, neural_work, neuropipe, oblivious, rear, share, speedup, two_stages

shares = st.floats(0.01, 0.49)
ratios = st.floats(0.2, 20.0)


@given(shares, ratios)
def test_equation_1_is_what_balanced_stages_give(alpha: float, gamma: float) -> None:
    """With w of the CPU's neural work behind the cut both stages take equally long, and that long is the inverse of
    Equation 1.
    """
    w = neural_work(alpha, gamma)
    cpu, gpu = alpha + w, (1 - alpha) - w / gamma
    assert cpu == pytest.approx(gpu) and 1 / cpu == pytest.approx(speedup(alpha, gamma))
    printed = neural_work(alpha, gamma, printed=True)
    assert printed > w and alpha + printed > (1 - alpha) - printed / gamma  # the CPU is given too much


def test_host_operations_alone_bound_the_stream_beyond_a_half() -> None:
    assert neural_work(0.6, 3.0) == 0 and speedup(0.6, 3.0) == pytest.approx(1 / 0.6)
    assert speedup(0.5, 3.0) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("most", "first"),
    [(0.0, 5), (0.009, 5), (0.01, 4), (0.05, 4), (0.06, 2), (0.3, 2), (0.36, 1), (0.99, 1), (1.0, 0)],
)
def test_the_rear_has_no_more_operations_than_n_opt(most: float, first: int) -> None:
    """Of 100 operations the last layers have 1, 5, 0, 30 and 64; one without operations goes with those behind it."""
    assert rear((64, 30, 0, 5, 1), most) == first


def test_layers_that_only_the_accelerator_can_run_stay_there() -> None:
    assert rear((1, 1, 1, 1), 1.0, (True, False, True, True)) == 2
    assert rear((1, 1, 1, 1), 1.0, (True, True, True, False)) == 4
    assert rear((1, 1), 0.4) == 2  # not even the last one


def _made(alpha: float, gamma: float, counts: Sequence[float]) -> tuple[Costs, float]:
    """A network with these parameters whose layers take as long as they have operations; 1 s on the accelerator."""
    device = tuple(c / sum(counts) for c in counts)
    costs = Costs.of_halves(tuple(gamma * t for t in device), device, 0.0, 1e12, 1.0, False)
    return costs, alpha / (1 - alpha)


def test_the_three_cuts_of_made_stages() -> None:
    """gamma = 9: the oblivious rear has at most a tenth of the operations. alpha = 1/4: Equation 1's has at most 1/15,
    so that the layer with 4 % stays on the accelerator.
    """
    counts = (60.0, 31.0, 4.0, 3.0, 2.0)
    costs, operations = _made(0.25, 9.0, counts)
    assert share(0.25, 9.0) == pytest.approx(1 / 15) and share(0.25, 9.0, printed=True) == pytest.approx(1 / 10)
    assert oblivious(costs, counts) == 2 == neuropipe(costs, counts, operations, printed=True)
    assert neuropipe(costs, counts, operations) == 3
    nothing = [0] * 6
    assert two_stages(costs, nothing, 2, operations) == pytest.approx((0.91, 1 / 3 + 0.81))  # the CPU is overloaded
    assert two_stages(costs, nothing, 3, operations) == pytest.approx((0.95, 1 / 3 + 0.45))
    assert best_rear(costs, nothing, operations) == 3


@given(shares, ratios, st.lists(st.floats(0.1, 9), min_size=1, max_size=8))
def test_n_opt_as_printed_is_the_oblivious_cut(alpha: float, gamma: float, counts: list[float]) -> None:
    """alpha cancels: N_opt is 1 / (gamma + 1) of all operations, which is the balance without host operations."""
    costs, operations = _made(alpha, gamma, counts)
    assert share(alpha, gamma, printed=True) == pytest.approx(1 / (gamma + 1)) == pytest.approx(share(0.0, gamma))
    assert neuropipe(costs, counts, operations, printed=True) == oblivious(costs, counts)
    assert neuropipe(costs, counts, operations) >= oblivious(costs, counts)
