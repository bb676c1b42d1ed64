"""The command line: `xcoexec demo | plan | simulate | run | profile | bench`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_string("model", "lenet", "Model of the zoo (an unknown name lists them).")
flags.DEFINE_integer("batch", 1, "Batch size.", lower_bound=1)
flags.DEFINE_string("strategy", "auto", "auto, device, host, edgenn, codl or capacity.")
flags.DEFINE_integer("threads", None, "Host threads (default: the cores this process may use).", lower_bound=1)
flags.DEFINE_string(
    "device", "", "plan, simulate: a device that exists as numbers (an unknown name lists them), or a TOML file."
)
flags.DEFINE_string("memory", "auto", "With a GPU: how arrays cross between the halves, auto, mapped or copy.")
flags.DEFINE_string(
    "device_memory", None, "With a GPU: the most that may lie on it, such as 16GiB, or a share of it such as 0.5."
)
flags.DEFINE_string(
    "costs", "measured", "measured, or predicted by what `xcoexec profile` has learned (plan: then nothing is run)."
)
flags.DEFINE_boolean("json", False, "Print JSON instead of tables.")
flags.DEFINE_string("plot", "", "run: also draw the roofline with the layers on it into this PNG.")
flags.DEFINE_list(
    "affinity", None, "Cores to pin host threads to, such as 0,1 (the calling thread then stays out of the work)."
)
flags.DEFINE_string("suite", "", "bench: all strategies on a suite of networks (an unknown name lists them).")
flags.DEFINE_string("variants", "", "bench --suite: only these variants, separated by semicolons.")
flags.DEFINE_string("against", "", "bench --suite: an older run's JSON lines to compare with.")
flags.DEFINE_string("out", "out", "Folder for the files that demo and bench write.")


def _bound() -> tuple[Any, Any, Any]:
    """(model, bound function, example input) for the flags."""
    import jax

    import xcoexec
    from xcoexec import models

    from .tools.progress import shown

    entry = models.get(FLAGS.model)
    with shown(FLAGS.model) as progress:
        fast = xcoexec.jit(
            entry.module.apply,
            strategy=FLAGS.strategy,
            threads=FLAGS.threads,
            affinity=_affinity(),
            memory=FLAGS.memory,
            device_memory=_device_memory(),
            costs=FLAGS.costs,
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


def _plans() -> tuple[Any, Any, dict[str, Any]]:
    """(graph, costs, plan of every strategy) on the device of the flags."""
    import dataclasses

    from .planning import profiles
    from .planning.memory import amount
    from .planning.strategies import STRATEGIES
    from .tools.bench import model_graph

    graph = model_graph(FLAGS.model, FLAGS.batch)
    costs = profiles.load(FLAGS.device).costs(graph) if FLAGS.device else _predictor().costs(graph)
    limit = amount(_device_memory())
    if isinstance(limit, float):
        raise ValueError(
            f"xcoexec: got --device_memory={FLAGS.device_memory}; valid for a device of numbers are bytes, such as 512MiB."
        )
    costs = costs if limit is None else dataclasses.replace(costs, capacity=limit)
    return graph, costs, {name: strategy(graph, costs) for name, strategy in STRATEGIES.items()}


def _here() -> tuple[Any, int, tuple[int, ...]]:
    """(relay, threads, cores) that the flags ask for."""
    from .session.options import Options
    from .session.prepare import device_relay

    options = Options.checked(threads=FLAGS.threads, affinity=_affinity())
    return device_relay(options.cpus), options.threads, options.cpus


def _predictor() -> Any:
    from .measure.training import stored

    relay, threads, _ = _here()
    return stored(relay, threads)


def _plan_on_numbers() -> None:
    from .ir.text import columns, milliseconds
    from .planning import profiles
    from .planning.memory import usage
    from .planning.simulate import simulate

    graph, costs, plans = _plans()
    seconds = {name: simulate(graph, p, costs).seconds for name, p in plans.items()}
    fits = {name: usage(graph, p.placements).total <= costs.capacity for name, p in plans.items()}
    best = min((n for n in seconds if fits[n]), key=lambda n: seconds[n])
    if FLAGS.json:
        print(plans[best if FLAGS.strategy == "auto" else FLAGS.strategy].to_json())
        return
    rows = [["strategy", "predicted ms", "simulated ms", "device / simulated", "device MB"]]
    for n, p in plans.items():
        room = f"{usage(graph, p.placements).total / 1e6:.1f}" + ("" if fits[n] else " does not fit")
        rows.append(
            [n, milliseconds(p.predicted), milliseconds(seconds[n]), f"{seconds['device'] / seconds[n]:.2f}x", room]
        )
    where = (
        f"{profiles.load(FLAGS.device).title} (numbers, no hardware)" if FLAGS.device else "this machine, as predicted"
    )
    title = f"{FLAGS.model} on {where}"
    print(f"{title}\n{columns(rows, (1, 2, 3))}\n\n{plans[best if FLAGS.strategy == 'auto' else FLAGS.strategy]}")


def simulate() -> None:
    """Replays the plan of a strategy on a device of numbers and writes its timeline."""
    from .planning.simulate import ROWS
    from .planning.simulate import simulate as replay
    from .session.timeline import write

    if not FLAGS.device:
        raise ValueError("xcoexec: got simulate without --device; valid is the name of a device, or a TOML file.")
    graph, costs, plans = _plans()
    runs = {name: replay(graph, p, costs) for name, p in plans.items()}
    name = min(runs, key=lambda n: runs[n].seconds) if FLAGS.strategy == "auto" else FLAGS.strategy
    if name not in runs:
        raise ValueError(f"xcoexec: got --strategy={name}; valid are {', '.join((*runs, 'auto'))}.")
    path = f"{FLAGS.out}/simulated-{FLAGS.model}.json"
    write(path, runs[name].trace())
    busy = ", ".join(f"{row} {100 * runs[name].busy(i) / runs[name].seconds:.0f} %" for i, row in enumerate(ROWS))
    print(f"{name}: {runs[name].seconds * 1e3:.3f} ms; busy: {busy}; written: {path}")


def plan() -> None:
    """Prints the layer graph and the plan."""
    from .ir.text import graph_text

    if FLAGS.device or FLAGS.costs == "predicted":
        _plan_on_numbers()
        return
    _, fast, _ = _bound()
    print(fast.plan().to_json() if FLAGS.json else f"{graph_text(fast.graph())}\n\n{fast.plan()}")


def run() -> None:
    """Runs the model on a random input and prints the report."""
    import dataclasses

    import jax

    from .measure.timing import median_seconds

    entry, fast, x = _bound()
    seconds = median_seconds(lambda: jax.block_until_ready(fast(x)), 0.5, 10)
    report = fast.report()
    if FLAGS.plot:
        report.plot(FLAGS.plot)
    if FLAGS.json:
        print(json.dumps({"model": entry.name, "seconds": seconds, **dataclasses.asdict(report)}))
    else:
        print(f"{report}\n{entry.name}: {seconds * 1e3:.3f} ms a call (median), batch {FLAGS.batch}")


def _train() -> None:
    """Learns what layers cost on this machine, and says how well layers that were held out are predicted."""
    import dataclasses
    import time

    from .measure import training
    from .tools.progress import shown

    relay, threads, cpus = _here()
    start = time.perf_counter()
    with shown("profile") as progress:
        predictor, samples = training.train(relay, threads, cpus, progress)
    seconds, found = time.perf_counter() - start, training.judged(samples, relay, threads)
    if FLAGS.json:
        print(
            json.dumps(
                {
                    "seconds": seconds,
                    "bytes": len(predictor.to_json()),
                    "accuracy": [dataclasses.asdict(a) for a in found],
                }
            )
        )
        return
    print(training.text(found))
    count, size = len({s.layer for s in samples}), len(predictor.to_json()) / 1e3
    print(f"{count} layers in {seconds:.0f} s, kept in {size:.0f} KB; one in {training.HELD_OUT} was held out.")


def profile() -> None:
    """With --model the measured seconds of its layers on both halves; else trains the predictor of this machine."""
    if not FLAGS["model"].present:
        _train()
        return
    from .cost.edgenn import bound
    from .ir.text import columns, milliseconds

    _, fast, x = _bound()
    session = fast.session(x)
    costs = session.costs()
    if FLAGS.json:
        print(json.dumps(costs.fields()))
        return
    rows = [["layer", "host ms", "device ms", "bound ms"]]
    for layer, h, d in zip(session.graph.layers, costs.host, costs.device, strict=True):
        rows.append([layer.name, milliseconds(h), milliseconds(d), milliseconds(bound(h, d) if h else None)])
    print(columns(rows, (1, 2, 3)))
    print(
        f"segment call {costs.sync * 1e6:.1f} us, copies {costs.copy_rate / 1e9:.1f} GB/s, halves share their cores: {costs.shared_cores}"
    )


def _suite() -> None:
    if FLAGS.affinity:  # before JAX makes its threads, so that they stay there too
        os.sched_setaffinity(0, _affinity() or ())
    from .tools import html, suite
    from .tools.progress import shown

    chosen = suite.get(FLAGS.suite)
    old = suite.load(FLAGS.against) if FLAGS.against else []
    path = f"{FLAGS.out}/suite-{FLAGS.suite}.jsonl"
    with shown(FLAGS.suite) as progress:
        records = suite.run(FLAGS.suite, path, progress, [v.strip() for v in FLAGS.variants.split(";") if v.strip()])
    print(json.dumps(records) if FLAGS.json else suite.table(records))
    if old:
        print(suite.compare(records, old))
    html.write(records, chosen.title, f"{FLAGS.out}/suite-{FLAGS.suite}.html")
    print(f"written: {path}, {FLAGS.out}/suite-{FLAGS.suite}.html and .png", file=sys.stderr)


def bench() -> None:
    """Measures one model, or a suite with every strategy, against jax.jit, alternating in this process."""
    if FLAGS.suite:
        _suite()
        return
    from .tools import bench as runner

    record = runner.measure(FLAGS.model, FLAGS.batch, FLAGS.strategy, FLAGS.threads)
    print(json.dumps(record) if FLAGS.json else runner.text([record]))


def demo() -> None:
    """Trains LeNet, then co-executes three networks on photographs."""
    from .tools import demo as show

    show.main(FLAGS.out, FLAGS.threads)


COMMANDS: dict[str, Callable[[], None]] = {
    "demo": demo,
    "plan": plan,
    "simulate": simulate,
    "run": run,
    "profile": profile,
    "bench": bench,
}


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
