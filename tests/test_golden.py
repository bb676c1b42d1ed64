"""Golden text of graphs, plans and kernels (`pytest --update-golden` writes it anew), and that the kernels still run."""

from __future__ import annotations

import jax
from xcoexec.codegen.kernels import gemm
from xcoexec.codegen.native.build import kernel_text
from xcoexec.codegen.program import format_program
from xcoexec.codegen.target import Target

from xcoexec import models
from xcoexec.ir.costs import Costs
from xcoexec.ir.plan import Plan
from xcoexec.ir.text import graph_text
from xcoexec.planning.strategies import STRATEGIES
from xcoexec.session.contest import CANDIDATES, forced

from .support import stages_of

#: a target that does not depend on the machine of the test
FIXED = Target("avx2", 8, 16, "haswell", "+avx2,+fma")
RELU = (("in", 0), ("in", 1), ("add", 0, 1), ("lit", "f", "0.0"), ("max", 2, 3))


def _graph(name: str):
    entry = models.get(name)
    weights = jax.tree_util.tree_map(
        lambda s: jax.numpy.zeros(s.shape), jax.eval_shape(entry.module.init, jax.random.key(0), entry.example())
    )
    return stages_of(entry.module.apply, weights, entry.example(), weights=1)[1]


def test_graphs(golden) -> None:
    for name in ("lenet", "squeezenet", "resnet18"):
        golden(f"graph_{name}.txt", graph_text(_graph(name)) + "\n")
    golden("program_lenet.txt", format_program(_graph("lenet").program) + "\n")


def _costs(graph, shared: bool) -> Costs:
    host = tuple(1e-5 + x.flops / 200e9 + x.nbytes / 30e9 for x in graph.layers)
    device = tuple(1e-5 + x.flops / 150e9 + x.nbytes / 30e9 for x in graph.layers)
    return Costs.of_halves(host, device, 2e-5, 20e9, 1.1, shared)


def test_plans(golden) -> None:
    graph = _graph("squeezenet")
    for name in CANDIDATES:
        strategy = STRATEGIES[name]
        golden(f"plan_{name}_apart.txt", str(strategy(graph, _costs(graph, shared=False))) + "\n")
        golden(f"plan_{name}_shared.txt", str(strategy(graph, _costs(graph, shared=True))) + "\n")
    golden("plan_uniform.txt", str(forced(_graph("lenet"), Plan.uniform(0.25))) + "\n")


def test_kernels(golden) -> None:
    golden("kernel_gemm.ll", kernel_text(gemm.spec(2, 1, False, RELU, ("c",)), FIXED))
    golden("kernel_gemm_tail.ll", kernel_text(gemm.spec(1, 2, True, (("in", 0),), ()), FIXED))
    golden("kernel_elementwise.ll", kernel_text(("elementwise", RELU, ("v", "v", "s")), FIXED))
    golden("kernel_depthwise.ll", kernel_text(("depthwise", 1, 3, 1, 1, 2, RELU, ("c",), False), FIXED))
