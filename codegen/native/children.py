"""Work that ends with the interpreter: processes that write into a temporary folder, and planning in other threads."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import select
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence

POLL_SECONDS = 0.2
ANSWER_SECONDS = 300  # that a worker may take for what it is given
NICE = 5  # of compilers that give way: a third of what a caller's thread gets

_lock = threading.Lock()
_open: dict[str, list[subprocess.Popen[bytes]]] = {}  # folders in use, and the processes that write into them
_state = {"closed": False}
_way = threading.local()  # `workers`: this thread gives way, and these work for it


def closing() -> bool:
    """Whether the interpreter is on its way out: it waits for its threads, and none can be started."""
    return not threading.main_thread().is_alive()


def go_on() -> None:
    """Raises `InterruptedError` when the interpreter is ending: work that takes long asks now and then."""
    if closing():
        raise InterruptedError("the interpreter is ending")


class Folder:
    """A temporary folder; at the end of its block the processes that `start` made for it are ended, then it is removed.

    Raises `OSError` when there is no room for one, or when the interpreter is ending.
    """

    def __init__(self) -> None:
        with _lock:
            if _state["closed"]:
                raise OSError("the interpreter is ending")
            self.name = os.path.join(tempfile.gettempdir(), f"xcoexec-{secrets.token_hex(8)}")
            _open[self.name] = []  # known before it is there: an interrupt between the two must not leave it
            os.mkdir(self.name, 0o700)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        with _lock:
            _remove(self.name)


def start(folder: str, command: Sequence[str], answers: bool = False, nice: int = 0) -> subprocess.Popen[bytes]:
    """A process that writes into a `Folder`; it reads from a pipe, what it prints is dropped (unless it `answers`), and
    `errors` has what it says on standard error. `nice`: by how much it gives way to others, where there are priorities.

    Raises `OSError` where none can be made, or the folder is gone.
    """
    with _lock:
        if folder not in _open:
            raise OSError(f"the folder {folder} is gone")
        with open(_said(folder, len(_open[folder])), "wb") as said:
            out = subprocess.PIPE if answers else subprocess.DEVNULL
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=said)
        _open[folder].append(child)
        if nice:
            with contextlib.suppress(AttributeError, OSError):  # not everywhere is there such a priority
                os.setpriority(os.PRIO_PROCESS, child.pid, nice)
        return child


class Workers:
    """Processes that do what they are sent until they are closed: started when there is work for them, with `command`
    of the folder into which they write. They answer each message with a byte. `nice`: that of processes to come;
    `failed`: one has failed, so that none is asked again.
    """

    nice, failed = NICE, False

    def __init__(self) -> None:
        self._folder: Folder | None = None
        self._all: list[subprocess.Popen[bytes]] = []

    def __len__(self) -> int:
        return len(self._all)

    def do(self, command: Callable[[str], Sequence[str]], messages: Sequence[bytes]) -> str:
        """Has each message done by a process of its own; the folder, when all are done.

        Raises `OSError` that says why where a process cannot be made, fails or takes too long (then none is left), and
        `InterruptedError` when the interpreter is ending.
        """
        try:
            self._folder = self._folder or Folder()
            name = self._folder.name
            while len(self._all) < len(messages):
                self._all.append(start(name, command(name), True, self.nice))
            for child, message in zip(self._all, messages, strict=False):
                _send(child, message)
            for child, _ in zip(self._all, messages, strict=False):
                _answered(child, name)
            return name
        except BaseException:
            self.failed = True
            self.close()
            raise

    def close(self) -> None:
        """Ends the processes, and removes what they have written."""
        folder, self._folder = self._folder, None
        gone, self._all = self._all, []
        if folder is not None:
            folder.__exit__()
        for child in gone:
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):  # what was not read any more
                    assert pipe is not None
                    pipe.close()


def _send(child: subprocess.Popen[bytes], message: bytes) -> None:
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # its answer is missing, too
        child.stdin.write(message)
        child.stdin.flush()


def _answered(child: subprocess.Popen[bytes], folder: str) -> None:
    """Waits until a worker has done what it was sent. Raises `OSError`, `InterruptedError`."""
    assert child.stdout is not None
    end = time.monotonic() + ANSWER_SECONDS
    while not select.select([child.stdout], [], [], POLL_SECONDS)[0]:
        go_on()
        if time.monotonic() > end:
            raise OSError(f"a process did not answer within {ANSWER_SECONDS} s")
    if not os.read(child.stdout.fileno(), 1):
        wait(child, ANSWER_SECONDS)  # it closes its pipes a little before it ends
        raise OSError(f"a process failed (exit status {child.returncode}):\n{errors(folder, child)}")


@contextlib.contextmanager
def giving_way() -> Iterator[None]:
    """Processes that this thread starts inside run when others leave the cores to them; `workers` do its work."""
    _way.workers = Workers()
    try:
        yield
    finally:
        _way.workers.close()
        _way.workers = None


@contextlib.contextmanager
def hurrying(hurries: bool) -> Iterator[None]:
    """This thread's workers do not give way inside, if it `hurries`: what they make ends a loss that is larger."""
    found = workers() if hurries else None
    if found is None:
        yield
        return
    found.close()  # a process that gives way cannot be told to take more
    found.nice = 0
    try:
        yield
    finally:
        found.close()
        found.nice = NICE


def workers() -> Workers | None:
    """Those that work for this thread; None where it does not give way."""
    found: Workers | None = getattr(_way, "workers", None)
    return found


def _said(folder: str, number: int) -> str:
    """The file that takes the standard error of a folder's process of that number."""
    return os.path.join(folder, f"errors-{number}.txt")


def errors(folder: str, child: subprocess.Popen[bytes]) -> str:
    """What a process that `start` made for a folder has said on standard error.

    Raises `KeyError` when the folder is gone.
    """
    with open(_said(folder, _open[folder].index(child)), errors="replace") as said:
        return said.read()


def wait(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Waits for a process for so many seconds.

    Raises `subprocess.TimeoutExpired` when it has not ended by then, `InterruptedError` when the interpreter is ending.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            child.wait(min(POLL_SECONDS, max(end - time.monotonic(), 0.0)))
            return
        except subprocess.TimeoutExpired:
            go_on()
            if time.monotonic() > end:
                raise


def _remove(folder: str) -> None:
    for child in _open.pop(folder, []):
        if child.poll() is None:
            child.kill()
            child.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _forget() -> None:
    """In a forked child: folders and processes are the parent's."""
    global _lock
    _lock = threading.Lock()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


@atexit.register
def _close() -> None:
    """A thread that still compiles (a daemon) finds its folders gone, and makes no new ones."""
    with _lock:
        _state["closed"] = True
        for folder in tuple(_open):
            _remove(folder)
