"""What the library asks of a kind of device, as one frozen record a kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ..codegen.program import Op, Value
    from ..codegen.runtime.relay import Relay


@dataclasses.dataclass(frozen=True, eq=False)
class Device:
    """A kind of device. Everything that differs between kinds is asked of this record.

    `name`: of the kind, as its driver (`Driver.platform`) and files on disk have it. `half`: which half it computes,
    "host" or "device". `apart`: arrays must cross to it, and host calls run beside it; else they block it.
    `shares_cores`: it computes on the host half's cores, so that the halves take turns. `handlers`: XLA's name of the
    platform on which native handlers are made known ("" where XLA does not know it).

    `title()`: what it runs on, for fingerprints of measurements. `connect(cores)`: what serves host calls of it with a
    team on these cores, None where they need no connection; raises `RuntimeError` (`NotImplementedError` for a backend
    without a file here) that says why there is none. `connect_at(cores, ordinal)`: the same for the device of that
    number among those of its kind that this process sees. `near(ordinal)`: the cores next to it (none: not known).
    `tiles`: (rows, columns) of the tiles in which its kernels may
    compute a matrix product; `processors(threads)`: how many tiles it computes at a time beside so many threads of the
    host half. `tuning`: XLA's option that names the folder where its compiler keeps which kernels were the fastest on
    this device ("" where it times none). `compiling(operations)`: its options with which these are the fastest there;
    `graphs(operations)`: its options by which their kernels are launched many at once; none where they are anyway, or
    never; `singly()`: its options by which each is launched by itself; `libraries(operations)`: its options by which
    libraries alone compute matrix products, where these are about as fast and programs then compile in a small part of
    the time; `calling()`: its options without which it computes a program with host calls otherwise than it was
    written. `filters(operations, options)`: constants -> the other order of their axes in which its kernels read them.
    """

    name: str
    half: str
    apart: bool
    shares_cores: bool
    handlers: str
    title: Callable[[], str]
    connect: Callable[[tuple[int, ...]], Relay | None]
    tiles: tuple[tuple[int, int], ...]
    processors: Callable[[int], int]
    tuning: str = ""
    compiling: Callable[[Sequence[Op]], Mapping[str, object]] = lambda ops: {}
    graphs: Callable[[Sequence[Op]], Mapping[str, object]] = lambda ops: {}
    singly: Callable[[], Mapping[str, object]] = dict
    libraries: Callable[[Sequence[Op]], Mapping[str, object]] = lambda ops: {}
    calling: Callable[[], Mapping[str, object]] = dict
    connect_at: Callable[[tuple[int, ...], int], Relay | None] = lambda cores, ordinal: _not_there(ordinal)
    near: Callable[[int], tuple[int, ...]] = lambda ordinal: ()
    filters: Callable[[Sequence[Op], Mapping[str, object]], Mapping[Value, tuple[int, ...]]] = lambda ops, options: {}

    @property
    def suffix(self) -> str:
        """What names of kept measurements end with, so that those of different devices lie beside each other."""
        return f"-{self.name}" if self.apart else ""


def _not_there(ordinal: int) -> NoReturn:
    raise NotImplementedError(f"xcoexec: device {ordinal} of this kind cannot be connected; valid is the first one.")
