"""What the streams' public calls are given: rules as a table, and one sentence that says what was got and what is
valid.

Something of another kind than a rule's is a `TypeError`, something of that kind which is not valid a `ValueError`.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
NETWORK = ("begin", "run", "result")  # methods of what a task runs
KNOB = ("now", "state", "set", "put")  # and of what sets a half's clocks


class _Short(reprlib.Repr):
    """Arrays by dtype and shape, everything else cut short: a message never shows what is in an array."""

    def __init__(self) -> None:
        super().__init__()
        self.maxother = self.maxstring = 100

    def repr1(self, x: object, level: int) -> str:
        shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
        if isinstance(shape, tuple) and dtype is not None and not isinstance(x, numbers.Number):
            return f"{dtype}[{','.join(map(str, shape))}]"
        return super().repr1(x, level)


shown = _Short().repr


@dataclasses.dataclass(frozen=True)
class Rule:
    """`words`: what is valid; `kind`: whether a value is of the right kind; `holds`: whether one of that kind is valid;
    `made`: what goes on.
    """

    words: str
    kind: Callable[[object], bool]
    holds: Callable[[Any], bool] = lambda x: True
    made: Callable[[Any], Any] = lambda x: x


def optional(rule: Rule) -> Rule:
    """The same, or None."""
    kind = lambda x: x is None or rule.kind(x)
    holds = lambda x: x is None or rule.holds(x)
    return Rule(f"{rule.words}, or None", kind, holds, lambda x: None if x is None else rule.made(x))


def _real(x: object) -> bool:
    return isinstance(x, numbers.Real)


def _within(test: Callable[[float], bool]) -> Callable[[float], bool]:
    """Whether a number that is no truth value passes a test; integers beyond all floats do not."""

    def holds(x: float) -> bool:
        try:
            return not isinstance(x, bool) and test(float(x))
        except OverflowError:
            return False

    return holds


def _number(words: str, test: Callable[[float], bool]) -> Rule:
    return Rule(words, _real, _within(test), float)


def _integer(words: str, least: int) -> Rule:
    return Rule(
        words, _real, lambda x: isinstance(x, numbers.Integral) and not isinstance(x, bool) and int(x) >= least, int
    )


def _has(*methods: str) -> Callable[[object], bool]:
    return lambda x: not isinstance(x, type) and all(callable(getattr(x, m, None)) for m in methods)


def _isin(*kinds: type) -> Callable[[object], bool]:
    return lambda x: isinstance(x, kinds)


RULES: Mapping[str, Rule] = {
    "deadline": _number("a positive number of seconds, or inf for none", lambda x: x > 0),
    "seconds": _number("a positive number of seconds", lambda x: 0 < x < math.inf),
    "span": _number("a number of seconds from 0 on", lambda x: 0 <= x < math.inf),
    "limit": _number("a positive number of seconds", lambda x: x > 0),
    "wait": _number("a number of seconds", lambda x: not math.isnan(x)),
    "share": _number("a share from 0 to 1", lambda x: 0 <= x <= 1),
    "offsets": Rule(
        "a sequence of seconds from 0 on, one for each task",
        lambda x: isinstance(x, Sequence) and not isinstance(x, str) and all(map(_real, x)),
        lambda x: all(map(_within(lambda t: 0 <= t < math.inf), x)),
        tuple,
    ),
    "count": _integer("an integer from 1 on", 1),
    "last": _integer("an integer from 0 on", 0),
    "flag": Rule("True or False", _isin(bool)),
    "name": Rule("a name", _isin(str), bool),
    "path": Rule("a path", _isin(str, os.PathLike)),
    "callable": Rule("a callable", callable),
    "registry": Rule("a prometheus_client.CollectorRegistry", _has("register", "unregister", "collect")),
    "network": Rule(
        "what xcoexec.jit(...).bind(weights) returns, or a model in blocks (xcoexec.streams.model)",
        lambda x: _has(*NETWORK)(x) and hasattr(x, "blocks") and hasattr(x, "accuracy"),
    ),
    "knobs": Rule(
        "a sequence of knobs (xcoexec.streams.power.Knob)",
        lambda x: isinstance(x, Sequence) and all(map(_has(*KNOB), x)),
        made=list,
    ),
}


def checked(where: str, what: str, value: T, rule: str | Rule, of: str = "") -> T:
    """A value as a rule makes it. `where`: the public call; `what`: its argument; `of`: words behind the value.

    Raises `TypeError` for another kind of value, `ValueError` for one that is not valid.
    """
    r = RULES[rule] if isinstance(rule, str) else rule
    error = _wrong(r, value)
    if error is not None:
        raise error(f"{where}: got {what}={shown(value)}{of}; valid is {r.words}.")
    return r.made(value)  # type: ignore[no-any-return]


def _wrong(rule: Rule, value: object) -> type[Exception] | None:
    """The kind of exception that a value deserves; None where it is valid."""
    try:
        if not rule.kind(value):
            return TypeError
        return None if rule.holds(value) else ValueError
    except Exception:  # whatever a value raises that cannot even be looked at: its methods are the user's
        return TypeError


def told(where: str, error: BaseException) -> BaseException:
    """What who waits for a user's function is told of its exception; nothing is raised here.

    StopIteration would end the loop over the results as if nothing were there: it is a `RuntimeError`, as in generators
    (PEP 479).
    """
    if not isinstance(error, StopIteration):
        return error
    made = RuntimeError(
        f"{where} raised StopIteration; valid is any other exception (what has ended would look like the end of the"
        " results)."
    )
    made.__cause__ = error
    return made


__all__ = ["RULES", "Rule", "checked", "optional", "shown", "told"]
