"""Random programs and a few trained networks: `xcoexec.jit` gives what `jax.jit` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .outside import programs, training
from .outside.sweep_compare import compare

pytestmark = pytest.mark.usefixtures("quick_xla")

EXAMPLES = 120


def test_random_programs() -> None:
    """The comparison says little if everything ran on XLA: a good part of the programs must have reached kernels."""
    ran: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        program = data.draw(programs.programs())
        how = data.draw(programs.ways(program))
        verdict = programs.check(program, how)
        ran.append(verdict.ran)
        if len(ran) % 50 == 0:
            jax.clear_caches()
        assert verdict.good, f"{verdict}\n{program!r}\n{how!r}"

    check()
    assert len(ran) >= EXAMPLES and ran.count("kernels") > 0.3 * len(ran)


@pytest.mark.parametrize("seed", [6, 11])
def test_three_steps_of_a_random_network(seed: int) -> None:
    net = training.random_net(seed)
    record = training.check(net)
    assert record["status"] in ("same", "nearer"), f"{record}\n{net!r}"
    jax.clear_caches()


def _array(*shape: int) -> jax.Array:
    return jnp.asarray(programs.constant(1, shape, "float32"))


def _conv(spec: tuple[str, str, str], w: Any, groups: int = 1) -> Callable[[Any], Any]:
    return lambda x: jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=spec, feature_group_count=groups
    )


NHWC, TURNED = ("NHWC", "HWIO", "NHWC"), ("NHWC", "HWOI", "NHWC")
VECTOR, SQUARE, GROUPED, FLAT = _array(4), _array(3, 3, 4, 4), _array(3, 3, 4, 8), _array(3, 3, 1, 4)

#: found by the sweep: one constant that several operations read in different ways was packed once, for the first of
#: them
TWICE: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "dot": (
        lambda a, b: (jax.lax.dot_general(VECTOR, a + 1, (((), ()), ((), ()))).T, (b + 1) @ VECTOR),
        [_array(3), _array(3, 4)],
    ),
    "conv": (lambda x: (_conv(NHWC, SQUARE)(x + 1), _conv(TURNED, SQUARE)(x + 1)), [_array(2, 12, 12, 4)]),
    "groups": (
        lambda x, y: (_conv(NHWC, GROUPED)(x + 1), _conv(NHWC, GROUPED, 2)(y + 1)),
        [_array(2, 9, 9, 4), _array(2, 9, 9, 8)],
    ),
    "depthwise": (
        lambda x: (_conv(NHWC, FLAT, 4)(x + 1), _conv(("NHWC", "WHIO", "NHWC"), FLAT, 4)(x + 1)),
        [_array(2, 9, 9, 4)],
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_a_constant_read_in_two_ways_is_packed_for_both(name: str) -> None:
    verdict = compare(*TWICE[name])
    assert verdict.status in ("same", "nearer") and verdict.ran == "kernels", verdict


@pytest.mark.parametrize("config", [((-1, 2, 0), (0, -2, 1)), ((-2, 1, 0), (3, 0, 2)), ((0, 0, 3), (-3, 1, 1))])
def test_a_constant_with_negative_padding_is_folded(config: Any) -> None:
    """The gradient of `cumprod` pads constants so."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    verdict = compare(
        lambda y: y + jax.lax.pad(jnp.asarray(x) + 1, np.float32(7), config),
        [_array(*jax.eval_shape(lambda v: jax.lax.pad(v, np.float32(7), config), x).shape)],
    )
    assert verdict.status == "same" and verdict.ran == "kernels", verdict


def test_a_reshape_that_first_turns_its_operand() -> None:
    """`lax.reshape(..., dimensions=)`, of a constant (the gradient of a grouped convolution has one) and of data."""
    constant = jnp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    turned = lambda x: jax.lax.reshape(x, (2, 6), (1, 0))
    verdict = compare(lambda x: (turned(constant * 2) + jnp.reshape(x, (2, 6)), turned(x * 2) + 1), [_array(3, 4)])
    assert verdict.status == "same" and verdict.ran == "kernels", verdict


def test_a_product_of_two_vectors_has_a_tail() -> None:
    verdict = compare(lambda a, b, s: jnp.vdot(a, b) * s + 1, [_array(8), _array(8), jnp.float32(3)])
    assert verdict.status == "same" and verdict.ran == "kernels", verdict
