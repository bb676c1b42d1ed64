"""EdgeNN's equations (Zhang et al., ICDE 2023), with the fixed costs that the paper leaves out."""

from __future__ import annotations

from ..ir.costs import Costs


def total(p: float, t_cpu: float, t_gpu: float, output_bytes: float, rate: float) -> float:
    """Equation 3, the sum of Equations 1 and 2: seconds of a layer whose host half computes the share p.

    `max(t_cpu*p, t_gpu*(1-p)) + p*v_o/s`, v_o in bytes, s in bytes/s.
    """
    return max(t_cpu * p, t_gpu * (1 - p)) + p * output_bytes / rate


def optimum(t_cpu: float, t_gpu: float, output_bytes: float, rate: float) -> float:
    """Equation 4: the best share, `t_gpu/(t_cpu+t_gpu)`; 0 where copying the output costs t_gpu or more."""
    return t_gpu / (t_cpu + t_gpu) if output_bytes / rate < t_gpu else 0.0


def split_seconds(p: float, t_cpu: float, t_gpu: float, output_bytes: float, costs: Costs) -> float:
    """`total` with what the paper leaves out: a synchronisation, and both halves slowing down together. `p`: the host
    half's share, 0..1; `t_cpu`, `t_gpu`: seconds of the whole layer.

    Where the halves share their cores they run one after the other and nothing overlaps.
    """
    if p <= 0:
        return t_gpu
    if p >= 1:
        return t_cpu
    merge = p * output_bytes / costs.copy_rate
    if costs.shared_cores:
        return t_cpu * p + t_gpu * (1 - p) + merge + costs.sync
    return max(t_cpu * p, t_gpu * (1 - p)) * costs.contention + merge + costs.sync


def bound(t_cpu: float, t_gpu: float) -> float:
    """Seconds that no split of one layer can go below: `t_cpu * t_gpu / (t_cpu + t_gpu)`."""
    return t_cpu * t_gpu / (t_cpu + t_gpu)
