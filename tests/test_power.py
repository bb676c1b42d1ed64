"""Power modes on a made sysfs tree: clocks just high enough, put back whatever happens, and never touched unasked."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import xcoexec
from xcoexec.ir.watts import Watts
from xcoexec.streams.power import STATE, Cpufreq, Nvpmodel, Power, PowerError
from xcoexec.streams.power_modes import level

KHZ = (400_000, 800_000, 1_600_000, 3_200_000)


@pytest.fixture
def sysfs(tmp_path: pathlib.Path) -> pathlib.Path:
    for i in range(2):
        policy = tmp_path / "cpufreq" / f"policy{i}"
        policy.mkdir(parents=True)
        (policy / "scaling_available_frequencies").write_text(" ".join(map(str, reversed(KHZ))) + "\n")
        (policy / "scaling_max_freq").write_text("3200000\n")
    return tmp_path / "cpufreq"


def limits(sysfs: pathlib.Path) -> set[str]:
    return {(p / "scaling_max_freq").read_text().strip() for p in sysfs.glob("policy*")}


class Fake:
    """A GPU's clocks; `refuse`: what setting them raises."""

    name, half, levels = "fake", "device", (5e8, 1e9, 2e9)

    def __init__(self, refuse: Exception | None = None):
        self.clock, self.refuse = 2e9, refuse

    def now(self) -> float:
        return self.clock

    def state(self) -> Any:
        return self.clock

    def set(self, hertz: float) -> None:
        if self.refuse:
            raise self.refuse
        self.clock = hertz

    def put(self, state: Any) -> None:
        self.clock = state


@given(
    st.lists(st.floats(1e8, 5e9), min_size=1, max_size=8, unique=True).map(sorted),
    st.floats(1e-3, 1.0),
    st.floats(1e-3, 4.0),
)
def test_the_lowest_clock_that_is_enough(levels: list[float], seconds: float, target: float) -> None:
    got = level(levels, seconds, target)
    enough = [f for f in levels if seconds * levels[-1] / f <= target]
    assert got == (min(enough) if enough else levels[-1])


def test_clocks_as_they_are(sysfs: pathlib.Path) -> None:
    knob = Cpufreq(sysfs)
    assert knob.now() == 3.2e9
    knob.set(8e8)
    assert knob.now() == 8e8


def test_auto_saves_where_the_interval_is_met_and_boosts_where_it_is_not(tmp_path: pathlib.Path) -> None:
    """Figure 4 on clocks of which the one as it is lies in the middle; the par-energy point bounds the boost."""
    fake = Fake()
    fake.clock = 1e9
    made = lambda interval: Power(
        "auto",
        interval,
        watts=Watts(2.0, {"host": 1.0, "device": 1.0}, 2.0),
        allow_power_control=True,
        knobs=[fake],
        folder=tmp_path,
    )
    with made(0.025) as power:  # one item every 10 ms at 1 GHz is enough, and so are 20 ms at half of that
        assert power.apply({"host": 0.01, "device": 0.01}) == {"fake": 5e8} and power.log == ["fake: 500 MHz (save)"]
    assert fake.clock == 1e9
    with made(0.009) as power:  # 42 mJ are had one after the other; at 2 GHz it is 10 + 4 + 20
        assert power.apply({"host": 0.004, "device": 0.01}) == {"fake": 2e9} and fake.clock == 2e9
    assert fake.clock == 1e9


