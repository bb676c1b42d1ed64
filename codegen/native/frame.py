"""XLA's call frame: every offset of XLA's FFI that this package reads or writes.

The structs are those of XLA's C API (`xla/ffi/api/c_api.h`, which jaxlib ships below `jax.ffi.include_dir()`), with the
offsets of a machine of 64 bits. `ffi.py` reads them as native code, `call_frame` writes one for calls without XLA. This
file needs no LLVM.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

API_VERSION = 0, 1  # the version of the API that handlers are made for (major, minor)


class CallFrame(enum.IntEnum):
    """XLA_FFI_CallFrame, with the XLA_FFI_Args, XLA_FFI_Rets and XLA_FFI_Attrs that lie inside."""

    EXTENSION = 8  # extension_start
    API = 16
    CONTEXT = 24  # ctx
    STAGE = 32
    ARG_COUNT = 56  # args.size
    ARGS = 72  # args.args
    RET_COUNT = 96  # rets.size
    RETS = 112  # rets.rets
    ATTR_COUNT = 136  # attrs.size
    ATTRS = 160  # attrs.attrs


FRAME_BYTES = 176


class Buffer(enum.IntEnum):
    """XLA_FFI_Buffer."""

    DATA = 24


class Scalar(enum.IntEnum):
    """XLA_FFI_Scalar."""

    DTYPE = 0
    VALUE = 8  # address of the value


class MetadataExtension(enum.IntEnum):
    """XLA_FFI_Metadata_Extension."""

    METADATA = 24


class Metadata(enum.IntEnum):
    """XLA_FFI_Metadata, with the XLA_FFI_Api_Version that lies inside."""

    MAJOR = 24  # api_version.major_version, 32 bits
    MINOR = 28  # api_version.minor_version, 32 bits
    TRAITS = 32  # 32 bits


class Api(enum.IntEnum):
    """XLA_FFI_Api: addresses of XLA's functions."""

    ERROR_CREATE = 48
    STREAM_GET = 80
    STATE_SET = 104


class ErrorArgs(enum.IntEnum):
    """XLA_FFI_Error_Create_Args."""

    STRUCT_SIZE = 0
    EXTENSION = 8
    MESSAGE = 16
    CODE = 24  # errc


ERROR_ARGS_BYTES = 32


class StreamArgs(enum.IntEnum):
    """XLA_FFI_Stream_Get_Args."""

    STRUCT_SIZE = 0
    EXTENSION = 8
    CONTEXT = 16
    STREAM = 24


STREAM_ARGS_BYTES = 32


class StateArgs(enum.IntEnum):
    """XLA_FFI_State_Set_Args."""

    STRUCT_SIZE = 0
    EXTENSION = 8
    CONTEXT = 16
    STAGE = 24
    TYPE_ID = 32  # address of the type's number
    STATE = 40


STATE_ARGS_BYTES = 48


class TypeInfo(enum.IntEnum):
    """XLA_FFI_TypeInfo."""

    STRUCT_SIZE = 0
    DELETER = 16


TYPE_INFO_BYTES = 24

S64 = 5  # XLA_FFI_DataType_S64
RESOURCE_EXHAUSTED, INTERNAL = 8, 13  # XLA_FFI_Error_Code


def call_frame(arguments: Sequence[int], results: Sequence[int], attribute: int) -> tuple[int, list[np.ndarray]]:
    """The frame of a call, as XLA makes one: its address, and the memory that has to live as long.

    `arguments`, `results`: addresses of their data. `attribute`: the value of the only attribute.
    """
    import numpy as np  # a process that compiles native code reads the offsets alone

    keep: list[np.ndarray] = []

    def block(nbytes: int, words: dict[int, int]) -> int:
        memory = np.zeros(nbytes // 8, np.int64)
        for at, value in words.items():
            memory[at // 8] = value
        keep.append(memory)
        return int(memory.ctypes.data)

    def table(addresses: Sequence[int]) -> int:
        return block(8 * max(len(addresses), 1), {8 * i: a for i, a in enumerate(addresses)})

    def buffers(data: Sequence[int]) -> int:
        return table([block(48, {Buffer.DATA: address}) for address in data])

    scalar = block(16, {Scalar.DTYPE: S64, Scalar.VALUE: block(8, {0: attribute})})
    words: dict[int, int] = {
        CallFrame.ARG_COUNT: len(arguments),
        CallFrame.ARGS: buffers(arguments),
        CallFrame.RET_COUNT: len(results),
        CallFrame.RETS: buffers(results),
        CallFrame.ATTR_COUNT: 1,
        CallFrame.ATTRS: table([scalar]),
    }
    return block(FRAME_BYTES, words), keep


def type_info(deleter: int) -> np.ndarray:
    """What XLA has to know of a type, [3] int64.

    That is the address of the function that it calls with each state that it gives up.
    """
    import numpy as np

    memory = np.zeros(TYPE_INFO_BYTES // 8, np.int64)
    memory[TypeInfo.STRUCT_SIZE // 8], memory[TypeInfo.DELETER // 8] = TYPE_INFO_BYTES, deleter
    return memory


def sets_state(header: str) -> bool:
    """Whether XLA's C API, by the text of its header, takes states as `StateArgs` says; it had other fields before."""
    struct = re.search(r"struct XLA_FFI_State_Set_Args \{([^}]*)\}", header)
    fields = re.findall(r"(\w+);", struct[1]) if struct else []
    return fields == ["struct_size", "extension_start", "ctx", "stage", "type_id", "state"]


__all__ = ["call_frame", "sets_state", "type_info"]
