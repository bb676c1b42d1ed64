"""A look into the containers of weights says the same as taking all arguments apart."""

import copy
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xcoexec
from xcoexec.api.look import Look, kinds
from xcoexec.api.plain import Plain
from xcoexec.api.signature import Signature, Usual
from xcoexec.session.plain_session import PlainSession

ARRAYS = [jnp.full(3, float(i)) for i in range(12)]
X = jnp.ones(3)
Pair = namedtuple("Pair", "a b")


def look_of(args: tuple[Any, ...], kwargs: dict[str, Any], inputs: int) -> tuple[Look | None, Plain]:
    """A look for a call of which the last so many leaves are inputs."""
    plain = Plain(lambda *args, **kwargs: args, {})
    call = plain.call(args, kwargs)
    return Look.of(call, Signature.of(call), range(len(call.leaves) - inputs)), plain


def trees() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from(ARRAYS)
    inner = lambda x: st.one_of(
        st.lists(x, max_size=3),
        st.dictionaries(st.sampled_from("abcd"), x, max_size=3),
        st.tuples(x, x),
        st.none(),
    )
    return st.recursive(leaves, inner, max_leaves=8)


def places(tree: Any) -> list[tuple[Any, Any]]:
    """(container, key) of all that can be written to in a tree."""
    if isinstance(tree, dict):
        own = [(tree, k) for k in tree]
    elif isinstance(tree, list):
        own = [(tree, i) for i in range(len(tree))]
    else:
        own = []
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return own + [p for child in children for p in places(child)]


@settings(deadline=None, max_examples=150)
@given(trees(), st.data())
def test_what_a_look_takes_for_the_same_has_the_same_leaves(tree: Any, data: st.DataObject) -> None:
    look, _ = look_of((tree, X), {}, 1)
    assert look is not None
    before = jax.tree.leaves(tree)
    assert look.inputs((tree, X), {}) == [X]
    spots = places(tree)
    if not spots:
        return
    container, key = data.draw(st.sampled_from(spots))
    how = data.draw(st.sampled_from(["other", "same", "gone", "more", "none"]))
    if how == "other":
        container[key] = jnp.full(3, -1.0)
    elif how == "none":
        container[key] = None
    elif how == "gone":
        del container[key]
    elif how == "more" and isinstance(container, dict):
        container["z"] = ARRAYS[0]
    elif how == "more":
        container.append(ARRAYS[0])
    after = jax.tree.leaves(tree)
    same = len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True))
    found = look.inputs((tree, X), {})
    assert found is None or same
    assert found is not None or how != "same"


def test_other_containers_around_the_same_weights_are_seen_at_the_top() -> None:
    inner = {"w": ARRAYS[0]}
    look, _ = look_of(({"params": inner}, X), {}, 1)
    assert look is not None
    assert look.inputs(({"params": inner}, X), {}) == [X]
    assert look.inputs(({"params": {"w": ARRAYS[1]}}, X), {}) is None
    assert look.inputs(({"other": inner}, X), {}) is None
    assert look.inputs(({"params": inner, "more": inner}, X), {}) is None


@pytest.mark.parametrize(
    "args", [((X, 1.0),), ((jnp.ones(4),),), ((np.ones(3, np.int32),),), (([X],),), ((),), ((X, X),)]
)
def test_inputs_of_other_types_and_structures_need_a_closer_look(args: tuple[Any, ...]) -> None:
    look, _ = look_of((ARRAYS[0], X), {}, 1)
    assert look is not None
    assert look.inputs((ARRAYS[0], X), {}) == [X]
    assert look.inputs((ARRAYS[0], *args[0]), {}) is None


def test_arguments_by_name_are_inputs_in_the_order_of_leaves() -> None:
    other = jnp.zeros(3)
    look, plain = look_of(([ARRAYS[0]], X), {"b": other, "a": X}, 3)
    assert look is not None
    found = look.inputs(([ARRAYS[0]], X), {"b": other, "a": X})
    call = plain.call(([ARRAYS[0]], X), {"b": other, "a": X})
    assert found is not None and all(a is b for a, b in zip(found, call.leaves[1:], strict=True))
    assert look.inputs(([ARRAYS[0]], X), {"b": other}) is None
    assert look.inputs(([ARRAYS[0]], X), {"b": other, "c": X}) is None


@pytest.mark.parametrize("tree", [Pair(ARRAYS[0], ARRAYS[1]), {"a": Pair(ARRAYS[0], ARRAYS[1])}, [ARRAYS[0], X]])
def test_what_it_cannot_tell_is_left_to_a_closer_look(tree: Any) -> None:
    """Containers of other types, and arguments that hold weights and inputs."""
    assert look_of((tree, X), {}, 1 if not isinstance(tree, list) else 2)[0] is None


