"""Every table and figure of NeuroPipe as rows: printed, and ours, with what ours is.

    from benchmarks.neuropipe_rows import rows
    rows()  # [{"figure": "Figure 5(a)", "what": ..., "paper": 17.6, "ours": 15.5, "kind": "simulated", ...}, ...]

One function a table or figure. `kind`: "calculated" (the paper's formula with the paper's parameters), "simulated"
(`neuropipe_board`), or "not here", whose note says why; what is measured is in `neuropipe_measured`. `paper` is
None where no number is printed. `spread`: the least and the most over networks or rounds, None where there is one
value. Changes are what is saved: -5 is 5 % more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from xcoexec.planning.spans import crossing_bytes
from xcoexec.streams.neuropipe import Around, best, share, speedup

from .neuropipe_board import (
    CORES,
    NETWORKS,
    PAPER,
    PARAMETERS,
    THREADS,
    XAVIERS,
    Case,
    Row,
    as_counted,
    calculated,
    case,
    cases,
    electric,
    exactly,
    less,
    mean,
    mode,
    not_here,
    row,
    simulated,
    spread,
    swing,
)

ITEMS = 4  # of a trace of power
MEMORY = "the process of NeuroPipe's own framework; ours keeps each weight on the halves that use it"
TIGHTER = 0.9  # of the basic mode's time: a target that only boosting meets, ours to show Figure 4's other branch


def _of(figure: str, what: str, key: str, name: str, ours: Callable[[Case], float], note: str) -> Row:
    """A mean of the five networks that the paper prints, simulated."""
    paper = PAPER[key].number(name)
    return row(figure, what, paper, mean(ours), "simulated", "%", NETWORKS, spread=spread(ours), note=note)


# -- tables -----------------------------------------------------------------------------------------------


def table1() -> list[Row]:
    return [not_here("Table 1", "five edge devices", "a list of hardware; nothing to run")]


def table2() -> list[Row]:
    """MobileNet: one after the other, every layer sliced, pipelined."""
    c, paper, at = case("mobilenet"), PAPER["table2"], ("mobilenet",)
    interval, neural, around = (paper.numbers(k) for k in ("interval", "neural", "communication"))
    basic = mode(c, "basic")
    sliced = 1e3 * c.accelerated * c.gamma / (c.gamma + 1)
    shared = 1e3 * (c.operations + sum(c.costs.exchange(x.out.nbytes) for x in c.graph.layers))
    taken = "neural time as printed, host operations by Table 4's alpha"
    each = 1e3 * c.costs.exchange(0)
    printed = each + (around[1] - shared) / len(c.graph.layers)
    every = (
        "every layer divided by gamma; each result crosses once (sync and copy of the profile): as printed if that cost"
        f" {printed:.2f} ms a layer instead of {each:.2f}"
    )
    return [
        row("Table 2", "interval, one after the other", interval[0], 1e3 * c.serial, "calculated", "ms", note=taken),
        row("Table 2", "interval, layers sliced", interval[1], sliced + shared, "simulated", "ms", at, note=every),
        row("Table 2", "interval, pipelined", interval[2], 1e3 * basic.period, "simulated", "ms", at),
        row("Table 2", "neural time, layers sliced", neural[1], sliced, "calculated", "ms", note=every),
        row("Table 2", "communication, layers sliced", around[1], shared, "simulated", "ms", at, note=every),
        not_here("Table 2", "memory when sliced", MEMORY, PAPER["table2_memory"].numbers("memory")[1], "MB"),
    ]


def table3() -> list[Row]:
    """ResNet: one after the other, oblivious of the host operations, NeuroPipe."""
    c, paper = case("resnet"), PAPER["table3"]
    interval = paper.numbers("interval")
    ours = {k: c.stages(c.cuts[k]) for k in ("oblivious", "neuropipe")}
    made = {k: f"{as_counted(c, c.cuts[k])} layers on the CPU as Table 5 counts" for k in ours}
    cpu = 1e3 * (ours["oblivious"]["host"] - c.operations)
    beside = (
        "the paper's host operations take 14.2 instead of 11.9 ms beside it, so that its CPU is the slower stage; in"
        " the simulation they take as long as alone: as printed if the CPU's layers took"
        f" {paper.number('cpu_oblivious'):g} ms instead of {cpu:.1f}"
    )
    return [
        row("Table 3", "interval, one after the other", interval[0], 1e3 * c.serial, "calculated", "ms"),
        *(
            row(
                "Table 3",
                f"interval, {k}",
                p,
                1e3 * max(ours[k].values()),
                "simulated",
                "ms",
                note=f"{made[k]}; {beside}" if k == "oblivious" else made[k],
            )
            for k, p in zip(ours, interval[1:], strict=True)
        ),
        row(
            "Table 3",
            "neural time on the CPU, oblivious",
            paper.number("cpu_oblivious"),
            cpu,
            "simulated",
            "ms",
            note=beside,
        ),
        *(
            row("Table 3", f"accelerator, {k}", p, 1e3 * ours[k]["device"], "simulated", "ms")
            for k, p in zip(ours, paper.numbers("accelerator")[1:], strict=True)
        ),
    ]


def table4() -> list[Row]:
    """alpha and gamma, which the simulation takes over (`neuropipe_measured.parameters` has the machine's own under the
    same words), memory and operations.
    """
    out = [not_here("Table 4", f"{key} of {n}", XAVIERS, PAPER[key].number(n)) for key in PARAMETERS for n in NETWORKS]
    out += [not_here("Table 4", f"memory of {n}", MEMORY, PAPER["memory"].number(n), "MB") for n in NETWORKS]
    for c in cases():
        flop = sum(c.counts) / 1e9
        note = f"{NETWORKS[c.name]}, two operations a multiply-add"
        printed = PAPER["operations"].number(c.name)
        out.append(
            row("Table 4", f"operations of {c.name}", printed, flop, "calculated", "GFLOP", (c.name,), note=note)
        )
    return out


def table5() -> list[Row]:
    """Layers on the CPU, as the table counts them: by the rule (III-C) and by trying the cuts."""
    out = []
    for c in cases():
        rule, tried = (PAPER[k].numbers(c.name)[1] for k in ("cut_neuropipe", "cut_empirical"))
        cuts = {k: as_counted(c, at) for k, at in c.cuts.items()}
        shares = [100 * share(c.alpha, c.gamma, printed) for printed in (False, True)]
        limits = f"N_opt is {shares[0]:.2f} % of the operations by Equation 1, {shares[1]:.2f} % as printed"
        model = f"{NETWORKS[c.name]}; {PAPER['composition'][c.name]} in the paper"
        note = f"{limits}; {model}"
        out += [
            *(
                row("Table 5", f"{c.name}, {words}", rule, cuts[key], "calculated", "layers", (c.name,), note=note)
                for words, key in (("the rule", "neuropipe"), ("the rule as printed", "printed"))
            ),
            row(
                "Table 5",
                f"{c.name}, empirical",
                tried,
                cuts["best"],
                "simulated",
                "layers",
                (c.name,),
                note="the best of all cuts into two stages by the layers' seconds; none is run without the board",
            ),
            row(
                "Table 5",
                f"{c.name}, less execution time with the printed number of layers on the CPU",
                None,
                simulated(c, "table 5"),
                "simulated",
                "%",
                (c.name,),
                note=f"layers from {c.cuts['table 5']} on have {_behind(c, 'table 5'):.2%} of the operations; {limits}",
            ),
        ]
    lost = lambda c: 100 * (c.time(c.cuts["neuropipe"]) / c.time(c.cuts["best"]) - 1)
    mlp = case("mlp")
    behind, limit = _behind(mlp, "neuropipe"), share(mlp.alpha, mlp.gamma)
    note = (
        f"the most is the MLP's: the rule gives the CPU {behind:.2%} of its operations where N_opt is {limit:.2%}, and"
    )
    others = float(np.mean([lost(c) for c in cases() if c is not mlp]))
    note += f" Table 5 one dense layer less; without it the mean is {others:.1f} %"
    out.append(_of("Table 5", "performance lost by the rule", "cut_loss", "mean", lost, note))
    return out


def _behind(c: Case, cut: str) -> float:
    """The share of a network's operations that a cut gives to the CPU."""
    return sum(c.counts[c.cuts[cut] :]) / sum(c.counts)


