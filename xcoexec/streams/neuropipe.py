"""Where to cut a network into pipeline stages: NeuroPipe's model (Kim et al., IEEE Access 2020), and the exact cut on
measured times.

While the accelerator works on the front of the network for item i, the CPU works on the rear for item i - 1 and
prepares item i + 1.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ..ir.costs import Costs
from ..ir.words import DEVICE, HOST

MOST_STAGES = 3
ROUNDING = 1e-9  # of sums of operations
OTHER = {DEVICE: HOST, HOST: DEVICE}


@dataclasses.dataclass(frozen=True)
class Around:
    """The user's work on the host around the network: seconds of `before` and `behind` an item, and threads that do
    `before`.
    """

    before: float = 0.0
    behind: float = 0.0
    workers: int = 1


@dataclasses.dataclass(frozen=True)
class Cut:
    """Stages of a network in order: (half, first layer, last layer + 1); `seconds` of each, `period` seconds between
    results.
    """

    stages: tuple[tuple[str, int, int], ...]
    seconds: tuple[float, ...] = ()
    period: float = 0.0

    def busy(self, shared_cores: bool) -> tuple[float, float]:
        """Seconds an item on the host half and on a device of its own."""
        by = {
            half: sum(t for (h, _, _), t in zip(self.stages, self.seconds, strict=False) if h == half) for half in OTHER
        }
        return _apart(by["host"], by["device"], shared_cores)

    def __str__(self) -> str:
        parts = (
            f"{half} {start}..{stop - 1} ({s * 1e3:.2f} ms)"
            for (half, start, stop), s in zip(self.stages, self.seconds or itertools.repeat(0.0), strict=False)
        )
        return " | ".join(parts) + f": an item every {self.period * 1e3:.2f} ms"


def front_and_rear(k: int, layers: int) -> Cut:
    """The paper's kind of cut: the front on the device, layers from k on on the host half (either may be nothing)."""
    return Cut(tuple((half, a, b) for half, a, b in (("device", 0, k), ("host", k, layers)) if a < b))


# -- the paper ----------------------------------------------------------------------------------------


def speedup(alpha: float, gamma: float) -> float:
    """NeuroPipe's Equation 1: (gamma + 1) / (1 - (alpha - 1)(gamma - 1)), over doing everything one after the other.

    alpha: the host operations' share (0..1) of a serial item's seconds, `t_host / (t_host + t_acc)`; gamma: `t_cpu /
    t_acc` of the network. Holds up to alpha = 1/2; beyond, the network stays whole on the accelerator and the host
    operations are the slowest stage: 1/alpha.
    """
    return (gamma + 1) / (1 - (alpha - 1) * (gamma - 1)) if alpha < 0.5 else 1 / alpha


def neural_work(alpha: float, gamma: float, printed: bool = False) -> float:
    """N_opt: seconds of the network's CPU work that belong to the CPU, as a share of a serial item (the whole network
    is (1 - alpha) * gamma of it).

    Both stages take equally long when alpha + w = (1 - alpha) - w / gamma, so w = (1 - 2 * alpha) * gamma / (gamma +
    1): what the CPU already has to do for the host operations counts. As N_opt (section III-C) the paper prints (1 -
    alpha) * gamma / (gamma + 1) (`printed`), which is the balance without host operations; its own Equation 1 (section
    III-B) follows from the former.
    """
    return max((1 - alpha) if printed else (1 - 2 * alpha), 0.0) * gamma / (gamma + 1)


def share(alpha: float, gamma: float, printed: bool = False) -> float:
    """N_opt as a share (0..1) of all operations of the network, which are (1 - alpha) * gamma in the same unit.

    As printed it is 1 / (gamma + 1) whatever alpha is: the share of Table 3's PU-oblivious partition.
    """
    return neural_work(alpha, gamma, printed) / ((1 - alpha) * gamma)


def rear(counts: Sequence[float], most: float, able: Sequence[bool] = ()) -> int:
    """Section III-C: the first layer of the rear that goes to the CPU, as many layers as have together no more than the
    share `most` (0..1) of all operations.

    `counts`: operations of each layer in order; `able`: whether the CPU can compute it (default: every layer). Layers
    without operations go with those behind them. The number of layers where not even the last one has so few.
    """
    limit, given = most * sum(counts) * (1 + ROUNDING), 0.0
    for k in range(len(counts) - 1, -1, -1):
        given += counts[k]
        if given > limit or (able and not able[k]):
            return k + 1
    return 0


def neuropipe(costs: Costs, counts: Sequence[float], host_operations: float, printed: bool = False) -> int:
    """The paper's cut (section III-C): the first layer of the rear, whose operations are no more than N_opt.

    `counts`: operations of each layer, from its shapes; `host_operations`: seconds an item of the user's work;
    `printed`: with N_opt as printed instead of the one that Equation 1 follows from (`neural_work`). alpha and gamma
    are those of the whole network.
    """
    accelerated = sum(costs.device)
    alpha = host_operations / (host_operations + accelerated)
    gamma = sum(t or 0.0 for t in costs.host) / accelerated
    return rear(counts, share(alpha, gamma, printed), _able(costs))


