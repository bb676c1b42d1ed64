"""Every branch on a JAX version, and the few names that come from outside JAX's promised API."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import pathlib
import platform
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol, cast

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Primitive, Var
from jax.extend.core import Literal as JaxLiteral
from jax.interpreters import mlir
from jax.interpreters.ad import Zero
from jax.sharding import Sharding
from jax.sharding import SingleDeviceSharding as SingleDevice
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike


class Jitted(Protocol):
    """What `jax.jit` returns: it takes and returns what the function does."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered: ...

    def trace(self, *args: Any, **kwargs: Any) -> jax.stages.Traced: ...

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...

    def clear_cache(self) -> None: ...

    def _cache_size(self) -> int:
        """How many programs it keeps: one for each signature that it was called with."""
        ...


#: JAX's own, also where a program has put `xcoexec.jit` in the place of `jax.jit`, before or after this is loaded
plain_jit = cast("Callable[..., Jitted]", jax._src.api.jit)  # type: ignore[attr-defined]
#: the class of concrete arrays (an array made here would start XLA at import)
Array: type[jax.Array] = jax._src.array.ArrayImpl  # type: ignore[attr-defined]
Avals = tuple[tuple[tuple[int, ...], str], ...]  # (shape, NumPy's name of the type) of each result
Pairs = tuple[tuple[int, int], ...]  # (operand, result) that share a buffer

#: primitives whose body is inlined -> parameter that holds it. `jit` was `pjit` in older traces.
INLINE: dict[str, tuple[str, ...]] = {
    "jit": ("jaxpr",),
    "pjit": ("jaxpr",),
    "closed_call": ("call_jaxpr",),
    "core_call": ("call_jaxpr",),
    "custom_jvp_call": ("call_jaxpr",),
    "custom_vjp_call": ("call_jaxpr", "fun_jaxpr"),
    "custom_vjp_call_jaxpr": ("fun_jaxpr", "call_jaxpr"),
    "remat": ("jaxpr",),
    "remat2": ("jaxpr",),
    "checkpoint": ("jaxpr",),
}


@functools.lru_cache
def xla_knows(option: str, value: object = False) -> bool:
    """Whether XLA's compiler has an option (a switch, if nothing else is said) that takes a value."""
    shape = jax.ShapeDtypeStruct((8,), "float32")
    try:
        plain_jit(lambda x: x + 1, compiler_options={option: value}).lower(shape).compile()
    except Exception:  # JAX says so in several ways
        return False
    return True


def as_array(x: ArrayLike) -> jax.Array:
    """`jax.numpy.asarray` with a copy of a NumPy array, for which that compiles a program at each new shape."""
    return jax.device_put(x, may_alias=False) if type(x) is np.ndarray else jax.numpy.asarray(x)


def local_arrays(x: jax.Array) -> Sequence[jax.Array]:
    """The arrays of an array on the devices of this process, one each, in the order of its sharding. Raises
    `RuntimeError` for one that has been deleted.
    """
    found: Sequence[jax.Array] | None = x._arrays  # type: ignore[attr-defined]
    if found is None:
        x._check_if_deleted()  # type: ignore[attr-defined]
    return cast("Sequence[jax.Array]", found)


def alone(x: ArrayLike) -> ArrayLike:
    """An array on a mesh of one device as one on that device, with the same buffer, or shape and type of such a one;
    anything else as it is. Raises `RuntimeError` for an array that has been deleted.
    """
    if isinstance(x, jax.ShapeDtypeStruct) and x.sharding is not None:
        (device,) = x.sharding.device_set
        return cast(ArrayLike, x.update(sharding=SingleDevice(device)))
    return local_arrays(x)[0] if type(x) is Array and type(x.sharding) is not SingleDevice else x


def uncommitted(x: ArrayLike) -> ArrayLike:
    """An array with the same buffers that `jax.jit` may move: what a function closes over does not say where results
    of it lie, nor does a mesh of one device.
    """
    if type(x) is not Array or not x.committed:
        return x
    arrays = local_arrays(x)
    one = cast(jax.Array, arrays[0]) if len(arrays) == 1 and x.is_fully_addressable else x
    return Array(one.aval, one.sharding, arrays, committed=False, _skip_checks=True)  # type: ignore[call-arg]


