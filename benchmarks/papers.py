"""Writes benchmarks/papers.md from the records that benchmarks/results keeps (`xcoexec papers` makes records).

    python -m benchmarks.papers [--take papers.jsonl --name xeon-16cores-h200-slice]

`--take` first adds the records of a run, on another machine for example, to those of that name, in the place of older
ones. Where that machine had
no repository, a record names only a version; the hash of its code says whether it was this revision's.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence

from xcoexec.papers import markdown, records, run, source, table
from xcoexec.tools import lines

PAGE = pathlib.Path(__file__).parent / "papers.md"


def take(file: pathlib.Path, name: str) -> int:
    """Adds a file's records of rows to the kept ones, in the place of those of the same row, size and machine; how
    many. Those that ran this revision's code name it.
    """
    rows = {r.key: r for r in table.ROWS}
    found = {_same(r): r for r in records.load(file) if r["key"] in rows and not r.get("failed")}
    kept = run.RESULTS / f"{name}-papers.jsonl"
    made = [r for r in records.load(kept) if _same(r) not in found and r["key"] in rows]
    for r in found.values():
        this = r["commit"].startswith("version ") and not records.stale(r, rows[r["key"]])
        made.append({**r, "commit": source.commit() if this else r["commit"]})
    kept.unlink(missing_ok=True)
    for r in made:
        lines.append(kept, r)
    return len(found)


def _same(record: records.Record) -> tuple[str, str, str]:
    """What a later record takes the place of."""
    return record["key"], record["size"], records.machine(record["environment"])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--take", type=pathlib.Path, help="records to add")
    parser.add_argument("--name", help="of the file in benchmarks/results, without -papers.jsonl")
    args = parser.parse_args(argv)
    if (args.take is None) != (args.name is None):
        parser.error("got one of --take and --name; valid are both or none")
    if args.take:
        print(f"{take(args.take, args.name)} records taken")
    PAGE.write_text(markdown.text(run.others(), table.ROWS), "utf-8")


if __name__ == "__main__":
    main()
