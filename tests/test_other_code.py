"""Ways in which other people's code uses `jax.jit`, with `xcoexec.jit` in its place."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import textwrap
import time
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.session import background
from xcoexec.session.session import Session

from .support import array, until

pytestmark = pytest.mark.usefixtures("quick_xla")

W, X = array(64, 64, seed=1), array(32, 64)


def test_a_decorator_starts_no_backend() -> None:
    """Programs say behind their decorators how many devices there are."""
    script = """
        import functools, jax, xcoexec

        @xcoexec.jit
        def first(x):
            return x + 1

        @functools.partial(xcoexec.jit, static_argnames="n", donate_argnums=0, device_memory=0.5, precision="bf16")
        def second(x, n=1):
            return x * n

        class Model:
            @xcoexec.jit
            def step(self, x):
                return x

        repr(first), first.__name__, first.lower
        jax.config.update("jax_num_cpu_devices", 3)
        print(len(jax.devices()), first(2.0), first.report(2.0) is not None)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True)
    assert done.stdout.split() == ["3", "3.0", "True"], done.stderr


@jax.tree_util.register_pytree_node_class
class Points:
    """A structure that takes matrices alone."""

    def __init__(self, x: Any):
        assert x.ndim == 2
        self.x = x

    def tree_flatten(self) -> Any:
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _: Any, children: Any) -> Points:
        return cls(*children)


@pytest.mark.parametrize("options", [{}, {"donate_argnums": 1}, {"static_argnums": 2}])
@pytest.mark.filterwarnings("error::xcoexec.errors.CoexecWarning")
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_structures_that_look_at_their_leaves(options: Any) -> None:
    fn = lambda w, p, times=2: Points(jnp.tanh(p.x @ w) * times)
    fast = xcoexec.jit(fn, strategy="host", wait=True, strict=True, **options)
    given = (2,) if "static_argnums" in options else ()
    for _ in range(3):
        got = fast(jnp.asarray(W), Points(jnp.array(X)), *given)
        assert np.allclose(got.x, np.tanh(X @ W) * 2, atol=1e-5)
    assert fast.report(jnp.asarray(W), Points(jnp.array(X)), *given).ran == "xco"
    bound = xcoexec.jit(fn, strategy="host", wait=True, strict=True).bind(W)
    assert np.allclose(bound(Points(X)).x, got.x, atol=1e-5)


TRACED = [0]


def often(w: Any, x: Any) -> Any:
    TRACED[0] += 1
    return jnp.tanh(jnp.tanh(x @ w) @ w)


def test_a_function_that_is_jitted_for_each_call_is_traced_and_compiled_once(own_cache: None) -> None:
    w, x = jnp.asarray(W), jnp.asarray(X)
    first = xcoexec.jit(often)
    want, before = first(w, x), TRACED[0]
    for _ in range(12):
        again = xcoexec.jit(often)
        assert again is not first and np.array_equal(again(w, x), want)
    assert TRACED[0] == before and first._plain.jitted._cache_size() == 1
    other = xcoexec.jit(often, donate_argnums=1)
    assert np.array_equal(other(w, jnp.array(X)), want), "with other parameters it is another program"


def test_inside_of_another_function_too() -> None:
    @xcoexec.jit
    def model(w: Any, x: Any) -> Any:
        for _ in range(4):
            x = xcoexec.jit(often)(w, x)
        return x

    TRACED[0] = 0
    text = model.lower(jnp.asarray(W), array(7, 64)).as_text()
    assert TRACED[0] == 1 and text.count("func.func private @often") == 1


def test_what_wraps_a_function_is_another_one() -> None:
    xcoexec.jit(often)

    @functools.wraps(often)
    def twice(w: Any, x: Any) -> Any:
        return 2 * often(w, x)

    w, x = jnp.asarray(W), jnp.asarray(X)
    assert np.allclose(xcoexec.jit(twice)(w, x), 2 * xcoexec.jit(often)(w, x))


def test_a_function_that_nobody_has_any_more_is_not_planned(own_cache: None) -> None:
    def closing(w: Any, x: Any) -> Any:
        return often(w, x) + len(X)

    fast, x = xcoexec.jit(closing, wait=False), jnp.array(X)
    fast(jnp.asarray(W), x)
    pending = fast._last.current
    held = weakref.ref(x)
    del fast, x
    gc.collect()
    until(pending._done.is_set)
    assert pending._stopped and not isinstance(pending.became, Session)
    until(lambda: not background.working)
    gc.collect()
    assert held() is None, "its planning would have needed the arrays of its first call"


def test_who_waits_for_a_plan_waits_for_nothing_else(own_cache: None) -> None:
    fast = xcoexec.jit(lambda w, x: often(w, x), wait=False)
    fast(jnp.asarray(W), jnp.asarray(X))
    pending, began = fast._last.current, time.monotonic()
    assert pending._asked is False
    assert fast.ready(600) and pending._asked and time.monotonic() > began


@pytest.mark.parametrize("made", [jax.jit, xcoexec.jit])
def test_names_and_attributes(made: Any) -> None:
    def tagged(n: int, x: Any) -> Any:
        return x * n

    tagged.tag = 3  # type: ignore[attr-defined]
    assert made(tagged).tag == 3 and made(tagged).__name__ == "tagged"
    half = made(functools.partial(tagged, 2))
    assert half.__name__ == "tagged" and float(half(1.5)) == 3.0
    assert isinstance(made(Points).__name__, str) and not hasattr(made(tagged), "missing")
