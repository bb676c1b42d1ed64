"""Processes that end or are interrupted while they plan (a few runs of `tests.exits`), and what an interrupt leaves."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from xcoexec.codegen.native import build, children
from xcoexec.codegen.runtime import host
from xcoexec.codegen.store import disk
from xcoexec.codegen.target import target
from xcoexec.ir.plan import Plan
from xcoexec.lowering.executable import Executable
from xcoexec.session import adaptive
from xcoexec.session.adaptive import Monitor

from . import exits
from .support import until

pytestmark = pytest.mark.usefixtures("quick_xla")

COLD = ("exit-first", "interrupt-bind", "interrupt-build")  # scenarios whose run has a cold cache
ROOT = pathlib.Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def warm(once: Any) -> pathlib.Path:
    """What the processes of `exits` compile and measure; native functions that the tests have already are not compiled
    again.
    """

    def fill(folder: pathlib.Path) -> None:
        for name in (build._object_name(spec, target()) for spec in build.NATIVE):
            made = disk.read("object", name)
            if made is not None:
                disk.write("object", name, made, folder)
        exits.warmed(folder)

    return once("warm", fill)


@pytest.mark.parametrize("scenario", exits.SCENARIOS, ids=lambda s: s.name)
def test_processes_end_cleanly(scenario: exits.Scenario, warm: pathlib.Path) -> None:
    """No crash, no hang, nothing left; after an interrupt that was caught the same function gives right results."""
    wanted = [run for run in exits.runs(scenario, 2, 0) if run.cold == (scenario.name in COLD)]
    assert len(wanted) == 1
    bad = [f"{run.text}: {why}" for run, why in exits.sweep(wanted, 1, warm) if why]
    assert not bad, "\n".join(bad)


def test_a_bad_end_is_noticed(warm: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tool itself: processes that abort, give wrong results, hang, or leave a file or a process are told apart."""
    told = {
        "import os; print('begun'); os.abort()": "ended with -6",
        "import time; print('ending', flush=True); time.sleep(60)": "hangs",
        "import os; open(os.environ['TMPDIR'] + '/x', 'w')": "left files",
        "import subprocess; subprocess.Popen(['sleep', '60'], stdout=-3, stderr=-3)": "left processes",
        "print('begun'); raise AssertionError": "ended with 1",
        "print('begun')": "",
    }
    monkeypatch.setattr(exits, "HANG", 2.0)
    monkeypatch.setattr(exits, "LINGER", 1.0)
    monkeypatch.setattr(exits, "COMMAND", ("-c",))
    for text, why in told.items():
        run = exits.Run(exits.Scenario(text, True, (0.0, 0.0)), False, False, 0.0, False)
        got = exits.watch(run, warm)
        assert got.startswith(why) and bool(got) == bool(why), (text, got)


# -- what an interrupt may leave behind ------------------------------------------------------------------------------


def _exe(name: str) -> Executable:
    return Executable(Plan(name, ()), lambda leaves: [name], None)


class _Interrupted(threading.Thread):
    """A thread whose maker is interrupted as soon as it runs."""

    def start(self) -> None:
        super().start()
        raise KeyboardInterrupt


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with monkeypatch.context() as m:
        m.setattr(threading, "Thread", _Interrupted)
        yield m


def test_workers_whose_maker_was_interrupted_have_numbers_of_their_own(interrupted: Any) -> None:
    """Two workers of one number would share their part of a call's memory."""
    team = host.Team()
    with pytest.raises(KeyboardInterrupt):
        team.want(3)
    interrupted.undo()
    until(lambda: team._threads)
    team.want(4)
    assert len(team._threads) == 3 == len({t.name for t in team._threads})
    mine = [t for t in threading.enumerate() if t in team._threads]
    assert len(mine) == 3 and not team._lock.locked()
    team.stop()


def test_planning_again_whose_caller_was_interrupted_ends(interrupted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread goes on by itself, and the next change is noticed again."""
    monkeypatch.setattr(adaptive, "PAUSE_SECONDS", 0.0)
    made = iter("bcd")
    m = Monitor(_exe("a"), lambda: _exe(next(made)))
    m.look(1e-3)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(adaptive.PATIENCE):
            m.look(2e-3)
    interrupted.undo()
    until(lambda: m.current.plan.strategy == "b" and not m._busy.locked())
    m.look(1e-3)
    for _ in range(adaptive.PATIENCE):
        m.look(2e-3)
    until(lambda: m.current.plan.strategy == "c")


def test_an_interrupt_before_the_thread_of_planning_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is locked for good when the interrupt comes before there is a thread."""
    monkeypatch.setattr(adaptive, "PAUSE_SECONDS", 0.0)
    m = Monitor(_exe("a"), lambda: _exe("b"))

    class Never(list[str]):
        def append(self, text: str) -> None:
            raise KeyboardInterrupt

    m.history = Never()
    m.look(1e-3)
    with pytest.raises(KeyboardInterrupt):
        for _ in range(adaptive.PATIENCE):
            m.look(2e-3)
    m.history = []
    for _ in range(adaptive.PATIENCE):
        m.look(2e-3)
    until(lambda: m.current.plan.strategy == "b")


def test_a_folder_takes_its_processes_with_it() -> None:
    with pytest.raises(KeyboardInterrupt), children.Folder() as name:
        child = children.start(name, [sys.executable, "-c", "import time; time.sleep(60)"])
        raise KeyboardInterrupt
    assert child.returncode is not None and not os.path.exists(name)
    with pytest.raises(OSError, match="is gone"):
        children.start(name, [sys.executable, "-c", ""])


_LEAVES = """
import os, sys, threading, time
from xcoexec.codegen.native import children
folder = children.Folder()
child = children.start(folder.name, [sys.executable, "-c", "import time; time.sleep(60)"])
print(folder.name, child.pid, flush=True)
if sys.argv[1] == "fork" and os.fork() == 0:
    sys.exit(0)  # a forked child ends as a whole interpreter: nothing of this is its own
if sys.argv[1] == "fork":
    ended = os.waitstatus_to_exitcode(os.wait()[1])
    print(ended, os.path.exists(folder.name), child.poll() is None, flush=True)
"""


def test_the_library_imports_without_a_backend() -> None:
    """XLA's threads are not there before the first call: a process may fork, or choose its devices, after it."""
    text = (
        "import xcoexec, xcoexec.codegen.runtime.host; from jax._src import xla_bridge; assert not xla_bridge._backends"
    )
    subprocess.run([sys.executable, "-c", text], cwd=ROOT, check=True, timeout=120)


@pytest.mark.parametrize("how", ["exit", "fork"])
def test_an_interpreter_that_ends_takes_folders_and_processes_with_it(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LEAVES, how], cwd=ROOT, capture_output=True, text=True, timeout=60)
    folder, pid, *rest = done.stdout.split()
    assert done.returncode == 0 and rest == (["0", "True", "True"] if how == "fork" else [])
    assert not os.path.exists(folder)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
