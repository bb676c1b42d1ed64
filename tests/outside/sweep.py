"""The sweep: every public operation and layer through `jax.jit` and `xcoexec.jit`, case by case.

    python -m tests.outside.sweep --part forward --out out/sweep.jsonl            # one part
    python -m tests.outside.sweep --part all --shard 1/4 --seconds 900 --out ...  # a quarter of all, 15 minutes
    python -m tests.outside.sweep --part forward --only 'jax.numpy.ta*'           # some of it
    python -m tests.outside.sweep --summary --out out/sweep.jsonl                 # the tables of a file

Cases run in a child process, in a fixed order; a case that takes longer than `--limit` seconds or ends the process is
recorded as "hang" or "crash", and a new child goes on behind it. What a file holds already is not run again, so that a
sweep can be continued; lines carry the versions and the commit. The exit status is 1 if any case failed that does
not fail with plain `jax.jit`.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import gc
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from .jsonlines import lines as json_lines

Record = dict[str, Any]
ROOT = pathlib.Path(__file__).resolve().parents[2]
BAD = ("wrong", "type", "raises", "quiet", "other error", "internal", "hang", "crash")
CLEAR_EVERY = 60  # cases between two clearings of JAX's caches
STRATEGY_NAMES = ("kernels", "split", "rows", "host", "auto", "device")


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    if args.child:
        return _child(args)
    parts = PART_NAMES if args.part == "all" else args.part.split(",")
    unknown = [p for p in parts if p not in PART_NAMES]
    if unknown:
        sys.exit(f"sweep: got the part {unknown[0]!r}; valid are all, {', '.join(PART_NAMES)}.")
    out = pathlib.Path(args.out)
    if not args.summary:
        out.parent.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + args.seconds
        for part in parts:
            _run_part(part, args, out, end)
    records = [r for r in read(out) if r["part"] in parts]
    print(summary(records))
    return int(any(r["status"] in BAD for r in records))


PART_NAMES = ("forward", "grad", "vjp", "linen", "nnx", "options", "layouts", "shapes", "shapes-grad", "types", "x64")


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--part", default="all", help=f"all, or some of: {', '.join(PART_NAMES)} (with commas)")
    p.add_argument("--shard", default="1/1", help="i/n: each n-th case, from the i-th on")
    p.add_argument("--seconds", type=float, default=float("inf"), help="stop beginning cases after so many seconds")
    p.add_argument("--limit", type=float, default=300.0, help="seconds after which a case counts as hanging")
    p.add_argument("--strategy", default="kernels", choices=STRATEGY_NAMES)
    p.add_argument("--only", default="*", help="a pattern (shell style) of case names")
    p.add_argument("--out", default=str(ROOT / "out" / "sweep.jsonl"))
    p.add_argument("--summary", action="store_true", help="run nothing, print the tables")
    p.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return p


def read(path: pathlib.Path) -> list[Record]:
    """The finished cases of a file."""
    return [record for record in json_lines(path) if "status" in record]


# -- the parent --------------------------------------------------------------------------------------


def _run_part(part: str, args: argparse.Namespace, out: pathlib.Path, end: float) -> None:
    """Children one after the other until the part is through or the time is."""
    from .sweep_cases import PARTS

    env = {**os.environ, "JAX_PLATFORMS": "cpu", "XCOEXEC_ADAPT": "0", **PARTS[part][1]}
    before = len(read(out))
    while time.monotonic() < end:
        left = end - time.monotonic()
        command = [
            sys.executable,
            "-m",
            "tests.outside.sweep",
            "--child",
            "--part",
            part,
            "--shard",
            args.shard,
            "--strategy",
            args.strategy,
        ]
        command += ["--only", args.only, "--out", str(out), "--seconds", str(left)]
        child = subprocess.Popen(command, cwd=ROOT, env=env)
        try:
            status = _watch(child, out, args.limit)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
        if status == "done":
            return
        begun, now = _begun(out), len(read(out))
        if begun is None and now == before:
            sys.exit(f"sweep: the child process of part {part} ended ({status}) before its first case.")
        _append(out, {**(begun or _after(out)), "status": status.split()[0], "detail": status, "ran": "", "why": ""})
        before = now


def _watch(child: subprocess.Popen[bytes], out: pathlib.Path, limit: float) -> str:
    """ "done", "hang ..." or "crash ..." of a child."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        now = out.stat().st_size if out.exists() else 0
        if now != size:
            size, since = now, time.monotonic()
        if time.monotonic() - since > limit:
            return f"hang of more than {limit:g} s"
    return "done" if child.returncode == 0 else f"crash with status {child.returncode}"


def _begun(out: pathlib.Path) -> Record | None:
    """The case that the last child had begun and not finished."""
    lines = out.read_text().splitlines() if out.exists() else []
    last = json.loads(lines[-1]) if lines else {}
    return {k: v for k, v in last.items() if k != "begun"} if last.get("begun") else None


def _after(out: pathlib.Path) -> Record:
    """A child that ended between two cases (in what the one before left behind)."""
    last = read(out)[-1]
    return {**last, "case": f"after {last['case']}"}


def _append(out: pathlib.Path, record: Record) -> None:
    with out.open("a") as f:
        f.write(json.dumps(record) + "\n")


# -- the child ---------------------------------------------------------------------------------------


