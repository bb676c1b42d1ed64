"""Power modes of a stream (NeuroPipe, section III-D and Figure 4): sets the clocks that `power_modes` chooses.

Nothing is touched unless it was allowed. Former states are written to a file before the first change, and put back at
the end, after an exception, and, where the process was killed, at the next start.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..codegen import environment
from ..errors import XcoexecError
from ..ir.watts import Watts
from .arguments import RULES, Rule, checked, optional
from .power_modes import MODES, Dial, chosen, level

WHERE = "xcoexec.streams.Power"
MODE = Rule(f"one of {', '.join(MODES)}", lambda x: isinstance(x, str), lambda x: x in MODES)
WATTS = Rule("Watts (xcoexec.ir.watts.Watts)", lambda x: isinstance(x, Watts))
STATE = "power-state.json"
CPUFREQ = pathlib.Path("/sys/devices/system/cpu/cpufreq")


class PowerError(XcoexecError, RuntimeError):
    """Clocks could not be read or set; the text says which and why."""


class Knob(Protocol):
    """Clocks of one half. `levels`: the clocks that can be asked for (Hz, ascending); `put` takes back what `state`
    gave.
    """

    @property
    def name(self) -> str: ...

    @property
    def half(self) -> str: ...

    @property
    def levels(self) -> Sequence[float]: ...

    def now(self) -> float:
        """The clock as it is (Hz)."""

    def state(self) -> object:
        """The clocks as they are, as something that JSON has."""

    def set(self, hertz: float) -> None:
        """Sets the clocks to one of `levels` (Hz)."""

    def put(self, state: Any) -> None:
        """Puts back what `state` gave."""


# -- backends -------------------------------------------------------------------------------------------


class Cpufreq:
    """The upper limits of Linux's CPU clocks (sysfs), all policies alike; its levels are those it lists, or five
    between least and most.
    """

    name, half = "cpufreq", "host"

    def __init__(self, root: pathlib.Path = CPUFREQ):
        self.policies = sorted(p for p in root.glob("policy*") if (p / "scaling_max_freq").is_file())
        if not self.policies:
            raise PowerError(f"xcoexec.pipeline: got no CPU clocks in {str(root)!r}; valid is a machine with cpufreq.")
        first = self.policies[0]
        listed = first / "scaling_available_frequencies"
        if listed.is_file():
            khz = sorted(float(f) for f in listed.read_text().split())
        else:
            least, most = (float((first / f"cpuinfo_{k}_freq").read_text()) for k in ("min", "max"))
            khz = [least + (most - least) * i / 4 for i in range(5)]
        self.levels = tuple(1e3 * f for f in khz)

    def now(self) -> float:
        """The highest of the policies' upper limits (Hz)."""
        return 1e3 * max(map(float, self.state().values()))

    def state(self) -> dict[str, str]:
        """The policies' upper limits in kHz, as their files have them."""
        return {p.name: (p / "scaling_max_freq").read_text().strip() for p in self.policies}

    def set(self, hertz: float) -> None:
        """Sets the upper limit of all policies. Raises `OSError` without the rights to do so."""
        self.put({p.name: str(round(hertz / 1e3)) for p in self.policies})

    def put(self, state: Mapping[str, str]) -> None:
        """Writes back what `state` gave. Raises `OSError` without the rights to do so."""
        for p in self.policies:
            if p.name in state:
                (p / "scaling_max_freq").write_text(state[p.name])


