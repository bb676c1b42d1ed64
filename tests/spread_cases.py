"""Networks spread over four devices of the host: run as a program, it writes what ran each part, where results lie, how
far they are from NumPy's in double precision, and what bad input is told.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xcoexec

RANDOM = np.random.default_rng(0)
LAYERS = 6


def normal(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


X, WIDE = normal(16, 400), normal(7, 400)
W = [{"w": normal(400, 400) / 20, "b": normal(400)} for _ in range(LAYERS)]


def stack(ws: Any, x: Any) -> Any:
    """Dense layers with a residual path around each."""
    for p in ws:
        x = x + jnp.tanh(x @ p["w"] + p["b"])
    return x


def by_numpy(ws: Any, x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    for p in ws:
        x = x + np.tanh(x @ p["w"].astype(np.float64) + p["b"])
    return x


def several(ws: Any, x: Any, *, scale: Any) -> dict[str, Any]:
    """Results of the first part, of the last one, of weights alone, an input, a number, and one of a weak type."""
    first = x @ ws[0]["w"]
    return {
        "last": stack(ws, x) * scale,
        "first": first,
        "weights": ws[1]["b"] * 2,
        "input": x,
        "one": 1.5,
        "count": jax.lax.full_like(x, 2.0).sum().astype(int),
    }


def step(ws: Any, x: Any, caches: Any) -> tuple[Any, Any]:
    """Each layer adds what it has seen in calls before, and notes what it sees now."""
    kept = []
    for p, c in zip(ws, caches, strict=True):
        y = jnp.tanh(x @ p["w"])
        kept.append({"sum": c["sum"] + y, "count": c["count"] + 1})
        x = x + c["sum"] + y
    return x, kept


def steps_by_numpy(ws: Any, x: np.ndarray, calls: int) -> np.ndarray:
    sums, out = [np.zeros_like(x, np.float64) for _ in ws], x
    for _ in range(calls):
        out = x.astype(np.float64)
        for i, p in enumerate(ws):
            y = np.tanh(out @ p["w"].astype(np.float64))
            out = out + sums[i] + y
            sums[i] = sums[i] + y
    return out


def apart(got: Any, want: Any) -> float:
    """The largest difference, as a part of the largest value."""
    g, w = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return float(np.abs(g - w).max() / max(float(np.abs(w).max()), 1e-30))


def told(call: Callable[[], object]) -> str:
    try:
        call()
    except (TypeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"
    return "nothing"


def spread_stack() -> dict[str, Any]:
    found: dict[str, Any] = {"errors": {}, "parts": {}, "engines": {}}
    for count in (1, 2, 3, 4):
        fast = xcoexec.jit(stack, strategy="host").spread(W, devices=count)
        for x in (X, jnp.asarray(WIDE), X):
            found["errors"][f"{count} {x.shape}"] = apart(fast(x), by_numpy(W, np.asarray(x)))
        found["parts"][count] = [d.id for d, _ in fast.parts]
        found["engines"][count] = [p.engine for p in fast.plan()] + [fast.report().ran]
    y = fast(X)
    found["home"] = [d.id for d in y.devices()]
    found["text"] = "part 2 on" in str(fast.report()) and "4 devices" in repr(fast)
    found["inside"] = apart(jax.jit(lambda x: fast(x) * 2)(X), 2 * by_numpy(W, X))
    found["in turn"] = apart([fast(X) for _ in range(20)][-1], by_numpy(W, X))
    back = xcoexec.jit(stack, strategy="host").spread(W, devices=jax.devices()[::-1])
    found["backwards"] = [apart(back(X), by_numpy(W, X)), [d.id for d, _ in back.parts]]
    return found


def spread_results() -> dict[str, Any]:
    fast, plain = xcoexec.jit(several, strategy="host").spread(W, devices=3), jax.jit(several)
    got, want = fast(X, scale=2.0), plain(W, X, scale=2.0)
    leaves = [(got[k], want[k]) for k in want]
    return {
        "apart": max(apart(a, b) for a, b in leaves),
        "types": all(a.dtype == b.dtype and a.weak_type == b.weak_type and a.shape == b.shape for a, b in leaves),
        "structure": jax.tree_util.tree_structure(got) == jax.tree_util.tree_structure(want),
    }


def spread_state() -> dict[str, Any]:
    fast = xcoexec.jit(step, strategy="host").spread(W, devices=3)
    caches: Any = [{"sum": jnp.zeros_like(X), "count": jnp.int32(0)} for _ in W]
    for _ in range(4):
        y, caches = fast(X, caches)
    places = [next(iter(c["sum"].devices())).id for c in caches]
    counts = [int(c["count"]) for c in caches]
    return {"apart": apart(y, steps_by_numpy(W, X, 4)), "places": places, "count": counts, "cuts": len(fast._chains)}


def spread_copies() -> dict[str, Any]:
    """Weights that somebody writes to later."""
    own = jax.tree_util.tree_map(np.array, W)
    fast = xcoexec.jit(stack, strategy="host").spread(own, devices=2)
    before = apart(fast(X), by_numpy(W, X))
    for p in own:
        p["w"][:] = 0
    return {
        "before": before,
        "after": apart(fast(X), by_numpy(W, X)),
        "new shape": apart(fast(WIDE), by_numpy(W, WIDE)),
    }


def spread_stream() -> dict[str, Any]:
    fast = xcoexec.jit(stack, strategy="host").spread(W, devices=3)
    items = [X + np.float32(k) for k in range(9)]
    with xcoexec.pipeline(fast, preprocess=lambda x: x, depth=2)(items) as stream:
        out = list(stream)
        stages = list(stream.stats().stages)
    return {"apart": max(apart(y, by_numpy(W, x)) for y, x in zip(out, items, strict=True)), "stages": stages}


def spread_behind_calls() -> dict[str, Any]:
    """Parts that are planned in the background, with plain `jax.jit` first."""
    fast = xcoexec.jit(stack).spread(W, devices=2)
    errors = [apart(fast(X), by_numpy(W, X)) for _ in range(3)]
    ready = fast.ready(100)
    return {"apart": max(*errors, apart(fast(X), by_numpy(W, X))), "ready": ready}


def refused() -> dict[str, str]:
    spread = xcoexec.jit(stack).spread
    gone = xcoexec.jit(stack, donate_argnums=(1,)).spread(W)
    plan = xcoexec.Plan("device", ())

    def loud(ws: Any, x: Any) -> Any:
        jax.debug.print("{}", x[0, 0])
        return stack(ws, x)

    return {
        "none": told(lambda: spread(W, devices=0)),
        "more": told(lambda: spread(W, devices=5)),
        "negative": told(lambda: spread(W, devices=-1)),
        "bool": told(lambda: spread(W, devices=True)),
        "text": told(lambda: spread(W, devices="all")),  # type: ignore[arg-type]
        "twice": told(lambda: spread(W, devices=[jax.devices()[0]] * 2)),
        "empty": told(lambda: spread(W, devices=[])),
        "plan": told(lambda: xcoexec.jit(stack, plan=plan).spread(W)),
        "effects": told(lambda: xcoexec.jit(loud).spread(W)(X)),
        "given away": told(lambda: gone(X)),
        "nothing": told(lambda: xcoexec.jit(lambda ws, x: (ws, x)).spread(W)(X)),
        "too soon": told(lambda: spread(W).report()),
        "traced": told(lambda: jax.jit(lambda w: spread(w)(X))(W)),
        "shape": told(lambda: spread(W)(X[:, :3])),
        "cut": told(lambda: xcoexec.pipeline(spread(W), cut="auto")),
    }


CASES = (spread_stack, spread_results, spread_state, spread_copies, spread_stream, spread_behind_calls)


def main() -> None:
    """All of it as one text."""
    found = {f.__name__: f() for f in CASES}
    json.dump(found | {"refused": refused()}, sys.stdout)


if __name__ == "__main__":
    main()
