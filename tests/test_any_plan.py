"""Whatever layers cost: every strategy's plan divides layers as its parts can be computed, and is lowered."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import networks
from xcoexec import models
from xcoexec.codegen.program import Program
from xcoexec.devices import null
from xcoexec.frontend.graph import graph_of
from xcoexec.ir.layers import LayerGraph
from xcoexec.ir.validate import check_plan
from xcoexec.lowering import lower as lowering
from xcoexec.lowering.work_units import DeviceUnit, HostUnit
from xcoexec.planning.strategies import BOUNDED, STRATEGIES

from .outside.plans import random_costs

pytestmark = pytest.mark.usefixtures("quick_xla")

SEEDS = 4
MODULES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "a U-Net": lambda: (networks.UNet((4, 8, 8)), jnp.zeros((2, 16, 16, 3))),
    "inverted bottlenecks with squeeze and excitation": lambda: (
        networks.EfficientNet(((1, 8, 1, 1, 3), (2, 8, 2, 2, 5))),
        jnp.zeros((2, 32, 32, 3)),
    ),
    "dense blocks": lambda: (networks.DenseNet((2, 2), 8), jnp.zeros((2, 32, 32, 3))),
    "depthwise convolutions and layer norm": lambda: (networks.ConvNeXt((1, 2), (8, 16)), jnp.zeros((2, 32, 32, 3))),
    "groups": lambda: (networks.ResNeXt((1, 2), 32), jnp.zeros((2, 32, 32, 3))),
    "3-D convolutions": lambda: (networks.Video(), jnp.zeros((1, 4, 16, 16, 3))),
    "a decoder's prefill": lambda: (networks.GPT(50, 12, 16, 2, 2), jnp.zeros((2, 12), jnp.int32)),
    "fire modules": lambda: (models.get("squeezenet").module, jnp.zeros((2, 64, 64, 3))),
}


class _Unbuilt:
    """Stands for a segment that nobody calls."""

    raw = ()

    def __init__(self, program: Program):
        self.program = program


@functools.cache
def _graph(name: str) -> tuple[Any, LayerGraph]:
    module, x = MODULES[name]()
    shapes = jax.eval_shape(module.init, jax.random.key(0), x)
    return graph_of(module.apply, (jax.tree_util.tree_map(lambda s: np.zeros(s.shape, s.dtype), shapes), x), 1)


@pytest.mark.parametrize("strategy", sorted(STRATEGIES.keys() - BOUNDED))
@pytest.mark.parametrize("name", MODULES)
def test_plans_are_lowered(monkeypatch: pytest.MonkeyPatch, name: str, strategy: str) -> None:
    monkeypatch.setattr(lowering, "device_of", lambda relay: null.RECORD)
    monkeypatch.setattr(lowering, "register", lambda device: None)
    folded, graph = _graph(name)
    for seed in range(SEEDS):
        plan = STRATEGIES[strategy](graph, random_costs(graph, seed))
        check_plan(plan, graph)
        units = lowering.lower(graph, folded, plan.placements, _Unbuilt).units  # type: ignore[arg-type]
        computed = {i for u in units if isinstance(u, (DeviceUnit, HostUnit)) for i in u.layers}
        assert computed == set(range(len(graph.layers)))