# -- figures ----------------------------------------------------------------------------------------------


def figure1() -> list[Row]:
    return [not_here("Figure 1", "one after the other, and pipelined", "a diagram; Stream.timeline draws a run's own")]


def figure2() -> list[Row]:
    return [not_here("Figure 2", "layers sliced, and groups of layers", "a diagram")]


def figure3() -> list[Row]:
    """Speedup over alpha: Equation 1's curves, and the five networks."""
    gammas, alphas = (PAPER["model_curves"].numbers(k) for k in ("gammas", "alphas"))
    grid = np.linspace(*alphas, 7)
    out = [
        row(
            "Figure 3",
            f"gamma {g:g}, alpha {a:.2f}",
            None,
            speedup(float(a), g),
            "calculated",
            "times",
            series=f"gamma = {g:g}",
            x=float(a),
        )
        for g in gammas
        for a in grid
    ]
    for c in cases():
        ours = 1 / c.time(c.cuts["neuropipe"])
        for found, kind, of, note in (
            (speedup(c.alpha, c.gamma), "calculated", (), "Equation 1"),
            (ours, "simulated", (c.name,), "the rule's cut"),
        ):
            out.append(row("Figure 3", c.name, None, found, kind, "times", of, note=note, x=c.alpha))
    return out


def figure4() -> list[Row]:
    """The decision: the baseline's own time is met by pipelining alone, a tighter one is not."""
    watts = "power_modes.decide"
    out = []
    for c in cases():
        tight = TIGHTER * mode(c, "basic").period
        for what, target in (("the baseline's time", c.serial), (f"{TIGHTER:.0%} of the basic mode's time", tight)):
            got = mode(c, "auto", target)
            words = "power-saving" if got.mode == "save" else "performance-boosting"
            note = f"{watts}; {1e3 * got.period:.2f} ms at a target of {1e3 * target:.2f} ms"
            paper = None if target != c.serial else "power-saving"
            out.append(
                row("Figure 4", f"{c.name}, target: {what}", paper, words, "simulated", "", (c.name,), note=note)
            )
    return out


