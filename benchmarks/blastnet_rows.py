"""BlastNet's tables and figures of sections 3.3 and 6.4 on its machines as numbers: all baselines beside each other.

    python -m benchmarks.blastnet_rows [--full]

Every row says what is printed and what the same rules give in `xcoexec.streams.virtual` on a device profile. What the
paper does not print is supposed, and said in each row's note; `blastnet_jobs` says how. What a path's accuracy is
cannot be simulated: rows count jobs on paths with twins instead, and the printed losses stand in rows without a number
of ours. `paper` has only what is printed; of a difference between two printed rates the note says which they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from rich.console import Console

from xcoexec.ir.costs import Costs
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.text import table
from xcoexec.ir.words import DEVICE, HALVES, HOST
from xcoexec.papers.quoted import load
from xcoexec.streams.demand import least_missing
from xcoexec.streams.jobs import Task
from xcoexec.streams.policies import PAPER
from xcoexec.streams.virtual import Load, releases, simulate

from . import blastnet_jobs as jobs
from .blastnet_jobs import DESKTOP, TX2, XAVIER, Setting, network, runs, tasks

Row = dict[str, Any]
TWINS = (0.8, 1.2)  # supposed: a faster and a slower twin than `blastnet_jobs` has it
#: supposed, to show what the headline hangs on: times as long on the slower half of a block without a twin
OTHERS = (1.0, 1.5, 2.0)
PRODUCTS = ("conv_general_dilated", "dot_general")
SHARED = 2.0  # supposed: a load on a processor takes half of its time
PERIODS = (0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)  # of tasks over their deadlines, to see what a rate hangs on
OURS = ("pinned", "layer_fastest", "merged_blocks", "slack")
POLICIES = (*PAPER, *OURS)


def _row(figure: str, what: str, paper: float | None, found: Sequence[float], unit: str, note: str) -> Row:
    """A simulated row: the mean over seeds, and the least and most."""
    spread = f"{min(found):.2f}..{max(found):.2f} over {len(found)} seeds"
    return {
        "figure": figure,
        "what": what,
        "paper": paper,
        "ours": float(np.mean(found)),
        "kind": "simulated",
        "unit": unit,
        "spread": spread,
        "note": note,
    }


def _note(setting: Setting, policy: str = "") -> str:
    """How a setting is run; of Mono_Adapt too how much accuracy it can lose."""
    length = f"{jobs.FULL_SECONDS:g} s" if setting.full else f"{jobs.PERIODS} periods (the paper's 120 s: --full)"
    beside = "".join(f"; the {half} half {by:g} times slower by a load (supposed)" for half, by in setting.slow.items())
    what = "; ".join(_blocks_in_words(setting, name) for name in dict.fromkeys(setting.networks))
    adapted = f"{_adapted(setting)}; " if policy == "mono_adapt" else ""
    return (
        f"{adapted}{len(setting.networks)} tasks on {setting.board}; {what}; a twin takes {setting.twin:g} times the"
        f" primary's seconds (supposed); periods as long as deadlines (supposed); runs of {length}{beside}"
    )


def _adapted(setting: Setting) -> str:
    """What Mono_Adapt can lose of its accuracy: a job without twins loses nothing, one with twins all at most."""
    share = float(np.mean([s["with_twins"] for s in runs(setting, "mono_adapt")]))
    printed = load("blastnet")["high_accuracy_kept"].number("mono_adapt")
    return (
        "a whole network on one half takes only the twins that are made for that half (`Task.adapted`):"
        f" {share:.1f} % of jobs have twins, so that Mono_Adapt loses {share:.1f} points of accuracy at most (printed"
        f" for eight VGG11 on the desktop: {printed:g} points more than BlastNet)"
    )


def _blocks_in_words(setting: Setting, name: str) -> str:
    """How many blocks have twins, and what the others cost where BlastNet runs them on their slower half."""
    made = network(setting.board, name, twin=setting.twin, others=setting.others).blocks
    without = [b for b in made if not any(w.twin for w in b.ways)]
    share = sum(b.primary.seconds for b in without) / sum(b.primary.seconds for b in made)
    slower = [b.degree for b in without if b.degree < float("inf")]
    times = f", {min(slower):.1f} to {max(slower):.1f} times as long on the slower half" if slower else ""
    return (
        f"{name}: {len(made) - len(without)} of {len(made)} blocks have twins, the others are {share:.0%} of it{times}"
    )


@functools.cache
def _with_periods(setting: tuple[Any, ...], policy: str, times: float) -> jobs.Outcome:
    """A short run of a setting whose periods are so many times its deadlines."""
    *values, slow = setting
    made = Setting(*values[:2], dict(slow), *values[2:])
    mine = [dataclasses.replace(t, period=times * t.deadline) for t in tasks(made, 0)]
    return _periodic(mine, 0, made.load if slow else None, policy)


def _nearest(setting: Setting, printed: float, of: Callable[[Callable[[str], jobs.Outcome]], float]) -> str:
    """With which periods, which the paper does not print, a row comes nearest to what is printed; `of`: the row's
    number from the outcome under a policy.
    """
    given = (setting.board, setting.networks, False, setting.twin, setting.others, tuple(sorted(setting.slow.items())))
    found = {f: of(functools.partial(_with_periods, given, times=f)) for f in PERIODS}
    best = min(found, key=lambda f: abs(found[f] - printed))
    return f"nearest to what is printed with periods of {best:g} times the deadlines: {found[best]:.1f}"


def missing(
    figure: str, setting: Setting, printed: Mapping[str, float], points: Mapping[str, float | None]
) -> list[Row]:
    """Every policy's missing rate beside what is printed, and the points between BlastNet and some others. `points`:
    policy -> what is printed; None where only both rates are.
    """
    jobs.ahead([setting], POLICIES)
    found = {p: [s["missed"] for s in runs(setting, p)] for p in POLICIES}
    whose = lambda p: p if p in PAPER else f"{p} (ours)"
    out = []
    for p in POLICIES:
        why = f"{_nearest(setting, printed[p], lambda r, p=p: r(p)['missed'])}; " if p in printed else ""
        what = f"missed, {whose(p)}: {setting.words}"
        out.append(_row(figure, what, printed.get(p), found[p], "%", why + _note(setting, p)))
    pace = {half: setting.slow.get(half, 1.0) for half in HALVES}
    bound = [100 * least_missing(tasks(setting, seed), pace) for seed in range(jobs.SEEDS)]
    least = f"missed at least, by any schedule: {setting.words}"
    out.append({**_row(figure, least, None, bound, "%", _note(setting)), "kind": "calculated"})
    for p, value in points.items():
        goal, given = _difference(printed, p) if value is None else (value, "")
        less = [a - b for a, b in zip(found[p], found["blastnet"], strict=True)]
        why = _nearest(setting, goal, lambda r, p=p: r(p)["missed"] - r("blastnet")["missed"])
        what = f"points fewer missed by blastnet than by {p}: {setting.words}"
        out.append(_row(figure, what, value, less, "points", f"{given}{why}; {_note(setting, p)}"))
    return out


def _difference(printed: Mapping[str, float], policy: str) -> tuple[float, str]:
    """Points between two rates of which no difference is printed, and words that say so."""
    theirs, blastnets = printed[policy], printed["blastnet"]
    return theirs - blastnets, f"printed are {theirs:.2f} and {blastnets:.2f} %, not their difference; "


def by_twin(figure: str, setting: Setting) -> list[Row]:
    """What BlastNet misses where twins are faster or slower than supposed."""
    out = []
    jobs.ahead([dataclasses.replace(setting, twin=t) for t in TWINS], ("blastnet", "blastnet_no_pf"))
    for twin, p in itertools.product(TWINS, ("blastnet", "blastnet_no_pf")):
        other = dataclasses.replace(setting, twin=twin)
        rates = [s["missed"] for s in runs(other, p)]
        what = f"missed, {p}, twins at {twin:g} times: {setting.words}"
        out.append(_row(figure, what, None, rates, "%", _note(other)))
    return out


def by_others(figure: str, setting: Setting, printed: float) -> list[Row]:
    """What BlastNet misses where a block without a twin is no such brake on its slower half as the profile has it."""
    out = []
    jobs.ahead([dataclasses.replace(setting, others=times) for times in OTHERS], ["blastnet"])
    for times in OTHERS:
        other = dataclasses.replace(setting, others=times)
        rates = [s["missed"] for s in runs(other, "blastnet")]
        slower = f"if blocks without twins took {times:g} times as long on the slower half"
        what = f"missed, blastnet, {slower}: {setting.words}"
        out.append(_row(figure, what, printed if times == OTHERS[0] else None, rates, "%", _note(other)))
    return out


def by_epsilon(figure: str, setting: Setting) -> list[Row]:
    """What BlastNet misses where only blocks that are slower by the higher one of both printed factors have twins."""
    highest = load("blastnet")["epsilon"].numbers("epsilon")[-1]
    made = {n: network(setting.board, n, highest) for n in dict.fromkeys(setting.networks)}
    twinned = {n: sum(any(w.twin for w in b.ways) for b in task.blocks) for n, task in made.items()}
    note = "; ".join(f"{n}: {count} of {len(made[n].blocks)} blocks have twins" for n, count in twinned.items())
    beside = setting.load if setting.slow else None
    out = []
    for p in ("blastnet_no_pf", "blastnet"):
        found = []
        for seed in range(jobs.SEEDS):
            given = zip(tasks(setting, seed), setting.networks, strict=True)
            found.append(_periodic([_like(t, made[name]) for t, name in given], seed, beside, p)["missed"])
        out.append(_row(figure, f"missed, {p}, epsilon {highest:g}: {setting.words}", None, found, "%", note))
    return out


def _like(task: Task, network: Task) -> Task:
    """A network under the name, the deadline and the period of a task."""
    return dataclasses.replace(network, name=task.name, deadline=task.deadline, period=task.period)


def _periodic(mine: Sequence[Task], seed: int, beside: Load | None, policy: str) -> jobs.Outcome:
    """A short run of periodic tasks."""
    longest = max(t.period for t in mine if t.period)
    first = [float(x) for x in np.random.default_rng(seed).uniform(0, longest, len(mine))]
    return jobs.shown(simulate(releases(mine, jobs.PERIODS * longest, first), policy, beside))


def twins_used(figure: str, setting: Setting) -> list[Row]:
    """What the policies with twins do to paths: jobs with twins, and jobs below the bound (none are BlastNet's)."""
    out = []
    for p in ("mono_adapt", "blastnet_no_pf", "blastnet"):
        found = runs(setting, p)
        note = f"the paper prints accuracies, of which no path's is known; {_note(setting, p)}"
        for what, name in (("jobs with twins", "with_twins"), ("jobs below the bound", "below_bound")):
            out.append(_row(figure, f"{what}, {p}: {setting.words}", None, [s[name] for s in found], "%", note))
    return out


def losses(setting: Setting, *keys: str) -> list[Row]:
    """What the paper prints of accuracy lost: no run here has the number, and each row says why."""
    out = []
    for key in keys:
        record = load("blastnet")[key]
        for p, value in _printed(key).items():
            lost = "accuracy lost by blastnet" if p == "blastnet" else f"accuracy lost by {p}, more than by blastnet"
            adapted = f"; {_adapted(setting)}" if p == "mono_adapt" else ""
            note = (
                "not here, because accuracies of paths are not printed and cannot be simulated; printed in section"
                f" {record.section}; rows of jobs with twins and below the bound say what is known{adapted}"
            )
            out.append(_absent(record.item, f"{lost}: {setting.words}", value, "points", note))
    return out


def _absent(figure: str, what: str, paper: float, unit: str, note: str) -> Row:
    """A row of a printed number that nothing here reruns."""
    named = {"figure": figure, "what": what, "paper": paper, "ours": None, "kind": "absent"}
    return {**named, "unit": unit, "spread": None, "note": note}


def _printed(key: str) -> dict[str, float]:
    """A record's numbers by our policies' names."""
    record = load("blastnet")[key]
    names = {"without_primary_first": "blastnet_no_pf"}
    return {names.get(name, name): record.number(name) for name in record.values or ()}


def figure_15(full: bool = False) -> list[Row]:
    """Section 6.4.1: four and eight VGG11 on the desktop; the low workload's points are the fourth task's."""
    low, high = (Setting(DESKTOP, ("vgg11",) * n, full=full) for n in (4, 8))
    rates = _printed("high")
    points = {"layer_sched": load("blastnet")["claims"].number("missing"), "mono_adapt": None}
    return [
        *missing("Figure 15(a)", low, {}, {}),
        *_fourth(low),
        *twins_used("Figure 15(b)", low),
        *losses(low, "low_accuracy"),
        *missing("Figure 15(c)", high, rates, points),
        *by_twin("Figure 15(c)", high),
        *by_others("Figure 15(c)", high, rates["blastnet"]),
        *by_epsilon("Figure 15(c)", high),
        *twins_used("Figure 15(d)", high),
        *losses(high, "high_accuracy", "high_accuracy_kept"),
    ]


def _fourth(setting: Setting) -> list[Row]:
    task = "vgg11 4"
    last = lambda p: [s["missed_by_task"][task] for s in runs(setting, p)]
    out = []
    for p, value in _printed("low").items():
        less = [a - b for a, b in zip(last(p), last("blastnet"), strict=True)]
        points = lambda r, p=p: r(p)["missed_by_task"][task] - r("blastnet")["missed_by_task"][task]
        note = f"of the task VGG11-4, which the paper names; {_note(setting, p)}"
        why = _nearest(setting, value, points)
        out.append(_row("Figure 15(a)", f"VGG11-4: points fewer than {p}", value, less, "points", f"{why}; {note}"))
    return out


def figure_16(full: bool = False) -> list[Row]:
    """Section 6.4.2: four tasks of two networks on the desktop, alone and beside a load; which two is not printed."""
    networks = ("vgg11", "alexnet") * 2
    alone, gpu, cpu = (Setting(DESKTOP, networks, slow, full) for slow in ({}, {DEVICE: SHARED}, {HOST: SHARED}))
    rates = _printed("cpu_background")
    return [
        *missing("Figure 16(a)", alone, {}, {}),
        *twins_used("Figure 16(b)", alone),
        *missing("Figure 16(c)", gpu, {}, _printed("gpu_background")),
        *twins_used("Figure 16(d)", gpu),
        *losses(gpu, "gpu_background_accuracy"),
        *missing("Figure 16(e)", cpu, rates, {"layer_sched": None, "mono_sched": None}),
        *twins_used("Figure 16(f)", cpu),
        *losses(cpu, "cpu_background_accuracy"),
    ]


def figure_17(full: bool = False) -> list[Row]:
    """Section 6.4.3: the boards. Their task sets are not printed: eight VGG11, section 6.4.1's high workload."""
    xavier, tx2 = (Setting(board, ("vgg11",) * 8, full=full) for board in (XAVIER, TX2))
    return [
        *missing("Figure 17, Xavier", xavier, {}, _printed("xavier")),
        *by_twin("Figure 17, Xavier", xavier),
        *twins_used("Figure 17, Xavier", xavier),
        *losses(xavier, "xavier_accuracy"),
        *missing("Figure 17, TX2", tx2, _printed("tx2"), {}),
        *by_twin("Figure 17, TX2", tx2),
        *twins_used("Figure 17, TX2", tx2),
        *losses(tx2, "tx2_accuracy_kept"),
    ]


def figure_18(full: bool = False) -> list[Row]:
    """Section 6.4.4: the share of the GPU's time in inference on the TX2; how many VGG11 is not printed: four."""
    setting = Setting(TX2, ("vgg11",) * 4, full=full)
    printed = _printed("gpu_at_work")
    out = []
    jobs.ahead([setting], POLICIES)
    for p in POLICIES:
        why = f"{_nearest(setting, printed[p], lambda r, p=p: r(p)['busy'][DEVICE])}; " if p in printed else ""
        note = f"{why}moving values is in it; {_note(setting, p)}"
        busy = [s["busy"][DEVICE] for s in runs(setting, p)]
        out.append(_row("Figure 18", f"GPU at work, {p}", printed.get(p), busy, "%", note))
    return out


def figures_3_and_4() -> list[Row]:
    """Section 3.3 on the desktop's profile: ratios of VGG11's layers, and shares of the time where each layer runs on
    its faster processor. Calculated; the two ratios are what the profile was fitted to.
    """
    paper = load("blastnet")
    graph, costs = jobs.on(DESKTOP, "vgg11")
    one = lambda figure, what, paper, ours, unit, note: {
        **_row(figure, what, paper, [ours], unit, note),
        "kind": "calculated",
        "spread": None,
    }
    fitted = "the profile's efficiencies were fitted to it"
    printed = {
        ("convolution", 2): ("convolution", f"{fitted}, with all eight cores (the paper says one)"),
        ("dense layer", 1): ("dense", fitted),
    }
    out = []
    for kind, prim in zip(("convolution", "dense layer"), PRODUCTS, strict=True):
        for n, ours in enumerate(_ratios(graph, costs, prim), 1):
            key, note = printed.get((kind, n), (None, ""))
            theirs = paper["layer_ratios"].number(key) if key else None
            out.append(one("Figure 3", f"CPU/GPU, {kind} {n}", theirs, ours, "times", note))
    for name in ("vgg11", "alexnet"):
        shares = _shares(DESKTOP, name)
        printed = paper["layers_fastest"].numbers(name)
        on_host, least = printed[0], min(r for k in PRODUCTS for r in _ratios(*jobs.on(DESKTOP, name), k))
        for what, ours, theirs in zip(("CPU", "GPU", "communication"), shares, printed, strict=True):
            note = (
                "images of 224 x 224, layers already fused; the paper's sizes are not printed; as printed if layers of"
                f" {on_host:g} % of the time were faster on the CPU, here the least CPU/GPU ratio is {least:.1f}"
            )
            out.append(one("Figure 4", f"{name}: {what}", theirs, ours, "%", note))
    return out


def _ratios(graph: LayerGraph, costs: Costs, kind: str) -> list[float]:
    each = zip(graph.layers, costs.host, costs.device, strict=True)
    return [h / d for x, h, d in each if x.kind == kind and h is not None]


def _shares(board: str, name: str) -> tuple[float, float, float]:
    """Percent of the time on the CPU, on the GPU and between them where each layer is where it is fastest."""
    layers = network(board, name).layers
    chosen = [b.primary for b in layers]
    pairs = zip(chosen[:-1], chosen[1:], layers[1:], strict=True)
    moved = sum(b.moved for before, way, b in pairs if before.half != way.half)
    spent = [sum(w.seconds for w in chosen if w.half == half) for half in (HOST, DEVICE)]
    total = sum(spent) + moved
    return 100 * spent[0] / total, 100 * spent[1] / total, 100 * moved / total


FIGURES = (figure_15, figure_16, figure_17, figure_18)


def rows(full: bool = False) -> list[Row]:
    """Every row; `full`: runs of the paper's 120 s."""
    return [*figures_3_and_4(), *(row for made in FIGURES for row in made(full))]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.blastnet_rows",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="runs of the paper's 120 s")
    found = rows(parser.parse_args().full)
    cell = lambda x: "-" if x is None else f"{x:.2f}"
    cells = [[r["figure"], r["what"], cell(r["paper"]), cell(r["ours"]), r["unit"], r["spread"] or ""] for r in found]
    head = ("figure", "what", "paper", "ours", "unit", "spread")
    Console(width=160).print(table("BlastNet, simulated", head, cells, right=(2, 3)))


if __name__ == "__main__":
    main()
