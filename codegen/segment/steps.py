"""The steps of a segment: what their parameters are made of, before addresses are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..native.build import Spec
from .storage import Buffer


@dataclasses.dataclass(frozen=True)
class Ref:
    """A place in memory: two words of a step's parameters (buffer number, byte offset)."""

    buffer: Buffer
    offset: int


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel's address: one word."""

    spec: Spec


@dataclasses.dataclass(frozen=True, eq=False)
class Nested:
    """Steps inside a step, with a placement of their temporaries in its scratch memory: two words (their table, how
    many).
    """

    steps: tuple[Step, ...]
    offsets: Mapping[Buffer, int]
    scratch: int  # number of the buffer that the temporaries are in
    name: str  # in reports


@dataclasses.dataclass(frozen=True, eq=False)
class Looped:
    """The steps of a loop's turn, in a table of those buffers that are around the loop and of `own` ones: three words
    (their table, how many, how many buffers are around). Temporaries lie in the buffer `scratch` at `offsets`.
    """

    steps: tuple[Step, ...]
    own: tuple[Buffer, ...]
    offsets: Mapping[Buffer, int]
    scratch: Buffer


Word = int | Ref | Kernel | Nested | Looped


@dataclasses.dataclass(frozen=True)
class Early:
    """Constant bytes that the items of a step read, `stride` each (the last one what is left of `nbytes`), in
    `streams` that begin `apart` bytes from each other: threads ask for them while they wait for an earlier step.
    """

    ref: Ref
    stride: int
    nbytes: int
    streams: int = 1
    apart: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Step:
    """One entry of the step table. `group` is the program's group that it belongs to, the first of `span` groups.

    `calls` of kernels and `units` of work (cycles of a matrix kernel by its model; vector operations of the others) of
    all `items`: what the predictor knows of it. `shared`: the team shares the steps inside of it. `early`: what its
    items read that is there before it begins.
    """

    driver: str
    words: tuple[Word, ...]
    items: int
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    group: int
    span: int = 1
    calls: int = 0
    units: float = 0.0
    shared: bool = False
    early: Early | None = None

    @property
    def kernel(self) -> str:
        """The name of its first kernel, as the families define it ("winograd_input"); "strips", "items" or "loop"
        for steps inside of it.
        """
        kernels = (str(w.spec[0]) if isinstance(w, Kernel) else _around(w) for w in self.words)
        return next(filter(None, kernels), "")

    @property
    def families(self) -> tuple[str, ...]:
        """The kernel families that it runs."""
        kernels = (_family(w.spec) if isinstance(w, Kernel) else _around(w) for w in self.words)
        return tuple(dict.fromkeys(filter(None, kernels)))

    @property
    def inner(self) -> tuple[Step, ...]:
        """The steps inside of it that the team shares."""
        return next((w.steps for w in self.words if isinstance(w, Looped)), ()) if self.shared else ()


def _around(word: Word) -> str:
    """What steps inside of a step are in reports; "" for other words."""
    return word.name if isinstance(word, Nested) else "loop" if isinstance(word, Looped) else ""


def _family(spec: Spec) -> str:
    """A kernel family's name in reports."""
    name = str(spec[0])
    if name == "gemm" and spec[7] != "float32":
        return f"gemm({spec[7]})"
    return f"winograd({spec[1]}x{spec[1]})" if name.startswith("winograd") else name
