"""Methods that want to know once when something happens."""

from __future__ import annotations

import weakref
from collections.abc import Callable

Told = weakref.WeakMethod[Callable[[], None]]


class Listeners:
    """Methods that are called once, when something happens, as far as their objects are still there."""

    __slots__ = ("_methods",)

    def __init__(self) -> None:
        self._methods = set[Told]()

    def add(self, method: Told) -> None:
        """Has a method called the next time."""
        self._methods.add(method)

    def tell(self) -> None:
        """It happens."""
        methods, self._methods = self._methods, set()
        for method in methods:
            if (told := method()) is not None:
                told()


__all__ = ["Listeners"]
