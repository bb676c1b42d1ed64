"""Neighbouring groups computed strip by strip: what lies between them never leaves the L2 cache of its core.

For each strip the partitioner gives the operations of that range of the last result, and the ordinary rules make their
steps; the strips driver runs them one after the other on one thread.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from ..native import layout as abi
from ..program import Group, Program, Unsupported, Value, external
from .assembly import lifetimes, lower_all
from .choice import default
from .context import Arrived, Context, Packer, Pick
from .makers import Form as WrittenForm
from .makers import Result
from .steps import Nested, Ref, Step, Word
from .storage import Buffer, Storage, place

Of = TypeVar("Of", bound=Hashable)
STRIPS = "strips"  # their name in reports
# of one operation each: its primitive, the shapes that it reads, its result's, its parameters
Form = tuple[tuple[str, tuple[tuple[int, ...], ...], tuple[int, ...], str], ...]
Ranges = tuple[tuple[int, int, int], ...]  # (axis, start, stop) of the result that a strip computes


class _Buffers:
    """The buffers of a strip, by number: where they begin outside, and how far on each strip's begin is."""

    def __init__(self) -> None:
        self.sources: list[Ref] = []
        self.shifts: list[dict[int, int]] = []
        self._numbers: dict[Hashable, Buffer] = {}

    def inner(self, source: Ref, key: Hashable, strip: int = 0, shift: int = 0) -> Buffer:
        """The strip's buffer for an outside place; `shift` bytes in strip number `strip`."""
        if key not in self._numbers:
            self._numbers[key] = Buffer("sub", source.buffer.nbytes, len(self.sources))
            self.sources.append(source)
            self.shifts.append({})
        b = self._numbers[key]
        self.shifts[b.index][strip] = shift
        return b

    def part(self, s: Storage, window: _Window, strip: int) -> Buffer:
        """The strip's buffer for its window of an array outside."""
        shift = sum(first * step for first, step in zip(window.first, s.strides, strict=True))
        return self.inner(Ref(s.buffer, s.offset), (s.buffer, s.offset, window.source), strip, shift)

    def read(self, forms: Iterable[_Built], outs: Sequence[Buffer]) -> list[Ref]:
        """The outside place of each buffer; for one that no step of a strip touches, another one's."""
        used = {b for built in forms for step in built.steps for b in (*step.reads, *step.writes)}
        numbers = {b.index: b for b in self._numbers.values()}
        some = next(r for r in self.sources if r.buffer in outs)
        return [r if numbers[i] in used else some for i, r in enumerate(self.sources)]


class _Strip(Context):
    """What the rules see of one strip: a program of its own, whose weights and outside values are the outer one's."""

    def __init__(self, outer: Context, program: Program, buffers: _Buffers, pick: Pick = default, fuses: bool = False):
        self.outer, self.buffers = outer, buffers
        rules = dataclasses.replace(outer.rules, pick=pick, cut=outer.rules.cut if fuses else None, convert=None)
        super().__init__(program, outer.target, 1, rules)

    def pack(self, nbytes: int, packer: Packer, key: Hashable) -> Ref:
        ref = self.outer.pack(nbytes, packer, key)
        return Ref(self.buffers.inner(Ref(ref.buffer, 0), ("blob", ref.buffer)), ref.offset)

    def raw_const(self, v: Value) -> Buffer:
        b = self.outer.raw_const(v)
        return self.buffers.inner(Ref(b, 0), ("raw", b))


@dataclasses.dataclass(frozen=True)
class _Built:
    """The steps of strips of one form, and the placement of their temporaries."""

    steps: tuple[Step, ...]
    offsets: Mapping[Buffer, int]
    cleared: int
    nbytes: int


