"""Settings of the suite: a cache of its own, golden text with an update flag."""

from __future__ import annotations

import fcntl
import gc
import os
import pathlib
import subprocess
import sys
import types
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent
os.environ.setdefault("XCOEXEC_CACHE_DIR", str(ROOT / ".pytest_cache" / "xcoexec"))
if not os.environ.get("XCOEXEC_TEST_GPU"):
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
#: What XLA adds to a program is compiled in a third of the time: fusions by its older emitters, all in one LLVM module.
#: XLA_FLAGS that are given stay; `XLA_FLAGS= pytest` has XLA's own settings, with which .ci/run tests a part too.
QUICK = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"


def _known(flags: str) -> bool:
    """Whether this jaxlib knows these flags; a process with others ends when it begins to use XLA."""
    begin = "from jaxlib import xla_client; xla_client.make_cpu_client()"
    given = {**os.environ, "XLA_FLAGS": flags}
    return subprocess.run([sys.executable, "-c", begin], env=given, capture_output=True).returncode == 0


if "XLA_FLAGS" not in os.environ:  # processes that run the tests have it from the one that hands them out
    os.environ["XLA_FLAGS"] = QUICK if _known(QUICK) else ""
os.environ.setdefault("XCOEXEC_ADAPT", "0")
os.environ.setdefault("XCOEXEC_WAIT", "1")

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

gc.set_threshold(20_000)  # objects: tests make far more than they drop at once

#: modules whose tests say what the library sets aside with `gc.freeze`
FREEZING = ("test_scheduler", "test_streams_input", "test_streams_neglect")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


@pytest.fixture(scope="module", autouse=True)
def older_objects_set_aside(request: pytest.FixtureRequest) -> Iterator[None]:
    """Full collections look through what a module's tests have made, not through JAX and what other modules left."""
    if request.module.__name__.rpartition(".")[2] in FREEZING:
        gc.unfreeze()
    else:
        gc.freeze()
    yield
    gc.collect()


@pytest.fixture(scope="module")
def quick_xla() -> Iterator[None]:
    """What XLA adds to the programs of a module is compiled without LLVM's optimisations; XLA's own passes still run.
    So it is in the processes that the module's tests start.

    For modules with many small programs in which XLA's own arithmetic is not what is tested.
    """
    import jax  # not by a process that only hands tests out

    before = jax.config.read("jax_disable_most_optimizations")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
        jax.config.update("jax_disable_most_optimizations", True)
        yield
        jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="module")
def short_collections() -> Iterator[None]:
    """A scheduler that begins collects the youngest objects alone: all those of a process of tests take longer than
    most of them. tests/test_streams_neglect.py has what is done to all.
    """
    from xcoexec.streams import gc_freeze

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc_freeze, "gc", types.SimpleNamespace(**{**vars(gc), "collect": lambda: gc.collect(0)}))
        yield


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compares a text with tests/golden/NAME; with --update-golden it is written."""

    def check(name: str, text: str) -> None:
        path = ROOT / "tests" / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        assert path.read_text() == text, f"{name} changed; run pytest --update-golden and read the difference"

    return check


@pytest.fixture(scope="session")
def once(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str, Callable[[pathlib.Path], None]], pathlib.Path]:
    """Folders that all processes of a run share: `once(name, fill)` is a folder that the first one has filled."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def made(name: str, fill: Callable[[pathlib.Path], None]) -> pathlib.Path:
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / name).exists():
                part = root / f"{name}.part"
                part.mkdir(mode=0o700)
                fill(part)
                part.rename(root / name)
        return root / name

    return made


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """What is stored of made measurements is seen by nobody else."""
    monkeypatch.setenv("XCOEXEC_CACHE_DIR", str(tmp_path))
