"""Bad input to streams and schedulers: one sentence at the call that got it, before anything begins."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import re
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xcoexec
from xcoexec.planning.spans import Span
from xcoexec.streams import Power, Scheduler, Twin, admits, model, task
from xcoexec.streams.arguments import shown
from xcoexec.streams.edf import Policy
from xcoexec.streams.jobs import BOTH, Accuracy, Block, Task, Way
from xcoexec.streams.neuropipe import Cut
from xcoexec.streams.policies import POLICIES
from xcoexec.streams.replicas import Replica, deployment
from xcoexec.streams.virtual import releases, simulate

from .support import array
from .test_scheduler import Sleepy

pytestmark = pytest.mark.usefixtures("quick_xla", "short_collections")

NAN, INF = float("nan"), float("inf")


def _label(value: Any) -> str:
    """A test's name, the same in every process."""
    return re.sub(r" at 0x\w+", "", shown(value))


def _begun() -> tuple[list[str], bool]:
    """Threads, and whether the collector leaves anything alone."""
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("xcoexec-s")), gc.get_freeze_count() > 1000


def refused(call: Callable[[], Any], error: type[Exception], *words: str) -> None:
    """One line: who speaks, what was got, what is valid. No thread begins and the collector works as before."""
    before = _begun()
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert type(caught.value) is error and re.fullmatch(
        r"xcoexec\.[\w.]+(\(\))?: got [^\n]*; valid (is|are) [^\n]*\.|xcoexec[^\n]* got [^\n]*; valid [^\n]*\.", text
    ), text
    assert len(text) < 600 and all(w in text for w in words), text
    assert _begun() == before == ([], False)


def _task(**given: Any) -> Any:
    return task(
        given.pop("name", "t"), given.pop("network", Sleepy()), given.pop("x", None), **{"deadline": 1.0, **given}
    )


NUMBERS: tuple[tuple[Any, type[Exception]], ...] = (
    ("x", TypeError),
    (None, TypeError),
    ([1.0], TypeError),
    (1j, TypeError),
)
NUMBERS += ((True, ValueError), (NAN, ValueError), (-1, ValueError), (-INF, ValueError), (10**400, ValueError))


@pytest.mark.parametrize(("value", "error"), NUMBERS)
@pytest.mark.parametrize("what", ["deadline", "period", "bound"])
def test_a_tasks_terms(what: str, value: Any, error: type[Exception]) -> None:
    if what == "period" and value is None:
        assert _task(period=None)[1].period is None
        return
    got = f"got {what}={shown(value)} for the task 't'"
    refused(lambda: _task(**{what: value}), error, got)
    terms = {"deadline": 1.0, what: value}
    refused(lambda: Task("t", Sleepy().blocks, **terms), error, got)


@pytest.mark.parametrize(
    "given",
    [
        dict(deadline=0),
        dict(period=0),
        dict(period=INF),
        dict(bound=1.01),
        dict(bound=INF),
        dict(name=""),
        dict(deadline=np.zeros(())),
    ],
    ids=_label,
)
def test_terms_beyond_what_is_valid(given: dict[str, Any]) -> None:
    refused(
        lambda: _task(**given),
        TypeError if isinstance(given.get("deadline"), np.ndarray) else ValueError,
        f"got {next(iter(given))}=",
    )


def test_numbers_of_any_kind_are_taken() -> None:
    _, made = _task(deadline=np.float32(0.5), period=Fraction(1, 4), bound=np.float64(0.25))
    assert (made.deadline, made.period, made.bound) == (0.5, 0.25, 0.25)
    pipe = xcoexec.pipeline(
        lambda x: x + 1, preprocess=lambda x: x, depth=np.int64(2), workers=np.int32(2), timeout=INF
    )
    assert list(pipe([1, 2])) == [2, 3]


def test_no_deadline_means_the_same_in_task_and_release() -> None:
    """inf: such jobs come behind those with a deadline, and are never late; a release may take the deadline away or set
    one.
    """
    gate = threading.Event()
    net = Sleepy(0.001, 2, fault=lambda x: gate.wait(600) if x == "held" else None)
    with Scheduler([task("never", net, deadline=INF), task("soon", net, deadline=30.0)], "pinned") as s:
        futures = [
            s.release("never", "held"),
            s.release("never", 1),
            s.release("soon", 2, INF),
            s.release("soon", 3),
            s.release("never", 4, 20.0),
        ]
        gate.set()
        assert [f.result(120) for f in futures[1:]] == [10, 20, 30, 40] and s.served().outcomes == {"in time": 5}
    assert list(dict.fromkeys(x for x, _, _ in net.ran)) == ["held", 4, 3, 1, 2]


