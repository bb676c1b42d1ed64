"""What the papers print, as data: every table and figure is there, and, where the papers' texts are at hand, every
quote and every number stands in them.

XCOEXEC_PAPERS names a folder with a text of each paper, `edgenn.txt` and so on.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import re
import unicodedata
from collections.abc import Iterator

import pytest

from xcoexec.papers import quoted
from xcoexec.papers.quoted import Paper, QuotedError, Value

ROOT = pathlib.Path(__file__).parent.parent
FOLDER = os.environ.get("XCOEXEC_PAPERS")
with_texts = pytest.mark.skipif(not FOLDER, reason="XCOEXEC_PAPERS names no folder with the papers' texts")
each_paper = pytest.mark.parametrize("paper", quoted.papers(), ids=quoted.KEYS)

MOST_WORDS = 14  # of a quote
NAMES = {"table": "table", "tab.": "table", "figure": "figure", "fig.": "figure"}
ROMAN = {"I": 1, "II": 2, "III": 3}
SYMBOLS = {"times": "×", "mu": "μ", "alpha": "α", "gamma": "γ", "delta": "δ", "epsilon": "ε", "sim": "~", "circ": "°"}


# -- always -------------------------------------------------------------------------------------------


@each_paper
def test_every_table_and_figure_has_a_record(paper: Paper) -> None:
    for kind, count in (("Table", paper.tables), ("Figure", paper.figures)):
        numbers = {_number(q.item) for q in paper.records.values() if q.item.startswith(kind)}
        assert numbers == set(range(1, count + 1)), f"{paper.name}: {kind}s"


@each_paper
def test_records_are_well_formed(paper: Paper) -> None:
    for q in paper.records.values():
        where = f"{paper.key}.{q.key}"
        assert re.fullmatch(r"((Table|Figure|Equation|Algorithm) ([IVX]+|\d+)(\([a-f]\))?)?", q.item), where
        assert q.what and not q.what.endswith(".") and len(q.what) <= 120, where
        assert all(len(x.split()) <= MOST_WORDS for x in q.quotes), where
        assert (q.values is None) == (q.kind != "number"), where
        if q.kind in ("drawn", "diagram"):
            assert q.item.startswith("Figure"), where
        for name, value in (q.values or {}).items():
            for v in _each(value):
                assert _stands_in(v, " ".join(q.quotes)), f"{where}.{name}: {v} is in none of its quotes"


def test_papers_are_told_apart() -> None:
    assert len({p.doi for p in quoted.papers()}) == len({p.title for p in quoted.papers()}) == 5
    assert all(re.fullmatch(r"10\.\d{4,}/\S+", p.doi) and p.authors for p in quoted.papers())


def test_the_citation_names_the_papers() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    for p in quoted.papers():
        assert p.title in text and f'doi: "{p.doi}"' in text and p.venue in text, p.name
        for author in p.authors:
            *given, family = author.split()
            assert f'family-names: "{family}"' in text and f'given-names: "{" ".join(given)}"' in text, author


def test_a_value_is_found_by_its_name() -> None:
    gain = quoted.load("edgenn")["gain"]
    assert gain.number("mean") == 22.02 and gain.unit == "%" and gain.item == "Figure 8"
    assert quoted.load("layer_switched")["table1"].numbers("cpu") == (
        11.56,
        15.05,
        5.15,
        4.48,
        3.41,
        38.51,
        17.02,
        4.19,
    )
    assert {q.key for q in quoted.load("edgenn").of("Figure 7")} == {"over_raspberry_power", "over_raspberry_price"}


def test_what_is_not_there_says_what_is() -> None:
    paper = quoted.load("edgenn")
    with pytest.raises(QuotedError, match="got paper 'edge'; valid are edgenn, codl, neuropipe, layer_switched, blast"):
        quoted.load("edge")
    with pytest.raises(KeyError, match="got record 'gains' of edgenn; valid are fig1, fig2"):
        paper["gains"]
    with pytest.raises(KeyError, match="got value 'max' of edgenn's 'gain'; valid is mean, vgg, alexnet"):
        paper["gain"]["max"]
    with pytest.raises(KeyError, match="valid is nothing"):
        paper["equation1"]["p"]
    with pytest.raises(TypeError, match="for 'alexnet_fc' of edgenn's 'table1'; valid is one number"):
        paper["table1"].number("alexnet_fc")
    with pytest.raises(TypeError, match="for 'mean' of edgenn's 'gain'; valid are numbers"):
        paper["gain"].numbers("mean")


HEAD = """
name = "A"
title = "A paper"
authors = ["A. B."]
venue = "A venue"
year = 2020
doi = "10.1/1"
tables = 0
figures = 0
[sections]
1 = "1 ONE"
[boards]
b = "a board"
"""
SOUND = {"section": '"1"', "what": '"it"', "values": "{ a = 1 }", "quotes": '["a 1"]'}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"section": '"2"'}, "got section='2' in a.records.x; valid are '1'"),
        ({"board": '"c"'}, "got board='c' in a.records.x; valid are '', 'b'"),
        ({"kind": '"guess"'}, "got kind='guess' in a.records.x; valid are 'number', 'drawn', 'diagram', 'rule'"),
        ({"kind": '"drawn"'}, "got kind='drawn' with values in a.records.x; valid are values where the kind is"),
        ({"what": "3"}, "got what=3 in a.records.x; valid is of type str"),
        ({"quotes": "[]"}, "got quotes=\\[\\] in a.records.x; valid is a list of texts"),
        ({"values": "{ a = true }"}, "got a.records.x.a=True; valid is a number, a text, or a list of them"),
        ({"source": '"here"'}, "got the entry 'source' in a.records.x; valid are section, item, what"),
    ],
)
def test_a_wrong_entry_is_named(changed: dict[str, str], message: str) -> None:
    entries = "\n".join(f"{k} = {v}" for k, v in {**SOUND, **changed}.items())
    with pytest.raises(QuotedError, match=message):
        quoted.parse("a", f"{HEAD}[records.x]\n{entries}\n")


def test_a_file_that_is_none_is_named() -> None:
    assert quoted.parse("a", HEAD + "[records]\n").records == {}
    with pytest.raises(QuotedError, match="which is not TOML"):
        quoted.parse("a", "name =")
    with pytest.raises(QuotedError, match="got year='2020' in a"):
        quoted.parse("a", HEAD.replace("2020", '"2020"') + "[records]\n")


# -- against the texts --------------------------------------------------------------------------------


def _text(paper: Paper) -> str:
    assert FOLDER is not None
    return (pathlib.Path(FOLDER) / f"{paper.key}.txt").read_text("utf-8")


@with_texts
@each_paper
def test_quotes_are_in_their_sections(paper: Paper) -> None:
    """Tables and captions stand where the page had room; all else stands in the section that is named."""
    text = _plain(_text(paper))
    spans = _sections(paper, text)
    captions = [c for c in map(_plain, _text(paper).split("\n\n")) if re.match(r"(?i)(fig\.|figure) ?\d", c)]
    for q in paper.records.values():
        start, stop = spans[q.section]
        for quote in map(_plain, q.quotes):
            found = [m.start() for m in re.finditer(re.escape(quote), text)]
            assert found, f"{paper.key}.{q.key}: {quote!r} is not in the text"
            anywhere = q.item.startswith("Table") or any(quote in c for c in captions)
            where = f"{paper.key}.{q.key}: {quote!r} is not in {q.section}"
            assert anywhere or any(start <= at < stop for at in found), where


@with_texts
@each_paper
def test_numbers_are_in_the_other_sections_too(paper: Paper) -> None:
    text = _plain(_text(paper))
    spans = _sections(paper, text)
    for q in paper.records.values():
        for section in q.also:
            part = text[slice(*spans[section])]
            numbers = [v for value in (q.values or {}).values() for v in _each(value)]
            assert not numbers or any(_stands_in(v, part) for v in numbers), f"{paper.key}.{q.key}: {section}"


@with_texts
@each_paper
def test_the_text_has_as_many_tables_and_figures(paper: Paper) -> None:
    found: dict[str, set[int]] = {"table": set(), "figure": set()}
    for name, number in re.findall(r"(?m)^\W*(Fig\.|Figure|FIGURE|Table|TABLE) ?(\d+|[IVX]+)(?=[.:]|$)", _text(paper)):
        found[NAMES[name.lower()]].add(ROMAN.get(number) or int(number))
    assert found == {"table": set(range(1, paper.tables + 1)), "figure": set(range(1, paper.figures + 1))}


@with_texts
@each_paper
def test_parts_of_figures_are_printed(paper: Paper) -> None:
    text = _plain(_text(paper))
    for q in paper.records.values():
        if part := re.fullmatch(r"Figure (\d+)\(([a-f])\)", q.item):
            number, letter = part.groups()
            assert re.search(rf"\b{number} ?\(?{letter}\)?(?![a-z])", text), f"{paper.key}.{q.key}: {q.item}"


@with_texts
@each_paper
def test_titles_are_the_texts(paper: Paper) -> None:
    text = _plain(_text(paper))
    assert _plain(paper.title) in text
    for author in paper.authors:
        assert author.lower() in text[: len(text) // 2].lower(), author


# -- help ---------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """A text without markup, with single spaces."""
    text = unicodedata.normalize("NFKC", text).translate(str.maketrans("’‘“”", "''\"\""))
    text = re.sub(r"\\([a-z]+)", lambda m: SYMBOLS.get(m[1], ""), text)
    text = re.sub(r"[$*{}\\^]", "", text)
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"^ | (?=×)|(?<=[~<(]) | (?=[°%,)])|(?<=μ) (?=s\b)", "", text)


def _sections(paper: Paper, text: str) -> dict[str, tuple[int, int]]:
    """Key of a section -> where it starts and ends in a plain text, its parts included."""
    starts, at = {}, 0
    for key, heading in paper.sections.items():
        at = text.find(_plain(heading), at)
        assert at >= 0, f"{paper.key}: the heading {heading!r} is not in the text, or not in this order"
        starts[key] = at
    part = lambda of, key: re.match(rf"{re.escape(of)}([-.]|(?<=-[A-Z])\d)", key)
    following = lambda key: itertools.dropwhile(lambda k: k != key, starts)
    ends = {k: next((starts[n] for n in following(k) if n != k and not part(k, n)), len(text)) for k in starts}
    return {k: (starts[k], ends[k]) for k in starts}


def _number(item: str) -> int:
    """The number of "Figure 7(a)" or "Table II"."""
    number = item.split()[1].split("(")[0]
    return ROMAN.get(number) or int(number)


def _each(value: Value) -> Iterator[float | str]:
    yield from value if isinstance(value, tuple) else (value,)


def _stands_in(value: float | str, text: str) -> bool:
    """Whether a text has a word, or a number that is equal."""
    if isinstance(value, str):
        return value in text
    thousands = re.findall(r"\d+(?:,\d{3})+", text)
    return value in {float(n.replace(",", "")) for n in (*thousands, *re.findall(r"\d+(?:\.\d+)?", text))}