def _child(args: argparse.Namespace) -> int:
    import jax

    from .sweep_cases import PARTS
    from .sweep_compare import Verdict, compare

    out, where = pathlib.Path(args.out), environment()
    done = {
        (r["part"], r["strategy"], r["case"])
        for r in read(out)
        if r["commit"] == where["commit"] and r["jax"] == where["jax"]
    }
    end = time.monotonic() + args.seconds
    for i, case in enumerate(_mine(PARTS[args.part][0](), args)):
        if (args.part, args.strategy, case.name) in done:
            continue
        if time.monotonic() > end:
            break
        head = {"part": args.part, "case": case.name, "strategy": args.strategy, **where}
        _append(out, {**head, "begun": True})
        start = time.perf_counter()
        try:
            made = case.make()
            verdict = (
                Verdict("not swept", "no arguments are known")
                if made is None
                else compare(made.fn, made.args, args.strategy, wide=made.wide, **made.options)
            )
        except Exception as e:
            verdict = Verdict(
                "not swept",
                f"making the arguments: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:300],
            )
        seconds = round(time.perf_counter() - start, 3)
        record = {
            "status": verdict.status,
            "detail": verdict.detail,
            "ran": verdict.ran,
            "segments": verdict.segments,
            "why": verdict.why,
            "seconds": seconds,
        }
        _append(out, {**head, **record})
        if i % CLEAR_EVERY == CLEAR_EVERY - 1:
            jax.clear_caches()
            gc.collect()
    return 0


def _mine(cases: Iterator[Any], args: argparse.Namespace) -> Iterator[Any]:
    first, n = map(int, args.shard.split("/"))
    for i, case in enumerate(c for c in cases if fnmatch.fnmatch(c.name, args.only)):
        if i % n == first - 1:
            yield case


def environment() -> Record:
    """Versions, commit and machine in general terms."""
    import jax
    import jaxlib

    import xcoexec

    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return {
        "commit": git.stdout.strip() or "unknown",
        "xcoexec": xcoexec.__version__,
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()}-core {platform.machine()}",
    }


# -- tables ------------------------------------------------------------------------------------------


def summary(records: list[Record]) -> str:
    """Counts by part; why cases fell back; what is not swept; failures of plain jax.jit; failures by cause."""
    latest = {(r["part"], r["strategy"], r["jax"], r["case"]): r for r in records}
    records = list(latest.values())
    blocks = [
        _counts(records),
        _reasons("fell back to plain jax.jit", [r for r in records if r["ran"] == "fallback"], "why"),
    ]
    blocks.append(_named("not swept", [r for r in records if r["status"] == "not swept"]))
    blocks.append(
        _reasons("plain jax.jit fails, and ours alike", [r for r in records if r["status"] == "plain"], "detail")
    )
    blocks.append(
        _reasons("right by float64, other than jax.jit", [r for r in records if r["status"] == "nearer"], "case")
    )
    blocks.append(_reasons("FAILURES", [r for r in records if r["status"] in BAD], "detail", 3))
    return "\n\n".join(b for b in blocks if b)


def _counts(records: list[Record]) -> str:
    columns = ("same", "nearer", "plain", "more", "not swept", *BAD)
    lines = [
        f"{'part':14} {'strategy':9} {'jax':9} {'cases':>6} {'kernels':>8} {'xla':>6} {'fallback':>8} "
        + " ".join(f"{c:>11}" for c in columns)
    ]
    groups: Mapping[Any, list[Record]] = collections.defaultdict(list)
    for r in records:
        groups[r["part"], r["strategy"], r["jax"]].append(r)
    for (part, strategy, version), rs in sorted(groups.items(), key=lambda kv: (PART_NAMES.index(kv[0][0]), kv[0][1:])):
        ran = collections.Counter(r["ran"] for r in rs)
        status = collections.Counter(r["status"] for r in rs)
        counts = " ".join(f"{status[c]:11}" for c in columns)
        by = f"{ran['kernels']:8} {ran['xla']:6} {ran['fallback']:8}"
        lines.append(f"{part:14} {strategy:9} {version:9} {len(rs):6} {by} {counts}")
    return "\n".join(lines)


def cause(text: str) -> str:
    """A message without what differs from case to case: numbers, shapes, addresses."""
    import re

    text = re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?(e[-+]?\d+)?", "#", text)
    text = re.sub(r"\[[#, ]*\]|\([#, ]*\)", "[#]", text)
    return text[:110]


def _reasons(title: str, records: list[Record], field: str, examples: int = 1) -> str:
    groups: Mapping[Any, list[str]] = collections.defaultdict(list)
    for r in records:
        groups[r["status"] if field != "why" else "", cause(r[field])].append(r["case"])
    if not groups:
        return ""
    lines = [f"{title}: {len(records)}"]
    for (status, text), names in sorted(groups.items(), key=lambda kv: -len(kv[1])):
        lines.append(f"  {len(names):5}  {status} {text}   e.g. {', '.join(names[:examples])}")
    return "\n".join(lines)


def _named(title: str, records: list[Record]) -> str:
    return (
        f"{title}: {len(records)}\n  " + "\n  ".join(f"{r['case']}: {r['detail']}" for r in records) if records else ""
    )


if __name__ == "__main__":
    sys.exit(main())