def append(
    ctx: Context,
    groups: Sequence[Group],
    strips: Sequence[Ranges],
    axes: tuple[int, ...],
    name: str = STRIPS,
    pick: Pick = default,
    fuses: bool = False,
) -> None:
    """Appends one step for groups whose last result is cut into `strips` along `axes`; reports call it `name`, `pick`
    chooses among the algorithms of a strip, and `fuses` says whether its groups may be cut once more. Raises
    `Unsupported` or `ValueError` where they cannot be cut so.
    """
    last, alias = _distinct(groups[:-1], groups[-1])
    out = ctx.output(last.out)
    buffers = _Buffers()
    lowered: dict[Form, tuple[_Strip, Buffer]] = {}
    chosen: list[Form] = []
    for number, (ranges, part) in enumerate(zip(strips, _parts(ctx, (*groups[:-1], last), strips, axes), strict=True)):
        places: dict[Value, Storage] = {}
        arrived: dict[Buffer, Arrived] = {}
        for v, window in part.windows.items():
            s = ctx.storage(alias.get(window.source, window.source))
            b = buffers.part(s, window, number)
            places[v] = Storage(b, 0, v.shape, s.strides, window.halo(s))
            given = ctx.arrived.get(s.buffer)
            if given is not None and window.of_items(s):
                at = given.stored
                stored = Storage(buffers.part(at, window, number), 0, v.shape, at.strides, at.halo, at.narrow)
                arrived[b] = dataclasses.replace(given, stored=stored, first=0)
        shift = sum(a * out.strides[axis] for axis, a, _ in ranges)
        b, result = buffers.inner(Ref(out.buffer, out.offset), "out", number, shift), part.program.outputs[0]
        places[result] = Storage(b, 0, result.shape, out.strides, ((0, 0),) * len(out.shape))
        chosen.append(part.form)
        if part.form not in lowered:
            strip = _Strip(ctx, part.program, buffers, pick, fuses)
            strip.arrived.update(arrived)
            for v, storage in places.items():
                strip.place(v, storage)
            lower_all(strip)
            lowered[part.form] = strip, b
    maker = _Maker(ctx, len(ctx.steps), out, buffers, lowered, chosen, strips, len(groups), name)
    maker.append()
    if len(ctx.steps) > maker.number:
        ctx.makers.note(maker.number, maker)


def _built(strip: _Strip) -> _Built:
    """The steps of a strip as they are now."""
    before = strip.mark()
    strip.prune()
    built = _Built(tuple(strip.steps), *place(lifetimes(strip.steps)))
    strip.back(before)
    return built


@dataclasses.dataclass(frozen=True)
class _Maker:
    """The step of strips, and the maker of its result `out` (see `makers`): the last step of each strip writes its part
    of a form.

    `lowered`: of each form of strips its steps, and where the last one writes; `chosen` and `ranges`: the form of each
    strip, and what it has of the result. `to`: forms that are written; `kept`: so is the result itself.
    """

    ctx: Context
    number: int
    out: Storage
    buffers: _Buffers
    lowered: Mapping[Form, tuple[_Strip, Buffer]]
    chosen: Sequence[Form]
    ranges: Sequence[Ranges]
    span: int
    name: str
    to: tuple[Buffer, ...] = ()
    kept: bool = True

    @property
    def result(self) -> Result:
        return Result.of(Ref(self.out.buffer, self.out.offset), self.out.shape, self.out.strides)

    def append(self) -> None:
        """Appends the step."""
        outs = [self.out.buffer, *self.to] if self.kept else self.to
        built: dict[Hashable, _Built] = {form: _built(strip) for form, (strip, _) in self.lowered.items()}
        _step(self.ctx, self.buffers, built, self.chosen, outs, self.span, self.name)

    def also(self, form: WrittenForm) -> bool:
        """As `Maker` has it: a form of the result alone, whose steps along the axes that are cut are known."""
        steps = [form.walk(s, n) if n > 1 else 0 for s, n in zip(self.out.strides, self.out.shape, strict=True)]
        shifts = [[a * step for axis, a, _ in r if (step := steps[axis]) is not None] for r in self.ranges]
        known = not form.operands and all(len(s) == len(r) for s, r in zip(shifts, self.ranges, strict=True))
        if not known or len(self.buffers.sources) + 2 > abi.STRIP_BUFFERS:
            return False
        marks = [(strip, strip.mark()) for strip, _ in self.lowered.values()]
        for number, far in enumerate(shifts):
            to = self.buffers.inner(form.ref, ("form", form.ref.buffer, form.ref.offset), number, sum(far))
        for strip, result in self.lowered.values():
            maker, y = strip.makers.of(result), strip.storage(strip.program.outputs[0])
            whole = Result.of(Ref(y.buffer, y.offset), y.shape, y.strides)
            if maker is None or maker.result != whole or not maker.also(dataclasses.replace(form, ref=Ref(to, 0))):
                for changed, before in marks:
                    changed.back(before)
                return False
        dataclasses.replace(self, to=(*self.to, form.ref.buffer))._again()
        return True

    def forms_only(self) -> None:
        """As `Maker` has it."""
        if self.to:
            for strip, result in self.lowered.values():
                maker = strip.makers.of(result)
                assert maker is not None, "it writes the forms"
                maker.forms_only()
            dataclasses.replace(self, kept=False)._again()

    def _again(self) -> None:
        self.ctx.again(self.number, self.append)
        self.ctx.makers.steps[self.number] = self


