"""What each of JAX's primitives is, one entry a primitive: every stage asks this table and no stage lists names.

An entry names the functions that say what the primitive means (`numpy_rules`), costs (`flops`) and needs for a part of
its result (`splits`), and the kernel family that computes it. A primitive without an entry runs on the device half, is
never split, and its FLOP are unknown.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from ..program import Op, kind
from . import flops, indexing, loops, movement, numpy_rules, products, splits
from .convolution import CONVOLUTION
from .movement import Axis
from .numpy_rules import Array, Rule, each
from .products import Matrix
from .splits import Need

Split = Callable[[Op, int, int, int], Need]  # (operation, axis, start, stop) -> what the range needs
Moved = Callable[[Op, tuple[Axis, ...]], tuple[Axis, ...]]  # (operation, axes of the result) -> of the operand
PICK = ("max", "min")  # how reductions join elements whose results are some of these
ROUNDS = {"bfloat16": "bfloat", "float16": "half"}  # type -> the kernels' own primitive that rounds to it


@dataclasses.dataclass(frozen=True)
class Primitive:
    """One primitive. What is None, "" or False it does not have.

    What it computes:
    `flops(op)`: FLOP, None where nobody has said. `reference(op, *operands)`: its result by NumPy.
    `split(op, axis, start, stop)`: what a range of its result needs. `matrix(op)`: the matrix product that it amounts
    to; a primitive with one is a contraction, which reads all of an operand's channels for any part of its result.
    `channels(op)`: (output-channel axis of the weights, of the result) where weights can be scaled by channel.
    `combine`: how a reduction joins two elements.

    How kernels compute it:
    `kernel`: ".module.function" in `codegen.kernels` (or an absolute name), the rule that makes its steps; a primitive
    with one begins a layer.
    `vector`: kinds of its first operand ("f", "i", "b") for which it has vector code; a primitive with any is
    elementwise. `axes(op, axes)`: axes of its operand given those of its result; a primitive with this is movement.
    `exact`: its result on values of f16 needs no rounding. `costly`: a row keeps its values instead of computing them
    again. `turns`: a transpose of its result costs nothing.

    How weights go through it:
    `jumps`: its result jumps where an operand crosses a border, so that f64 is not a better f32. `carries`: its result
    is its operands' elements, so that weights stay weights. `either`: weights may be on either side.
    `effect`: it does more than compute its results.

    `model`: the predictor's class of layers that it leads ("elementwise" for most).
    """

    name: str
    flops: Callable[[Op], int] | None = None
    reference: Rule | None = None
    split: Split | None = None
    matrix: Callable[[Op], Matrix] | None = None
    channels: Callable[[Op], tuple[int, int] | None] | None = None
    combine: str = ""
    kernel: str = ""
    vector: str = ""
    axes: Moved | None = None
    exact: bool = False
    costly: bool = False
    turns: bool = False
    jumps: bool = False
    carries: bool = False
    either: bool = False
    effect: bool = False
    model: str = "elementwise"

    @property
    def contraction(self) -> bool:
        """Whether it amounts to a matrix product."""
        return self.matrix is not None


def _elementwise(
    name: str,
    rule: Callable[..., Array] | None = None,
    vector: str = "",
    *,
    reference: Rule | None = None,
    flops: Callable[[Op], int] = flops.each,
    exact: bool = False,
    costly: bool = False,
    jumps: bool = False,
    carries: bool = False,
    model: str = "elementwise",
) -> Primitive:
    """One FLOP for each element of the result; with vector code it can be split anywhere."""
    return Primitive(
        name,
        flops=flops,
        reference=each(rule) if rule is not None else reference,
        split=splits.elementwise if vector else None,
        vector=vector,
        exact=exact,
        costly=costly,
        jumps=jumps,
        carries=carries,
        model=model,
    )


def _moving(
    name: str,
    *,
    reference: Rule,
    split: Split | None = None,
    axes: Moved | None = None,
    kernel: str = "",
    carries: bool = False,
) -> Primitive:
    """No FLOP."""
    return Primitive(
        name, flops=flops.none, reference=reference, split=split, axes=axes, kernel=kernel, carries=carries
    )


def _reduction(how: str, rule: Callable[..., Array], **start: float) -> Primitive:
    """A reduction over some axes."""
    return Primitive(
        f"reduce_{how}",
        flops=flops.operands,
        reference=numpy_rules.reduce(rule, **start),
        split=splits.reduce,
        combine=how,
        kernel=".reductions.reduce",
        model=f"reduce_{how}",
    )


def _pool(how: str, rule: Callable[..., Array], start: float) -> Primitive:
    """A reduction over windows."""
    return Primitive(
        f"reduce_window_{how}",
        flops=flops.window,
        reference=numpy_rules.window(rule, start),
        split=splits.window,
        combine=how,
        kernel=".reductions.pool",
        model=f"reduce_window_{how}",
    )


def _flops(op: Op) -> int:
    """FLOP of an operation inside of a loop; one for each element of its results where nobody has counted."""
    rule = primitive(op).flops
    return rule(op) if rule is not None else flops.each(op)


def _apply(op: Op, *operands: Array) -> Array | list[Array]:
    """The NumPy reference of an operation inside of a loop. Raises `NotImplementedError` where it has none."""
    rule = primitive(op).reference
    if rule is None:
        raise NotImplementedError(f"{op.prim} has no NumPy reference.")
    return rule(op, *operands)


_TABLE = (
    Primitive(
        CONVOLUTION,
        flops=flops.convolution,
        reference=numpy_rules.convolution,
        split=splits.convolution,
        matrix=products.convolution,
        channels=products.convolution_channels,
        kernel=".conv.conv",
    ),
    Primitive(
        "dot_general",
        flops=flops.product,
        reference=numpy_rules.product,
        split=splits.product,
        matrix=products.product,
        channels=products.product_channels,
        kernel=".dot.dot",
        turns=True,
        either=True,
    ),
    _reduction("sum", np.sum),
    _reduction("max", np.max, initial=-np.inf),
    _reduction("min", np.min, initial=np.inf),
    _reduction("prod", np.prod),
    _reduction("and", np.all),
    _reduction("or", np.any),
    _pool("sum", np.add, 0.0),
    _pool("max", np.maximum, -np.inf),
    _pool("min", np.minimum, np.inf),
    Primitive(
        "select_and_scatter_add",
        flops=flops.chosen,
        reference=numpy_rules.select_and_scatter_add,
        split=splits.unpooled,
        kernel=".unpool.select_and_scatter_add",
        model="reduce_window_max",
    ),
    *(
        Primitive(
            name,
            flops=flops.operands,
            reference=numpy_rules.position(rule),
            kernel=".reductions.position",
            model="reduce_max",
        )
        for name, rule in (("argmax", np.argmax), ("argmin", np.argmin))
    ),
    # -- movement
    _moving(
        "broadcast_in_dim",
        reference=numpy_rules.broadcast,
        split=splits.broadcast,
        axes=movement.broadcast,
        carries=True,
    ),
    _moving(
        "transpose", reference=numpy_rules.transpose, split=splits.transpose, axes=movement.transpose, carries=True
    ),
    _moving("slice", reference=numpy_rules.slice_, split=splits.slice_, axes=movement.slice_),
    _moving("rev", reference=numpy_rules.rev, split=splits.rev, axes=movement.rev),
    _moving("squeeze", reference=numpy_rules.squeeze, split=splits.squeeze, axes=movement.squeeze, carries=True),
    _moving(
        "reshape",
        reference=numpy_rules.reshape,
        split=splits.reshape,
        axes=movement.reshape,
        kernel=".moves.reshape",
        carries=True,
    ),
    _moving(
        "concatenate",
        reference=numpy_rules.concatenate,
        split=splits.concatenate,
        kernel=".moves.concatenate",
        carries=True,
    ),
    _moving("pad", reference=numpy_rules.pad, split=splits.pad, kernel=".moves.pad"),
    _moving("gather", reference=indexing.gather, split=splits.gather, kernel=".indexed.gather"),
    *(
        Primitive(name, flops=indexing.joined, reference=indexing.scatter(join), kernel=".indexed.scatter")
        for name, join in (
            ("scatter", lambda x, y: y),
            ("scatter-add", np.add),
            ("scatter-sub", np.subtract),
            ("scatter-mul", np.multiply),
            ("scatter-max", np.maximum),
            ("scatter-min", np.minimum),
        )
    ),
    _moving("dynamic_slice", reference=numpy_rules.dynamic_slice, kernel=".moves.dynamic_slice"),
    _moving(
        "dynamic_update_slice",
        reference=numpy_rules.dynamic_update_slice,
        kernel=".moves.dynamic_update_slice",
    ),
    _moving("iota", reference=numpy_rules.iota),
    # -- loops
    Primitive(
        "scan",
        flops=lambda op: loops.each_turn(op, _flops),
        reference=lambda op, *operands: loops.repeat(_apply, op, *operands),
        kernel=".loops.scan",
        model="scan",
    ),
    Primitive(  # nobody knows how many turns it has
        "while",
        reference=lambda op, *operands: loops.repeat_while(_apply, op, *operands),
        kernel=".loops.while_",
        model="while",
    ),
    # -- elementwise, with vector code
    _elementwise("add", np.add, "fi"),
    _elementwise("add_any", np.add, "fi"),
    _elementwise("sub", np.subtract, "fi"),
    _elementwise("mul", np.multiply, "fi"),
    _elementwise("div", numpy_rules.divide, "fi", costly=True),
    _elementwise("rem", numpy_rules.remainder, "i", costly=True),
    _elementwise("pow", np.power, "f", costly=True),
    _elementwise("sin", np.sin, "f", costly=True),
    _elementwise("cos", np.cos, "f", costly=True),
    _elementwise("max", np.maximum, "fib", exact=True),
    _elementwise("min", np.minimum, "fib", exact=True),
    _elementwise("neg", np.negative, "fi", exact=True),
    _elementwise("abs", np.abs, "fi", exact=True),
    _elementwise("sqrt", np.sqrt, "f", costly=True),
    _elementwise("rsqrt", lambda x: 1 / np.sqrt(x), "f", costly=True),
    _elementwise("square", np.square, "fi"),
    _elementwise("integer_pow", reference=numpy_rules.integer_pow, vector="fi"),
    _elementwise("exp", np.exp, "f", costly=True),
    _elementwise("exp2", np.exp2, "f", costly=True),
    _elementwise("log", np.log, "f", costly=True),
    _elementwise("tanh", np.tanh, "f", costly=True),
    _elementwise("logistic", numpy_rules.logistic, "f", costly=True),
    _elementwise("erf", numpy_rules.erf, "f", costly=True),
    _elementwise("erfc", numpy_rules.erfc, "f", costly=True),
    _elementwise("log1p", np.log1p, "f", costly=True),
    _elementwise("expm1", np.expm1, "f", costly=True),
    _elementwise("floor", np.floor, "f", exact=True, jumps=True),
    _elementwise("ceil", np.ceil, "f", exact=True, jumps=True),
    _elementwise("round", reference=numpy_rules.rounded, vector="f", exact=True, jumps=True),
    _elementwise("is_finite", np.isfinite, "f", jumps=True),
    _elementwise("sign", np.sign, "fi", exact=True, jumps=True),
    _elementwise("eq", np.equal, "fib", jumps=True),
    _elementwise("ne", np.not_equal, "fib", jumps=True),
    _elementwise("lt", np.less, "fib", jumps=True),
    _elementwise("le", np.less_equal, "fib", jumps=True),
    _elementwise("gt", np.greater, "fib", jumps=True),
    _elementwise("ge", np.greater_equal, "fib", jumps=True),
    _elementwise("and", np.bitwise_and, "ib", jumps=True),
    _elementwise("or", np.bitwise_or, "ib", jumps=True),
    _elementwise("xor", np.bitwise_xor, "ib"),
    _elementwise("not", np.bitwise_not, "ib", jumps=True),
    _elementwise("clamp", lambda lo, x, hi: np.minimum(np.maximum(x, lo), hi), "fib", exact=True),
    _elementwise("select_n", numpy_rules.select_n, "ib", flops=flops.none, exact=True),
    _elementwise("stop_gradient", lambda x: x, "fib", flops=flops.none, exact=True, carries=True),
    _elementwise("copy", lambda x: x, "fib", flops=flops.none, exact=True, carries=True),
    _elementwise(
        "convert_element_type",
        reference=numpy_rules.convert,
        vector="fib",
        flops=flops.none,
        jumps=True,
        carries=True,
    ),
    # the kernels' own: the nearest number of a type, of one that is held with more bits
    *(
        _elementwise(name, reference=numpy_rules.nearest(to), vector="f", flops=flops.none, exact=True, jumps=True)
        for to, name in ROUNDS.items()
    ),
    # -- elementwise, for which there is no vector code
    *(
        _elementwise(name)
        for name in (
            *("tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh", "atanh", "cbrt"),
            *("erf_inv", "lgamma", "digamma", "nextafter", "real", "imag", "conj"),
            *("shift_left", "shift_right_logical", "shift_right_arithmetic", "population_count", "clz"),
        )
    ),
    _elementwise("reduce_precision", model="reduce_precision"),
    # -- counted, and nothing more
    *(Primitive(name, flops=flops.operands) for name in ("cumsum", "cumprod", "cummax", "cummin")),
    Primitive("reduce_xor", model="reduce_xor"),
    # -- with an effect
    *(Primitive(name, effect=True) for name in ("debug_callback", "io_callback", "pure_callback", "random_seed")),
)

PRIMITIVES: dict[str, Primitive] = {p.name: p for p in _TABLE}
UNKNOWN = Primitive("")


def primitive(op: Op) -> Primitive:
    """The entry of an operation's primitive; `UNKNOWN` where it has none, and nothing is known of it."""
    return PRIMITIVES.get(op.prim, UNKNOWN)


def is_elementwise(op: Op) -> bool:
    """Whether `op` works element by element in a way that has vector code (types are checked later)."""
    if op.prim == "convert_element_type":
        return bool(kind(op.ins[0].dtype)) and bool(kind(op.out.dtype))
    return bool(primitive(op).vector)


def is_movement(op: Op) -> bool:
    """Whether `op` only moves elements, in a way that an expression can follow in general."""
    return primitive(op).axes is not None


def is_view(op: Op) -> bool:
    """Whether `op` only moves elements in a way that a `View` can express."""
    if op.prim == "reshape":
        return [n for n in op.ins[0].shape if n != 1] == [n for n in op.out.shape if n != 1]
    return is_movement(op)


def is_anchor(op: Op) -> bool:
    """Whether kernels have a rule of its own for `op`: it begins a layer; others join the layer of their operand."""
    return bool(primitive(op).kernel)


def is_reduction(op: Op) -> bool:
    """Whether `op` joins the elements along some axes, in a way that kernels know."""
    return bool(primitive(op).combine) and "axes" in op.params


def is_broadcast(op: Op) -> bool:
    """Whether `op` spreads its operand: what it makes of a constant is read with stride 0 and never stored."""
    return op.prim == "broadcast_in_dim"
