"""Plans as text: whatever a text holds, it is a plan or a `PlanError` that names the field; whatever a plan holds, it
fits or is refused.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xcoexec.codegen.runtime import host
from xcoexec.errors import PlanError
from xcoexec.frontend.fold import Folded
from xcoexec.ir import words
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.placement import Placement
from xcoexec.ir.plan import Plan, fields
from xcoexec.ir.validate import check_plan
from xcoexec.ir.words import DIMS, ENGINES, WAYS
from xcoexec.lowering.executable import executable
from xcoexec.lowering.lower import lower
from xcoexec.partition.split import split
from xcoexec.session.contest import forced

from .support import array, error, oracle, stages_of

GOOD = Plan(
    "edgenn",
    (
        Placement("Net/Conv_0", "split", 0.5, "rows", 1e-3, "", 1),
        Placement("Net/Dense_0", "device", 0.0, note="too small", reads="mapped", writes="copy"),
    ),
    "0123456789abcdef",
    2e-3,
    {"jit": 3e-3, "xco": 2e-3},
    "fastest of jit, xco by measurement",
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([10**400, -1, 0, 1, 0.5, "host", "rows", "copy", "xco"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def _edited(*path: Any, value: Any) -> str:
    """The good plan's text with another value at a place."""
    data = json.loads(GOOD.to_json())
    node = functools.reduce(lambda v, k: v[k], path[:-1], data)
    node[path[-1]] = value
    return json.dumps(data)


def _raw(field: str, text: str) -> str:
    """The good plan's text with a number of the plan spelled in another way."""
    return GOOD.to_json().replace(f'"{field}": {json.loads(GOOD.to_json())[field]}', f'"{field}": {text}')


PLACES = [
    ("placements", 0, "p_cpu", [True, "0.5", None, -0.1, 1.5, 10**400, [], {}]),
    ("placements", 0, "streamed", [False, "x", None, -1, 2, 10**400]),
    ("placements", 0, "chain", [-1, True, 1.0, 0.5, "1", None, 10**400]),
    ("placements", 0, "pieces", [0, -3, True, 1.0, "1", None, 10**400]),
    ("placements", 0, "half", ["gpu", None, 3, ["host"], "HOST"]),
    ("placements", 0, "dim", ["depth", None, 3, {}]),
    ("placements", 0, "layer", [None, 3, ["a"], "x" * 100_000, "\ud800"]),
    ("placements", 0, "note", [None, 3, "x" * 100_000]),
    ("placements", 0, "predicted", ["1", True, -1.0, 10**400, []]),
    ("placements", 0, "reads", ["pinned", None, 0]),
    ("placements", 0, "writes", ["pinned", None, 0]),
    ("measured", "jit", ["fast", None, True, -1.0, 10**400, {}]),
    ("measured", [None, [], "jit", 3, {"a": "b"}]),
    ("predicted", ["1", True, -1.0, 10**400]),
    ("strategy", [None, 3, ["a"], "x" * 100_000]),
    ("graph", [None, 3]),
    ("chosen", [None, 3]),
    ("engine", ["turbo", None, 3, ["xco"]]),
    ("placements", [None, 3, {}, "x"]),
    ("placements", 1, [None, 3, [], {}, "x"]),
]