@pytest.mark.parametrize("policy", POLICIES)
def test_tasks_without_a_deadline_under_every_policy(policy: str) -> None:
    found = simulate(releases([Task("t", Sleepy().blocks, INF, 0.001)], 0.1), policy)
    assert all((j.end is None) == j.missed for j in found.jobs)
    assert POLICIES[policy].renews or not any(j.missed for j in found.jobs)  # there one job is there at a time
    assert admits([Task("t", Sleepy(0.001).blocks, INF, 0.1)], policy)
    nowhere = (Block("a", (Way("device", 1.0),)), Block("b", (Way("host", 1.0),)))
    jobs = simulate(releases([Task("t", nowhere, INF, 2.0)], 6.0), policy).jobs
    assert all(
        j.missed == (POLICIES[policy].whole is not None) and (j.end is None) == j.missed for j in jobs
    )  # no half runs the whole


# -- networks -------------------------------------------------------------------------------------------


def _two(w: Any, x: Any) -> Any:
    return jnp.tanh(jnp.tanh(x @ w) @ w)


@dataclasses.dataclass
class _Lacking:
    """All that a network has, but without `run`."""

    blocks: Any = ()
    accuracy: Any = None

    def begin(self, x: Any) -> Any: ...

    def result(self, state: Any) -> Any: ...


NETWORKS = {
    "a function": _two,
    "a jitted one": xcoexec.jit(_two),
    "none": None,
    "a class": Sleepy,
    "lacking": _Lacking(),
    "an array": np.ones((300, 300)),
}


@pytest.mark.parametrize("kind", NETWORKS)
def test_what_is_no_network(kind: str) -> None:
    refused(
        lambda: _task(network=NETWORKS[kind], x=array(2, 4)),
        TypeError,
        "xcoexec.task: got network=",
        "for the task 't'; valid is what xcoexec.jit(...).bind",
    )


def test_inputs_that_a_function_does_not_take() -> None:
    fast = xcoexec.jit(_two, strategy="host").bind(array(4, 4))
    refused(lambda: _task(network=fast), TypeError, "got the function of 't' with resident weights, without an input")
    for x, got in (
        (array(2, 5), "float32[2,5] for"),
        ("text", "str[] for"),
        ({"a": array(2, 5)}, "(float32[2,5]) in PyTreeDef({'a': *}) for"),
    ):
        refused(
            lambda x=x: _task(network=fast, x=x),
            ValueError,
            f"xcoexec.task: got an input of shapes {got} the task 't', for which the function raises",
        )
    refused(lambda: model(_two, array(2, 4)), TypeError, "xcoexec.streams.model: got resident=<function _two")
    refused(
        lambda: model(fast, array(2, 5)),
        ValueError,
        "xcoexec.streams.model: got an input of shapes float32[2,5], for which",
    )
    refused(
        lambda: model(fast, array(2, 4), spans=[Span(0, 1)]),
        ValueError,
        "valid is a sequence of spans that cover layers 0 to 2",
    )
    refused(lambda: model(fast, array(2, 4), spans=3), TypeError, "got spans=3")
    refused(lambda: model(fast, array(2, 4), twins=[3]), TypeError, "got twins=[3]")
    refused(
        lambda: model(fast, array(2, 4), twins=[Twin(0, "left", _two, None)]),
        ValueError,
        "valid is a sequence of Twins",
    )
    refused(lambda: model(fast, array(2, 4), accuracy=0.9), TypeError, "got accuracy=0.9")


def test_jobs_of_another_shape_are_refused_at_their_release() -> None:
    """Also those whose arrays fit but lie elsewhere in the input."""
    fast = xcoexec.jit(lambda w, d: jnp.tanh(jnp.tanh(d["a"] @ w) @ w) - d["b"], strategy="host").bind(array(4, 4))
    x = {"a": array(2, 4), "b": array(2, 4)}
    with Scheduler([task("t", fast, x, deadline=600.0)]) as s:
        for bad in (
            {"a": x["a"], "c": x["b"]},
            [x["a"], x["b"]],
            {"a": x["a"], "b": array(3, 4)},
            x["a"],
            3,
            None,
            {"a": np.ones((2, 4)), "b": x["b"]},
        ):
            with pytest.raises(
                ValueError,
                match=r"got an input of shapes .*; valid are \(float32\[2,4\], float32\[2,4\]\) in PyTreeDef\(.*\),"
                " for which the",
            ):
                s.release("t", bad)
        assert s.served().released == 0
        want = (
            np.tanh(
                np.tanh(np.asarray(x["a"], np.float64) @ np.asarray(array(4, 4), np.float64))
                @ np.asarray(array(4, 4), np.float64)
            )
            - x["b"]
        )
        assert np.abs(np.asarray(s.release("t", x).result(120)) - want).max() < 1e-5