def add_strips(
    ctx: Context,
    sources: Sequence[Ref],
    outs: Sequence[Buffer],
    pieces: Sequence[tuple[Of, tuple[int, ...]]],
    lower: Callable[[Context, Of, Sequence[Buffer]], None],
) -> None:
    """Appends one step whose work items are steps of their own, which one thread runs one after the other: those that
    `lower(ctx, form, sources)` appends, once for each form. They write to `outs`, which are among the sources.
    `pieces`: the form of each work item, and how many bytes from its begin it has each source.
    """
    buffers = _Buffers()
    forms: dict[Hashable, _Built] = {}
    for number, (form, shifts) in enumerate(pieces):
        inner = [buffers.inner(ref, i, number, shifts[i]) for i, ref in enumerate(sources)]
        if form not in forms:
            strip = _Strip(ctx, Program((), (), (), ()), buffers)
            lower(strip, form, inner)
            forms[form] = _Built(tuple(strip.steps), *place(lifetimes(strip.steps)))
    _step(ctx, buffers, forms, [form for form, _ in pieces], outs, 1)


def _distinct(before: Sequence[Group], last: Group) -> tuple[Group, dict[Value, Value]]:
    """The last group, reading what groups `before` it read from outside under names of their own (a residual is needed
    in another range than the input), and what these are names of.
    """
    early = [op for g in before for op in g.ops]
    made = {v for op in (*early, *last.ops) for v in op.outs}
    read = {v for op in early for v in op.value_ins} - made
    names: dict[Value, Value] = {v: Value(v.shape, v.dtype) for v in external(last.ops) if v in read}
    renamed = {
        op: dataclasses.replace(op, ins=tuple(names.get(v, v) if isinstance(v, Value) else v for v in op.ins))
        for op in last.ops
    }
    return Group(tuple(renamed.values()), renamed[last.anchor]), {new: old for old, new in names.items()}


@dataclasses.dataclass(frozen=True)
class _Window:
    """An input of a strip: elements of `source`, the first of them at the indices `first`."""

    source: Value
    first: Sequence[int]
    shape: tuple[int, ...]

    def of_items(self, s: Storage) -> bool:
        """Whether it has all of some items of an array."""
        return not any(self.first[1:]) and self.shape[1:] == s.shape[1:]

    def halo(self, s: Storage) -> tuple[tuple[int, int], ...]:
        """Around a strip lie the rows next to it, or the border of the whole."""
        before = (lo + f for (lo, _), f in zip(s.halo, self.first, strict=True))
        after = (hi + n - f - m for (_, hi), n, f, m in zip(s.halo, s.shape, self.first, self.shape, strict=True))
        return tuple(zip(before, after, strict=True))


@dataclasses.dataclass(frozen=True)
class _Part:
    """The program of a strip, what each of its inputs is a part of, and the form of its steps."""

    program: Program
    windows: Mapping[Value, _Window]
    form: Form

    def moved(self, first: _Part, second: _Part, far: int) -> _Part:
        """The strip `far` ones behind this one, if each further one is as far on as `second` is from `first`."""
        windows = {}
        for (v, here), a, b in zip(self.windows.items(), first.windows.values(), second.windows.values(), strict=True):
            at = [h + far * (y - x) for h, x, y in zip(here.first, a.first, b.first, strict=True)]
            windows[v] = dataclasses.replace(here, first=at)
        return dataclasses.replace(self, windows=windows)

    def same(self, other: _Part) -> bool:
        """Whether both have one form, and windows of the same places."""
        windows = lambda part: [(w.source, list(w.first), w.shape) for w in part.windows.values()]
        return self.form == other.form and windows(self) == windows(other)


