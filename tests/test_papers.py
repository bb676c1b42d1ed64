"""The generated page of the papers' figures: what was measured is what the records say, and Table I comes out."""

from __future__ import annotations

import pathlib
import sys

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import papers  # noqa: E402


def test_table_1_comes_out() -> None:
    assert papers.table_1() == "86.49 ms; 12.96% and 5.53%"


def test_the_page_says_what_the_records_say() -> None:
    """Every claim has its row, and the measured columns are those of the records that are kept beside it."""
    page = (ROOT / "benchmarks/papers.md").read_text()
    records = papers.all_records()
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    claims = [(suite, c) for suite, found in papers.CLAIMS.items() for c in found]
    assert len(rows) == len(claims)
    for row, (suite, claim) in zip(rows, claims, strict=True):
        cells = [c.strip() for c in row.strip("|").split("|")]
        assert cells[:3] == [claim.paper, claim.what, claim.figure] and cells[6] == claim.why
        assert cells[4:6] == [claim.measured([r for r in records[k] if r["suite"] == suite]) for k in ("slice", "cpu")]
