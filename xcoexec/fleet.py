"""A fleet: functions with resident weights in Ray's actors (extra "ray"), each on cores of its own.

Imports: api, codegen.target, compat, config, devices, errors, ir, jax.
"""

from __future__ import annotations

import asyncio
import dataclasses
import fcntl
import os
import pathlib
import queue
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
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

QUIET = {"enable_access_log": False}  # of Ray Serve: a line a request is a part of what a request costs
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
    array like those of an example without its first axis, and `handle.many.remote(x)` that for a batch of any number.

    Rows that come within `wait` seconds are computed together, `rows` of them at once; batches are filled up, so that
    they have one shape. A request costs Ray milliseconds: `Client` sends many rows with one. `options`: those of
    `ray.serve.deployment`. Raises `ImportError` that names the extra where Ray is missing.
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
            self._turn = asyncio.Lock()

        @serve.batch(max_batch_size=rows, batch_wait_timeout_s=wait)  # type: ignore[untyped-decorator]
        async def _together(self, given: list[Any]) -> list[Any]:
            out = await self.many(np.stack(given))
            return [jax.tree_util.tree_map(lambda y, i=i: y[i], out) for i in range(len(given))]

        async def __call__(self, x: Any) -> Any:
            return await self._together(x)

        async def many(self, x: Any) -> Any:
            async with self._turn:
                return await asyncio.to_thread(_in_batches, self._predictor.predict, np.asarray(x), rows)

    resources = {"ray_actor_options": made.resources, "logging_config": QUIET, **options}
    return serve.deployment(**resources)(Replica).bind()  # type: ignore[arg-type, attr-defined, no-any-return]


def _in_batches(predict: Callable[[Any], Any], x: np.ndarray, rows: int) -> Any:
    """The results for a batch of any number, computed `rows` at once; the last ones are filled up to as many."""
    parts = []
    for i in range(0, len(x), rows):
        part = x[i : i + rows]
        n = len(part)
        out = predict(np.concatenate([part, np.repeat(part[-1:], rows - n, 0)]) if n < rows else part)
        parts.append(jax.tree_util.tree_map(lambda y, n=n: y[:n], out))
    return parts[0] if len(parts) == 1 else jax.tree_util.tree_map(lambda *ys: np.concatenate(ys), *parts)


class Client:
    """One process's rows for a `deployment`. While `under_way` requests are on their way, rows that come are gathered,
    and the next request takes up to `rows` of them: the more come, the more of them share what a request costs. It is a
    context manager; who leaves it has all results.
    """

    def __init__(self, handle: Any, *, rows: int = 64, under_way: int = 2):
        """`handle`: what `ray.serve.run` returns. Raises `ValueError` that says what is valid."""
        for name, value in (("rows", rows), ("under_way", under_way)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"xcoexec.fleet.Client: got {name}={brief(value)}; valid is a number from 1 on.")
        self._handle, self._rows = handle, rows
        self._given: queue.SimpleQueue[tuple[Any, Future[Any]] | None] = queue.SimpleQueue()
        self._closing, self._closed = threading.Lock(), False
        self._threads = [
            threading.Thread(target=self._work, name=f"xcoexec-client-{i}", daemon=True) for i in range(under_way)
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, x: Any) -> Future[Any]:
        """The result for one row, when it has come. Raises `RuntimeError` in a client that is closed."""
        future: Future[Any] = Future()
        with self._closing:
            if self._closed:
                raise RuntimeError("xcoexec.fleet.Client: got a row for a client that is closed; valid is an open one.")
            self._given.put((x, future))
        return future

    def close(self) -> None:
        """Waits for all results, and ends."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._given.put(None)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self) -> None:
        while (first := self._given.get()) is not None:
            alike: dict[Shape, list[tuple[Any, Future[Any]]]] = {}
            self._add(alike, first)
            for _ in range(self._rows - 1):
                try:
                    further = self._given.get_nowait()
                except queue.Empty:
                    break
                if further is None:
                    self._given.put(None)
                    break
                self._add(alike, further)
            for group in alike.values():
                self._send(group)
        self._given.put(None)  # for the next thread

    @staticmethod
    def _add(alike: dict[Shape, list[tuple[Any, Future[Any]]]], given: tuple[Any, Future[Any]]) -> None:
        """A row to those of its shape, if it is still wanted."""
        if given[1].set_running_or_notify_cancel():
            alike.setdefault(_shape(given[0]), []).append(given)

    def _send(self, group: list[tuple[Any, Future[Any]]]) -> None:
        """One request for these rows."""
        try:
            out = self._handle.many.remote(np.stack([x for x, _ in group])).result()
        except BaseException as e:  # whatever it is belongs to those who wait
            for _, future in group:
                future.set_exception(e)
            return
        for i, (_, future) in enumerate(group):
            future.set_result(jax.tree_util.tree_map(lambda y, i=i: y[i], out))


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


__all__ = ["Client", "Job", "Predictor", "claim", "deployment", "predictor"]
