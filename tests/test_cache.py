"""The disk cache: reused, damaged, unwritable, missing, and what others or nobody sane has written there."""

from __future__ import annotations

import errno
import functools
import json
import os
import pathlib
import random
import re
import shutil
import stat
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xcoexec.codegen.kernels import gemm
from xcoexec.codegen.native import build, children, objects
from xcoexec.codegen.runtime import host
from xcoexec.codegen.store import disk, schema
from xcoexec.codegen.target import target
from xcoexec.measure import records

pytestmark = pytest.mark.usefixtures("quick_xla")

ROOT = pathlib.Path(__file__).parent.parent
RUN = """
import sys; sys.path.insert(0, ".")
begun = []; sys.addaudithook(lambda event, _: event == "subprocess.Popen" and begun.append(event))
import jax
from tests.support import array, co, error, oracle, assert_on_host
f = lambda w, x: jax.nn.relu(x @ w)
fast = co(f, array(16, 40))
assert error(fast(array(3, 16)), oracle(f, array(16, 40), array(3, 16))) < 1e-5
host = co(f, array(16, 40), strategy="host")
host(array(3, 16)); assert_on_host(host)
print("xcoexec.codegen.native.team" in sys.modules, len(begun))
"""


def _run(cache: str) -> str:
    env = {**os.environ, "XCOEXEC_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, env=env, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() + done.stderr


@pytest.fixture(scope="session")
def filled(once: Any) -> pathlib.Path:
    """A cache as a first process leaves it; `said` holds what that one has said."""

    def fill(folder: pathlib.Path) -> None:
        (folder / "said").write_text(_run(str(folder / "cache")))

    return once("filled", fill)


@pytest.fixture
def copied(filled: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of that cache, to damage."""
    return pathlib.Path(shutil.copytree(filled / "cache", tmp_path / "cache"))


def test_second_process_loads_everything(filled: pathlib.Path, copied: pathlib.Path) -> None:
    said = (filled / "said").read_text()  # native functions are compiled in a process of their own
    assert said.startswith("False ") and not said.startswith("False 0")
    files = {p: p.read_bytes() for p in copied.iterdir()}
    assert any(p.suffix == ".o" for p in files) and any(p.suffix == ".json" for p in files)
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in files)
    assert _run(str(copied)) == "False 0"  # no process is begun, and nothing is said, because nothing is wrong
    assert {p: p.read_bytes() for p in copied.iterdir()} == files


def test_without_any_cache(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where there can be none."""
    _run("")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    for place in ("", str(blocked / "cache")):
        monkeypatch.setenv("XCOEXEC_CACHE_DIR", place)
        disk.write("record", "x", b"data")
        assert disk.folder() is None and disk.read("record", "x") is None
    assert blocked.read_text() == "not a folder" and [*tmp_path.iterdir()] == [blocked]


def test_native_functions_compile_in_this_process_too(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Where no child process can run, the same objects come from this one."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no processes here")

    def forget() -> None:
        monkeypatch.setattr(build, "_sound", {})
        monkeypatch.setattr(build, "_addresses", {})  # what this process has linked is not kept once more
        build._native_apart.cache_clear()
        build.start_native.cache_clear()

    specs = (("native", "team", "stamp"), ("native", "team", "swap"))
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    forget()
    build._native_apart(target(), specs)
    apart = [disk.read("object", build._object_name(s, target())) for s in specs]
    assert None not in apart
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path / "further"))
    forget()
    monkeypatch.setattr(build.subprocess, "Popen", refuse)
    build._native_apart(target(), specs)
    assert not build._sound
    forget()
    assert [build._compile(s, target()) for s in specs] == apart