class Nvml:
    """A GPU's application clocks (NVML)."""

    name, half = "nvml", "device"

    def __init__(self, index: int = 0):
        try:
            import pynvml
        except ImportError as e:
            raise self._none(e) from None
        try:
            pynvml.nvmlInit()
            self._nvml, self._device = pynvml, pynvml.nvmlDeviceGetHandleByIndex(index)
            self._memory = max(pynvml.nvmlDeviceGetSupportedMemoryClocks(self._device))
            clocks = pynvml.nvmlDeviceGetSupportedGraphicsClocks(self._device, self._memory)
        except (pynvml.NVMLError, ValueError) as e:
            raise self._none(e) from None
        self.levels = tuple(1e6 * c for c in sorted(clocks))

    @staticmethod
    def _none(why: Exception) -> PowerError:
        return PowerError(
            f"xcoexec.pipeline: got no application clocks of a GPU ({why}); valid is an NVIDIA GPU and nvidia-ml-py."
        )

    def now(self) -> float:
        """The application clock of graphics (Hz)."""
        return 1e6 * self.state()["graphics"]

    def state(self) -> dict[str, int]:
        """The application clocks of memory and graphics, in MHz."""
        clock = lambda kind: self._nvml.nvmlDeviceGetApplicationsClock(self._device, kind)
        return {"memory": clock(self._nvml.NVML_CLOCK_MEM), "graphics": clock(self._nvml.NVML_CLOCK_GRAPHICS)}

    def set(self, hertz: float) -> None:
        """Sets the graphics clock, beside the highest memory clock."""
        self.put({"memory": self._memory, "graphics": round(hertz / 1e6)})

    def put(self, state: Mapping[str, int]) -> None:
        """Sets what `state` gave."""
        self._nvml.nvmlDeviceSetApplicationsClocks(self._device, state["memory"], state["graphics"])


