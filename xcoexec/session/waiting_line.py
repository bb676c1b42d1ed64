"""What a wait that takes long is for: one line in a terminal, a bar in a notebook, nothing elsewhere."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Protocol

SHOWN_SECONDS = 2.0  # a wait that is longer says what it waits for
REDRAWN_SECONDS = 0.5  # between two drawings of a notebook's bar


class _Place(Protocol):
    """Where a line is shown; `share`: how much is done, 0..1 (None: not known)."""

    def show(self, text: str, share: float | None) -> None: ...

    def end(self) -> None: ...


class _Nowhere:
    """Nobody is there to read it."""

    def show(self, text: str, share: float | None) -> None:
        pass

    def end(self) -> None:
        pass


class _Terminal:
    """A line on standard error, written over and over, and taken away at the end."""

    def __init__(self) -> None:
        self._width = 0

    def show(self, text: str, share: float | None) -> None:
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        sys.stderr.write("\r" + " " * self._width + "\r")
        sys.stderr.flush()


class _Notebook:
    """A bar below the cell, drawn over and over, and taken away at the end."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = 0.0

    def show(self, text: str, share: float | None) -> None:
        now = time.monotonic()
        if self._handle is None or now - self._drawn > REDRAWN_SECONDS:
            self._drawn = now
            value = "" if share is None else f' value="{share:.3f}"'
            self._draw(text, f'<progress max="1"{value}></progress> <code>{html.escape(text)}</code>')

    def end(self) -> None:
        self._draw("", "")

    def _draw(self, plain: str, rich: str) -> None:
        """Both forms: front ends without HTML show the first."""
        from IPython.display import display

        both = {"text/plain": plain, "text/html": rich}
        if self._handle is None:
            self._handle = display(both, raw=True, display_id=True)
        else:
            self._handle.update(both, raw=True)


def _place() -> _Place:
    if sys.stderr is not None and sys.stderr.isatty():
        return _Terminal()
    return _Notebook() if "ipykernel" in sys.modules else _Nowhere()


class Line:
    """What a wait is for, shown once it has taken `SHOWN_SECONDS`."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._place: _Place | None = None

    def show(self, text: str, done: int = 0, total: int = 0) -> None:
        """Shows a text and how much of a total is done (0: not known), when the wait has been long enough."""
        if time.monotonic() - self._began < SHOWN_SECONDS:
            return
        if self._place is None:
            self._place = _place()
        self._place.show(f"xcoexec: {text}", min(done / total, 1.0) if total > 1 else None)

    def end(self) -> None:
        """Takes away what is shown."""
        if self._place is not None:
            self._place.end()
            self._place = None


__all__ = ["Line"]
