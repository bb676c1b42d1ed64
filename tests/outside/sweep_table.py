"""Public functions of JAX that need special arguments: full name -> (function, `Given`) -> (function of arrays,
arguments).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Entry = Callable[[Any, Any], tuple[Callable[..., Any], list[Any]]]


def on(*shapes: tuple[int, ...], **named: Any) -> Entry:
    """Arrays of these shapes, and keywords that are part of the function."""
    return lambda f, g: (functools.partial(f, **named) if named else lambda *a: f(*a), [g(*s) for s in shapes])


def ints(*shapes: tuple[int, ...], **named: Any) -> Entry:
    """As `on`, with integer arrays whatever the type under test."""
    return lambda f, g: (functools.partial(f, **named) if named else lambda *a: f(*a), [g.ints(*s) for s in shapes])


def spd(*extra: tuple[int, ...], n: int = 4, **named: Any) -> Entry:
    """A symmetric positive definite matrix, then arrays of these shapes."""
    return lambda f, g: (lambda *a: f(*a, **named), [g.spd(n), *(g(*s) for s in extra)])


def near(*shapes: tuple[int, ...], **named: Any) -> Entry:
    """Arrays between 0.1 and 0.9."""
    return lambda f, g: (lambda *a: f(*a, **named), [g.near(*s) for s in shapes])


def also(shapes: tuple[tuple[int, ...], ...], *tail: Any, **named: Any) -> Entry:
    """Arrays of these shapes, then further positional arguments that are part of the function."""
    return lambda f, g: (lambda *a: f(*a, *tail, **named), [g(*s) for s in shapes])


def drawn(*tail: Any, shapes: tuple[tuple[int, ...], ...] = (), **named: Any) -> Entry:
    """A key, arrays between 0.1 and 0.9, then further arguments that are part of the function."""
    return lambda f, g: (lambda k, *a: f(k, *a, *tail, **named), [g.key(), *(g.near(*s) for s in shapes)])


def seeded(shape: tuple[int, ...] = (4, 6), **named: Any) -> Entry:
    """An initializer that is made by the function."""
    return lambda f, g: (lambda k: f(**named)(k, shape, jnp.dtype(g.dtype)), [g.key()])


def direct(shape: tuple[int, ...] = (4, 6)) -> Entry:
    """A function that is an initializer."""
    return lambda f, g: (lambda k: f(k, shape, jnp.dtype(g.dtype)), [g.key()])


def over_axis(*tail: Any, shape: tuple[int, ...] = (4, 4, 4), **named: Any) -> Entry:
    """A collective, inside a vmap with a named axis."""
    return lambda f, g: (lambda x: jax.vmap(lambda v: f(v, "i", *tail, **named), axis_name="i")(x), [g(*shape)])


def closed(fn: Callable[..., Any], *shapes: tuple[int, ...]) -> Entry:
    """`fn(f, *arrays)`: a function that takes functions."""
    return lambda f, g: (lambda *a: fn(f, *a), [g(*s) for s in shapes])


def _reduce(f: Any, x: Any) -> Any:
    return f(x, jnp.zeros((), x.dtype), jax.lax.add, (1,))


def _gather(f: Any, g: Any) -> tuple[Any, list[Any]]:
    dn = jax.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    return lambda x, i: f(x, i, dn, (1, 4)), [g(5, 4), g.ints(3, 1, high=5)]


def _scatter(f: Any, g: Any) -> tuple[Any, list[Any]]:
    dn = jax.lax.ScatterDimensionNumbers((1,), (0,), (0,))
    return lambda x, i, u: f(x, i, u, dn), [g(5, 4), g.ints(3, 1, high=5), g(3, 4)]


def _scatter_apply(f: Any, g: Any) -> tuple[Any, list[Any]]:
    dn = jax.lax.ScatterDimensionNumbers((), (0,), (0,))
    return lambda x, i: f(x, i, jnp.abs, dn, update_shape=(3,), unique_indices=True), [
        g(5),
        jnp.asarray([[0], [2], [4]]),
    ]


def _index(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda x, i: f(x, (i,), (0,)), [g(5, 4), g.ints(3, high=5)]


def _put(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda x, i, v: f(x, i, v, inplace=False), [g(5, 4), g.ints(3, high=5), g(3)]


def _along(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda x, i, v: f(x, i, v, axis=0, inplace=False), [g(5, 4), g.ints(1, 4, high=5), g(1, 4)]


def _solve(f: Any, x: Any, b: Any) -> Any:
    return f(
        lambda v: x @ v + 9 * v,
        b,
        lambda mv, r: jnp.linalg.solve(x + 9 * jnp.eye(4, dtype=x.dtype), r),
        lambda mv, r: jnp.linalg.solve(x.T + 9 * jnp.eye(4, dtype=x.dtype), r),
    )


def _ragged(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda a, b, s: f(a, b, s), [g(5, 4), g(3, 4, 6), jnp.asarray([2, 0, 3], jnp.int32)]


def _ragged_general(f: Any, g: Any) -> tuple[Any, list[Any]]:
    dn = jax.lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
    return lambda a, b, s: f(a, b, s, dn), [g(5, 4), g(3, 4, 6), jnp.asarray([2, 0, 3], jnp.int32)]


def _bit(f: Any, g: Any) -> tuple[Any, list[Any]]:
    unsigned = {1: jnp.uint8, 2: jnp.uint16, 4: jnp.uint32, 8: jnp.uint64}[jnp.dtype(g.dtype).itemsize]
    return lambda x: f(x, unsigned), [g(3, 4)]


def _lu(f: Any, g: Any) -> tuple[Any, list[Any]]:
    lu, pivots = jax.scipy.linalg.lu_factor(g.spd(4))
    return lambda a, p, b: f((a, p), b), [lu, pivots, g(4, 2)]


def _cho(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda a, b: f((jnp.linalg.cholesky(a), True), b), [g.spd(4), g(4, 2)]


def _householder(f: Any, g: Any) -> tuple[Any, list[Any]]:
    a, taus = g(5, 4), g(4)
    return lambda a, t: f(a, t), [a, taus]


def _ormqr(f: Any, g: Any) -> tuple[Any, list[Any]]:
    a, taus = g(5, 4), g(4)
    return lambda a, t, c: f(a, t, c), [a, taus, g(5, 3)]


def _rng_bits(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda k: f(k, (3, 4)), [jnp.asarray([1, 2, 3, 4], jnp.uint32)]


def _complex(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda x: f(x + 1j * x), [g(3, 4)]


def _composite(f: Any, x: Any) -> Any:
    return f(lambda v: jnp.sin(v) * 2, name="test.double_sine")(x)


def _platforms(f: Any, x: Any) -> Any:
    return f(x, cpu=jnp.sin, default=jnp.cos)


def _mesh() -> dict[str, Any]:
    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    return {"mesh": mesh, "in_specs": spec(), "out_specs": spec("i")}


def _stochastic(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda a, c: f(a, c), [g(16, 4), g(3, 4)]


def _distribution(*shapes: tuple[int, ...], counts: bool = False, high: float = 0.9) -> Entry:
    def entry(f: Any, g: Any) -> tuple[Any, list[Any]]:
        first = g.ints(*shapes[0], high=4) if counts else g.near(*shapes[0])
        return lambda *a: f(*a), [first, *(g.near(*s) * high / 0.9 for s in shapes[1:])]

    return entry


def _dirichlet(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda x, a: f(x / x.sum(0), a), [g.near(3, 5), g.near(3)]


def _multinomial(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda x, p: f(x, x.sum(), p / p.sum()), [g.ints(4), g.near(4)]


def _binomial(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda k, p: f(k, 6, p), [g.ints(3, 4, high=6), g.near(3, 4)]


def _gradient_of_loss(f: Any, x: Any) -> Any:
    return f(lambda v: jnp.sum((v - 1) ** 2), x, method="BFGS")


def _krylov(f: Any, a: Any, b: Any) -> Any:
    return f(lambda v: (a @ a.T + 5 * jnp.eye(4, dtype=a.dtype)) @ v, b)[0]


def _attention(f: Any, g: Any) -> tuple[Any, list[Any]]:
    return lambda q, k, v: f(q, k, v), [g(2, 5, 2, 4), g(2, 6, 2, 4), g(2, 6, 2, 4)]


def _scan(f: Any, x: Any) -> Any:
    return f(lambda c, v: (c * 0.5 + v, jnp.tanh(c)), x[0], x)


def _associative(f: Any, x: Any) -> Any:
    return f(jnp.add, x)


def _cond(f: Any, x: Any, y: Any) -> Any:
    return f(jnp.sum(x) > 0, lambda a, b: a + b, lambda a, b: a - b, x, y)


def _switch(f: Any, x: Any) -> Any:
    return f(jnp.argmax(x[0]) % 3, [jnp.sin, jnp.cos, jnp.abs], x)


def _while(f: Any, x: Any) -> Any:
    return f(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 0.5), (0, x))


def _fori(f: Any, x: Any) -> Any:
    return f(0, 3, lambda i, c: c + x * 0.5, x)


def _root(f: Any, x: Any) -> Any:
    return f(
        lambda v: v**3 - x,
        x,
        lambda g, x0: jax.lax.fori_loop(0, 20, lambda i, v: v - g(v) / (3 * v**2 + 1), x0),
        lambda g, y: y / g(1.0),
    )


_CONV = ((2, 3, 7, 8), (4, 3, 3, 2))

TABLE: dict[str, Entry] = {
    # jax.numpy
    "jax.numpy.allclose": on((3, 4), (3, 4)),
    "jax.numpy.apply_along_axis": closed(lambda f, x: f(jnp.cumsum, 0, x), (3, 4)),
    "jax.numpy.apply_over_axes": closed(lambda f, x: f(jnp.sum, x, (0, 1)), (3, 4)),
    "jax.numpy.arange": also((), 3, 9, 2),
    "jax.numpy.argwhere": on((3, 4), size=5),
    "jax.numpy.array_split": also(((6, 4),), 4),
    "jax.numpy.bincount": lambda f, g: (lambda x, w: f(x, w, length=5), [g.ints(12, high=5), g(12)]),
    "jax.numpy.block": closed(lambda f, x, y: f([[x, y], [y, x]]), (2, 3), (2, 3)),
    "jax.numpy.broadcast_arrays": on((3, 1), (1, 4)),
    "jax.numpy.broadcast_shapes": lambda f, g: (lambda x: x.reshape(f((3, 1), (1, 4))), [g(3, 4)]),
    "jax.numpy.broadcast_to": also(((3, 1),), (2, 3, 4)),
    "jax.numpy.choose": lambda f, g: (lambda i, a, b, c: f(i, [a, b, c], mode="clip"), [g.ints(4), g(4), g(4), g(4)]),
    "jax.numpy.compress": lambda f, g: (lambda x: f(np.array([True, False, True]), x, axis=0), [g(3, 4)]),
    "jax.numpy.clip": on((3, 4), (3, 4), (3, 4)),
    "jax.numpy.cumulative_prod": on((3, 4), axis=1),
    "jax.numpy.cumulative_sum": on((3, 4), axis=1),
    "jax.numpy.gradient": on((5, 4)),
    "jax.numpy.cross": on((4, 3), (4, 3)),
    "jax.numpy.delete": also(((5, 4),), np.array([1, 3]), axis=0),
    "jax.numpy.diag_indices": lambda f, g: (lambda x: x[f(4)], [g(4, 4)]),
    "jax.numpy.diag_indices_from": lambda f, g: (lambda x: x[f(x)], [g(4, 4)]),
    "jax.numpy.dot": on((3, 4), (4, 5)),
    "jax.numpy.matmul": on((3, 4), (4, 5)),
    "jax.numpy.matvec": on((3, 4), (4,)),
    "jax.numpy.vecmat": on((3,), (3, 4)),
    "jax.numpy.einsum": lambda f, g: (lambda x, y: f("bij,bjk->bki", x, y), [g(2, 3, 4), g(2, 4, 5)]),
    "jax.numpy.einsum_path": lambda f, g: (lambda x, y: (f("ij,jk", x, y), x)[1], [g(3, 4), g(4, 5)]),
    "jax.numpy.extract": lambda f, g: (lambda x: f(np.arange(12).reshape(3, 4) % 2 == 0, x), [g(3, 4)]),
    "jax.numpy.eye": lambda f, g: (lambda x: f(4) + x, [g(4, 4)]),
    "jax.numpy.identity": lambda f, g: (lambda x: f(4) + x, [g(4, 4)]),
    "jax.numpy.flatnonzero": on((3, 4), size=5),
    "jax.numpy.frexp": on((3, 4)),
    "jax.numpy.from_dlpack": lambda f, g: (lambda x: f(x), [g(3)]),
    "jax.numpy.frombuffer": lambda f, g: (lambda x: f(b"\x01\x02\x03\x04", jnp.uint8) + x, [g(4)]),
    "jax.numpy.fromfunction": lambda f, g: (lambda x: f(lambda i, j: i + j, (3, 4)) + x, [g(3, 4)]),
    "jax.numpy.fromiter": lambda f, g: (lambda x: f(range(4), jnp.float32) + x, [g(4)]),
    "jax.numpy.frompyfunc": lambda f, g: (
        lambda x, y: f(lambda a, b: a * b + 1, nin=2, nout=1)(x, y),
        [g(3, 4), g(3, 4)],
    ),
    "jax.numpy.fromstring": lambda f, g: (lambda x: f("1 2 3", sep=" ", dtype=jnp.float32) + x, [g(3)]),
    "jax.numpy.geomspace": lambda f, g: (lambda a, b: f(a, b, 5), [g.near(), g.near()]),
    "jax.numpy.histogram": lambda f, g: (lambda x: f(x, bins=4, range=(-2, 2)), [g(20)]),
    "jax.numpy.histogram2d": lambda f, g: (lambda x, y: f(x, y, bins=4, range=((-2, 2), (-2, 2))), [g(20), g(20)]),
    "jax.numpy.histogramdd": lambda f, g: (lambda x: f(x, bins=3, range=((-2, 2), (-2, 2))), [g(20, 2)]),
    "jax.numpy.histogram_bin_edges": lambda f, g: (lambda x: f(x, bins=4), [g(20)]),
    "jax.numpy.digitize": lambda f, g: (lambda x: f(x, jnp.asarray([-1.0, 0.0, 1.0])), [g(12)]),
    "jax.numpy.searchsorted": lambda f, g: (lambda a, v: f(jnp.sort(a), v), [g(12), g(5)]),
    "jax.numpy.indices": lambda f, g: (lambda x: f((3, 4)) + x, [g(3, 4)]),
    "jax.numpy.insert": lambda f, g: (lambda x, v: f(x, 1, v, axis=0), [g(3, 4), g(4)]),
    "jax.numpy.interp": lambda f, g: (lambda x, y: f(x, jnp.linspace(-2, 2, 6), y), [g(9), g(6)]),
    "jax.numpy.intersect1d": lambda f, g: (lambda x, y: f(x, y, size=4), [g.ints(6, high=5), g.ints(6, high=5)]),
    "jax.numpy.union1d": lambda f, g: (lambda x, y: f(x, y, size=8), [g.ints(6, high=5), g.ints(6, high=5)]),
    "jax.numpy.setdiff1d": lambda f, g: (lambda x, y: f(x, y, size=4), [g.ints(6, high=5), g.ints(6, high=5)]),
    "jax.numpy.setxor1d": lambda f, g: (lambda x, y: f(x, y, size=8), [g.ints(6, high=5), g.ints(6, high=5)]),
    "jax.numpy.unique": on((12,), size=6),
    "jax.numpy.unique_all": on((12,), size=6),
    "jax.numpy.unique_counts": on((12,), size=6),
    "jax.numpy.unique_inverse": on((12,), size=6),
    "jax.numpy.unique_values": on((12,), size=6),
    "jax.numpy.iscomplexobj": lambda f, g: (lambda x: x * f(x), [g(3)]),
    "jax.numpy.isrealobj": lambda f, g: (lambda x: x * f(x), [g(3)]),
    "jax.numpy.isscalar": lambda f, g: (lambda x: x * f(x), [g(3)]),
    "jax.numpy.issubdtype": lambda f, g: (lambda x: x * f(x.dtype, jnp.floating), [g(3)]),
    "jax.numpy.isdtype": lambda f, g: (lambda x: x * f(x.dtype, "real floating"), [g(3)]),
    "jax.numpy.can_cast": lambda f, g: (lambda x: x * f(x.dtype, jnp.float32), [g(3)]),
    "jax.numpy.promote_types": lambda f, g: (lambda x: x.astype(f(x.dtype, jnp.float32)), [g(3)]),
    "jax.numpy.result_type": lambda f, g: (lambda x: x.astype(f(x, jnp.float32)), [g(3)]),
    "jax.numpy.iterable": lambda f, g: (lambda x: x * f(x), [g(3)]),
    "jax.numpy.ix_": on((3,), (4,)),
    "jax.numpy.ldexp": lambda f, g: (lambda x, e: f(x, e), [g(3, 4), g.ints(3, 4)]),
    "jax.numpy.lexsort": closed(lambda f, x, y: f((x, y)), (6,), (6,)),
    "jax.numpy.linspace": lambda f, g: (lambda a, b: f(a, b, 7), [g(), g()]),
    "jax.numpy.logspace": lambda f, g: (lambda a, b: f(a, b, 5), [g(), g()]),
    "jax.numpy.mask_indices": lambda f, g: (lambda x: x[f(4, jnp.triu)], [g(4, 4)]),
    "jax.numpy.matrix_transpose": on((2, 3, 4)),
    "jax.numpy.meshgrid": on((3,), (4,)),
    "jax.numpy.moveaxis": also(((2, 3, 4),), 0, 2),
    "jax.numpy.nonzero": on((3, 4), size=5),
    "jax.numpy.ones": lambda f, g: (lambda x: f((3, 4)) * x, [g(3, 4)]),
    "jax.numpy.zeros": lambda f, g: (lambda x: f((3, 4)) + x, [g(3, 4)]),
    "jax.numpy.empty": lambda f, g: (lambda x: f((3, 4)) * 0 + x, [g(3, 4)]),
    "jax.numpy.full": lambda f, g: (lambda x: f((3, 4), x), [g()]),
    "jax.numpy.full_like": lambda f, g: (lambda x: f(x, 2.5), [g(3, 4)]),
    "jax.numpy.packbits": ints((3, 20)),
    "jax.numpy.unpackbits": lambda f, g: (f, [g.ints(3, 4, high=255, dtype="uint8")]),
    "jax.numpy.permute_dims": also(((2, 3, 4),), (2, 0, 1)),
    "jax.numpy.piecewise": closed(lambda f, x: f(x, [x < 0, x > 1], [jnp.sin, jnp.cos, 0.5]), (3, 4)),
    "jax.numpy.place": lambda f, g: (
        lambda x, v: f(x, np.arange(12).reshape(3, 4) % 2 == 0, v, inplace=False),
        [g(3, 4), g(6)],
    ),
    "jax.numpy.poly": on((4,)),
    "jax.numpy.polyadd": on((4,), (3,)),
    "jax.numpy.polyder": on((5,)),
    "jax.numpy.polydiv": on((5,), (3,)),
    "jax.numpy.polyfit": lambda f, g: (lambda x, y: f(x, y, 2), [g(8), g(8)]),
    "jax.numpy.polyint": on((4,)),
    "jax.numpy.polymul": on((4,), (3,)),
    "jax.numpy.polysub": on((4,), (3,)),
    "jax.numpy.polyval": on((4,), (3, 4)),
    "jax.numpy.roots": on((4,), strip_zeros=False),
    "jax.numpy.put": _put,
    "jax.numpy.put_along_axis": _along,
    "jax.numpy.take": lambda f, g: (lambda x, i: f(x, i, axis=0), [g(5, 4), g.ints(3, high=5)]),
    "jax.numpy.take_along_axis": lambda f, g: (lambda x, i: f(x, i, axis=0), [g(5, 4), g.ints(2, 4, high=5)]),
    "jax.numpy.ravel_multi_index": lambda f, g: (lambda i, j: f((i, j), (3, 3), mode="clip"), [g.ints(4), g.ints(4)]),
    "jax.numpy.unravel_index": lambda f, g: (lambda i: f(i, (3, 4)), [g.ints(5, high=12)]),
    "jax.numpy.repeat": also(((3, 4),), np.array([1, 0, 2]), axis=0, total_repeat_length=3),
    "jax.numpy.reshape": also(((3, 4),), (2, 6)),
    "jax.numpy.resize": also(((3, 4),), (5, 4)),
    "jax.numpy.rollaxis": also(((2, 3, 4),), 2),
    "jax.numpy.rot90": on((3, 4)),
    "jax.numpy.select": lambda f, g: (
        lambda c, d, x, y: f([c, d], [x, y], 0),
        [g.bools(3, 4), g.bools(3, 4), g(3, 4), g(3, 4)],
    ),
    "jax.numpy.squeeze": on((3, 1, 4)),
    "jax.numpy.swapaxes": also(((2, 3, 4),), 0, 2),
    "jax.numpy.tensordot": also(((3, 4, 2), (2, 4, 5)), ((1, 2), (1, 0))),
    "jax.numpy.tril_indices_from": lambda f, g: (lambda x: x[f(x)], [g(4, 4)]),
    "jax.numpy.triu_indices_from": lambda f, g: (lambda x: x[f(x)], [g(4, 4)]),
    "jax.numpy.tril_indices": lambda f, g: (lambda x: x[f(4)], [g(4, 4)]),
    "jax.numpy.triu_indices": lambda f, g: (lambda x: x[f(4)], [g(4, 4)]),
    "jax.numpy.tri": lambda f, g: (lambda x: f(4) * x, [g(4, 4)]),
    "jax.numpy.trim_zeros": lambda f, g: (lambda x: x * f(np.array([0, 0, 1.0, 2.0, 0])).sum(), [g(4)]),
    "jax.numpy.unstack": on((3, 4)),
    "jax.numpy.unwrap": on((8,)),
    "jax.numpy.vander": on((5,)),
    "jax.numpy.vectorize": closed(lambda f, x, y: f(jnp.dot, signature="(n),(n)->()")(x, y), (3, 4), (3, 4)),
    "jax.numpy.vsplit": also(((4, 3),), 2),
    "jax.numpy.hsplit": also(((4, 6),), 2),
    "jax.numpy.dsplit": also(((2, 3, 4),), 2),
    "jax.numpy.split": also(((6, 4),), (1, 3)),
    "jax.numpy.where": lambda f, g: (lambda c, x, y: f(c, x, y), [g.bools(3, 4), g(3, 4), g(3, 4)]),
    "jax.numpy.convolve": on((9,), (4,)),
    "jax.numpy.correlate": on((9,), (4,)),
    "jax.numpy.bartlett": lambda f, g: (lambda x: f(5) * x, [g(5)]),
    "jax.numpy.blackman": lambda f, g: (lambda x: f(5) * x, [g(5)]),
    "jax.numpy.hamming": lambda f, g: (lambda x: f(5) * x, [g(5)]),
    "jax.numpy.hanning": lambda f, g: (lambda x: f(5) * x, [g(5)]),
    "jax.numpy.kaiser": lambda f, g: (lambda b: f(5, b), [g.near()]),
    "jax.numpy.fill_diagonal": also(((4, 4),), 2.0, inplace=False),
    "jax.numpy.trapezoid": on((3, 8)),
    "jax.numpy.quantile": lambda f, g: (lambda x, q: f(x, q, axis=1), [g(3, 8), g.near(2)]),
    "jax.numpy.nanquantile": lambda f, g: (lambda x, q: f(x, q, axis=1), [g(3, 8), g.near(2)]),
    "jax.numpy.percentile": lambda f, g: (lambda x, q: f(x, q * 100, axis=1), [g(3, 8), g.near(2)]),
    "jax.numpy.nanpercentile": lambda f, g: (lambda x, q: f(x, q * 100, axis=1), [g(3, 8), g.near(2)]),
    "jax.numpy.left_shift": lambda f, g: (lambda x, s: f(x, s), [g.ints(3, 4, high=50), g.ints(3, 4)]),
    "jax.numpy.right_shift": lambda f, g: (lambda x, s: f(x, s), [g.ints(3, 4, high=50), g.ints(3, 4)]),
    "jax.numpy.bitwise_left_shift": lambda f, g: (lambda x, s: f(x, s), [g.ints(3, 4, high=50), g.ints(3, 4)]),
    "jax.numpy.bitwise_right_shift": lambda f, g: (lambda x, s: f(x, s), [g.ints(3, 4, high=50), g.ints(3, 4)]),
    **{
        f"jax.numpy.{n}": ints(*[(3, 4)] * k)
        for n, k in (
            ("bitwise_and", 2),
            ("bitwise_or", 2),
            ("bitwise_xor", 2),
            ("bitwise_not", 1),
            ("bitwise_invert", 1),
        )
    },
    **{f"jax.numpy.{n}": ints(*[(3, 4)] * k) for n, k in (("invert", 1), ("gcd", 2), ("lcm", 2), ("bitwise_count", 1))},
    # jax.numpy.linalg, jax.scipy.linalg, jax.lax.linalg
    **{
        f"jax.numpy.linalg.{n}": spd()
        for n in ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet", "cond")
    },
    "jax.numpy.linalg.matrix_power": also(((4, 4),), 3),
    "jax.numpy.linalg.solve": spd((4, 2)),
    "jax.numpy.linalg.lstsq": on((5, 3), (5,)),
    "jax.numpy.linalg.matmul": on((3, 4), (4, 5)),
    "jax.numpy.linalg.multi_dot": closed(lambda f, x, y, z: f([x, y, z]), (3, 4), (4, 5), (5, 2)),
    "jax.numpy.linalg.tensordot": on((3, 4), (4, 5), axes=1),
    "jax.numpy.linalg.tensorinv": also(((4, 6, 8, 3),), ind=2),
    "jax.numpy.linalg.tensorsolve": on((2, 3, 6), (2, 3)),
    "jax.numpy.linalg.cross": on((4, 3), (4, 3)),
    "jax.numpy.linalg.outer": on((3,), (4,)),
    **{
        f"jax.scipy.linalg.{n}": spd()
        for n in ("cholesky", "cho_factor", "det", "eigh", "expm", "inv", "lu", "lu_factor", "schur", "sqrtm")
    },
    "jax.scipy.linalg.funm": lambda f, g: (lambda x: f(x, jnp.sin), [g.spd(4)]),
    "jax.scipy.linalg.cho_solve": _cho,
    "jax.scipy.linalg.lu_solve": _lu,
    "jax.scipy.linalg.solve": spd((4, 2)),
    "jax.scipy.linalg.solve_triangular": spd((4, 2)),
    "jax.scipy.linalg.solve_sylvester": spd((4, 4), (4, 4)),
    "jax.scipy.linalg.expm_frechet": spd((4, 4)),
    "jax.scipy.linalg.block_diag": on((2, 3), (1, 2)),
    "jax.scipy.linalg.qr_multiply": on((4, 4), (3, 4)),
    "jax.scipy.linalg.hessenberg": on((4, 4)),
    "jax.scipy.linalg.rsf2csf": on((4, 4), (4, 4)),
    "jax.scipy.linalg.eigh_tridiagonal": on((5,), (4,), eigvals_only=True),
    "jax.scipy.linalg.toeplitz": on((4,), (5,)),
    "jax.scipy.linalg.hankel": on((4,), (5,)),
    "jax.scipy.linalg.circulant": on((4,)),
    "jax.scipy.linalg.companion": on((4,)),
    "jax.scipy.linalg.convolution_matrix": also(((4,),), 6),
    "jax.scipy.linalg.fiedler": on((4,)),
    "jax.scipy.linalg.hadamard": lambda f, g: (lambda x: f(4) * x, [g(4, 4)]),
    "jax.scipy.linalg.dft": lambda f, g: (lambda x: f(4) * x, [g(4, 4)]),
    "jax.scipy.linalg.hilbert": lambda f, g: (lambda x: f(4) * x, [g(4, 4)]),
    "jax.scipy.linalg.invhilbert": lambda f, g: (lambda x: f(4) * x, [g(4, 4)]),
    "jax.scipy.linalg.pascal": lambda f, g: (lambda x: f(4) * x, [g(4, 4)]),
    "jax.scipy.linalg.helmert": lambda f, g: (lambda x: f(4) * x, [g(3, 4)]),
    "jax.scipy.linalg.leslie": on((4,), (3,)),
    "jax.scipy.linalg.polar": on((4, 4)),
    **{
        f"jax.lax.linalg.{n}": spd()
        for n in ("cholesky", "eig", "eigh", "hessenberg", "lu", "qr", "schur", "svd", "tridiagonal")
    },
    "jax.lax.linalg.cholesky_update": spd((4,)),
    "jax.lax.linalg.qdwh": on((4, 4)),
    "jax.lax.linalg.householder_product": _householder,
    "jax.lax.linalg.ormqr": _ormqr,
    "jax.lax.linalg.lu_pivots_to_permutation": lambda f, g: (lambda p: f(p, 5), [jnp.asarray([1, 2, 3, 3], jnp.int32)]),
    "jax.lax.linalg.symmetric_product": on((4, 4), (4, 4)),
    "jax.lax.linalg.triangular_solve": lambda f, g: (
        lambda a, b: f(a, b, left_side=True, lower=True),
        [g.spd(4), g(4, 2)],
    ),
    "jax.lax.linalg.tridiagonal_solve": on((5,), (5,), (5,), (5, 2)),
    # jax.lax
    "jax.lax.after_all": lambda f, g: (lambda x: (f(jax.lax.create_token()), x)[1], [g(3)]),
    "jax.lax.create_token": lambda f, g: (lambda x: (f(), x)[1], [g(3)]),
    "jax.lax.all_gather": over_axis(),
    "jax.lax.all_to_all": over_axis(0, 0),
    "jax.lax.axis_index": lambda f, g: (lambda x: jax.vmap(lambda v: v * f("i"), axis_name="i")(x), [g(4, 3)]),
    "jax.lax.axis_size": lambda f, g: (lambda x: jax.vmap(lambda v: v * f("i"), axis_name="i")(x), [g(4, 3)]),
    **{f"jax.lax.{n}": over_axis() for n in ("pmax", "pmean", "pmin", "psum")},
    "jax.lax.pcast": lambda f, g: (lambda x: jax.shard_map(lambda v: f(v, "i", to="varying"), **_mesh())(x), [g(3, 4)]),
    "jax.lax.ppermute": over_axis([(0, 1), (1, 0), (2, 3), (3, 2)]),
    "jax.lax.pshuffle": over_axis([3, 2, 1, 0]),
    "jax.lax.psum_scatter": over_axis(),
    "jax.lax.pswapaxes": over_axis(0),
    "jax.lax.approx_max_k": also(((3, 9),), 2),
    "jax.lax.approx_min_k": also(((3, 9),), 2),
    "jax.lax.argmax": also(((3, 4),), 1, jnp.int32),
    "jax.lax.argmin": also(((3, 4),), 1, jnp.int32),
    "jax.lax.associative_scan": closed(_associative, (5, 4)),
    "jax.lax.batch_matmul": on((2, 3, 4), (2, 4, 5)),
    "jax.lax.betainc": near((3, 4), (3, 4), (3, 4)),
    "jax.lax.bitcast_convert_type": _bit,
    "jax.lax.broadcast": also(((3, 4),), (2,)),
    "jax.lax.broadcast_in_dim": also(((3, 4),), (3, 2, 4), (0, 2)),
    "jax.lax.broadcast_like": on((1, 4), (3, 4)),
    "jax.lax.broadcast_shapes": lambda f, g: (lambda x: x.reshape(f((3, 1), (1, 4))), [g(3, 4)]),
    "jax.lax.broadcast_to_rank": also(((3, 4),), 4),
    "jax.lax.broadcasted_iota": lambda f, g: (lambda x: f(x.dtype, (3, 4), 1) + x, [g(3, 4)]),
    "jax.lax.iota": lambda f, g: (lambda x: f(x.dtype, 4) + x, [g(3, 4)]),
    "jax.lax.clamp": on((), (3, 4), ()),
    "jax.lax.collapse": also(((2, 3, 4),), 1, 3),
    "jax.lax.composite": closed(_composite, (3, 4)),
    "jax.lax.concatenate": closed(lambda f, x, y: f([x, y], 1), (3, 4), (3, 2)),
    "jax.lax.cond": closed(_cond, (3, 4), (3, 4)),
    "jax.lax.conv": also(_CONV, (1, 1), "SAME"),
    "jax.lax.conv_general_dilated": also(_CONV, (2, 1), ((1, 1), (0, 1)), rhs_dilation=(1, 2)),
    "jax.lax.conv_general_dilated_local": also(((2, 3, 7, 8), (4, 18, 5, 7)), (1, 1), "VALID", (3, 2)),
    "jax.lax.conv_general_dilated_patches": also(((2, 3, 7, 8),), (3, 2), (1, 1), "SAME"),
    "jax.lax.conv_transpose": also(((2, 7, 8, 3), (3, 2, 3, 4)), (2, 2), "SAME"),
    "jax.lax.conv_with_general_padding": also(_CONV, (1, 1), ((1, 1), (0, 1)), (1, 1), (1, 2)),
    "jax.lax.conv_dimension_numbers": lambda f, g: (lambda x: (f((2, 3, 7, 8), (4, 3, 3, 2), None), x)[1], [g(3)]),
    "jax.lax.conv_general_permutations": lambda f, g: (lambda x: (f(("NCHW", "OIHW", "NCHW")), x)[1], [g(3)]),
    "jax.lax.conv_shape_tuple": lambda f, g: (lambda x: (f((2, 3, 7, 8), (4, 3, 3, 2), (1, 1), "SAME"), x)[1], [g(3)]),
    "jax.lax.conv_general_shape_tuple": lambda f, g: (
        lambda x: (f((2, 3, 7, 8), (4, 3, 3, 2), (1, 1), "SAME", ("NCHW", "OIHW", "NCHW")), x)[1],
        [g(3)],
    ),
    "jax.lax.conv_transpose_shape_tuple": lambda f, g: (
        lambda x: (f((2, 3, 7, 8), (3, 4, 3, 2), (1, 1), "SAME", ("NCHW", "IOHW", "NCHW")), x)[1],
        [g(3)],
    ),
    "jax.lax.padtype_to_pads": lambda f, g: (lambda x: (f((7, 8), (3, 2), (1, 1), "SAME"), x)[1], [g(3)]),
    "jax.lax.reduce_window_shape_tuple": lambda f, g: (
        lambda x: (f((7, 8), (3, 2), (1, 1), ((0, 0), (0, 0))), x)[1],
        [g(3)],
    ),
    "jax.lax.convert_element_type": also(((3, 4),), jnp.int32),
    "jax.lax.custom_linear_solve": closed(_solve, (4, 4), (4,)),
    "jax.lax.custom_root": closed(_root, ()),
    "jax.lax.dot": on((3, 4), (4, 5)),
    "jax.lax.dot_general": also(((2, 3, 4), (2, 5, 4)), (((2,), (2,)), ((0,), (0,)))),
    "jax.lax.dynamic_index_in_dim": lambda f, g: (lambda x, i: f(x, i, 0), [g(5, 4), g.ints()]),
    "jax.lax.dynamic_slice": lambda f, g: (lambda x, i, j: f(x, (i, j), (2, 3)), [g(5, 4), g.ints(), g.ints()]),
    "jax.lax.dynamic_slice_in_dim": lambda f, g: (lambda x, i: f(x, i, 2), [g(5, 4), g.ints()]),
    "jax.lax.dynamic_update_slice": lambda f, g: (lambda x, u, i: f(x, u, (i, 1)), [g(5, 4), g(2, 3), g.ints()]),
    "jax.lax.dynamic_update_slice_in_dim": lambda f, g: (lambda x, u, i: f(x, u, i, 0), [g(5, 4), g(2, 4), g.ints()]),
    "jax.lax.dynamic_update_index_in_dim": lambda f, g: (lambda x, u, i: f(x, u, i, 0), [g(5, 4), g(4), g.ints()]),
    "jax.lax.empty": lambda f, g: (lambda x: f((3, 4), x.dtype) * 0 + x, [g(3, 4)]),
    "jax.lax.expand_dims": also(((3, 4),), (0, 2)),
    "jax.lax.fft": lambda f, g: (lambda x: f(x.astype(jnp.complex64), "FFT", (4,)), [g(3, 4)]),
    "jax.lax.fori_loop": closed(_fori, (3, 4)),
    "jax.lax.full": lambda f, g: (lambda x: f((3, 4), x), [g()]),
    "jax.lax.full_like": lambda f, g: (lambda x: f(x, 2), [g(3, 4)]),
    "jax.lax.gather": _gather,
    "jax.lax.index_take": _index,
    "jax.lax.igamma_grad_a": near((3, 4), (3, 4)),
    "jax.lax.integer_pow": also(((3, 4),), 3),
    "jax.lax.map": closed(lambda f, x: f(jnp.sin, x), (3, 4)),
    "jax.lax.optimization_barrier": closed(lambda f, x, y: f((x, y)), (3, 4), (3,)),
    "jax.lax.pad": lambda f, g: (lambda x, v: f(x, v, ((1, 2, 0), (0, 1, 1))), [g(3, 4), g()]),
    "jax.lax.platform_dependent": closed(_platforms, (3, 4)),
    "jax.lax.polygamma": near((3, 4), (3, 4)),
    "jax.lax.zeta": lambda f, g: (lambda x, q: f(x + 1.5, q), [g.near(3, 4), g.near(3, 4)]),
    "jax.lax.random_gamma_grad": near((3, 4), (3, 4)),
    "jax.lax.ragged_dot": _ragged,
    "jax.lax.ragged_dot_general": _ragged_general,
    "jax.lax.reduce": closed(_reduce, (3, 4)),
    "jax.lax.reduce_precision": also(((3, 4),), 5, 6),
    "jax.lax.reduce_window": closed(
        lambda f, x: f(x, jnp.zeros((), x.dtype), jax.lax.add, (2, 2), (1, 2), "SAME"), (7, 8)
    ),
    "jax.lax.reshape": also(((3, 4),), (2, 6)),
    "jax.lax.rng_bit_generator": _rng_bits,
    "jax.lax.rng_uniform": lambda f, g: (lambda a: f(a, a + 1, (3,)) * 0, [g()]),
    "jax.lax.scaled_dot": on((32, 64), (64, 32)),
    "jax.lax.scan": closed(_scan, (5, 4)),
    **{
        f"jax.lax.{n}": _scatter
        for n in ("scatter", "scatter_add", "scatter_sub", "scatter_mul", "scatter_max", "scatter_min")
    },
    "jax.lax.scatter_apply": _scatter_apply,
    "jax.lax.select": lambda f, g: (lambda c, x, y: f(c, x, y), [g.bools(3, 4), g(3, 4), g(3, 4)]),
    "jax.lax.select_n": lambda f, g: (lambda c, x, y, z: f(c, x, y, z), [g.ints(3, 4), g(3, 4), g(3, 4), g(3, 4)]),
    "jax.lax.shape_as_value": lambda f, g: (lambda x: f(x.shape), [g(3, 4)]),
    "jax.lax.slice": also(((5, 8),), (1, 0), (4, 8), (1, 3)),
    "jax.lax.slice_in_dim": also(((5, 4),), 1, 5, 2),
    "jax.lax.sort_key_val": on((3, 4), (3, 4)),
    "jax.lax.split": also(((6, 4),), (1, 5)),
    "jax.lax.squeeze": also(((3, 1, 4),), (1,)),
    "jax.lax.stack": closed(lambda f, x, y: f([x, y]), (3, 4), (3, 4)),
    "jax.lax.switch": closed(_switch, (3, 4)),
    "jax.lax.tile": also(((3, 4),), (2, 1)),
    "jax.lax.transpose": also(((2, 3, 4),), (2, 0, 1)),
    "jax.lax.while_loop": closed(_while, (3, 4)),
    "jax.lax.with_sharding_constraint": lambda f, g: (
        lambda x: f(x, jax.sharding.SingleDeviceSharding(jax.devices()[0])),
        [g(3, 4)],
    ),
    **{f"jax.lax.{n}": ints((3, 4), (3, 4)) for n in ("bitwise_and", "bitwise_or", "bitwise_xor", "mulhi")},
    **{f"jax.lax.{n}": ints((3, 4)) for n in ("bitwise_not", "clz", "population_count")},
    **{f"jax.lax.{n}": ints((3, 4), (3, 4)) for n in ("shift_left", "shift_right_arithmetic", "shift_right_logical")},
    **{
        f"jax.lax.{n}": lambda f, g: (lambda x: f(x, (0,)), [g.bools(3, 4)])
        for n in ("reduce_and", "reduce_or", "reduce_xor")
    },
    "jax.lax.real": _complex,
    "jax.lax.imag": _complex,
    "jax.lax.conj": _complex,
    "jax.lax.polynomial": closed(lambda f, x: f(x, [1.0, 2.0, 3.0]), (3, 4)),
    # jax.nn
    "jax.nn.dot_product_attention": _attention,
    "jax.nn.glu": on((3, 8)),
    "jax.nn.one_hot": lambda f, g: (lambda i: f(i, 5, dtype=jnp.dtype(g.dtype)), [g.ints(4, high=5)]),
    "jax.nn.scaled_matmul": on((2, 32, 64), (2, 32, 64), (2, 32, 2), (2, 32, 2)),
    "jax.nn.log1mexp": near((3, 4)),
    **{f"jax.nn.initializers.{n}": direct() for n in ("normal", "ones", "zeros", "uniform")},
    **{
        f"jax.nn.initializers.{n}": seeded()
        for n in [
            "normal",
            "uniform",
            "truncated_normal",
            "glorot_normal",
            "glorot_uniform",
            "he_normal",
            "he_uniform",
            "kaiming_normal",
            "kaiming_uniform",
            "lecun_normal",
            "lecun_uniform",
            "orthogonal",
            "xavier_normal",
            "xavier_uniform",
        ]
    },
    "jax.nn.initializers.delta_orthogonal": seeded((3, 3, 4, 4)),
    "jax.nn.initializers.constant": seeded(value=2.0),
    "jax.nn.initializers.variance_scaling": seeded(scale=1.0, mode="fan_in", distribution="normal"),
    # jax.random
    **{
        f"jax.random.{n}": drawn(shape=(3, 4))
        for n in [
            "bernoulli",
            "bits",
            "cauchy",
            "double_sided_maxwell",
            "exponential",
            "gumbel",
            "laplace",
            "logistic",
            "lognormal",
            "maxwell",
            "normal",
            "rademacher",
            "uniform",
        ]
    },
    "jax.random.ball": drawn(3, shape=(4,)),
    "jax.random.beta": drawn(shapes=((3, 4), (3, 4))),
    "jax.random.binomial": drawn(5.0, 0.3, shape=(6,)),
    "jax.random.categorical": drawn(shapes=((3, 4),)),
    "jax.random.chisquare": drawn(shapes=((3, 4),)),
    "jax.random.choice": drawn((3,), shapes=((9,),)),
    "jax.random.dirichlet": drawn(shapes=((4,),), shape=(3,)),
    "jax.random.double_sided_maxwell": drawn(0.0, 1.0, (3, 4)),
    "jax.random.f": drawn(shapes=((3, 4), (3, 4))),
    "jax.random.fold_in": drawn(3),
    "jax.random.gamma": drawn(shapes=((3, 4),)),
    "jax.random.generalized_normal": drawn(2.0, (3, 4)),
    "jax.random.geometric": drawn(shapes=((3, 4),)),
    "jax.random.key": lambda f, g: (lambda s: jax.random.normal(f(s), (3,)), [g.ints()]),
    "jax.random.Key": lambda f, g: (lambda d: jax.random.normal(f(d), (3,)), [jnp.asarray([1, 2], jnp.uint32)]),
    "jax.random.PRNGKey": lambda f, g: (lambda s: f(s), [g.ints()]),
    "jax.random.key_data": drawn(),
    "jax.random.key_impl": lambda f, g: (lambda k: (f(k), jax.random.normal(k))[1], [g.key()]),
    "jax.random.key_dtype": lambda f, g: (lambda k: (f(None), jax.random.normal(k))[1], [g.key()]),
    "jax.random.clone": drawn(),
    "jax.random.loggamma": drawn(shapes=((3, 4),)),
    "jax.random.multinomial": drawn(shapes=((), (4,))),
    "jax.random.multivariate_normal": lambda f, g: (lambda k, m, c: f(k, m, c), [g.key(), g(4), g.spd(4)]),
    "jax.random.orthogonal": drawn(4),
    "jax.random.pareto": drawn(shapes=((3, 4),)),
    "jax.random.permutation": drawn(shapes=((5, 4),)),
    "jax.random.poisson": drawn(3.0, (3, 4)),
    "jax.random.randint": drawn((3, 4), 0, 9),
    "jax.random.rayleigh": drawn(2.0, (3, 4)),
    "jax.random.split": drawn(3),
    "jax.random.t": drawn(shapes=((3, 4),)),
    "jax.random.triangular": drawn(0.0, 0.5, 1.0, shape=(3, 4)),
    "jax.random.truncated_normal": drawn(-1.0, 1.0, (3, 4)),
    "jax.random.wald": drawn(shapes=((3, 4),)),
    "jax.random.weibull_min": drawn(1.0, 2.0, (3, 4)),
    "jax.random.wrap_key_data": lambda f, g: (
        lambda d: jax.random.normal(f(d), (3,)),
        [jnp.asarray([1, 2], jnp.uint32)],
    ),
    # jax.scipy
    "jax.scipy.cluster.vq.vq": _stochastic,
    "jax.scipy.integrate.trapezoid": on((3, 8)),
    "jax.scipy.ndimage.map_coordinates": lambda f, g: (
        lambda x, c: f(x, [c[0] * 4, c[1] * 5], order=1),
        [g(5, 6), g.near(2, 7)],
    ),
    "jax.scipy.optimize.minimize": closed(_gradient_of_loss, (4,)),
    "jax.scipy.signal.convolve": on((9, 8), (3, 2), mode="same"),
    "jax.scipy.signal.convolve2d": on((9, 8), (3, 2), mode="same"),
    "jax.scipy.signal.correlate": on((9, 8), (3, 2), mode="same"),
    "jax.scipy.signal.correlate2d": on((9, 8), (3, 2), mode="same"),
    "jax.scipy.signal.fftconvolve": on((9, 8), (3, 2)),
    "jax.scipy.signal.csd": on((64,), (64,), nperseg=16),
    "jax.scipy.signal.welch": on((64,), nperseg=16),
    "jax.scipy.signal.stft": on((64,), nperseg=16),
    "jax.scipy.signal.istft": lambda f, g: (lambda x: f(jax.scipy.signal.stft(x, nperseg=16)[2], nperseg=16), [g(64)]),
    "jax.scipy.signal.detrend": on((3, 16)),
    **{f"jax.scipy.sparse.linalg.{n}": closed(_krylov, (4, 4), (4,)) for n in ("cg", "bicgstab", "gmres")},
    "jax.scipy.special.bernoulli": lambda f, g: (lambda x: f(5) * x, [g()]),
    "jax.scipy.special.bessel_jn": lambda f, g: (lambda z: f(z, v=3, n_iter=20), [g.near(4)]),
    "jax.scipy.special.comb": lambda f, g: (
        lambda n, k: f(n + 3, k),
        [g.ints(4).astype(g.dtype), g.ints(4).astype(g.dtype)],
    ),
    "jax.scipy.special.expn": lambda f, g: (lambda x: f(2, x), [g.near(4)]),
    "jax.scipy.special.factorial": near((3, 4)),
    "jax.scipy.special.multigammaln": lambda f, g: (lambda x: f(x + 3, 2), [g.near(3)]),
    "jax.scipy.special.polygamma": lambda f, g: (lambda x: f(2, x), [g.near(3, 4)]),
    "jax.scipy.special.sph_harm": lambda f, g: (
        lambda a, b: f(jnp.array([1]), jnp.array([2]), a, b, n_max=2),
        [g.near(1), g.near(1)],
    ),
    "jax.scipy.special.sph_harm_y": lambda f, g: (
        lambda a, b: f(jnp.array([2]), jnp.array([1]), a, b, n_max=2),
        [g.near(1), g.near(1)],
    ),
    "jax.scipy.special.zeta": lambda f, g: (lambda x, q: f(x + 1.5, q), [g.near(3, 4), g.near(3, 4)]),
    "jax.scipy.special.softmax": on((3, 4)),
    "jax.scipy.stats.mode": ints((3, 9)),
    "jax.scipy.stats.rankdata": on((9,)),
    "jax.scipy.stats.sem": on((9, 3)),
    **{
        f"jax.scipy.stats.bernoulli.{n}": _distribution((3, 4), (3, 4), counts=n != "ppf")
        for n in ("cdf", "logpmf", "pmf", "ppf")
    },
    **{f"jax.scipy.stats.binom.{n}": _binomial for n in ("logpmf", "pmf")},
    **{f"jax.scipy.stats.nbinom.{n}": _binomial for n in ("logpmf", "pmf")},
    **{f"jax.scipy.stats.dirichlet.{n}": _dirichlet for n in ("logpdf", "pdf")},
    **{f"jax.scipy.stats.geom.{n}": _distribution((3, 4), (3, 4), counts=True) for n in ("logpmf", "pmf")},
    **{f"jax.scipy.stats.poisson.{n}": _distribution((3, 4), (3, 4), counts=True) for n in ("cdf", "logpmf", "pmf")},
    **{f"jax.scipy.stats.multinomial.{n}": _multinomial for n in ("logpmf", "pmf")},
    **{
        f"jax.scipy.stats.multivariate_normal.{n}": lambda f, g: (lambda x, m, c: f(x, m, c), [g(4), g(4), g.spd(4)])
        for n in ("logpdf", "pdf")
    },
}
