"""The link to a device half, as a session in use asks it; where both halves are on the CPU it has nothing to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..codegen.runtime.relay import Relay


class Link(Protocol):
    """What connects a session to the device half."""

    @property
    def errors(self) -> int:
        """Faults of the host calls of all programs so far."""
        ...

    @property
    def workspace(self) -> int:
        """Bytes of the device that XLA's libraries need."""
        ...

    def settle(self) -> None:
        """Waits until the device has done what it was given, so that nothing writes to arrays that XLA takes back."""
        ...

    def describe(self, code: int) -> str:
        """The driver's words for an error code."""
        ...

    def limit(self, asked: int | float) -> int | None:
        """Bytes that a plan may keep on the device, of `asked` bytes (an int) or of a share (a float, 0..1) of its
        memory; None where nothing bounds them. Raises `ValueError` where XLA's libraries have no room left.
        """
        ...


class SameMemory:
    """Both halves on the CPU: host calls raise by themselves, and all memory is one."""

    errors = workspace = 0

    def settle(self) -> None:
        """Nothing runs beside a call."""

    def describe(self, code: int) -> str:
        """The code itself: no driver knows it."""
        return f"code {code}"

    def limit(self, asked: int | float) -> None:
        """Nothing bounds what a plan keeps."""


class RelayLink:
    """A device of its own, behind its relay, with `others` that compute further shards of the same calls."""

    def __init__(self, relay: Relay, *others: Relay):
        self._relay, self._all = relay, (relay, *others)

    @property
    def errors(self) -> int:
        """Faults of the host calls of all programs so far."""
        return sum([relay.errors for relay in self._all])

    @property
    def workspace(self) -> int:
        """Bytes of the device that XLA's libraries need."""
        return self._relay.driver.workspace

    def settle(self) -> None:
        """Waits until the devices have done what they were given, or say that they never will."""
        for relay in self._all:
            relay.settle()

    def describe(self, code: int) -> str:
        """The driver's words for an error code."""
        return self._relay.driver.describe(code)

    def limit(self, asked: int | float) -> int:
        """Bytes (see `Link.limit`), less those that XLA's libraries need. Raises `ValueError` where none are left."""
        nbytes = int(asked * self._relay.driver.memory()[1]) if isinstance(asked, float) else asked
        if nbytes <= self.workspace:
            raise ValueError(
                f"xcoexec.jit: got device_memory={asked!r}; "
                f"valid is more than {self.workspace} bytes, which XLA's libraries need."
            )
        return nbytes - self.workspace


SAME_MEMORY = SameMemory()

__all__ = ["SAME_MEMORY", "Link", "RelayLink"]
