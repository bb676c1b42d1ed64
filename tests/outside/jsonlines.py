"""Files of JSON lines that a process may have been killed while writing; this module starts no JAX."""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any


def lines(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file, none where there is no file; a line that was cut off in the middle counts as not
    written.
    """
    for text in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(text)
