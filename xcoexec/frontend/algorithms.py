"""Products in the algorithm that JAX's preset asks for: f32 operands as bf16, or as the sum of two bf16.

    BF16_BF16_F32       a . b                    a, b rounded to bf16, sums in f32
    BF16_BF16_F32_X3    al . bh + ah . bl + ah . bh         a = ah + al, as far as two bf16 go

Other presets ask for no less than f32 does, or for what is another operation's type; they are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax import lax

from ..codegen.program import Literal, Op, Value

Ins = tuple[Value | Literal, ...]
BF16 = "bfloat16"
ONCE, THREE_TIMES = "BF16_BF16_F32", "BF16_BF16_F32_X3"
PRIMITIVES = {"dot_general": lax.dot_general_p, "conv_general_dilated": lax.conv_general_dilated_p}


def by_algorithm(prim: str, ins: Ins, outs: tuple[Value, ...], params: Mapping[str, Any], name: str) -> list[Op] | None:
    """The operations of a product in the algorithm that its precision names; None for any other product."""
    asked = str(params.get("precision")).rsplit(".", 1)[-1]
    if asked not in (ONCE, THREE_TIMES) or any(v.dtype != "float32" for v in (*ins, *outs)):
        return None
    draft = _Draft(prim, {**params, "precision": None, "preferred_element_type": np.dtype("float32")}, name)
    (a, b), out = ins, outs[0]
    if asked == ONCE:
        draft.product(draft.narrow(a), draft.narrow(b), out)
        return draft.ops
    (ah, al), (bh, bl) = draft.halves(a), draft.halves(b)
    small = draft.sum(draft.product(al, bh, _like(out)), draft.product(ah, bl, _like(out)), _like(out))
    draft.sum(small, draft.product(ah, bh, _like(out)), out)
    return draft.ops


class _Draft:
    """Operations in the making; `params` are those of each product."""

    def __init__(self, prim: str, params: Mapping[str, Any], name: str):
        self.prim, self.params, self.name = prim, params, name
        self.ops: list[Op] = []

    def product(self, a: Value, b: Value, out: Value) -> Value:
        return self._add(self.prim, (a, b), out, self.params, PRIMITIVES[self.prim])

    def sum(self, a: Value, b: Value, out: Value) -> Value:
        return self._add("add", (a, b), out, {}, lax.add_p)

    def narrow(self, x: Value | Literal, dtype: str = BF16) -> Value:
        params = {"new_dtype": np.dtype(dtype), "weak_type": False, "sharding": None}
        out = Value(x.shape, dtype)
        return self._add("convert_element_type", (x,), out, params, lax.convert_element_type_p)

    def halves(self, x: Value | Literal) -> tuple[Value, Value]:
        """The nearest bf16, and what is left as bf16."""
        high = self.narrow(x)
        rest = self._add("sub", (x, self.narrow(high, "float32")), Value(x.shape, "float32"), {}, lax.sub_p)
        return high, self.narrow(rest)

    def _add(self, prim: str, ins: Ins, out: Value, params: Mapping[str, Any], primitive: Any) -> Value:
        self.ops.append(Op(prim, ins, (out,), dict(params), self.name, primitive))
        return out


def _like(v: Value) -> Value:
    return Value(v.shape, v.dtype)


__all__ = ["by_algorithm"]
