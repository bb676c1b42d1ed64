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

#: the parameters of `jax.jit`
KNOWN = tuple(inspect.signature(plain_jit).parameters)[1:]
OFTEN = 8  # times a function is jitted by who does so for each call

Args = tuple[object, ...]  # by position: trees of arrays, and static values
Kwargs = dict[str, object]  # by name


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
    """A call's arguments: as `jax.jit` gets them, its dynamic leaves with their structure, and what else its program
    depends on.
    """

    args: Args
    kwargs: Kwargs
    leaves: list[ArrayLike]
    tree: PyTreeDef
    static: Hashable

    def without_arrays(self) -> Call:
        """The same with nothing in the place of what is not static."""
        kept: Kwargs = {k: v for k, v in self.kwargs.items() if type(v) is Static}
        return Call(tuple(a if type(a) is Static else None for a in self.args), kept, [], self.tree, self.static)

    def described(self, positions: Collection[int], types: Sequence[jax.ShapeDtypeStruct]) -> Call:
        """The same with shapes and types alone in the place of these leaves; `types`: of all leaves."""
        chosen = frozenset(positions)
        leaves = [cast("ArrayLike", types[i]) if i in chosen else x for i, x in enumerate(self.leaves)]
        rest, at = iter(leaves), 0

        def again(value: object) -> object:
            nonlocal at
            if type(value) is Static:
                return value
            tree: PyTreeDef = jax.tree_util.tree_structure(value)
            mine, at = range(at, at + tree.num_leaves), at + tree.num_leaves
            inner = list(itertools.islice(rest, tree.num_leaves))
            return value if chosen.isdisjoint(mine) else jax.tree_util.tree_unflatten(tree, inner)

        args = tuple(map(again, self.args))
        return self._replace(args=args, kwargs={k: again(self.kwargs[k]) for k in sorted(self.kwargs)}, leaves=leaves)


class Plain:
    """Plain `jax.jit` of a function; `given`: its parameters as the caller named them. Raises `TypeError` for one that
    it does not have or that is of another kind, `ValueError` for a position that cannot be given away.

    `often`: the function has been jitted again and again, so that its programs are there already.
    """

    def __init__(self, fn: Callable[..., object], given: Mapping[str, object]):
        unknown = sorted(set(given) - set(KNOWN))
        if unknown:
            raise TypeError(
                f"xcoexec.jit: got the parameters {', '.join(unknown)}; valid are its own and {', '.join(KNOWN)}."
            )
        self.fn, self.given = fn, dict(given)
        self.nums = indices(given.get("static_argnums"), "static_argnums")
        self.names = names(given.get("static_argnames"), "static_argnames")
        self.donated_nums = indices(given.get("donate_argnums"), "donate_argnums")
        names(given.get("donate_argnames"), "donate_argnames")
        if any(i < 0 for i in self.donated_nums):
            raise ValueError(
                f"xcoexec.jit: got donate_argnums={brief(given['donate_argnums'])}; valid are positions from 0 on."
            )
        self.parameters = _parameters(fn)
        self.boxed = bool(self.nums or self.names)
        inner, self.often = _kept(_unboxed if self.boxed else _alone, fn)
        self.jitted: Jitted = plain_jit(inner, **self.given)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.boxed:
            args, kwargs, _ = self._box(args, kwargs, 0)
        return self.jitted(*args, **kwargs)

    def ask(self, method: str, args: Args, kwargs: Kwargs) -> Any:
        """What a method of the jitted function ("lower", "trace", "eval_shape") says of a call. Raises what the
        function raises.
        """
        if self.boxed:
            args, kwargs, _ = self._box(args, kwargs, 0)
        return getattr(self.jitted, method)(*args, **kwargs)

    def call(self, args: Args, kwargs: Kwargs, before: int = 0) -> Call:
        """A call taken apart. `before`: so many positional arguments stand before `args`."""
        if not self.boxed:
            leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
            return Call(args, kwargs, leaves, tree, ())
        args, kwargs, static = self._box(args, kwargs, before)
        rest = tuple(a for a in args if type(a) is not Static)
        leaves, tree = jax.tree_util.tree_flatten((rest, {k: v for k, v in kwargs.items() if type(v) is not Static}))
        return Call(args, kwargs, leaves, tree, static)

    def _box(self, args: Args, kwargs: Kwargs, before: int) -> tuple[Args, Kwargs, Hashable]:
        """The arguments with the static ones boxed, and those by position and name."""
        many, known = before + len(args), self.parameters
        places = {i if i >= 0 else many + i for i in self.nums}
        named = set(self.names)
        # what is not named follows from the other; where both are, each stands for itself
        if self.given.get("static_argnums") is None:
            places = {i for i, name in enumerate(known) if name in named}
        elif self.given.get("static_argnames") is None:
            named = {known[i] for i in self.nums if -len(known) <= i < len(known)}
        boxed = tuple(_boxed(a) if i in places else a for i, a in enumerate(args, before))
        words = {k: _boxed(v) if k in named else v for k, v in kwargs.items()}
        static = (
            tuple((i, a) for i, a in enumerate(boxed) if type(a) is Static),
            tuple((k, v) for k, v in words.items() if type(v) is Static),
        )
        return boxed, words, static

    def rebuilt(self, call: Call, leaves: Sequence[ArrayLike]) -> tuple[Args, Kwargs]:
        """The arguments of a call like `call` with other leaves. Raises `ValueError` for more or fewer than it has."""
        rest, words = jax.tree_util.tree_unflatten(call.tree, leaves)
        dynamic = iter(rest)
        fixed = {k: v for k, v in call.kwargs.items() if type(v) is Static}
        return tuple(a if type(a) is Static else next(dynamic) for a in call.args), {**words, **fixed}

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
        return value if type(value) is Static else Static(value)
    except TypeError:
        return value


def _kept(
    made: Callable[[Callable[..., object]], Callable[..., object]], fn: Callable[..., object]
) -> tuple[Callable[..., object], bool]:
    """What `made` makes of `fn`, and whether it was asked for `OFTEN` times before: one for each function, as JAX's
    programs are, where that holds no arrays. It lives in the function's own dictionary, since it must go when the
    function does.
    """
    if not isinstance(fn, types.FunctionType) or fn.__closure__:
        return made(fn), False
    own, name = vars(fn), f"_xcoexec{made.__name__}"
    if getattr(own.get(name), "__wrapped__", None) is not fn:  # not made yet, or `functools.wraps` has copied another's
        own[name] = made(fn)
    inner = own[name]
    vars(inner)["asked"] = times = vars(inner).get("asked", 0) + 1
    return inner, times > OFTEN


def _unboxed(fn: Callable[..., object]) -> Callable[..., object]:
    """`fn` that takes its static arguments boxed."""

    @functools.wraps(fn, updated=())
    def inside(*args: object, **kwargs: object) -> object:
        open_ = lambda a: a.value if type(a) is Static else a
        return fn(*map(open_, args), **{k: open_(v) for k, v in kwargs.items()})

    return inside


def _alone(fn: Callable[..., object]) -> Callable[..., object]:
    """`fn` in a function of its own: JAX keeps the programs of one function together, whoever compiled them, and here
    they are counted (`CoPjitFunction`).
    """

    @functools.wraps(fn, updated=())
    def inside(*args: object, **kwargs: object) -> object:
        return fn(*args, **kwargs)

    named = fn
    while isinstance(named, functools.partial):
        named = named.func
    inside.__name__ = str(getattr(named, "__name__", type(named).__name__))
    inside.__qualname__ = str(getattr(named, "__qualname__", inside.__name__))
    return inside


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
