"""Plain `jax.jit` of a function, and how it sees a call: which arguments are static, and the others' leaves."""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np
from jax.tree_util import PyTreeDef
from jax.typing import ArrayLike

from ..compat import Jitted, plain_jit
from ..errors import brief
from ..guard import outside

#: the parameters of `jax.jit`
KNOWN = tuple(inspect.signature(plain_jit).parameters)[1:]
OFTEN = 8  # times a function is jitted by who does so for each call

Args = tuple[object, ...]  # by position: trees of arrays, and static values
Kwargs = dict[str, object]  # by name
#: static values that `jax.jit` takes for equal ones of another sign, or with others of another type inside
MIXED_UP = (float, complex, tuple, frozenset)


class NotGiven:
    """The type of a function that is not given yet; `jax.jit` tells it from None, which is no function, in this way."""


NOT_GIVEN = NotGiven()


class Static:
    """A static argument: equals another one only where both have the same type and the same bits (0.0 is not -0.0).
    Raises `TypeError` for a value without a hash.
    """

    __slots__ = ("key", "value")

    def __init__(self, value: object):
        self.value, self.key = value, strict_key(value)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.key == other.key

    def __repr__(self) -> str:
        return repr(self.value)


def strict_key(value: object) -> Hashable:
    """A value with its type, by which equal values of other types or signs differ. Raises `TypeError` for what cannot
    be hashed.
    """
    if isinstance(value, (float, complex)):
        return type(value), repr(value)
    if isinstance(value, (tuple, frozenset)):
        parts = tuple(map(strict_key, value)) if isinstance(value, tuple) else frozenset(map(strict_key, value))
        return type(value), parts
    hash(value)
    return type(value), value


class Call(NamedTuple):
    """A call's arguments: as its caller gives them, its dynamic leaves with their structure, and the static values, by
    position or name.
    """

    args: Args
    kwargs: Kwargs
    leaves: list[ArrayLike]
    tree: PyTreeDef
    static: tuple[tuple[int | str, Static], ...]

    @property
    def fixed(self) -> frozenset[int | str]:
        """The positions and names of the static arguments."""
        return frozenset(place for place, _ in self.static)

    def without_arrays(self) -> Call:
        """The same with nothing in the place of what is not static."""
        fixed = self.fixed
        kept: Kwargs = {k: v for k, v in self.kwargs.items() if k in fixed}
        args = tuple(a if i in fixed else None for i, a in enumerate(self.args))
        return Call(args, kept, [], self.tree, self.static)

    def described(self, positions: Collection[int], types: Sequence[jax.ShapeDtypeStruct]) -> Call:
        """The same with shapes and types alone in the place of these leaves; `types`: of all leaves."""
        chosen, fixed = frozenset(positions), self.fixed
        leaves = [cast("ArrayLike", types[i]) if i in chosen else x for i, x in enumerate(self.leaves)]
        rest, at = iter(leaves), 0

        def again(place: int | str, value: object) -> object:
            nonlocal at
            if place in fixed:
                return value
            tree: PyTreeDef = jax.tree_util.tree_structure(value)
            mine, at = range(at, at + tree.num_leaves), at + tree.num_leaves
            inner = list(itertools.islice(rest, tree.num_leaves))
            return value if chosen.isdisjoint(mine) else jax.tree_util.tree_unflatten(tree, inner)

        args = tuple(again(i, a) for i, a in enumerate(self.args))
        kwargs = {k: again(k, self.kwargs[k]) for k in sorted(self.kwargs)}
        return self._replace(args=args, kwargs=kwargs, leaves=leaves)


