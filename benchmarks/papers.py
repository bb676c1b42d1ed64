"""Writes benchmarks/papers.md from the records that benchmarks/results keeps (`xcoexec papers` makes records).

python -m benchmarks.papers
"""

from __future__ import annotations

import pathlib

from xcoexec.papers import markdown, run, table

PAGE = pathlib.Path(__file__).parent / "papers.md"


def main() -> None:
    PAGE.write_text(markdown.text(run.others(), table.ROWS), "utf-8")


if __name__ == "__main__":
    main()
