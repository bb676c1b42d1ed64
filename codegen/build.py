"""Kernel text -> native code, with a content-hashed cache of object files on disk.

A kernel is named by a `Spec` (family and specialisation). Its object file is kept under a hash of the
spec, the target and the sources of this package, so a changed generator never meets an old object.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib
import logging
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from .target import Target
from .target import initialise as _host_target

Spec = tuple[Any, ...]
log = logging.getLogger("xcoexec")

_lock = threading.RLock()
_families: dict[str, Callable[[str, Spec, Target], str]] = {}
_addresses: dict[tuple[str, Target], int] = {}  # by the text of a spec: 0.0 equals -0.0, and 1 equals 1.0
_made: dict[str, bytes] = {}  # objects that a child has compiled
SHARE = 6  # kernels that are worth a process
FAMILIES = ("gemm", "nests", "rowwise", "winograd", "peaks")  # modules whose generators a child needs


def family(name: str) -> Callable[[Callable[[str, Spec, Target], str]], Callable[[str, Spec, Target], str]]:
    """Registers the generator of a kernel family: `(function name, spec, target) -> LLVM IR text`."""

    def register(fn: Callable[[str, Spec, Target], str]) -> Callable[[str, Spec, Target], str]:
        _families[name] = fn
        return fn

    return register


def cache_dir() -> pathlib.Path | None:
    """`$XCOEXEC_CACHE_DIR`, else ~/.cache/xcoexec; None when it cannot be written (or is set empty)."""
    root = os.environ.get("XCOEXEC_CACHE_DIR", os.path.join(os.path.expanduser("~"), ".cache", "xcoexec"))
    if not root:
        return None
    path = pathlib.Path(root)
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path if os.access(path, os.W_OK) else None
    except OSError:
        return None


def read_cache(name: str) -> bytes | None:
    """The payload stored under `name`, or None when it is missing, another user's, or its checksum does not fit."""
    root = cache_dir()
    if root is None:
        return None
    try:
        path = root / name
        if hasattr(os, "getuid") and path.stat().st_uid != os.getuid():
            log.warning("xcoexec: the cache file %s belongs to another user; it is not read.", path)
            return None
        data = path.read_bytes()
    except OSError:
        return None
    digest, payload = data[:32], data[32:]
    if hashlib.sha256(payload).digest() != digest:
        log.warning("xcoexec: the cache file %s is damaged; it is made anew.", root / name)
        return None
    return payload


def write_cache(name: str, payload: bytes) -> None:
    """Stores `payload` with its checksum, atomically and owner-only; a full or read-only disk is no error."""
    root = cache_dir()
    if root is None:
        return
    try:
        with tempfile.NamedTemporaryFile(dir=root, delete=False) as f:
            f.write(hashlib.sha256(payload).digest() + payload)
        os.replace(f.name, root / name)
    except OSError as e:
        log.debug("cache not written: %s", e)


@functools.lru_cache
def source_hash() -> str:
    """Hash of this package's sources and llvmlite's version."""
    h = hashlib.sha256(llvmlite.__version__.encode())
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        h.update(path.read_bytes())
    return h.hexdigest()


@functools.lru_cache
def _engine(target: Target) -> tuple[Any, Any]:
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="static", codemodel="large", jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    return machine, engine


def _optimise(module: Any, machine: Any, name: str) -> None:
    """Optimises for one exported function; what it does not reach goes. Nothing but C and LLVM may be called."""
    for fn in module.functions:
        if not fn.is_declaration and fn.name != name:
            fn.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False  # the vectors are explicit
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    foreign = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if foreign:
        raise RuntimeError(f"The native function {name} calls {', '.join(foreign)}; it has to stand alone.")


@family("native")
def _native(name: str, key: Spec, target: Target) -> str:
    """("native", module, function): a marked function of this package, compiled by Numba."""
    from .native import native_text

    module = importlib.import_module(f".{key[1]}", __package__)
    return native_text(getattr(module, key[2]), name)


def native_address(module: str, function: str, target: Target) -> int:
    """Address of a function that is marked with `native.native`; Numba is only imported when it is not in the cache."""
    return kernel_address(("native", module, function), target)


def kernel_text(spec: Spec, target: Target, name: str = "kernel") -> str:
    """The LLVM IR of a kernel (golden text in the tests)."""
    return _families[spec[0]](name, spec, target)


def kernel_address(spec: Spec, target: Target) -> int:
    """Address of the native function of `spec`, built at most once a process."""
    key = (str(spec), target)
    with _lock:
        if key not in _addresses:
            _addresses[key] = _load(spec, target)
        return _addresses[key]


