"""Trains the predictor on this machine: a few hundred made layers, as networks have them, are measured on both halves.

Every layer reads what a step before it has just written, as in a network; rounds over all of them are repeated, so that
a change of the machine's speed meets all alike, and the quickest calls of each program count.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

from ..codegen.kernels.conv import ALGORITHMS
from ..codegen.program import Program, Value, external
from ..codegen.rules.convolution import convolution
from ..codegen.runtime import host
from ..codegen.runtime.relay import Relay
from ..codegen.segment.assembly import Segment
from ..compat import as_array
from ..cost.accuracy import PredictionAccuracy, accuracy, by_flops, by_trees
from ..cost.predictor import Predictor, parsed, trained
from ..cost.terms import Blocks, Work, device_work
from ..devices.registry import device_of
from ..frontend.graph import graph_of
from ..ir.layers import Layer, LayerGraph
from ..ir.text import columns
from ..ir.words import DEVICE, HOST
from . import device_layers
from .device_layers import TimedProgram
from .host_work import KERNELS, host_work
from .kept import load, store
from .profile import Progress, around, learn_contention, silent
from .records import PREDICTOR
from .sample_layers import LAYERS, Made, made_layers

TOGETHER = 24  # layers in one program
SECONDS = 22.0  # for the rounds; building the layers comes on top of it
LEAST_ROUNDS, MOST_ROUNDS = 4, 14
HOST_CALLS = 10  # of a program in a round
DEVICE_CALLS = 6
QUIET = 30  # percentile of a program's calls, by their time, that count
COMPILERS = 4  # threads
NOISE = 4099  # numbers that weights and inputs repeat; a prime, so that no two rows of them are the same
HELD_OUT = 4  # every so many-th layer is held out


@dataclasses.dataclass(frozen=True)
class Sample:
    """A step (host half) or a layer (device half) that was measured."""

    half: str
    layer: str
    algorithm: str
    work: Work
    seconds: float
    flops: int
    sizes: tuple[float, ...]  # of the layer: what the black box is given


@dataclasses.dataclass(eq=False)
class _Batch:
    """Made layers in one program: what makes their operands, and the layers in their order."""

    graph: LayerGraph
    names: Sequence[str]
    layers: Sequence[Layer]
    makers: Mapping[Value, Layer]
    values: Mapping[Value, np.ndarray]

    @classmethod
    def of(cls, made: Sequence[Made], seed: int) -> _Batch:
        # repeated: new numbers for all weights would take seconds
        noise = np.random.default_rng(seed).standard_normal(NOISE, np.float32)
        weights = [[as_array(np.resize(noise * 0.05, s)) for s in m.weights] for m in made]
        inputs = [as_array(np.resize(noise, m.shape)) for m in made]
        fn = lambda ws, xs: [m.apply(w, x * 1.5) for m, w, x in zip(made, ws, xs, strict=True)]
        folded, graph = graph_of(fn, (weights, inputs), 1)
        ends = [graph.home[v] for v in graph.program.outputs]
        layers = [graph.layers[i] for i in ends]
        makers = {x.out: x for x in graph.layers if x.index not in set(ends)}
        constants = folded.constants(jax.tree_util.tree_leaves(weights))
        arrays = {v: np.asarray(x) for v, x in zip(graph.program.inputs, inputs, strict=True)} | {
            v: constants[v] for v in graph.program.consts
        }
        return cls(graph, [m.name for m in made], layers, makers, arrays)

    @functools.cached_property
    def consts(self) -> frozenset[Value]:
        return frozenset(self.graph.program.consts)

    def before(self, layer: Layer) -> list[Layer]:
        """The layers that make a layer's operands, first ones first."""
        found: list[Layer] = []
        for v in layer.ins:
            if v in self.makers and self.makers[v] not in found:
                found += [x for x in (*self.before(self.makers[v]), self.makers[v]) if x not in found]
        return found


