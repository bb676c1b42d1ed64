"""Kernel text -> native code, with a content-hashed cache of object files on disk.

A kernel is named by a `Spec` (family and specialisation). Its object file is kept under a hash of the
spec, the target and the sources of this package, so a changed generator never meets an old object. An object
that comes from a file, of the cache or of a process that compiles for this one, is looked through before LLVM sees it.
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
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ..store import disk
from ..target import Target
from ..target import initialise as _host_target
from . import objects
from .children import Folder, Workers, errors, go_on, start, wait, workers
from .language import translate

Spec = tuple[Any, ...]  # a family's name, then what it specialises on: numbers, texts and tuples of them
Generator = Callable[[str, Spec, Target], str]  # (function name, spec, target) -> LLVM IR text
SOURCES = pathlib.Path(__file__).parent.parent
PACKAGE = __name__.rsplit(".", 2)[0]
log = logging.getLogger("xcoexec")

_lock = threading.RLock()
_families: dict[str, Generator] = {}
_addresses: dict[tuple[str, Target], int] = {}  # by the text of a spec: 0.0 equals -0.0, and 1 equals 1.0
_sound: dict[str, bytes] = {}  # objects from files, looked through and not linked yet
SHARE = 6  # kernels that are worth a process
CHILD_SECONDS = 300  # that a process which compiles may take
LAST_LINES = 6  # of what a process said that failed
#: kernel family -> the module that registers its generator; a family that is not here gets a row when its module is
#: loaded. Every process loads generators by this table alone.
FAMILIES: dict[str, str] = {
    "native": "native.build",
    "gemm": "kernels.gemm",
    "tiles": "kernels.tiles",
    "across": "kernels.across",
    **dict.fromkeys(("elementwise", "elementwise_rows", "reduce", "position"), "kernels.nests"),
    **dict.fromkeys(("shifted", "narrow", "whole"), "kernels.nests"),
    "pool": "kernels.pools",
    "gemv": "kernels.gemv",
    "parts": "kernels.parts",
    **dict.fromkeys(("digits", "digit_gemv"), "kernels.digits"),
    "row_gemv": "kernels.row_gemv",
    **dict.fromkeys(("depthwise", "depthwise_transposed", "depthwise_sums"), "kernels.windows"),
    "depthwise_bytes": "kernels.byte_windows",
    **dict.fromkeys(("gather", "scatter", "sum"), "kernels.indexed"),
    "rowwise": "kernels.rowwise",
    **dict.fromkeys(("columns", "joined"), "kernels.columns"),
    "unpool": "kernels.unpool",
    **dict.fromkeys(("winograd_input", "winograd_output", "winograd_weights"), "kernels.winograd"),
    **dict.fromkeys(("winograd_gradient", "winograd_sums"), "kernels.winograd_gradient"),
    "panel": "kernels.panels",
    "word_panel": "kernels.word_panels",
    "panel_sums": "kernels.word_panels",
    "stored": "kernels.stored",
    **dict.fromkeys(("peak_fma", "peak_products", "peak_read"), "runtime.peaks"),
}


def family(name: str) -> Callable[[Generator], Generator]:
    """Registers the generator of a kernel family."""

    def register(fn: Generator) -> Generator:
        _families[name] = fn
        FAMILIES.setdefault(name, fn.__module__.removeprefix(f"{PACKAGE}."))
        return fn

    return register


def _module(name: str) -> str:
    """The module that registers a kernel family. Raises `LookupError`."""
    if name not in FAMILIES:
        raise LookupError(f"The kernel family {name!r} has no row in build.FAMILIES; it has {', '.join(FAMILIES)}.")
    return FAMILIES[name]


def _generator(name: str) -> Generator:
    """The generator of a kernel family, loaded when it is first asked for. Raises `LookupError`."""
    module = _module(name)
    if name not in _families:
        importlib.import_module(f".{module}", PACKAGE)
    if name not in _families:
        raise LookupError(f"The module {module} does not register the kernel family {name!r}.")
    return _families[name]


@functools.lru_cache
def source_hash() -> str:
    """Hash of this package's sources and llvmlite's version."""
    h = hashlib.sha256(llvmlite.__version__.encode())
    for path in sorted(SOURCES.rglob("*.py")):
        h.update(path.read_bytes())
    return h.hexdigest()


@functools.lru_cache
def _engine(target: Target) -> tuple[llvm.TargetMachine, llvm.ExecutionEngine]:
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="static", codemodel="large", jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    return machine, engine


def _optimise(module: llvm.ModuleRef, machine: llvm.TargetMachine, name: str) -> None:
    """Optimises for one exported function; what it does not reach goes. Nothing but C and LLVM may be called."""
    made = [fn for fn in module.functions if not fn.is_declaration]
    for fn in made:
        if fn.name != name:
            fn.linkage = "internal"
    builder, passes = _passes(machine)
    with _lock:
        if len(made) == 1:
            passes.run(made[0], builder)
        else:
            builder.getModulePassManager().run(module, builder)
    foreign = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if foreign:
        raise RuntimeError(f"The native function {name} calls {', '.join(foreign)}; it has to stand alone.")


@functools.lru_cache
def _passes(machine: llvm.TargetMachine) -> tuple[llvm.PassBuilder, llvm.FunctionPassManager]:
    """What makes passes, and those of a function alone, which is all that a kernel is: what a module's do for it, in a
    quarter of their time. Made once: LLVM keeps 0.3 MB of each for good.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = False  # the vectors are explicit
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getFunctionPassManager()
    passes.add_loop_unroll_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return builder, passes


