"""The rows of the three papers about splits and switches: for every table and figure what the paper prints, beside what
was measured here, calculated from printed numbers, or simulated on the paper's board.

    from benchmarks import split_rows
    split_rows.rows("codl")  # a list of dicts, see `split_common.row`

`kind` is "measured", "calculated" or "simulated"; "absent" is a row that is not here, and its note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import split_codl, split_edgenn, split_switched
from .split_common import Row, all_of, pictures

#: key of `xcoexec.papers.quoted` -> a function for each table and figure, in their order
FUNCTIONS: Mapping[str, tuple[Callable[[], list[Row]], ...]] = {
    "edgenn": split_edgenn.FUNCTIONS,
    "codl": split_codl.FUNCTIONS,
    "layer_switched": split_switched.FUNCTIONS,
}


def rows(paper: str) -> list[Row]:
    """All rows of a paper, the pictures without values last. Raises `KeyError` for a paper that is not of these."""
    return [*all_of(FUNCTIONS[paper]), *pictures(paper)]


__all__ = ["FUNCTIONS", "rows"]
