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


def test_native_functions_compile_in_this_process_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no child process can run, the same objects come from this one."""
    from xcoexec.codegen.target import target

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no processes here")

    apart = build._native_apart(target())
    assert len(apart) == len(build.NATIVE)
    build._native_apart.cache_clear()
    monkeypatch.setattr(build.subprocess, "run", refuse)
    assert build._native_apart(target()) == {}
    build._native_apart.cache_clear()
    spec = build.NATIVE[-1]
    assert build._compile(spec, target())[:4] == apart[build._object_name(spec, target())][:4] == b"\x7fELF"


def test_unwritable_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(build.tempfile, "NamedTemporaryFile", _full)
    build.write_cache("x.o", b"data")
    assert list(tmp_path.iterdir()) == [] and build.read_cache("x.o") is None


def _full(**_: object) -> None:
    raise OSError(28, "No space left on device")
