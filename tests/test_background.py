"""Plans made behind the callers' backs: plain jax.jit answers until they are there."""

from __future__ import annotations

import dataclasses
import gc
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.api.direct import UNKNOWN
from xcoexec.errors import CoexecWarning
from xcoexec.frontend.worth import small
from xcoexec.session import background, pending, stages
from xcoexec.session.begin import Beginning
from xcoexec.session.pending import LOOKED, PendingSession
from xcoexec.session.session import Session

from .support import until

pytestmark = pytest.mark.usefixtures("quick_xla")

X = jnp.asarray(np.random.default_rng(0).standard_normal((1, 40, 40, 64)), jnp.float32)
W = jnp.asarray(np.random.default_rng(1).standard_normal((3, 3, 1, 64)), jnp.float32)


def depthwise(w, x):
    """A layer for which kernels take a small part of XLA:CPU's time, so that its plan wins on a busy machine too."""
    out = jax.lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=x.shape[-1]
    )
    return jax.nn.relu(out) + 1.0


def co(fn=depthwise, **words):
    return xcoexec.jit(fn, **{"wait": False, **words})


@pytest.fixture(autouse=True)
def begins_plain(monkeypatch):
    """First calls are plain jax.jit's, whatever other tests have left on disk."""
    monkeypatch.setattr(Beginning, "with_plan", lambda self: False)


@pytest.fixture
def held():
    """Keeps the background thread busy until it is let go."""
    go, began = threading.Event(), threading.Event()

    def hold():
        began.set()
        go.wait(60)

    background.submit(hold)
    assert began.wait(60)
    yield go
    go.set()


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_first_call_is_plain_and_later_ones_are_planned(held):
    fast = co()
    near(fast(W, X), jax.jit(depthwise)(W, X))
    report = fast.report(W, X)
    assert report.ran == "jit" and "planning: waiting for its turn" in str(report)
    assert not fast.ready(timeout=0.01)
    held.set()
    assert fast.ready(timeout=600)
    assert fast.report(W, X).ran == "xco"
    near(fast(W, X), jax.jit(depthwise)(W, X))


def test_bound_functions_too(held):
    fast = co().bind(W)
    near(fast(X), jax.jit(depthwise)(W, X))
    near(fast(np.asarray(X)), jax.jit(depthwise)(W, X))
    assert "planning" in fast.report().why and fast.report().ran == "jit"
    held.set()
    assert fast.ready(600) and fast.session(X).plan().placements
    near(fast(X), jax.jit(depthwise)(W, X))
    assert fast.report().ran == "xco" and fast.history() == []


def test_what_needs_a_plan_waits_for_it():
    fast = co()
    assert fast.plan(W, X).placements and not isinstance(fast.graph(W, X), PendingSession)
    for words in (dict(strategy="host"), dict(strict=True), dict(plan=xcoexec.Plan.uniform(1.0))):
        fast = co(**words)
        fast(W, X)
        assert fast.report(W, X).ran == "xco", words
    assert xcoexec.compile(depthwise, W, X).report().ran == "xco"
    fast = co(wait=True)
    fast(W, X)
    assert fast.ready(0) and fast.report(W, X).ran == "xco"


def test_the_environment_decides_where_nobody_says(monkeypatch):
    monkeypatch.setenv("XCOEXEC_WAIT", "0")
    assert not xcoexec.jit(depthwise)._function.options.waits
    monkeypatch.setenv("XCOEXEC_WAIT", "1")
    assert xcoexec.jit(depthwise)._function.options.waits
    assert not xcoexec.jit(depthwise, wait=False)._function.options.waits
    monkeypatch.setenv("XCOEXEC_WAIT", "yes")
    with pytest.raises(ValueError, match="got XCOEXEC_WAIT='yes'; valid is 0 or 1"):
        xcoexec.jit(depthwise)


def test_bad_words():
    with pytest.raises(TypeError, match="got wait='no'; valid is True or False"):
        xcoexec.jit(depthwise, wait="no")
    with pytest.raises(ValueError, match="got timeout=-1; valid are seconds from 0 on, or None"):
        co().ready(-1)
    with pytest.raises(ValueError, match="got timeout='soon'"):
        co().bind(W).ready("soon")


def test_errors_of_the_function_are_raised_by_its_call():
    fast = co(lambda w, x: depthwise(w, x) @ jnp.ones((3, 3)))
    with pytest.raises(TypeError, match="dot_general"):
        fast(W, X)
    assert fast.ready(1)


