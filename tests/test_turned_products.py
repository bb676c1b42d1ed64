"""A transpose behind a product and what follows it elementwise comes directly behind the product, which writes its
result so; where it could not, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from xcoexec.codegen.program import Op
from xcoexec.codegen.runtime import host
from xcoexec.partition.split import split

from .support import stages_of

pytestmark = pytest.mark.usefixtures("quick_xla")

B, H, M, N, K = 2, 3, 19, 33, 7
RNG = np.random.default_rng(0)
A, C, W = (RNG.normal(size=s).astype(np.float32) for s in ((B, H, M, K), (B, H, N, K), (H, N, K)))
ROWS, COLUMNS = (RNG.normal(size=s).astype(np.float32) for s in ((B, H, M, 1), (1, H, 1, N)))
WHOLE = RNG.normal(size=(B, H, M, N)).astype(np.float32)


def scores(a: Any, c: Any) -> Any:
    return jnp.einsum("bhmk,bhnk->bhmn", a * 2, c * 3)


def turned(y: Any) -> Any:
    return jnp.transpose(y, (0, 1, 3, 2))


SOONER: dict[str, Callable[..., Any]] = {
    "rows and columns": lambda a, c: turned((scores(a, c) * ROWS + COLUMNS) / 8),
    "an array that is known": lambda a, c: turned(jnp.maximum(scores(a, c), 0) + WHOLE),
    "what the rows come to": lambda a, c: turned(scores(a, c) * (a.sum(-1, keepdims=True) * 2)),
    "batch behind the rows": lambda a, c: jnp.transpose(jnp.exp(scores(a, c) * 0.01), (0, 2, 1, 3)),
    "another type": lambda a, c: turned(scores(a, c).astype(jnp.bfloat16) * 2).astype(jnp.float32),
    "elementwise behind it too": lambda a, c: jnp.tanh(turned(scores(a, c) * ROWS)) + 1,
}
AS_IT_IS: dict[str, Callable[..., Any]] = {
    "an array as large": lambda a, c: turned(scores(a, c) + jnp.einsum("bhmk,hnk->bhmn", a, W)),
    "read twice": lambda a, c: turned(y := scores(a, c) * 2) + y.sum(),
    "the batch last": lambda a, c: jnp.transpose(scores(a, c) * 2, (0, 2, 3, 1)),
    "rows of known weights last": lambda a, c: jnp.transpose((a.reshape(-1, K) @ W[0].T) * 2, (1, 0)) + c.sum(),
    "a result": lambda a, c: (turned(y := scores(a, c) * 2), y),
}


def behind_products(ops: list[Op]) -> bool:
    """Whether every transpose of an array as large as the product reads that."""
    made = {v: op.prim for op in ops for v in op.outs}
    turns = [op for op in ops if op.prim == "transpose" and op.out.size == WHOLE.size]
    assert turns
    return all(made.get(op.ins[0]) == "dot_general" for op in turns)


@pytest.mark.parametrize("name", [*SOONER, *AS_IT_IS])
def test_results_and_places(name: str) -> None:
    fn = {**SOONER, **AS_IT_IS}[name]
    folded, graph = stages_of(fn, A, C, weights=0)
    known = {*folded.constants(())}
    assert behind_products([op for op in folded.ops if op.ins and op.ins[0] not in known]) == (name in SOONER)
    segment = host.build(graph.program, 2, pick=lambda groups, names, t: names[0], cut=split)
    got = host.Call(segment, [A, C], [folded.constants(())[v] for v in graph.program.consts])()
    want = fn(A, C) if isinstance(fn(A, C), tuple) else (fn(A, C),)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(np.array(x).reshape(y.shape), y, rtol=2e-5, atol=2e-4)