def put_together(shape: tuple[int, ...], dtype: object, weak: bool, sharding: Sharding) -> Callable[..., jax.Array]:
    """As `jax.make_array_from_single_device_arrays`, for arrays that are known to be of this sharding: its checks take
    longer than a call of a small program.
    """
    aval = _core.update_aval_with_sharding(_core.ShapedArray(shape, dtype, weak_type=weak), sharding)
    return lambda arrays: Array(aval, sharding, arrays, committed=True, _skip_checks=True)  # type: ignore[call-arg]


def body(eqn: JaxprEqn) -> tuple[Jaxpr, list[ArrayLike]] | None:
    """The (open jaxpr, constants) of an equation that is inlined, or None."""
    for key in INLINE.get(eqn.primitive.name, ()):
        inner = eqn.params.get(key)
        if isinstance(inner, ClosedJaxpr):
            return inner.jaxpr, list(inner.consts)
        if isinstance(inner, Jaxpr):
            return inner, []
    return None


def loop_body(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What a loop repeats; None for other equations, and for a loop with effects."""
    closed = eqn.params.get({"scan": "jaxpr", "while": "body_jaxpr"}.get(eqn.primitive.name, ""))
    known = isinstance(closed, ClosedJaxpr) and not closed.effects and not eqn.effects
    return cast(ClosedJaxpr, closed) if known else None


def loop_condition(eqn: JaxprEqn) -> ClosedJaxpr | None:
    """What a loop asks before each turn; None for one of known length, and for other equations."""
    return cast(ClosedJaxpr, eqn.params["cond_jaxpr"]) if eqn.primitive.name == "while" else None


def loop_parts(eqn: JaxprEqn) -> tuple[int, int]:
    """How many operands of a loop are the same in every turn (those of a condition first), and how many a turn hands on
    to the next.
    """
    p = eqn.params
    if eqn.primitive.name == "while":
        same = p["cond_nconsts"] + p["body_nconsts"]
        return same, len(eqn.invars) - same
    if "num_consts" in p:
        return p["num_consts"], p["num_carry"]
    same, carried, _ = map(len, p["ft_in"].unpack())
    return same, carried


def shape_of(atom: Var | JaxLiteral) -> jax.ShapeDtypeStruct:
    """Shape and type of a variable or a literal; whether its type is weak is part of it."""
    aval = cast(jax.core.ShapedArray, atom.aval)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def bodies(eqn: JaxprEqn) -> list[Jaxpr]:
    """The jaxprs inside of an equation: of loops, branches and calls."""
    program = lambda x: isinstance(x, (Jaxpr, ClosedJaxpr))
    found = jax.tree_util.tree_leaves(list(eqn.params.values()), is_leaf=program)
    return [x.jaxpr if isinstance(x, ClosedJaxpr) else x for x in found if program(x)]


def equations(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[JaxprEqn]:
    """All equations of a jaxpr, inside of loops, branches and calls too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in bodies(eqn):
            yield from equations(inner)


def numberless(jaxpr: Jaxpr) -> bool:
    """Whether an argument or a result is of type float0, or one of a loop, branch or call inside. What is made and read
    nowhere is not looked at.
    """
    empty = any(getattr(v.aval, "dtype", None) == jax.dtypes.float0 for v in (*jaxpr.invars, *jaxpr.outvars))
    return empty or any(numberless(inner) for eqn in jaxpr.eqns for inner in bodies(eqn))


def primitives(jaxpr: Jaxpr | ClosedJaxpr) -> Iterator[str]:
    """The names of all primitives of a jaxpr, inside of loops, branches and calls too."""
    return (eqn.primitive.name for eqn in equations(jaxpr))


#: primitives of operations that no trace made
MADE = {"slice": jax.lax.slice_p, "concatenate": jax.lax.concatenate_p, "add": jax.lax.add_p}


def bind(primitive: Primitive, args: Sequence[ArrayLike], params: dict[str, object]) -> list[jax.Array]:
    """Applies a primitive, one with function parameters (scan, while, cond) too; always a list. Raises what JAX does,
    for shapes and types that do not belong together.
    """
    out = primitive.bind(*args, **primitive.get_bind_params(params))
    return list(out) if primitive.multiple_results else [out]


# outside of JAX's promised API, and so without types
_config: Any = jax._src.config  # type: ignore[attr-defined]
_core: Any = jax._src.core  # type: ignore[attr-defined]
_mesh: Any = jax._src.mesh  # type: ignore[attr-defined]
#: parameters of a jitted function inside of a program: nothing is said of where an operand lies, and no mesh is set
UNSPECIFIED: Any = jax._src.sharding_impls.UNSPECIFIED  # type: ignore[attr-defined]
EMPTY_MESH: jax.sharding.Mesh = _mesh.empty_concrete_mesh
#: the effect of what computes with all devices along an axis of a mesh
AlongAxis: type = _core.NamedAxisEffect


def versions() -> str:
    """What an error report should name: the versions of this library, of JAX and of Python."""
    try:
        own = importlib.metadata.version("xcoexec")
    except importlib.metadata.PackageNotFoundError:  # a copy of the folder, which nobody installed
        own = "(not installed)"
    return f"xcoexec {own}, jax {jax.__version__}, Python {platform.python_version()}"


#: what `jax.jit` keys its programs by, besides their arguments
configuration: Callable[[], Hashable] = _config.trace_context


#: what is traced in this thread (`.trace`), and what stands there while nothing is, so that a call computes with arrays
#: at once
TRACED, NOTHING = _core.trace_ctx, _core.eval_trace


def gradient_is_asked() -> bool:
    """Whether what is computed now is differentiated backwards (`grad`, `vjp`), with nothing else around."""
    trace = TRACED.trace
    return bool(getattr(trace, "is_vjp", False)) and trace.parent_trace is NOTHING


def primal_of(x: object) -> tuple[Any, bool]:
    """Of a leaf of a call that is differentiated: the array itself, and whether a gradient is asked of it."""
    tracer: Any = x
    if not is_tracer(x) or tracer._trace is not TRACED.trace:
        return x, False
    primal, tangent = tracer._trace.to_primal_tangent_pair(x)
    return primal, not isinstance(tangent, Zero)


def at_once() -> contextlib.AbstractContextManager[object]:
    """Within it calls with arrays compute at once, whatever is traced around them."""
    found: contextlib.AbstractContextManager[object] = _core.eval_context()
    return found


def default_device() -> jax.Device | str | None:
    """The device (or the platform) that `jax_default_device` names; None where it names none."""
    found: jax.Device | str | None = _config.default_device.value
    return found


def programs_are_kept() -> bool:
    """Whether JAX keeps compiled programs on disk (`jax_compilation_cache_dir`)."""
    return bool(_config.compilation_cache_dir.value)


def jit_is_disabled() -> bool:
    """Whether `jax_disable_jit` is on."""
    return bool(_config.disable_jit.value)


def looks_for_nans() -> bool:
    """Whether `jax_debug_nans` or `jax_debug_infs` is on: JAX then computes a program again, one by one."""
    return bool(_config.debug_nans.value or _config.debug_infs.value)


def meshes() -> list[jax.sharding.Mesh | jax.sharding.AbstractMesh]:
    """The meshes of devices that are set around the call."""
    set_here = (jax.sharding.get_abstract_mesh(), _mesh.get_concrete_mesh(), _mesh.thread_resources.env.physical_mesh)
    return [m for m in set_here if not m.empty]


#: JAX's records of the meshes that are set, each thread's own
_MESHES: list[Any] = [
    getattr(_config, name, None) or getattr(_mesh, name)
    for name in ("abstract_mesh_context_manager", "device_context", "mesh_context_manager")
]
_Set = tuple[list[Any], Any]  # what they hold, and the innermost environment of `with mesh:`
_NO_MESH: _Set = [_config.config_ext.unset] * len(_MESHES), _mesh.EMPTY_ENV


def mesh_here() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context with the meshes that are set here, or with none, for any thread: where JAX transposes, an empty one is
    set, for which it would compile anew.
    """
    return functools.partial(_meshed, ([state.get_local() for state in _MESHES], _mesh.thread_resources.env))


def no_mesh() -> contextlib.AbstractContextManager[None]:
    """A context in which no mesh is set."""
    return _meshed(_NO_MESH)


@contextlib.contextmanager
def _meshed(wanted: _Set) -> Iterator[None]:
    before, resources = (
        [state.swap_local(x) for state, x in zip(_MESHES, wanted[0], strict=True)],
        _mesh.thread_resources,
    )
    around, resources.env = resources.env, wanted[1]
    try:
        yield
    finally:
        resources.env = around
        for state, x in zip(_MESHES, before, strict=True):
            state.set_local(x)


def settings() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context like the caller's own: what `with jax.default_matmul_precision(...)` and its like set holds for one
    thread only; but for the guard on what the caller moves between devices, which no planning has to heed.
    """
    wanted = {name: state.value for name, state in _config.config_states.items()}

    @contextlib.contextmanager
    def same() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name, value in wanted.items():
                state = _config.config_states[name]
                if state.value != value:  # what is the same anyway stays unset: JAX compiles anew for what is set
                    stack.enter_context(state(value))
            stack.enter_context(jax.transfer_guard("allow"))
            yield

    return same


def worker(target: Callable[..., None], args: Sequence[object] = (), name: str = "xcoexec") -> threading.Thread:
    """A daemon thread under its maker's JAX settings: what it traces computes as it would have there."""
    same = settings()

    def run() -> None:
        with same():
            target(*args)

    return threading.Thread(target=run, name=name, daemon=True)


def is_tracer(x: object) -> bool:
    """Whether a leaf is an array of a trace, without elements."""
    return isinstance(x, jax.core.Tracer)


@dataclasses.dataclass(frozen=True)
class JitTrace:
    """What `jax.jit` makes of a call: its jaxpr, the results' structure, and which input leaves are given away."""

    closed: ClosedJaxpr
    out_tree: PyTreeDef
    donated: tuple[int, ...]
    closed_over: bool  # the function reads values of a transformation around it
    calls_back: bool  # its program calls back to Python (or may); not looked for where it has effects or closes over


def trace_of(traced: jax.stages.Traced) -> JitTrace:
    """What a jitted function's trace says. It is that of its first call too: a function is traced once."""
    donated = tuple(i for i, given in enumerate(_given_away(traced)) if given)
    closed_over = bool(getattr(traced, "_num_consts", 0))
    pure = not (closed_over or traced.jaxpr.effects)  # else it stays with plain jax.jit anyway
    return JitTrace(traced.jaxpr, traced.out_tree, donated, closed_over, pure and _calls_back(traced))


def _given_away(traced: jax.stages.Traced) -> list[bool]:
    """Which leaves of the arguments are given away. `args_info` has it in the user's own structures, which may look at
    what they are made of.
    """
    flags = getattr(traced, "_params", {}).get("donated_invars")
    if flags is None:
        return [info.donated for info in jax.tree_util.tree_leaves(traced.args_info)]
    return list(flags)[getattr(traced, "_num_consts", 0) :]


def _calls_back(traced: jax.stages.Traced) -> bool:
    """Whether a program calls back to Python. What another library's primitive does only its lowered text says."""
    made = tuple(equations(traced.jaxpr))
    if any(eqn.primitive.name == "pure_callback" for eqn in made):
        return True
    if not any(map(_foreign, made)):
        return False
    try:
        text = traced.lower().as_text()
    except Exception:  # another library's lowering, apart from a call: nobody knows
        return True
    return "python" in text and "callback" in text


def _foreign(eqn: JaxprEqn) -> bool:
    """Whether a primitive is another library's, by where it is evaluated."""
    impl = eqn.primitive.impl
    return not (getattr(getattr(impl, "func", impl), "__module__", None) or "jax").startswith("jax")


def as_weak(x: jax.Array) -> jax.Array:
    """The same array, of the same shape and of a weak type."""
    out: jax.Array = jax.lax.convert_element_type_p.bind(x, new_dtype=x.dtype, weak_type=True, sharding=None)
    return out


@functools.lru_cache
def ffi_header() -> str:
    """The text of XLA's C API for handlers, as this jaxlib has it ("" where it is not shipped)."""
    try:
        return pathlib.Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    except OSError:
        return ""


class Owner:
    """Whose memory the address of a call is in: it lives as long as a jaxpr or a program that has the address."""

    def __init__(self, owner: object):
        self.owner = owner

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owner) and self.owner is other.owner

    def __hash__(self) -> int:
        return id(self.owner)

    def __repr__(self) -> str:
        return f"<{type(self.owner).__name__}>"


