"""Stamps of steps are true, whichever thread does the work."""

from __future__ import annotations

import ctypes
import time

import numpy as np

from xcoexec.codegen.native.build import native_address
from xcoexec.codegen.native.layout import COUNTER_BYTES, JOB_WORDS, STEP_WORDS, Job, Segment, Step
from xcoexec.codegen.runtime import host
from xcoexec.codegen.target import target

DRIVER = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 5)
RUN_STEPS = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 3)
SECONDS = (0.02, 0.005, 0.04)
ITEMS = 2


def test_steps_of_a_partner_are_stamped_when_they_are_over() -> None:
    """The calling thread stands still while its partner does all the work: what it finds over at once took its time."""

    def work(params: int, buffers: int, first: int, last: int, who: int) -> int:
        time.sleep(SECONDS[params] / ITEMS)
        done.append((params, who))
        return 0

    done: list[tuple[int, int]] = []
    driver = DRIVER(work)
    address = ctypes.cast(driver, ctypes.c_void_p).value
    team = host.team(())
    n = len(SECONDS)
    steps, segment = np.zeros(n * STEP_WORDS, np.int64), np.zeros(len(Segment) + 64, np.int64)
    for i in range(n):
        steps[i * STEP_WORDS + np.array([Step.DRIVER, Step.PARAMS, Step.ITEMS]) // 8] = address, i, ITEMS
    times, counters = np.zeros(n + 1, np.int64), np.zeros(n * COUNTER_BYTES // 8, np.int64)
    places = {Segment.STEPS: steps.ctypes.data, Segment.STEP_COUNT: n, Segment.TEAM: team.address, Segment.THREADS: 2}
    for word, value in places.items():
        segment[word // 8] = value
    job = np.zeros(JOB_WORDS, np.int64)
    records = {Job.SEGMENT: segment, Job.BUFFERS: times, Job.TIMES: times, Job.COUNTERS: counters}
    for word, record in records.items():
        job[word // 8] = record.ctypes.data
    times[0] = time.monotonic_ns()
    for who in (1, 0):
        RUN_STEPS(native_address("team", "run_steps", target()))(job.ctypes.data, team.libc.ctypes.data, who)
    assert done == [(i, 1) for i in range(n) for _ in range(ITEMS)]
    assert (np.diff(times) * 1e-9 >= 0.99 * np.array(SECONDS)).all()
    assert times[-1] <= time.monotonic_ns()
