"""Tiles in memory, for machines without any: what AMX says of its instructions, number by number."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import llvmlite.ir as ir

from xcoexec.codegen.kernels import tiles
from xcoexec.codegen.kernels.simd import Builder
from xcoexec.codegen.kernels.tiles import LINE, ROWS, WORDS
from xcoexec.codegen.kernels.vectors import i64
from xcoexec.codegen.native.build import Spec, family
from xcoexec.codegen.target import MatrixUnit, Target

UNITS = (
    MatrixUnit("memory_bf16", "bfloat16", "toy_memory_tiles", (), 16, (16, 4), per=2, step=16),
    MatrixUnit("memory_int8", "int8", "toy_memory_tiles", (), 16, (16, 4), per=4, step=16),
)


@dataclasses.dataclass
class Memory:
    """As `tiles.Amx`."""

    v: Builder
    dtype: str

    def begin(self, rows: Sequence[int]) -> None:
        self.rows = rows
        self.places = [self.v.local(ROWS * WORDS) for _ in range(8)]

    def _rows(self, tile: int) -> ir.Value:
        return i64(self.rows[tile])

    def zero(self, tile: int) -> None:
        with self.v.loop(self._rows(tile)) as r:
            self.v.store(self.v.const(0.0), self.v.add(self.places[tile], self.v.mul(r, LINE)))

    def load(self, tile: int, addr: ir.Value, stride: ir.Value) -> None:
        with self.v.loop(self._rows(tile)) as r:
            row = self.v.load(self.v.add(addr, self.v.b.mul(r, stride)))
            self.v.store(row, self.v.add(self.places[tile], self.v.mul(r, LINE)))

    def multiply(self, sums: int, x: int, w: int) -> None:
        v, to = self.v, self.places
        with v.loop(self._rows(sums)) as r, v.loop(i64(WORDS)) as k:
            at = v.add(to[sums], v.mul(r, LINE))
            word = v.broadcast(v.add(to[x], v.mul(r, LINE), v.mul(k, 4)))
            v.store(self._added(v.load(at), word, v.load(v.add(to[w], v.mul(k, LINE)))), at)

    def _added(self, total: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        v = self.v
        bits = [v.bits(x) for x in (a, b)]
        if self.dtype == "bfloat16":
            for up in (16, 0):
                x, y = (v.floats(v.b.and_(v.b.shl(n, v.iconst(up)), v.iconst(-0x10000))) for n in bits)
                total = v.fma(x, y, total)
            return total
        whole = v.bits(total)
        for up in (24, 16, 8, 0):
            x, y = (v.b.ashr(v.b.shl(n, v.iconst(up)), v.iconst(24)) for n in bits)
            whole = v.b.add(whole, v.b.mul(x, y))
        return v.floats(whole)

    def store(self, tile: int, addr: ir.Value, stride: ir.Value) -> None:
        with self.v.loop(self._rows(tile)) as r:
            row = self.v.load(self.v.add(self.places[tile], self.v.mul(r, LINE)))
            self.v.store(row, self.v.add(addr, self.v.b.mul(r, stride)))

    def end(self) -> None:
        """There is nothing to give back."""


@family("toy_memory_tiles")
def kernel(name: str, key: Spec, target: Target) -> str:
    """Arguments and words are those of `gemm`; the spec's first entry is this family's name."""
    return tiles.kernel(name, key, target, Memory)
