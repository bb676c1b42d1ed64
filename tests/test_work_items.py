"""Work items of a product: which tiles and channels each has, who shares what it reads, and what is asked for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from jax import lax

from xcoexec.codegen.kernels import gemm, product
from xcoexec.codegen.runtime import host
from xcoexec.codegen.segment.steps import Kernel
from xcoexec.codegen.target import Target, target
from xcoexec.partition.split import split

from .support import TOLERANCE, array, error, oracle, stages_of, targets
from .test_algorithms import run_on

TARGETS = targets()


def convolution(groups: int) -> Any:
    """A bordered convolution: no tiles in a row but those of one line of the image."""
    return lambda w, x: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups
    )


def follow_each_other(monkeypatch: pytest.MonkeyPatch, chunk: int) -> list[int]:
    """Has all items of some channels follow each other, `chunk` tiles in each; how many there are of each product."""
    seen: list[int] = []

    def items(ctx: Any, g: Any, x: Any, tiles: int, *rest: Any) -> tuple[int, int]:
        seen.append(-(-tiles // chunk))
        return chunk, seen[-1]

    monkeypatch.setattr(product, "_items", items)
    return seen


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("size", "chunk", "groups", "threads"), [(13, 1, 1, 3), (9, 3, 2, 2), (14, 5, 1, 5)])
def test_items_of_the_same_channels_that_follow_each_other(
    isa: Target, size: int, chunk: int, groups: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every tile of every block and group is computed once: several images, odd sizes, a last item with fewer tiles."""
    seen = follow_each_other(monkeypatch, chunk)
    w, x = array(3, 3, 24 // groups, 70 * groups, seed=1), array(2, size, size, 24, seed=2)
    got, _ = run_on(convolution(groups), w, x, isa=isa, weights=1, threads=threads)
    assert max(seen) > 1
    assert error(got, oracle(convolution(groups), w, x)) < TOLERANCE


def test_several_sums_of_items_that_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = follow_each_other(monkeypatch, 3)
    monkeypatch.setattr(product, "PANEL_BYTES", 1)
    w, x = array(3, 3, 40, 70, seed=1), array(1, 11, 11, 40, seed=2)
    got, _ = run_on(convolution(1), w, x, isa=target(), weights=1)
    assert max(seen) > 1
    assert error(got, oracle(convolution(1), w, x)) < TOLERANCE


def tiling_of(isa: Target, size: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> tuple[product._Tiling, set[int]]:
    """How a product is cut for a CPU that keeps so many bytes, and lines of the next panel that its kernels ask for."""
    isa, channels = dataclasses.replace(isa, kept=kept), 256
    found, cut = list[product._Tiling](), product._cut

    def seen(*given: Any) -> product._Tiling:
        found.append(cut(*given))
        return found[-1]

    monkeypatch.setattr(product, "_cut", seen)
    w, x = array(1, 1, channels, channels, seed=1), array(1, size, size, channels, seed=2)
    _, graph = stages_of(convolution(1), w, x, weights=1)
    segment = host.build(graph.program, 3, isa, pick=lambda groups, names, t: "direct", cut=split)
    (step,) = (s for s in segment.steps if "gemm" in s.families)
    asked = {word.spec[-1] for word in step.words if isinstance(word, Kernel)}
    return found[-1], asked


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("size", "kept", "shared"), [(14, 1 << 20, "weights"), (28, 1 << 14, "pixels")])
def test_a_thread_has_the_items_that_read_the_same(
    isa: Target, size: int, kept: int, shared: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbouring pixels and the same weights where all pixels stay in a cache, else neighbouring channels. Over the
    tiles that read a panel all of the next one is asked for, once.
    """
    found, asked = tiling_of(isa, size, kept, monkeypatch)
    chunks = -(-found.tiles // found.chunk)
    assert chunks > 1 and found.parts == (chunks if shared == "weights" else 1)
    panels = {gemm.UNROLL * vectors * isa.vl * 4 for _, vectors, _ in found.blocks}
    assert asked == {gemm.asked(nbytes, found.chunk * found.parts) for nbytes in panels} and 0 not in asked


@pytest.mark.parametrize("isa", TARGETS, ids=lambda t: t.name)
def test_items_of_many_sums_do_not_follow_each_other(isa: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would bring the panels of the sums anew."""
    monkeypatch.setattr(product, "PANEL_BYTES", 1 << 12)
    found, _ = tiling_of(isa, 14, 1 << 20, monkeypatch)
    assert len(found.sums) > 1 and found.parts == 1