@dataclasses.dataclass(eq=False)
class _OnHost:
    """Layers of a batch in one segment with one algorithm, and the seconds of its steps by call."""

    batch: _Batch
    algorithm: str
    positions: Sequence[int]
    groups: Sequence[int]  # each one's number of a group
    segment: Segment
    call: host.Call
    times: list[np.ndarray]

    def round(self) -> None:
        for _ in range(HOST_CALLS + 1):
            self.call()
        self.times.append(np.diff(self.segment.stamps()[-HOST_CALLS:], axis=1) * 1e-9)

    @property
    def footprint(self) -> float:
        """Bytes that a call touches."""
        s = self.segment
        return float(
            s.blob_bytes + s.arena_bytes + sum(v.nbytes for v in (*s.raw, *s.program.inputs, *s.program.outputs))
        )

    def samples(self, threads: int) -> Iterator[Sample]:
        seconds = quiet(np.concatenate(self.times))
        for position, group in zip(self.positions, self.groups, strict=True):
            layer = self.batch.layers[position]
            mine = [i for i, s in enumerate(self.segment.steps) if s.group == group]
            works = host_work(layer.group, self.batch.consts, threads, self.footprint)[self.algorithm]
            assert len(mine) == len(works), f"{self.batch.names[position]}: {len(mine)} steps, {len(works)} predicted"
            for i, work in zip(mine, works, strict=True):
                yield Sample(
                    HOST,
                    self.batch.names[position],
                    self.algorithm,
                    work,
                    float(seconds[i]),
                    layer.flops,
                    sizes(layer),
                )


def _all_on_host(batch: _Batch, threads: int, cpus: tuple[int, ...]) -> Iterator[_OnHost]:
    """A run for each algorithm that some of the layers may get."""
    offered = [host_work(x.group, batch.consts, threads, 0.0).keys() for x in batch.layers]
    for algorithm in ALGORITHMS:
        positions = [i for i, names in enumerate(offered) if algorithm in names]
        if positions:
            yield _on_host(batch, algorithm, positions, threads, cpus)


def _on_host(batch: _Batch, algorithm: str, positions: Sequence[int], threads: int, cpus: tuple[int, ...]) -> _OnHost:
    groups, numbers = [], []
    for i in positions:
        layer = batch.layers[i]
        groups += [x.group for x in (*batch.before(layer), layer)]
        numbers.append(len(groups) - 1)
    ops = [op for g in groups for op in g.ops]
    outside = external(ops)
    inputs, consts = [v for v in outside if v not in batch.consts], [v for v in outside if v in batch.consts]
    program = Program(tuple(inputs), tuple(consts), tuple(groups), tuple(batch.layers[i].out for i in positions))
    segment = host.build(program, threads, cpus=cpus, pick=lambda g, n, t: algorithm if algorithm in n else n[0])
    call = host.Call(segment, [batch.values[v] for v in inputs], [batch.values[v] for v in consts])
    return _OnHost(batch, algorithm, positions, numbers, segment, call, [])


@dataclasses.dataclass(eq=False)
class _OnDevice:
    """Layers of a batch in one program of the device half, and what its clock showed around each by call."""

    batch: _Batch
    program: TimedProgram
    times: list[np.ndarray]
    run: Callable[..., jax.Array]  # what jax.jit returns, then an executable

    def compiling(self, pool: ThreadPoolExecutor) -> Future[jax.stages.Compiled]:
        """Traced here, under the caller's settings, and compiled by a thread."""
        return pool.submit(self.program.run.lower(self.program.token, self.program.given).compile)

    def round(self) -> None:
        for i in range(DEVICE_CALLS + 1):
            self.run(self.program.token, self.program.given).block_until_ready()
            if i:
                self.times.append(self.program.clock.times())

    def samples(self, blocks: Blocks) -> Iterator[Sample]:
        gaps = np.diff(np.array(self.times).reshape(len(self.times), -1, 2), axis=2)[:, :, 0] * 1e-9
        empty, *seconds = quiet(gaps)
        self.program.clock.close()
        for name, layer, t in zip(self.batch.names, self.batch.layers, seconds, strict=True):
            yield Sample(
                DEVICE,
                name,
                "",
                device_work(layer.group, blocks),
                max(float(t - empty), 1e-7),
                layer.flops,
                sizes(layer),
            )


