"""Random programs and a few trained networks: `xcoexec.jit` gives what `jax.jit` gives."""

from __future__ import annotations

import hypothesis.strategies as st
import jax
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .outside import programs, training

EXAMPLES = 200
_count = {"kernels": 0, "all": 0}


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
@given(st.data())
def test_random_programs(data: st.DataObject) -> None:
    program = data.draw(programs.programs())
    how = data.draw(programs.ways(program))
    verdict = programs.check(program, how)
    _count["all"] += 1
    _count["kernels"] += verdict.ran == "kernels"
    if _count["all"] % 50 == 0:
        jax.clear_caches()
    assert verdict.good, f"{verdict}\n{program!r}\n{how!r}"


def test_random_programs_reach_the_kernels() -> None:
    """The comparison above says little if everything ran on XLA."""
    if not _count["all"]:
        pytest.skip("the programs ran in another process")
    assert _count["kernels"] > 0.3 * _count["all"]


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_three_steps_of_a_random_network(seed: int) -> None:
    net = training.random_net(seed)
    record = training.check(net)
    assert record["status"] in ("same", "nearer"), f"{record}\n{net!r}"
    jax.clear_caches()
