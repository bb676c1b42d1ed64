"""How well layers are predicted that were never measured, by three forms on the same samples: ours, CoDL's own
(Equation 3 and Table 1 with a plain linear regression), and FLOP alone.

    python -m benchmarks.predictors [file.jsonl]

The layers are made ones with the sizes that networks have, of which every fourth is held out; CoDL's samples are of the
five networks that it is tested with, and 30 % of them test. A convolution of the host half counts with the algorithm
that was the fastest one for it.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from xcoexec.codegen.target import target
from xcoexec.cost.accuracy import CLOSE, by_flops
from xcoexec.cost.equation3 import Blocking, Shape, learned
from xcoexec.ir.text import columns
from xcoexec.ir.words import DEVICE, HOST
from xcoexec.measure import training
from xcoexec.measure.sample_layers import LAYERS, Made, made_layers
from xcoexec.measure.training import Sample
from xcoexec.papers.source import commit
from xcoexec.session.options import Options
from xcoexec.session.prepare import device_relay
from xcoexec.tools.machine import environment

if TYPE_CHECKING:
    from xcoexec.codegen.runtime.relay import Relay

FORMS = ("ours", "Equation 3", "FLOP")
COLUMNS = 2  # vectors of channels of a tile of the host half's matrix kernels
RESULTS = pathlib.Path(__file__).parent / "results"
FILE = RESULTS / "predictors.jsonl"


def shape_of(made: Made) -> Shape:
    """A made layer as Table 1 has it."""
    given = jax.ShapeDtypeStruct(made.shape, np.float32)
    weights = [jax.ShapeDtypeStruct(s, np.float32) for s in made.weights]
    out = jax.eval_shape(made.apply, weights, given).shape
    window = made.weights[0][0] if made.weights and len(made.weights[0]) == 4 else 1
    height, width = (out[1], out[2]) if len(out) == 4 else (out[0], 1)
    return Shape(height, width, made.shape[-1], out[-1], window)


def blockings(relay: Relay | None, threads: int) -> dict[str, Blocking]:
    """The blocks of both halves of this machine, whose device half is behind `relay` where it is apart."""
    vector = target().vl
    rows = (target().registers - COLUMNS - 1) // COLUMNS  # the sums of a tile, its weights and one place in registers
    blocks = training.device_blocks(relay, threads)
    return {
        HOST: Blocking(threads, (rows, COLUMNS * vector), vector),
        DEVICE: Blocking(blocks.processors, blocks.tiles[0], vector),
    }


def judged(samples: Sequence[Sample], shapes: Mapping[str, Shape], relay: Relay | None, threads: int) -> dict[str, Any]:
    """Of held-out layers: the share within 10 % and the median error by half, class and form; bytes of each form."""
    out = training.held_out(samples)
    known = [s for s in samples if s.layer not in out]
    ours = training.fitted(known, relay, threads)
    paper = learned([(s.half, s.work.kind, shapes[s.layer], s.seconds) for s in known], blockings(relay, threads))
    rows = []
    for half in (HOST, DEVICE):
        seen = training._layers([s for s in known if s.half == half])
        asked = training._layers([s for s in samples if s.half == half and s.layer in out])
        flops = by_flops([(x[0].flops, sum(s.seconds for s in x)) for x in seen], [x[0].flops for x in asked])
        errors = {
            "ours": [sum(ours.seconds(half, s.work) for s in x) for x in asked],
            "Equation 3": [sum(paper.seconds(half, s.work.kind, shapes[s.layer]) for s in x) for x in asked],
            "FLOP": flops,
        }
        measured = np.array([sum(s.seconds for s in x) for x in asked])
        kinds = [x[0].layer.split()[0] for x in asked]
        for kind in (*dict.fromkeys(kinds), "all"):
            mine = np.array([kind in ("all", k) for k in kinds])
            relative = {f: np.abs(np.array(errors[f]) / measured - 1)[mine] for f in FORMS}
            rows.append(
                {
                    "half": half,
                    "kind": kind,
                    "layers": int(mine.sum()),
                    "within": {f: float(np.mean(e <= CLOSE)) for f, e in relative.items()},
                    "median_error": {f: float(np.median(e)) for f, e in relative.items()},
                }
            )
    sizes = {"ours": len(ours.to_json()), "Equation 3": len(paper.to_json()), "FLOP": 2 * 2 * 4}
    numbers = {"Equation 3": paper.nbytes, "FLOP": 2 * 2 * 4}
    return {"accuracy": rows, "bytes": sizes, "bytes_of_numbers": numbers, "lines": len(paper.lines)}


def record(count: int = LAYERS) -> dict[str, Any]:
    """Measures so many made layers on both halves of this machine and judges all forms."""
    options = Options.checked()
    relay, threads = device_relay(options.cpus), options.threads
    start, made = time.perf_counter(), made_layers(count)
    samples = training.sampled(relay, threads, options.cpus, made)
    found = judged(samples, {m.name: shape_of(m) for m in made}, relay, threads)
    return {
        **found,
        "layers": count,
        "samples": len(samples),
        "runs": 1,
        "seconds": time.perf_counter() - start,
        "commit": commit(),
        "environment": environment(),
    }


def text(found: Mapping[str, Any]) -> str:
    """A record as a table."""
    rows = [["half", "layers of", "held out", *(f"{f} within 10 %" for f in FORMS), *(f"{f} error" for f in FORMS)]]
    for a in found["accuracy"]:
        shares = [f"{a['within'][f]:.0%}" for f in FORMS]
        rows.append([a["half"], a["kind"], str(a["layers"]), *shares, *(f"{a['median_error'][f]:.0%}" for f in FORMS)])
    sizes = ", ".join(f"{f} {n} B" for f, n in found["bytes"].items())
    return f"{columns(rows, range(2, len(rows[0])))}\nas text: {sizes}; {found['lines']} lines of Equation 3"


def main(path: pathlib.Path = FILE) -> None:
    """Appends a record to a file and prints it."""
    found = record()
    with path.open("a") as out:
        out.write(json.dumps(found) + "\n")
    print(text(found))


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
