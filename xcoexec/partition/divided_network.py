"""A network of which every device computes a part of each large layer: for one call that somebody waits for.

    all of x --> layer, its channels out --> relu, heads, depthwise: its own  --> layer, its channels in, added up
    all of x --> layer, its rows         --> next layer, borders from others  --> mean, added up

What is divided along which axis is followed forwards, with the partitioner's rules: a result is divided along an axis
where an n-th of it needs just an n-th of what is divided already. A layer whose input lies divided along its channels
in takes the weights of these, and the results of all devices are added up (Shoeybi et al. 2019, Megatron-LM).
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ..codegen.program import Indivisible, Literal, Op, Value
from ..codegen.rules.primitives import primitive
from .equal_parts import equal_parts, image_rows, summed

CHANNEL, ROWS = "channel", "rows"
ALONG = {CHANNEL: "channels out", "sums": "channels in", ROWS: "rows"}
FOREVER = 200  # walks, each of which leaves out what did not pay in the one before

Seconds = Callable[[Op], float]  # of an operation on one device; a share of it takes a share of them


@dataclasses.dataclass(frozen=True)
class Exchange:
    """What devices give one another within a program: seconds of an exchange, and bytes a second of it."""

    hop: float
    rate: float

    def seconds(self, size: float) -> float:
        """Seconds of an exchange in which a device gets so many bytes."""
        return self.hop + size / self.rate


@dataclasses.dataclass(frozen=True)
class DividedLayer:
    """A layer of which each device computes a part. `along`: "channels out", "channels in" or "rows"; `seconds` of a
    call on one device, and `share` of it on each of several.
    """

    layer: str
    along: str
    seconds: float
    share: float


@dataclasses.dataclass(frozen=True, eq=False)
class DividedNetwork:
    """Operations over `count` devices. `axes`: of values and weights (`weights`) that lie divided, along which;
    `gathers`: operands that an operation reads as a whole though they lie divided; `wholes`: results of layers that lie
    on all devices; `state`: results that stay as they lie; `exchanges`: seconds of what devices give one another.
    """

    count: int
    axes: Mapping[Value, int]
    weights: Mapping[Value, int]
    gathers: Mapping[Op, frozenset[int]]
    wholes: frozenset[Value]
    state: frozenset[Value]
    layers: tuple[DividedLayer, ...]
    exchanges: float

    @property
    def saved(self) -> float:
        """Seconds by which a call is shorter than on one device, as calculated."""
        return sum(x.seconds - x.share for x in self.layers) - self.exchanges


def divided(
    ops: Sequence[Op],
    known: Collection[Value],
    outputs: Sequence[Value | Literal],
    count: int,
    dim: str,
    seconds: Seconds,
    exchange: Exchange,
    state: Sequence[tuple[Value, Value]] = (),
) -> DividedNetwork:
    """The division of operations over `count` devices by "channel" or by "rows". `known`: the weights; `state`: pairs
    (input, result) of a state that comes back, which may lie divided. What costs more exchanges than it saves is left
    whole.
    """
    without, inputs = set[Op](), dict[Value, int]()
    back = {out for _, out in state}
    for _ in range(FOREVER):
        walk = _Walk(count, dim, seconds, exchange, without, inputs)
        walk.known |= set(known)
        walk.walk(ops)
        for v in outputs:
            if v not in back:
                walk.gather(v)
        lost = walk.losing()
        held = {a: walk.axes[b] for a, b in state if b in walk.axes and a.shape == b.shape}
        if not lost and held == inputs:
            break
        without |= lost
        inputs = held if not lost else {}
    layers = tuple(walk.layers())
    lying = walk.axes if layers else {}
    spent = sum(s for _, s in walk.costs) if layers else 0.0
    reads = {op: frozenset(i) for op, i in walk.gathers.items()}
    return DividedNetwork(count, lying, walk.weights, reads, frozenset(walk.wholes), frozenset(back), layers, spent)


class _Walk:
    """One way through the operations. `without`: those that stay whole; `owed`: of a divided value the operations whose
    division an exchange of it is to pay for; `origin`: of what is made of weights, what it is made of, and which of
    that one's axes one of its own is.
    """

    def __init__(
        self, count: int, dim: str, seconds: Seconds, exchange: Exchange, without: set[Op], inputs: Mapping[Value, int]
    ):
        self.count, self.dim, self.seconds, self.exchange, self.without = count, dim, seconds, exchange, without
        self.axes, self.weights = dict(inputs), dict[Value, int]()
        self.known, self.whole_weights, self.wholes = set[Value](), set[Value](), set[Value]()
        self.owed: dict[Value, frozenset[Op]] = {v: frozenset() for v in inputs}
        self.origin: dict[Value, tuple[Value, Callable[[int], int]]] = {}
        self.users: dict[Value, set[Op]] = defaultdict(set)
        self.gathers: dict[Op, set[int]] = defaultdict(set)
        self.there: set[Value] = set()  # divided values that lie on all devices too
        self.costs: list[tuple[frozenset[Op], float]] = []
        self.ways: dict[Op, tuple[str, float]] = {}  # of a divided layer, and seconds of all its turns
        self.turns = 1

    def walk(self, ops: Sequence[Op]) -> None:
        """Follows operations in order."""
        for op in ops:
            if all(v in self.known for v in op.value_ins):
                self._made_of_weights(op)
            elif op.body is not None and op.prim == "scan":
                self._loop(op)
            elif not any(step(op) for step in (self._image, self._follow, self._sum, self._channels)):
                self._whole(op)

    # -- weights

    def _made_of_weights(self, op: Op) -> None:
        """What weights alone make is known too; where its axes are those of one of them, it lies as that does."""
        self.known.update(op.outs)
        mine = [v for v in op.value_ins if len(op.outs) == 1 and op.body is None]
        main = max(mine, key=lambda v: v.nbytes, default=None)
        for v in op.value_ins:
            if v is not main:
                self._read_whole(v)
        if main is not None:
            self.origin[op.out] = (main, lambda axis: _sure(equal_parts(op, axis, self.count)[op.ins.index(main)]))

    def _leaf(self, v: Value, axis: int = -1) -> tuple[Value, int]:
        """The weight that a known value is made of, and which axis of it one of the value is. Raises `Indivisible`."""
        while v in self.origin:
            v, back = self.origin[v]
            axis = back(axis) if axis >= 0 else axis
        return v, axis

    def _read_whole(self, v: Value) -> None:
        self.whole_weights.add(self._leaf(v)[0])

    def _placed(self, op: Op, v: Value | Literal, axis: int | None) -> bool:
        """Whether the weight behind a layer's operand lies divided along the operand's axis, from now on if need be."""
        if isinstance(v, Literal) or axis is None:
            return False
        try:
            leaf, i = self._leaf(v, axis)
        except Indivisible:
            return False
        if leaf.shape[i] % self.count or self.weights.get(leaf, i) != i:
            return False
        self.weights[leaf] = i
        self.users[leaf].add(op)
        return True

    # -- ways in which an operation may be divided; each says whether it is the one

    def _follow(self, op: Op) -> bool:
        """An n-th of the result needs just an n-th of what lies divided."""
        lying = [(i, v) for i, v in enumerate(op.ins) if isinstance(v, Value) and v in self.axes]
        if not lying or op in self.without:
            return False
        heavy = primitive(op).contraction
        for axis, need in self._parts(op):
            if all(need[i] == self.axes[v] for i, v in lying):
                self._divide(op, axis, [v for _, v in lying])
                for v, a in zip(op.ins, need, strict=True):
                    if isinstance(v, Value) and v in self.known and not (heavy and self._placed(op, v, a)):
                        self._read_whole(v)
                if heavy:
                    self._counts(op, CHANNEL if self.dim == CHANNEL else ROWS)
                return True
        return False

    def _parts(self, op: Op) -> Iterator[tuple[int, tuple[int | None, ...]]]:
        """Each axis of a result that has equal parts, and along which axes these divide the operands."""
        for axis in range(len(op.out.shape)):
            with contextlib.suppress(Indivisible):
                yield axis, equal_parts(op, axis, self.count)

    def _sum(self, op: Op) -> bool:
        """A layer whose input lies divided along its channels in: every device has the weights of its own."""
        if self.dim != CHANNEL or op in self.without:
            return False
        for x, w in _operands(op, self.known):
            v = op.ins[x]
            for a, b in summed(op, x):
                if isinstance(v, Value) and self.axes.get(v) == a and self._placed(op, op.ins[w], b):
                    self._counts(op, "sums")
                    self._pay(self.owed[v] | {op}, 2 * op.out.nbytes)
                    self.wholes.add(op.out)
                    return True
        return False

    def _channels(self, op: Op) -> bool:
        """A layer that every device computes a part of the channels of, from all of its input."""
        if self.dim != CHANNEL or op in self.without:
            return False
        for x, w in _operands(op, self.known):
            for axis, need in self._parts(op):
                free = need[x] is None or op.ins[x] not in self.axes
                if free and self._placed(op, op.ins[w], need[w]):
                    self._gathered(op, x)
                    self._counts(op, CHANNEL)
                    self._divide(op, axis, ())
                    return True
        return False

    def _image(self, op: Op) -> bool:
        """A convolution, or windows, by rows of the image: each device reads some rows of others. A mean or maximum
        over rows is put together of those of all devices.
        """
        x = op.ins[0] if op.ins else None
        if self.dim != ROWS or op in self.without or not isinstance(x, Value) or x in self.known:
            return False
        if op.prim in ("reduce_sum", "reduce_max", "reduce_min") and self.axes.get(x) in op.params["axes"]:
            self._pay(self.owed[x], 2 * op.out.nbytes)
            self.wholes.add(op.out)
            return True
        rows = image_rows(op)
        if rows is None or (x in self.axes and self.axes[x] != rows.axis) or op.out.shape[rows.result] % self.count:
            return False
        cost = self.exchange.seconds(x.nbytes / x.shape[rows.axis] * rows.border) if rows.border else 0.0
        heavy = primitive(op).contraction
        if x.shape[rows.axis] % self.count or not (x in self.axes if not heavy else self._gain(op) > cost):
            return False
        for v in op.value_ins[1:]:
            self._read_whole(v) if v in self.known else self.gather(v, op)
        lying = [x] if x in self.axes else []
        self._divide(op, rows.result, lying)
        if heavy:
            self._counts(op, ROWS)
        if rows.border and lying:
            self.costs.append((self.owed[op.out], self.turns * cost))
        return True

    def _loop(self, op: Op) -> None:
        """Each turn of a loop is divided as what stands around it; between turns all lies on all devices."""
        assert op.body is not None
        same, carried = op.body.same, op.body.carried
        for i, (v, inner) in enumerate(zip(op.ins, op.body.inputs, strict=True)):
            weight = isinstance(v, Value) and v in self.known and not same <= i < same + carried
            if weight and isinstance(v, Value):
                self.known.add(inner)
                shift = 0 if i < same else 1
                self.origin[inner] = (v, lambda axis, by=shift: axis + by)  # type: ignore[misc]
            else:
                self._gathered(op, i)
        before, self.turns = self.turns, self.turns * int(op.params["length"])
        self.walk(op.body.ops)
        for v in op.body.outputs:
            self.gather(v)
        self.turns = before

    def _whole(self, op: Op) -> None:
        """An operation that every device computes all of."""
        for i in range(len(op.ins)):
            self._gathered(op, i)
        for v in op.body.consts if op.body is not None else ():
            self._read_whole(v)
        if primitive(op).contraction:
            self.wholes.update(op.outs)

    # -- what it costs

    def _gain(self, op: Op) -> float:
        return self.seconds(op) * (1 - 1 / self.count)

    def _counts(self, op: Op, way: str) -> None:
        self.ways[op] = (way, self.turns * self.seconds(op))

    def _divide(self, op: Op, axis: int, lying: Collection[Value]) -> None:
        self.axes[op.out] = axis
        self.owed[op.out] = frozenset({op} if primitive(op).contraction else ()).union(*(self.owed[v] for v in lying))

    def _pay(self, owing: frozenset[Op], size: float) -> None:
        """An exchange of an array of so many bytes: a device gets what it has not."""
        self.costs.append((owing, self.turns * self.exchange.seconds(size * (1 - 1 / self.count))))

    def _gathered(self, op: Op, i: int) -> None:
        v = op.ins[i]
        if isinstance(v, Value) and v in self.known:
            self._read_whole(v)
        elif v in self.axes:
            self.gather(v)
            self.gathers[op].add(i)

    def gather(self, v: Value | Literal, op: Op | None = None) -> None:
        """All devices get all of a value, once for all who read it so."""
        if isinstance(v, Literal) or v not in self.axes:
            if v in self.known:
                self._read_whole(v)
            return
        if op is not None:
            self.gathers[op].add(op.ins.index(v))
        if v not in self.there:
            self._pay(self.owed[v], v.nbytes)
            self.there.add(v)
            self.owed[v] = frozenset()

    def losing(self) -> set[Op]:
        """Layers that are not worth the exchanges which they share, and those whose weight is read as a whole too."""
        lost = set().union(*(ops for leaf, ops in self.users.items() if leaf in self.whole_weights))
        bundles: list[tuple[set[Op], float]] = []
        for owing, cost in self.costs:
            mine, total = set(owing), cost
            for other in [b for b in bundles if b[0] & mine]:
                bundles.remove(other)
                mine, total = mine | other[0], total + other[1]
            bundles.append((mine, total))
        for mine, total in bundles:
            if sum(self.ways[op][1] for op in mine) * (1 - 1 / self.count) <= total:
                lost |= mine
        return lost

    def layers(self) -> Iterator[DividedLayer]:
        """What is divided, in order."""
        for op, (way, seconds) in self.ways.items():
            yield DividedLayer(op.name or op.prim, ALONG[way], seconds, seconds / self.count)


def _sure(axis: int | None) -> int:
    if axis is None:
        raise Indivisible("a weight has not the axis of what is made of it.")
    return axis


def _operands(op: Op, known: Collection[Value | Literal]) -> list[tuple[int, int]]:
    """(operand that is computed, operand of weights) of a layer."""
    if not primitive(op).contraction:
        return []
    return [(x, w) for x, w in ((0, 1), (1, 0)) if op.ins[x] not in known and op.ins[w] in known]


__all__ = ["CHANNEL", "ROWS", "DividedLayer", "DividedNetwork", "Exchange", "divided"]
