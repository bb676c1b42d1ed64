"""Pages as a browser shows them: they have a picture, no script complains, links lead somewhere, and nobody has to
scroll sideways on a phone. Skipped where this machine has no browser.
"""

from __future__ import annotations

import pathlib
import re
import urllib.parse
from collections.abc import Callable

import pytest

from xcoexec.papers import run as papers
from xcoexec.tools import html, suite
from xcoexec.tools.suite import Suite

from . import browser

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "out" / "docs"
TINY = Suite("for a test", ("lenet",), variants=("device", "host", "layer_switch", "auto"), rounds=2, block=0.005)

pytestmark = pytest.mark.skipif(browser.found() is None, reason="no browser on this machine")


def suite_page(folder: pathlib.Path) -> pathlib.Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "SUITES", {**suite.SUITES, "tiny": TINY})
        records = suite.run("tiny", folder / "tiny.jsonl")
    html.write(records, "A suite", folder / "suite.html")
    return folder / "suite.html"


def papers_page(folder: pathlib.Path) -> pathlib.Path:
    papers.write(folder)
    return folder / papers.PAGE


def front_page(folder: pathlib.Path) -> pathlib.Path:
    if not (DOCS / "index.html").is_file():
        pytest.skip("`make docs` has not run")
    return DOCS / "index.html"


@pytest.fixture(scope="module", params=[suite_page, papers_page, front_page], ids=lambda make: make.__name__)
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    make: Callable[[pathlib.Path], pathlib.Path] = request.param
    return make(tmp_path_factory.mktemp("pages"))


def links(dom: str) -> list[str]:
    """What a page leads to and loads, on this machine."""
    found = re.findall(r'(?:href|src)="([^"]+)"', dom)
    return [x for x in dict.fromkeys(found) if urllib.parse.urlparse(x).scheme in ("", "file")]


def test_a_page_is_shown_as_it_is_meant(page: pathlib.Path) -> None:
    seen = browser.look(page)
    assert seen.png.startswith(b"\x89PNG") and len(seen.png) > 20_000  # an empty one of this size has 4 kB
    assert seen.complaints == ()
    assert browser.content_width(page) <= browser.PHONE
    for link in links(seen.dom):
        path, _, name = urllib.parse.unquote(link).partition("#")
        target = page.parent / path.partition("?")[0] if path else page
        assert target.exists(), link
        if name and target.suffix == ".html":
            assert re.search(rf'(?:id|name)="{re.escape(name)}"', target.read_text()), link


def test_complaints_and_wide_contents_are_seen(tmp_path: pathlib.Path) -> None:
    """What the test above relies on."""
    bad = tmp_path / "bad.html"
    bad.write_text("<!doctype html><html><body><div style='width:700px'>x</div><script>oops()</script></body></html>")
    assert any("oops is not defined" in c for c in browser.look(bad).complaints)
    assert browser.content_width(bad) >= 700
