"""JAX's configuration: what each thread has set, and what programs are keyed by."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import platform
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import jax

# outside of JAX's promised API, and so without types
_config: Any = jax._src.config  # type: ignore[attr-defined]
_mesh: Any = jax._src.mesh  # type: ignore[attr-defined]


def versions() -> str:
    """What an error report should name: the versions of this library, of JAX and of Python."""
    try:
        own = importlib.metadata.version("xcoexec")
    except importlib.metadata.PackageNotFoundError:  # a copy of the folder, which nobody installed
        own = "(not installed)"
    return f"xcoexec {own}, jax {jax.__version__}, Python {platform.python_version()}"


#: what `jax.jit` keys its programs by, besides their arguments
configuration: Callable[[], Hashable] = _config.trace_context


def default_device() -> jax.Device | str | None:
    """The device (or the platform) that `jax_default_device` names; None where it names none."""
    found: jax.Device | str | None = _config.default_device.value
    return found


def programs_are_kept() -> bool:
    """Whether JAX keeps compiled programs on disk (`jax_compilation_cache_dir`)."""
    return bool(_config.compilation_cache_dir.value)


def jit_is_disabled() -> bool:
    """Whether `jax_disable_jit` is on."""
    return bool(_config.disable_jit.value)


def looks_for_nans() -> bool:
    """Whether `jax_debug_nans` or `jax_debug_infs` is on: JAX then computes a program again, one by one."""
    return bool(_config.debug_nans.value or _config.debug_infs.value)


def meshes() -> list[jax.sharding.Mesh | jax.sharding.AbstractMesh]:
    """The meshes of devices that are set around the call."""
    set_here = (jax.sharding.get_abstract_mesh(), _mesh.get_concrete_mesh(), _mesh.thread_resources.env.physical_mesh)
    return [m for m in set_here if not m.empty]


#: JAX's records of the meshes that are set, each thread's own
_MESHES: list[Any] = [
    getattr(_config, name, None) or getattr(_mesh, name)
    for name in ("abstract_mesh_context_manager", "device_context", "mesh_context_manager")
]
_Set = tuple[list[Any], Any]  # what they hold, and the innermost environment of `with mesh:`
_NO_MESH: _Set = [_config.config_ext.unset] * len(_MESHES), _mesh.EMPTY_ENV


def mesh_here() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context with the meshes that are set here, or with none, for any thread: where JAX transposes, an empty one is
    set, for which it would compile anew.
    """
    return functools.partial(_Meshed, ([state.get_local() for state in _MESHES], _mesh.thread_resources.env))


def no_mesh() -> contextlib.AbstractContextManager[None]:
    """A context in which no mesh is set."""
    return _Meshed(_NO_MESH)


class _Meshed:
    """A context in which these meshes are set; of a class, because calls enter one."""

    __slots__ = ("_before", "_wanted")

    def __init__(self, wanted: _Set):
        self._wanted = wanted

    def __enter__(self) -> None:
        resources, (states, env) = _mesh.thread_resources, self._wanted
        self._before: _Set = [m.swap_local(x) for m, x in zip(_MESHES, states, strict=True)], resources.env
        resources.env = env

    def __exit__(self, *_: object) -> None:
        states, _mesh.thread_resources.env = self._before
        for m, x in zip(_MESHES, states, strict=True):
            m.set_local(x)


def settings() -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context like the caller's own: what `with jax.default_matmul_precision(...)` and its like set holds for one
    thread only; but for the guard on what the caller moves between devices, which no planning has to heed.
    """
    wanted = {name: state.value for name, state in _config.config_states.items()}

    @contextlib.contextmanager
    def same() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for name, value in wanted.items():
                state = _config.config_states[name]
                if state.value != value:  # what is the same anyway stays unset: JAX compiles anew for what is set
                    stack.enter_context(state(value))
            stack.enter_context(jax.transfer_guard("allow"))
            yield

    return same


def worker(target: Callable[..., None], args: Sequence[object] = (), name: str = "xcoexec") -> threading.Thread:
    """A daemon thread under its maker's JAX settings: what it traces computes as it would have there."""
    same = settings()

    def run() -> None:
        with same():
            target(*args)

    return threading.Thread(target=run, name=name, daemon=True)


__all__ = ["configuration", "default_device", "jit_is_disabled", "looks_for_nans", "mesh_here", "meshes"]
__all__ += ["no_mesh", "programs_are_kept", "settings", "versions", "worker"]
