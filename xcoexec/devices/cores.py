"""The cores of a host, divided among its devices."""

from __future__ import annotations

from collections.abc import Sequence

CALLER = 1  # core that is left to who calls; each device has one more, which serves its host calls


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list as Linux writes them: "0-2,8" -> 0, 1, 2, 8. Raises `ValueError` for another text."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def divided(cores: Sequence[int], near: Sequence[Sequence[int]], most: int) -> list[tuple[int, ...]]:
    """Cores for each device, as many for one as for another, `most` at most; `near`: those next to each, which it is
    given first. The caller and what serves each device keep cores of their own where there are enough; all are empty
    where there are fewer cores than devices.
    """
    count = len(near)
    if len(cores) < count:
        return [()] * count
    each = min(max((len(cores) - CALLER - count) // count, 1), most)
    left, own = list(cores), [list[int]() for _ in near]
    for wanted in (near, [cores] * count):
        for mine, those in zip(own, wanted, strict=True):
            taken = [c for c in left if c in set(those)][: each - len(mine)]
            left = [c for c in left if c not in taken]
            mine += taken
    return [tuple(sorted(mine)) for mine in own]


__all__ = ["divided", "numbers"]
