"""Functions on several devices, with `jax.jit` and with `xcoexec.jit` beside it: run as a program with four devices of
the host, it writes what differs.

A case takes a `jit` and returns a tree of results; `CASES` has them by name.
"""

import functools
import json
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import xcoexec

Jit = Callable[..., Any]
CASES: dict[str, Callable[[Jit], Any]] = {}


def case(f: Callable[[Jit], Any]) -> Callable[[Jit], Any]:
    CASES[f.__name__] = f
    return f


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


RANDOM = np.random.default_rng(0)
DEVICES = jax.devices()
MESH = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
EXPLICIT = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Explicit,))
GRID = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
PAIR = jax.make_mesh((2,), ("d",), devices=DEVICES[:2], axis_types=(AxisType.Auto,))
ALONE = jax.make_mesh((1,), ("d",), axis_types=(AxisType.Auto,))
BATCH, WHOLE = NamedSharding(MESH, P("d")), NamedSharding(MESH, P())
FIRST, SECOND = map(SingleDeviceSharding, DEVICES[:2])
X = normal(16, 64)
WEIGHTS = {"a": normal(64, 96) / 8, "b": normal(96, 32) / 8, "c": normal(96)}
FREE = jax.tree.map(jnp.asarray, WEIGHTS)
TENSOR = {
    "a": jax.device_put(WEIGHTS["a"], NamedSharding(MESH, P(None, "d"))),
    "b": jax.device_put(WEIGHTS["b"], NamedSharding(MESH, P("d", None))),
    "c": jax.device_put(WEIGHTS["c"], NamedSharding(MESH, P("d"))),
}


def mlp(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["a"] + p["c"]) @ p["b"]


def step(p: Any, x: Any) -> Any:
    return jax.tree.map(lambda v: v * 0.999, p), jnp.sum(mlp(p, x) ** 2)


def loss(p: Any, x: Any) -> Any:
    return jnp.mean(mlp(p, x) ** 2)


def at(where: Any) -> Any:
    """The weights there."""
    return jax.device_put(WEIGHTS, where)


def arguments(name: str, weights: Any, x: Any) -> None:
    """A case of a call three times, and one of a bound function."""

    def called(jit: Jit) -> Any:
        f = jit(mlp)
        return [f(weights, x) for _ in range(3)]

    def bound(jit: Jit) -> Any:
        f = jit(mlp)
        fast = f.bind(weights) if hasattr(f, "bind") else lambda x: f(weights, x)
        return [fast(x) for _ in range(3)]

    CASES[name] = called
    CASES[f"bound: {name}"] = bound


def under(context: Callable[[], Any], *args: Any, fn: Any = mlp, **given: Any) -> Callable[[Jit], Any]:
    """A case of a call within a context."""

    def called(jit: Jit) -> Any:
        f = jit(fn, **given)
        with context():
            return [f(*args) for _ in range(2)]

    return called


def program(fn: Any, **given: Any) -> Callable[[Jit], Any]:
    """A case of a function that says itself where arrays lie, with arrays that say nothing."""
    return lambda jit: jit(fn, **given)(FREE, X)


put = jax.device_put
arguments("NumPy x, free weights", FREE, X)
arguments("NumPy x, weights committed to the first device", at(FIRST), X)
arguments("x committed to the first device", FREE, put(X, FIRST))
arguments("x by batch, weights everywhere", at(WHOLE), put(X, BATCH))
arguments("x by batch, free weights", FREE, put(X, BATCH))
arguments("x by batch, NumPy weights", WEIGHTS, put(X, BATCH))
arguments("x by batch, weights committed to one device: an error", at(FIRST), put(X, BATCH))
arguments("weights in parts, NumPy x", TENSOR, X)
arguments("weights in parts, x everywhere", TENSOR, put(X, WHOLE))
arguments(
    "two axes",
    {"a": put(WEIGHTS["a"], NamedSharding(GRID, P(None, "b"))), "b": WEIGHTS["b"], "c": FREE["c"]},
    put(X, NamedSharding(GRID, P("a"))),
)
arguments("two of four devices", at(NamedSharding(PAIR, P())), put(X, NamedSharding(PAIR, P("d"))))
arguments("a mesh of one device", at(NamedSharding(ALONE, P())), put(X, NamedSharding(ALONE, P())))
arguments("all on the second device", at(SECOND), put(X, SECOND))
arguments("x on the second device", FREE, put(X, SECOND))
arguments("weights on the second device", at(SECOND), X)
arguments("two devices that do not agree: an error", at(SECOND), put(X, DEVICES[2]))
with jax.default_device(DEVICES[1]):
    arguments("x made on the second device, not committed", FREE, jnp.asarray(X))
