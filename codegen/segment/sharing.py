"""Which results of a segment may be written over one of its operands: updates of a state in place."""

from __future__ import annotations

from collections.abc import Sequence

from ..native.layout import MAX_RANK, Nest
from .assembly import Segment
from .steps import Ref, Step
from .storage import Buffer


def shareable(segment: Segment) -> tuple[tuple[int, int], ...]:
    """Pairs (operand, result) that may lie in the same memory, as each alone may: one step writes the result, none
    reads the operand after it, and that step itself reads each element before it writes the one in its place.
    """
    program = segment.program
    operands = {v: i for i, v in enumerate(program.inputs)}
    found = []
    for o, out in enumerate(program.outputs):
        writers = [i for i, s in enumerate(segment.steps) if any(b.kind == "ret" and b.index == o for b in s.writes)]
        if len(writers) != 1 or out in operands:
            continue
        for v, i in operands.items():
            if (v.shape, v.dtype) == (out.shape, out.dtype) and _done(segment.steps, i, writers[0]):
                found.append((i, o))
    return tuple(found)


def _done(steps: Sequence[Step], operand: int, writer: int) -> bool:
    """Whether nobody reads an operand when a step has written over it."""
    reads = lambda step: [b for b in step.reads if b.kind == "arg" and b.index == operand]
    if any(reads(s) for s in steps[writer + 1 :]):
        return False
    mine = reads(steps[writer])
    return not mine or _elementwise_on(steps[writer], mine[0])


def _elementwise_on(step: Step, buffer: Buffer) -> bool:
    """Whether an elementwise step walks over a buffer as it does over its result, element by element. The tail of a row
    is masked, so that no element is read twice.
    """
    if step.driver != "nest" or step.kernel != "elementwise":
        return False
    count = step.words[Nest.OPERANDS]
    assert isinstance(count, int)
    first, width = int(Nest.VIEWS), 1 + MAX_RANK  # a reference is one word here
    views = [step.words[first + k * width : first + (k + 1) * width] for k in range(count)]
    last = step.words[first + count * width + 2 :]  # bytes from element to element
    (target, *walk), found = views[0], False
    assert isinstance(target, Ref)
    for k, (source, *other) in enumerate(views[1:], 1):
        if isinstance(source, Ref) and source.buffer is buffer:
            found = True
            if (source.offset, other, last[k]) != (target.offset, walk, last[0]):
                return False
    return found


__all__ = ["shareable"]
