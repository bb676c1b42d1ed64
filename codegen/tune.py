"""Block shapes of the matrix micro-kernel, chosen by measurement on this machine."""

from __future__ import annotations

from .target import Target


def candidates(target: Target) -> list[tuple[int, int]]:
    """(rows, vectors) whose accumulators, weights and one broadcast fit the registers."""
    return [(mr, nv) for nv in range(1, 7) for mr in range(1, 17) if mr * nv + nv + 1 <= target.registers]


def block_shape(target: Target, pixels: int, channels: int) -> tuple[int, int]:
    """The (rows, vectors) with the least predicted time for `pixels` x `channels` outputs of one group."""
    vectors = -(-channels // target.vl)

    def cost(shape: tuple[int, int]) -> float:
        mr, nv = shape
        tiles, blocks = -(-pixels // mr), -(-vectors // nv)
        rows, width = -(-pixels // tiles), -(-vectors // blocks)
        cycles = max(rows * width, 4.0, 0.8 * (rows + width)) + 0.15 * (rows + width)
        return tiles * blocks * cycles

    return min((s for s in candidates(target)), key=lambda s: (round(cost(s), 3), -s[1]))
