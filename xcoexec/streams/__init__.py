"""Many inferences at once, over the same plans and halves: streams."""

from .pipeline import Pipeline, Stats, Stream, pipeline

__all__ = ["Pipeline", "Stats", "Stream", "pipeline"]
