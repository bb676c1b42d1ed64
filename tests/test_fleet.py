"""A fleet: cores that nobody else has, plans that travel, weights that are not copied, and actors that die."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec import fleet

WEIGHTS = {
    "a": np.random.default_rng(0).standard_normal((24, 40)).astype(np.float32),
    "b": np.random.default_rng(1).standard_normal((40, 5)).astype(np.float32),
}
ROWS = np.random.default_rng(2).standard_normal((50, 24)).astype(np.float32)


def mlp(p: Any, x: Any) -> Any:
    return jnp.tanh(x @ p["a"]) @ p["b"]


def right(x: np.ndarray) -> np.ndarray:
    a, b = (WEIGHTS[k].astype(float) for k in "ab")
    return np.tanh(x.astype(float) @ a) @ b


def test_a_predictor_without_ray() -> None:
    made = fleet.predictor(mlp, WEIGHTS, reads="x", writes="class", finish=lambda y: y.argmax(-1))
    out = made()({"x": ROWS[:7], "name": np.arange(7)})
    assert out["class"].tolist() == right(ROWS[:7]).argmax(-1).tolist() and out["name"].tolist() == list(range(7))
    with pytest.raises(KeyError, match="columns y; valid has 'x'"):
        made()({"y": ROWS})
    assert made.resources == {"num_cpus": 1} and "mlp" in repr(made)


def test_a_plan_travels_to_machines_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fleet.predictor(mlp, lambda: WEIGHTS, example=ROWS[:16], strategy="host")
    (text, plan) = made.job.plans[(16, 24), "float32"]
    assert "1 cores" in text and xcoexec.Plan.from_json(plan).placements
    there = made()
    planned = there._planned[(16, 24), "float32"]
    np.testing.assert_allclose(there.predict(ROWS[:16]), right(ROWS[:16]), atol=1e-5)
    assert planned.plan().strategy == "host" and not there._fast._entries  # it ran, and nothing was planned again
    np.testing.assert_allclose(there.predict(ROWS[:3]), right(ROWS[:3]), atol=1e-5)  # the last batch is shorter
    assert there._fast._entries
    monkeypatch.setattr(fleet.Job, "machine", lambda self: "another one")
    assert not made()._planned


def test_arrays_that_nobody_may_write_to_are_not_copied(tmp_path: pathlib.Path) -> None:
    if jax.default_backend() != "cpu":
        pytest.skip("weights of the device half are copied to its memory")
    np.arange(1 << 16, dtype=np.float32).tofile(tmp_path / "w")
    mapped = np.memmap(tmp_path / "w", np.float32, "r")
    kept = fleet.Job(mlp, {"a": mapped}, "", "", None, 1, {}, {}).tree()["a"]
    assert kept.unsafe_buffer_pointer() == mapped.ctypes.data
    own = np.zeros(3, np.float32)
    assert fleet.Job(mlp, own, "", "", None, 1, {}, {}).tree() is own


@pytest.mark.parametrize(
    "words, text",
    [
        (dict(fn=3), "got 3; valid is a callable"),
        (dict(cores=0), "got cores=0; valid is a number of cores from 1 on"),
        (dict(cores=True), "got cores=True"),
    ],
)
def test_what_is_not_valid(words: dict[str, Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        fleet.predictor(**{"fn": mlp, "weights": WEIGHTS, **words})


CLAIM = """
import os, sys
from xcoexec.fleet import claim
held = claim(1)
print(len(held), *sorted(os.sched_getaffinity(0)), flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen on this system")
def test_no_two_processes_claim_a_core(tmp_path: pathlib.Path) -> None:
    cores = sorted(os.sched_getaffinity(0))
    env = {**os.environ, "TMPDIR": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    begin = lambda: subprocess.Popen([sys.executable, "-c", CLAIM], **pipes)  # type: ignore[call-overload]
    said = lambda p: [int(word) for word in p.stdout.readline().split()]
    processes = [begin() for _ in range(len(cores[:2]))]
    try:
        found = [said(p) for p in processes]
        assert all(n == 1 and len(mine) == 1 for n, *mine in found)
        assert len({mine for _, mine in found}) == len(processes)
        processes[0].kill()  # what a process has claimed is free when it has ended, however it ended
        processes[0].wait()
        processes.append(begin())
        assert said(processes[-1])[0] == 1
    finally:
        for p in processes:
            p.kill()
            p.communicate()


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray", reason="Ray is not installed (pip install 'xcoexec[ray]')")
    env = {k: os.environ[k] for k in ("XCOEXEC_CACHE_DIR", "JAX_PLATFORMS", "XCOEXEC_ADAPT") if k in os.environ}
    root = str(pathlib.Path(__file__).resolve().parent.parent)
    env["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    found.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": env})
    yield found
    found.shutdown()


def dies_once(marker: str) -> Any:
    """A function that ends its process at the first call of all."""

    def finish(y: Any) -> Any:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return y
        os.kill(os.getpid(), 9)

    return finish


def test_an_actor_that_dies_loses_no_row(ray: Any, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("ray.data", reason="Ray Data is not installed (pip install 'xcoexec[ray]')")
    marker = tmp_path / "died"
    made = fleet.predictor(mlp, WEIGHTS, reads="x", finish=dies_once(str(marker)), example=ROWS[:16])
    assert isinstance(made.job.weights, ray.ObjectRef)
    data = ray.data.from_items([{"x": row, "at": i} for i, row in enumerate(ROWS)], override_num_blocks=5)
    rows = data.map_batches(made, batch_size=16, concurrency=(1, 2), **made.resources).take_all()
    assert marker.exists() and sorted(row["at"] for row in rows) == list(range(50))
    found = {row["at"]: row["prediction"] for row in rows}
    np.testing.assert_allclose(np.stack([found[i] for i in range(50)]), right(ROWS), atol=1e-5)


def test_rows_that_are_served_together(ray: Any) -> None:
    serve = pytest.importorskip("ray.serve", reason="Ray Serve is not installed (pip install 'xcoexec[ray]')")
    made = fleet.predictor(mlp, WEIGHTS, example=ROWS[:8])
    handle = serve.run(fleet.deployment(made, rows=8, wait=0.05))
    found = [response.result(timeout_s=120) for response in [handle.remote(row) for row in ROWS[:11]]]
    np.testing.assert_allclose(np.stack(found), right(ROWS[:11]), atol=1e-5)
    with fleet.Client(handle) as client:
        found = [asked.result(120) for asked in [client.ask(row) for row in ROWS]]
    np.testing.assert_allclose(np.stack(found), right(ROWS), atol=1e-5)
    serve.shutdown()


class Handle:
    """As a deployment's: answers after `hold` has been set, and notes how many rows came with each request."""

    def __init__(self, fails: bool = False):
        self.hold, self.came, self.sizes, self.fails = threading.Event(), threading.Semaphore(0), [], fails
        self.many = types.SimpleNamespace(remote=self._remote)

    def _remote(self, x: np.ndarray) -> Any:
        self.sizes.append(len(x))
        self.came.release()

        def result() -> Any:
            assert self.hold.wait(60)
            if self.fails:
                raise OSError("gone")
            return {"y": x * 2}

        return types.SimpleNamespace(result=result)


def test_rows_that_come_while_requests_are_under_way_share_the_next_one() -> None:
    handle = Handle()
    with fleet.Client(handle, rows=16, under_way=2) as client:
        first = []
        for row in ROWS[:2]:
            first.append(client.ask(row))
            assert handle.came.acquire(timeout=60)
        further = [client.ask(row) for row in ROWS[2:40]]
        unwanted = client.ask(ROWS[0])
        assert unwanted.cancel()
        handle.hold.set()
        found = [f.result(60)["y"] for f in [*first, *further]]
    np.testing.assert_array_equal(np.stack(found), ROWS[:40] * 2)
    assert handle.sizes[:2] == [1, 1] and sum(handle.sizes) == 40 and max(handle.sizes) == 16
    with pytest.raises(RuntimeError, match="closed"):
        client.ask(ROWS[0])


def test_rows_of_several_shapes_and_what_fails() -> None:
    handle = Handle()
    handle.hold.set()
    with fleet.Client(handle, under_way=1) as client:
        asked = [client.ask(np.arange(n, dtype=np.float32)) for n in (3, 4, 3, 4)]
    assert [f.result()["y"].tolist() for f in asked] == [[0, 2, 4], [0, 2, 4, 6]] * 2  # leaving it waits for all
    bad = Handle(fails=True)
    bad.hold.set()
    with fleet.Client(bad) as client:
        assert isinstance(client.ask(ROWS[0]).exception(60), OSError)
        assert isinstance(client.ask(ROWS[1]).exception(60), OSError)  # its threads go on
    with pytest.raises(ValueError, match="got under_way=0; valid is a number from 1 on"):
        fleet.Client(handle, under_way=0)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 24])
def test_batches_of_any_number_in_batches_of_one_shape(count: int) -> None:
    shapes = []

    def predict(x: np.ndarray) -> Any:
        shapes.append(x.shape)
        return {"y": x + 1}

    out = fleet._in_batches(predict, ROWS[:count], 8)
    np.testing.assert_array_equal(out["y"], ROWS[:count] + 1)
    assert set(shapes) == {(8, 24)} and len(shapes) == -(-count // 8)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r'valid after pip install "xcoexec\[ray\]"'):
        fleet.deployment(fleet.predictor(mlp, WEIGHTS))
