"""What `make bench` runs: model, batch, strategy."""

from __future__ import annotations

from xcoexec import models

#: (model, batch, strategy): the zoo at batch 1; larger batches are run with `python -m benchmarks.peers --batch 8 32`
CASES: tuple[tuple[str, int, str], ...] = tuple((name, 1, "auto") for name in models.NAMES)