#: what of a mode is drawn, its unit's words, and in which part of the figures
PARTS = (
    ("period", "execution time", "(a)"),
    ("watts", "power", "(b)"),
    ("joules", "energy", "(c)"),
    ("edp", "EDP", "(d)"),
)
FITTED = (
    "powers: [power] of the profile, three printed watts; clock cubed; the clocks as they are: NVIDIA's mode 3,"
    " assumed, none is printed; cut: the rule's"
)


def _mode(figure: str, name: str, parts: Mapping[str, tuple[str, str]], only: Sequence[str] = ()) -> list[Row]:
    """A mode's rows: the mean that is printed for a part (record, value), and each network's bar, which is drawn."""
    out = []
    for what, words, part in PARTS:
        if only and what not in only:
            continue
        ours, at = less(name, what), figure + part
        sign = -1 if what == "watts" and name != "save" else 1  # the paper prints "more power"
        words = f"{'more' if sign < 0 else 'less'} {words}"
        value = lambda c, ours=ours, sign=sign: sign * ours(c)
        if what in parts:
            key, entry = parts[what]
            out.append(_of(at, f"{words}, mean of five", key, entry, value, FITTED))
        else:
            every, found = f"{words}, mean of five", mean(value)
            out.append(row(at, every, None, found, "simulated", "%", NETWORKS, spread=spread(value)))
        out += [
            row(at, f"{words}, {c.name}", _single(name, what, c), value(c), "simulated", "%", (c.name,))
            for c in cases()
        ]
    return out


#: bars of one network that are printed
SINGLE = {("basic", "period", "mobilenet"): "basic_time", ("basic", "joules", "mobilenet"): "basic_energy"}


def _single(name: str, what: str, c: Case) -> float | None:
    key = SINGLE.get((name, what, c.name))
    return PAPER[key].number(c.name) if key else None


def figure5() -> list[Row]:
    """The basic mode: pipelining alone."""
    parts = {
        k: (f"basic_{v}", "mean") for k, v in dict(period="time", watts="power", joules="energy", edp="edp").items()
    }
    least = lambda key: lambda c: simulated(c, key)
    at, what, paper = "Figure 5(a)", "less execution time", PAPER["basic_time"].number("mean")
    exact = (
        "up to three stages, host operations on a thread of their own; without these, in the best two stages,"
        f" {mean(least('best')):.1f} %"
    )
    others: tuple[tuple[str, Callable[[Case], float], str, str], ...] = (
        ("Equation 1", calculated, "calculated", "with Table 4's alpha and gamma"),
        ("the rule with N_opt as printed", least("printed"), "simulated", ""),
        ("oblivious of the host operations", least("oblivious"), "simulated", "Table 3's partition"),
        ("best two stages", least("best"), "simulated", "ours in the place of Table 5's empirical cut"),
        ("our exact cut", exactly, "simulated", exact),
    )
    extra = [
        row(at, f"{what}, {name}", paper, mean(f), kind, "%", of, note, spread=spread(f))
        for name, f, kind, note in others
        for of in (NETWORKS if kind == "simulated" else (),)
    ]
    return _mode("Figure 5", "basic", parts) + extra + _three_stages()


def _three_stages() -> list[Row]:
    """III-B: MobileNet in up to three stages over two."""
    c = case("mobilenet")
    costs = (c.costs, crossing_bytes(c.graph), Around(c.operations), CORES, THREADS)
    ours = 100 * (best(*costs, most=2).period / best(*costs, most=3).period - 1)
    printed = PAPER["three_stages"].number("mobilenet")
    return [row("Section III-B", "mobilenet, three stages over two", printed, ours, "simulated", "%", (c.name,))]


