"""`python -m benchmarks [folder] [model ...]`: runs the cases, prints a table, appends JSONL, draws the picture."""

from __future__ import annotations

import json
import pathlib
import sys

from rich.progress import track

from xcoexec.tools import bench

from .cases import CASES


def main(argv: list[str]) -> None:
    folder = pathlib.Path(argv[0] if argv else "out")
    folder.mkdir(parents=True, exist_ok=True)
    wanted = set(argv[1:])
    records = []
    for model, batch, strategy in track([c for c in CASES if not wanted or c[0] in wanted], "benchmarks"):
        record = bench.measure(model, batch, strategy)
        record.update(bench.peak_memory(model, batch))
        records.append(record)
        with open(folder / "bench.jsonl", "a") as f:
            f.write(json.dumps(record) + "\n")
    print(bench.text(records))
    picture(records, folder / "bench.png")
    print(f"written: {folder / 'bench.jsonl'}, {folder / 'bench.png'}")


def picture(records: list[bench.Record], path: pathlib.Path) -> None:
    """Speed-up over jax.jit, one bar a model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(8, 0.45 * len(records) + 1.4))
    names = [r["model"] for r in records][::-1]
    values = [r["speedup"] for r in records][::-1]
    bars = ax.barh(names, values, color="#2a78b8")
    ax.bar_label(bars, [f"{v:.2f}x" for v in values], padding=3)
    ax.axvline(1.0, color="#888888", linewidth=1)
    ax.set_xlim(0, max(values) * 1.15)
    e = records[0]
    ax.set_xlabel("times faster than jax.jit (batch 1, f32)")
    ax.set_title(f"{e['cpu']}, {e['threads']} threads, jax {e['jax']}", fontsize=10)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    fig.tight_layout()
    fig.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1:])