arguments("an array of a callback", FREE, jax.make_array_from_callback(X.shape, BATCH, lambda i: X[i]))

OF_ONE = at(NamedSharding(ALONE, P()))
IN_TYPES = at(NamedSharding(jax.make_mesh((1,), ("d",), axis_types=(AxisType.Explicit,)), P()))
#: functions that close over arrays
OWN_ARRAYS: dict[str, Callable[[Jit], Any]] = {
    "weights of the function, on the second device": lambda jit: jit(functools.partial(mlp, at(SECOND)))(X),
    "weights of the function, in parts": lambda jit: jit(lambda x: mlp(TENSOR, x))(X),
    "weights of the function, on a mesh of one device": lambda jit: jit(functools.partial(mlp, OF_ONE))(X),
    "the same, x committed": lambda jit: jit(functools.partial(mlp, OF_ONE))(put(X, FIRST)),
    "the same, x by batch": lambda jit: jit(functools.partial(mlp, OF_ONE))(put(X, BATCH)),
    "the same, with axes that are part of types": lambda jit: jit(functools.partial(mlp, IN_TYPES))(X),
}
CASES |= {
    "default_device: the second": under(lambda: jax.default_device(DEVICES[1]), FREE, X),
    "default_device: the second, committed": under(lambda: jax.default_device(DEVICES[1]), at(FIRST), X),
    "default_device: the first": under(lambda: jax.default_device(DEVICES[0]), FREE, X),
    "default_device: a platform": under(lambda: jax.default_device("cpu"), FREE, X),
    "set_mesh": under(lambda: jax.set_mesh(MESH), FREE, X),
    "set_mesh, by batch": under(lambda: jax.set_mesh(MESH), at(WHOLE), put(X, BATCH)),
    "set_mesh, explicit": under(
        lambda: jax.set_mesh(EXPLICIT), at(NamedSharding(EXPLICIT, P())), put(X, NamedSharding(EXPLICIT, P("d")))
    ),
    "set_mesh, shardings by name": under(
        lambda: jax.set_mesh(MESH), FREE, X, in_shardings=(P(), P("d")), out_shardings=P("d")
    ),
    "in_shardings": program(mlp, in_shardings=(WHOLE, BATCH)),
    "out_shardings": program(mlp, out_shardings=BATCH),
    "device=": program(mlp, device=DEVICES[1]),
    "backend=": program(mlp, backend="cpu"),
    "a constraint": program(lambda p, x: jax.lax.with_sharding_constraint(mlp(p, x), BATCH)),
    "a constraint in a loop": program(
        lambda p, x: jax.lax.fori_loop(
            0, 3, lambda _, c: jax.lax.with_sharding_constraint(jnp.tanh(c @ p["a"][:, :64]), BATCH), x
        )
    ),
    "jit inside with shardings": program(lambda p, x: jax.jit(mlp, out_shardings=BATCH)(p, x) * 2),
    "jit inside with a device": program(lambda p, x: jax.jit(mlp, device=DEVICES[1])(p, x) * 2),
    "device_put inside": program(lambda p, x: put(mlp(p, x), BATCH)),
    "device_put inside, to a device": program(lambda p, x: put(mlp(p, x), DEVICES[1])),
    "device_put inside, to the host": program(
        lambda p, x: put(mlp(p, x), SingleDeviceSharding(DEVICES[0], memory_kind="pinned_host"))
    ),
    "shard_map inside": program(jax.shard_map(mlp, mesh=MESH, in_specs=(P(), P("d")), out_specs=P("d"))),
    "psum inside": program(
        jax.shard_map(lambda p, x: jax.lax.psum(mlp(p, x), "d"), mesh=MESH, in_specs=(P(), P("d")), out_specs=P())
    ),
    **OWN_ARRAYS,
}


