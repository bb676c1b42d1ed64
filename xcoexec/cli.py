"""The command line: what each command does. `xcoexec --help` lists them."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from .tools.arguments import FLAGS, MODEL, Command, Word, run_command, wanted, writable

if TYPE_CHECKING:
    from . import models
    from .api.resident import ResidentFunction
    from .codegen.runtime.relay import Relay
    from .cost.predictor import Predictor
    from .ir.costs import Costs
    from .ir.layers import LayerGraph
    from .ir.plan import Plan


def _resident() -> tuple[models.Entry, ResidentFunction[Any], Any]:
    """(model, function with resident weights, example input) for the flags; the function has been called once."""
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
            wait=True,
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


def _plans() -> tuple[LayerGraph, Costs, dict[str, Plan]]:
    """(graph, costs, plan of every strategy) on the device of the flags. Raises `ValueError` for a strategy that takes
    measurements.
    """
    from .planning import profiles
    from .planning.strategies import RIVALS, STRATEGIES
    from .tools.zoo_graphs import model_graph

    graph = model_graph(FLAGS.model, FLAGS.batch)
    costs = profiles.load(FLAGS.device).costs(graph) if FLAGS.device else _predictor().costs(graph)
    limit = _bytes_on_numbers()
    costs = costs if limit is None else dataclasses.replace(costs, capacity=limit)
    named = {name: strategy for name, strategy in STRATEGIES.items() if name not in RIVALS}
    if FLAGS.strategy not in (*named, "auto"):
        raise ValueError(
            f"xcoexec: got --strategy={FLAGS.strategy} and no measurements; valid are {', '.join((*named, 'auto'))}."
        )
    return graph, costs, {name: strategy(graph, costs) for name, strategy in named.items()}


def _here() -> tuple[Relay | None, int, tuple[int, ...]]:
    """(relay, threads, cores) that the flags ask for."""
    from .session.options import Options
    from .session.prepare import device_relay

    options = Options.checked(threads=FLAGS.threads, affinity=_affinity())
    return device_relay(options.cpus), options.threads, options.cpus


def _predictor() -> Predictor:
    """What `xcoexec profile` has learned on this machine."""
    from .measure.training import stored

    relay, threads, _ = _here()
    return stored(relay, threads)


def _plan_on_numbers() -> None:
    """Prints the plans of all strategies by numbers alone, and the one that the flags ask for."""
    from .ir.text import WIDTH, columns, milliseconds
    from .planning import profiles
    from .planning.memory import usage
    from .planning.simulate import replay

    graph, costs, plans = _plans()
    seconds = {name: replay(graph, p, costs).seconds for name, p in plans.items()}
    needed = {name: usage(graph, p.placements).total for name, p in plans.items()}
    fitting = [name for name, nbytes in needed.items() if nbytes <= costs.capacity]
    best = min(fitting, key=lambda n: seconds[n])
    chosen = plans[best if FLAGS.strategy == "auto" else FLAGS.strategy]
    if FLAGS.json:
        print(chosen.to_json())
        return
    rows = [["strategy", "predicted ms", "simulated ms", "device / simulated", "device MB"]]
    for n, p in plans.items():
        room = f"{needed[n] / 1e6:.1f}" + ("" if n in fitting else " does not fit")
        gain = f"{seconds['device'] / seconds[n]:.2f}x"
        rows.append([n, milliseconds(p.predicted), milliseconds(seconds[n]), gain, room])
    where = "this machine, as predicted"
    if FLAGS.device:
        where = f"{profiles.load(FLAGS.device).title} (numbers, no hardware)"
    title = textwrap.fill(f"{FLAGS.model} on {where}", WIDTH)
    print(f"{title}\n{columns(rows, (1, 2, 3), WIDTH)}\n\n{chosen.text(WIDTH)}")


def _plan_on_several() -> None:
    """Prints how a model's layers lie over devices that exist as numbers. Raises `ProfileError` for an unknown one."""
    from .ir.text import WIDTH
    from .planning import profiles
    from .planning.several import Several, text
    from .tools.zoo_graphs import model_graph

    devices = [profiles.load(name) for name in FLAGS.device.split(",")]
    limit = _bytes_on_numbers()
    found = Several.of(model_graph(FLAGS.model, FLAGS.batch), devices, math.inf if limit is None else limit)
    if FLAGS.json:
        print(json.dumps({**dataclasses.asdict(found.cut), "period": found.cut.period}))
        return
    names = ", ".join({p.name: p.title for p in devices}.values())
    print(textwrap.fill(f"{FLAGS.model} over {len(devices)} devices and the host: {names} (numbers)", WIDTH))
    print(f"\n{text(found, WIDTH)}\n\n{found.waited(WIDTH)}")


