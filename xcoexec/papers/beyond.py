"""All five methods on the same networks, machine, kernels and items, which no paper has; `jax.jit` alone and the host
half alone beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .cases import BLOCK, ROUNDS, cases
from .cells import MEASURED, Cell
from .measured import KEPT_ROUNDS, Measured, cell

FIGURE = "Methods"
ON_HOST = "all layers on the host half: no other plan than that column's"
FASTEST, EVEN, WON = "fastest", "no clear winner: ", "fastest, alone or among several"
#: way of a case -> its word in the table; the baselines first
WORDS: Mapping[str, str] = {
    "jit": "jax.jit alone",
    "host": "host half alone",
    "edgenn": "EdgeNN",
    "codl": "CoDL",
    "layer_switch": "Layer-switched",
    "neuropipe": "NeuroPipe",
    "blastnet": "BlastNet",
}


def line(model: str, seconds: Mapping[str, Sequence[float]], plans: Mapping[str, str], runs: int) -> list[Cell]:
    """A network's line of the table, with its winner; times of which the quartiles overlap are no win. `seconds`:
    quartiles of an item's by word; `plans`: what each ran, or why it did not.
    """
    out = [
        cell(
            FIGURE,
            model,
            None,
            q[1] * 1e3,
            "ms",
            series=word,
            spread=[q[0] * 1e3, q[2] * 1e3],
            runs=runs,
            note=plans.get(word, ""),
        )
        for word, q in seconds.items()
    ]
    out += [cell(FIGURE, model, None, plans[w], "", series=w, runs=runs) for w in plans if w not in seconds]
    best = min(seconds, key=lambda w: seconds[w][1])
    even = [w for w, q in seconds.items() if q[0] <= seconds[best][2]]
    word = best if even == [best] else EVEN + ", ".join(even)
    last: Cell = {"figure": FIGURE, "what": model, "series": FASTEST, "paper": None, "ours": word}  # type: ignore[typeddict-item]
    return [*out, {**last, "kind": MEASURED, "unit": ""}]  # type: ignore[typeddict-item]


def table(records: Sequence[Measured], runs: int = KEPT_ROUNDS) -> list[Cell]:
    """The table of some networks, and in how many of them each is the fastest, alone or among several. A method whose
    plan is the host half alone has no time of its own there.
    """
    out: list[Cell] = []
    for r in records:
        same = [w for w in WORDS if w != "host" and _on_host(r, w)]
        words = {w: WORDS[w] for w in WORDS if w in r["seconds"] and w not in same}
        # a suite's record has its plans as data, not in words
        plans = {WORDS[w]: p for w, p in r.get("plans", {}).items() if w in WORDS and isinstance(p, str)}
        plans |= {WORDS[w]: ON_HOST for w in same}
        out += line(r["model"], {word: r["seconds"][w] for w, word in words.items()}, plans, runs)
    won = [str(c["ours"]).removeprefix(EVEN).split(", ") for c in out if c.get("series") == FASTEST]
    known = dict.fromkeys(c.get("series", "") for c in out if c.get("series") != FASTEST)
    return [
        *out,
        *(cell(FIGURE, WON, None, f"{sum(w in x for x in won)} of {len(won)}", "", series=w) for w in known if won),
    ]


def _on_host(r: Measured, way: str) -> bool:
    """Whether a way's plan has all its layers on the host half."""
    return [half for half, n in r["halves"].get(way, {}).items() if n] == ["host"]


def compared(models: Sequence[str], rounds: int = ROUNDS, block: float = BLOCK) -> list[Cell]:
    """The table on this machine."""
    return table(cases(models, rounds, block), rounds)


__all__ = ["FIGURE", "WORDS", "compared", "line", "table"]