class Plain:
    """Plain `jax.jit` of a function; `given`: its parameters as the caller named them. `jitted`: what it returns, and
    `run`: the same for calls, which tells more static values apart. Raises `TypeError` for a parameter that it does not
    have or that is of another kind, `ValueError` for a position that cannot be given away.

    `often`: the function has been jitted again and again, so that its programs are there already.
    """

    def __init__(self, fn: Callable[..., object], given: Mapping[str, object]):
        unknown = sorted(set(given) - set(KNOWN))
        if unknown:
            raise TypeError(
                f"xcoexec.jit: got the parameters {', '.join(unknown)}; valid are its own and {', '.join(KNOWN)}."
            )
        if isinstance(fn, staticmethod) or inspect.isgeneratorfunction(fn):
            plain_jit(fn)  # raises what it raises for these
        self.fn, self.given = fn, dict(given)
        self.parameters = _parameters(fn)
        self.nums, self.names = _static_places(given, self.parameters)
        self.donated_nums = indices(given.get("donate_argnums"), "donate_argnums")
        names(given.get("donate_argnames"), "donate_argnames")
        if any(i < 0 for i in self.donated_nums):
            raise ValueError(
                f"xcoexec.jit: got donate_argnums={brief(given['donate_argnums'])}; valid are positions from 0 on."
            )
        inner, self.often = _kept(fn)
        self.jitted: Jitted = plain_jit(inner, **self.given)
        self.run = self._strictly(self.jitted)

    def ask(self, method: str, args: Args, kwargs: Kwargs) -> Any:
        """What a method of the jitted function ("lower", "trace", "eval_shape") says of a call. Raises what the
        function raises.
        """
        return self._strictly(getattr(self.jitted, method))(*args, **kwargs)

    def call(self, args: Args, kwargs: Kwargs, before: int = 0) -> Call:
        """A call taken apart. `before`: so many positional arguments stand before `args`."""
        static = self._static(args, kwargs, before)
        rest: tuple[Args, Kwargs] = (args, kwargs)
        if static:
            fixed = dict(static)
            rest = (
                tuple(a for i, a in enumerate(args) if i not in fixed),
                {k: v for k, v in kwargs.items() if k not in fixed},
            )
        leaves, tree = jax.tree_util.tree_flatten(rest)
        return Call(args, kwargs, leaves, tree, static)

    def _static(self, args: Args, kwargs: Kwargs, before: int) -> tuple[tuple[int | str, Static], ...]:
        """The static arguments, by position and name."""
        if not (self.nums or self.names):
            return ()
        places = {(i if i >= 0 else before + len(args) + i) - before for i in self.nums}
        found: list[tuple[int | str, object]] = [(i, a) for i, a in enumerate(args) if i in places]
        found += [(k, kwargs[k]) for k in self.names if k in kwargs]
        return tuple((place, box) for place, value in found if isinstance(box := _boxed(value), Static))

    def _strictly(self, jitted: Callable[..., Any]) -> Callable[..., Any]:
        """`jitted` with those static arguments in boxes that it would mix up."""
        nums, named = self.nums, self.names
        if not (nums or named):
            return jitted

        def run(*args: object, **kwargs: object) -> Any:
            many, given = len(args), args
            for i in nums:
                if -many <= i < many and isinstance(args[i], MIXED_UP):
                    at = i % many
                    given = (*given[:at], _boxed(args[at]), *given[at + 1 :])
            for name in named:
                if name in kwargs and isinstance(kwargs[name], MIXED_UP):
                    kwargs[name] = _boxed(kwargs[name])
            try:
                return jitted(*given, **kwargs)
            except Exception as e:  # the user's function may raise anything; it passes with a shorter traceback
                e.__traceback__ = outside(e.__traceback__)
                raise

        return run

    def rebuilt(self, call: Call, leaves: Sequence[ArrayLike]) -> tuple[Args, Kwargs]:
        """The arguments of a call like `call` with other leaves. Raises `ValueError` for more or fewer than it has."""
        rest, words = jax.tree_util.tree_unflatten(call.tree, leaves)
        dynamic, fixed = iter(rest), call.fixed
        args = tuple(a if i in fixed else next(dynamic) for i, a in enumerate(call.args))
        return args, {**words, **{k: v for k, v in call.kwargs.items() if k in fixed}}

    def keeping(self, count: int) -> Plain:
        """The same function, by which the first `count` arguments are never given away."""
        kept = set(self.parameters[:count])
        given = dict(self.given)
        if self.donated_nums:
            given["donate_argnums"] = tuple(i for i in self.donated_nums if i >= count)
        if given.get("donate_argnames"):
            given["donate_argnames"] = tuple(n for n in names(given["donate_argnames"], "") if n not in kept)
        return self if given == self.given else Plain(self.fn, given)