# JAX's cache of abstract evaluations keeps the parameters of calls: an owner has to go with its last jaxpr
_weak_keys: Any = getattr(jax._src.util, "weakref_cache_key_types", set())  # type: ignore[attr-defined]
_weak_keys.add(Owner)

_host_call = Primitive("xcoexec_host_call")
_host_call.multiple_results = True


@_host_call.def_abstract_eval
def _(*args: object, results: Avals, **_: object) -> list[jax.core.ShapedArray]:
    return [jax.core.ShapedArray(shape, np.dtype(dtype)) for shape, dtype in results]


def _lower_host_call(
    ctx: mlir.LoweringRuleContext,
    *args: object,
    target: str,
    results: Avals,
    segment: int,
    aliases: Pairs,
    effect: bool,
    owner: Owner,
) -> Sequence[mlir.ir.Value | Sequence[mlir.ir.Value]]:
    ctx.module_context.add_keepalive(owner)
    return jax.ffi.ffi_lowering(target, operand_output_aliases=dict(aliases) or None, has_side_effect=effect)(
        ctx, *args, segment=np.int64(segment)
    )


mlir.register_lowering(_host_call, _lower_host_call)


@_host_call.def_impl
def _(*args: jax.Array, **params: object) -> list[jax.Array]:
    """One by one, as JAX computes a program again in which it has found a NaN (`jax_debug_nans`)."""
    out: list[jax.Array] = jax._src.dispatch.apply_primitive(_host_call, *args, **params)  # type: ignore[attr-defined]
    return out


