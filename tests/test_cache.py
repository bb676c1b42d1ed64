"""The disk cache: reused, damaged, unwritable, missing."""

from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys

import pytest
from xcoexec.codegen import build

ROOT = pathlib.Path(__file__).parent.parent
RUN = """
import sys; sys.path.insert(0, ".")
import jax
from tests.support import array, co, error, oracle, assert_on_host
f = lambda w, x: jax.nn.relu(x @ w)
fast = co(f, array(16, 40))
assert error(fast(array(3, 16)), oracle(f, array(16, 40), array(3, 16))) < 1e-5
host = co(f, array(16, 40), strategy="host")
host(array(3, 16)); assert_on_host(host)
import sys; print("numba" in sys.modules)
"""


def _run(cache: str) -> str:
    env = {**os.environ, "XCOEXEC_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, env=env, cwd=ROOT, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip() + done.stderr


def test_second_process_loads_everything(tmp_path: pathlib.Path) -> None:
    assert _run(str(tmp_path)).startswith("False")  # Numba is only imported in a process of its own
    files = {p: p.read_bytes() for p in tmp_path.iterdir()}
    assert any(p.suffix == ".o" for p in files) and any(p.suffix == ".json" for p in files)
    assert all(stat.S_IMODE(p.stat().st_mode) == 0o600 for p in files)
    assert _run(str(tmp_path)).startswith("False")
    assert {p: p.read_bytes() for p in tmp_path.iterdir()} == files


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:40], lambda b: b[:-3] + b"xyz", lambda b: b"\x80\x04."])
def test_damaged_files_are_made_anew(tmp_path: pathlib.Path, damage) -> None:
    _run(str(tmp_path))
    for p in tmp_path.iterdir():
        p.write_bytes(damage(p.read_bytes()))
    assert "damaged" in _run(str(tmp_path))


def test_without_any_cache(tmp_path: pathlib.Path) -> None:
    _run("")
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    _run(str(blocked / "cache"))
    assert blocked.read_text() == "not a folder"


def test_native_functions_compile_in_this_process_too(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Where no child process can run, the same objects come from this one."""
    from xcoexec.codegen.target import target

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no processes here")

    def forget() -> None:
        build._native_apart.cache_clear()
        build.start_native.cache_clear()

    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    forget()
    apart = build._native_apart(target(), build.NATIVE)
    assert len(apart) == len(build.NATIVE)
    forget()
    monkeypatch.setattr(build.subprocess, "Popen", refuse)
    assert build._native_apart(target(), build.NATIVE) == {}
    forget()
    spec = build.NATIVE[-1]
    assert build._compile(spec, target())[:4] == apart[build._object_name(spec, target())][:4] == b"\x7fELF"


def test_files_of_another_user_are_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    build.write_cache("x.o", b"data")
    assert build.read_cache("x.o") == b"data"
    owner = os.getuid()
    monkeypatch.setattr(build.os, "getuid", lambda: owner + 1)
    assert build.read_cache("x.o") is None


def test_many_kernels_are_compiled_by_several_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The same objects, whoever compiles them; a child that fails leaves its share to this process."""
    from xcoexec.codegen import gemm
    from xcoexec.codegen.epilogue import COPY
    from xcoexec.codegen.target import target

    specs = [gemm.spec(mr, 1, False, (("in", 0), ("lit", "f", "inf"), ("min", 0, 1)), (), run) for mr in (1, 2, 3) for run in range(21, 26)]
    monkeypatch.setattr(build.os, "sched_getaffinity", lambda _: {0, 1})
    for folder, fails in (("a", False), ("b", True)):
        monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path / folder))
        monkeypatch.setattr(build, "_addresses", {})
        if fails:
            monkeypatch.setattr(build, "_CHILD", "raise SystemExit(1)")
        build.prepare(specs, target())
        assert all(build.kernel_address(s, target()) for s in specs) and COPY
    names = [sorted(p.name for p in (tmp_path / folder).iterdir()) for folder in "ab"]
    assert names[0] == names[1] and len(names[0]) == len(set(specs))


def test_unwritable_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build.tempfile, "NamedTemporaryFile", _full)
    build.write_cache("x.o", b"data")
    assert list(tmp_path.iterdir()) == [] and build.read_cache("x.o") is None


def _full(**_: object) -> None:
    raise OSError(28, "No space left on device")
