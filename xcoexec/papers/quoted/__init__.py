"""What the five papers print: every table, every figure and every claim of the running text, as data.

    paper = load("edgenn")
    paper["gain"].values["mean"]  # 22.02, in percent: section V-C1, Figure 8

One TOML file a paper (`edgenn.toml` ...), in it one table a record; `Quoted` says what its entries are. Names of values
are the paper's own words in lower case (`vgg` is VGG-16 in EdgeNN). Each number stands in one of the record's quotes,
and the quotes stand in the paper: `tests/test_papers_quoted.py` compares both with the texts where these are at hand.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import tomllib
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

HERE = pathlib.Path(__file__).parent
KEYS = ("edgenn", "codl", "neuropipe", "layer_switched", "blastnet")
#: number: values are printed; drawn: a figure of which no number is printed; diagram: a picture without values;
#: rule: a definition, an equation or an algorithm
KINDS = ("number", "drawn", "diagram", "rule")
#: entries of a file, and of a record, with their types
HEAD = {
    **dict.fromkeys(("name", "title", "venue", "doi"), str),
    **dict.fromkeys(("year", "tables", "figures"), int),
    **dict.fromkeys(("sections", "boards", "records"), dict),
    "authors": list,
}
ENTRIES = dict.fromkeys(("section", "item", "what", "unit", "board", "kind"), str)

Value = float | str | tuple[float | str, ...]


class QuotedError(ValueError):
    """A file of quoted numbers is not what it should be; the text says which entry and what is valid."""


@dataclasses.dataclass(frozen=True)
class Quoted:
    """One printed statement.

    `section`: where it is printed, by the key of a heading; `item`: "Figure 8", "Table I", "Equation 1", "Algorithm 1",
    or "" in running text; `what`: what it is. `values`: name -> number, word, or several of them in order; None where
    none is printed (every kind but "number"). `unit` of the numbers ("" for a plain count); `board`: key of the
    hardware ("" where it does not matter). `quotes`: words of the paper by which it is found; `also`: further sections
    that print the same numbers.
    """

    paper: str
    key: str
    section: str
    item: str
    what: str
    values: Mapping[str, Value] | None
    unit: str
    board: str
    kind: str
    quotes: tuple[str, ...]
    also: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Value:
        """A value by its name. Raises `KeyError` that lists the names."""
        if not self.values or name not in self.values:
            names = ", ".join(self.values or ()) or "nothing (no number is printed)"
            raise KeyError(f"quoted: got value {name!r} of {self.paper}'s {self.key!r}; valid is {names}.")
        return self.values[name]

    def number(self, name: str) -> float:
        """A value that is one number. Raises `KeyError` for another name, `TypeError` for a word or several values."""
        value = self[name]
        if not isinstance(value, (int, float)):
            raise TypeError(f"quoted: got {value!r} for {name!r} of {self.paper}'s {self.key!r}; valid is one number.")
        return value

    def numbers(self, name: str) -> tuple[float, ...]:
        """A value that is several numbers. Raises `KeyError` for another name, `TypeError` for anything else."""
        value = self[name]
        if not isinstance(value, tuple) or not all(isinstance(v, (int, float)) for v in value):
            raise TypeError(f"quoted: got {value!r} for {name!r} of {self.paper}'s {self.key!r}; valid are numbers.")
        return tuple(float(v) for v in value)


@dataclasses.dataclass(frozen=True)
class Paper:
    """A paper and what it prints. `sections`: key -> heading, in order; `boards`: key -> hardware; `tables`, `figures`:
    how many it has.
    """

    key: str
    name: str
    title: str
    authors: tuple[str, ...]
    venue: str
    year: int
    doi: str
    tables: int
    figures: int
    sections: Mapping[str, str]
    boards: Mapping[str, str]
    records: Mapping[str, Quoted]

    def __getitem__(self, key: str) -> Quoted:
        """A record by its key. Raises `KeyError` that lists the keys."""
        if key not in self.records:
            raise KeyError(f"quoted: got record {key!r} of {self.key}; valid are {', '.join(self.records)}.")
        return self.records[key]

    def of(self, item: str) -> tuple[Quoted, ...]:
        """The records of a table, figure, equation or algorithm: "Figure 7" has those of its parts too."""
        return tuple(q for q in self.records.values() if q.item == item or q.item.startswith(f"{item}("))


def load(key: str) -> Paper:
    """A paper by its key, one of `KEYS`. Raises `QuotedError` for another key, and for a file that is not sound."""
    if key not in KEYS:
        raise QuotedError(f"quoted: got paper {key!r}; valid are {', '.join(KEYS)}.")
    return _loaded(key)


def papers() -> tuple[Paper, ...]:
    """All five. Raises `QuotedError` for a file that is not sound."""
    return tuple(map(load, KEYS))


@functools.cache
def _loaded(key: str) -> Paper:
    return parse(key, (HERE / f"{key}.toml").read_text("utf-8"))


def parse(key: str, text: str) -> Paper:
    """A paper from the text of its file. Raises `QuotedError` that names the first wrong entry."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        raise QuotedError(f"quoted: got {key}.toml, which is not TOML ({e}).") from None
    head = {name: _entry(data, name, kind, f"{key}.toml") for name, kind in HEAD.items()}
    records = {name: _record(key, name, given, head) for name, given in head["records"].items()}
    return Paper(**{**head, "key": key, "authors": tuple(head["authors"]), "records": MappingProxyType(records)})


