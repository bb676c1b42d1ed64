"""Processes that end, or are interrupted, while they plan: how each of them ended, and what it left behind.

    python -m tests.exits [--runs 200] [--jobs 2] [--seed 0] [--only SCENARIO ...]

A run is a process in a session of its own, with a folder for temporary files and a cache of its own. It says when it
is about to plan; after a random time it is sent SIGINT (alone, or with its children, as a terminal does), or it ends by
itself. Ends with 1 if a run ended in any other way than with 0 or by its KeyboardInterrupt, gave a wrong result, took
more than `HANG` seconds, or left a file or a process.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
HANG = 30.0  # seconds between the signal (or the end of the main thread) and the end of the process
SETTINGS = {"XCOEXEC_ADAPT": "1", "JAX_PLATFORMS": "cpu"}
COMMAND = ("-m", "tests.exits", "--child")  # then the scenario
CHUNK = 10  # runs of a scenario before the next one's
LOOK, IDLE = 5.0, 0.005  # seconds between looks at what a process does; the share of a core below which it does nothing
START = 120.0  # seconds until a process is about to plan
LINGER = 60.0  # seconds until the children of a process that has ended are gone
LOST = "Exception ignored in"  # an interrupt inside a callback (JAX's of the garbage collector) goes no further
FATAL = ("terminate called", "Fatal Python error", "Segmentation fault", "exception not rethrown", "corruption")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What a process does when its time comes: `ends` by itself, or is interrupted. `within`: most seconds until then,
    with a cold cache and a warm one."""

    name: str
    ends: bool
    within: tuple[float, float]


SCENARIOS = (
    Scenario("exit-first", True, (8.0, 2.0)),  # another thread's first call is planned
    Scenario("exit-replan", True, (3.0, 1.5)),  # a bound function plans again
    Scenario("interrupt-first", False, (8.0, 2.0)),  # the first call of a function from jit
    Scenario("interrupt-bind", False, (8.0, 2.0)),  # bind, and the first call of what it returns
    Scenario("interrupt-replan", False, (3.0, 1.5)),
    Scenario("interrupt-build", False, (6.0, 1.0)),  # segments, compiled here and in processes of their own
)
# A daemon thread inside XLA when the interpreter ends: plain jax.jit ends the process too. To compare the two only.
DAEMONS = {
    "exit-daemon": Scenario("exit-daemon", True, (8.0, 2.0)),
    "exit-daemon-jax": Scenario("exit-daemon-jax", True, (0.5, 0.5)),
}
ALL = {s.name: s for s in SCENARIOS} | DAEMONS


@dataclasses.dataclass(frozen=True)
class Run:
    """One process: whether its cache is cold, whether it catches the interrupt and goes on, after how many seconds it
    is disturbed, and whether its children are too."""

    scenario: Scenario
    cold: bool
    again: bool
    after: float
    group: bool

    @property
    def text(self) -> str:
        ways = [self.scenario.name, "cold" if self.cold else "warm", f"{self.after:.3f} s"]
        if not self.scenario.ends:
            ways += ["goes on" if self.again else "unhandled", "whole group" if self.group else "alone"]
        return " ".join(ways)


def runs(scenario: Scenario, count: int, seed: int) -> Iterator[Run]:
    """`count` runs of a scenario; every fourth with a cold cache."""
    rng = random.Random(f"{scenario.name} {seed}")
    for i in range(count):
        cold = i % 4 == 0
        yield Run(scenario, cold, rng.random() < 0.5, rng.uniform(0.0, scenario.within[not cold]), rng.random() < 0.5)


# -- the process -----------------------------------------------------------------------------------------------------


def child(name: str, again: bool, after: float) -> None:
    """What a process does. It prints "begun" when it is about to plan, "right" when results after an interrupt are."""
    import faulthandler
    import threading

    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes are made to ignore it
    import jax
    import numpy as np

    import xcoexec
    from xcoexec.session import adaptive

    adaptive.SETTLE_SECONDS = 0.1
    rng = np.random.default_rng(0)
    shapes = ((3, 3, 3, 8), (1, 1, 8, 24), (24, 10))
    w = [jax.numpy.asarray(rng.standard_normal(s).astype(np.float32) * 0.2) for s in shapes]
    x = jax.numpy.asarray(rng.standard_normal((1, 16, 16, 3)).astype(np.float32))
    dims = ("NHWC", "HWIO", "NHWC")

    def fn(w: list[jax.Array], x: jax.Array) -> jax.Array:
        for k in w[:-1]:
            x = jax.nn.relu(jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims))
        return jax.nn.softmax(x.mean((1, 2)) @ w[-1])

    want = np.asarray(fn(w, x))
    made = xcoexec.jit(fn, strategy="host" if "replan" in name or "build" in name else "auto")
    bound = made.bind(w)
    calls = {
        "exit-daemon-jax": lambda: jax.jit(fn)(w, x).block_until_ready(),
        "interrupt-bind": lambda: xcoexec.jit(fn).bind(w)(x).block_until_ready(),
        "interrupt-build": lambda: bound(x).block_until_ready(),
    }
    call = calls.get(name, lambda: made(w, x).block_until_ready())

    def again_and_again() -> None:
        while True:
            bound(x).block_until_ready()

    if "replan" in name:
        bound(x)
        monitor = bound.session().monitor
        call = again_and_again
        monitor._begin(monitor._steps)
    print("begun", flush=True)
    if name.startswith("exit"):
        if "replan" not in name:
            threading.Thread(target=call, daemon=name in DAEMONS).start()
        end = time.monotonic() + after
        while time.monotonic() < end:
            bound(x).block_until_ready() if "replan" in name else time.sleep(0.001)
        print("ending", flush=True)
        sys.exit(0)
    try:
        call()
    except KeyboardInterrupt:
        if not again:
            raise
        print("caught", flush=True)
        for f in (lambda: made(w, x), lambda: bound(x)):
            assert np.allclose(f(), want, atol=1e-5), "a wrong result after an interrupt"
        if "replan" in name:
            assert monitor._busy.acquire(timeout=60), "planning again never ended"
            monitor._busy.release()
        print("right", flush=True)