class Nvpmodel:
    """A Jetson's power modes. `clocks`: mode number -> Hz of the GPU in it, as nvpmodel's configuration says."""

    name, half = "nvpmodel", "device"

    def __init__(
        self, clocks: Mapping[int, float], run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run
    ):
        if not clocks:
            raise PowerError(
                "xcoexec.pipeline: got no modes of nvpmodel; valid are mode numbers with the GPU's clock in each."
            )
        self._modes = {hz: mode for mode, hz in sorted(clocks.items(), key=lambda c: c[1])}
        self._run = run
        self.levels = tuple(self._modes)

    def now(self) -> float:
        """The GPU's clock (Hz) in the mode that is set; the highest one for a mode that was not given."""
        mode = self.state()
        return next((hz for hz, m in self._modes.items() if m == mode), self.levels[-1])

    def state(self) -> int:
        """The number of the mode that is set. Raises `PowerError` where nvpmodel fails or names none."""
        found = re.findall(r"^\s*(\d+)\s*$", self._call("-q").stdout, re.M)
        if not found:
            raise PowerError("xcoexec.pipeline: got an answer of nvpmodel -q without a mode.")
        return int(found[-1])

    def set(self, hertz: float) -> None:
        """Sets the mode in which the GPU has this clock, one of `levels`. Raises `PowerError` where nvpmodel fails."""
        self.put(self._modes[hertz])

    def put(self, state: int) -> None:
        """Sets what `state` gave. Raises `PowerError` where nvpmodel fails."""
        self._call("-m", str(state))

    def _call(self, *args: str) -> subprocess.CompletedProcess[str]:
        try:
            return self._run(["nvpmodel", *args], capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as e:
            raise PowerError(f"xcoexec.pipeline: got an error from nvpmodel {' '.join(args)}: {e}") from None


# -- modes ----------------------------------------------------------------------------------------------


class Power:
    """Sets clocks for a stream and puts them back; a context manager.

    Args:
      mode: "basic" (nothing is changed), "save" (clocks as low as `interval` allows), "boost" (as fast as the energy
        of an item that is done one after the other allows, NeuroPipe's section IV-D) or "auto" (Figure 4: "save" where
        the clocks as they are meet `interval`, else "boost").
      interval: for "save" and "auto": seconds between items that are enough (default: those of an item that is done
        one after the other at the clocks as they are, the paper's baseline).
      watts: what the machine draws, for "boost" and "auto"; without them boosting is bounded by the highest clocks
        alone.
      allow_power_control: without it nothing but "basic" is accepted.
      dry_run: only says what it would do (`log`).
      knobs: what can be set (default: cpufreq and NVML, where they are there).
      folder: where the file with former states lies (default: XCOEXEC_CACHE_DIR or ~/.cache/xcoexec).

    Raises `ValueError` for arguments, `PowerError` where clocks cannot be set.
    """

    def __init__(
        self,
        mode: str = "basic",
        interval: float | None = None,
        *,
        watts: Watts | None = None,
        allow_power_control: bool = False,
        dry_run: bool = False,
        knobs: Sequence[Knob] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ):
        mode = checked(WHERE, "mode", mode, MODE)
        interval = checked(WHERE, "interval", interval, optional(RULES["seconds"]))
        watts = checked(WHERE, "watts", watts, optional(WATTS))
        checked(WHERE, "allow_power_control", allow_power_control, "flag")
        checked(WHERE, "dry_run", dry_run, "flag")
        checked(WHERE, "knobs", knobs, optional(RULES["knobs"]))
        checked(WHERE, "folder", folder, optional(RULES["path"]))
        if mode != "basic" and not (allow_power_control or dry_run):
            raise ValueError(
                f"xcoexec.pipeline: got mode={mode!r} without allow_power_control=True, which changing clocks needs"
                " (or dry_run=True)."
            )
        self.mode = mode
        self.interval = interval
        self.watts = watts
        self.dry_run = dry_run
        if knobs is None:
            knobs = _there() if mode != "basic" else ()
        self.knobs = list(knobs)
        self.file = pathlib.Path(_folder() if folder is None else folder) / STATE
        self.log: list[str] = []
        self._dials: list[Dial] = []
        self._changed = False
        self._process = os.getpid()
        if mode != "basic" and not dry_run:
            self.repair()

    def apply(self, seconds: Mapping[str, float]) -> dict[str, float]:
        """Sets the clocks for the seconds that each half ("host", "device") takes an item at the clocks as they were
        before the first change; returns them (knob -> Hz). Raises `PowerError` where they cannot be set; they are then
        as before.
        """
        if not self._changed:
            self._dials = [Dial(k.name, k.half, k.levels, k.now()) for k in self.knobs]
        setting = chosen(self.mode, self._dials, seconds, self.interval, self.watts)
        wanted = dict(setting.clocks)
        for knob in self.knobs:
            if knob.name in wanted:
                note = " (dry run)" if self.dry_run else ""
                mode = f" ({setting.mode})" if self.mode == "auto" else ""
                self.log.append(f"{knob.name}: {wanted[knob.name] / 1e6:.0f} MHz{mode}{note}")
        if wanted and not self.dry_run:
            self._remember()
            try:
                for knob in self.knobs:
                    knob.set(wanted[knob.name])
            except Exception as e:  # whatever a knob raises: each is a library's or the user's own
                self.restore()
                raise PowerError(
                    f"xcoexec.pipeline: got an error when setting clocks ({e}); they are as before. Valid is with the"
                    " rights to do so."
                ) from None
        return wanted

    def _remember(self) -> None:
        if self._changed:
            return
        states = {k.name: k.state() for k in self.knobs}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps({"pid": os.getpid(), "states": states}))
        with new.open() as f:
            os.fsync(f.fileno())
        new.replace(self.file)
        self._changed = True
        self._process = os.getpid()

    def restore(self) -> None:
        """Puts back what was there before; without changes nothing happens, nor in a process that was forked from the
        one that made them.
        """
        if self._changed and os.getpid() == self._process:
            self._put(json.loads(self.file.read_text())["states"])
            self.file.unlink()
            self._changed = False

    def repair(self) -> None:
        """Puts back what a process that was killed has left. Raises `PowerError` where the process that changed the
        clocks still runs.
        """
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError, KeyError):
            left = json.loads(self.file.read_text())
            if _alive(int(left["pid"])):
                raise PowerError(
                    f"xcoexec.pipeline: got clocks that process {left['pid']} is controlling ({self.file}); valid is"
                    " one process at a time."
                )
            self._put(left["states"])
            self.file.unlink()
            self.log.append("repaired what a process that was killed had left")

    def _put(self, states: Mapping[str, object]) -> None:
        for knob in self.knobs:
            if knob.name in states:
                knob.put(states[knob.name])

    def __enter__(self) -> Power:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()


def _folder() -> str:
    """Where the file with former states lies by default."""
    return environment.cache_folder() or environment.usual_cache_folder()


def _alive(pid: int) -> bool:
    """Whether another process of that number is there."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _there() -> list[Knob]:
    """The clocks that can be set on this machine."""
    found: list[Knob] = []
    makers: tuple[Callable[[], Knob], ...] = (Cpufreq, Nvml)
    for make in makers:
        with contextlib.suppress(PowerError):
            found.append(make())
    if not found:
        raise PowerError(
            "xcoexec.pipeline: got a machine without clocks that can be set; valid is one with cpufreq or an NVIDIA"
            " GPU, or mode='basic'."
        )
    return found


__all__ = ["MODES", "Cpufreq", "Knob", "Nvml", "Nvpmodel", "Power", "PowerError", "chosen", "level"]