BLOCKS: dict[str, Any] = {
    "none": (),
    "a list": [Block("b", (Way("host", 1.0),))],
    "no block": (3,),
    "without ways": (Block("b", ()),),
    "of twins": (Block("b", (Way("host", 1.0, True),)),),
    "divided alone": (Block("b", (Way(BOTH, 1.0),)),),
    "of no time": (Block("b", (Way("host", 0.0),)),),
    "never": (Block("b", (Way("host", INF),)),),
    "elsewhere": (Block("b", (Way("tpu", 1.0),)),),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_that_cannot_be_run(kind: str) -> None:
    refused(
        lambda: Task("t", BLOCKS[kind], 1.0),
        TypeError if kind == "a list" else ValueError,
        "got blocks=",
        "valid is a tuple of blocks",
    )


def test_accuracies() -> None:
    refused(lambda: Task("t", Sleepy().blocks, 1.0, accuracy=0.9), TypeError, "got accuracy=0.9 for the task 't'")
    refused(
        lambda: Task("t", Sleepy().blocks, 1.0, accuracy=Accuracy({frozenset({1}): 0.9})),
        ValueError,
        "valid is an Accuracy of paths",
    )


# -- schedulers -----------------------------------------------------------------------------------------

SETS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "one task": (lambda: _task(), TypeError, "got the task 't' alone; valid is a list"),
    "none": (lambda: [], ValueError, "got no tasks"),
    "numbers": (lambda: [1], TypeError, "got 1 among the tasks"),
    "a number": (lambda: 3, TypeError, "got tasks=3"),
    "nothing": (lambda: None, TypeError, "got tasks=None"),
    "text": (lambda: "ab", TypeError, "got tasks='ab'"),
    "a mapping": (lambda: {"t": _task()}, TypeError, "got tasks={'t': "),
    "tasks alone": (lambda: [_task()[1]], TypeError, "among the tasks"),
    "networks alone": (lambda: [Sleepy()], TypeError, "among the tasks"),
    "an array": (lambda: [np.ones((500, 500))], TypeError, "got float64[500,500] among the tasks"),
    "two of a name": (lambda: [_task(), _task()], ValueError, "two tasks of one name, 't'"),
    "a generator of numbers": (lambda: (i for i in range(3)), TypeError, "got 0 among the tasks"),
}


@pytest.mark.parametrize("kind", SETS)
def test_sets_of_tasks(kind: str) -> None:
    made, error, words = SETS[kind]
    refused(lambda: Scheduler(made()), error, words)


def _policy(choose: Any) -> Policy:
    return Policy("mine", choose)


OPTIONS: list[tuple[dict[str, Any], type[Exception]]] = [
    (dict(policy="x"), ValueError),
    (dict(policy=3), TypeError),
    (dict(policy=[]), TypeError),
    (dict(policy=None), TypeError),
    (dict(policy=_policy("slack")), TypeError),
    *((dict(queue=q), ValueError) for q in (0, -1, 1.5, True, NAN)),
    *((dict(queue=q), TypeError) for q in ("x", None)),
    (dict(admission="yes"), TypeError),
    (dict(admission=1), TypeError),
    *((dict(registry=r), TypeError) for r in (3, "x", True, object(), dict)),
]


@pytest.mark.parametrize(("given", "error"), OPTIONS, ids=_label)
def test_a_schedulers_options(given: dict[str, Any], error: type[Exception]) -> None:
    refused(lambda: Scheduler([_task()], **given), error, f"xcoexec.Scheduler: got {next(iter(given))}=")


def test_a_policy_of_whole_networks_wants_a_half_that_runs_them() -> None:
    net = Sleepy()
    net.blocks = (Block("a", (Way("device", 0.001),)), Block("b", (Way("host", 0.001),)))
    for policy in ("pinned", "mono_sched", "mono_adapt"):
        refused(
            lambda policy=policy: Scheduler([_task(network=net)], policy),
            ValueError,
            "of which neither half runs every block",
            policy,
        )
    net.blocks = (Block("a", (Way("device", 0.02), Way("host", 0.001))), Block("b", (Way("device", 0.001),)))
    with Scheduler(
        [task("t", net, deadline=600.0)], "mono_sched"
    ) as s:  # the second job would begin on the host, and never end
        assert [f.result(120) for f in [s.release("t", i) for i in range(4)]] == [0, 10, 20, 30]