def test_many_kernels_are_compiled_by_several_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The same objects, whoever compiles them; a child that fails says why and leaves its share to this process."""
    from xcoexec.codegen.kernels import gemm
    from xcoexec.codegen.rules.expressions import COPY

    specs = [
        gemm.spec(mr, 1, False, (("in", 0), ("lit", "f", "inf"), ("min", 0, 1)), (), run)
        for mr in (1, 2, 3)
        for run in range(21, 26)
    ]
    monkeypatch.setattr(build.os, "sched_getaffinity", lambda _: {0, 1})
    for folder, fails in (("a", False), ("b", True)):
        monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path / folder))
        monkeypatch.setattr(build, "_addresses", {})
        if fails:
            monkeypatch.setattr(build, "_CHILD", "raise SystemExit('first line\\nthere is no such module')")
        caplog.clear()
        build.prepare(specs, target())
        assert ("failed (exit status 1)" in caplog.text and "there is no such module" in caplog.text) is fails
        assert all(build.kernel_address(s, target()) for s in specs) and COPY
    names = [sorted(p.name for p in (tmp_path / folder).iterdir()) for folder in "ab"]
    assert names[0] == names[1] and len(names[0]) == len(set(specs))


def test_who_gives_way_has_workers_compile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """This process writes no kernel's text and compiles none: not of many, and not of one that is asked for alone."""
    from xcoexec.codegen.kernels import gemm

    least = lambda text: (("in", 0), ("lit", "f", text), ("min", 0, 1))
    kernels = lambda *texts: [gemm.spec(mr, 1, False, least(t), (), 4) for t in texts for mr in (1, 2)]
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build, "_addresses", {})
    monkeypatch.setattr(build, "_compile", lambda spec, _: pytest.fail(f"{spec} is compiled here"))
    with children.giving_way():
        build.prepare(kernels("1.5", "2.5", "3.5", "4.5"), target())
        others = children.workers()
        assert others is not None and len(others) == min(2, build._cores())
        processes = [*others._all]
        assert all(build.kernel_address(s, target()) for s in kernels("1.5", "5.5"))
        assert others._all == processes, "the same ones again"
    assert children.workers() is None and all(p.poll() is not None for p in processes)
    assert len([*tmp_path.iterdir()]) == 10 and not caplog.text


@pytest.mark.skipif(not hasattr(os, "getpriority"), reason="this system has no such priorities")
def test_workers_give_way_unless_they_hurry() -> None:
    nice = lambda: os.getpriority(os.PRIO_PROCESS, children.workers()._all[0].pid) - os.getpriority(os.PRIO_PROCESS, 0)
    sleeping = lambda folder: [sys.executable, "-c", "import sys; sys.stdin.read(1); print(end='.', flush=True)"]
    with children.hurrying(True):
        assert children.workers() is None, "nobody gives way"
    with children.giving_way():
        for hurries, want in ((False, children.NICE), (True, 0), (False, children.NICE)):
            with children.hurrying(hurries):
                children.workers().do(sleeping, [b"."])
                assert nice() == want
            children.workers().close()


def test_workers_that_fail_leave_the_work_to_this_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    from xcoexec.codegen.kernels import gemm

    spec = gemm.spec(3, 1, False, (("in", 0), ("lit", "f", "8"), ("min", 0, 1)), (), 36)
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build, "_CHILD", "raise SystemExit('there is no such module')")
    with children.giving_way():
        assert build.kernel_address(spec, target())
        others = children.workers()
        assert others is not None and not len(others) and others.failed
        build.prepare([gemm.spec(mr, 1, False, spec[4], (), 36) for mr in (1, 2)], target())
        assert caplog.text.count("a process failed") == 1, "none is asked again"
    assert "a process failed (exit status 1)" in caplog.text and "there is no such module" in caplog.text
    assert [p.suffix for p in tmp_path.iterdir()] == [".o"]


FAMILIES_ALONE = """
from xcoexec.codegen.native import build
for name, module in build.FAMILIES.items():
    build._generator(name)
    assert build._families[name].__module__.endswith(module), name
print(len(build.FAMILIES))
"""


