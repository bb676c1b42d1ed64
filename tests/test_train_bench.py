"""What `benchmarks.train` trains, how it says what it found, and the examples: all with few steps."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import learning_curves, step_race, train, train_steps
from benchmarks.train_cases import CASES
from benchmarks.train_steps import Training, in_training
from xcoexec.models.layers import ConvNorm

from .support import quick_process

pytestmark = pytest.mark.usefixtures("quick_xla")

ROOT = pathlib.Path(__file__).parent.parent


def test_batch_norm_takes_its_batch_s_statistics() -> None:
    """As in a network that says `use_running_average=False` itself."""
    x = jax.random.normal(jax.random.key(0), (4, 6, 6, 3))

    class Written(nn.Module):
        @nn.compact
        def __call__(self, x: jax.Array) -> jax.Array:
            x = nn.Conv(5, (3, 3), padding=1, use_bias=False)(x)
            return nn.relu(nn.BatchNorm(use_running_average=False)(x))

    variables = ConvNorm(5).init(jax.random.key(1), x)
    with nn.intercept_methods(in_training):
        got = ConvNorm(5).apply(variables, x, mutable=["batch_stats"])
    want = Written().apply(variables, x, mutable=["batch_stats"])
    jax.tree.map(np.testing.assert_array_equal, got, want)
    assert np.any(got[1]["batch_stats"]["BatchNorm_0"]["mean"])


@pytest.mark.parametrize("name", CASES)
def test_a_step_changes_all_parameters_and_statistics(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By shapes alone: gradients of the large networks would take minutes, and so would their weights."""
    training = Training(name, 2)
    with monkeypatch.context() as patch:
        patch.setattr("xcoexec.models.zoo._draw", lambda *_: pytest.fail("weights are drawn"))
        state = training.shapes()
    x = jax.eval_shape(lambda: training.entry.example(2))
    y = jax.ShapeDtypeStruct(x.shape if training.entry.vocabulary else (2,), jnp.int32)
    after, loss = jax.eval_shape(training.step, state, (x, y))
    assert loss.shape == () and jax.tree.structure(after) == jax.tree.structure(state)
    assert sum(p.size for p in jax.tree.leaves(after.params)) == training.entry.parameters
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: a.shape == b.shape, after, state)))


def test_the_shapes_of_a_state_are_those_of_the_state() -> None:
    training = Training("lenet", 2)
    of = lambda tree: {
        jax.tree_util.keystr(at): (x.shape, x.dtype) for at, x in jax.tree_util.tree_leaves_with_path(tree)
    }
    assert of(jax.tree.map(jnp.asarray, training.state())) == of(training.shapes())


def test_losses_are_compared_step_by_step() -> None:
    training = Training("lenet", 4)
    data = [training.data(i) for i in range(2)]
    first = train_steps.losses_of(jax.jit(training.step), training.state(), data)
    assert len(first) == train_steps.CHECKED and first[2] != first[0]
    assert train_steps._apart({"jit": first, "ours": first}) == 0.0
    assert train_steps._apart({"jit": first, "ours": [*first[:-1], 2 * first[-1]]}) == pytest.approx(1.0)


def test_gradients_are_compared_with_float64s() -> None:
    found = train_steps.gradients(Training("lenet", 2))
    assert all(0 < e["norm"] <= e["leaf"] * 10 and e["leaf"] < 1e-5 for e in found.values())


def test_a_block_starts_from_the_first_state() -> None:
    seen: list[int] = []

    def step(state: int, data: int) -> tuple[int, jax.Array]:
        seen.append(state)
        return state + 1, jnp.zeros(())

    block = train_steps.block_of(step, lambda: 10, [0])
    assert len(block(0.0)) == 1 and seen == [10]
    assert len(block(0.02)) == len(seen) - 2 and seen[1:3] == [10, 11]