def oblivious(costs: Costs, counts: Sequence[float]) -> int:
    """Table 3's PU-oblivious cut: by gamma alone, as if the CPU had no host operations to do; the first layer of the
    rear.
    """
    return neuropipe(costs, counts, 0.0)


def _able(costs: Costs) -> list[bool]:
    return [t is not None for t in costs.host]


def two_stages(costs: Costs, crossing: Sequence[int], k: int, host_operations: float) -> tuple[float, float]:
    """Seconds of the accelerator's stage and of the CPU's, which does the host operations too, for a cut before layer k
    (NeuroPipe's Figure 1b).
    """
    moved = costs.exchange(crossing[k]) if k < len(costs.device) else 0.0
    return sum(costs.device[:k]), host_operations + moved + sum(t or 0.0 for t in costs.host[k:])


def best_rear(costs: Costs, crossing: Sequence[int], host_operations: float) -> int:
    """Of all cuts into the paper's two stages the one with the shortest period by the layers' seconds (Table 5's
    empirical one is found by running them); the first layer of the rear.
    """
    able = _able(costs)
    cuts = [k for k in range(len(able) + 1) if all(able[k:])]
    return min(cuts, key=lambda k: (max(two_stages(costs, crossing, k, host_operations)), -k))


# -- the exact cut ------------------------------------------------------------------------------------


def _apart(host: float, device: float, shared_cores: bool) -> tuple[float, float]:
    """Seconds of the host half and of a device of its own."""
    return (host + device, 0.0) if shared_cores else (host, device)


def busiest(host: float, device: float, around: Around, cores: int, threads: int) -> float:
    """Seconds between results of a network that needs so many seconds on each half: those of the busiest half, thread
    or set of cores.

    Stages of one half take turns on it; the user's work has threads of its own but runs on the same cores as the host
    half.
    """
    used = around.before + around.behind + host * threads
    return max(host, device, around.before / around.workers, around.behind, used / cores)


@dataclasses.dataclass(frozen=True)
class _State:
    """Everything up to some layer: seconds on each half, and the stages so far."""

    host: float
    device: float
    stages: tuple[tuple[str, int, int, float], ...]

    def then(self, half: str, start: int, stop: int, seconds: float) -> _State:
        host, device = (seconds, 0.0) if half == "host" else (0.0, seconds)
        return _State(self.host + host, self.device + device, (*self.stages, (half, start, stop, seconds)))


def best(
    costs: Costs,
    crossing: Sequence[int],
    around: Around,
    cores: int,
    threads: int,
    most: int = MOST_STAGES,
    each: Mapping[str, float] = MappingProxyType({}),
) -> Cut:
    """The cut with the shortest period among all sequences of up to `most` stages that alternate between the halves.

    Dynamic programming over layers: of the ways to get to a layer on a half with so many stages only those stay that no
    other one beats on both halves' seconds, which is exact because the period grows with both. `crossing[k]`: bytes
    needed behind a cut before layer k; `each`: seconds that a stage on a half takes beside its layers and the exchange.
    """
    n = len(costs.device)
    ends: dict[int, dict[tuple[str, int], list[_State]]] = {0: {(half, 0): [_State(0.0, 0.0, ())] for half in OTHER}}
    for stop in range(1, n + 1):
        found: dict[tuple[str, int], list[_State]] = {}
        for half in OTHER:
            for start, t in _stages(costs, crossing, half, stop, each.get(half, 0.0)):
                for count in range(most):
                    for before in ends[start].get((OTHER[half], count), ()):
                        found.setdefault((half, count + 1), []).append(before.then(half, start, stop, t))
        ends[stop] = {key: _undominated(states) for key, states in found.items()}
    value = lambda s: (
        busiest(*_apart(s.host, s.device, costs.shared_cores), around, cores, threads),
        s.host + s.device,
        len(s.stages),
    )
    chosen = min((s for states in ends[n].values() for s in states), key=value)
    return Cut(tuple(x[:3] for x in chosen.stages), tuple(x[3] for x in chosen.stages), value(chosen)[0])


def _stages(costs: Costs, crossing: Sequence[int], half: str, stop: int, beside: float) -> Iterator[tuple[int, float]]:
    """(first layer, seconds) of every stage on a half that ends before layer `stop`: its layers, what it takes over,
    and what is beside them.
    """
    seconds = beside
    for start in range(stop - 1, -1, -1):
        t = costs.host[start] if half == "host" else costs.device[start]
        if t is None:
            return
        seconds += t
        alone = costs.shared_cores or (start == 0 and half == "device")
        yield start, seconds + (0.0 if alone else costs.exchange(crossing[start]))


def _undominated(states: Sequence[_State]) -> list[_State]:
    out: list[_State] = []
    for s in sorted(states, key=lambda s: (s.host, s.device)):
        if not out or s.device < out[-1].device:
            out.append(s)
    return out


__all__ = [
    "MOST_STAGES",
    "Around",
    "Cut",
    "best",
    "best_rear",
    "busiest",
    "front_and_rear",
    "neural_work",
    "neuropipe",
    "oblivious",
    "rear",
    "share",
    "speedup",
    "two_stages",
]
