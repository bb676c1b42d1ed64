"""What runs other projects' tests: every form of `jax.jit` is replaced, and no failure or fallback is hidden."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jax
import pytest

import xcoexec
from tests.outside import replaced, training
from tests.outside.results import compare, read, table
from tests.outside.sources import ROOT
from tests.outside.training_nets import Net

pytestmark = pytest.mark.usefixtures("quick_xla")

SUITE = """
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = jnp.ones((4, 8))


@jax.jit
def plain(x):
    return jnp.tanh(x) * 2


@jax.jit(static_argnums=1)
def factory(x, n):
    return jnp.tanh(x) * n


@functools.partial(jax.jit, static_argnames="n")
def partial(x, n):
    return jnp.tanh(x) * n


@pytest.mark.parametrize("f", [plain, lambda x: factory(x, 2), lambda x: partial(x, n=2)])
def test_form(f):
    np.testing.assert_allclose(f(X), np.tanh(1) * np.ones((4, 8)) * 2, rtol=1e-5)


def test_no_kernel():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda x: (jax.debug.print("{}", x[0, 0]), x + 1)[1])(X)


def test_replaced():
    assert type(jax.jit(lambda x: x)).__module__.startswith("jaxlib")


def test_broken():
    raise ValueError("broken anyway")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pathlib.Path]:
    """The results of a small suite, with plain jax.jit and with ours; the first with two processes, as in earnest."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "small_test.py").write_text(SUITE)
    (folder / "absent_test.py").write_text("import no_such_module\n")
    return {mode: _run(folder, mode, workers) for mode, workers in (("plain", 2), ("host", 0))}


def _run(folder: pathlib.Path, mode: str, workers: int, **more: str) -> pathlib.Path:
    path = folder / f"{mode}.jsonl"
    told = {"XCOEXEC_OUTSIDE_JIT": mode, "XCOEXEC_OUTSIDE_RESULTS": str(path), **more}
    env = {**os.environ, "PYTHONPATH": str(ROOT), **told}
    pytest_ = [sys.executable, "-m", "pytest", "-q", "-p", "tests.outside.plugin", "--continue-on-collection-errors"]
    run = [*pytest_, "-c", os.devnull, "--rootdir", str(folder), "-n", str(workers), str(folder)]
    done = subprocess.run(run, env=env, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return path


def test_every_form_of_jit_is_replaced_and_counted(runs):
    ours = read(runs["host"])
    for i in range(3):
        line = ours[f"small_test.py::test_form[{'<lambda>0' if i == 1 else '<lambda>1' if i == 2 else 'plain'}]"]
        assert line["outcome"] == "passed" and line["seen"]["calls with kernels"] == 1


def test_a_fallback_is_counted_with_its_reason_and_warns_nobody(runs):
    line = read(runs["host"])["small_test.py::test_no_kernel"]
    assert line["outcome"] == "passed"
    assert line["seen"]["programs that fell back"] == 1 and not line["seen"].get("calls with kernels")
    assert any("side effects" in key for key in line["seen"] if key.startswith("why "))


def test_a_failure_with_ours_alone_is_new_and_one_with_plain_is_not(runs):
    verdict = compare("small", read(runs["host"]), read(runs["plain"]))
    assert set(verdict.new) == {"small_test.py::test_replaced"}
    assert set(verdict.plain) == {"small_test.py::test_broken", "absent_test.py"}
    assert verdict.exercised == 3 and verdict.tests == 7 and len(verdict.passed) == 4
    assert "| small | 7 | 4 | 2 | 0 | 1 | 0 | 3 |" in table([verdict])


def test_a_test_that_vanishes_is_a_new_failure(runs):
    ours = read(runs["host"])
    del ours["small_test.py::test_no_kernel"]
    assert "small_test.py::test_no_kernel" in compare("small", ours, read(runs["plain"])).new


def test_an_error_behind_the_guard_is_told_apart(runs):
    ours = read(runs["host"])
    line = ours["small_test.py::test_no_kernel"]
    why = replaced.WHY + replaced._short("building: KeyError: 3 (this is an error of xcoexec: report it)")
    verdict = compare("small", {**ours, line["test"]: {**line, "seen": {why: 2}}}, read(runs["plain"]))
    assert verdict.errors == 2 and compare("small", ours, read(runs["plain"])).errors == 0


def test_what_is_done_is_left_out(runs, tmp_path):
    done = tmp_path / "done"
    done.write_text("\n".join(t for t in read(runs["plain"]) if "broken" not in t))
    folder = runs["plain"].parent
    again = tmp_path / "again.jsonl"
    _run(folder, "plain", 0, XCOEXEC_OUTSIDE_RESULTS=str(again), XCOEXEC_OUTSIDE_DONE=str(done))
    assert set(read(again)) == {"small_test.py::test_broken", "absent_test.py"}


def test_a_line_cut_off_is_not_a_result(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"identity": 1}\n' + json.dumps({"test": "a", "outcome": "passed"}) + '\n{"test": "b", "outc')
    assert set(read(path)) == {"a"}


NET = Net("linen", "rows", ("dense", "norm", "dense"), 4, 3, "adam")


def test_steps_of_random_networks_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bias in front of a norm is rounding alone; what is a hundredth too large, or fails inside, is found."""
    found = training.check(NET)
    assert found["status"] in ("same", "nearer") and found["segments"] == 1, found

    def larger(step: Any, **_: Any) -> Any:
        grown = lambda x: x * 1.01 if jax.numpy.issubdtype(x.dtype, jax.numpy.floating) else x
        return jax.jit(lambda state, data: jax.tree.map(grown, step(state, data)))

    with monkeypatch.context() as patched:
        patched.setattr(xcoexec, "jit", larger)
        assert training.check(NET)["status"] == "wrong"
    monkeypatch.setattr("xcoexec.api.entry.weight_leaves", None)
    assert training.check(NET)["status"] == "internal"


def test_dropout_of_the_oracle_has_the_same_mask() -> None:
    key = jax.random.key(3)
    want = jax.random.bernoulli(key, 0.7, (64,))
    with jax.enable_x64(True), training._masks_as_in_float32():
        assert (jax.random.bernoulli(key, p=0.7, shape=(64,)) == want).all()
    with jax.enable_x64(True):
        assert (jax.random.bernoulli(key, 0.7, (64,)) != want).any()
