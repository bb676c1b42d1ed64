"""Networks and algorithms drawn at random, against float64 NumPy; the long run is `tests.outside.networks`."""

from __future__ import annotations

import pytest

from .outside import networks

pytestmark = pytest.mark.usefixtures("quick_xla")


@pytest.mark.parametrize("seed", range(24))
def test_a_network(seed: int) -> None:
    found = networks.check(seed)
    if found.startswith("- "):
        pytest.skip(found)
    assert not found


def test_networks_are_of_many_kinds() -> None:
    """Of all blocks and number types."""
    texts = [networks.network(seed).text for seed in range(100)]
    names = {b.__name__.strip("_") for b in networks.BLOCKS}
    assert names == {n.strip(",") for t in texts for n in t.split(")")[1].split(",")[0].split()}
    assert {t.split()[0] for t in texts} == {*networks.LARGEST}


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is off by a tenth, and a lowering that fails."""
    right = networks.computed
    monkeypatch.setattr(networks, "computed", lambda *given: [y * 1.1 for y in right(*given)])
    assert "of the largest result" in networks.check(0)

    def fails(*given: object) -> None:
        raise AssertionError("only so")

    monkeypatch.setattr(networks, "computed", fails)
    assert "only so" in networks.check(0)