def _parts(ctx: Context, groups: Sequence[Group], strips: Sequence[Ranges], axes: tuple[int, ...]) -> Iterator[_Part]:
    """The part of each strip. Of those that differ in an image (an axis that is cut in ones) alone, the first two and
    the last one are cut; where these lie evenly, so do those between.
    """
    known: dict[Ranges, tuple[_Part, _Part] | None] = {}
    for ranges in strips:
        ones, rest = (ranges[:1], ranges[1:]) if ranges[0][0] != axes[-1] else ((), ranges)
        if not ones:
            yield _part(ctx, groups, ranges)
            continue
        (axis, index, _), end = ones[0], groups[-1].out.shape[ones[0][0]] - 1
        if rest not in known:
            first, second, last = (_part(ctx, groups, ((axis, i, i + 1), *rest)) for i in (0, 1, end))
            even = first.form == second.form and first.moved(first, second, end).same(last)
            known[rest] = (first, second) if even else None
        found = known[rest]
        yield found[0].moved(*found, index) if found else _part(ctx, groups, ranges)


def _part(ctx: Context, groups: Sequence[Group], ranges: Ranges) -> _Part:
    """One strip, cut out of the groups. Raises `Unsupported` where it cannot be."""
    assert ctx.rules.cut is not None
    at: dict[Value, tuple[Value, list[int]]] = {}
    for axis, start, stop in ranges:
        part = ctx.rules.cut([op for g in groups for op in g.ops], axis, start, stop)
        for s in part.slices:
            source, first = at.get(s.source, (s.source, [0] * len(s.source.shape)))
            if source in ctx.consts:
                raise Unsupported("a weight that is cut with the result")
            at[s.value] = (source, [f + (s.start if d == s.axis else 0) for d, f in enumerate(first)])
        pieces = part.groups(groups)
        if any(len(p) != 1 for p in pieces):
            raise Unsupported("a value that groups of a strip read in different ranges")
        groups = [group for (group,) in pieces]
    outside = external(op for g in groups for op in g.ops)
    inputs = tuple(v for v in outside if v not in ctx.consts)
    program = Program(inputs, tuple(v for v in outside if v in ctx.consts), tuple(groups), (groups[-1].out,))
    return _Part(program, {v: _Window(*at.get(v, (v, [0] * len(v.shape))), v.shape) for v in inputs}, _form(program))


def _form(program: Program) -> Form:
    """Equal for strips that the same steps serve."""
    return tuple(
        (op.prim, tuple(v.shape for v in op.value_ins), op.out.shape, str(sorted(op.params.items(), key=str)))
        for op in program.ops
    )


def _step(
    ctx: Context,
    buffers: _Buffers,
    forms: Mapping[Hashable, _Built],
    chosen: Sequence[Hashable],
    outs: Sequence[Buffer],
    span: int,
    name: str = STRIPS,
) -> None:
    if len(buffers.sources) + 1 > abi.STRIP_BUFFERS:
        raise Unsupported(f"{len(buffers.sources)} buffers in a strip")
    n = len(buffers.sources)
    base, nested = 0, {}
    for key, built in forms.items():
        nested[key] = Nested(built.steps, {b: o + base for b, o in built.offsets.items()}, n, name)
        base += built.nbytes
    kept = ("strips", object()) if any(built.cleared for built in forms.values()) else None  # borders stay zero
    scratch = Buffer("temp", base * (ctx.threads + 1), geometry=kept)
    rows: list[Word] = []
    for number, key in enumerate(chosen):
        rows += [nested[key], *(shift.get(number, shift.get(0, 0)) for shift in buffers.shifts)]
    sources = abi.STRIP_WORDS
    there = buffers.read(forms.values(), outs)
    words: list[Word] = [n, sources, sources + 2 * n, Ref(scratch, 0), base, *there, *rows]
    calls = sum(step.calls for key in chosen for step in forms[key].steps)
    units = sum(step.units for key in chosen for step in forms[key].steps)
    reads = [r.buffer for r in there if r.buffer not in outs]
    ctx.add("strips", words, len(chosen), [*reads, scratch], [*outs, scratch], span, calls=calls, units=units)