RECORD = {
    **{
        "model": "lenet",
        "batch": 32,
        "donate": False,
        "commit": "c",
        "cpu": "2-core x",
        "jax": "0",
        "loss_error": 1e-6,
    },
    **{"on_kernels": 7, "layers": 9, "ran": "xco"},
    "seconds": {"jit": [2.0, 4.0], "ours": [1.0, 1.0], "forward": [0.25, 0.25], "eager": [3.0, 3.0]},
    "torch": {"ways": ["eager"], "version": "2"},
    "jit_process": {"first_seconds": 0.5, "peak_bytes": 100},
    "cold_process": {"first_seconds": 0.6, "planned_seconds": 3.0, "peak_bytes": 150},
    "warm_process": {"first_seconds": 0.5, "planned_seconds": 0.7, "peak_bytes": 105},
}


def test_a_record_as_a_row() -> None:
    row = dict(zip(train.HEAD, train.cells(RECORD), strict=True))
    assert row["times faster"] == "3.00 (2.50-3.50)" and row["kernels/XLA layers"] == "7/2"
    assert row["3 x own forward ms"] == "750.00" and row["its way"] == "eager" and row["memory"] == "1.05x"
    assert "WRONG" in " ".join(train.cells({**RECORD, "loss_error": 0.1}))


def test_pytorch_is_no_dependency() -> None:
    alone = {k: v for k, v in RECORD.items() if not k.endswith("process")} | {"torch": {"why": "not installed"}}
    row = dict(zip(train.HEAD, train.cells(alone), strict=True))
    assert row["PyTorch ms"] == "-" and row["its way"] == "not installed" and row["memory"] == "-"


def test_the_readme_s_table_takes_the_last_records(tmp_path: pathlib.Path) -> None:
    kept = tmp_path / "train.jsonl"
    other = {**RECORD, "model": "mlp"}
    kept.write_text("".join(json.dumps(r) + "\n" for r in (other, {**RECORD, "ran": "jit"}, RECORD)))
    found = train.latest(kept)
    assert [(r["model"], r["ran"]) for r in found] == [("lenet", "xco"), ("mlp", "xco")]
    assert (
        "| lenet | 32 | 1000.00 | 3000.00 | 3000.00 (eager) | 3.00x (2.50 to 3.50) | 3.00x | 1.05x |"
        in train.readme(found)
    )


@pytest.mark.parametrize("name", CASES)
def test_pytorch_s_twin_has_as_many_parameters(name: str) -> None:
    pytest.importorskip("torch")
    from benchmarks.torch_steps import TWINS

    try:
        twin = TWINS[name][0]()
    except ImportError as e:
        pytest.skip(str(e))
    assert sum(p.numel() for p in twin.parameters()) == Training(name, 1).entry.parameters


def test_learning_curves_of_a_few_steps(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_curves, "LESSONS", learning_curves.LESSONS[:1])
    learning_curves.main([str(tmp_path), "--seeds", "2", "--steps", "25"])
    record = json.loads((tmp_path / "learning_curves.jsonl").read_text())
    plain, ours = (np.array(record[k]["last"]) for k in ("jax.jit", "xcoexec.jit"))
    np.testing.assert_allclose(ours, plain, rtol=1e-3)
    assert (tmp_path / "learning_curves.png").stat().st_size > 1000


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "examples").glob("train_*.py")))
def test_an_example_runs(name: str) -> None:
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), "--steps", "4"]
    done = subprocess.run(command, env=quick_process(), capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == ["jax.jit", "xcoexec.jit"]
    assert all("ms a step" in line and "accuracy" in line for line in lines)


@pytest.mark.filterwarnings("ignore:.*XCOEXEC_PLAN_SECONDS")
def test_a_race_gives_a_row_though_planning_is_cut(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XCOEXEC_PLAN_SECONDS", "")  # what the bench sets goes with the test
    monkeypatch.setattr(step_race, "BLOCK_SECONDS", 0.05)
    kept = tmp_path / "race.jsonl"
    step_race.main(["lenet", "--batch", "2", "--seconds", "2", "--plan", "0.001", "--out", str(kept)])
    (record,) = map(json.loads, kept.read_text().splitlines())
    assert len(record["pairs"]) >= step_race.LEAST_ROUNDS and record["ran"] == "jit"
    assert record["until"] == "settled" and "XCOEXEC_PLAN_SECONDS" in record["why"]
    assert "lenet" in capsys.readouterr().out.splitlines()[0]