def _entry(table: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    if type(table.get(name)) is not kind:
        raise QuotedError(f"quoted: got {name}={table.get(name)!r} in {where}; valid is of type {kind.__name__}.")
    return table[name]


def _record(paper: str, key: str, given: object, about: Mapping[str, Any]) -> Quoted:
    where = f"{paper}.records.{key}"
    if not isinstance(given, dict):
        raise QuotedError(f"quoted: got {where}={given!r}; valid is a table.")
    data: dict[str, Any] = {"item": "", "unit": "", "board": "", "kind": "number", "also": [], **given}
    if unknown := data.keys() - {*ENTRIES, "values", "quotes", "also"}:
        raise QuotedError(
            f"quoted: got the entry {sorted(unknown)[0]!r} in {where}; valid are {', '.join(ENTRIES)}, values, quotes,"
            " also."
        )
    found = {name: _entry(data, name, kind, where) for name, kind in ENTRIES.items()}
    lists = {name: tuple(_entry(data, name, list, where)) for name in ("quotes", "also")}
    _one_of(where, "kind", found["kind"], KINDS)
    for section in (found["section"], *lists["also"]):
        _one_of(where, "section", section, about["sections"])
    _one_of(where, "board", found["board"], ("", *about["boards"]))
    if not lists["quotes"] or not all(isinstance(q, str) and q.strip() for q in lists["quotes"]):
        raise QuotedError(f"quoted: got quotes={list(lists['quotes'])!r} in {where}; valid is a list of texts.")
    if ("values" in data) != (found["kind"] == "number"):
        raise QuotedError(
            f"quoted: got kind={found['kind']!r} {'with' if 'values' in data else 'without'} values in {where}; valid"
            ' are values where the kind is "number", and only there.'
        )
    values = None
    if "values" in data:
        printed = _entry(data, "values", dict, where)
        values = MappingProxyType({name: _value(v, f"{where}.{name}") for name, v in printed.items()})
    return Quoted(paper=paper, key=key, values=values, quotes=lists["quotes"], also=lists["also"], **found)


def _one_of(where: str, what: str, got: str, valid: Collection[str]) -> None:
    if got not in valid:
        raise QuotedError(f"quoted: got {what}={got!r} in {where}; valid are {', '.join(map(repr, valid))}.")


def _value(given: object, where: str) -> Value:
    if isinstance(given, list) and given:
        return tuple(_value(v, where) for v in given)  # type: ignore[misc]
    if isinstance(given, (int, float, str)) and not isinstance(given, bool):
        return given
    raise QuotedError(f"quoted: got {where}={given!r}; valid is a number, a text, or a list of them.")


__all__ = ["KEYS", "KINDS", "Paper", "Quoted", "QuotedError", "load", "papers", "parse"]
