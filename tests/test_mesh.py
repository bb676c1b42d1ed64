"""A batch that lies in parts on several devices: each runs the program of its own part, or plain `jax.jit` runs all."""

from __future__ import annotations

import ast
import functools
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.rules import reference
from xcoexec.devices import cores
from xcoexec.errors import SplitError
from xcoexec.frontend.fold import Folded, fold
from xcoexec.frontend.shards import shard
from xcoexec.frontend.trace import paths, trace

from .test_sharded import AS_USED, FOUR, ROOT, begin, ended

pytestmark = pytest.mark.usefixtures("quick_xla")

EXACT = 2e-6


@functools.cache
def seen() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ended(begin("-m", "tests.mesh_cases", XLA_FLAGS=FOUR))[0])
    return found


def names(table: str) -> list[str]:
    """The names of a table of the other program."""
    tree = ast.parse((ROOT / "tests" / "mesh_cases.py").read_text())
    found = [n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == table]
    assert len(found) == 1 and isinstance(found[0], ast.Dict)
    return [ast.literal_eval(k) for k in found[0].keys if k is not None]


@pytest.mark.parametrize("name", names("APART"))
def test_each_device_runs_the_program_of_its_own_part(name: str) -> None:
    found = seen()["apart"][name]
    assert found["engines"] == ["xco", "xco"] and found["alike"] and found["error"] < EXACT * 5


@pytest.mark.parametrize("name", names("APART"))
def test_without_the_host_half_one_program_runs_on_all_devices(name: str) -> None:
    """Where each has one equal piece: several devices with the same items, and one alone, have their own programs."""
    found = seen()["on device"][name]
    assert found["engines"] == ["xco", "xco"] and found["alike"] and found["error"] < EXACT * 5
    alone = ("one axis of a grid", "all on the third device", "a mesh of the first device alone")
    assert found["as one"] is (name not in alone)


@pytest.mark.parametrize("name", names("TOGETHER"))
def test_what_is_not_divisible_by_item_is_plain_jit(name: str) -> None:
    found = seen()["together"][name]
    assert found["engines"] == ["jit", "jit"] and found["alike"] and found["error"] == 0.0


def test_results_in_double_precision() -> None:
    assert seen()["double"] < EXACT


def test_places_weights_and_plans_in_turn() -> None:
    found = seen()["in turn"]
    assert found["errors"] < EXACT * 5 and found["ready"] and found["behind calls"] < EXACT and found["same place"]


def test_errors() -> None:
    assert "has been deleted" in seen()["deleted"]
    assert "cannot be co-executed" in seen()["strict"]


def test_devices_with_relays_and_cores_of_their_own(tmp_path: pathlib.Path) -> None:
    found = json.loads(ended(begin("-m", "tests.mesh_relays", XCOEXEC_CACHE_DIR=str(tmp_path), **AS_USED))[0])
    assert found["alike"] and found["error"] < EXACT and found["engines"] == ["xco", "xco", "xco"]
    assert found["ordinals"] == [0, 1] and found["served"] == [True, True] and found["cores"] == found["expected cores"]
    assert "device, launched one by one" in found["all tried"]
    assert found["split"] > 0 and found["fault"].count("plain jax.jit") == 1 and found["after the fault"] < EXACT


# -- the program of a part


def folded(fn: Any, *shapes: tuple[int, ...]) -> Folded:
    leaves = [jax.ShapeDtypeStruct(s, np.float32) for s in shapes]
    tree = jax.tree_util.tree_structure((tuple(leaves), {}))
    return fold(trace(fn, leaves, tree, paths(tree)), [])