def _load(spec: Spec, target: Target) -> int:
    _, engine = _engine(target)
    name = _object_name(spec, target)
    obj = _made.pop(name, None) or read_cache(f"{name}.o")
    if obj is None:
        obj = _native_apart(target, CALLS if spec in CALLS else NATIVE).get(name) if spec[0] == "native" else None
        obj = obj or _compile(spec, target)
        write_cache(f"{name}.o", obj)
    engine.add_object_file(llvm.ObjectFileRef.from_data(obj))
    engine.finalize_object()
    address = engine.get_function_address(name)
    if not address:
        raise RuntimeError(f"The kernel {spec} was built but has no address.")
    return int(address)


def prepare(specs: Iterable[Spec], target: Target) -> None:
    """Compiles the kernels that neither this process nor the cache has, several at a time when there are many."""
    with _lock:
        missing = [s for s in {str(s): s for s in specs}.values() if (str(s), target) not in _addresses and not _cached(s, target)]
        processes = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, len(missing) // SHARE)
        if processes < 2:
            return
        with tempfile.TemporaryDirectory() as out:
            children = [_child(missing[i::processes], target, out) for i in range(1, processes)]
            for spec in missing[::processes]:
                kernel_address(spec, target)
            for child in children:
                child.wait()
            _made.update({p.name: p.read_bytes() for p in pathlib.Path(out).iterdir() if not p.suffix})
        for name, obj in _made.items():
            write_cache(f"{name}.o", obj)


def _cached(spec: Spec, target: Target) -> bool:
    root = cache_dir()
    return root is not None and (root / f"{_object_name(spec, target)}.o").exists()


def _object_name(spec: Spec, target: Target) -> str:
    digest = hashlib.sha256(f"{spec}{target}{source_hash()}".encode()).hexdigest()[:32]
    return f"k{digest}"


def _compile(spec: Spec, target: Target) -> bytes:
    name = _object_name(spec, target)
    machine, _ = _engine(target)
    module = llvm.parse_assembly(kernel_text(spec, target, name))
    _optimise(module, machine, name)
    return bytes(machine.emit_object(module))


# -- native functions --------------------------------------------------------------------------------

#: all functions that are marked with `native.native`
NATIVE: tuple[Spec, ...] = tuple(
    ("native", *x)
    for x in (
        *(("drivers", f"{name}_driver") for name in ("gemm", "nest", "strips")),
        *(("team", name) for name in ("handler", "stamp", "worker", "swap")),
    )
)
#: those that only host calls of a device program need
CALLS: tuple[Spec, ...] = tuple(("native", "calls", x) for x in ("start", "join", "tick", "fetch", "fetched", "serve"))

_CHILD = """
import importlib, importlib.util, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location("xcoexec_codegen", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["xcoexec_codegen"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["xcoexec_codegen"])
importlib.import_module("xcoexec_codegen.build").compile_into(sys.argv[2], sys.stdin.buffer.read())
"""


def _child(specs: Sequence[Spec], target: Target, out: str) -> subprocess.Popen[bytes]:
    """A process of its own that compiles `specs` into the folder `out`; what fails there is compiled here later."""
    command = [sys.executable, "-P", "-c", _CHILD, str(pathlib.Path(__file__).parent), out]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(pickle.dumps((dataclasses.astuple(target), list(specs))))
        child.stdin.close()
    return child


@functools.lru_cache
def start_native(target: Target, specs: tuple[Spec, ...]) -> tuple[subprocess.Popen[bytes], tempfile.TemporaryDirectory[str]] | None:
    """Begins to compile native functions in a process of its own, unless the cache has them: Numba's 100 MB never become the
    user's, and its two seconds pass while the model is traced. None where no such process can run, or none is needed."""
    if all(_cached(spec, target) for spec in specs):
        return None
    out = tempfile.TemporaryDirectory()
    try:
        return _child(specs, target, out.name), out
    except OSError as e:
        log.debug("native functions are compiled in this process: %s", e)
        return None


@functools.lru_cache
def _native_apart(target: Target, specs: tuple[Spec, ...]) -> dict[str, bytes]:
    """Objects of native functions from the process that compiles them; empty where there is none."""
    started = start_native(target, specs)
    if started is None:
        return {}
    child, out = started
    with out, contextlib.suppress(subprocess.TimeoutExpired, FileNotFoundError):
        child.wait(timeout=300)
        return {p.name: p.read_bytes() for p in pathlib.Path(out.name).iterdir() if not p.suffix}
    return {}


def compile_into(folder: str, work: bytes) -> None:
    """Compiles kernels into a folder (the child's side); `work`: the pickled target's fields and specs."""
    for family_module in FAMILIES:
        importlib.import_module(f".{family_module}", __package__)
    fields, specs = pickle.loads(work)
    chosen = Target(*fields)
    _host_target()
    for spec in specs:
        path = pathlib.Path(folder) / _object_name(spec, chosen)
        part = path.with_suffix(".part")
        part.write_bytes(_compile(spec, chosen))
        part.rename(path)
