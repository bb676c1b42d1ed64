"""A user's function and how it is to be co-executed: the one record that `jit`, `bind` and `compile` share."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
from jax.typing import ArrayLike

from ..compat import NOTHING, TRACED
from ..lowering.executable import Flat
from ..session.options import Options
from .plain import Call, Plain


@dataclasses.dataclass(frozen=True, eq=False)
class Function:
    """`plain`: plain `jax.jit` of the function, with its donation and checks; `options`: those of `xcoexec.jit`."""

    plain: Plain
    options: Options

    @property
    def name(self) -> str:
        """The function's name, as messages show it."""
        return str(getattr(self.plain.fn, "__name__", "function"))

    def stays_plain(self) -> bool:
        """Whether a call now is plain `jax.jit`'s: under a transformation, or where everything is."""
        return TRACED.trace is not NOTHING or self.options.off

    def keeping(self, count: int) -> Function:
        """The same function, by which the first `count` arguments are never given away."""
        return dataclasses.replace(self, plain=self.plain.keeping(count))

    def with_threads(self, threads: int) -> Function:
        """The same function with another number of host threads."""
        return dataclasses.replace(self, options=self.options.with_threads(threads))

    def on_inputs(self, call: Call, index: Sequence[int], leaves: Sequence[ArrayLike]) -> Flat:
        """Plain `jax.jit` of calls like `call` as a function of the inputs' leaves; `index`: which `leaves` are
        weights.
        """
        weights = {i: leaves[i] for i in index}
        many, plain = len(leaves), self.plain

        def run(inputs: Sequence[ArrayLike]) -> Sequence[jax.Array]:
            rest = iter(inputs)
            args, kwargs = plain.rebuilt(call, [weights[i] if i in weights else next(rest) for i in range(many)])
            return jax.tree_util.tree_leaves(plain.run(*args, **kwargs))

        return run


__all__ = ["Function"]
