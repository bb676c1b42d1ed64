"""Pictures of what people see, kept in docs/images: README, the site's front page, a report, the demo, a suite's page.

    make docs && python docs/screenshots.py [the demo's text] [a suite's page]

Needs a browser (see `tests/browser.py`), and the packages of the extra `docs`.
"""

from __future__ import annotations

import html
import io
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from markdown_it import MarkdownIt  # noqa: E402
from PIL import Image  # noqa: E402

from tests.browser import WIDE, look  # noqa: E402

IMAGES, SITE = ROOT / "docs" / "images", ROOT / "out" / "docs"
COLOURS = 64  # of a picture: enough for text
README_STYLE = (
    "body{font:16px/1.5 sans-serif;max-width:860px;margin:32px auto;color:#1f2328}pre,code{background:#f6f8fa}"
    "pre{padding:16px;font-size:14px}table{border-collapse:collapse}td,th{border:1px solid #d1d9e0;padding:6px 13px}"
    "img{max-width:100%}"
)
TERMINAL_STYLE = "body{background:#1e1e1e;color:#ddd;font:14px/1.35 monospace;margin:16px}pre{margin:0}"


def keep(name: str, page: pathlib.Path, size: tuple[int, int], part: tuple[int, int, int, int] | None = None) -> None:
    """A picture of a page in a window, or of a part of it (left, upper, right, lower pixels)."""
    picture = Image.open(io.BytesIO(look(page, *size).png)).convert("RGB")
    picture.crop(part or (0, 0, *size)).quantize(COLOURS).save(IMAGES / f"{name}.png", optimize=True)


def document(style: str, body: str) -> str:
    return f"<!doctype html><meta charset=utf-8><style>{style}</style>{body}"


def main(demo: pathlib.Path | None = None, suite: pathlib.Path | None = None) -> None:
    readme = ROOT / "README-shown.html"  # beside the pictures that it shows
    text = MarkdownIt("gfm-like", {"linkify": False}).render(_text(ROOT / "README.md"))
    readme.write_text(document(README_STYLE, text))
    try:
        keep("readme", readme, (980, 1650))
    finally:
        readme.unlink()
    keep("docs-front", SITE / "index.html", (WIDE, 900))
    keep("report-in-a-notebook", SITE / "generated" / "tour.html", (1500, 2000), (330, 1130, 1200, 1960))
    if suite is not None:
        keep("suite", suite, (WIDE, 1000))
    if demo is not None:
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            page.write_text(document(TERMINAL_STYLE, f"<pre>{html.escape(_text(demo))}</pre>"))
            keep("demo-in-a-terminal", page, (760, 745))


def _text(path: pathlib.Path) -> str:
    return path.read_text("utf-8")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