def test_a_registry_is_shared_by_schedulers() -> None:
    prometheus = pytest.importorskip("prometheus_client")
    registry = prometheus.CollectorRegistry()
    for x in (1, 2):
        with Scheduler([_task(deadline=600.0)], registry=registry) as s:
            assert s.release("t", x).result(120) == 10 * x
    assert registry.get_sample_value("xcoexec_released_total", {"task": "t"}) == 2
    taken = prometheus.CollectorRegistry()
    prometheus.Gauge("xcoexec_ended", "Somebody else's", registry=taken)
    refused(lambda: Scheduler([_task()], registry=taken), ValueError, "got a registry that refuses a name")
    assert taken.get_sample_value("xcoexec_released_total", {"task": "t"}) is None and len(list(taken.collect())) == 1


RELEASES: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    *((("t", 1, d), e, f"got deadline={shown(d)} for the task 't'") for d, e in NUMBERS if d is not None),
    (("t", 1, 0), ValueError, "got deadline=0 for the task 't'"),
    *(((n, 1), ValueError, f"got task {n!r}; valid are t") for n in ("u", "", None, 3, [], ("t",))),
]


@pytest.fixture
def serving() -> Iterator[Scheduler]:
    with Scheduler([_task(deadline=600.0)]) as s:
        yield s


@pytest.mark.parametrize(("given", "error", "words"), RELEASES, ids=_label)
def test_releases(serving: Scheduler, given: tuple[Any, ...], error: type[Exception], words: str) -> None:
    for call in (lambda: serving.release(*given), lambda: asyncio.run(serving.submit(*given))):
        with pytest.raises(error) as caught:
            call()
        assert words in str(caught.value) and "\n" not in str(caught.value) and serving.served().released == 0


@pytest.mark.parametrize(("timeout", "error"), [("x", TypeError), (NAN, ValueError), (True, ValueError)])
def test_a_bad_timeout_releases_nothing(serving: Scheduler, timeout: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"got timeout=.*; valid is a number of seconds, or None\."):
        asyncio.run(serving.submit("t", 1, timeout=timeout))
    assert serving.served().released == 0


RUNS: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    *(((s, {"p": 1}), e, f"got seconds={shown(s)}") for s, e in (*NUMBERS, (INF, ValueError))),
    ((0.1, {}), ValueError, "got inputs={} without 'p'"),
    ((0.1, {"q": 1}), ValueError, "without 'p'"),
    ((0.1, None), ValueError, "got inputs=None without 'p'"),
    ((0.1, {"p": 1}, "ab"), TypeError, "got offsets='ab'"),
    ((0.1, {"p": 1}, 3), TypeError, "got offsets=3"),
    ((0.1, {"p": 1}, [-1.0]), ValueError, "got offsets=[-1.0]"),
    ((0.1, {"p": 1}, [NAN]), ValueError, "got offsets=[nan]"),
    ((0.1, {"p": 1}, [0.0, 0.0]), ValueError, "got 2 offsets for 1 tasks"),
]


@pytest.mark.parametrize(("given", "error", "words"), RUNS, ids=_label)
def test_runs_of_periodic_tasks(given: tuple[Any, ...], error: type[Exception], words: str) -> None:
    """Nothing is released before all is known to be there."""
    with Scheduler([_task(name="p", period=0.01)]) as s:
        with pytest.raises(error) as caught:
            s.run(*given)
        assert words in str(caught.value) and s.served().released == 0


def test_admission_of_what_is_no_task() -> None:
    refused(lambda: admits([_task()]), TypeError, "got (<", "valid are Tasks")
    refused(lambda: admits([_task()[1]], "x"), ValueError, "got policy='x'")
    refused(lambda: admits([_task()[1]], periods=0), ValueError, "got periods=0")
    refused(lambda: releases([_task()[1]], "x"), TypeError, "got seconds='x'")


# -- pipelines ------------------------------------------------------------------------------------------

_same = lambda x: x
PIPES: list[tuple[dict[str, Any], type[Exception]]] = [
    *((dict(fn=f), TypeError) for f in (3, None, "x", np.ones((300, 300)))),
    *(({what: f}, TypeError) for what in ("preprocess", "postprocess") for f in (3, "x", jnp.ones((300, 300)))),
    *(({what: n}, ValueError) for what in ("depth", "workers") for n in (0, -1, True, 1.5, NAN, INF)),
    *(({what: n}, TypeError) for what in ("depth", "workers") for n in ("x", None, [2])),
    *((dict(timeout=t), ValueError) for t in (0, -1, NAN, True)),
    *((dict(timeout=t), TypeError) for t in ("x", None)),
    (dict(cut="x"), ValueError),
    (dict(cut=3), TypeError),
    (dict(cut=["auto"]), TypeError),
    *(
        (dict(cut=Cut(c)), ValueError)
        for c in ((), 3, (("left", 0, 1),), (("host", 1, 2),), (("host", 0, 0),), (("host", 0, "1"),), (("host", 0),))
    ),
    (dict(cut="auto"), TypeError),  # of a function that is not bound
    (dict(cut=Cut((("host", 0, 1),))), TypeError),
    *((dict(power=p), TypeError) for p in (3, "save", True)),
]