def test_static_values_are_known_by_themselves() -> None:
    """Others need a closer look, equal ones too: `jax.jit` may have another program for them."""
    plain = Plain(lambda w, n, x, mode: x, dict(static_argnums=1, static_argnames="mode"))
    n, mode = (2.0, 3), Pair(0.5, "up")
    call = plain.call(([ARRAYS[0]], n, X), {"mode": mode})
    look = Look.of(call, Signature.of(call), [0])
    assert look is not None and len(call.leaves) == 2
    assert look.inputs(([ARRAYS[0]], n, X), {"mode": mode}) == [X]
    for other in ((2, 3), (2.0, 4), 2.0, [2.0, 3], None, ARRAYS[1]):
        assert look.inputs(([ARRAYS[0]], other, X), {"mode": mode}) is None
        assert look.inputs(([ARRAYS[0]], n, X), {"mode": other}) is None
    assert look.inputs(([ARRAYS[1]], n, X), {"mode": mode}) is None
    assert look.inputs(([ARRAYS[0]], n, X), {}) is None and look.inputs(([ARRAYS[0]], n, X, mode), {}) is None


def test_other_settings_of_jax_need_a_closer_look() -> None:
    look, _ = look_of((ARRAYS[0], X), {}, 1)
    assert look is not None
    with jax.default_matmul_precision("highest"):
        assert look.inputs((ARRAYS[0], X), {}) is None
    assert look.inputs((ARRAYS[0], X), {}) is not None


@pytest.mark.parametrize("change", ["leaf", "tree", "input", "back"])
def test_calls_see_weights_that_were_replaced_in_place(change: str) -> None:
    """The dictionary is the same one, its arrays are others."""
    fn: Callable[..., jax.Array] = xcoexec.jit(lambda v, x: jnp.tanh(x @ v["a"]["w"] + v["a"]["b"]), strategy="host")
    rng = np.random.default_rng(0)
    array = lambda *shape: jnp.asarray(rng.standard_normal(shape, np.float32))
    v, x = {"a": {"w": array(16, 8), "b": array(8)}}, array(4, 16)
    oracle = lambda: np.tanh(np.float64(x) @ np.float64(v["a"]["w"]) + np.float64(v["a"]["b"]))
    for _ in range(3):
        np.testing.assert_allclose(fn(v, x), oracle(), rtol=1e-5, atol=1e-5)
    assert fn.report(v, x).ran == "xco"
    kept = copy.copy(v["a"])
    if change == "input":
        x = array(5, 16)
    elif change == "tree":
        v = {"a": {"w": array(16, 8), "b": array(8)}}
    else:
        v["a"]["w"] = array(16, 8)
        if change == "back":
            np.testing.assert_allclose(fn(v, x), oracle(), rtol=1e-5, atol=1e-5)
            v["a"]["w"] = kept["w"]
    for _ in range(2):
        np.testing.assert_allclose(fn(v, x), oracle(), rtol=1e-5, atol=1e-5)


def test_calls_that_are_made_over_and_over_are_known_by_their_arrays() -> None:
    """Other shapes, types, structures and settings are seen, and numbers that are no arrays are looked at each time."""
    plain = Plain(lambda *args, **kwargs: args, {})
    usual = Usual.of(plain.call(({"a": X}, X), {}))
    assert usual is not None and usual.has(plain.call(({"a": X + 1}, 2 * X), {}))
    assert Usual.of(plain.call((np.ones(3), X), {})) is None and Usual.of(plain.call((1.0,), {})) is None
    weak = ARRAYS[0]
    assert weak.weak_type and not X.weak_type
    others = [({"b": X}, X), ({"a": X},), ({"a": X}, jnp.ones(4)), ({"a": X}, X.astype(jnp.int32)), ({"a": X}, weak)]
    for args in [*others, ({"a": X}, np.ones(3, np.float32)), ({"a": X}, 1.0)]:
        assert not usual.has(plain.call(args, {}))
    with jax.default_matmul_precision("highest"):
        assert not usual.has(plain.call(({"a": X}, X), {}))
    plain = Plain(lambda x, n: x, dict(static_argnums=1))
    usual = Usual.of(plain.call((X, 0.0), {}))
    assert usual is not None and usual.has(plain.call((X + 1, 0.0), {}))
    assert not any(usual.has(plain.call((X, n), {})) for n in (-0.0, 0, False))


def test_the_kinds_of_arguments_are_those_of_their_first_leaves() -> None:
    array = type(X)
    assert kinds(({"b": [X]}, np.ones(2), []), {"z": 1.0, "a": (X,)}) == [array, np.ndarray, list, array, float]
    assert kinds(({"b": [np.ones(2)]},), {}) == [np.ndarray] and kinds((None, {}), {}) == [type(None), dict]


def test_calls_with_several_arguments_rest_beside_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where their arrays come from is part of a plan: others than those that rest are looked at."""
    fast = xcoexec.jit(lambda w, a, b: jax.lax.sort((w, a["x"], b))[2]).bind(ARRAYS[0])  # no kernel sorts
    fast._apart = True
    for _ in range(3):
        fast({"x": X}, X)
    assert fast._rest is not None
    looks = []
    monkeypatch.setattr(fast, "_find", lambda *call: looks.append(call) or PlainSession("auto", "a test"))
    np.testing.assert_array_equal(fast({"x": X}, ARRAYS[2]), ARRAYS[2])
    assert not looks
    np.testing.assert_array_equal(fast({"x": np.ones(3, np.float32)}, X), X)
    assert len(looks) == 1