def _on_device(batch: _Batch, relay: Relay | None) -> _OnDevice:
    value = lambda v: as_array(batch.values[v]) if v in batch.values else jnp.full(v.shape, 0.5, v.dtype)
    whole = [device_layers.whole(x) for x in batch.layers]
    timed = device_layers.program(whole, batch.consts, value, value, relay)
    return _OnDevice(batch, timed, [], timed.run)


def quiet(times: np.ndarray) -> np.ndarray:
    """Seconds of each column of an array of shape [calls, columns]: the median of the quickest calls. A machine that
    changes its state meanwhile slows some kernels more than others, so that calls of one state only can be compared.
    """
    whole = times.sum(1)
    return np.asarray(np.median(times[whole <= np.percentile(whole, QUIET)], 0))


def sizes(layer: Layer) -> tuple[float, ...]:
    """A number for the primitive, then rows, columns, channels in and out, window, stride and groups of a layer, by the
    shapes of its first operand and its result: what a black box is given.
    """
    op, out = layer.group.anchor, layer.out.shape
    given = layer.ins[0].shape
    conv = convolution(op)
    window, stride, groups = (conv.window[0], conv.strides[0], conv.groups) if conv is not None else (1, 1, 1)
    rows, columns = (given[1], given[2]) if len(given) == 4 else (given[0], 1)
    return (float(sum(map(ord, op.prim))), rows, columns, given[-1], out[-1] if out else 1, window, stride, groups)