class Addressed(Protocol):
    """What native code knows by the address of its words."""

    @property
    def address(self) -> int: ...


def ffi_call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    segment: Addressed,
    args: Sequence[jax.Array],
    aliases: Pairs = (),
) -> list[jax.Array]:
    """One call of a native handler: a function of its operands alone. `results`: shapes and types of what it returns;
    `segment` has the address of its descriptor. `aliases`: pairs (operand, result) that share a buffer.
    """
    return _bind_call(target, results, segment.address, args, aliases, False, segment)


def host_call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    segment: int,
    args: Sequence[jax.Array],
    alias: bool | Pairs,
    owner: object = None,
) -> list[jax.Array]:
    """As `ffi_call`, with an effect that XLA sees and JAX does not: one that JAX knows of takes every call off its fast
    path.

    `segment`: the address of its descriptor. `alias`: pairs (operand, result) that share a buffer; True: all results
    are the operands' own buffers. `owner`: what the address lies in.
    """
    pairs = alias if isinstance(alias, tuple) else tuple((i, i) for i in range(len(results)) if alias)
    return _bind_call(target, results, segment, args, pairs, True, owner)


def _bind_call(
    target: str,
    results: Sequence[jax.ShapeDtypeStruct],
    segment: int,
    args: Sequence[jax.Array],
    aliases: Pairs,
    effect: bool,
    owner: object,
) -> list[jax.Array]:
    shapes = tuple((tuple(r.shape), np.dtype(r.dtype).name) for r in results)
    return list(
        _host_call.bind(
            *args,
            target=target,
            results=shapes,
            segment=int(segment),
            aliases=aliases,
            effect=effect,
            owner=Owner(owner),
        )
    )


__all__ = [
    "EMPTY_MESH",
    "MADE",
    "NOTHING",
    "TRACED",
    "UNSPECIFIED",
    "AlongAxis",
    "Array",
    "ClosedJaxpr",
    "JaxLiteral",
    "Jaxpr",
    "JaxprEqn",
    "JitTrace",
    "Jitted",
    "Pairs",
    "SingleDevice",
    "Var",
    "alone",
    "as_weak",
    "at_once",
    "bind",
    "body",
    "configuration",
    "default_device",
    "ffi_call",
    "ffi_header",
    "gradient_is_asked",
    "host_call",
    "is_tracer",
    "jit_is_disabled",
    "local_arrays",
    "looks_for_nans",
    "mesh_here",
    "meshes",
    "no_mesh",
    "plain_jit",
    "primal_of",
    "primitives",
    "programs_are_kept",
    "put_together",
    "settings",
    "trace_of",
    "uncommitted",
    "versions",
]
