"""NeuroPipe's rows: those of `benchmarks.neuropipe_rows`, with the records that a checkout keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..benchmarks import neuropipe_measured, neuropipe_rows


def of(name: str) -> Sequence[Mapping[str, Any]]:
    """The cells of the function `name` of `benchmarks.neuropipe_rows`."""
    return getattr(neuropipe_rows, name)(neuropipe_measured.kept_records())


__all__ = ["of"]
