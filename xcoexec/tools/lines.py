"""Files of JSON lines that a killed process may have left with half a line."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any


class LinesError(ValueError):
    """A file of JSON lines is not what it should be; the text says what is valid."""


def load(path: str | os.PathLike[str], needed: Sequence[str]) -> list[dict[str, Any]]:
    """The records of a file, none where it is not there. A last line that was cut off is left out. Raises `LinesError`
    for other lines that are no records with the `needed` entries.
    """
    file = pathlib.Path(path)
    if not file.is_file():
        return []
    found = file.read_text("utf-8").split("\n")
    records: list[dict[str, Any]] = []
    for i, line in enumerate(found, 1):
        try:
            record = json.loads(line) if line else None
        except json.JSONDecodeError:
            if i == len(found):  # a run that was killed while it wrote
                break
            record = 0
        if record is None:
            continue
        if not isinstance(record, dict) or any(k not in record for k in needed):
            raise LinesError(
                f"records: got line {i} of {str(file)!r}, which is no record; valid are JSON objects with"
                f" {', '.join(needed)}."
            )
        records.append(record)
    return records


def append(path: str | os.PathLike[str], record: object) -> None:
    """Writes a record behind those of a file; a line that was cut off there is ended first."""
    file = pathlib.Path(path)
    with file.open("a+", encoding="utf-8") as out:
        out.seek(0)
        kept = out.read()
        if kept and not kept.endswith("\n"):
            out.truncate(len(kept[: kept.rfind("\n") + 1].encode()))
        out.write(json.dumps(record) + "\n")


__all__ = ["LinesError", "append", "load"]
