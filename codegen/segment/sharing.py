"""Which results of a segment may be written over one of its operands: updates of a state in place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..native.layout import MAX_RANK, Nest
from .assembly import Segment
from .steps import Kernel, Ref, Step
from .storage import Buffer

#: kernels of nests whose elements may be written over -> how many words come before those of their operands
AHEAD = {"elementwise": 2, "columns": 7}


def shareable(segment: Segment) -> tuple[tuple[int, int], ...]:
    """Pairs (operand, result) that may lie in the same memory, as each alone may: no step reads the operand after the
    first one that writes the result, and that step itself reads each element before it writes the one in its place.
    """
    program, steps = segment.program, segment.steps
    operands = {v: i for i, v in enumerate(program.inputs)}
    last = {b.index: i for i, s in enumerate(steps) for b in s.reads if b.kind == "arg"}  # the step that reads it last
    found = []
    for o, out in enumerate(program.outputs):
        writers = [(i, b) for i, s in enumerate(steps) for b in s.writes if b.kind == "ret" and b.index == o]
        if not writers or out in operands:
            continue
        (at, target), same = writers[0], (out.shape, out.dtype)
        alike = [i for v, i in operands.items() if (v.shape, v.dtype) == same and last.get(i, -1) <= at]
        found += [(i, o) for i in alike if last.get(i, -1) < at or _in_step(steps[at], i, target)]
    return tuple(found)


def _in_step(step: Step, operand: int, target: Buffer) -> bool:
    """Whether a step that reads an operand may write over it, as `target`."""
    source = next(b for b in step.reads if b.kind == "arg" and b.index == operand)
    return _element_by_element(step, source, target)


def _element_by_element(step: Step, source: Buffer, target: Buffer) -> bool:
    """Whether a step walks over a buffer as it does over its result, element by element. Its kernel reads all that a
    vector of its results needs before it writes any of them; the tail of a row is masked, so that no element is read
    twice.
    """
    if step.driver != "nest" or step.kernel not in AHEAD:
        return False
    walks: dict[Buffer, set[tuple[object, ...]]] = {}
    for buffer, walk in _walks(step):
        walks.setdefault(buffer, set()).add(walk)
    return len(walks[target]) == 1 and walks.get(source) == walks[target]


def _walks(step: Step) -> Iterator[tuple[Buffer, tuple[object, ...]]]:
    """Each operand of a nest, and the bytes of every way that its loops and its kernel go over it."""
    kernel, count = step.words[0], step.words[Nest.OPERANDS]
    assert isinstance(kernel, Kernel) and isinstance(count, int)
    first, width = int(Nest.VIEWS), 1 + MAX_RANK  # a reference is one word here
    name, own = step.kernel, step.words[first + count * width :]
    partial = name == "columns" and bool(kernel.spec[2])  # results of its reductions come first
    kinds: Sequence[str] = kernel.spec[4 if name == "columns" else 2]
    each = 2 if name == "columns" else 1
    for k in range(count):
        ref, *strides = step.words[first + k * width : first + (k + 1) * width]
        assert isinstance(ref, Ref)
        j = k - partial
        at = AHEAD[name] + each * j
        steps = ("partial",) if j < 0 else (kinds[j] == "s", *own[at : at + each])
        yield ref.buffer, (ref.offset, *strides, *steps)


__all__ = ["AHEAD", "shareable"]