@pytest.mark.parametrize(("path", "value"), [(p[:-1], v) for p in PLACES for v in p[-1]], ids=lambda x: str(x)[:30])
def test_a_wrong_value_is_named_by_its_field(path: tuple[Any, ...], value: Any) -> None:
    name = next(k for k in reversed(path) if isinstance(k, str))
    where = f"placement {path[1]}" if path[0] == "placements" and len(path) > 1 else path[0]
    name = where if isinstance(path[-1], int) else name
    with pytest.raises(PlanError, match=rf"^Plan\.from_json: got [^;]*{name}.*; valid is ") as caught:
        Plan.from_json(_edited(*path, value=value))
    assert len(str(caught.value)) < 800 and (len(path) == 1 or where in str(caught.value) or name == where)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "1e999999", "9" * 5000, "-0.0001", "true", '"1"']
)
def test_numbers_that_are_none(number: str) -> None:
    with pytest.raises(PlanError, match=r"^Plan\.from_json: got "):
        Plan.from_json(_raw("predicted", number))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"\xff\xfe{}", "not JSON.*utf-8"),
        (GOOD.to_json().encode("utf-16"), "not JSON"),
        (b"", "not JSON"),
        ("", "not JSON"),
        ("[" * 200_000, "nested too deeply|not JSON"),
        ('{"version":' * 100_000, "nested too deeply|not JSON"),
        ("[" * 200_000 + "]" * 200_000, "nested too deeply|not JSON|version"),
        (" " * (1 << 24) + "{}", "characters"),
        ("null", "version None"),
        ("[]", "version None"),
        ("7", "version None"),
        ('{"version": true}', "version True"),
        ('{"version": 1e0}', "version 1.0"),
        ('{"version": 3, "version": 3}', "stands there twice"),
        (None, "type NoneType"),
        (7, "type int"),
        (["{}"], "type list"),
        (bytearray(b"{}"), "type bytearray"),
    ],
    ids=lambda x: str(x)[:20],
)
def test_texts_that_are_no_plan(text: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says) as caught:
        Plan.from_json(text)
    assert str(caught.value).startswith("Plan.from_json: got ") and len(str(caught.value)) < 500


def test_a_layer_is_there_once() -> None:
    with pytest.raises(PlanError, match=r"got layer='Net/Conv_0' in placement 1 a second time"):
        Plan.from_json(_edited("placements", 1, "layer", value="Net/Conv_0"))


def test_a_text_of_bytes_is_the_same_plan() -> None:
    assert Plan.from_json(GOOD.to_json().encode()) == GOOD == Plan.from_json(b"\xef\xbb\xbf" + GOOD.to_json().encode())


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_any_value_at_any_place(data: st.DataObject) -> None:
    """Each text is a plan whose text is of the same plan, or a `PlanError`."""
    whole = json.loads(GOOD.to_json())
    for _ in range(data.draw(st.integers(1, 3))):
        node, path = whole, data.draw(st.sampled_from([p[:-1] for p in PLACES]))
        for key in path[:-1]:
            node = (
                node[key]
                if isinstance(node, (dict, list)) and (key in node if isinstance(node, dict) else len(node) > 1)
                else {}
            )
        if isinstance(node, dict) or (isinstance(node, list) and path[-1] in range(len(node))):
            node[path[-1]] = data.draw(JSON)
    _plan_or_error(json.dumps(whole))


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60) | JSON.map(lambda v: json.dumps(v).encode()) | st.text(max_size=60))
@example(b'{"version": 3, "placements": [[]]}')
def test_any_bytes(text: Any) -> None:
    _plan_or_error(text)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 1 << 20), st.integers(0, 60), st.binary(max_size=8))
def test_any_damage(at: int, length: int, new: bytes) -> None:
    text = GOOD.to_json().encode()
    at %= len(text)
    _plan_or_error(text[:at] + new + text[at + length :])


def _plan_or_error(text: Any) -> None:
    try:
        plan = Plan.from_json(text)
    except PlanError:
        return
    assert Plan.from_json(plan.to_json()) == plan and Plan.from_json(plan.to_json()).to_json() == plan.to_json()
    assert str(plan) and all(0 <= p.p_cpu <= 1 and p.pieces >= 1 and p.chain >= 0 for p in plan.placements)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, "x", 10**400])
def test_plans_that_no_text_can_hold(value: Any) -> None:
    with pytest.raises(PlanError, match=r"^Plan\.to_json: got predicted=.*; valid is"):
        dataclasses.replace(GOOD, predicted=value).to_json()


@pytest.mark.parametrize("share", [math.nan, math.inf, -0.1, 1.1, "x", None, True, 1j, [0.5]])
def test_uniform_shares_that_are_none(share: Any) -> None:
    with pytest.raises(PlanError, match=r"^Plan\.uniform: got p_cpu="):
        Plan.uniform(share)


