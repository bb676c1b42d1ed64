"""A fleet: functions with resident weights in Ray's actors (extra "ray"), each on cores of its own.

Imports: api, codegen.target, compat, config, devices, errors, ir, jax.
"""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

import jax
import numpy as np

from .api.functions import jit
from .api.resident import ResidentFunction
from .codegen.target import target
from .compat import versions
from .config import cores as cores_here
from .devices.registry import device_half
from .errors import brief
from .ir.plan import Plan

if TYPE_CHECKING:
    from ray.serve import Application

Batch = Mapping[str, np.ndarray]  # columns of rows, as Ray Data has them
Shape = tuple[tuple[int, ...], str]


@dataclasses.dataclass(frozen=True)
class Job:
    """What each actor of a fleet runs, and what travels to it. `weights`: a tree of arrays, a function that returns
    one, or a reference to one in Ray's object store. `plans`: of inputs of a shape and type, the JSON text of the plan
    and the machine that it was made on.
    """

    fn: Callable[..., Any]
    weights: Any
    reads: str
    writes: str
    finish: Callable[[Any], Any] | None
    cores: int
    plans: Mapping[Shape, tuple[str, str]]
    options: Mapping[str, Any]

    def bound(self, weights: Any, **more: Any) -> ResidentFunction[Any]:
        """The function with these weights, on as many of this process's cores as it is to have."""
        return jit(self.fn, **{"threads": min(self.cores, cores_here()), **self.options, **more}).bind(weights)

    def machine(self) -> str:
        """What a plan is made for."""
        return f"{target()}, {self.cores} cores, {device_half().title()}, {versions()}"

    def tree(self) -> Any:
        """The weights as arrays. Memory of other processes too (Ray's object store, mapped files) is not copied."""
        found = self.weights() if callable(self.weights) else self.weights
        ray = sys.modules.get("ray")
        found = ray.get(found) if ray is not None and isinstance(found, ray.ObjectRef) else found
        return jax.tree_util.tree_map(_shared, found)


class Predictor:
    """A function with resident weights that takes batches; as an actor on cores that no other one of this host has.
    `predictor` makes the class that Ray is given, with its `job`; `resources` are those that an actor asks Ray for.
    """

    job: Job
    resources: Mapping[str, float]

    def __init__(self) -> None:
        self._claims = claim(self.job.cores) if _in_actor() else []
        weights = self.job.tree()
        self._fast = self.job.bound(weights)
        self._planned = {
            shape: self.job.bound(weights, plan=Plan.from_json(text))
            for shape, (made_on, text) in self.job.plans.items()
            if made_on == self.job.machine()
        }

    def __call__(self, batch: Batch) -> dict[str, Any]:
        """The batch with what the function makes of its column `reads` as the column `writes`. Raises `KeyError` for a
        batch without that column.
        """
        if self.job.reads not in batch:
            raise KeyError(
                f"xcoexec.fleet: got a batch with the columns {', '.join(sorted(batch))}; valid has {self.job.reads!r}."
            )
        return {**batch, self.job.writes: self.predict(batch[self.job.reads])}

    def predict(self, x: Any) -> Any:
        """What the function makes of one array, in host memory."""
        out = self._planned.get(_shape(x), self._fast)(x)
        return jax.tree_util.tree_map(np.asarray, self.job.finish(out) if self.job.finish is not None else out)


