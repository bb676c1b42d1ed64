"""Two networks with deadlines on both halves: a quick one for each frame, and a slow one now and then.

python examples/deadlines.py --seconds 2
"""

from __future__ import annotations

import argparse

import xcoexec
from xcoexec import models

TASKS = {"digits": ("lenet", 0.02), "photographs": ("squeezenet", 0.2)}  # name -> (model, seconds between jobs)


def main() -> None:
    """Prints how many jobs were in time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=2.0)
    given = parser.parse_args()
    tasks, inputs = [], {}
    for name, (model, period) in TASKS.items():
        entry = models.get(model)
        inputs[name] = entry.example()
        fast = xcoexec.jit(entry.module.apply, wait=True).bind(entry.variables())
        tasks.append(xcoexec.task(name, fast, inputs[name], deadline=period, period=period))
        print(tasks[-1][1], end="\n\n")
    with xcoexec.Scheduler(tasks) as scheduler:
        scheduler.run(given.seconds, inputs)
        print(scheduler.served())


if __name__ == "__main__":
    main()
