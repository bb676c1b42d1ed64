"""Kernels that the nest driver calls: elementwise, pooling, reduction, matrix-vector, shifted copies, narrowing.

Every kernel gets (operand addresses, loop indices, own words). The words are listed in each docstring.
The last loop index counts chunks along the kernel's own dimension where the docstring says so.
"""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.ir as ir

from ..native.build import Spec, family
from ..rules.expressions import COPY
from ..target import Target
from .expressions import emit_nodes
from .simd import Builder
from .vectors import F32, I32, ROUNDED, STORED_BYTES, i64

LAST = 5  # the innermost loop of a nest


def minimum(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The lesser of two scalars of i64."""
    return v.b.select(v.b.icmp_signed("<", a, b), a, b)


def maximum(v: Builder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The greater of two scalars of i64."""
    return v.b.select(v.b.icmp_signed(">", a, b), a, b)


def chunk_of(v: Builder, number: ir.Value, total: ir.Value, chunk: ir.Value) -> ir.Value:
    """How much of `total` the chunk of that number covers."""
    return minimum(v, chunk, v.b.sub(total, v.b.mul(number, chunk)))


def _chunk(v: Builder, index: ir.Value, total: ir.Value, chunk: ir.Value) -> ir.Value:
    """How much of `total` the chunk at the innermost index covers."""
    return chunk_of(v, v.ld64(index, LAST), total, chunk)


def vectors(v: Builder, n: ir.Value, body: Callable[[ir.Value], object]) -> None:
    """`body(offset in bytes)` for whole vectors of n f32, then once for the masked rest."""
    full, rest = v.b.sdiv(n, i64(v.vl)), v.b.srem(n, i64(v.vl))
    with v.loop(full) as i:
        body(v.mul(i, 4 * v.vl))
    if v.vl > 1:
        with v.b.if_then(v.b.icmp_signed(">", rest, i64(0))):
            v.set_mask(rest)
            body(v.mul(full, 4 * v.vl))
            v.set_mask(None)


def in_blocks(v: Builder, total: ir.Value, size: int, body: Callable[[ir.Value, int], None]) -> None:
    """`body(first, how many)` for blocks of `size` of `total` things, then for each one that is left."""
    with v.loop(v.b.sdiv(total, i64(size))) as p:
        body(v.mul(p, size), size)
    done = v.mul(v.b.sdiv(total, i64(size)), size)
    if size > 1:
        with v.loop(v.b.srem(total, i64(size))) as p:
            body(v.add(done, p), 1)


def along(v: Builder, kind: str, offset: ir.Value) -> ir.Value:
    """An offset in f32 as one in elements of an operand's kind."""
    return v.b.sdiv(offset, i64(4 // STORED_BYTES[kind])) if kind in STORED_BYTES else offset


def _vector(v: Builder, key: Spec, at: Callable[[int], ir.Value]) -> None:
    """Makes one vector of each result of an elementwise kernel; `at`: the address of each operand's vector."""
    _, expr, kinds, *several = key
    results = several[0] if several else (len(expr) - 1,)
    made = len(results)

    def read(k: int) -> ir.Value:
        kind, place = kinds[made + k], at(made + k)
        return v.broadcast(place) if kind == "s" else v.load_stored(place, kind if kind in STORED_BYTES else "float32")

    nodes = emit_nodes(v, expr, read, results)
    for k, node in enumerate(results):
        if kinds[k] == "n":
            v.store(nodes[node], at(k), streamed=True)
        else:
            v.store_as(nodes[node], at(k), kinds[k])


@family("elementwise")
def elementwise(name: str, key: Spec, target: Target) -> str:
    """("elementwise", expr, kinds[, results]): the first operands are the results, one for each node of `results` (of
    none given the last node); kinds "v" contiguous, "s" one scalar, "g" strided, "n" contiguous and streamed, and the
    types of narrower elements, side by side, that operands are stored as. A copy of what lies in its place already (a
    state that is given away) is no work.

    Words: total, chunk (elements), then the inner stride of each operand in bytes ("g" makes the whole kernel scalar).
    """
    kinds = key[2]
    strided = "g" in kinds
    v = Builder(name, 3, 1 if strided else target.vl)
    where, index, words = v.args
    n = _chunk(v, index, v.ld64(words, 0), v.ld64(words, 1))
    bases = [v.ld64(where, k) for k in range(len(kinds))]
    steps = [v.ld64(words, 2 + k) for k in range(len(kinds))] if strided else []
    shift = v.b.mul(v.ld64(index, LAST), v.ld64(words, 1))
    if key[1] == COPY and kinds == ("v", "v"):
        n = v.b.select(v.b.icmp_signed("==", *bases), i64(0), n)

    def body(offset: ir.Value) -> None:
        def at(k: int) -> ir.Value:
            if kinds[k] == "s":
                return bases[k]
            if strided:
                element = v.add(shift, v.b.sdiv(offset, i64(4)))
                return v.add(bases[k], v.b.mul(element, steps[k]))
            return v.add(bases[k], along(v, kinds[k], v.mul(shift, 4)), along(v, kinds[k], offset))

        _vector(v, key, at)

    vectors(v, n, body)
    return v.finish()


Combine = Callable[[Builder, ir.Value, ir.Value], ir.Value]
REDUCE: dict[str, tuple[float, Combine]] = {
    "sum": (0.0, lambda v, a, b: v.b.fadd(a, b)),
    "max": (float("-inf"), lambda v, a, b: v.maximum(a, b)),
    "min": (float("inf"), lambda v, a, b: v.maximum(a, b, "<")),
    "prod": (1.0, lambda v, a, b: v.b.fmul(a, b)),
    "sum@i": (0.0, lambda v, a, b: v.floats(v.b.add(v.bits(a), v.bits(b)))),
}


@family("elementwise_rows")
def elementwise_rows(name: str, key: Spec, target: Target) -> str:
    """("elementwise_rows", expr, kinds[, results]): some rows of n elements; operands, kinds and results as of
    "elementwise", without "g".

    The last loop counts runs of rows. Words: rows, rows a run, n, then the bytes to the next row of each operand.
    """
    kinds = key[2]
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    rows, n = _chunk(v, index, v.ld64(words, 0), v.ld64(words, 1)), v.ld64(words, 2)
    bases = [v.ld64(where, k) for k in range(len(kinds))]
    steps = [v.ld64(words, 3 + k) for k in range(len(kinds))]
    with v.loop(rows) as row:
        starts = [v.add(base, v.b.mul(row, step)) for base, step in zip(bases, steps, strict=True)]

        def body(offset: ir.Value) -> None:
            _vector(v, key, lambda k: starts[k] if kinds[k] == "s" else v.add(starts[k], along(v, kinds[k], offset)))

        vectors(v, n, body)
    return v.finish()


Across = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]  # (address of a line, what is combined so far) -> more


@family("reduce")
def reduce(name: str, key: Spec, target: Target) -> str:
    """("reduce", reduction, inner): x seen as [A, R, B]; inner=False: B > 1, a chunk of B at a time.

    Operands: x, y. Words: R, step of R in bytes, B, chunk of B. With inner=True B is 1 and R contiguous.
    """
    _, kind, inner_dim = key
    start, combine = REDUCE[kind]
    v = Builder(name, 3, target.vl)
    where, index, words = v.args
    x, y = v.ld64(where, 0), v.ld64(where, 1)
    n, step = v.ld64(words, 0), v.ld64(words, 1)
    if not inner_dim:

        def body(offset: ir.Value) -> None:
            with v.carry(n, [v.const(start)]) as (r, a, done):
                done([combine(v, a[0], v.load(v.add(x, offset, v.b.mul(r, step))))])
            v.store(v.carried[0], v.add(y, offset))

        vectors(v, _chunk(v, index, v.ld64(words, 2), v.ld64(words, 3)), body)
        return v.finish()
    full, rest = v.b.sdiv(n, i64(v.vl)), v.b.srem(n, i64(v.vl))
    with v.carry(full, [v.const(start)]) as (i, a, done):
        done([combine(v, a[0], v.load(v.add(x, v.mul(i, 4 * v.vl))))])
    lanes = v.carried[0]
    scalar = v.scalar_view()
    total = scalar.const(start)
    for lane in range(v.vl):
        total = combine(scalar, scalar.wrap(v.b.extract_element(lanes, i64(lane))), total)
    with scalar.carry(rest, [total]) as (i, a, done):
        done([combine(scalar, a[0], scalar.load(v.add(x, v.mul(v.add(v.mul(full, v.vl), i), 4))))])
    scalar.store(scalar.carried[0], y)
    return v.finish()


@family("position")
def position(name: str, key: Spec, target: Target) -> str:
    """("position",): the first of n contiguous elements that is the given one, or NaN, as s32.

    Operands: x, the given element, out. Words: n.
    """
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    x, given, out = (v.ld64(where, i) for i in range(3))
    n = v.ld64(words, 0)
    full, rest = v.b.sdiv(n, i64(v.vl)), v.b.srem(n, i64(v.vl))
    wanted = v.b.load(v.ptr(given, F32))

    def earlier(v: Builder, before: ir.Value, values: ir.Value, at: ir.Value, wanted: ir.Value) -> ir.Value:
        """`before`, or the places `at` where these values are what is looked for, whichever is less."""
        hit = v.b.or_(v.b.fcmp_ordered("==", values, wanted), v.b.fcmp_unordered("uno", values, values))
        return v.b.select(v.b.and_(hit, v.b.icmp_signed("<", at, before)), at, before)

    lanes = ir.Constant(v.ivec, list(range(v.vl)))
    every = v.broadcast(given)
    none = v.iconst((1 << 31) - 1)
    with v.carry(full, [none]) as (i, a, done):
        base = v.splat(v.b.trunc(v.mul(i, v.vl), I32), v.ivec)
        done([earlier(v, a[0], v.load(v.add(x, v.mul(i, 4 * v.vl))), v.b.add(base, lanes), every)])
    found = v.across(v.carried[0], lambda a, b: v.b.select(v.b.icmp_signed("<", a, b), a, b))
    with v.carry(rest, [v.b.extract_element(found, i64(0))]) as (i, a, done):
        at = v.add(v.mul(full, v.vl), i)
        value = v.b.load(v.ptr(v.add(x, v.mul(at, 4)), F32))
        done([earlier(v, a[0], value, v.b.trunc(at, I32), wanted)])
    v.b.store(v.carried[0], v.ptr(out, I32))
    return v.finish()


@family("shifted")
def shifted(name: str, key: Spec, target: Target) -> str:
    """("shifted", indices, move source): a contiguous copy, one side moved by s32 indices that are read at the call.

    Operands: source, target, indices. Words: floats, then for each index its largest value and its step in bytes.
    """
    _, count, move_source = key
    v = Builder(name, 3, target.vl)
    where, _, words = v.args
    x, y = v.ld64(where, 0), v.ld64(where, 1)
    shift: ir.Value = i64(0)
    for k in range(count):
        i = v.b.sext(v.b.load(v.ptr(v.ld64(where, 2 + k), I32)), shift.type)
        i = minimum(v, maximum(v, i, i64(0)), v.ld64(words, 1 + 2 * k))
        shift = v.add(shift, v.b.mul(i, v.ld64(words, 2 + 2 * k)))
    x, y = (v.add(x, shift), y) if move_source else (x, v.add(y, shift))
    vectors(v, v.ld64(words, 0), lambda o: v.store(v.load(v.add(x, o)), v.add(y, o)))
    return v.finish()


@family("narrow")
def narrow(name: str, key: Spec, target: Target) -> str:
    """("narrow", stored): rows of f32, or of the type `stored`, rounded to bf16, and zeroes up to an even number.
    Operands and words as of "whole".
    """
    (_, stored), v = key, Builder(name, 3, target.vl)
    dtype = ROUNDED if target.unit("bfloat16", "gemm") else "bfloat16"

    def body(x: ir.Value, y: ir.Value, n: ir.Value) -> None:
        with v.b.if_then(v.b.icmp_signed("!=", v.b.and_(n, i64(1)), i64(0))):
            v.b.store(ir.Constant(ir.IntType(16), 0), v.ptr(v.add(y, v.mul(n, 2)), ir.IntType(16)))

        def rounded(offset: ir.Value) -> None:
            value = v.load_stored(v.add(x, along(v, stored, offset)), stored)
            value = value if dtype == ROUNDED or stored == dtype else v.floats(v.bfloat(value))
            v.store_as(value, v.add(y, along(v, "bfloat16", offset)), dtype)

        vectors(v, n, rounded)

    return _rows_of_two(v, body)


@family("whole")
def whole(name: str, key: Spec, target: Target) -> str:
    """("whole", bits, shift): rows of f32 that are whole numbers, plus `shift`, as integers of so many bits.

    Operands: x, y. Words: elements of a row, rows, bytes from one row to the next of x and of y.
    """
    _, bits, shift = key
    v, dtype = Builder(name, 3, target.vl), f"int{bits}"

    def body(x: ir.Value, y: ir.Value, n: ir.Value) -> None:
        def shifted(offset: ir.Value) -> None:
            value = v.b.fadd(v.load(v.add(x, offset)), v.const(float(shift)))
            v.store_as(value, v.add(y, along(v, dtype, offset)), dtype)

        vectors(v, n, shifted)

    return _rows_of_two(v, body)


def _rows_of_two(v: Builder, body: Callable[[ir.Value, ir.Value, ir.Value], None]) -> str:
    """The text of a kernel that does `body(x, y, elements)` for each row of two arrays."""
    where, _, words = v.args
    bases, n, rows = [v.ld64(where, k) for k in (0, 1)], v.ld64(words, 0), v.ld64(words, 1)
    steps = [v.ld64(words, 2 + k) for k in (0, 1)]
    with v.loop(rows) as row:
        x, y = (v.add(base, v.b.mul(row, step)) for base, step in zip(bases, steps, strict=True))
        body(x, y, n)
    return v.finish()
