"""The command line."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from absl.testing import flagsaver

import xcoexec
from xcoexec import cli
from xcoexec.cli import commands
from xcoexec.codegen.store.disk import write
from xcoexec.tools import cache_folder, demo, doctor, explain, info
from xcoexec.tools.arguments import parsed, run_command, wanted

from .support import quick_process

pytestmark = pytest.mark.usefixtures("quick_xla")


@pytest.fixture(autouse=True)
def flags_as_before() -> Iterator[None]:
    """What a command line has set is gone behind a test."""
    with flagsaver.flagsaver():
        yield


def _xcoexec(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "xcoexec", *args]
    return subprocess.run(command, env=quick_process(), capture_output=True, text=True, timeout=300)


def test_plan_and_run() -> None:
    done = _xcoexec("plan", "--model=lenet", "--strategy=host", "--threads=1")
    assert done.returncode == 0 and "LeNet5/Conv_0" in done.stdout and "chain" in done.stdout
    plan = json.loads(_xcoexec("plan", "--model=lenet", "--strategy=host", "--json").stdout)
    assert plan["strategy"] == "host" and all(p["half"] == "host" for p in plan["placements"])
    report = json.loads(_xcoexec("run", "--model=lenet", "--strategy=host", "--batch=2", "--json").stdout)
    assert report["ran"] == "xco" and report["seconds"] > 0


def test_profile_and_bench() -> None:
    costs = json.loads(_xcoexec("profile", "--model=fcnn", "--json").stdout)
    assert len(costs["host"]) == len(costs["device"]) and costs["copy_rate"] > 0
    record = json.loads(_xcoexec("bench", "--model=lenet", "--json").stdout)
    assert record["error"] < 1e-4 and record["speedup"] > 0 and {"jax", "threads", "seed", "cpu", "ran"} <= set(record)


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((), "got no command; valid commands are demo, run, plan"),
        (("fly",), "got fly"),
        (("run", "--model=vgg99"), "got 'vgg99'; valid are fcnn"),
        (("run", "--strategy=x"), "got strategy='x'"),
        (("run", "--batch=0"), "--batch=0: 0 is not a positive integer."),
        (("run", "extra"), "got 'extra'; valid are fcnn"),
    ],
)
def test_bad_input_is_one_sentence_on_standard_error(args: tuple[str, ...], text: str) -> None:
    done = _xcoexec(*args)
    assert done.returncode == 2 and text in " ".join(done.stderr.split()) and done.stdout == ""
    assert "Traceback" not in done.stderr and all(len(line) <= 80 for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("cache", "clean"), "valid are cache and cache clear. Did you mean clear?"),
        (("bench", "--suite=smok"), "valid are smoke, edgenn, codl, layer_switch. Did you mean smoke?"),
        (("simulate", "lenet", "--device=khadas"), "Did you mean khadas-vim3?"),
        (("simulate", "lenet"), "got simulate without --device; valid is the name of a device"),
        (("run", "--affinity=a,b"), "got --affinity=a,b; valid are core numbers"),
        (("run", "--threads=some"), "got --threads=some; valid is a whole number."),
        (("bench", "--suite=smoke", "--out=/dev/null/x"), "got --out=/dev/null/x (Not a directory); valid is a folder"),
        (("demo", "--out=/dev/null"), "got --out=/dev/null (File exists); valid is a folder"),
        (("run", "--plot=/dev/null/x.png"), "got --plot=/dev/null (File exists)"),
    ],
)
def test_what_is_not_valid_is_said_before_anything_is_computed(
    args: tuple[str, ...], text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["xcoexec", *args])
    monkeypatch.setattr(xcoexec, "jit", lambda *given, **options: pytest.fail("computed"))
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2 and text in " ".join(capsys.readouterr().err.split())


def test_an_interrupted_command_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["xcoexec", "info"])
    info_alone = [dataclasses.replace(c, run=interrupted) for c in commands() if c.name == "info"]
    with pytest.raises(SystemExit) as stopped:
        run_command(info_alone)
    assert stopped.value.code == 130 and "Traceback" not in capsys.readouterr().err


def test_help_is_also_a_command() -> None:
    done = _xcoexec("help", "cache")
    assert done.returncode == 0 and "xcoexec cache clear" in done.stdout


COMMANDS = ("demo", "run", "plan", "bench", "profile", "simulate", "papers", "explain", "info", "doctor", "cache")


def test_help_and_version_work_everywhere_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    top = _xcoexec("--help")
    assert top.returncode == 0 and "examples:" in top.stdout and all(f"    {c} " in top.stdout for c in COMMANDS)
    assert [c.name for c in commands()] == list(COMMANDS)
    for command in commands():
        with pytest.raises(SystemExit) as stopped, contextlib.redirect_stdout(io.StringIO()) as out:
            parsed(commands(), ["xcoexec", command.name, "--help"])
        assert stopped.value.code == 0 and f"xcoexec {command.name}" in out.getvalue().partition("examples:")[2]
        assert all(len(line) <= 80 for line in out.getvalue().splitlines()), command.name
        with pytest.raises(SystemExit) as stopped, contextlib.redirect_stdout(io.StringIO()) as out:
            parsed(commands(), ["xcoexec", command.name, "--version"])
        assert stopped.value.code == 0 and out.getvalue().strip() == f"xcoexec {xcoexec.__version__}"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("rn",), "Did you mean run?"),
        (("run", "--modle=lenet"), "Did you mean --model?"),
        (("plan", "--plot=x.png"), "got --plot, which it does not use"),
    ],
)
def test_near_words_are_named(args: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(commands(), ["xcoexec", *args])
    assert text in " ".join(capsys.readouterr().err.split())


def test_a_model_may_stand_behind_its_command() -> None:
    done = _xcoexec("run", "lenet", "--strategy=host")
    assert done.returncode == 0 and "Conv_0" in done.stdout and "lenet:" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert "Did you mean lenet?" in " ".join(_xcoexec("run", "lennet").stderr.split())


def test_the_demo_says_what_matters_first(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Few steps, one network, small photographs."""
    small = [x[:, ::4, ::4] for x in demo.photographs()]
    monkeypatch.setattr(demo, "PHOTO_MODELS", ("squeezenet",))
    monkeypatch.setattr(demo, "TRAIN_STEPS", 20)
    monkeypatch.setattr(demo, "photographs", lambda: small)
    demo.main(str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    said = "\n".join(lines)
    assert "360 of 360" in said and "trained on 1437 in 20 steps" in said and "Results differ by at most" in said
    first = next(i for i, line in enumerate(lines) if re.match(r"squeezenet: jax.jit .* times as fast", line))
    slowest = lines.index("squeezenet: the 5 slowest of 38 layers")
    assert first < slowest and len(lines[slowest + 2 : slowest + 7]) == 5 and lines[slowest + 7] == ""
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]) > 1