@pytest.mark.parametrize(("given", "error"), PIPES, ids=_label)
def test_a_pipelines_arguments(given: dict[str, Any], error: type[Exception]) -> None:
    what = next(iter(given))
    refused(
        lambda: xcoexec.pipeline(given.get("fn", _same), **{k: v for k, v in given.items() if k != "fn"}),
        error,
        f"xcoexec.pipeline: got {'network' if what == 'fn' else what}=",
    )


def test_cuts_of_a_jitted_function_that_is_not_bound() -> None:
    refused(
        lambda: xcoexec.pipeline(xcoexec.jit(_two), cut="neuropipe"),
        TypeError,
        "got cut='neuropipe' with CoPjitFunction; valid is what xcoexec.jit",
    )


@pytest.mark.parametrize("items", [3, None, 1.5, np.float32(1), np.ones(()), object(), jnp.ones(())], ids=_label)
def test_inputs_that_are_not_iterable(items: Any) -> None:
    refused(
        lambda: xcoexec.pipeline(_same)(items),
        TypeError,
        f"xcoexec.pipeline: got items={shown(items)}; valid is an iterable",
    )


def test_an_iterable_that_raises_before_its_first_item() -> None:
    class Broken:
        def __iter__(self) -> Iterator[int]:
            raise TypeError("not today")

    before = _begun()
    with pytest.raises(TypeError, match=r"^not today$"):
        xcoexec.pipeline(_same)(Broken())
    assert _begun() == before


@pytest.mark.parametrize(
    ("last", "error"), [(-1, ValueError), (1.5, ValueError), (True, ValueError), ("x", TypeError), (None, TypeError)]
)
def test_statistics_of_so_many_items(last: Any, error: type[Exception]) -> None:
    stream = xcoexec.pipeline(_same)(range(3))
    assert list(stream) == [0, 1, 2]
    refused(lambda: stream.stats(last), error, "got last=")
    refused(lambda: stream.timeline(3), TypeError, "got path=3")
    refused(lambda: xcoexec.pipeline(_same).periods(3), TypeError, "got around=3")


POWERS: list[tuple[dict[str, Any], type[Exception]]] = [
    *((dict(mode=m), TypeError) for m in (3, None, ["save"])),
    (dict(mode="turbo"), ValueError),
    *((dict(interval=t), ValueError) for t in (0, -1, NAN, INF, True)),
    (dict(interval="x"), TypeError),
    *(({what: 1}, TypeError) for what in ("allow_power_control", "dry_run")),
    *((dict(knobs=k), TypeError) for k in (3, [3], "x")),
    (dict(folder=3), TypeError),
]


@pytest.mark.parametrize(("given", "error"), POWERS, ids=_label)
def test_power(given: dict[str, Any], error: type[Exception]) -> None:
    refused(
        lambda: Power(**{"mode": "save", "allow_power_control": True, "knobs": [], **given}),
        error,
        f"xcoexec.streams.Power: got {next(iter(given))}=",
    )


def test_replicas() -> None:
    refused(lambda: Replica(3), TypeError, "got make=3; valid is a callable")
    refused(lambda: Replica(lambda: 3), TypeError, "got make()=3; valid is an xcoexec.Scheduler")
    refused(lambda: deployment(3), TypeError, "got make=3; valid is a callable")


# -- messages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        np.ones((400, 400)),
        jnp.ones((400, 400)),
        [np.ones(9999)] * 50,
        {i: np.ones(99) for i in range(99)},
        "x" * 9999,
        list(range(9999)),
    ],
    ids=lambda v: type(v).__name__,
)
def test_messages_are_short_and_show_no_arrays(value: Any) -> None:
    text = shown(value)
    assert len(text) < 300 and "1., 1." not in text and "1. 1." not in text


def test_what_cannot_be_looked_at_is_refused_too() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError("no")

        def __bool__(self) -> bool:
            raise RuntimeError("no")

    refused(lambda: _task(deadline=Rude()), TypeError, "got deadline=<Rude instance at 0x")
