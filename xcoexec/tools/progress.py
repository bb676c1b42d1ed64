"""Progress bars while a function is traced, built and measured."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..measure.timing import Progress as Callback

STAGES = {"build": "building kernels", "profile": "measuring layers", "compare": "comparing plans"}


@contextlib.contextmanager
def shown(title: str) -> Iterator[Callback]:
    """A progress callback for `xcoexec.jit(progress=...)`, drawn on stderr."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{title}: tracing", total=None)

        def step(what: str, done: int, total: int) -> None:
            bar.update(task, description=f"{title}: {STAGES.get(what, what)}", completed=done, total=total or None)

        yield step
