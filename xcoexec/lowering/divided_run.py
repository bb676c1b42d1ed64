"""How a network that is divided over devices runs inside of a traced function: its operations, and where results lie.

Where a value lies is said to XLA; what devices have to give one another for that, its partitioner adds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..codegen.program import Op, Value
from ..frontend.trace import Traced
from ..partition.divided_network import DividedLayer, DividedNetwork, Exchange, Seconds, divided
from .emit import operand_of, run_ops

Env = dict[Value, jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class DividedRun:
    """Evaluates operations over a mesh of one axis, as a network says."""

    network: DividedNetwork
    mesh: Mesh

    def sharding(self, axis: int | None) -> NamedSharding:
        """Where an array lies: divided along an axis, or whole on each device."""
        (name,) = self.mesh.axis_names
        return NamedSharding(self.mesh, PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name))

    def __call__(self, ops: Sequence[Op], env: Env) -> None:
        """`env` has what the operations read, and gets their results."""
        whole: Env = {}
        for op in ops:
            mine = {v: env[v] for v in op.reads}
            for v in (op.ins[i] for i in self.network.gathers.get(op, ())):
                assert isinstance(v, Value)
                if v not in whole:
                    whole[v] = lax.with_sharding_constraint(env[v], self.sharding(None))
                mine[v] = whole[v]
            if op.body is not None and self._inside(op):
                mine.update(zip(op.outs, self._turns(op, mine), strict=True))
            else:
                run_ops([op], mine)
            env.update((v, self._there(v, mine[v])) for v in op.outs)

    def _there(self, v: Value, x: jax.Array) -> jax.Array:
        axis = self.network.axes.get(v)
        said = axis is not None or v in self.network.wholes
        return lax.with_sharding_constraint(x, self.sharding(axis)) if said else x

    def _inside(self, op: Op) -> bool:
        """Whether the turns of a loop have divided layers."""
        inner = op.body.ops if op.body is not None and op.prim == "scan" else ()
        return any(self.network.axes.keys() & set(o.outs) or self.network.wholes & set(o.outs) for o in inner) or any(
            map(self._inside, inner)
        )

    def _turns(self, op: Op, env: Env) -> list[jax.Array]:
        """A loop of known length, turn by turn."""
        body, p = op.body, op.params
        assert body is not None
        given = [operand_of(v, env) for v in op.ins]
        a, b = body.same, body.same + body.carried

        def turn(carry: list[jax.Array], arrays: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
            inner = dict(zip(body.inputs, (*given[:a], *carry, *arrays), strict=True))
            inner.update((v, env[v]) for v in body.consts)
            self(body.ops, inner)
            out = [lax.with_sharding_constraint(operand_of(v, inner), self.sharding(None)) for v in body.outputs]
            return out[: body.carried], out[body.carried :]

        last, each = lax.scan(turn, given[a:b], given[b:], p["length"], p["reverse"], p.get("unroll", 1))
        return [*last, *each]


@dataclasses.dataclass(frozen=True, eq=False)
class DividedProgram:
    """A traced function over a mesh: `known` are its weights and what it closes over, `inputs` all else."""

    traced: Traced
    run: DividedRun
    known: tuple[Value, ...]
    inputs: tuple[Value, ...]

    @classmethod
    def of(
        cls,
        traced: Traced,
        weights: int,
        mesh: Mesh,
        dim: str,
        seconds: Seconds,
        exchange: Exchange,
        state: Sequence[tuple[int, int]],
    ) -> DividedProgram:
        """The function whose first inputs are `weights`, divided along `dim`. `state`: (input, result) positions of
        what comes back.
        """
        known = (*traced.inputs[:weights], *(v for v, _ in traced.consts))
        pairs = [(traced.inputs[i], traced.outputs[o]) for i, o in state]
        back = [(v, out) for v, out in pairs if isinstance(out, Value) and out not in traced.inputs]
        found = divided(traced.ops, known, traced.outputs, mesh.size, dim, seconds, exchange, back)
        return cls(traced, DividedRun(found, mesh), known, traced.inputs[weights:])

    @property
    def layers(self) -> tuple[DividedLayer, ...]:
        """What is divided (nothing: there is no layer for which it pays)."""
        return self.run.network.layers

    @property
    def exchanges(self) -> float:
        """Seconds of a call in which devices give one another what they need, as calculated."""
        return self.run.network.exchanges

    def places(self) -> tuple[list[NamedSharding], list[NamedSharding], list[NamedSharding]]:
        """Where the weights lie, the inputs, and the results: of these a state alone may lie divided."""
        axes, at = self.run.network.axes, self.run.sharding
        back = self.run.network.state
        results = [at(axes.get(v) if v in back else None) for v in self.traced.outputs]
        weights = [at(self.run.network.weights.get(v)) for v in self.known]
        return weights, [at(axes.get(v)) for v in self.inputs], results

    def __call__(self, known: Sequence[jax.Array], inputs: Sequence[jax.Array]) -> list[jax.Array]:
        """The results, from arrays that lie where `places` says."""
        env = dict(zip((*self.known, *self.inputs), (*known, *inputs), strict=True))
        self.run(self.traced.ops, env)
        return [operand_of(v, env) for v in self.traced.outputs]


__all__ = ["DividedProgram", "DividedRun"]