def test_every_kernel_family_is_loaded_by_the_table() -> None:
    """A process that has imported nothing but the build finds each generator where the table says it is."""
    done = subprocess.run([sys.executable, "-c", FAMILIES_ALONE], capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    registered = set(re.findall(r'@family\("(\w+)"\)', "".join(p.read_text() for p in build.SOURCES.rglob("*.py"))))
    assert int(done.stdout) == len(registered) > 10 and registered <= set(build.FAMILIES)


def test_a_family_that_the_build_does_not_have_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named wherever it is met: asked for, or given to a process that compiles."""
    with pytest.raises(LookupError, match=r"'unheard_of' has no row in build\.FAMILIES"):
        build.kernel_address(("unheard_of", 1), target())
    monkeypatch.setattr(build.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(build, "_child", lambda *_: pytest.fail("a process was started"))
    with pytest.raises(LookupError, match="'unheard_of'"):
        build.prepare([("unheard_of", i) for i in range(20)], target())
    monkeypatch.setitem(build.FAMILIES, "unheard_of", "kernels.gemm")
    with pytest.raises(LookupError, match=r"kernels\.gemm does not register the kernel family 'unheard_of'"):
        build.kernel_text(("unheard_of",), target())


def _full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_told", set())
    (tmp_path / "cache").mkdir(mode=0o700)
    return tmp_path / "cache"


# -- whose files are read ----------------------------------------------------------------------------


def test_one_kind_or_name_is_never_taken_for_another(cache: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    disk.write("record", "x", b"data")
    written = (cache / "x.v2.json").read_bytes()
    assert disk.read("record", "x") == b"data" and disk.read("plan", "x") is None
    assert not (cache / "x.v2.json").exists(), "what does not fit goes"
    (cache / "y.v2.json").write_bytes(written)
    (cache / "y.v2.json").chmod(0o600)
    assert disk.read("record", "y") is None
    assert caplog.text.count("damaged or of another kind") == 2
    disk.write("record", "y", b"other")
    assert disk.read("record", "y") == b"other"


def test_long_names_stay_apart(cache: pathlib.Path) -> None:
    names = ["plan-" + "-".join(map(str, range(n))) for n in (300, 301)]
    for name in names:
        disk.write("plan", name, name.encode())
    assert [disk.read("plan", name) for name in names] == [name.encode() for name in names]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o777])
def test_files_that_others_may_write_to_are_not_read(
    cache: pathlib.Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    disk.write("record", "x", b"data")
    (cache / "x.v2.json").chmod(mode)
    assert disk.read("record", "x") is None and "may be written by others" in caplog.text
    disk.write("record", "x", b"anew")
    assert disk.read("record", "x") == b"anew"


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_folders_that_others_may_write_to_are_not_used(
    cache: pathlib.Path, mode: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even one like /tmp, where nobody can take the file of another away."""
    disk.write("record", "x", b"data")
    cache.chmod(mode)
    for _ in range(3):
        assert disk.read("record", "x") is None
        disk.write("record", "y", b"data")
    assert len(list(cache.iterdir())) == 1
    assert caplog.text.count("may be written by others") == 1


def test_a_folder_inside_of_one_like_tmp_is_used(cache: pathlib.Path) -> None:
    cache.parent.chmod(0o1777)
    disk.write("record", "x", b"data")
    assert disk.read("record", "x") == b"data"


def test_files_and_folders_of_another_user_are_not_read(
    cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk.write("record", "x", b"data")
    path, owner = cache / "x.v2.json", os.geteuid()
    monkeypatch.setattr(disk.os, "geteuid", lambda: owner + 1)
    with pytest.raises(disk.Refused, match="another user"):
        disk.contents(path, 100, ours=True)
    assert disk.folder() is None and disk.read("record", "x") is None
    assert caplog.text.count("belongs to another user") == 1


def test_links_are_not_followed(cache: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    disk.write("record", "x", b"data")
    (cache / "x.v2.json").rename(cache.parent / "away")
    (cache / "x.v2.json").symlink_to(cache.parent / "away")
    assert disk.read("record", "x") is None and "is a link" in caplog.text
    disk.write("record", "x", b"anew")  # the link goes, what it led to stays
    assert disk.read("record", "x") == b"anew" and not (cache / "x.v2.json").is_symlink()
    assert (cache.parent / "away").read_bytes().endswith(b"data")


def test_pipes_devices_folders_and_giants_hold_nobody_up(cache: pathlib.Path) -> None:
    """In a process of its own, so that a reader that waits or reads on fails here and does not hang."""
    os.mkfifo(cache / "pipe.v2.json")
    (cache / "zero.v2.json").symlink_to("/dev/zero")
    (cache / "folder.v2.json").mkdir()
    with open(cache / "giant.v2.json", "wb") as f:
        f.truncate(1 << 40)
    (cache / "giant.v2.json").chmod(0o600)
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from xcoexec.codegen.store import disk
for name in ("pipe", "zero", "folder", "giant", "missing"):
    assert disk.read("record", name) is None, name
    disk.write("record", name, b"anew")
    assert disk.read("record", name) == (None if name == "folder" else b"anew"), name
try:
    disk.contents("/dev/zero", 100)
except disk.Refused as e:
    assert "no regular file" in str(e)
else:
    raise SystemExit("read")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("it is made anew") >= 4
    assert sorted(p.name for p in cache.iterdir()) == [
        f"{n}.v2.json" for n in ("folder", "giant", "missing", "pipe", "zero")
    ]


# -- writing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["mkstemp", "write", "close", "replace"])
def test_a_full_disk_leaves_nothing_behind(
    cache: pathlib.Path, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk.write("record", "x", b"old")
    before = {p: p.read_bytes() for p in cache.iterdir()}
    if where == "mkstemp":
        monkeypatch.setattr(disk.tempfile, "mkstemp", _full)
    elif where == "replace":
        monkeypatch.setattr(disk.os, "replace", _full)
    else:

        class Full:
            def __init__(self, descriptor: int, mode: str):
                self.file = os.fdopen(descriptor, mode)

            def __enter__(self) -> Any:
                return self

            def write(self, data: bytes) -> None:
                self.file.write(data[:3])
                if where == "write":
                    _full()

            def __exit__(self, *_: object) -> None:
                self.file.close()
                _full()

        monkeypatch.setattr(disk, "open", Full, raising=False)
    for i in range(40):
        disk.write("record", "x", b"new")
        disk.write("object", f"k{i}", b"new")
    assert {p: p.read_bytes() for p in cache.iterdir()} == before
    assert caplog.text.count("cannot be written (No space left on device)") == 1


def test_a_file_that_may_not_grow_leaves_nothing_behind(cache: pathlib.Path) -> None:
    """The kernel's own refusal in the middle of a write."""
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
from xcoexec.codegen.store import disk
for i in range(32):
    disk.write("object", f"k{i}", b"x" * 100_000)
disk.write("object", "small", b"x")
assert disk.read("object", "small") == b"x"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert [p.name for p in cache.iterdir()] == ["small.v2.o"]


def test_an_interrupt_while_writing_leaves_nothing_behind(cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(disk.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        disk.write("record", "x", b"data")
    assert list(cache.iterdir()) == []


def test_processes_that_write_the_same_record(cache: pathlib.Path) -> None:
    """Readers meet one whole record or the other, never a mixture and never none."""
    code = """
import sys
import types
from collections.abc import Callable
from xcoexec.codegen.store.disk import Record
from xcoexec.codegen.store.schema import Number, Row
record, me = Record("numbers", Row((), Number())), float(sys.argv[1])
record.store("x", [me] * 3000)
for _ in range(150):
    record.store("x", [me] * 3000)
    found = record.load("x")
    assert found is not None and len(found) == 3000 and len(set(found)) == 1, found
"""
    runs = [
        subprocess.Popen([sys.executable, "-c", code, str(i)], stderr=subprocess.PIPE, text=True, cwd=ROOT)
        for i in range(3)
    ]
    said = [run.communicate(timeout=200)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0] and said == ["", "", ""], said
    assert [p.name for p in cache.iterdir()] == ["x.v2.json"]


# -- records whose checksum fits and whose content does not -------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([10**400, "host", "rest", 1e-9]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
JUNK = [
    b"",
    b"null",
    b"[]",
    b"7",
    b"NaN",
    b"{}",
    b"true",
    b'"x"',
    b"[NaN, NaN]",
    b"[-1, -1]",
    b"[1e999, 1]",
    b"\xff\xfe",
    b"[" * 200_000,
    b"1" * 5000,
]
JUNK += [
    b'{"a": -1}',
    b'{"a": 1e999}',
    b'{"a": NaN}',
    b'{"a": 1, "a": 2}',
    b'{"a": [1, ["channel", 0.5]]}',
    b'{"a": [1, ["channel", 1.0, 1]]}',
]
KINDS = (
    records.WHOLES,
    records.PARTS,
    records.CONTENTION,
    records.OVERHEADS,
    records.STREAMING,
    records.PREDICTOR,
    records.BEGIN,
)
RUNS_OF: dict[str, Any] = {
    "device": {"a": 1e-5},
    "parts": {"a": [1e-3, ["channel", 0.5, 6e-4], ["rows", 0.5, 5e-4]]},
    "contention": 1.2,
    "streaming": [4e10],
    "begin": {"plain": 0.5, "plan": 0.25},
    "overhead": {"sync": 1e-6, "rate": 1e10, "moves": {k: [1e-6, 1e10] for k in records.WAYS}, "stream_rate": 1e10},
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda r: r.kind)
def test_sealed_junk_is_no_record(cache: pathlib.Path, kind: disk.Record, caplog: pytest.LogCaptureFixture) -> None:
    tables = [b"{}"] * (kind.kind in ("device", "parts"))  # of no layers: nothing is wrong with them
    for payload in JUNK:
        disk.write(kind.kind, "x", payload)
        assert kind.load("x") == ({} if payload in tables else None)
    assert caplog.text.count("it is made anew") == len(JUNK) - len(tables)
    if kind.kind in RUNS_OF:
        kind.store("x", RUNS_OF[kind.kind])
        assert kind.load("x") == RUNS_OF[kind.kind]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something lies in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for k, x in inner for p in _places(x, (*path, k)))]


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_any_value_at_any_place_of_a_record_fits_or_is_refused(data: st.DataObject) -> None:
    """No other exception than `Misfit`; what fits has finite, positive seconds."""
    kind = data.draw(st.sampled_from([k for k in KINDS if k.kind in RUNS_OF]))
    good = RUNS_OF[kind.kind]
    changed = _with(good, data.draw(st.sampled_from(_places(good))), data.draw(JSON))
    try:
        kind.schema.check(changed)
    except schema.Misfit as e:
        assert str(e).startswith("got ") and len(str(e)) < 600
        return
    if kind.kind == "device":
        assert all(0 < s < np.inf and not isinstance(s, bool) for s in changed.values())


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=40) | JSON.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_are_json_or_a_misfit(payload: bytes) -> None:
    try:
        value = schema.parse(payload, 1000)
    except schema.Misfit:
        return
    assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_a_record_that_would_not_fit_is_not_kept(cache: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    for bad in (float("nan"), float("inf"), -1.0, object()):
        records.WHOLES.store("x", {"a": bad})
    assert list(cache.iterdir()) == [] and caplog.text.count("is not kept") == 4
    said = [a for record in caplog.records for a in record.args or ()]
    assert all(isinstance(a, str) for a in said), "a handler that keeps records keeps no frame, and what that frame has"


def _junk(i: int, kind: str, old: bytes) -> bytes:
    return (
        [random.Random(i).randbytes(len(old)), b"", old[: len(old) // 2]][i % 3]
        if kind == "object"
        else JUNK[i % len(JUNK)]
    )


def _subtle(i: int, kind: str, old: bytes) -> bytes:
    """Objects without their end, records whose seconds are negative."""
    if kind == "object":
        return old[:-64]
    value = json.loads(old)
    for path in _places(value):
        there = functools.reduce(lambda v, k: v[k], path, value)
        value = _with(value, path, -1.0) if isinstance(there, float) else value
    return json.dumps(value).encode()


DAMAGES = (lambda b: b"", lambda b: b[:40], lambda b: b[:-3] + b"xyz", lambda b: b"\x80\x04.")


def test_a_cache_full_of_junk_changes_no_result(copied: pathlib.Path) -> None:
    """Every object and record is damaged, or replaced with a header that fits: the same results, from a process that
    does not end early.
    """
    files = sorted(copied.iterdir(), key=lambda p: (p.suffix, p.name))
    assert len([p for p in files if p.suffix == ".o"]) > 12 and len([p for p in files if p.suffix == ".json"]) > 2
    for i, path in enumerate(files):
        whole = path.read_bytes()
        if i % 2:
            path.write_bytes(DAMAGES[i // 2 % len(DAMAGES)](whole))
            continue
        head, _, old = whole.partition(b"\n")
        kind = head.split()[2].decode()
        change = _subtle if i % 3 == 0 else _junk
        disk.write(kind, path.name.rpartition(".v")[0], change(i, kind, old), copied)
    said = _run(str(copied))
    faults = re.findall(r"the cache file (\S+) (.*?); it is made anew", said)
    told = {pathlib.Path(name).name: why for name, why in faults}
    damaged = [told.get(path.name) == "is damaged or of another kind" for path in files if path.name in told]
    assert damaged == [i % 2 == 1 for i, path in enumerate(files) if path.name in told]
    # kernels of a block shape that is only measured beside a slow one need not be asked for again
    assert len(told) >= 0.6 * len(files) and set(damaged) == {True, False}
    assert _run(str(copied)) == "False 0"


# -- objects ------------------------------------------------------------------------------------------


@functools.cache
def _objects() -> dict[str, bytes]:
    """Objects of several shapes by their function: with constants and relocations, and without."""
    from xcoexec.codegen.kernels import gemm
    from xcoexec.codegen.rules.expressions import COPY

    tail = (("in", 0), ("lit", "f", "0.25"), ("mul", 0, 1))
    specs = [gemm.spec(2, 1, False, COPY, ()), gemm.spec(3, 2, False, tail, ()), *build.NATIVE, *build.CALLS]
    return {build._object_name(s, target()): _made(s) for s in specs}


def _made(spec: Any) -> bytes:
    """An object that is compiled once for all runs of the tests."""
    name = build._object_name(spec, target())
    kept = disk.read("object", name) or build._compile(spec, target())
    disk.write("object", name, kept)
    return kept


def test_all_that_is_compiled_is_sound() -> None:
    for name, obj in _objects().items():
        assert objects.fault(obj, name) == ""
        assert "without the function" in objects.fault(obj, "k" + "0" * 32)
        assert objects.fault(obj, name, "aarch64" if target().name != "neon" else "x86_64").startswith(
            "is no relocatable object file of this machine"
        )


def test_on_systems_with_other_formats_elf_is_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    name, obj = next(iter(_objects().items()))
    for system, magic in objects.OTHERS.items():
        monkeypatch.setattr(objects.sys, "platform", system)
        assert objects.fault(obj, name) and objects.fault(magic, name)
        assert objects.fault(magic + name.encode(), name) == ""
    monkeypatch.undo()
    assert objects.fault(obj, name, "unheard-of") == "" and objects.fault(obj[1:], name, "unheard-of")


def test_objects_of_the_other_machine_are_sound_too() -> None:
    """The table of relocations of a machine that the tests do not run on."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    text = """
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 5]
define i64 @f(i64 %i) nounwind {
  %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}"""
    for machine, triple in (("x86_64", "x86_64-unknown-linux-gnu"), ("aarch64", "aarch64-unknown-linux-gnu")):
        made = llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="static", codemodel="large", jit=True)
        assert (
            objects.fault(
                bytes(made.emit_object(llvm.parse_assembly(f'target triple = "{triple}"{text}'))), "f", machine
            )
            == ""
        )


@pytest.mark.parametrize(
    "junk", [b"", b"\0", b"\x7fELF", b"\x7fELF" + bytes(60), b"\x7fELF" + b"\xff" * 200, b"x" * 5000], ids=repr
)
def test_junk_is_no_object(junk: bytes) -> None:
    assert objects.fault(junk[:5000], "f")


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 1 << 30), st.binary(max_size=200))
def test_the_look_through_never_fails_itself(at: int, tail: bytes) -> None:
    name, obj = next(iter(_objects().items()))
    at %= len(obj)
    assert isinstance(objects.fault(obj[:at] + tail + obj[at + len(tail) :], name), str)
    assert objects.fault(obj[:at] + tail[:0], name)


LOADS = """
import os, pathlib, random, sys
from xcoexec.codegen.native import build; from xcoexec.codegen.native import objects
from xcoexec.codegen.target import target
build._engine(target())
rng, passed, crashed = random.Random(int(sys.argv[2])), 0, 0
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    whole = path.read_bytes()
    for _ in range(int(sys.argv[3])):
        data = bytearray(whole)
        start = len(data) - 64 * 9 if rng.random() < 0.5 else 0  # the tables lie at the end
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(max(start, 0), len(data))
            data[at] = rng.choice((0, 255, data[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
        if objects.fault(bytes(data), path.name):
            continue
        passed += 1
        child = os.fork()
        if not child:
            try:
                build._link(path.name, bytes(data), target())
            except RuntimeError:
                pass
            os._exit(0)
        crashed += os.waitpid(child, 0)[1] != 0
print(passed, crashed)
"""


def test_what_passes_the_look_through_never_ends_the_process(tmp_path: pathlib.Path) -> None:
    """Damaged objects in LLVM's hands, each in a process of its own: none of those that are let through ends it."""
    for name, obj in _objects().items():
        (tmp_path / name).write_bytes(obj)
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str(tmp_path), "1", "20"], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    passed, crashed = map(int, done.stdout.split())
    assert passed > 25 and crashed == 0


@pytest.mark.parametrize("spec", [gemm.spec(1, 1, False, (("in", 0),), ()), *build.NATIVE, *build.CALLS], ids=str)
def test_functions_say_themselves_that_they_never_unwind(spec: build.Spec) -> None:
    """In their text: some releases of llvmlite, told of a function, say it of what the function returns."""
    defined = [line for line in build.kernel_text(spec, target()).splitlines() if line.startswith("define")]
    assert defined and all("nounwind" in line.rpartition(")")[2].split() for line in defined)
    assert not objects.fault(build._compile(spec, target()), build._object_name(spec, target()))


def test_an_unsound_object_goes_and_nothing_else(
    cache: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one in the cache folder, and no file of that name where the process works."""
    spec = gemm.spec(1, 1, False, (("in", 0), ("lit", "f", "0.375"), ("add", 0, 1)), ())
    name = build._object_name(spec, target())
    disk.write("object", name, b"no object")
    kept = disk.path_of("object", name, cache)
    other = tmp_path / kept.name
    other.write_bytes(b"mine")
    monkeypatch.chdir(tmp_path)
    assert kept.exists() and not build._cached(spec, target())
    assert not kept.exists() and other.read_bytes() == b"mine"


def test_an_object_that_cannot_be_linked_is_compiled_anew(
    cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spec = gemm.spec(1, 1, False, (("in", 0), ("lit", "f", "0.125"), ("add", 0, 1)), ())
    name, good = build._object_name(spec, target()), build._compile(spec, target())
    link, given = build._link, []

    def failing(name: str, obj: bytes, chosen: Any) -> int:
        given.append(obj)
        if len(given) == 1:
            raise RuntimeError("no memory for code")
        return link(name, obj, chosen)

    disk.write("object", name, good)
    (cache / f"{name}.v2.o").chmod(0o400)
    monkeypatch.setattr(build, "_link", failing)
    assert build.kernel_address(spec, target())
    assert given == [good, good] and "cannot be linked (no memory for code)" in caplog.text
    assert stat.S_IMODE((cache / f"{name}.v2.o").stat().st_mode) == 0o600  # written again


def test_children_that_leave_junk(
    cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What a process that compiles has left is looked through as what lies in the cache is."""
    from xcoexec.codegen.kernels import gemm

    junk = """
import importlib, importlib.util, os, pickle, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "xcoexec_codegen", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules["xcoexec_codegen"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["xcoexec_codegen"])
build = importlib.import_module("xcoexec_codegen.native.build")
build._compile = lambda *_: b"junk"
build.serve(sys.argv[2])
"""
    specs = [
        gemm.spec(mr, 1, False, (("in", 0), ("lit", "f", "0.5"), ("max", 0, 1)), (), run)
        for mr in (1, 2, 3)
        for run in range(21, 26)
    ]
    monkeypatch.setattr(build.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(build, "_CHILD", junk)
    build.prepare(specs, target())
    assert "is no object file" in caplog.text and "failed" not in caplog.text
    assert all(build.kernel_address(s, target()) for s in specs)
    for s in specs:
        name = build._object_name(s, target())
        assert objects.fault(disk.read("object", name) or b"", name) == ""


def test_without_room_for_a_temporary_folder(
    cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from xcoexec.codegen.kernels import gemm

    monkeypatch.setattr(children.os, "mkdir", _full)
    build.start_native.cache_clear()
    assert build.start_native(target(), build.NATIVE) is None
    specs = [
        gemm.spec(mr, 1, False, (("in", 0), ("lit", "f", "0.75"), ("max", 0, 1)), (), run)
        for mr in (1, 2, 3)
        for run in range(21, 26)
    ]
    monkeypatch.setattr(build.os, "sched_getaffinity", lambda _: {0, 1})
    caplog.set_level("DEBUG", "xcoexec")
    build.prepare(specs, target())
    assert "kernels are compiled in this process: [Errno 28]" in caplog.text
    assert build.kernel_address(specs[0], target())
    build.start_native.cache_clear()


def test_what_a_race_calls_is_compiled_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that gives idle memory back compiles nothing: what it needs is among what every planning begins with."""
    asked: list[tuple[str, str, str]] = []

    def function(name: str, arguments: int, module: str = "team") -> Callable[..., int]:
        asked.append(("native", module, name))
        return lambda *_: 0

    monkeypatch.setattr(host, "function", function)
    host.give_idle_back(cast("Any", types.SimpleNamespace(address=0)))
    assert asked and set(asked) <= set(build.NATIVE)
