"""`python -m benchmarks.device_cuts [model ...] [--device h200] [--most 8]`: pipelines over devices that are numbers.

For each model the exact cut into stages on one to `--most` devices that exist as numbers and the host beside them, in
seconds between results, until further devices do not pay. Nothing is run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import jax

from xcoexec import models
from xcoexec.frontend.graph import graph_of
from xcoexec.ir.text import columns
from xcoexec.planning import profiles
from xcoexec.planning.device_cuts import DeviceCut, scaling
from xcoexec.planning.several import Several, replay

MODELS = ("resnet50", "mobilenet_v2", "vgg16")


def cuts(name: str, device: str, batch: int, most: int) -> list[DeviceCut]:
    """The cuts of a model of the zoo that are worth their devices."""
    entry = models.get(name)
    described = lambda tree: jax.tree_util.tree_map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)
    args = described(entry.variables()), described(entry.example(batch))
    _, graph = graph_of(entry.module.apply, args, 1)
    found = Several.of(graph, [profiles.load(device)])
    return scaling(found.kinds, found.crossing, found.growing, most)


def main(argv: Sequence[str] | None = None) -> None:
    """See the module's own words."""
    parser = argparse.ArgumentParser(prog="benchmarks.device_cuts", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--most", type=int, default=8)
    given = parser.parse_args(argv)
    rows = [["model", "stages", "calculated ms a result", "simulated", "times", "cut"]]
    for name in given.models:
        found = cuts(name, given.device, given.batch, given.most)
        for cut in found:
            times, stages = f"{found[0].period / cut.period:.2f}", str(cut).rsplit(":", 1)[0]
            seconds = [f"{1e3 * s:.3f}" for s in (cut.period, replay(cut)[0])]
            rows.append([name, str(len(cut.stages)), *seconds, times, stages])
    print(columns(rows))


if __name__ == "__main__":
    main()
