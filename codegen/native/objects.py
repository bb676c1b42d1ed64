"""Whether an object file is one that the linker can be given: everything it follows lies inside.

LLVM's run-time linker trusts what it is given: an offset that points outside is written to. An object of this package
is a small thing: one exported function, code and constants in sections that are in the file, and relocations of a few
types. That is what is let through.
"""

from __future__ import annotations

import platform
import struct
import sys
from collections.abc import Sequence
from typing import NamedTuple

NULL, PROGBITS, SYMTAB, STRTAB, RELA = range(5)  # types of sections
ALLOC, EXEC = 2, 4  # flags of sections
FLAGS = 0x10000077  # that a section may have: write, alloc, exec, merge, strings, info, large
ALIGNED = 1 << 12  # most bytes that a section is aligned to
ABSOLUTE = 0xFFF1  # the number of no section: a symbol that is a plain number
LOCAL, GLOBAL, FUNC, FILE = 0, 1, 2, 4  # of symbols
#: machine -> (its number in ELF, type of a relocation -> bytes that it writes)
MACHINES: dict[str, tuple[int, dict[int, int]]] = {
    "x86_64": (62, {1: 8, 24: 8}),  # R_X86_64_64, R_X86_64_PC64
    "aarch64": (183, {257: 8, 260: 8, **dict.fromkeys(range(263, 270), 4)}),  # R_AARCH64_ABS64, _PREL64, _MOVW_UABS_*
}

#: system whose objects are of another format -> how they begin
OTHERS = {"darwin": b"\xcf\xfa\xed\xfe", "win32": b"\x64\x86"}


class Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


def fault(data: bytes, symbol: str, machine: str | None = None) -> str:
    """What is wrong with an object file that should export the function `symbol` alone; empty for a sound one.

    64-bit little-endian ELF of the machines above is walked through. Of other objects only the first bytes and the name
    are looked at.
    """
    known = MACHINES.get(machine or platform.machine())
    if known is None or sys.platform in OTHERS:
        sound = data.startswith(OTHERS.get(sys.platform, b"\x7fELF")) and symbol.encode() in data
        return "" if sound else f"is no object file with the function {symbol}"
    number, relocations = known
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return "is no object file"
    if sys.byteorder != "little" or data[4:7] != b"\x02\x01\x01":
        return "is an object file of another word size or byte order"
    kind, made_for = struct.unpack_from("<HH", data, 16)
    if kind != 1 or made_for != number:
        return f"is no relocatable object file of this machine (type {kind}, machine {made_for})"
    try:
        sections = _sections(data)
        table = _symbols(sections)
        function = _exports(data, sections, table, symbol)
        _relocations(data, sections, table, relocations)
    except (_Unsound, struct.error) as e:
        return f"is an object file whose {e or 'tables'} cannot be"
    return "" if function else f"is an object file without the function {symbol}"


class _Unsound(Exception):
    """What of an object file cannot be as it is."""


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise _Unsound(what)


def _sections(data: bytes) -> list[Section]:
    (start,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    _need(size == 64 and 0 < count < 256 and start % 8 == 0 and start + 64 * count <= len(data), "section table")
    sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", data, start + 64 * i)) for i in range(count)]
    _need(sections[0].type == NULL and 0 < names < count and sections[names].type == STRTAB, "section names")
    for s in sections[1:]:
        _need(s.type in (PROGBITS, SYMTAB, STRTAB, RELA), "types of sections")
        _need(s.offset + s.size <= len(data) and not s.address, "sections")
        _need(s.align <= ALIGNED and s.align & (s.align - 1) == 0, "alignment of sections")
        _need(not s.flags & ~FLAGS, "flags of sections")
        _need(_text(data, sections[names], s.name) != b".eh_frame", "unwinding tables")
        _need(s.type not in (SYMTAB, RELA) or (s.entry == 24 and s.size % 24 == 0 and s.offset % 8 == 0), "tables")
    return sections


def _text(data: bytes, strings: Section, at: int) -> bytes:
    """A text of a table of texts: it ends inside of the table."""
    whole = data[strings.offset : strings.offset + strings.size]
    _need(at < len(whole) and whole[-1] == 0, "texts")
    return whole[at : whole.index(b"\0", at)]


def _symbols(sections: Sequence[Section]) -> Section:
    """The one table of symbols; its texts are there, and every relocation names it."""
    found = [i for i, s in enumerate(sections) if s.type == SYMTAB]
    _need(len(found) == 1, "table of symbols")
    table = sections[found[0]]
    _need(table.link < len(sections) and sections[table.link].type == STRTAB, "names of symbols")
    _need(all(s.link == found[0] for s in sections if s.type == RELA), "relocations")
    return table


def _exports(data: bytes, sections: Sequence[Section], table: Section, symbol: str) -> bool:
    """Whether the object exports the function, which has to be all that it exports; it imports nothing."""
    exported = []
    for i in range(table.size // 24):
        name, info, _, home, value, size = struct.unpack_from("<IBBHQQ", data, table.offset + 24 * i)
        text, kind, binding = _text(data, sections[table.link], name), info & 15, info >> 4
        if i == 0 or (kind == FILE and home == ABSOLUTE):
            _need(binding == LOCAL and not value and not size, "symbols")
            continue
        _need(0 < home < len(sections) and kind < FILE and binding in (LOCAL, GLOBAL), "symbols")
        _need(sections[home].type == PROGBITS and value + size <= sections[home].size, "symbols")
        if binding == GLOBAL:
            code = sections[home].flags & (ALLOC | EXEC) == ALLOC | EXEC
            exported.append(code and kind == FUNC and size > 0 and text == symbol.encode())
    return exported == [True]


def _relocations(data: bytes, sections: Sequence[Section], table: Section, widths: dict[int, int]) -> None:
    count = table.size // 24
    for s in sections:
        if s.type != RELA:
            continue
        _need(0 < s.info < len(sections) and sections[s.info].type == PROGBITS, "relocations")
        for at in range(s.offset, s.offset + s.size, 24):
            offset, info, _ = struct.unpack_from("<QQq", data, at)
            width = widths.get(info & 0xFFFFFFFF)
            inside = width is not None and offset + width <= sections[s.info].size
            _need(inside and 0 < info >> 32 < count, "relocations")


__all__ = ["fault"]