# -- who looks at it -------------------------------------------------------------------------------------------------


def watch(run: Run, warm: pathlib.Path) -> str:
    """Makes a run; why it is bad, or ""."""
    with tempfile.TemporaryDirectory(prefix="exits-") as folder:
        root = pathlib.Path(folder)
        (root / "tmp").mkdir()
        if run.cold:
            (root / "cache").mkdir()
        else:
            shutil.copytree(warm, root / "cache", ignore=shutil.ignore_patterns("plan-*"))
        settings = {**os.environ, **SETTINGS, "TMPDIR": str(root / "tmp"), "XCOEXEC_CACHE_DIR": str(root / "cache")}
        command = [sys.executable, "-X", "faulthandler", *COMMAND, run.scenario.name, "--after", str(run.after)]
        command += ["--again"] * run.again
        with (root / "out").open("w") as out, (root / "err").open("w") as err:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=ROOT,
                env=settings,
                start_new_session=True,
            )
            try:
                hung = _disturb(process, run, root)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        return _judge(run, process, hung, root)


def _disturb(process: subprocess.Popen[bytes], run: Run, root: pathlib.Path) -> str:
    end = time.monotonic() + START
    word = "ending" if run.scenario.ends else "begun"
    while word not in (root / "out").read_text() and process.poll() is None:
        if time.monotonic() > end:
            return f"was not there after {START} s"
        time.sleep(0.01)
    if not run.scenario.ends:
        time.sleep(run.after)
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if run.group else os.kill)(process.pid, signal.SIGINT)
    began = time.monotonic()
    worked, looked = 0.0, began
    while process.poll() is None:
        goes_on = run.again or LOST in (root / "err").read_text()
        most = START if goes_on and not run.scenario.ends else HANG  # one that goes on plans to the end
        now = time.monotonic()
        if now - looked > LOOK:
            worked, before, looked = _worked(process.pid), worked, now
            idle = worked - before < IDLE * LOOK
            if now - began > (most if idle else 10 * most):  # on a busy machine what does work takes long
                process.send_signal(signal.SIGUSR1)
                time.sleep(1.0)
                return "hangs"
        time.sleep(0.02)
    return ""


def _judge(run: Run, process: subprocess.Popen[bytes], hung: str, root: pathlib.Path) -> str:
    out, err = (root / "out").read_text(), (root / "err").read_text()
    shown = f"\n{err[:1500]}\n...\n{err[-1500:]}" if len(err) > 3000 else f"\n{err}"
    if hung:
        return hung + shown
    code = process.returncode
    told = code == 1 and err.rstrip().endswith("KeyboardInterrupt")
    if code and (run.scenario.ends or not (told or code in (-signal.SIGINT, 130))):
        return f"ended with {code}{shown}"
    if any(word in err for word in FATAL):
        return f"says a fatal word{shown}"
    if run.again and code == 0 and "caught" in out and "right" not in out:
        return f"has no right result after the interrupt{shown}"
    left = _left(process.pid)
    if left:
        return f"left processes: {left}"
    files = [p.name for p in (root / "tmp").iterdir()] + [p.name for p in (root / "cache").glob("tmp*")]
    return f"left files: {files}{shown}" if files else ""


def _left(session: int) -> list[str]:
    """Command lines of processes in a session, those that are there for longer than `LINGER`."""
    end = time.monotonic() + LINGER
    while found := _members(session):
        if time.monotonic() > end:
            for pid, _ in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return [text for _, text in found]
        time.sleep(0.05)
    return []


def _members(session: int) -> list[tuple[int, str]]:
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((int(path.name), (path / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:80]))
    return found


def _worked(session: int) -> float:
    """Seconds of processor time that the processes of a session have had."""
    ticks = 0
    for pid, _ in _members(session):
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def warmed(folder: pathlib.Path) -> pathlib.Path:
    """A cache with what the processes compile and measure."""
    settings = {**os.environ, **SETTINGS, "XCOEXEC_CACHE_DIR": str(folder)}
    for name in ("interrupt-bind", "interrupt-build"):
        command = [sys.executable, *COMMAND, name, "--after", "0"]
        subprocess.run(command, check=True, cwd=ROOT, env=settings, stdout=subprocess.DEVNULL, timeout=300)
    return folder


def sweep(wanted: Sequence[Run], jobs: int, warm: pathlib.Path) -> list[tuple[Run, str]]:
    """All runs, some at a time, and why each is bad ("")."""
    with ThreadPoolExecutor(jobs) as pool:
        return [*zip(wanted, pool.map(lambda run: watch(run, warm), wanted), strict=True)]


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m tests.exits", description=__doc__, formatter_class=raw)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[s.name for s in SCENARIOS], choices=sorted(ALL))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--after", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.again, args.after)
    bad: Counter[str] = Counter()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        warm = warmed(pathlib.Path(folder) / "cache")
        for first in range(0, args.runs, CHUNK):
            for name in args.only:
                wanted = [*runs(ALL[name], args.runs, args.seed)][first : first + CHUNK]
                for run, why in sweep(wanted, args.jobs, warm):
                    if why:
                        bad[name] += 1
                        print(f"BAD: {run.text}: {why}", flush=True)
                took = time.monotonic() - began
                print(f"{name}: {first + len(wanted)} runs, {bad[name]} bad ({took:.0f} s)", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
