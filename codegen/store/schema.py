"""What a JSON value from outside may be, as data: one check for every reader, which names the first wrong entry."""

from __future__ import annotations

import dataclasses
import json
import reprlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn, Protocol

Path = tuple[str | int, ...]

SHORT = 200  # characters of a value in a message
_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80
_short.maxdict = _short.maxlist = _short.maxtuple = 4


def short(value: object) -> str:
    """A value in at most a line, however large it is."""
    text = _short.repr(value)
    return text if len(text) <= SHORT else f"{text[: SHORT - 3]}..."


class Misfit(ValueError):
    """The first entry that does not fit.

    `path`: keys and indices down to it; `what` follows its name in a sentence; `valid`: what may stand there.
    """

    def __init__(self, path: Path, what: str, valid: str):
        self.path, self.what, self.valid = path, what, valid
        super().__init__(f"got {'.'.join(map(str, path)) or 'a value'}{what}; valid is {valid}")


class Schema(Protocol):
    """A kind of values."""

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` where `value`, which lies at `path`, is of another kind."""


def _misfit(path: Path, value: object, valid: str) -> Misfit:
    return Misfit(path, f"={short(value)}", valid)


@dataclasses.dataclass(frozen=True)
class Number:
    """A finite number from `least` (`above`: more than that) to `most`; no truth value."""

    least: float = -sys.float_info.max
    most: float = sys.float_info.max
    above: bool = False
    whole: bool = False

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is no such number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self._holds(value):
            raise _misfit(path, value, self._valid())

    def _holds(self, x: int | float) -> bool:
        # NaN compares with nothing, and integers of any length compare without a conversion
        within = self.least <= x <= self.most and not (self.above and x == self.least)
        return within and (isinstance(x, int) or not self.whole)

    def _valid(self) -> str:
        kind = "a whole number" if self.whole else "a finite number"
        least = "" if self.least == -sys.float_info.max else f" {'above' if self.above else 'from'} {self.least:g}"
        return kind + least + ("" if self.most == sys.float_info.max else f" to {self.most:g}")


@dataclasses.dataclass(frozen=True)
class Flag:
    """A truth value."""

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is not true or false."""
        if not isinstance(value, bool):
            raise _misfit(path, value, "true or false")


@dataclasses.dataclass(frozen=True)
class Text:
    """A text of at most so many characters, or one of a few texts."""

    among: Collection[str] = ()
    most: int = 1 << 16

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is no such text, and for one with half of a surrogate pair."""
        if self.among and not (isinstance(value, str) and value in self.among):
            raise _misfit(path, value, " or ".join(map(repr, self.among)))
        if not isinstance(value, str) or len(value) > self.most or any("\ud800" <= c <= "\udfff" for c in value):
            raise _misfit(path, value, f"a text of at most {self.most} characters")


@dataclasses.dataclass(frozen=True)
class Maybe:
    """Nothing (null), or a value of the kind."""

    kind: Schema

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is neither nothing nor of the kind."""
        if value is not None:
            self.kind.check(value, path)


@dataclasses.dataclass(frozen=True)
class Row:
    """A list: first one value of each kind in `heads`, then `least` to `most` of the kind `rest`."""

    heads: tuple[Schema, ...] = ()
    rest: Schema | None = None
    least: int = 0
    most: int = 1 << 17

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is no list, for one of another length, and for the first entry that does not fit."""
        if not isinstance(value, list):
            raise Misfit(path, f"={short(value)}, which is no list", "a list")
        more = len(value) - len(self.heads)
        if more < self.least or more > (self.most if self.rest else 0):
            first = len(self.heads)
            many = first if self.rest is None else f"{first + self.least} to {first + self.most}"
            raise Misfit(path, f" with {len(value)} entries", f"a list of {many}")
        for i, x in enumerate(value):
            kind = self.heads[i] if i < len(self.heads) else self.rest
            assert kind is not None
            kind.check(x, (*path, i))


@dataclasses.dataclass(frozen=True)
class Table:
    """Any names -> values of one kind."""

    kind: Schema
    most: int = 1 << 17

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is no table, for one of too many entries, and for the first that does not fit."""
        if not isinstance(value, dict) or len(value) > self.most:
            raise _misfit(path, value, f"a table of at most {self.most} entries")
        for key, x in value.items():
            Text().check(key, path)
            self.kind.check(x, (*path, key))


@dataclasses.dataclass(frozen=True)
class Fields:
    """Just these names, each with a value of its kind; those in `optional` may be left out."""

    kinds: Mapping[str, Schema]
    optional: Collection[str] = ()

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is no table, for names missing or unknown, and for the first that does not fit."""
        names = sorted(self.kinds)
        if not isinstance(value, dict):
            raise _misfit(path, value, f"a table with {', '.join(names)}")
        odd = [k for k in (*names, *value) if (k not in value and k not in self.optional) or k not in self.kinds]
        if odd:
            other = f" with other entries ({short(odd)} missing or unknown)"
            raise Misfit(path, other, f"a table with {', '.join(names)}")
        for key, x in value.items():
            self.kinds[key].check(x, (*path, key))


@dataclasses.dataclass(frozen=True)
class Where:
    """A value of a kind that also passes a test; `valid` says which one."""

    kind: Schema
    test: Callable[[Any], bool]  # of a JSON value that `kind` has let through
    valid: str

    def check(self, value: object, path: Path = ()) -> None:
        """Raises `Misfit` for what is not of the kind, or does not pass the test."""
        self.kind.check(value, path)
        if not self.test(value):
            raise _misfit(path, value, self.valid)


MEASURED = Number(1e-13, 1e6)  # seconds that a clock showed
SECONDS = Number(0.0, 1e6)
RATE = Number(1.0, 1e18)  # bytes/s or FLOP/s


def parse(text: object, most: int) -> Any:
    """The value of a JSON text (a str, or bytes in UTF-8) of at most `most` characters (bytes: as many bytes).

    JSON as its standard has it: no NaN, no infinity, no name twice. Raises `Misfit` for anything else.
    """
    if not isinstance(text, (str, bytes)):
        raise Misfit((), f" of type {type(text).__name__}", "JSON text, as a str or as bytes in UTF-8")
    if len(text) > most:
        raise Misfit((), f" of {len(text)} characters", f"at most {most}")
    try:
        plain = text if isinstance(text, str) else text.decode("utf-8-sig")
        return json.loads(plain, parse_constant=_refuse, object_pairs_hook=_once)
    except RecursionError:
        raise Misfit((), " that is not JSON that can be read (nested too deeply)", "JSON text") from None
    except ValueError as e:
        raise Misfit((), f" that is not JSON ({short(str(e))})", "JSON text") from None


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [k for k, _ in pairs]
        raise ValueError(f"{short(next(k for k in names if names.count(k) > 1))} stands there twice")
    return found


__all__ = [
    "MEASURED",
    "RATE",
    "SECONDS",
    "Fields",
    "Flag",
    "Maybe",
    "Misfit",
    "Number",
    "Path",
    "Row",
    "Schema",
    "Table",
    "Text",
    "Where",
    "parse",
    "short",
]
