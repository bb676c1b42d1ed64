"""The Xavier's profile against every number that three papers print for that board: the list of what it meets is
data, computed here.
"""

from __future__ import annotations

import pytest

from benchmarks import xavier
from xcoexec.planning import profiles

NAMES = [e["of"] for e in xavier.lists()["printed"]]


@pytest.fixture(scope="module")
def printed() -> dict[str, xavier.Printed]:
    return {p.of: p for p in xavier.printed()}


@pytest.mark.parametrize("name", NAMES)
def test_the_list_says_what_the_profile_meets(name: str, printed: dict[str, xavier.Printed]) -> None:
    p = printed[name]
    assert p.met == p.said, f"{p.of}: printed {p.paper:g}, the profile has {p.ours:g}"
    assert p.said == (p.why == "")
    assert p.quoted.board == "xavier" or "xavier" in p.of or p.of == "neuropipe.table1.cpu_cores.1"


def test_no_printed_number_is_left_out(printed: dict[str, xavier.Printed]) -> None:
    """Each record of the board is in one of both lists; every check is used."""
    elsewhere = [of for e in xavier.lists()["elsewhere"] for of in e["of"]]
    listed = {p.of.rsplit(".")[0] + "." + p.of.split(".")[1] for p in printed.values()}
    assert listed | set(elsewhere) == set(xavier.records()) and not listed & set(elsewhere)
    assert len(elsewhere) == len(set(elsewhere)) and all(e["why"] for e in xavier.lists()["elsewhere"])
    assert list(printed) == NAMES
    assert set(NAMES) == set(xavier.CHECKS)
    assert sum(p.met for p in printed.values()) == 10


def test_what_a_wrong_profile_would_show(monkeypatch: pytest.MonkeyPatch, printed: dict[str, xavier.Printed]) -> None:
    """The comparison sees a board with half of the bandwidth."""
    text = (profiles.__file__).replace("__init__.py", f"{xavier.BOARD}.toml")
    with open(text, encoding="utf-8") as f:
        half = profiles.parse("half", f.read().replace("[1.37e11,", "[0.685e11,"))
    monkeypatch.setattr(xavier, "profile", lambda: half)
    assert xavier.CHECKS["edgenn.bandwidth.xavier"]() == pytest.approx(68.5)
    entry = printed["edgenn.bandwidth.xavier"]
    assert entry.met and entry.paper == 137


def test_the_boards_powers_and_clocks() -> None:
    found = profiles.load(xavier.BOARD).electric
    assert found is not None and found.watts.idle > 0
    for half in ("host", "device"):
        levels = found.levels(half)
        assert list(levels) == sorted(levels) and levels[-1] == found.most[half].value
        assert found.now[half].value in levels and len(levels) == profiles.STEPS + 1
    assert profiles.load("khadas-vim3").electric is None