@case
def shard_map_around(jit: Jit) -> Any:
    f = jit(mlp)
    return jax.jit(jax.shard_map(f, mesh=MESH, in_specs=(P(), P("d")), out_specs=P("d")))(at(WHOLE), put(X, BATCH))


@case
def pmap_around(jit: Jit) -> Any:
    return jax.pmap(jit(lambda x: mlp(FREE, x)))(np.stack([X] * 4))


@case
def results_of_pmap(jit: Jit) -> Any:
    return jit(lambda x: mlp(FREE, x))(jax.pmap(lambda x: x * 2)(np.stack([X] * 4)))


@case
def gradients(jit: Jit) -> Any:
    f = jit(loss)
    return [jax.value_and_grad(f)(at(w), put(X, x)) for w, x in ((WHOLE, BATCH), (SECOND, SECOND), (FIRST, FIRST))]


@case
def ahead_of_time(jit: Jit) -> Any:
    compiled = jit(mlp).lower(at(WHOLE), put(X, BATCH)).compile()
    described = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=SECOND), (WEIGHTS, X))
    return compiled(at(WHOLE), put(X, BATCH)), jit(mlp).lower(*described).compile()(at(SECOND), put(X, SECOND))


@case
def compiled_for_one_device(jit: Jit) -> Any:
    f = jit(mlp) if jit is jax.jit else xcoexec.compile(mlp, FREE, X)
    return [f(*a) for a in ((FREE, X), (at(WHOLE), put(X, BATCH)), (at(SECOND), put(X, SECOND)))]


@case
def places_in_turn(jit: Jit) -> Any:
    f, out = jit(mlp), []
    for _ in range(4):
        out += [f(FREE, X), f(at(WHOLE), put(X, BATCH)), f(at(SECOND), put(X, SECOND)), f(FREE, put(X, BATCH))]
        out += [f(FREE, X), f(FREE, X), f(at(FIRST), X)]
    return out


@case
def names_and_static_values(jit: Jit) -> Any:
    f = jit(lambda p, *, x, n: mlp(p, x) * n, static_argnames="n")
    return [f(at(w), x=put(X, x), n=n) for n in (2, 3) for w, x in ((WHOLE, BATCH), (FIRST, FIRST), (SECOND, SECOND))]


@case
def donated_state(jit: Jit) -> Any:
    out = []
    for w, x in ((WHOLE, BATCH), (SECOND, SECOND), (FIRST, FIRST)):
        f, state = jit(step, donate_argnums=0), at(w)
        for _ in range(4):
            before = state
            state, value = f(state, put(X, x))
        out.append((state, value, [v.is_deleted() for v in jax.tree.leaves(before)]))
    return out


@case
def results_go_on(jit: Jit) -> Any:
    """What is committed does not mix with what lies on several devices; what is not does."""
    y = jit(mlp)(FREE, X)
    return jax.jit(jnp.add)(y, put(normal(16, 32) * 0, BATCH))


@case
def committed_results_do_not(jit: Jit) -> Any:
    return jax.jit(jnp.add)(jit(mlp)(at(FIRST), X), put(normal(16, 32), BATCH))


@case
def threads(jit: Jit) -> Any:
    f, out = jit(mlp), [None] * 8

    def work(i: int) -> None:
        for _ in range(4):
            out[i] = f(FREE, put(X, DEVICES[i % 4]))

    running = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in running:
        t.start()
    for t in running:
        t.join()
    return out