def figure6() -> list[Row]:
    """Power over time of MobileNet: the baseline's swing is fitted, the rest follows."""
    watts, _dials = electric()
    highest = watts.idle + max(watts.active.values())
    c = case("mobilenet")
    stages = c.stages(c.cuts["neuropipe"])
    period = max(stages.values())
    waits = sum(watts.active[h] for h, t in stages.items() if t < period * (1 - 1e-3))
    more = 100 * ((watts.idle + sum(watts.active.values())) / highest - 1)
    printed = PAPER["power_swing"]
    most, both = PAPER["power_most"].number("most"), highest * (1 + more / 100)
    summed = f"both halves together take {both:.2f} W: as printed if they took {highest * (1 + most / 100):.2f} W"
    quiet = (
        "the stage that waits for the other one draws nothing; the paper's traces are sampled: as printed if it drew"
        f" {max(waits - printed.number('pipelined'), 0.0):.2f} W less at work"
    )
    over_time = [
        row("Figure 6", "power over time", None, w, "simulated", "W", of, series=series, x=1e3 * t)
        for series, found, of in (
            ("baseline", _trace(c.baseline, True), ()),
            ("NeuroPipe", _trace(stages, False), (c.name,)),
        )
        for t, w in found
    ]
    return [
        *over_time,
        row(
            "Figure 6(a)", "swing, baseline", printed.number("baseline"), swing(watts), "simulated", "W", note="fitted"
        ),
        row(
            "Figure 6(b)",
            "swing, pipelined",
            printed.number("pipelined"),
            waits,
            "simulated",
            "W",
            (c.name,),
            note=quiet,
        ),
        row("Figure 6", "more power at its highest", most, more, "simulated", "%", note=summed),
    ]


def _trace(seconds: Mapping[str, float], in_turn: bool) -> list[tuple[float, float]]:
    """(second, watts) at the corners of the power of `ITEMS` items, whose halves work in turn or at once."""
    watts, _dials = electric()
    out: list[tuple[float, float]] = []
    at = 0.0
    for _ in range(ITEMS):
        if in_turn:
            steps = [(t, watts.active[h]) for h, t in seconds.items()]
        else:
            short, long = sorted(seconds.values())
            slow = max(seconds, key=lambda h: seconds[h])
            steps = [(short, sum(watts.active.values())), (long - short, watts.active[slow])]
        for t, active in steps:
            out += [(at, watts.idle + active), (at + t, watts.idle + active)]
            at += t
    return out


def figure7() -> list[Row]:
    """The power-saving mode at the baseline's time: energy and EDP are as the power (IV-C)."""
    return _mode("Figure 7", "save", {"watts": ("saving_power", "mean")}, ("period", "watts"))


def _at_par() -> str:
    """What the printed time and power of the boosting mode say of its energy."""
    time, power = PAPER["boosting_time"].number("baseline"), PAPER["boosting_power"].number("mean")
    energy = 100 * ((1 - time / 100) * (1 + power / 100) - 1)
    par = 100 * (1 / (1 - time / 100) - 1)
    return (
        f"as printed if boosting stopped at {energy:.1f} % more energy than the baseline's, which {time:g} % less time"
        f" at {power:g} % more power are; at exactly its energy that time goes with {par:.1f} % more power"
    )


def figure8() -> list[Row]:
    """The performance-boosting mode at the baseline's energy."""
    parts = {
        "period": ("boosting_time", "baseline"),
        "watts": ("boosting_power", "mean"),
        "edp": ("boosting_edp", "mean"),
    }
    over = lambda c: less("boost", "period")(c) - less("basic", "period")(c)
    points = _of("Figure 8(a)", "less execution time than the basic mode, points", "boosting_time", "basic", over, "")
    made = _mode("Figure 8", "boost", parts)
    noted = lambda r: {**r, "note": f"{_at_par()}; {r['note']}"} if r["what"] == "more power, mean of five" else r
    return [*map(noted, made), points]


def figure9() -> list[Row]:
    why = "no model of the board's heat: neither paper nor maker prints what one watt warms it by"
    basic, boosting = PAPER["temperature_basic"], PAPER["temperature_boosting"]
    return [
        not_here("Figure 9", "warmer in the basic mode", why, basic.number("most"), "°C"),
        not_here("Figure 9(a)", "warmer in the boosting mode, passive", why, boosting.number("passive"), "°C"),
        not_here("Figure 9(b)", "warmer in the boosting mode, fan", why, boosting.number("fan"), "°C"),
    ]


TABLES = (table1, table2, table3, table4, table5)
FIGURES = (figure1, figure2, figure3, figure4, figure5, figure6, figure7, figure8, figure9)


def rows() -> list[Row]:
    """All rows, tables first."""
    return [made for f in (*TABLES, *FIGURES) for made in f()]


__all__ = ["FIGURES", "TABLES", "rows"]
