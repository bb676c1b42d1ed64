"""Where a program says that its arrays lie; and the same program on one device, where that says nothing.

sharding_constraint[P("d")] a   -->   a
shard_map { psum["d"] (b * 2) } -->   b * 2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Jaxpr as JaxprType
from jax.sharding import AbstractMesh, Mesh, Sharding

from ..compat import (
    EMPTY_MESH,
    UNSPECIFIED,
    AlongAxis,
    ClosedJaxpr,
    JaxLiteral,
    Jaxpr,
    JaxprEqn,
    Var,
    bodies,
    no_mesh,
    shape_of,
)

Params = Mapping[str, Any]
#: parameters of equations that may say where arrays lie, and what they then hold; a device alone is not obeyed there
PLACES = ("sharding", "out_sharding", "dst_sharding", "in_shardings", "out_shardings", "devices", "mesh")
SAYS = (Sharding, Mesh, AbstractMesh, jax.memory.Space)
#: what such parameters are where nothing is said
UNSAID: dict[str, Callable[[Any], object]] = {
    "sharding": lambda _: None,
    "out_sharding": lambda _: None,
    "in_shardings": lambda said: (UNSPECIFIED,) * len(said),
    "out_shardings": lambda said: (UNSPECIFIED,) * len(said),
    "ctx_mesh": lambda _: EMPTY_MESH,
}
#: primitives whose results are their operands on one device
SAME = {"sharding_constraint", "reshard", "mesh_cast", "device_put", "pvary", "pcast", "reduced_vary_cast"}
SAME |= {"psum", "psum2", "psum_invariant", "pmax", "pmin", "pbroadcast", "all_to_all", "preduced"}
SAME |= {"vary_unreduced_cast"}


def _gathered(p: Params) -> Callable[..., jax.Array]:
    return lambda x: x if p["tiled"] else jnp.expand_dims(x, p["all_gather_dimension"])


def _scattered(p: Params) -> Callable[..., jax.Array]:
    return lambda x: x if p["tiled"] else jnp.squeeze(x, p["scatter_dimension"])


def _permuted(p: Params) -> Callable[..., jax.Array]:
    return lambda x: x if (0, 0) in p["perm"] else jnp.zeros_like(x)


#: what devices do together -> what one does alone
ALONE: dict[str, Callable[[Params], Callable[..., jax.Array]]] = {
    "all_gather": _gathered,
    "all_gather_invariant": _gathered,
    "reduce_scatter": _scattered,
    "ppermute": _permuted,
    "axis_index": lambda _: lambda: jnp.zeros((), jnp.int32),
}


def _says(x: object) -> bool:
    """Whether a parameter names a place; a mesh without devices, which transposed operations have, is none."""
    return isinstance(x, SAYS) and not getattr(getattr(x, "mesh", x), "empty", False)


def lies_on(x: object, device: jax.Device) -> bool:
    """Whether a sharding or a mesh is that device alone, in its default memory: a mesh without devices of its own is if
    it has room for one.
    """
    if isinstance(x, (Mesh, AbstractMesh)):
        return x.size == 1 and (isinstance(x, AbstractMesh) or x.devices.item() == device)
    if not isinstance(x, Sharding) or x.memory_kind not in (None, device.default_memory().kind):
        return False
    mesh = getattr(x, "mesh", None)
    return x.device_set == {device} if mesh is None else lies_on(mesh, device)


def _said(eqn: JaxprEqn) -> list[object]:
    """Which places an equation names."""
    return [x for x in jax.tree_util.tree_leaves([eqn.params.get(name) for name in PLACES]) if _says(x)]


def placing(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[JaxprEqn]:
    """The equations that say where arrays lie (shardings, meshes, kinds of memory), or that several devices compute
    together; inside of others too.
    """
    for eqn in jaxpr.eqns:
        if _said(eqn) or _together(eqn):
            yield eqn
        for inner in bodies(eqn):
            yield from placing(inner)


def _together(eqn: JaxprEqn) -> bool:
    return any(isinstance(e, AlongAxis) for e in eqn.effects) and not bodies(eqn)


def elsewhere(jaxpr: Jaxpr | ClosedJaxpr, device: jax.Device) -> str:
    """The first primitive that names another place than a device alone, or of which nobody knows what it is there (""
    where there is none).
    """
    return next((eqn.primitive.name for eqn in placing(jaxpr) if not _as_alone(eqn, device)), "")


def _as_alone(eqn: JaxprEqn, device: jax.Device) -> bool:
    """Whether it is known what an equation is on a device alone: axes that are numbers are an array's, not a mesh's."""
    known = eqn.primitive.name in SAME or eqn.primitive.name in ALONE
    if _together(eqn) and not (known and not any(isinstance(axis, int) for axis in eqn.params.get("axes", ()))):
        return False
    return all(lies_on(x, device) for x in _said(eqn))


def unplaced(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same program on one device, of a program that names no other (`elsewhere`): without meshes and shardings."""
    with no_mesh():
        return ClosedJaxpr(_program(closed.jaxpr), closed.consts)