def _bytes_on_numbers() -> int | None:
    """The bytes of --device_memory. Raises `ValueError` for a share: nobody knows how much a device of numbers has."""
    from .planning.memory import amount

    limit = amount(_device_memory())
    if isinstance(limit, float):
        got = FLAGS.device_memory
        raise ValueError(
            f"xcoexec: got --device_memory={got}; valid for a device of numbers are bytes, such as 512MiB."
        )
    return limit


def replayed() -> None:
    """`xcoexec simulate`: replays the plan of a strategy on a device of numbers and writes its timeline. Raises
    `ValueError` for a flag that is not valid, as all commands do.
    """
    from .ir.text import columns
    from .planning.simulate import ROWS, replay
    from .session.timeline import write

    if not FLAGS.device:
        raise ValueError("xcoexec: got simulate without --device; valid is the name of a device, or a TOML file.")
    writable(FLAGS.out, "out")
    graph, costs, plans = _plans()
    runs = {name: replay(graph, p, costs) for name, p in plans.items()}
    name = min(runs, key=lambda n: runs[n].seconds) if FLAGS.strategy == "auto" else FLAGS.strategy
    path = f"{FLAGS.out}/simulated-{FLAGS.model}.json"
    write(path, runs[name].trace())
    busy = [["busy", row, f"{100 * runs[name].busy(i) / runs[name].seconds:.0f} %"] for i, row in enumerate(ROWS)]
    print(f"{name}: {runs[name].seconds * 1e3:.3f} ms\n{columns(busy, (2,))}\nwritten: {path}")


def plan() -> None:
    """Prints the layer graph and the plan. Raises `ValueError` for a flag that is not valid."""
    from .ir.text import WIDTH, layers_text

    if "," in FLAGS.device:
        return _plan_on_several()
    if FLAGS.device or FLAGS.costs == "predicted":
        return _plan_on_numbers()
    _, fast, _ = _resident()
    print(fast.plan().to_json() if FLAGS.json else f"{layers_text(fast.graph())}\n\n{fast.plan().text(WIDTH)}")


def run() -> None:
    """Runs the model on a random input and prints the report. Raises `ValueError` for a flag that is not valid."""
    import jax

    from .measure.timing import median_seconds

    if FLAGS.plot:
        wanted("matplotlib", "plot", "run --plot")
        writable(os.path.dirname(FLAGS.plot) or ".", "plot")
    entry, fast, x = _resident()
    seconds = median_seconds(lambda: jax.block_until_ready(fast(x)), 0.5, 10)
    report = fast.report(all=True)
    if FLAGS.plot:
        report.plot(FLAGS.plot)
    if FLAGS.json:
        print(json.dumps({"model": entry.name, "seconds": seconds, **dataclasses.asdict(report)}))
    else:
        print(f"{report}\n{entry.name}: {seconds * 1e3:.3f} ms a call (median), batch {FLAGS.batch}")


def _train() -> None:
    """Learns what layers cost on this machine, and says how well layers that were held out are predicted."""
    import time

    from .measure import training
    from .tools.progress import shown

    relay, threads, cpus = _here()
    start = time.perf_counter()
    with shown("profile") as progress:
        predictor, samples = training.train(relay, threads, cpus, progress)
    seconds = time.perf_counter() - start
    found = training.judged(samples, relay, threads)
    size = len(predictor.to_json())
    if FLAGS.json:
        print(json.dumps({"seconds": seconds, "bytes": size, "accuracy": [dataclasses.asdict(a) for a in found]}))
        return
    print(training.text(found))
    count = len({s.layer for s in samples})
    print(f"{count} layers in {seconds:.0f} s, kept in {size / 1e3:.0f} KB; one in {training.HELD_OUT} was held out.")


def profile() -> None:
    """With --model the measured seconds of its layers on both halves; else trains the predictor of this machine."""
    if not FLAGS["model"].present:
        _train()
        return
    from .cost.edgenn import bound
    from .ir.text import WIDTH, columns, milliseconds

    _, fast, _ = _resident()
    session = fast.session()
    costs = session.costs()
    if FLAGS.json:
        print(json.dumps(costs.fields()))
        return
    rows = [["layer", "host ms", "device ms", "bound ms"]]
    for layer, h, d in zip(session.graph.layers, costs.host, costs.device, strict=True):
        rows.append([layer.name, milliseconds(h), milliseconds(d), milliseconds(bound(h, d) if h else None)])
    print(columns(rows, (1, 2, 3), WIDTH))
    fixed = f"segment call {costs.sync * 1e6:.1f} us, copies {costs.copy_rate / 1e9:.1f} GB/s"
    print(f"{fixed}, halves share their cores: {costs.shared_cores}")


