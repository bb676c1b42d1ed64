"""One function called through plain `jax.jit` and through `xcoexec.jit`: whether the two can be told apart.

Tolerances. An element of a floating result agrees when it differs from `jax.jit`'s by at most `r * |x| + a * scale`,
where `scale` is the largest finite magnitude of that result, and `(r, a)` is TOLERANCES of the narrowest type that the
function computes in (they allow another order of summation and one rounding more). Functions with a convolution get
`WINOGRAD * scale`: kernels may compute those by Winograd's algorithm. Where elements differ by more, the same function
in float64 decides: the result is right when its worst error is at most `FACTOR` times the worst error of `jax.jit`, or
within the tolerance, or within NOISE of the largest of all results, and never above GROSS of that. Rounding errors are
luck: `jax.jit`'s is the worst one of these arguments and of NEIGHBOURS, a thousandth away. Where `jax.jit` itself is
off by more than GROSS (random numbers in float64 are other ones), float64 decides nothing. What JAX's operations give
one by one is right too. Integers, booleans, shapes, types, weak types, trees and the kind of sharding must be equal.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xcoexec

TOLERANCES = {
    "float64": (1e-12, 1e-13),
    "float32": (1e-5, 2e-6),
    "float16": (4e-3, 2e-3),
    "bfloat16": (3e-2, 1e-2),
    "float8": (0.3, 0.1),
}
WINOGRAD = 1e-4
NOISE = {"float64": 1e-15, "float32": 5e-7, "float16": 4e-3, "bfloat16": 3e-2, "float8": 0.5}
GROSS = {"float64": 1e-6, "float32": 1e-2, "float16": 5e-2, "bfloat16": 0.15, "float8": 0.5}
NARROW = {"float8": "f8", "bfloat16": "bf16", "float16": "f16", "float32": "f32"}  # how jaxprs call the types
FACTOR = 4.0
NEIGHBOURS = 8
GOOD = ("same", "nearer", "plain", "more")
Known = tuple[list[np.ndarray], float]  # the leaves in float64, and an absolute error that is allowed besides
Truth = Callable[[Sequence[Any]], "Known | None"]  # of arguments; None where there is no oracle

#: how the function under test is made: name -> options of `xcoexec.jit`
STRATEGIES: dict[str, Callable[[], dict[str, Any]]] = {
    "kernels": lambda: {"plan": xcoexec.Plan.uniform(1.0)},
    "split": lambda: {"plan": xcoexec.Plan.uniform(0.5)},
    "rows": lambda: {"plan": xcoexec.Plan.uniform(0.5, "rows")},
    "host": lambda: {"strategy": "host"},
    "auto": lambda: {"strategy": "auto"},
    "device": lambda: {"strategy": "device"},
}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`status`: "same"; "nearer" (not as `jax.jit`, and right by float64); "plain" (`jax.jit` fails, and ours alike);
    "more" (XLA cannot compile it here, and kernels can); "wrong", "type" (a property other than the values), "raises"
    (ours alone), "quiet" (theirs alone), "other error"; "internal": right, but plain `jax.jit` had to stand in for an
    error of the library.

    `ran`: "kernels" (with so many `segments`), "xla" (no layer that kernels can express), "fallback" (with `why`), ""
    (nothing).
    """

    status: str
    detail: str = ""
    ran: str = ""
    segments: int = 0
    why: str = ""

    @property
    def good(self) -> bool:
        return self.status in GOOD


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a call gave: its result, or its exception."""

    value: Any = None
    error: BaseException | None = None


Plain = Callable[[Sequence[Any]], Outcome]  # arguments -> what plain `jax.jit` gives


def attempt(call: Callable[[], Any]) -> Outcome:
    """The result of a call, waited for, or what it raised."""
    try:
        return Outcome(jax.block_until_ready(call()))
    except Exception as e:
        return Outcome(error=e)


def compare(
    fn: Callable[..., Any],
    args: Sequence[Any],
    strategy: str | dict[str, Any] = "kernels",
    bound: int = 0,
    wide: Callable[..., Any] | None = None,
    truth: Truth | None = None,
    **options: Any,
) -> Verdict:
    """Calls `fn(*args)` through `jax.jit` once and through `xcoexec.jit` twice; see the module's text.

    `strategy`: a name of STRATEGIES, or options of `xcoexec.jit`; `bound`: so many leading arguments are given to
    `.bind`; `wide`: `fn` for arguments in float64, where that is another function; `truth`: in place of it; `options`
    are those of `jax.jit`.
    """
    chosen = STRATEGIES[strategy]() if isinstance(strategy, str) else strategy
    plain = lambda at: attempt(lambda: jax.jit(fn, **options)(*fresh(at, options)))
    want = plain(args)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = attempt(lambda: _made(fn, args[:bound], {**options, **chosen}))
        if made.error is not None:
            return Verdict("raises", _text(made.error))
        got = attempt(lambda: made.value(*fresh(args, options)[bound:]))
        again = attempt(lambda: made.value(*fresh(args, options)[bound:]))
        ran = _ran(made.value, fresh(args, options)[bound:] if not bound else (), got)
    said = [str(w.message) for w in seen if issubclass(w.category, xcoexec.CoexecWarning)]
    if said and ran[0] != "kernels":
        ran = ("fallback", 0, said[0])
    verdict = _judge(fn, args, want, got, plain, truth or (lambda at: oracle(wide or fn, at, options)))
    if verdict.good and verdict.status != "plain":
        verdict = _repeated(got, again) or verdict
    if verdict.good and any("please report it" in text for text in said):
        verdict = dataclasses.replace(verdict, status="internal", detail=said[0].removeprefix("xcoexec: "))
    return dataclasses.replace(verdict, ran=ran[0], segments=ran[1], why=ran[2])


def _made(fn: Callable[..., Any], weights: Sequence[Any], options: Any) -> Any:
    made = xcoexec.jit(fn, **options)
    return made.bind(*weights) if weights else made


def fresh(args: Sequence[Any], options: Any) -> Sequence[Any]:
    """Copies of the arguments where the call gives some of them away."""
    if options.get("donate_argnums", ()) in ((), []) and not options.get("donate_argnames"):
        return args
    return [jax.tree.map(lambda x: jnp.array(x, copy=True) if isinstance(x, jax.Array) else x, a) for a in args]


def _ran(made: Any, args: Sequence[Any], got: Outcome) -> tuple[str, int, str]:
    if got.error is not None:
        return "", 0, ""
    try:
        report = made.report(*args)
    except Exception as e:
        return "fallback", 0, str(e)
    if report.ran == "jit":
        return ("fallback" if "fallback" in report.why else "xla"), 0, report.why
    return ("kernels" if report.segments else "xla"), report.segments, "" if report.segments else report.why


def _judge(
    fn: Callable[..., Any], args: Sequence[Any], want: Outcome, got: Outcome, plain: Plain, truth: Truth
) -> Verdict:
    if want.error is not None:
        if got.error is None:
            compiles = attempt(lambda: jax.make_jaxpr(fn)(*args)).error is None
            return Verdict("more" if compiles else "quiet", f"jax.jit raises {_text(want.error)}")
        same = type(want.error) is type(got.error)
        return Verdict(
            "plain" if same else "other error", _text(want.error) + ("" if same else f" | ours {_text(got.error)}")
        )
    if got.error is not None:
        return Verdict("raises", _text(got.error))
    if different := properties(want.value, got.value):
        return Verdict("type", different)
    xs, ys = _leaves(want.value), _leaves(got.value)
    text = attempt(lambda: str(jax.make_jaxpr(fn)(*args))).value or ""
    has_float = any(x.dtype.kind == "f" for x in xs)
    judge = Judge(
        next((kind for kind, name in NARROW.items() if f"{name}[" in text or kind in text), ""),
        WINOGRAD if has_float and "conv_general_dilated" in text else 0.0,
    )
    bad = [i for i, (x, y) in enumerate(zip(xs, ys, strict=True)) if judge.differs(x, y).any()]
    if not bad:
        return Verdict("same")
    verdict = _by_oracle(judge, truth(args), xs, ys, bad, lambda: _typical(plain, truth, args, len(xs)))
    return (
        verdict if verdict.good or not _as_eager(judge, fn, args, ys) else dataclasses.replace(verdict, status="nearer")
    )


def _repeated(first: Outcome, second: Outcome) -> Verdict | None:
    """A second call of the same function with the same arguments must give the same."""
    if second.error is not None:
        return Verdict("raises", f"second call: {_text(second.error)}")
    if different := properties(first.value, second.value):
        return Verdict("type", f"second call: {different}")
    for x, y in zip(_leaves(first.value), _leaves(second.value), strict=True):
        if (where := Judge().differs(x, y)).any():
            return Verdict("wrong", f"second call: {_show(x, y, where)}")
    return None


def properties(want: Any, got: Any) -> str:
    """In words, the first property other than values in which two results differ; "" if there is none."""
    if jax.tree.structure(want) != jax.tree.structure(got):
        return f"tree {jax.tree.structure(want)} | ours {jax.tree.structure(got)}"
    for i, (x, y) in enumerate(zip(jax.tree.leaves(want), jax.tree.leaves(got), strict=True)):
        for name, of in PROPERTIES.items():
            if of(x) != of(y):
                return f"result {i}: {name} {of(x)} | ours {of(y)}"
    return ""


PROPERTIES: dict[str, Callable[[Any], Any]] = {
    "Python type": lambda x: type(x).__name__,
    "dtype": lambda x: getattr(x, "dtype", None),
    "shape": lambda x: getattr(x, "shape", None),
    "weak type": lambda x: getattr(x, "weak_type", None),
    "sharding": lambda x: type(getattr(x, "sharding", None)).__name__,
    "committed": lambda x: getattr(x, "committed", None),
    "devices": lambda x: x.devices() if isinstance(x, jax.Array) else None,
}


def _leaves(value: Any) -> list[np.ndarray]:
    return [_numpy(x) for x in jax.tree.leaves(value)]


def _numpy(x: Any) -> np.ndarray:
    if isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    return np.asarray(x)


def _float(x: np.ndarray) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.inexact))


def _wide(x: np.ndarray) -> np.ndarray:
    """Floats as f64; complex numbers as two of them."""
    if np.iscomplexobj(x):
        return np.stack([x.real, x.imag], -1).astype(np.float64)
    return x.astype(np.float64)


def _kind(x: np.ndarray) -> str:
    name = {"complex64": "float32", "complex128": "float64"}.get(str(x.dtype), str(x.dtype))
    return "float8" if name.startswith("float8") else name


def _scale(x: np.ndarray) -> float:
    finite = np.abs(x[np.isfinite(x)])
    return float(finite.max()) if finite.size else 0.0


@dataclasses.dataclass(frozen=True)
class Judge:
    """`narrow`: the narrowest floating type that a function computes in ("": none known); `allowed`: of the scale,
    besides the tolerance.
    """

    narrow: str = ""
    allowed: float = 0.0

    def kind(self, x: np.ndarray) -> str:
        """The type that a result's errors are those of."""
        return max(_kind(x), self.narrow or "float64", key=list(TOLERANCES).index)

    def tolerance(self, x: np.ndarray) -> tuple[float, float]:
        r, a = TOLERANCES[self.kind(x)]
        return r, max(a, self.allowed)

    def differs(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Where two results differ by more than the tolerance."""
        if not _float(x):
            return np.asarray(x != y)
        r, a = self.tolerance(x)
        wx, wy = _wide(x), _wide(y)
        equal = (wx == wy) | (np.isnan(wx) & np.isnan(wy))
        with np.errstate(all="ignore"):
            near = np.abs(wx - wy) <= r * np.abs(wx) + a * _scale(wx)
        return ~(equal | (near & np.isfinite(wx) & np.isfinite(wy)))

    def right(self, x: np.ndarray, y: np.ndarray, o: np.ndarray, typical: float, slack: float, largest: float) -> bool:
        """Whether `y` is as near to `o`, in float64, as it has to be: `x` is `jax.jit`'s, `largest` the scale of all
        results.
        """
        if not _float(x):
            return bool(np.array_equal(y, o))
        kind, scale = self.kind(x), _scale(_wide(o))
        largest = max(scale, largest)
        with np.errstate(all="ignore"):
            narrow, wy, wo = _wide(o.astype(x.dtype)), _wide(y), _wide(o)
            same = (np.isnan(wy) & np.isnan(narrow)) | (wy == narrow) | (np.isfinite(wy) & np.isfinite(wo))
            enough = max(FACTOR * max(_error(x, o), typical), self.tolerance(x)[1] * scale, NOISE[kind] * largest)
            if same.all() and _error(y, o) <= max(slack, min(enough, GROSS[kind] * largest)):
                return True
            return _error(x, o) > GROSS[kind] * largest and (not self.differs(x, y).any() or _error(x, y) <= slack)


def _by_oracle(
    judge: Judge,
    known: Known | None,
    xs: list[np.ndarray],
    ys: list[np.ndarray],
    bad: list[int],
    typical: Callable[[], list[float]],
) -> Verdict:
    """Results `bad` differ: the float64 ones say which are right, and `typical` how far off `jax.jit` may be."""
    i = bad[0]
    where = judge.differs(xs[i], ys[i])
    text = f"result {i} {xs[i].dtype}{list(xs[i].shape)}: {_show(xs[i], ys[i], where)}"
    if known is None or len(known[0]) != len(xs) or any(known[0][k].shape != xs[k].shape for k in bad):
        return Verdict("wrong", text + "; no float64 oracle")
    wide, slack = known
    largest = max((_scale(_wide(o)) for o in wide if _float(o)), default=0.0)
    right = lambda errors: all(judge.right(xs[k], ys[k], wide[k], errors[k], slack, largest) for k in bad)
    if right([0.0] * len(xs)) or right(typical()):
        return Verdict("nearer", text)
    return Verdict("wrong", f"{text}; float64 {_first(wide[i], where)}")


def _as_eager(judge: Judge, fn: Callable[..., Any], args: Sequence[Any], ys: list[np.ndarray]) -> bool:
    """Whether JAX's operations, one by one, give the same: XLA's fusions have had wrong results."""

    def one_by_one() -> Any:
        with jax.disable_jit():
            return fn(*args)

    eager = attempt(one_by_one)
    xs = _leaves(eager.value)
    return (
        eager.error is None
        and len(xs) == len(ys)
        and all(x.shape == y.shape and not judge.differs(x, y).any() for x, y in zip(xs, ys, strict=True))
    )


def _error(x: np.ndarray, o: np.ndarray) -> float:
    """The largest distance of finite numbers."""
    wx, wo = _wide(x), _wide(o)
    finite = np.isfinite(wx) & np.isfinite(wo)
    return float(np.abs(np.where(finite, wx, 0.0) - np.where(finite, wo, 0.0)).max(initial=0.0))


def _typical(plain: Plain, truth: Truth, args: Sequence[Any], results: int) -> list[float]:
    """The worst error of `jax.jit` in each result, over arguments close by (zeros where one has no oracle)."""
    worst = [0.0] * results
    for seed in range(NEIGHBOURS):
        moved = jax.tree.map(functools.partial(_moved, np.random.default_rng(seed)), list(args))
        got, known = plain(moved), truth(moved)
        if got.error is not None or known is None:
            return [0.0] * results
        pairs = zip(worst, _leaves(got.value), known[0], strict=True)
        worst = [max(e, _error(x, o)) if _float(x) and x.shape == o.shape else e for e, x, o in pairs]
    return worst


def _moved(rng: np.random.Generator, x: Any) -> Any:
    """`x` with every real number changed by up to a thousandth: as well conditioned, and rounded anew."""
    if not hasattr(x, "dtype") or not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    old = np.asarray(x)
    return jnp.asarray((old.astype(np.float64) * rng.uniform(0.999, 1.001, old.shape)).astype(old.dtype))


def oracle(fn: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> Known | None:
    """The leaves of `fn(*args)` with all floats widened to float64; None where the function has no such form."""
    static = {k: v for k, v in options.items() if k.startswith("static")}
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wide = jax.tree.map(_widened, list(args))
        done = attempt(lambda: jax.jit(fn, **static)(*wide))
        return None if done.error is not None else (_leaves(done.value), 0.0)


def _widened(x: Any) -> Any:
    if not hasattr(x, "dtype") or not jnp.issubdtype(x.dtype, jnp.inexact):
        return x
    return jnp.asarray(
        np.asarray(x).astype(np.complex128 if jnp.issubdtype(x.dtype, jnp.complexfloating) else np.float64)
    )


def _text(e: BaseException) -> str:
    lines = [line for line in str(e).splitlines() if line.strip()]
    return f"{type(e).__name__}: {lines[0][:240] if lines else ''}"


def _first(x: np.ndarray, where: np.ndarray) -> Any:
    x = np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x
    return x[np.unravel_index(int(np.argmax(where)), where.shape)]


def _show(x: np.ndarray, y: np.ndarray, where: np.ndarray) -> str:
    return f"{_first(x, where)} | ours {_first(y, where)} ({int(where.sum())} of {where.size})"
