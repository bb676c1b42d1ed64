"""Movement as a change of axes: how each dimension of the operand follows from the index of the result."""

from __future__ import annotations

from ..program import Op, Unsupported

#: One dimension of an operand, as a function of the output index: `start + step * index[dim]`.
Axis = tuple[int | None, int, int]


def reshape(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """A reshape that only adds or drops dimensions of size 1, as a view.

    Raises `Unsupported` for one that regroups dimensions: its shapes differ in more than ones.
    """
    shape, out = op.value_ins[0].shape, op.out.shape
    if [n for n in shape if n != 1] != [n for n in out if n != 1]:
        raise Unsupported(f"reshape {shape} -> {out} regroups dimensions inside an elementwise group")
    kept = iter(a for a, n in zip(axes, out, strict=True) if n != 1)
    return tuple(next(kept) if n != 1 else (None, 0, 0) for n in shape)


def rev(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Reversed dimensions are walked from their end."""
    flip = op.params["dimensions"]
    return tuple(
        (d, -s, n - 1 - o) if i in flip else (d, s, o)
        for i, ((d, s, o), n) in enumerate(zip(axes, op.out.shape, strict=True))
    )


def slice_(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Starts and strides of the slice are added to each axis."""
    steps = op.params["strides"] or (1,) * len(axes)
    return tuple(
        (d, s * k, start + k * o) for (d, s, o), start, k in zip(axes, op.params["start_indices"], steps, strict=True)
    )


def broadcast(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """An axis of the operand that is spread stays at its only element."""
    dims, source = op.params["broadcast_dimensions"], op.ins[0].shape
    return tuple(
        axes[d] if n == op.out.shape[d] and n != 1 else (None, 0, 0) for d, n in zip(dims, source, strict=True)
    )


def squeeze(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """Axes that the result has lost stay at their only element."""
    rest = iter(axes)
    return tuple((None, 0, 0) if i in op.params["dimensions"] else next(rest) for i in range(len(op.ins[0].shape)))


def transpose(op: Op, axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The axes in the operand's order."""
    perm = op.params["permutation"]
    return tuple(axes[perm.index(i)] for i in range(len(perm)))
