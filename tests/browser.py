"""Looks at a page with the browser that this machine has, without a window."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
QUIET = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
SECONDS = 60.0
WIDE, PHONE = 1280, 390  # CSS pixels
#: what a script's errors and files that are not there look like in the log; a theme's own remarks are none
LOGGED = re.compile(r':CONSOLE[^"]*"((?:Uncaught|Failed to load|Refused).*)", source:')
#: asks the page in a frame how wide its content is, when everything is there
ASK = "<script>addEventListener('load', () => parent.postMessage(document.documentElement.scrollWidth, '*'))</script>"
FRAME = """<!doctype html><body data-width="">
<iframe src="{url}" style="border:0;width:{width}px;height:900px"></iframe>
<script>addEventListener('message', (e) => document.body.dataset.width = e.data)</script></body>"""


@dataclasses.dataclass(frozen=True)
class Look:
    """What a browser made of a page: its picture (PNG), its elements as text, and what its scripts complained of."""

    png: bytes
    dom: str
    complaints: tuple[str, ...]


def found() -> str | None:
    """The browser of this machine; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def look(page: pathlib.Path, width: int = WIDE, height: int = 900) -> Look:
    """A page of this machine in a window of so many CSS pixels."""
    with tempfile.TemporaryDirectory() as folder:
        picture = pathlib.Path(folder) / "page.png"
        window = (f"--window-size={width},{height}", f"--user-data-dir={folder}/profile")
        dom, log = _run(page, (*window, f"--screenshot={picture}", "--dump-dom"))
        return Look(picture.read_bytes(), dom, tuple(dict.fromkeys(LOGGED.findall(log))))


def content_width(page: pathlib.Path, width: int = PHONE) -> int:
    """CSS pixels that a page's content takes on a screen of so many; more than these have to be scrolled sideways."""
    with tempfile.TemporaryDirectory() as folder:
        asked, frame = page.with_name(f"asked-{page.name}"), pathlib.Path(folder) / "frame.html"
        asked.write_text(page.read_text().replace("</body>", f"{ASK}</body>"))
        frame.write_text(FRAME.format(url=asked.resolve().as_uri(), width=width))
        try:
            dom, _ = _run(frame, (f"--user-data-dir={folder}/profile", "--virtual-time-budget=10000", "--dump-dom"))
        finally:
            asked.unlink()
        (answer,) = re.findall(r'data-width="(\d+)"', dom)
        return int(answer)


def _run(page: pathlib.Path, options: Sequence[str]) -> tuple[str, str]:
    """Standard output and log."""
    browser = found()
    assert browser is not None
    command = [browser, *QUIET, "--enable-logging=stderr", *options, page.resolve().as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    return done.stdout, done.stderr