def test_weights_that_never_come_again_are_planned_as_inputs():
    for ready in (False, True):  # while something is planned, and when it has been planned in vain
        fast, i, session = co(), 0, None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            while not (isinstance(session, Session) and session.problem.step):
                near(fast(W + i % 7, X), jax.jit(depthwise)(W + i % 7, X))
                if ready or i % 8 == 7:
                    assert fast.ready(600)
                session, i = fast._last.current, i + 1
                assert i < 100
            near(fast(W + 8, X), jax.jit(depthwise)(W + 8, X))
        assert not session.problem.weights and fast._last.current is session


def test_new_weights_are_planned_for_too():
    fast = co()
    fast(W, X)
    assert fast.ready(600)
    other = W * 2.0
    near(fast(other, X), jax.jit(depthwise)(other, X))
    assert fast.ready(600)
    near(fast(other, X), jax.jit(depthwise)(other, X))
    assert fast.report(other, X).ran == "xco"


def test_inputs_that_are_given_away(held):
    fast = co(depthwise, donate_argnums=1)
    want = jax.jit(depthwise)(W, X)
    near(fast(W, jnp.array(X, copy=True)), want)
    held.set()
    assert fast.ready(600) and fast.report(W, X).ran == "xco"
    near(fast(W, jnp.array(X, copy=True)), want)


