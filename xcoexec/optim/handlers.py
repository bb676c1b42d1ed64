"""The handlers through which a program gives gradients to the host and gets parameters back, in the call frame of XLA.

They are Python: there is one call for some tens of megabytes, and none of them waits where the device is apart.
"""

from __future__ import annotations

import ctypes
import itertools
import secrets
import weakref
from collections.abc import Callable
from typing import Protocol

import jax

from ..codegen.native.frame import (
    API_VERSION,
    ERROR_ARGS_BYTES,
    INTERNAL,
    STREAM_ARGS_BYTES,
    Api,
    Buffer,
    CallFrame,
    ErrorArgs,
    Metadata,
    MetadataExtension,
    Scalar,
    StreamArgs,
)

START, JOIN = (f"xcoexec_offload_{secrets.token_hex(8)}_{name}" for name in ("start", "join"))
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)
_kept: list[object] = []  # what XLA has the addresses of
_numbers = itertools.count(1)


class Called(Protocol):
    """What calls of a program reach. `stream`: that of the device; addresses are of operands, which are the results
    too. What they raise becomes the program's error.
    """

    def start(self, leaf: int, stream: int, operands: list[int]) -> None:
        """The gradient of a leaf is there."""
        ...

    def join(self, stream: int, operands: list[int]) -> None:
        """All gradients are there, and what follows needs the results."""
        ...


_calls: weakref.WeakValueDictionary[int, Called] = weakref.WeakValueDictionary()


def number_of(called: Called) -> int:
    """A number by which calls find an object; a call of its leaf i has the attribute `number << 32 | i`."""
    number = next(_numbers)
    _calls[number] = called
    return number


def register(platform: str) -> None:
    """Makes the handlers known to XLA for JAX's default backend, "cpu" or "gpu" (once)."""
    if _kept:
        return
    for name, run in ((START, _start), (JOIN, _join)):
        callback = _HANDLER(_guarded(run, apart=platform != "cpu"))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        capsule = new(ctypes.cast(callback, ctypes.c_void_p).value, None, None)
        _kept.append(callback)
        jax.ffi.register_ffi_target(name, capsule, platform="cpu" if platform == "cpu" else "CUDA")


def _start(called: Called, leaf: int, stream: int, operands: list[int]) -> None:
    called.start(leaf, stream, operands)


def _join(called: Called, leaf: int, stream: int, operands: list[int]) -> None:
    called.join(stream, operands)


def _guarded(run: Callable[[Called, int, int, list[int]], None], apart: bool) -> Callable[[int], int]:
    """A handler that turns what is raised inside into an error of XLA's."""

    def handler(frame: int) -> int:
        if _registering(frame):
            return 0
        try:
            attribute = _word(_word(_word(_word(frame + CallFrame.ATTRS)) + Scalar.VALUE))
            count, arguments = _word(frame + CallFrame.ARG_COUNT), _word(frame + CallFrame.ARGS)
            operands = [_word(_word(arguments + 8 * i) + Buffer.DATA) for i in range(count)]
            stream = _stream(frame) if apart else 0
            run(_calls[attribute >> 32], attribute & 0xFFFFFFFF, stream, operands)
        except Exception as e:  # XLA alone can tell the caller
            return _error(frame, str(e))
        return 0

    return handler


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _registering(frame: int) -> bool:
    """Whether XLA only asks for the API version."""
    extension = _word(frame + CallFrame.EXTENSION)
    if not extension:
        return False
    metadata = _word(extension + MetadataExtension.METADATA)
    for at, value in ((Metadata.MAJOR, API_VERSION[0]), (Metadata.MINOR, API_VERSION[1]), (Metadata.TRAITS, 0)):
        ctypes.c_int32.from_address(metadata + at).value = value
    return True


def _asked(frame: int, function: int, words: dict[int, int]) -> tuple[int, ctypes.Array[ctypes.c_uint64]]:
    """Calls a function of XLA's API with a struct of 8-byte words; its answer, and the struct."""
    struct = (ctypes.c_uint64 * (max(words) // 8 + 1))()
    for at, value in words.items():
        struct[at // 8] = value
    answer = _HANDLER(_word(_word(frame + CallFrame.API) + function))(ctypes.addressof(struct))
    return answer, struct


def _stream(frame: int) -> int:
    """The stream that XLA launches on. Raises `RuntimeError` where it does not say."""
    words: dict[int, int] = {
        StreamArgs.STRUCT_SIZE: STREAM_ARGS_BYTES,
        StreamArgs.CONTEXT: _word(frame + CallFrame.CONTEXT),
        StreamArgs.STREAM: 0,
    }
    refused, struct = _asked(frame, Api.STREAM_GET, words)
    if refused:
        raise RuntimeError("xcoexec.optim.offload: XLA does not say on which stream it computes.")
    return struct[StreamArgs.STREAM // 8]


def _error(frame: int, text: str) -> int:
    message = ctypes.create_string_buffer(text.encode())
    words: dict[int, int] = {
        ErrorArgs.STRUCT_SIZE: ERROR_ARGS_BYTES,
        ErrorArgs.MESSAGE: ctypes.addressof(message),
        ErrorArgs.CODE: INTERNAL,
    }
    return _asked(frame, Api.ERROR_CREATE, words)[0]


__all__ = ["JOIN", "START", "Called", "number_of", "register"]
