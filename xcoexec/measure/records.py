"""The records that the disk cache keeps, as data: of each kind what fits it. What does not fit is measured anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.store.disk import Record
from ..codegen.store.schema import MEASURED, RATE, SECONDS, Fields, Flag, Number, Row, Table, Text, Where
from ..cost.predictor import REST
from ..cost.regress import POINTS
from ..ir.words import AXES, DEVICE, HALVES, HOST
from .contention import MOST

WAYS = tuple(f"{what} {way}" for what in ("read", "write") for way in ("mapped", "copy"))

# -- measured seconds --------------------------------------------------------------------------------

#: signature of a layer -> its seconds on XLA:CPU
WHOLES = Record("device", Table(MEASURED))

_part = Row((Text(AXES), Number(1e-6, 1 - 1e-6), MEASURED))


def _once(row: Sequence[Any]) -> bool:
    """Whether each part is there once: between two of the same share there is no line."""
    return len({(dim, share) for dim, share, _ in row[1:]}) == len(row) - 1


#: signature of a layer -> its seconds, then (dim, share, seconds) of parts of it
PARTS = Record("parts", Table(Where(Row((MEASURED,), _part), _once, "a row that has each part once")))

CONTENTION = Record("contention", Number(1.0, MOST))

_moves = Where(
    Table(Row((SECONDS, RATE))),
    lambda moves: set(moves) in (set(), set(WAYS)),
    f"an empty table, or one with {', '.join(WAYS)}",
)
#: `links.Overheads`
OVERHEADS = Record("overhead", Fields({"sync": SECONDS, "rate": RATE, "moves": _moves, "stream_rate": RATE}))

#: `transfers.rate_beside_reads`
STREAMING = Record("streaming", Row((RATE,)))

# -- the predictor -----------------------------------------------------------------------------------

#: half, or class of kernels -> (terms, traits) of its models, as cost/terms.py makes them
SIZES = {HOST: (11, 7), DEVICE: (6, 3), "product": (10, 6), REST: (3, 1)}
#: classes of the device half; each kind of tiles adds a term
PRODUCTS = ("dense", "vector", "conv", "pointwise", "depthwise")

_count = Number(1, 1 << 20, whole=True)
_model = Fields(
    {
        "coefficients": Row((), Number(0.0, 1e6), most=64),
        "points": Row((), Row((), Number(-1e6, 1e6), least=1, most=64), least=1, most=POINTS),
        "lengths": Row((), Number(1e-6, 1e6), most=64),
        "values": Row((), Number(-1e6, 1e6), most=POINTS),
        "scale": Number(0.0, 1e3),
        "spread": Number(0.0, 1e3),
    }
)
_around = Fields(
    {
        "sync": SECONDS,
        "copy_rate": RATE,
        "contention": Number(1.0, MOST),
        "shared_cores": Flag(),
        "moves": _moves,
        "stream_rate": RATE,
    },
    optional=("moves", "stream_rate"),
)
_predictor = Fields(
    {
        "models": Row((), Row((Text(HALVES), Text(), _model)), most=1000),
        "blocks": Row((Row((), Row((_count, _count)), most=64), _count)),
        "threads": _count,
        "around": _around,
    }
)


def _consistent(data: Mapping[str, Any]) -> bool:
    """Whether every model has the terms and traits of its class, and each half one for all other classes."""
    tiles = len(data["blocks"][0])
    for half, kind, model in data["models"]:
        product = half == DEVICE and kind in PRODUCTS
        terms, traits = SIZES[REST if kind == REST else "product" if product else half]
        widths = {len(model["lengths"]), *map(len, model["points"])}
        if len(model["coefficients"]) != terms + tiles * product or widths != {traits}:
            return False
        if len(model["values"]) != len(model["points"]):
            return False
    return {(half, REST) for half in HALVES} <= {(half, kind) for half, kind, _ in data["models"]}


#: what `Predictor.to_json` writes
PREDICTOR = Record("predictor", Where(_predictor, _consistent, "models with the terms and traits of their classes"))

#: of a function's first call: what plain `jax.jit` took, and what a remembered plan takes
BEGIN = Record("begin", Fields({"plain": SECONDS, "plan": SECONDS}))

__all__ = ["BEGIN", "CONTENTION", "OVERHEADS", "PARTS", "PREDICTOR", "WHOLES"]