def test_clocks_are_set_and_put_back(sysfs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    fake = Fake()
    with Power("save", 0.04, allow_power_control=True, knobs=[Cpufreq(sysfs), fake], folder=tmp_path) as power:
        power.apply({"host": 0.01, "device": 0.01})
        assert limits(sysfs) == {"800000"} and fake.clock == 5e8 and (tmp_path / STATE).is_file()
        power.apply({"host": 0.02, "device": 0.01})
        assert limits(sysfs) == {"1600000"}
    assert limits(sysfs) == {"3200000"} and fake.clock == 2e9 and not (tmp_path / STATE).exists()


def test_an_exception_puts_everything_back(sysfs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with (
        pytest.raises(KeyError),
        Power("save", 0.04, allow_power_control=True, knobs=[Cpufreq(sysfs)], folder=tmp_path) as power,
    ):
        power.apply({"host": 0.01})
        raise KeyError
    assert limits(sysfs) == {"3200000"}
    refusing = Power(
        "save",
        0.04,
        allow_power_control=True,
        knobs=[Cpufreq(sysfs), Fake(PermissionError("no rights"))],
        folder=tmp_path,
    )
    with pytest.raises(PowerError, match=r"no rights.*they are as before"):
        refusing.apply({"host": 0.01, "device": 0.01})
    assert limits(sysfs) == {"3200000"} and not (tmp_path / STATE).exists()


KILLED = """
import pathlib, sys, time
from xcoexec.streams.power import Cpufreq, Power
power = Power("save", 0.04, allow_power_control=True, knobs=[Cpufreq(pathlib.Path(sys.argv[1]))], folder=sys.argv[2])
power.apply({"host": 0.01})
print("set", flush=True)
time.sleep(60)
"""


def test_after_a_kill_the_next_start_repairs(sysfs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(sysfs), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "set\n" and limits(sysfs) == {"800000"}
    with pytest.raises(PowerError, match=f"process {process.pid} is controlling"):
        Power("save", 0.04, allow_power_control=True, knobs=[Cpufreq(sysfs)], folder=tmp_path)
    process.kill()
    process.wait()
    power = Power("save", 0.04, allow_power_control=True, knobs=[Cpufreq(sysfs)], folder=tmp_path)
    assert limits(sysfs) == {"3200000"} and not (tmp_path / STATE).exists() and "repaired" in power.log[0]


def test_nothing_is_touched_unasked(sysfs: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="without allow_power_control=True"):
        Power("save", knobs=[Cpufreq(sysfs)], folder=tmp_path)
    dry = Power("save", 0.04, dry_run=True, knobs=[Cpufreq(sysfs)], folder=tmp_path)
    assert dry.apply({"host": 0.01}) == {"cpufreq": 8e8} and dry.log == ["cpufreq: 800 MHz (dry run)"]
    basic = Power("basic", allow_power_control=True, knobs=[Cpufreq(sysfs)], folder=tmp_path)
    assert basic.apply({"host": 0.01}) == {}
    assert limits(sysfs) == {"3200000"} and not (tmp_path / STATE).exists()


def test_jetsons_modes(tmp_path: pathlib.Path) -> None:
    mode = [2]

    def run(command: list[str], **_: Any) -> Any:
        if command[1] == "-m":
            mode[0] = int(command[2])
        return subprocess.CompletedProcess(command, 0, stdout=f"NV Power Mode: MODE_{mode[0]}\n{mode[0]}\n")

    with Power(
        "save", 0.1, allow_power_control=True, knobs=[Nvpmodel({0: 1.3e9, 1: 5.2e8, 2: 9e8}, run)], folder=tmp_path
    ) as power:
        power.apply({"device": 0.06})
        assert mode == [2]
        power.apply({"device": 0.01})
        assert mode == [1]
    assert mode == [2]
    with pytest.raises(PowerError, match="nvpmodel -q"):
        Nvpmodel({0: 1e9}).state()


def test_a_stream_in_save_mode(sysfs: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few items the clocks follow what the stages took, whatever that was; at the end they are as before."""
    knob = Cpufreq(sysfs)
    power = Power("save", 0.1, allow_power_control=True, knobs=[knob], folder=tmp_path)
    apply, took = power.apply, []
    monkeypatch.setattr(power, "apply", lambda seconds: (took.append(seconds), apply(seconds))[1])
    slow = lambda x: (time.sleep(0.02), x)[1]
    seen = []
    with xcoexec.pipeline(lambda x: x, preprocess=slow, power=power)(range(12)) as stream:
        for _ in stream:
            seen.append(limits(sysfs))
    (seconds,) = took
    assert seconds["host"] >= 0.02
    wanted = level(knob.levels, seconds["host"], max(0.1, *seconds.values()))
    assert seen[0] == {"3200000"} and seen[-1] == {f"{wanted / 1e3:.0f}"} and limits(sysfs) == {"3200000"}
    assert json.dumps(power.log) and len(power.log) == 1


def test_bad_modes_are_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="got mode='turbo'; valid is one of basic, save, boost"):
        Power("turbo")
    with pytest.raises(ValueError, match="valid is a positive number of seconds"):
        Power("save", -1.0, allow_power_control=True)
    with pytest.raises(PowerError, match="got no CPU clocks"):
        Cpufreq(tmp_path)
    with pytest.raises(TypeError, match="got power='save'; valid is a Power"):
        xcoexec.pipeline(lambda x: x, power="save")