def test_weights_that_are_deleted_meanwhile_are_planned_for_anew(held):
    fast, gone = co(), jnp.array(W, copy=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(gone, X)
        gone.delete()
        held.set()
        fast.ready(600)
        fast(W, X)
        assert fast.ready(600)
        near(fast(W, X), jax.jit(depthwise)(W, X))
    assert fast.report(W, X).ran == "xco"


def test_what_fails_is_told_by_the_next_call_where_it_is_made(monkeypatch):
    fast = co()
    monkeypatch.setattr("xcoexec.api.entry.prepared", None)
    fast(W, X)
    assert fast.ready(600)
    with pytest.warns(CoexecWarning, match="planning: TypeError"):
        near(fast(W, X), jax.jit(depthwise)(W, X))


def test_warnings_of_the_background_come_with_the_next_call(held, monkeypatch):
    from xcoexec.session import prepare

    def broken(*_):
        raise RuntimeError("no machine here")

    monkeypatch.setattr(prepare, "_machine", broken)
    fast = co()
    fast(W, X)
    held.set()
    assert fast.ready(600)
    with pytest.warns(CoexecWarning, match="no machine here") as told:
        near(fast(W, X), jax.jit(depthwise)(W, X))
    assert [w.filename for w in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(W, X)


def test_settings_of_the_caller_hold_in_the_background():
    fast = co(lambda w, x: x.reshape(-1, 64) @ w)
    w = jnp.asarray(np.random.default_rng(2).standard_normal((64, 64)), jnp.float32)
    with jax.enable_x64(True):
        x = jnp.asarray(np.random.default_rng(3).standard_normal((64, 64)))
        assert fast(w, x).dtype == jnp.float64 and fast.ready(600) and fast(w, x).dtype == jnp.float64
    assert fast(w, X).dtype == jnp.float32


def test_threads_call_while_a_plan_is_made():
    fast, want, errors = co(), np.asarray(jax.jit(depthwise)(W, X)), []
    end = time.monotonic() + 600

    def call():
        try:
            while fast.report(W, X).ran == "jit" and time.monotonic() < end:
                near(fast(W, X), want)
            near(fast(W, X), want)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and fast.report(W, X).ran == "xco"


def test_a_budget_is_kept_and_the_next_start_goes_on(monkeypatch):
    monkeypatch.setenv("XCOEXEC_PLAN_SECONDS", "1e-9")
    fast = co()
    near(fast(W, X), jax.jit(depthwise)(W, X))
    assert fast.ready(600)
    with pytest.warns(CoexecWarning, match="XCOEXEC_PLAN_SECONDS=1e-09 are over; the next start goes on"):
        near(fast(W, X), jax.jit(depthwise)(W, X))
    assert fast.report(W, X).ran == "jit"
    with pytest.raises(xcoexec.BindError, match="XCOEXEC_PLAN_SECONDS"):
        co(strict=True)(W, X)
    monkeypatch.setenv("XCOEXEC_PLAN_SECONDS", "600")
    fast = co()
    fast(W, X)
    assert fast.ready(600) and fast.report(W, X).ran == "xco"
    for bad in ("soon", "-1", "0", "nan"):
        monkeypatch.setenv("XCOEXEC_PLAN_SECONDS", bad)
        with pytest.raises(ValueError, match=f"got XCOEXEC_PLAN_SECONDS='{bad}'; valid are seconds above 0"):
            xcoexec.jit(depthwise)


def test_most_calls_need_no_look_while_a_plan_is_made(held, monkeypatch):
    """What comes between is seen all the same: measured calls that a call waits for, other weights, and the plan."""
    monkeypatch.setattr("xcoexec.session.pending.REST_SECONDS", 60.0)  # calls are as long as the machine is busy
    fast, plain = co(), jax.jit(depthwise)(W, X)
    fast(W, X)
    pending = fast._last.current
    for _ in range(2 * LOOKED):
        near(fast(W, X), plain)
    rest, looked = fast._rest, pending._looked
    assert rest is not None
    fast(W, X)
    assert fast._rest is rest and pending._looked == looked
    pending.gate._open.clear()
    threading.Timer(0.1, pending.gate._open.set).start()
    began = time.monotonic()
    fast(W, X)
    assert pending._looked == looked + 1 and time.monotonic() - began > 0.05, "this call waits for measured ones"
    held.set()
    assert fast.ready(600) and fast.report(W, X).ran == "xco"
    looked = pending._looked
    near(fast(W, X), plain)
    assert pending._looked == looked and fast._rest is None, "the next call takes the plan, and those behind it"


def test_planning_takes_brief_turns(held):
    assert sys.getswitchinterval() <= 1e-4 * 1.01
    held.set()
    until(lambda: sys.getswitchinterval() > 1e-3)


# -- small functions
def test_small_functions_are_never_planned():
    fast = xcoexec.jit(lambda x: jnp.sin(x) * 2, wait=False)
    x = jnp.ones(8)
    threads = threading.active_count()
    for _ in range(3):
        near(fast(x), jnp.sin(x) * 2)
    assert fast.ready(0) and fast.report(x).ran == "jit" and "microseconds" in fast.report(x).why
    assert fast._rest is not None and threading.active_count() <= threads


def test_a_larger_shape_of_a_small_function_is_planned():
    fast = xcoexec.jit(lambda w, x: jax.nn.relu(x @ w), wait=False)
    w = jnp.ones((4, 4))
    near(fast(w, w), w @ w)
    near(fast(w, w), w @ w)
    assert fast._rest is not None
    big = jnp.asarray(np.random.default_rng(4).standard_normal((512, 512)), jnp.float32)
    for _ in range(2):
        fast(big, big)
    assert fast._rest is None and fast.ready(600) and len(fast._entries) == 2
    assert fast.report(big, big).why != fast.report(w, w).why


def test_small_functions_under_transformations():
    fast = xcoexec.jit(lambda x: jnp.sin(x) * 2, wait=False)
    x = jnp.arange(3.0)
    for _ in range(2):
        near(fast(x), jnp.sin(x) * 2)
        near(jax.jit(lambda y: fast(y) + 1)(x), jnp.sin(x) * 2 + 1)
        near(jax.grad(lambda y: fast(y).sum())(x), 2 * jnp.cos(x))
        near(jax.vmap(fast)(x), jnp.sin(x) * 2)
    near(fast(np.arange(3.0, dtype=np.float32)), jnp.sin(x) * 2)
    for _ in range(UNKNOWN + 2):  # NumPy's array had a program of its own, in a call that nobody looked at
        near(fast(1.0), np.sin(1.0) * 2)
    assert fast._rest is not None


@pytest.mark.parametrize(
    "fn, args, want",
    [
        (lambda x: x + 1, (jnp.ones(10),), True),
        (lambda x: x + 1, (jnp.ones(1_000_000),), False),
        (lambda x: x @ x, (jnp.ones((8, 8)),), True),
        (lambda x: x @ x, (jnp.ones((256, 256)),), False),
        (lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=10)[0], (jnp.ones(8),), True),
        (lambda x: jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=100_000)[0], (jnp.ones(8),), False),
        (lambda x: jax.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), (jnp.ones(8),), False),
        (lambda x: jax.jit(jax.jit(lambda y: y @ y))(x), (jnp.ones((256, 256)),), False),
        (lambda: 3, (), True),
    ],
)
def test_how_small_is_told(fn, args, want):
    assert small(jax.make_jaxpr(fn)(*args)) is want


