"""Linear models with coefficients that are not negative, corrected by kriging; small enough to be kept as text."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from .terms import Work

LEAST_SECONDS = 5e-7  # below it errors do not count relative to the time
PASSES = 6  # of the regression, each with less weight for what the one before could not explain
PASSES_LIKELY = 25  # of the search for the most likely lengths
POINTS = 240  # most that the correction keeps
DIGITS = 3  # of stored numbers
SHARES = np.linspace(0, 1, 11)  # of a correction


class Stored(TypedDict):
    """A `Regression` as JSON has it: arrays as lists of numbers with `DIGITS` digits."""

    coefficients: list[float]
    points: list[list[float]]
    lengths: list[float]
    values: list[float]
    scale: float
    spread: float


@dataclasses.dataclass(frozen=True, eq=False)
class Regression:
    """Seconds of one class of kernels: `terms . coefficients * exp(correction(traits))`.

    The correction is the mean of a Gaussian process over the logarithm of measured / linear (kriging; Rasmussen and
    Williams, 2006, equation 2.25), with one length for each trait, times the share that helps. `spread`:
    standard deviation of that logarithm at points that were measured.
    """

    coefficients: np.ndarray
    points: np.ndarray  # [n, traits], in lengths
    lengths: np.ndarray
    values: np.ndarray  # [n], log of measured / linear, times that share
    scale: float
    spread: float

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """Of the points in the correction, an array of shape [n]; solved for from rounded numbers, because rounding the
        weights themselves would not do.
        """
        return np.asarray(np.linalg.solve(_covariance(self.points, self.scale, self.spread), self.values))

    def seconds(self, work: Work) -> float:
        """Seconds of kernels of this class."""
        linear = float(np.dot(self.coefficients, work.terms))
        near = self.points - np.asarray(work.traits) / self.lengths
        correction = self.scale**2 * float(_alike(np.einsum("ij,ij->i", near, near)) @ self.weights)
        return max(linear, 1e-9) * math.exp(min(max(correction, -1.0), 1.0))

    def record(self) -> Stored:
        """The fields as JSON has them, for `of`."""
        return {
            "coefficients": _row(self.coefficients),
            "points": [_row(p) for p in self.points],
            "lengths": _row(self.lengths),
            "values": _row(self.values),
            "scale": _rounded(self.scale),
            "spread": _rounded(self.spread),
        }

    @classmethod
    def of(cls, record: Stored) -> Regression:
        """The model of a record whose entries are of their kinds."""
        rows = (record["coefficients"], record["lengths"], record["values"])
        coefficients, lengths, values = (np.asarray(row, float) for row in rows)
        points = np.asarray(record["points"], float)
        return cls(coefficients, points, lengths, values, float(record["scale"]), float(record["spread"]))


def _rounded(x: float) -> float:
    return float(f"{x:.{DIGITS}g}")


def _row(xs: np.ndarray) -> list[float]:
    return [_rounded(x) for x in xs]


def fit(works: Sequence[Work], seconds: Sequence[float]) -> Regression:
    """The model of one class from measured seconds, one for each of `works`."""
    terms, times = np.array([w.terms for w in works], float), np.array(seconds, float)
    coefficients = linear(terms, times)
    traits = np.array([w.traits for w in works], float)
    ratio = np.log(times / np.maximum(terms @ coefficients, 1e-9))
    if len(works) > POINTS:
        kept = np.linspace(0, len(works) - 1, POINTS).astype(int)
        traits, ratio = traits[kept], ratio[kept]
    lengths, scale, noise = _likely(traits, ratio)
    points = traits / lengths
    values = share_that_helps(points, ratio, scale, noise) * ratio
    return Regression(coefficients, points, lengths, values, scale, noise)


def share_that_helps(points: np.ndarray, ratio: np.ndarray, scale: float, noise: float) -> float:
    """The share (0..1) of the correction of points that were left out which leaves the least median error: where the
    measurement's own spread is all that there is to learn, the correction would only add to it.

    `points` [n, traits] in lengths, `ratio` [n] (Rasmussen and Williams, equation 5.12).
    """
    inverse = np.linalg.inv(_covariance(points, scale, noise))
    foreseen = ratio - (inverse @ ratio) / np.diag(inverse)
    left = np.abs(ratio - SHARES[:, None] * foreseen)
    return float(SHARES[np.argmin(np.median(left, axis=1))])


def linear(terms: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Coefficients of shape [terms] (none negative) with the least sum of relative errors of `terms @ coefficients`, by
    weighted least squares; `terms` has the shape [n, terms], `seconds` [n].
    """
    from scipy.optimize import nnls  # a quarter of a second of import, for those who train a predictor

    sizes = np.abs(terms).max(0)
    sizes[sizes == 0] = 1.0
    scaled, weight = terms / sizes, 1 / (seconds + LEAST_SECONDS)
    found = np.zeros(terms.shape[1])
    for _ in range(PASSES):
        found, _ = nnls(scaled * weight[:, None], seconds * weight)
        weight = 1 / (seconds + LEAST_SECONDS) / np.sqrt(np.abs(scaled @ found / seconds - 1) + 0.03)
    return np.asarray(found / sizes)