@family("native")
def _native(name: str, key: Spec, target: Target) -> str:
    """("native", module, function): a marked function of this package, in the language of native functions."""
    module = importlib.import_module(f".{key[1]}", __package__)
    return translate(getattr(module, key[2]), name)


def native_address(module: str, function: str, target: Target) -> int:
    """Address of a function that is marked with `words.native`, whose module is only imported when the cache lacks it.

    Raises what `kernel_address` raises.
    """
    return kernel_address(("native", module, function), target)


def kernel_text(spec: Spec, target: Target, name: str = "kernel") -> str:
    """The LLVM IR of a kernel (golden text in the tests). Raises `LookupError` for an unknown family."""
    return _generator(spec[0])(name, spec, target)


def kernel_address(spec: Spec, target: Target) -> int:
    """Address of the native function of `spec`, built at most once a process.

    Raises `LookupError` for an unknown family, `RuntimeError` for a function that does not stand alone or cannot be
    linked, and `InterruptedError` when the interpreter is ending.
    """
    key = (str(spec), target)
    with _lock:
        if key not in _addresses:
            _addresses[key] = _load(spec, target)
        return _addresses[key]


def _load(spec: Spec, target: Target) -> int:
    go_on()
    name = _object_name(spec, target)
    others = workers()
    if spec[0] == "native" and not _cached(spec, target):
        _native_apart(target, CALLS if spec in CALLS else NATIVE)
    elif others is not None and not _cached(spec, target):
        _by_workers(others, [spec], target)
    if _cached(spec, target):
        try:
            return _link(name, _sound.pop(name), target)
        except RuntimeError as e:
            log.warning(
                "xcoexec: the kept object of the kernel %s cannot be linked (%s); it is compiled anew.", spec, str(e)
            )
    obj = _compile(spec, target)
    disk.write("object", name, obj)
    return _link(name, obj, target)


def _link(name: str, obj: bytes, target: Target) -> int:
    """The address of the function that an object exports. Raises `RuntimeError`."""
    _, engine = _engine(target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(obj))
    engine.finalize_object()
    address = engine.get_function_address(name)
    if not address:
        raise RuntimeError(f"The kernel {name} was built but has no address.")
    return int(address)


