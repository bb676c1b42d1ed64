"""Processes that run a block of calls when they are asked to: contestants take turns, though they share no process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any, TextIO, cast

Block = Callable[[float], list[float]]  # seconds of a block -> seconds of each call


class BlockProcess:
    """`python -m module args` that ends in `serve`. Raises `RuntimeError` where it ends before it says hello."""

    def __init__(self, module: str, *args: str, env: Mapping[str, str] | None = None):
        command = [sys.executable, "-m", module, *args]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.hello: dict[str, Any] = self._hears()

    def block(self, name: str, seconds: float) -> list[float]:
        """Seconds of each call of a block of about so many seconds. Raises `RuntimeError` where the process has
        ended.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {seconds}\n")
        self._process.stdin.flush()
        return cast(list[float], self._hears())

    def close(self) -> None:
        """Lets the process end, and waits for it."""
        self._process.communicate()

    def _hears(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"benchmarks: {self._process.args!r} ended with status {self._process.wait()}.")
        return json.loads(line)


def own_output() -> TextIO:
    """What standard output was; what others print goes to standard error from here on."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return out


def serve(hello: Mapping[str, Any], blocks: Mapping[str, Block], out: TextIO) -> None:
    """Writes `hello`, then answers lines "name seconds" with the times of such a block, until no more come."""
    print(json.dumps(hello), file=out, flush=True)
    for line in sys.stdin:
        name, seconds = line.rsplit(" ", 1)
        print(json.dumps(blocks[name](float(seconds))), file=out, flush=True)


def peak_bytes() -> int:
    """The most bytes that this process has had in memory (not `getrusage`'s, which begins with the size of the process
    that forked it).
    """
    with open("/proc/self/status") as f:
        return next(1024 * int(line.split()[1]) for line in f if line.startswith("VmHWM"))