def sampled(
    relay: Relay | None,
    threads: int,
    cpus: tuple[int, ...] = (),
    layers: Sequence[Made] | None = None,
    progress: Progress = silent,
) -> list[Sample]:
    """All samples of this machine: the seconds of every step (host half) and layer (device half) of `layers`, made ones
    where none are given.
    """
    if layers is None:
        layers = made_layers(LAYERS // 2 if device_of(relay).apart else LAYERS)  # a GPU's kernels take long to compile
    made = list(layers)
    blocks = device_blocks(relay, threads)
    batches = [_Batch.of(made[i : i + TOGETHER], i) for i in range(0, len(made), TOGETHER)]
    runs: list[_OnHost | _OnDevice] = []
    with ThreadPoolExecutor(COMPILERS) as pool:  # XLA compiles beside the host half's code generation
        compiling = []
        for i, batch in enumerate(batches):
            progress("build", i, len(batches))
            on_device = _on_device(batch, relay)
            compiling.append((on_device, on_device.compiling(pool)))
            runs += [*_all_on_host(batch, threads, cpus), on_device]
        for on_device, compiled in compiling:
            on_device.run = compiled.result()
    end, rounds = time.perf_counter() + SECONDS, 0
    while rounds < LEAST_ROUNDS or (rounds < MOST_ROUNDS and time.perf_counter() < end):
        progress("measure", rounds, MOST_ROUNDS)
        for run in runs:
            run.round()
        rounds += 1
    found: list[Sample] = []
    for run in runs:
        found += run.samples(threads) if isinstance(run, _OnHost) else run.samples(blocks)
    progress("measure", MOST_ROUNDS, MOST_ROUNDS)
    return found


def device_blocks(relay: Relay | None, threads: int) -> Blocks:
    """How the device half computes matrix products beside so many threads of the host half."""
    device = device_of(relay)
    return Blocks(device.tiles, device.processors(threads))


def record_name(relay: Relay | None, threads: int) -> str:
    return f"predictor-{threads}{device_of(relay).suffix}"


def held_out(samples: Sequence[Sample]) -> set[str]:
    """Names of every so many-th layer."""
    return set(list(dict.fromkeys(s.layer for s in samples))[HELD_OUT - 1 :: HELD_OUT])


def fitted(samples: Sequence[Sample], relay: Relay | None, threads: int, cpus: tuple[int, ...] = ()) -> Predictor:
    """The predictor that is fitted to the samples' seconds, with the figures around layers as they are on this
    machine.
    """
    learn_contention(relay, threads, cpus)
    return trained(
        [(s.half, s.work, s.seconds) for s in samples],
        device_blocks(relay, threads),
        threads,
        around(relay, threads, cpus),
        KERNELS,
    )


def stored(relay: Relay | None, threads: int) -> Predictor:
    """The predictor that `train` has left on this machine. Raises `ValueError` where there is none for so many
    threads.
    """
    found = load(PREDICTOR, record_name(relay, threads))
    if found is None:
        raise ValueError(
            f'xcoexec: got costs="predicted" on a machine that was not profiled for {threads} threads; '
            "run `xcoexec profile` first."
        )
    return parsed(json.dumps(found), KERNELS)


def train(
    relay: Relay | None, threads: int, cpus: tuple[int, ...] = (), progress: Progress = silent
) -> tuple[Predictor, list[Sample]]:
    """Measures the seconds of made layers, fits, and keeps the predictor on disk under this machine's fingerprint."""
    samples = sampled(relay, threads, cpus, progress=progress)
    predictor = fitted(samples, relay, threads, cpus)
    store(PREDICTOR, record_name(relay, threads), json.loads(predictor.to_json()))
    return predictor, samples


# -- how well it predicts ----------------------------------------------------------------------------


def judged(samples: Sequence[Sample], relay: Relay | None, threads: int) -> list[PredictionAccuracy]:
    """Accuracy of predicted seconds on held-out layers by half and class, then over all; models are made from the other
    layers.
    """
    out = held_out(samples)
    predictor = fitted([s for s in samples if s.layer not in out], relay, threads)
    found: list[PredictionAccuracy] = []
    for half in (HOST, DEVICE):
        known = _layers([s for s in samples if s.half == half and s.layer not in out])
        asked = _layers([s for s in samples if s.half == half and s.layer in out])
        rows = [
            (
                x[0].layer.split()[0],
                sum(s.seconds for s in x),
                sum(predictor.seconds(half, s.work) for s in x),
                x[0].flops,
                x[0].sizes,
            )
            for x in asked
        ]
        flat = [(x[0].flops, sum(s.seconds for s in x), x[0].sizes) for x in known]
        flops = by_flops([(f, t) for f, t, _ in flat], [r[3] for r in rows])
        trees = by_trees([(s, t) for _, t, s in flat], [r[4] for r in rows])
        for kind in (*dict.fromkeys(r[0] for r in rows), "all"):
            mine = [i for i, r in enumerate(rows) if kind in ("all", r[0])]
            models = {
                "predictor": [rows[i][2] for i in mine],
                "FLOP": [flops[i] for i in mine],
                "trees": None if trees is None else [trees[i] for i in mine],
            }
            found.append(accuracy(half, kind, [rows[i][1] for i in mine], models))
    return found


def _layers(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The samples of each layer with the algorithm that was the fastest one for it."""
    runs: dict[str, dict[str, list[Sample]]] = {}
    for s in samples:
        runs.setdefault(s.layer, {}).setdefault(s.algorithm, []).append(s)
    return [min(by.values(), key=lambda steps: sum(s.seconds for s in steps)) for by in runs.values()]


def text(found: Sequence[PredictionAccuracy]) -> str:
    """A table: the share of held-out layers within 10 %, by half, class and model."""
    rows = [["half", "layers of", "held out", *(f"{m} within 10 %" for m in found[0].within), "median error"]]
    for a in found:
        shares_of = ["-" if w is None else f"{w:.0%}" for w in a.within.values()]
        rows.append([a.half, a.kind, str(a.layers), *shares_of, f"{a.median_error['predictor']:.1%}"])
    return columns(rows, range(2, len(rows[0])))


__all__ = ["Sample", "fitted", "held_out", "judged", "record_name", "sampled", "stored", "text", "train"]