def test_plot_without_matplotlib_is_said_before_anything_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"got no module 'nothing_like_it'.*pip install 'xcoexec\[plot\]'"):
        wanted("nothing_like_it", "plot", "run --plot")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(cli, "_resident", lambda: pytest.fail("computed"))
    cli.FLAGS(["x", "--plot=x.png"])
    with pytest.raises(ValueError, match="matplotlib"):
        cli.run()


def test_info_names_versions_machine_cache_settings_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_THREADS", "1")
    found = info.gathered()
    assert list(found) == ["versions", "machine", "cache", "settings", "extras"]
    assert found["versions"]["xcoexec"] == xcoexec.__version__ and found["machine"]["threads"] == "1"
    assert found["settings"]["XCOEXEC_THREADS"] == "1" and "demo" in found["extras"]
    text = info.text(found)
    assert all(len(line) <= 80 for line in text.splitlines()) and "instructions" in text


def test_doctor_finds_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    states = {c.what: c.state for c in doctor.examined(1)}
    assert list(states) == list(doctor.CHECKS) and doctor.FAILED not in states.values()
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", "")
    monkeypatch.setitem(doctor.CHECKS, "a kernel", lambda threads: 1 / 0)
    seen = {c.what: c for c in doctor.examined(1)}
    assert seen["cache"].state == doctor.SLOW and seen["a kernel"].state == doctor.FAILED
    text = doctor.text(list(seen.values()))
    assert "ZeroDivisionError" in text and all(len(line) <= 80 for line in text.splitlines())


def test_cache_is_cleared_and_nothing_else_is(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    (tmp_path / "mine.json").write_text("{}")
    write("test", "some-record", b"x" * 2_000_000)
    assert cache_folder.facts()["plans and measurements"] == "1 files" and "2.0 MB" in cache_folder.text()
    assert "1 files removed" in cache_folder.clear()
    assert [p.name for p in tmp_path.iterdir()] == ["mine.json"]


def test_explain_says_what_stays_with_xla_and_why(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "import jax, jax.numpy as jnp\n"
        "@jax.jit\n"
        "def predict(w, x):\n    return jnp.fft.fft(jax.nn.relu(x @ w)).real\n"
        "def example():\n    return jnp.ones((7, 5)), jnp.ones((3, 7))\n"
    )
    for said in (explain.text(f"{file}:predict"), explain.text(f"{file}:predict", "f32[7,5];f32[3,7]")):
        assert "dot_general" in said and "no: " in said and "fft" in said
        assert all(len(line) <= 80 for line in said.splitlines()[1:])
    for where, shapes, wrong in (
        (f"{file}:predikt", "", "valid are predict, example"),
        (f"{file}", "", "valid is FILE.py:function"),
        (f"{tmp_path}/other.py:f", "", "valid is a file that is there"),
        (f"{file}:predict", "f33[2]", "valid are shapes such as"),
        (f"{file}:predict", "f32[2,2];f32[3,3]", "cannot be traced"),
    ):
        with pytest.raises(ValueError, match=re.escape(wrong)):
            explain.text(where, shapes)


def test_the_log_says_what_is_decided() -> None:
    code = "import jax.numpy as jnp, xcoexec; xcoexec.jit(lambda x: jnp.tanh(x @ x), wait=True)(jnp.ones((64, 64)))"
    run = lambda level: subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "XCOEXEC_LOG": level}
    )
    assert "1 layers are planned" in run("info").stderr and run("").stderr == ""
    assert "got XCOEXEC_LOG='loud'; valid are info and debug" in run("loud").stderr
