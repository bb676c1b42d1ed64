"""What the host keeps between steps: states and master weights, as flat arrays that updates write over."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(eq=False)
class Store:
    """`states`: by their positions among the optimizer's states; `masters`: parameters by theirs, where the host keeps
    them. `steps`: how many updates have been made, modulo 2**32; the device counts them too, so that a state that is
    used twice is noticed.
    """

    states: dict[int, np.ndarray]
    masters: dict[int, np.ndarray]
    steps: int = 0
    error: str = ""

    @property
    def nbytes(self) -> int:
        """Bytes that lie in host memory and not on the device."""
        return sum(x.nbytes for x in (*self.states.values(), *self.masters.values()))

    def expect(self, steps: int) -> None:
        """Raises `ValueError` for a state of another step than the last one."""
        if steps != self.steps % (1 << 32):
            raise ValueError(
                f"xcoexec.optim.offload: got an optimizer state of step {steps}, but the arrays in host memory are of "
                f"step {self.steps}; valid is the state that the last update returned (updates write over the arrays)."
            )

    def fail(self, text: str) -> None:
        """Keeps the first thing that went wrong."""
        self.error = self.error or text

    def check(self) -> None:
        """Raises `RuntimeError` when something went wrong in an update before."""
        if self.error:
            raise RuntimeError(self.error)


__all__ = ["Store"]