def prepare(specs: Iterable[Spec], target: Target) -> None:
    """Compiles the kernels that neither this process nor the cache has, several at a time when there are many.

    Raises `LookupError` for a family without a row in `FAMILIES`, `InterruptedError` when the interpreter is ending.
    """
    with _lock:
        missing = [
            s
            for s in {str(s): s for s in specs}.values()
            if (str(s), target) not in _addresses and not _cached(s, target)
        ]
        for spec in missing:
            _module(spec[0])
        others = workers()
        if others is not None:
            _by_workers(others, missing, target)
            return
        processes = min(_cores(), len(missing) // SHARE)
        if processes < 2:
            return
        try:
            with Folder() as out:
                _share(missing, target, processes, out)
        except InterruptedError:
            raise
        except OSError as e:
            log.debug("kernels are compiled in this process: %s", str(e))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _by_workers(others: Workers, specs: Sequence[Spec], target: Target) -> None:
    """Has kernels compiled by processes that work for this thread, which holds Python's lock for none of it; what they
    do not leave is compiled later, and so is all that comes after a failure.
    """
    if others.failed:
        return
    most = max(_cores() // 2, min(_cores(), 2))  # calls lose less where cores are left to them
    count = min(most, max(len(others), -(-len(specs) // SHARE)), len(specs))
    try:
        out = pathlib.Path(others.do(_command, [_message(specs[i::count], target) for i in range(count)]))
        _keep(specs, target, out)
    except InterruptedError:
        raise
    except OSError as e:
        log.warning("xcoexec: kernels are compiled in this process, because %s", str(e))


def _keep(specs: Sequence[Spec], target: Target, out: pathlib.Path) -> None:
    """Takes the sound objects of a folder into the cache."""
    for spec in specs:
        if (str(spec), target) not in _addresses and _cached(spec, target, out):
            name = _object_name(spec, target)
            disk.write("object", name, _sound[name])


def _share(specs: Sequence[Spec], target: Target, processes: int, out: str) -> None:
    """Compiles kernels in this process and in others, which leave objects in the folder `out`; what is missing there is
    compiled later.
    """
    children = [_child(specs[i::processes], target, out) for i in range(1, processes)]
    for spec in specs[::processes]:
        kernel_address(spec, target)
    for child in children:
        _finish(child, out)
    _keep(specs, target, pathlib.Path(out))


def _finish(child: subprocess.Popen[bytes], folder: str) -> None:
    """Waits for a process that compiles; one that does not end in time is ended with its folder.

    One that fails is not silent: the log has its last lines. What it has not left is compiled in this process.
    """
    try:
        wait(child, CHILD_SECONDS)
        how = f"failed (exit status {child.returncode})" if child.returncode else ""
    except subprocess.TimeoutExpired:
        how = f"did not end within {CHILD_SECONDS} s"
    if how:
        said = "\n".join(errors(folder, child).splitlines()[-LAST_LINES:]) or "(it said nothing)"
        log.warning("xcoexec: a process that compiles kernels %s; this one does its work:\n%s", how, said)


def _cached(spec: Spec, target: Target, folder: pathlib.Path | None = None) -> bool:
    """Whether the cache (or `folder`) has a sound object of a kernel, which is then at hand."""
    name = _object_name(spec, target)
    if name in _sound:
        return True
    obj = disk.read("object", name, folder)
    if obj is None:
        return False
    fault, root = objects.fault(obj, name), folder or disk.folder()
    if fault:
        if root is not None:
            disk.unused(disk.path_of("object", name, root), fault)
        return False
    _sound[name] = obj
    return True


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
        *(("drivers", f"{name}_driver") for name in ("gemm", "nest", "strips", "loop")),
        *(("team", name) for name in ("handler", "stamp", "worker", "release", "adopt", "swap")),
    )
)
#: those that only host calls of a device program need
CALLS: tuple[Spec, ...] = tuple(
    ("native", *x)
    for x in (
        *(("calls", name) for name in ("start", "join", "tick", "fetch", "fetched", "hold", "leave")),
        *(("serving", name) for name in ("serve", "park", "reserve")),
    )
)

_CHILD = """
import importlib, importlib.util, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "xcoexec_codegen", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules["xcoexec_codegen"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["xcoexec_codegen"])
importlib.import_module("xcoexec_codegen.native.build").serve(sys.argv[2])
"""


def _command(out: str) -> list[str]:
    """The command of a process that compiles what it reads into a folder."""
    return [sys.executable, "-P", "-c", _CHILD, str(SOURCES), out]


def _message(specs: Sequence[Spec], target: Target) -> bytes:
    """What such a process is sent to compile."""
    return pickle.dumps((dataclasses.astuple(target), list(specs), FAMILIES))


def _child(specs: Sequence[Spec], target: Target, out: str) -> subprocess.Popen[bytes]:
    """A process of its own that compiles `specs` into the folder `out`; see `_finish` for one that fails."""
    others = workers()
    child = start(out, _command(out), nice=0 if others is None else others.nice)
    assert child.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        child.stdin.write(_message(specs, target))
        child.stdin.close()
    return child


@functools.lru_cache
def start_native(target: Target, specs: tuple[Spec, ...]) -> tuple[subprocess.Popen[bytes], Folder] | None:
    """Begins to compile native functions in a process of its own, unless the cache has them: the model is traced
    meanwhile. None where no such process can run, or none is needed.
    """
    if all(_cached(spec, target) for spec in specs):
        return None
    try:
        out = Folder()
        return _child(specs, target, out.name), out
    except OSError as e:
        log.debug("native functions are compiled in this process: %s", str(e))
        return None


@functools.lru_cache
def _native_apart(target: Target, specs: tuple[Spec, ...]) -> None:
    """Takes native functions from the process that compiles them, where there is one: all of them into the cache, so
    that no further process compiles those which this one does not use.
    """
    started = start_native(target, specs)
    if started is not None:
        child, out = started
        with out as folder:
            _finish(child, folder)
            _keep(specs, target, pathlib.Path(folder))


def serve(folder: str) -> None:
    """Compiles kernels into a folder (the child's side): the pickled target's fields and specs come through the
    parent's pipe alone, one message after the other, each of which is answered. Raises `LookupError` for an unknown
    family.
    """
    _host_target()
    while True:
        try:
            fields, specs, families = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        FAMILIES.update(families)
        chosen = Target(*fields)
        for spec in specs:
            disk.write("object", _object_name(spec, chosen), _compile(spec, chosen), pathlib.Path(folder))
        os.write(sys.stdout.fileno(), b".")