# -- the process
SCRIPT = """
import sys, time, jax, jax.numpy as jnp, numpy as np, xcoexec
def fn(w, x):
    for _ in range(3): x = jax.nn.relu(x @ w)
    return x
w = jnp.ones((600, 600))
fast = xcoexec.jit(fn)
print(float(fast(w, w).sum()) > 0, fast.report(w, w).ran, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "time.sleep(0.7)", "raise SystemExit"])
def test_a_process_ends_while_a_plan_is_made(end, tmp_path):
    from xcoexec.config import environment_with

    env = environment_with(XCOEXEC_WAIT="0", XCOEXEC_CACHE_DIR=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(end=end)], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0 and done.stdout == "True jit\n" and done.stderr == "", done.stderr


@pytest.fixture
def early(monkeypatch, own_cache):
    """The plan that wins before layers are measured; what comes after it waits until it is let go, and may raise."""
    go, raises = threading.Event(), []
    contest, winner = stages.contest, lambda s: dataclasses.replace(s.all_host)

    def rest(*args):
        go.wait(60)
        for error in raises:
            raise error
        return contest(*args)

    monkeypatch.setattr(stages, "clear_winner", winner)
    monkeypatch.setattr(stages, "contest", rest)
    yield go, raises
    go.set()


def test_an_early_winner_is_in_use_while_planning_goes_on(early):
    go, _ = early
    fast, want = co(), jax.jit(depthwise)(W, X)
    fast(W, X)
    until(lambda: fast.report(W, X).ran == "xco")
    near(fast(W, X), want)
    assert not fast.ready(0.01), "layers are still measured"
    assert not fast._last.current.settled
    go.set()
    assert fast.ready(600) and fast.plan(W, X).measured
    near(fast(W, X), want)


@pytest.mark.parametrize(
    ("error", "said"),
    [(InterruptedError("no time"), "planning was cut short: no time"), (ValueError("odd"), "planning failed: odd")],
)
def test_an_early_winner_stays_where_planning_fails(early, error, said):
    go, raises = early
    raises.append(error)
    fast = co()
    fast(W, X)
    go.set()
    assert fast.ready(600)
    assert fast.report(W, X).ran == "xco" and fast._last.current.history == [said]
    near(fast(W, X), jax.jit(depthwise)(W, X))


def test_bound_functions_wait_for_the_rest_too(early):
    go, _ = early
    fast = co().bind(W)
    fast(X)
    until(lambda: fast.report().ran == "xco")
    found = []
    thread = threading.Thread(target=lambda: found.append(fast.plan()))
    thread.start()
    assert not found
    go.set()
    thread.join(600)
    assert found and found[0].measured


def test_planning_waits_for_the_first_results(monkeypatch):
    done, asked = [False], []

    def there(result):
        asked.append(1)
        return done[0]

    monkeypatch.setattr(pending, "there", there)
    fast = co()
    out = fast(W, X)
    until(lambda: len(asked) > 2)
    assert "waiting for the first result" in fast.report(W, X).why
    done[0] = True
    assert fast.ready(600)
    near(out, jax.jit(depthwise)(W, X))


def test_a_first_result_that_is_a_key():
    fast = co(lambda w, x, key: (jax.random.split(key)[0], depthwise(w, x)))
    args = W, X, jax.random.key(0)
    near(fast(*args)[1], jax.jit(depthwise)(W, X))
    assert fast.ready(600) and fast.plan(*args).placements
    near(fast(*args)[1], jax.jit(depthwise)(W, X))


def test_what_is_refused_in_the_background_is_not_kept_alive(monkeypatch):
    monkeypatch.setenv("XCOEXEC_PLAN_SECONDS", "0.000001")
    w, x = W + 0, X + 0
    fast = co()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast(w, x)
        assert fast.ready(600) and "are over" in fast.report(w, x).why
    seen = weakref.ref(x), weakref.ref(w)
    del w, x
    until(lambda: gc.collect() >= 0 and not any(r() is not None for r in seen))


def test_who_plans_does_not_wait_for_itself():
    asked = []

    def progress(stage, done, total):
        if not asked:
            asked.append((fast.ready(), fast.plan(W, X).chosen))

    fast = co(progress=progress)
    fast(W, X)
    assert fast.ready(600)
    assert asked[0][0] is False and "planning" in asked[0][1]


def test_a_script_that_ends_while_its_function_is_planned_is_silent():
    script = (
        "import jax, xcoexec; f = xcoexec.jit(lambda w, x: jax.nn.relu(x @ w) @ w); "
        "a = jax.numpy.ones((512, 512)); f(a, a)"
    )
    env = {**os.environ, "XCOEXEC_WAIT": "0"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [{"wait": False}, {"wait": True}, {"strategy": "host"}], ids=str)
def test_a_clock_that_stands_still(words, own_cache):
    """Nothing is measured by it, and nothing waits for it; a plan is made when it goes on."""
    fast, still = co(**words), time.perf_counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "perf_counter", lambda: still)
        for _ in range(3):
            fast(W, X)
        assert fast.ready(5) and "the clock stands still" in fast.plan(W, X).chosen
    fast(W, X)
    assert fast.ready(300) and "clock" not in fast.plan(W, X).chosen


@pytest.mark.parametrize("words", [{"wait": True}, {"strategy": "host"}], ids=str)
def test_what_has_no_elements_raises_what_jit_raises(words):
    with pytest.raises(TypeError) as theirs:
        jax.jit(depthwise)(W, jax.ShapeDtypeStruct(X.shape, X.dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError) as ours:
            co(**words)(W, jax.ShapeDtypeStruct(X.shape, X.dtype))
    assert str(ours.value) == str(theirs.value)