def _program(jaxpr: Jaxpr) -> Jaxpr:
    scope = _Scope()
    consts, inputs = scope.define(jaxpr.constvars), scope.define(jaxpr.invars)
    eqns = list(scope.rewritten(jaxpr.eqns))
    effects = {e for e in jaxpr.effects if not isinstance(e, AlongAxis)}
    outs = scope.read(jaxpr.outvars)
    return jaxpr.replace(constvars=consts, invars=inputs, outvars=outs, eqns=eqns, effects=effects)


class _Scope:
    """The variables of a program, and what is in their place."""

    def __init__(self) -> None:
        self.at: dict[Var, Any] = {}

    def define(self, variables: Sequence[Var]) -> list[Any]:
        """New variables of the same shapes and types."""
        new = [type(v)(_unplaced_type(v.aval)) for v in variables]
        self.at.update(zip(variables, new, strict=True))
        return new

    def read(self, atoms: Sequence[Any]) -> list[Any]:
        """What is in the place of variables and literals."""
        return [JaxLiteral(a.val, _unplaced_type(a.aval)) if isinstance(a, JaxLiteral) else self.at[a] for a in atoms]

    def rewritten(self, eqns: Sequence[JaxprEqn]) -> Iterator[JaxprEqn]:
        """Equations of the same values."""
        for eqn in eqns:
            name = eqn.primitive.name
            if name in ALONE:
                alone = jax.make_jaxpr(ALONE[name](eqn.params))(*map(shape_of, eqn.invars))
                yield from self._inlined(alone.jaxpr, eqn)
            elif name == "shard_map":
                yield from self._inlined(eqn.params["jaxpr"], eqn)
            elif name in SAME and (name != "device_put" or _said(eqn)):
                yield from self._same(eqn)
            else:
                yield self._equation(eqn)

    def _same(self, eqn: JaxprEqn) -> Iterator[JaxprEqn]:
        """Results that are the operands, none of a weak type where it is not."""
        for atom, out in zip(eqn.invars, eqn.outvars, strict=True):
            if shape_of(atom).weak_type and not shape_of(out).weak_type:
                strong = jax.make_jaxpr(lambda x: jax.lax.convert_element_type(x, x.dtype))(shape_of(atom))
                yield from self._inlined(strong.jaxpr, eqn.replace(invars=[atom], outvars=[out]))
            else:
                self.at[out] = self.read([atom])[0]

    def _inlined(self, inner: Jaxpr, eqn: JaxprEqn) -> Iterator[JaxprEqn]:
        self.at.update(zip(inner.invars, self.read(eqn.invars), strict=True))
        yield from self.rewritten(inner.eqns)
        self.at.update(zip(eqn.outvars, self.read(inner.outvars), strict=True))

    def _equation(self, eqn: JaxprEqn) -> JaxprEqn:
        with eqn.ctx.manager, no_mesh():
            ctx = type(eqn.ctx)()
        effects = {e for e in eqn.effects if not isinstance(e, AlongAxis)}
        ins, outs = self.read(eqn.invars), self.define(eqn.outvars)
        return eqn.replace(invars=ins, outvars=outs, params=_params(eqn.params), effects=effects, ctx=ctx)


def _params(params: Params) -> dict[str, Any]:
    """The parameters of an equation that name no place, nor do the programs inside."""
    program = lambda x: isinstance(x, (JaxprType, ClosedJaxpr))

    def inner(x: object) -> object:
        if isinstance(x, ClosedJaxpr):
            return ClosedJaxpr(_program(x.jaxpr), x.consts)
        return _program(x) if isinstance(x, JaxprType) else x

    def one(name: str, value: object) -> object:
        if name in UNSAID and value is not None:
            return UNSAID[name](value)
        inside = any(map(program, jax.tree_util.tree_leaves(value, is_leaf=program)))
        return jax.tree_util.tree_map(inner, value, is_leaf=program) if inside else value

    return {name: one(name, value) for name, value in params.items()}


def _unplaced_type(aval: Any) -> Any:
    return ShapedArray(aval.shape, aval.dtype, weak_type=aval.weak_type) if type(aval) is ShapedArray else aval


__all__ = ["elsewhere", "lies_on", "placing", "unplaced"]