# -- plans that are JSON and do not fit the graph -----------------------------------------------------


def _unsorted(w: Any, x: Any) -> Any:
    y = jax.lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = jax.lax.conv_general_dilated(jax.nn.relu(y), w[1], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    z = jnp.tanh(y) + 1
    return z.reshape(2, -1) @ w[2]


def _net(w: Any, x: Any) -> Any:
    """Convolutions, a product, and a layer that kernels cannot run."""
    return jnp.sort(_unsorted(w, x)) * 2


NET_WEIGHTS = [array(3, 3, 4, 16, seed=1), array(3, 3, 16, 32, seed=2), array(288, 24, seed=3)]
NET_X = array(2, 8, 8, 4, seed=4)


@functools.cache
def _stages() -> tuple[Folded, LayerGraph, np.ndarray]:
    folded, graph = stages_of(_net, NET_WEIGHTS, NET_X, weights=1)
    return folded, graph, np.sort(oracle(_unsorted, NET_WEIGHTS, NET_X)) * 2


_shares = st.sampled_from([0.0, 0.3, 0.5, 1.0])
_placements = st.builds(
    dict,
    half=st.sampled_from(words.PLACES),
    p_cpu=_shares,
    dim=st.sampled_from(DIMS),
    chain=st.sampled_from([0, 0, 1, 2]),
    streamed=st.sampled_from([0.0, 0.0, 0.5, 1.0]),
    pieces=st.sampled_from([1, 1, 2, 1 << 20]),
    reads=st.sampled_from(WAYS),
    writes=st.sampled_from(WAYS),
)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_any_placements_run_right_or_are_refused(data: st.DataObject) -> None:
    """A plan of any valid fields: `check_plan` refuses it with a `PlanError`, or what runs is right."""
    folded, graph, want = _stages()
    alike = data.draw(st.booleans())  # so that chains come out that are none by accident alone
    shared = data.draw(_placements)
    places = tuple(
        Placement(x.name, **(shared if alike and not x.host_error else data.draw(_placements))) for x in graph.layers
    )
    plan = Plan.from_json(Plan("fuzz", places, graph.key).to_json())
    assert plan.placements == places
    try:
        check_plan(plan, graph)
    except PlanError:
        return
    made = executable(
        plan,
        lower(graph, folded, plan.placements, lambda p: host.build(p, 1, cut=split)),
        jax.tree_util.tree_leaves(NET_WEIGHTS),
        (),
    )
    assert error(np.asarray(made.call([NET_X])[0]), want) < 1e-4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (dict(p_cpu="x"), "p_cpu='x' in placement 0"),
        (dict(p_cpu=math.nan), "p_cpu=nan in placement 0"),
        (dict(chain=-1), "chain=-1 in placement 0"),
        (dict(pieces=0), "pieces=0 in placement 0"),
        (dict(half=None), "half=None in placement 0"),
        (dict(layer="other"), "'other' where the function has"),
    ],
    ids=str,
)
def test_plans_by_hand_are_checked_by_the_same_rules(change: dict[str, Any], says: str) -> None:
    _, graph, _ = _stages()
    plan = forced(graph, Plan.uniform(0.0))
    broken = dataclasses.replace(
        plan, placements=(dataclasses.replace(plan.placements[0], **change), *plan.placements[1:])
    )
    with pytest.raises(PlanError, match=says):
        check_plan(broken, graph)


@pytest.mark.parametrize("placements", [None, 3, "x", [None], (3, 4)], ids=repr)
def test_plans_whose_placements_are_none(placements: Any) -> None:
    _, graph, _ = _stages()
    with pytest.raises(PlanError, match=r"plan: got (placements|placement 0)"):
        check_plan(Plan("x", placements), graph)
    assert fields(GOOD)["placements"][0]["layer"] == "Net/Conv_0" and set(ENGINES) == {"xco", "jit", "local"}