def _suite() -> None:
    if FLAGS.affinity:  # before JAX makes its threads, so that they stay there too
        os.sched_setaffinity(0, _affinity() or ())
    wanted("matplotlib", "plot", "bench --suite")
    writable(FLAGS.out, "out")
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
    """Measures one model, or a suite with every strategy, against jax.jit, alternating in this process. Raises
    `ValueError` for a flag that is not valid.
    """
    if FLAGS.suite:
        _suite()
        return
    from .tools import bench as runner

    record = runner.measure(FLAGS.model, FLAGS.batch, FLAGS.strategy, FLAGS.threads)
    print(json.dumps(record) if FLAGS.json else runner.text([record]))


def demo() -> None:
    """Trains LeNet, then co-executes three networks on photographs."""
    writable(FLAGS.out, "out")
    from .tools import demo as show

    show.main(FLAGS.out, FLAGS.threads)


def papers() -> None:
    """Reruns the five papers' tables and figures, as far as one machine allows, and writes the page. Raises
    `ValueError` for an unknown paper and for a folder that cannot be written to.
    """
    from .papers import run as runner
    from .tools.progress import shown

    with shown("papers") as progress:
        made = runner.run(FLAGS.out, FLAGS.paper, FLAGS.full, progress)
    for record in made:
        what = f"{record['paper']}, {', '.join(record['figures'])}"
        print(f"{what}: {record.get('failed') or str(len(record['cells'])) + ' cells'} ({record['seconds']:.1f} s)")
    written = ", ".join(f"{FLAGS.out}/{name}" for name in (runner.FILE, runner.PAGE, runner.TEXT))
    print(f"{len(made)} rows were run; written: {written}", file=sys.stderr)


def info() -> None:
    """Prints what this installation and machine are."""
    from .tools import info as shown

    found = shown.gathered()
    print(json.dumps(found) if FLAGS.json else shown.text(found))


def doctor() -> None:
    """Tries what the library needs and says what is slow and why. Raises `SystemExit` where something fails."""
    from .tools import doctor as ward

    found = ward.examined(FLAGS.threads)
    print(json.dumps([dataclasses.asdict(c) for c in found]) if FLAGS.json else ward.text(found))
    if any(c.state == ward.FAILED for c in found):
        sys.exit(1)


def cache() -> None:
    """Prints what the cache folder holds; `clear` empties it. Raises `ValueError` for another word."""
    from .tools import cache_folder as folder

    if FLAGS.word not in ("", "clear"):
        raise ValueError(f"xcoexec: got cache {FLAGS.word}; valid are cache and cache clear.")
    print(folder.clear() if FLAGS.word else folder.text())


def explain() -> None:
    """Prints where the layers of a function of a file can run. Raises `ValueError` for what is no FILE.py:function."""
    from .tools import explain as explained

    print(explained.text(FLAGS.word, FLAGS.shapes))


def commands() -> tuple[Command, ...]:
    """All commands, in the order of `xcoexec --help`."""
    machine = ("threads", "affinity")
    ways = ("strategy", *machine, "memory", "device_memory", "costs", "json")
    numbers = ("batch", "strategy", "device", "device_memory", "costs")
    return (
        Command("demo", demo, "learns digits, runs three networks on photographs; a minute", ("out", "threads")),
        Command("run", run, "run a model of the zoo and print its report", ("batch", *ways, "plot"), MODEL),
        Command("plan", plan, "print a model's layers and its plan", (*ways, "batch", "device"), MODEL),
        Command("bench", bench, "time a model, or a suite with all strategies, against jax.jit",
                ("batch", "strategy", "threads", "affinity", "suite", "variants", "against", "out", "json"), MODEL),
        Command("profile", profile, "learn what layers cost on this machine; of a model: its layers' times",
                ("batch", *ways), MODEL),
        Command("simulate", replayed, "replay a plan on a device that exists as numbers", (*numbers, "out", "threads"),
                MODEL),
        Command("papers", papers, "rerun the five papers' tables and figures", ("paper", "full", "out")),
        Command("explain", explain, "say which layers of your function can run where, and why not", ("shapes",),
                Word("FILE.py:function", "a function of a file; its arguments come from --shapes or from the file's"
                     " function example()", "word")),
        Command("info", info, "versions, CPU, GPU, cache, settings and extras", ("json",)),
        Command("doctor", doctor, "try what the library needs, and say what is slow and why", ("threads", "json")),
        Command("cache", cache, "what the cache holds; `cache clear` empties it", (),
                Word("clear", "empties the cache", "word")),
    )  # fmt: skip


def main() -> None:
    """Entry point of the `xcoexec` script."""
    run_command(commands())