def predictor(
    fn: Callable[..., Any],
    weights: Any,
    *,
    reads: str = "data",
    writes: str = "prediction",
    finish: Callable[[Any], Any] | None = None,
    cores: int = 1,
    example: Any = None,
    **options: Any,
) -> type[Predictor]:
    """A class for Ray Data: `data.map_batches(made, batch_size=64, concurrency=(1, 8), **made.resources)`; it works
    without Ray too.

    Each actor binds `fn(weights, x)`, and plans for it on `cores` cores that no other actor of its host has. `weights`:
    a tree of arrays, which lies in Ray's object store once a host where Ray has been started, or a function that
    returns one, which each actor calls (`lambda: models.load("resnet18", path, mapped=True)`: a file that all actors of
    a host map). `reads`, `writes`: the columns of a batch; `finish`: what is made of a result before it is written.
    `example`: an array like those of batches; its plan is made now, travels as JSON, and is used on machines of the
    same kind. `options`: those of `xcoexec.jit`.

    Raises `TypeError` or `ValueError` that says what is valid.
    """
    if not callable(fn):
        raise TypeError(f"xcoexec.fleet.predictor: got {brief(fn)}; valid is a callable.")
    if isinstance(cores, bool) or not isinstance(cores, int) or cores < 1:
        raise ValueError(f"xcoexec.fleet.predictor: got cores={brief(cores)}; valid is a number of cores from 1 on.")
    job = Job(fn, weights, reads, writes, finish, cores, {}, options)
    if example is not None:
        job = dataclasses.replace(job, plans=_plans(job, example))
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized() and not callable(weights):
        job = dataclasses.replace(job, weights=ray.put(jax.tree_util.tree_map(np.asarray, weights)))

    class Loaded(Predictor):
        """A predictor of one job."""

    Loaded.job, Loaded.resources = job, {"num_cpus": cores}
    Loaded.__name__ = Loaded.__qualname__ = f"Predictor of {getattr(fn, '__name__', 'a function')}"
    return Loaded


def deployment(made: type[Predictor], *, rows: int = 8, wait: float = 0.002, **options: Any) -> Application:
    """A Ray Serve application whose replicas are such predictors: `handle.remote(x)` is the result for one row, an
    array like those of an example without its first axis.

    Rows that come within `wait` seconds are computed together, up to `rows` of them; batches are filled up, so that
    they have one shape. `options`: those of `ray.serve.deployment`. Raises `ImportError` that names the extra where Ray
    is missing.
    """
    try:
        from ray import serve
    except ImportError:
        raise ImportError(
            'xcoexec.fleet: got deployment() without Ray; valid after pip install "xcoexec[ray]".'
        ) from None

    class Replica:
        """A predictor that gathers rows."""

        def __init__(self) -> None:
            self._predictor = made()

        @serve.batch(max_batch_size=rows, batch_wait_timeout_s=wait)  # type: ignore[untyped-decorator]
        async def _together(self, given: list[Any]) -> list[Any]:
            filled = np.stack([*given, *[given[-1]] * (rows - len(given))])
            out = await asyncio.to_thread(self._predictor.predict, filled)
            return [jax.tree_util.tree_map(lambda y, i=i: y[i], out) for i in range(len(given))]

        async def __call__(self, x: Any) -> Any:
            return await self._together(x)

    resources = {"ray_actor_options": made.resources, **options}
    return serve.deployment(**resources)(Replica).bind()  # type: ignore[arg-type, attr-defined, no-any-return]


def _plans(job: Job, example: Any) -> dict[Shape, tuple[str, str]]:
    """The plan for an example, as JSON, with the machine that it is made on."""
    return {_shape(example): (job.machine(), job.bound(job.tree()).plan(example).to_json())}


def _shape(x: Any) -> Shape:
    return tuple(np.shape(x)), str(getattr(x, "dtype", type(x).__name__))


def _shared(x: Any) -> Any:
    """A weight: an array that nobody may write to is taken where it lies, if JAX can."""
    fixed = isinstance(x, np.ndarray) and not x.flags.writeable
    return jax.device_put(x, may_alias=True) if fixed and jax.default_backend() == "cpu" else x


def _in_actor() -> bool:
    """Whether this process is an actor of Ray's, with nothing else to do."""
    ray = sys.modules.get("ray")
    return ray is not None and ray.is_initialized() and ray.get_runtime_context().get_actor_id() is not None


def claim(count: int) -> list[IO[str]]:
    """Moves this process to so many cores of this host that no other process has claimed, until it ends or closes the
    files that are returned. Where fewer are free, or cores cannot be chosen, it stays where it is and claims none.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    folder = pathlib.Path(tempfile.gettempdir(), f"xcoexec-cores-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    held: dict[int, IO[str]] = {}
    for core in sorted(os.sched_getaffinity(0)):
        if len(held) < count and (file := _locked(folder / str(core))) is not None:
            held[core] = file
    if len(held) < count:
        for file in held.values():
            file.close()
        return []
    os.sched_setaffinity(0, held)
    return list(held.values())


def _locked(path: pathlib.Path) -> IO[str] | None:
    """A file that this process alone holds; None where another one does. It is free when its process has ended."""
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


__all__ = ["Job", "Predictor", "claim", "deployment", "predictor"]
