"""How well layers are predicted that a predictor has never seen; beside it a model of FLOP alone and a learned black
box.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from .regress import linear

CLOSE = 0.1  # relative error that counts as right (CoDL's Tables 3 and 4)
UNKNOWN = "not installed"


@dataclasses.dataclass(frozen=True)
class PredictionAccuracy:
    """Of held-out layers of one class: how many, and the share of them within 10 % by each model (None: that model is
    not there).
    """

    half: str
    kind: str
    layers: int
    within: Mapping[str, float | None]
    median_error: Mapping[str, float | None]


def accuracy(
    half: str, kind: str, measured: Sequence[float], predicted: Mapping[str, Sequence[float] | None]
) -> PredictionAccuracy:
    """Compares predicted seconds (by model; None: that model is not there) with measured ones, layer by layer."""
    errors = {m: None if p is None else np.abs(np.array(p) / np.array(measured) - 1) for m, p in predicted.items()}
    within = {m: None if e is None else float(np.mean(e <= CLOSE)) for m, e in errors.items()}
    return PredictionAccuracy(
        half, kind, len(measured), within, {m: None if e is None else float(np.median(e)) for m, e in errors.items()}
    )


def by_flops(known: Sequence[tuple[float, float]], asked: Sequence[float]) -> list[float]:
    """Seconds for each FLOP in `asked`, by a fixed cost and a rate that are fitted to (FLOP, seconds)."""
    table = np.array(known)
    fixed, rate = linear(np.stack([np.ones(len(table)), table[:, 0]], 1), table[:, 1])
    return [float(fixed + rate * f) for f in asked]


def by_trees(known: Sequence[tuple[Sequence[float], float]], asked: Sequence[Sequence[float]]) -> list[float] | None:
    """Seconds for each layer in `asked`, by gradient boosting over (sizes, seconds) on the logarithm of seconds; None
    without scikit-learn.
    """
    try:
        from sklearn.ensemble import GradientBoostingRegressor
    except ImportError:
        return None
    x, y = np.array([s for s, _ in known], float), np.log([t for _, t in known])
    model = GradientBoostingRegressor(n_estimators=400, max_depth=5, learning_rate=0.05, subsample=0.8, random_state=0)
    return [float(t) for t in np.exp(model.fit(x, y).predict(np.array(asked, float)))]


__all__ = ["CLOSE", "PredictionAccuracy", "accuracy", "by_flops", "by_trees"]
