"""What suites measure: every strategy, with a part left out, as the papers have it, and its rivals."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NotRequired, TypedDict

from ..planning.strategies import Strategy
from ..strategies import algorithm1, codl, edgenn, layer_switch, mu_layer


class Variant(TypedDict):
    """What `xcoexec.jit` is told."""

    strategy: str | Strategy
    memory: NotRequired[str]


#: name -> what `xcoexec.jit` is told; beside the strategies these with a part left out
VARIANTS: Mapping[str, Variant] = {
    **{
        name: Variant(strategy=name)
        for name in ("device", "host", "edgenn", "codl", "codl_measured", "layer_switch", "items", "auto")
    },
    "edgenn, no intra": {"strategy": functools.partial(edgenn, intra=False)},
    "edgenn, no inter": {"strategy": functools.partial(edgenn, inter=False)},
    "edgenn, copies": {"strategy": "edgenn", "memory": "copy"},
    "edgenn, paper": {"strategy": functools.partial(edgenn, whole=False)},
    "edgenn, hybrid": {"strategy": functools.partial(edgenn, whole=False), "memory": "copy"},
    "edgenn, inter only": {"strategy": functools.partial(edgenn, intra=False, whole=False)},
    "codl, channel": {"strategy": functools.partial(codl, dims=("channel",))},
    "codl, rows": {"strategy": functools.partial(codl, dims=("rows",))},
    "codl, no chains": {"strategy": functools.partial(codl, chain=False)},
    "codl, algorithm 1": {"strategy": algorithm1},
    "codl, rows, no chains": {"strategy": functools.partial(codl, dims=("rows",), chain=False)},
    "codl, channel, no chains": {"strategy": functools.partial(codl, dims=("channel",), chain=False)},
    "mu_layer": {"strategy": mu_layer},
    "mu_layer, FLOP": {"strategy": functools.partial(mu_layer, by_flops=True)},
    "layer_switch, greedy": {"strategy": functools.partial(layer_switch, greedy=True)},
}

__all__ = ["VARIANTS", "Variant"]
