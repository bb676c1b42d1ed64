"""The command line: `xcoexec demo | plan | run | profile | bench`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model", "lenet", "Model of the zoo (an unknown name lists them).")
flags.DEFINE_integer("batch", 1, "Batch size.", lower_bound=1)
flags.DEFINE_string("strategy", "auto", "auto, device, host, edgenn, codl or capacity.")
flags.DEFINE_integer("threads", None, "Host threads (default: the cores this process may use).", lower_bound=1)
flags.DEFINE_string("memory", "auto", "With a GPU: how arrays cross between the halves, auto, mapped or copy.")
flags.DEFINE_string("device_memory", None, "With a GPU: the most that may lie on it, such as 16GiB, or a share of it such as 0.5.")
flags.DEFINE_boolean("json", False, "Print JSON instead of tables.")
flags.DEFINE_string("plot", "", "run: also draw the roofline with the layers on it into this PNG.")
flags.DEFINE_list("affinity", None, "Cores to pin host threads to, such as 0,1 (the calling thread then stays out of the work).")
flags.DEFINE_string("out", "out", "Folder for the files that demo and bench write.")


def _bound() -> tuple[Any, Any, Any]:
    """(model, bound function, example input) for the flags."""
    import jax

    import xcoexec
    from xcoexec import models

    from .progress import shown

    entry = models.get(FLAGS.model)
    with shown(FLAGS.model) as progress:
        fast = xcoexec.jit(
            entry.module.apply,
            strategy=FLAGS.strategy,
            threads=FLAGS.threads,
            affinity=_affinity(),
            memory=FLAGS.memory,
            device_memory=_device_memory(),
            progress=progress,
        ).bind(entry.variables())
        x = entry.example(FLAGS.batch)
        jax.block_until_ready(fast(x))
    return entry, fast, x


def _device_memory() -> str | float | None:
    """A share where the flag is a number up to 1, else bytes in words."""
    given = FLAGS.device_memory
    try:
        return float(given) if given is not None and 0 < float(given) <= 1 else given
    except ValueError:
        return given


def _affinity() -> list[int] | None:
    if FLAGS.affinity is None:
        return None
    if not all(c.strip().isdigit() for c in FLAGS.affinity):
        raise ValueError(f"xcoexec: got --affinity={','.join(FLAGS.affinity)}; valid are core numbers, such as 0,1.")
    return [int(c) for c in FLAGS.affinity]


def plan() -> None:
    """Prints the layer graph and the plan."""
    from .pretty import graph_text, plan_text

    _, fast, _ = _bound()
    print(fast.plan().to_json() if FLAGS.json else f"{graph_text(fast.graph())}\n\n{plan_text(fast.plan())}")


def run() -> None:
    """Runs the model on a random input and prints the report."""
    import dataclasses

    import jax

    from .profile import median_seconds

    entry, fast, x = _bound()
    seconds = median_seconds(lambda: jax.block_until_ready(fast(x)), 0.5, 10)
    report = fast.report()
    if FLAGS.plot:
        report.plot(FLAGS.plot)
    if FLAGS.json:
        print(json.dumps({"model": entry.name, "seconds": seconds, **dataclasses.asdict(report)}))
    else:
        print(f"{report}\n{entry.name}: {seconds * 1e3:.3f} ms a call (median), batch {FLAGS.batch}")


def profile() -> None:
    """Prints the measured seconds of every layer on both halves and the fixed costs."""
    import dataclasses

    from .cost.edgenn import bound
    from .pretty import columns, milliseconds

    _, fast, x = _bound()
    stages = fast._for("profile", (x,), {}).stages
    costs = stages.measured_costs()
    if FLAGS.json:
        print(json.dumps(dataclasses.asdict(costs)))
        return
    rows = [["layer", "host ms", "device ms", "bound ms"]]
    for layer, h, d in zip(stages.graph.layers, costs.host, costs.device, strict=True):
        rows.append([layer.name, milliseconds(h), milliseconds(d), milliseconds(bound(h, d) if h else None)])
    print(columns(rows, (1, 2, 3)))
    print(f"segment call {costs.sync * 1e6:.1f} us, copies {costs.copy_rate / 1e9:.1f} GB/s, halves share their cores: {costs.shared_cores}")


def bench() -> None:
    """Measures one model against jax.jit, alternating in this process."""
    from . import bench as runner

    record = runner.measure(FLAGS.model, FLAGS.batch, FLAGS.strategy, FLAGS.threads)
    print(json.dumps(record) if FLAGS.json else runner.text([record]))


def demo() -> None:
    """Trains LeNet, then co-executes three networks on photographs."""
    from . import demo as show

    show.main(FLAGS.out, FLAGS.threads)


COMMANDS: dict[str, Callable[[], None]] = {"demo": demo, "plan": plan, "run": run, "profile": profile, "bench": bench}


def _main(argv: Sequence[str]) -> None:
    if len(argv) != 2 or argv[1] not in COMMANDS:
        got = " ".join(argv[1:]) or "no command"
        sys.exit(f"xcoexec: got {got}; valid commands are {', '.join(COMMANDS)} (xcoexec --help lists the flags).")
    try:
        COMMANDS[argv[1]]()
    except ValueError as e:
        sys.exit(str(e))


def main() -> None:
    """Entry point of the `xcoexec` script."""
    app.run(_main)
