"""The command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def _xcoexec(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "xcoexec", *args], capture_output=True, text=True, timeout=300)


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
        ((), "got no command; valid commands are demo, plan"),
        (("fly",), "got fly"),
        (("run", "--model=vgg99"), "got 'vgg99'; valid are fcnn"),
        (("run", "--strategy=x"), "got strategy='x'"),
        (("run", "--batch=0"), "batch"),
        (("run", "extra"), "got run extra"),
    ],
)
def test_bad_input_is_one_sentence(args: tuple[str, ...], text: str) -> None:
    done = _xcoexec(*args)
    assert done.returncode != 0 and text in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
