"""Programs of a mesh of one device run on both halves, and their results are those of `jax.jit`: values, shardings,
committed or not, what is given away.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import check_jaxpr, jaxpr_as_fun
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import xcoexec
from xcoexec.frontend.places import elsewhere, placing, unplaced

pytestmark = pytest.mark.usefixtures("quick_xla")

RANDOM = np.random.default_rng(0)
put, none = jax.device_put, contextlib.nullcontext


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


X = normal(16, 64)
WEIGHTS = {"a": normal(64, 96) / 8, "b": normal(96, 32) / 8}
MESHES = {t.name: jax.make_mesh((1, 1), ("d", "m"), axis_types=(t,) * 2) for t in (AxisType.Auto, AxisType.Explicit)}
AUTO = MESHES["Auto"]
BATCH, WHOLE = NamedSharding(AUTO, P("d")), NamedSharding(AUTO, P())


def mlp(p: Any, x: Any) -> Any:
    """Results of several ranks, one that is an input, one of a weak type."""
    return jnp.tanh(x @ p["a"]) @ p["b"], x.sum(), jnp.zeros(3), x, jnp.where(True, 1.0, 2.0)


def loss(p: Any, x: Any) -> Any:
    return jnp.mean(mlp(p, x)[0] ** 2)


def step(p: Any, x: Any) -> Any:
    return jax.tree.map(lambda v, g: v - 0.1 * g, p, jax.grad(loss)(p, x)), jnp.mean(x)


def constrained(where: Any, to: Callable[..., Any] = lax.with_sharding_constraint) -> Callable[..., Any]:
    return lambda p, x: mlp(p, to(x, where))


def shared(mesh: Any) -> Callable[..., Any]:
    """The sum over devices of what each makes of its items."""
    total = lambda p, x: lax.psum(mlp(p, x)[0], "d")
    return jax.shard_map(total, mesh=mesh, in_specs=(P(), P("d")), out_specs=P())


def about(x: Any) -> Any:
    """What has to be the same, but for the elements."""
    found = x.shape, str(x.dtype), x.weak_type, x.sharding, x.committed
    return (*found, jax.typeof(x)) if isinstance(x.sharding, NamedSharding) else found


def same(theirs: Any, ours: Any) -> None:
    for a, b in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours), strict=True):
        assert about(a) == about(b)
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-4, atol=2e-5)


FREE = jax.tree.map(jnp.asarray, WEIGHTS)
Around = Callable[[], contextlib.AbstractContextManager[Any]]
Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Around]


def cases(mesh: Any) -> dict[str, Case]:
    """Functions of a mesh with either kind of axes."""
    batch, whole, columns = (NamedSharding(mesh, spec) for spec in (P("d"), P(), P(None, "m")))
    around = lambda: jax.set_mesh(mesh)
    return {
        "all there": (mlp, (put(WEIGHTS, whole), put(X, batch)), {}, none),
        "x there": (mlp, (FREE, put(X, batch)), {}, none),
        "weights there": (mlp, (put(WEIGHTS, columns), X), {}, none),
        "shardings of inputs": (mlp, (FREE, X), {"in_shardings": (whole, batch)}, none),
        "a sharding of results": (mlp, (FREE, X), {"out_shardings": whole}, none),
        "set around calls": (mlp, (FREE, X), {}, around),
        "set around calls, all there": (mlp, (put(WEIGHTS, whole), put(X, batch)), {}, around),
    }


CASES = {f"{name}, {kind}": case for kind, mesh in MESHES.items() for name, case in cases(mesh).items()}
CASES |= {
    "shardings by name": (mlp, (FREE, X), {"in_shardings": (P(), P("d"))}, lambda: jax.set_mesh(AUTO)),
    "a constraint": (constrained(BATCH), (FREE, X), {}, none),
    "a constraint by name": (constrained(P("d")), (FREE, X), {}, lambda: jax.set_mesh(AUTO)),
    "device_put inside": (constrained(BATCH, put), (FREE, X), {}, none),
    "jit inside": (lambda p, x: jax.jit(mlp, out_shardings=BATCH.update(spec=P()))(p, x), (FREE, X), {}, none),
    "shard_map": (shared(AUTO), (FREE, X), {}, none),
    "shard_map, Explicit": (
        shared(MESHES["Explicit"]),
        (put(WEIGHTS, NamedSharding(MESHES["Explicit"], P())), put(X, NamedSharding(MESHES["Explicit"], P("d")))),
        {},
        none,
    ),
    "reshard": (constrained(P("d"), jax.sharding.reshard), (FREE, X), {}, lambda: jax.set_mesh(MESHES["Explicit"])),
}


@pytest.mark.parametrize("strategy", ["host", "device"])
@pytest.mark.parametrize("name", CASES)
def test_calls_are_those_of_jit(name: str, strategy: str) -> None:
    fn, args, given, around = CASES[name]
    plain, fast = jax.jit(fn, **given), xcoexec.jit(fn, strategy=strategy, **given)
    with around():
        for _ in range(3):
            same(plain(*args), fast(*args))
        assert fast.report(*args).ran == "xco"


@pytest.mark.parametrize("name", ["set around calls, Explicit", "a constraint by name", "all there, Auto"])
def test_plans_in_the_background(name: str, own_cache: Any) -> None:
    fn, args, given, around = CASES[name]
    plain, fast = jax.jit(fn, **given), xcoexec.jit(fn, wait=False, **given)
    with around():
        same(plain(*args), fast(*args))
        assert fast.ready(300)
        for _ in range(40):  # a stretch without looks among them
            same(plain(*args), fast(*args))
        assert fast.report(*args).ran in ("xco", "jit") and "fallback" not in fast.plan(*args).chosen


def test_with_mesh_around_calls() -> None:
    with pytest.warns(DeprecationWarning):
        AUTO.__enter__()
    try:
        fn = constrained(P("d"))
        plain, fast = jax.jit(fn), xcoexec.jit(fn, strategy="host")
        same(plain(FREE, X), fast(FREE, X))
        assert fast.report(FREE, X).ran == "xco"
    finally:
        AUTO.__exit__(None, None, None)


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("bound", [False, True])
def test_one_function_with_and_without_a_mesh(kind: str, bound: bool) -> None:
    """What was planned without a mesh is not taken for calls within one, nor the other way round."""
    mesh = MESHES[kind]
    plain = jax.jit(mlp)
    called = xcoexec.jit(mlp, strategy="host")
    fast = called.bind(FREE) if bound else lambda x: called(FREE, x)
    xs = (
        X,
        jnp.asarray(X),
        put(X, jax.devices()[0]),
        put(X, NamedSharding(mesh, P("d"))),
        put(X, NamedSharding(mesh, P())),
    )
    for around in (none, lambda: jax.set_mesh(mesh), none, lambda: jax.set_mesh(mesh)):
        for x in xs:
            with around():
                for _ in range(40):
                    same(plain(FREE, x), fast(x))


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("strategy", ["host", "device"])
def test_steps_give_their_state_away(kind: str, strategy: str) -> None:
    mesh = MESHES[kind]
    auto = kind == "Auto"  # what is divided along axes that are part of types has no gradient without more words
    state = put(WEIGHTS, NamedSharding(mesh, P("d", "m") if auto else P()))
    x = put(X, NamedSharding(mesh, P("d") if auto else P()))

    def run(f: Callable[..., Any]) -> Any:
        now, seen = jax.tree.map(lambda v: v.copy(), state), []
        for _ in range(6):
            before = now
            now, value = f(now, x)
            seen.append((now["a"].sharding, value, [v.is_deleted() for v in jax.tree.leaves(before)]))
        return now, seen

    fast = xcoexec.jit(step, donate_argnums=0, strategy=strategy)
    (theirs, one), (ours, two) = run(jax.jit(step, donate_argnums=0)), run(fast)
    same(theirs, ours)
    assert [s[0] for s in one] == [s[0] for s in two] and [s[2] for s in one] == [s[2] for s in two]
    assert all(all(s[2]) for s in two) and fast.report(ours, x).ran == "xco"


@pytest.mark.parametrize(
    "name", ["set around calls, Auto", "all there, Explicit", "set around calls, all there, Explicit"]
)
def test_gradients(name: str) -> None:
    _, args, _, around = CASES[name]
    with around():
        same(jax.value_and_grad(jax.jit(loss))(*args), jax.value_and_grad(xcoexec.jit(loss, strategy="host"))(*args))


def test_threads_have_meshes_of_their_own() -> None:
    fast, found = xcoexec.jit(mlp, strategy="host"), dict[int, Any]()

    def work(i: int) -> None:
        with jax.set_mesh(AUTO) if i % 2 else none():
            for _ in range(10):
                found[i] = fast(FREE, X)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, out in found.items():
        with jax.set_mesh(AUTO) if i % 2 else none():
            same(jax.jit(mlp)(FREE, X), out)


def test_what_has_been_deleted_is_said_as_jit_says_it() -> None:
    fast, x = xcoexec.jit(mlp, strategy="host"), put(X, NamedSharding(MESHES["Explicit"], P("d")))
    fast(FREE, x)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        fast(FREE, x)


def alone(fn: Callable[..., Any]) -> Callable[..., Any]:
    return jax.shard_map(fn, mesh=AUTO, in_specs=(P("d"),), out_specs=P(), check_vma=False)


#: what devices do together, and what names places, inside of loops and derivatives too
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "psum": alone(lambda x: lax.psum(x * 2, "d")),
    "pmean": alone(lambda x: lax.pmean(x * 2, ("d", "m"))),
    "pmax": alone(lambda x: (lax.pmax(x, "m"), lax.pmin(x, "d"), lax.axis_index("d") + x)),
    "all_gather": alone(lambda x: (lax.all_gather(x, "d"), lax.all_gather(x, "d", axis=1, tiled=True))),
    "all_gather behind": alone(lambda x: lax.all_gather(x, "d", axis=1)),
    "psum_scatter": alone(
        lambda x: (lax.psum_scatter(x[None], "d"), lax.psum_scatter(x, "d", scatter_dimension=1, tiled=True))
    ),
    "all_to_all": alone(lambda x: (lax.all_to_all(x[None], "d", 0, 2), lax.all_to_all(x, "d", 0, 1, tiled=True))),
    "ppermute": alone(lambda x: (lax.ppermute(x, "d", [(0, 0)]), lax.ppermute(x, "d", []))),
    "weak types": alone(lambda x: (lax.psum(lax.cos(3.0), "d"), lax.all_gather(lax.cos(3.0), "d"), x)),
    "in a loop": alone(lambda x: lax.scan(lambda c, y: (lax.psum(c * y, "d"), lax.all_gather(y, "d")), x, x)),
    "in a branch": alone(
        lambda x: lax.cond(x[0, 0] > 0, lambda y: lax.psum(y, "d"), lambda y: lax.psum(y * 3, "d"), x)
    ),
    "derivative": jax.grad(lambda x: alone(lambda y: lax.psum(jnp.sin(y @ y.T), "d"))(x).sum()),
    "remat": jax.grad(lambda x: jax.checkpoint(alone(lambda y: lax.psum(jnp.sin(y), "d")))(x).sum()),
    "vmap": lambda x: jax.vmap(alone(lambda y: lax.psum(jnp.sin(y), "d")))(x),
    "a constraint in a loop": lambda x: lax.fori_loop(
        0, 3, lambda _, c: lax.with_sharding_constraint(jnp.tanh(c * c), BATCH), x
    ),
    "a constraint in a condition": lambda x: lax.while_loop(
        lambda c: lax.with_sharding_constraint(c, BATCH).sum() < 100, lambda c: c * c + 1, x
    ),
    "keys": lambda x: x + jax.random.normal(lax.with_sharding_constraint(jax.random.key(0), WHOLE), x.shape),
    "jit inside": lambda x: jax.jit(lambda y: y * 2, in_shardings=BATCH, out_shardings=WHOLE)(x) + 1,
}


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_without_their_mesh(name: str, within: bool) -> None:
    x = normal(4, 6)
    with jax.set_mesh(AUTO) if within else none():
        closed = jax.make_jaxpr(PROGRAMS[name])(x)
        wanted = jax.tree.leaves(jax.jit(PROGRAMS[name])(x))
    assert elsewhere(closed, jax.devices()[0]) == "" and (within or list(placing(closed)))
    found = unplaced(closed)
    check_jaxpr(found.jaxpr)
    assert not list(placing(found)) and not found.effects
    for want, got in zip(wanted, jax.jit(jaxpr_as_fun(found))(x), strict=True):
        assert isinstance(got.sharding, jax.sharding.SingleDeviceSharding)
        assert (want.shape, want.dtype, want.weak_type) == (got.shape, got.dtype, got.weak_type)
        np.testing.assert_allclose(np.asarray(want), np.asarray(got), rtol=1e-5, atol=1e-6)


def test_places_that_stay_with_jit() -> None:
    """Another kind of memory; what nobody has said of a device alone."""
    far = NamedSharding(AUTO, P(), memory_kind="pinned_host")
    assert elsewhere(jax.make_jaxpr(lambda x: put(x, far))(X), jax.devices()[0]) == "device_put"
    odd = alone(lambda x: jax.vmap(lambda y: lax.psum(y, ("d", "v")), axis_name="v")(x))
    assert elsewhere(jax.make_jaxpr(odd)(X), jax.devices()[0]).startswith("psum")


@pytest.mark.parametrize("dim", [None, "channel"])
def test_what_is_spread_over_devices_has_no_mesh_of_its_own(dim: str | None) -> None:
    fast = xcoexec.jit(constrained(BATCH)).spread(FREE, **({} if dim is None else {"dim": dim}))
    with pytest.raises(xcoexec.BindError, match="one of a mesh"):
        fast(X)