@case
def deleted(jit: Jit) -> Any:
    f, x = jit(mlp), put(X, BATCH)
    f(FREE, x)
    x.delete()
    return f(FREE, x)


def outcome(f: Callable[[Jit], Any], jit: Jit) -> list[Any]:
    """The leaves of a case's results, or its error."""
    try:
        return jax.tree.leaves(f(jit))
    except Exception as e:
        return [type(e).__name__, str(e)]


def about(x: Any) -> Any:
    """What has to be the same, but for the elements."""
    if not isinstance(x, jax.Array):
        return x
    return x.shape, str(x.dtype), x.weak_type, x.sharding, x.committed


def difference(f: Callable[[Jit], Any], jit: Jit) -> str:
    """What differs from `jax.jit` ("" where nothing does)."""
    theirs, ours = outcome(f, jax.jit), outcome(f, jit)
    if list(map(about, theirs)) != list(map(about, ours)):
        return f"{[about(x) for x in theirs]} and here {[about(x) for x in ours]}"[:2000]
    arrays = [(np.asarray(a), np.asarray(b)) for a, b in zip(theirs, ours, strict=True) if isinstance(a, jax.Array)]
    far = [float(np.abs(a - b).max()) for a, b in arrays if not np.allclose(a, b, rtol=2e-4, atol=2e-5)]
    return f"elements differ by {max(far)}" if far else ""


def engines() -> dict[str, str]:
    """What runs calls that differ in places alone: co-execution has to go on where it may."""
    f = xcoexec.jit(mlp, strategy="host")
    wrong = lambda p, x: jax.lax.with_sharding_constraint(mlp(p, x), BATCH)
    return {
        "free": f.plan(FREE, X).engine,
        "committed": f.plan(at(FIRST), X).engine,
        "second": f.plan(at(SECOND), X).engine,
        "by batch": f.plan(FREE, put(X, BATCH)).engine,
        "in parts": f.plan(TENSOR, put(X, WHOLE)).engine,
        "own": xcoexec.jit(functools.partial(mlp, OF_ONE), strategy="host").plan(X).engine,
        "constraint": xcoexec.jit(wrong, strategy="host").plan(FREE, X).engine,
    }


def quick() -> dict[str, bool]:
    """Whether calls with arrays on other devices go to plain jax.jit without a closer look, with a plan for others or
    not, and whether that plan goes on.
    """
    f, g = xcoexec.jit(mlp, strategy="host"), xcoexec.jit(mlp, strategy="host")
    f(FREE, X)
    for h in (f, g):
        h(TENSOR, put(X, WHOLE))
        h(TENSOR, put(X, WHOLE))
    h = xcoexec.jit(lambda p, x, n: mlp(p, x) * n, strategy="host", static_argnums=2)
    h(TENSOR, put(X, WHOLE), 2.5)
    h(TENSOR, put(X, WHOLE), 2.5)
    found = {"behind a plan": f._rest is not None, "alone": g._rest is not None, "static": h._rest is not None}
    f(FREE, X)
    plan, seen = f._last, []
    f._call = lambda args, kwargs: seen.append(args)  # type: ignore[method-assign, assignment, func-returns-value]
    f(TENSOR, put(X, WHOLE))
    f(FREE, X)
    f(TENSOR, put(X, WHOLE))
    current = None if plan is None else plan.current
    return found | {"no closer look": not seen, "the plan goes on": current is not None and not current.settled}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    host = functools.partial(xcoexec.jit, strategy="host")  # the only strategy that co-executes whatever it costs
    found = {name: difference(f, xcoexec.jit) for name, f in CASES.items()}
    found |= {f"{name}, co-executed": difference(f, host) for name, f in CASES.items()}
    folded = functools.partial(xcoexec.jit, strategy="device")  # where the function's own arrays are XLA's too
    found |= {f"{name}, folded": difference(f, folded) for name, f in CASES.items() if name in OWN_ARRAYS}
    json.dump({"differences": found, "engines": engines(), "quick": quick()}, sys.stdout)