def _boxed(value: object) -> object:
    """A static argument in its box; one without a hash stays as it is, for `jax.jit` to refuse."""
    try:
        return Static(value)
    except TypeError:
        return value


def _kept(fn: Callable[..., object]) -> tuple[Callable[..., object], bool]:
    """What `_alone` makes of `fn`, and whether it was asked for `OFTEN` times before: one for each function, as JAX's
    programs are, where that holds no arrays. It lives in the function's own dictionary, since it must go when the
    function does.
    """
    if not isinstance(fn, types.FunctionType) or fn.__closure__:
        return _alone(fn), False
    own, name = vars(fn), "_xcoexec_alone"
    if getattr(own.get(name), "__wrapped__", None) is not fn:  # not made yet, or `functools.wraps` has copied another's
        own[name] = _alone(fn)
    inner = own[name]
    vars(inner)["asked"] = times = vars(inner).get("asked", 0) + 1
    return inner, times > OFTEN


def _alone(fn: Callable[..., object]) -> Callable[..., object]:
    """`fn` in a function of its own, which opens boxes: JAX keeps the programs of one function together, whoever
    compiled them, and here they are counted (`CoPjitFunction`).
    """
    opened = lambda a: a.value if type(a) is Static else a

    @functools.wraps(fn, updated=())
    def inside(*args: object, **kwargs: object) -> object:
        return fn(*map(opened, args), **{k: opened(v) for k, v in kwargs.items()})

    named = fn
    while isinstance(named, functools.partial):
        named = named.func
    inside.__name__ = str(getattr(named, "__name__", type(named).__name__))
    inside.__qualname__ = str(getattr(named, "__qualname__", inside.__name__))
    return inside


def _static_places(given: Mapping[str, object], known: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The positions and names of static arguments, of a function with these parameters by position: what is not named
    follows from the other; where both are, each stands for itself.
    """
    nums = indices(given.get("static_argnums"), "static_argnums")
    named = names(given.get("static_argnames"), "static_argnames")
    if given.get("static_argnums") is None:
        nums = tuple(i for i, name in enumerate(known) if name in named)
    elif given.get("static_argnames") is None:
        named = frozenset(known[i] for i in nums if -len(known) <= i < len(known))
    return nums, tuple(sorted(named))


def _parameters(fn: Callable[..., object]) -> tuple[str, ...]:
    """The names of the parameters that may be given by position."""
    try:
        found = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))


def indices(x: object, what: str) -> tuple[int, ...]:
    """The positions that a parameter of the name `what` lists: an int, several, or None for none. Raises `TypeError`
    for anything else.
    """
    several = _several(x, int)
    found = [int(i) for i in several if isinstance(i, (int, np.integer)) and not isinstance(i, bool)]
    if isinstance(x, str) or len(found) < len(several):
        raise TypeError(f"xcoexec.jit: got {what}={brief(x)}; valid is an int or several.")
    return tuple(found)


def names(x: object, what: str) -> frozenset[str]:
    """The names that a parameter of the name `what` lists: a text, several, or None for none. Raises `TypeError` for
    anything else.
    """
    several = _several(x, str)
    found = [name for name in several if isinstance(name, str)]
    if len(found) < len(several):
        raise TypeError(f"xcoexec.jit: got {what}={brief(x)}; valid is a name or several.")
    return frozenset(found)


def _several(x: object, one: type) -> tuple[object, ...]:
    """What a parameter lists: `x` itself where it is of the type `one`; a None for what is no list either."""
    if x is None or isinstance(x, one):
        return () if x is None else (x,)
    try:
        return tuple(x)  # type: ignore[arg-type]
    except TypeError:
        return (None,)


__all__ = ["Call", "Plain", "Static", "strict_key"]