def _far(squares: np.ndarray) -> np.ndarray:
    """Distances from their squares; never 0, so that they have a slope."""
    return np.asarray(np.sqrt(squares + 1e-12))


def _alike(squares: np.ndarray) -> np.ndarray:
    """The exponential covariance of squared distances: times have steps, which a smoother one would ring at."""
    return np.asarray(np.exp(-_far(squares)))


def _noisy(alike: np.ndarray, noise: float) -> np.ndarray:
    return np.asarray(alike + (noise**2 + 1e-6) * np.eye(len(alike)))


def _covariance(points: np.ndarray, scale: float, noise: float) -> np.ndarray:
    squares = ((points[:, None] - points[None]) ** 2).sum(-1)
    return _noisy(scale**2 * _alike(squares), noise)


def surprise(logs: np.ndarray, squares: np.ndarray, ratio: np.ndarray) -> tuple[float, np.ndarray]:
    """How unlikely `ratio` is, and how that changes with each of `logs`: the logarithms of lengths (one a trait), scale
    and noise.

    `ratio` has the shape [n], `squares` of the points' distances [n, n, traits] (Rasmussen and Williams, equations 5.8
    and 5.9, without the constant).
    """
    *lengths, scale, noise = np.exp(logs)
    apart = squares / np.square(lengths)
    total = apart.sum(-1)
    alike = scale**2 * _alike(total)
    factor = np.linalg.cholesky(_noisy(alike, noise))
    inverse = np.linalg.inv(factor)
    inverse = inverse.T @ inverse
    weights = inverse @ ratio
    slope = 0.5 * (inverse - np.outer(weights, weights))  # for a change of the covariance
    by_length = np.tensordot(slope * alike / _far(total), apart, 2)
    slopes = np.array([*by_length, 2 * np.sum(slope * alike), 2 * noise**2 * np.trace(slope)])
    return float(0.5 * ratio @ weights + np.log(np.diag(factor)).sum()), slopes


def _likely(traits: np.ndarray, ratio: np.ndarray) -> tuple[np.ndarray, float, float]:
    """(lengths, scale, noise) under which what was measured is most likely."""
    from scipy.optimize import minimize

    d = traits.shape[1]
    spans = traits.std(0) + 1e-3
    given = (((traits[:, None] - traits[None]) / spans) ** 2, ratio)
    limits = [(-0.5, 4.0)] * d + [(-4.0, 0.0), (-4.0, 0.0)]
    starts = [np.array([length] * d + [math.log(scale), math.log(0.05)]) for length, scale in ((0.5, 0.2), (2.0, 0.3))]
    found = [
        minimize(surprise, x, given, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": PASSES_LIKELY})
        for x in starts
    ]
    best = min(found, key=lambda r: float(r.fun)).x
    return np.exp(best[:d]) * spans, math.exp(best[d]), math.exp(best[d + 1])


__all__ = ["Regression", "fit", "linear", "share_that_helps", "surprise"]