def by_reference(program: Folded, *args: np.ndarray) -> list[np.ndarray]:
    """The results of a program, operation by operation in NumPy."""
    env: dict[Any, Any] = dict(zip(program.inputs, args, strict=True)) | dict(program.closed)
    for d in program.prologue:
        env[d.value] = d.fn(*(env[a] for a in d.args))
    for op in program.ops:
        env[op.out] = reference.apply(op, *(env[v] if v in env else np.asarray(v.val, v.dtype) for v in op.ins))  # type: ignore[union-attr]
    return [np.asarray(env[v]) for v in program.outputs]


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_parts_together_are_the_whole(count: int) -> None:
    fn = lambda w, x: (jnp.tanh(x @ w) / x.shape[0], w * 2, x.max(1))
    program, size = folded(fn, (5, 7), (6, 5)), 6 // count
    spans = [(0, i * size, (i + 1) * size) for i in range(count)]
    part = shard(program, [((None, s), (s, None, s)) for s in spans], program.constants([]))
    random = np.random.default_rng(count)
    w, x = random.standard_normal((5, 7)), random.standard_normal((6, 5))
    got = [by_reference(part, w, x[a:b]) for _, a, b in spans]
    want = [np.tanh(x @ w) / 6, w * 2, x.max(1)]
    for i in (0, 2):
        np.testing.assert_allclose(np.concatenate([g[i] for g in got]), want[i], rtol=1e-6)
    assert all(np.array_equal(g[1], want[1]) for g in got)


@pytest.mark.parametrize(
    "fn",
    [
        lambda w, x: x - x.mean(0),
        lambda w, x: x + jnp.arange(6.0)[:, None],
        lambda w, x: x[::-1],
        lambda w, x: x + w,
        lambda w, x: jnp.cumsum(x, 0),
        lambda w, x: jnp.roll(x, 1, 0),
        lambda w, x: x.T.reshape(6, 5),
    ],
)
def test_parts_that_need_others(fn: Any) -> None:
    spans = [(0, 0, 3), (0, 3, 6)]
    with pytest.raises(SplitError):
        program = folded(fn, (6, 5), (6, 5))
        shard(program, [((None, s), (s,)) for s in spans], program.constants([]))


def test_a_result_in_another_part_than_it_is_there() -> None:
    program = folded(lambda w, x: (w @ w.T, x), (4, 4), (6, 5))
    with pytest.raises(SplitError, match="another part"):
        shard(program, [((None, (0, 0, 3)), (None, None)), ((None, (0, 3, 6)), (None, None))], {})


def test_a_constant_that_is_the_same_for_every_item() -> None:
    token = np.arange(4, dtype=np.float32)
    fn = lambda w, x: jnp.concatenate([jnp.broadcast_to(token, (6, 4)), x @ w], 1)
    program, spans = folded(fn, (5, 7), (6, 5)), [(0, 0, 2), (0, 2, 4), (0, 4, 6)]
    part = shard(program, [((None, s), (s,)) for s in spans], program.constants([]))
    w, x = np.random.default_rng(0).standard_normal((5, 7)), np.random.default_rng(1).standard_normal((6, 5))
    got = np.concatenate([by_reference(part, w, x[a:b])[0] for _, a, b in spans])
    np.testing.assert_allclose(got, np.concatenate([np.tile(token, (6, 1)), x @ w], 1), rtol=1e-6)


# -- cores


def test_numbers() -> None:
    assert cores.numbers("0-2,8\n") == (0, 1, 2, 8)
    with pytest.raises(ValueError, match="invalid"):
        cores.numbers("none")


@pytest.mark.parametrize(
    ("pool", "near", "most", "want"),
    [
        (range(16), [(), ()], 99, [(0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11)]),
        (range(16), [range(8, 16), range(8)], 99, [(8, 9, 10, 11, 12, 13), (0, 1, 2, 3, 4, 5)]),
        (range(16), [range(8), range(8)], 99, [(0, 1, 2, 3, 4, 5), (6, 7, 8, 9, 10, 11)]),
        (range(16), [(), ()], 2, [(0, 1), (2, 3)]),
        (range(2), [(), ()], 99, [(0,), (1,)]),
        (range(1), [(), ()], 99, [(), ()]),
        ([3, 5, 7, 9], [(9,)], 99, [(3, 9)]),
    ],
)
def test_cores_are_divided_nearest_first(pool: Any, near: Any, most: int, want: Any) -> None:
    assert cores.divided(list(pool), near, most) == want
