"""XLA's call frame: the offsets are those of XLA's own header, and both sides use them."""

from __future__ import annotations

import ctypes
import enum
import inspect
import pathlib
import re

import jax
import pytest

from xcoexec.codegen.native import frame
from xcoexec.codegen.program import Group, Op, Program, Value
from xcoexec.codegen.runtime import host

HEADER = pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"
NATIVE = pathlib.Path(frame.__file__).parent

#: record of `frame` -> (C struct, its members there)
STRUCTS: dict[type[enum.IntEnum], tuple[str, dict[str, str]]] = {
    frame.CallFrame: (
        "XLA_FFI_CallFrame",
        {
            "EXTENSION": "extension_start",
            "API": "api",
            "CONTEXT": "ctx",
            "STAGE": "stage",
            "ARG_COUNT": "args.size",
            "ARGS": "args.args",
            "RET_COUNT": "rets.size",
            "RETS": "rets.rets",
            "ATTR_COUNT": "attrs.size",
            "ATTRS": "attrs.attrs",
        },
    ),
    frame.Buffer: ("XLA_FFI_Buffer", {"DATA": "data"}),
    frame.Scalar: ("XLA_FFI_Scalar", {"DTYPE": "dtype", "VALUE": "value"}),
    frame.MetadataExtension: ("XLA_FFI_Metadata_Extension", {"METADATA": "metadata"}),
    frame.Metadata: (
        "XLA_FFI_Metadata",
        {"MAJOR": "api_version.major_version", "MINOR": "api_version.minor_version", "TRAITS": "traits"},
    ),
    frame.Api: (
        "XLA_FFI_Api",
        {"ERROR_CREATE": "XLA_FFI_Error_Create", "STREAM_GET": "XLA_FFI_Stream_Get", "STATE_SET": "XLA_FFI_State_Set"},
    ),
    frame.StateArgs: (
        "XLA_FFI_State_Set_Args",
        {
            "STRUCT_SIZE": "struct_size",
            "EXTENSION": "extension_start",
            "CONTEXT": "ctx",
            "STAGE": "stage",
            "TYPE_ID": "type_id",
            "STATE": "state",
        },
    ),
    frame.TypeInfo: ("XLA_FFI_TypeInfo", {"STRUCT_SIZE": "struct_size", "DELETER": "deleter"}),
    frame.ErrorArgs: (
        "XLA_FFI_Error_Create_Args",
        {"STRUCT_SIZE": "struct_size", "EXTENSION": "extension_start", "MESSAGE": "message", "CODE": "errc"},
    ),
    frame.StreamArgs: (
        "XLA_FFI_Stream_Get_Args",
        {"STRUCT_SIZE": "struct_size", "EXTENSION": "extension_start", "CONTEXT": "ctx", "STREAM": "stream"},
    ),
}
SIZES = {
    "XLA_FFI_CallFrame": frame.FRAME_BYTES,
    "XLA_FFI_Error_Create_Args": frame.ERROR_ARGS_BYTES,
    "XLA_FFI_Stream_Get_Args": frame.STREAM_ARGS_BYTES,
    "XLA_FFI_State_Set_Args": frame.STATE_ARGS_BYTES,
    "XLA_FFI_TypeInfo": frame.TYPE_INFO_BYTES,
}
WIDTHS = {"int": 4, "int32_t": 4, "uint32_t": 4, "XLA_FFI_Handler_Traits": 4}


class Header:
    """The structs and enumerations of a C header, laid out as C does on a machine of 64 bits."""

    def __init__(self, text: str):
        text = re.sub(r"//[^\n]*", "", text)
        text = re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\)", r"\1* \1", text)
        text = re.sub(r"\w+ \(\*(\w+)\)\([^)]*\);", r"void* \1;", text)  # a pointer to a function
        bodies = re.findall(r"struct (\w+) \{([^{}]*)\}", text)
        self.fields = {name: re.findall(r"([\w ]+?)\s*(\*+|\s)\s*(\w+);", body) for name, body in bodies}
        self.enums = {body[1] for body in re.findall(r"enum \{([^{}]*)\} (\w+);", text)}
        self.constants = {k: int(v) for k, v in re.findall(r"(XLA_FFI_\w+) = (\d+)\b", text)}

    def width(self, kind: str, stars: str) -> int:
        kind = kind.replace("const", "").replace("struct", "").strip()
        if "*" in stars or kind in ("size_t", "int64_t"):
            return 8
        if kind in self.enums:
            return 4
        return WIDTHS[kind] if kind in WIDTHS else self.offsets(kind)[""]

    def offsets(self, struct: str) -> dict[str, int]:
        """Member -> byte offset, those of structs inside too; "" is the size."""
        at, found = 0, {}
        for kind, stars, name in self.fields[struct]:
            width = self.width(kind, stars)
            at = -(-at // min(width, 8)) * min(width, 8)
            found[name] = at
            inner = kind.strip()
            if "*" not in stars and inner in self.fields:
                found.update({f"{name}.{k}": at + v for k, v in self.offsets(inner).items() if k})
            at += width
        return {**found, "": -(-at // 8) * 8}


@pytest.fixture(scope="module")
def header() -> Header:
    return Header(HEADER.read_text())


@pytest.mark.parametrize("record", STRUCTS, ids=lambda r: r.__name__)
def test_offsets_are_those_of_the_header(header: Header, record: type[enum.IntEnum]) -> None:
    struct, members = STRUCTS[record]
    there = header.offsets(struct)
    assert {m.name: int(m) for m in record} == {m.name: there[members[m.name]] for m in record}


def test_sizes_and_codes_are_those_of_the_header(header: Header) -> None:
    assert {name: header.offsets(name)[""] for name in SIZES} == SIZES
    codes = ("DataType_S64", "Error_Code_RESOURCE_EXHAUSTED", "Error_Code_INTERNAL")
    ours = (frame.S64, frame.RESOURCE_EXHAUSTED, frame.INTERNAL)
    assert tuple(header.constants[f"XLA_FFI_{c}"] for c in codes) == ours


def test_every_record_is_compared() -> None:
    records = [x for _, x in inspect.getmembers(frame, inspect.isclass) if issubclass(x, enum.IntEnum)]
    assert {r for r in records if len(r)} == set(STRUCTS)


def test_handler_reads_a_frame_that_call_frame_wrote() -> None:
    """A frame by the builder, read by the native handler: it finds the segment, its operands and its results."""
    x = Value((4, 8), "float32")
    y = Value((4, 8), "float32")
    segment = host.build(Program((x,), (), (Group.of(Op("neg", (x,), (y,), {})),), (y,)), 1)
    source, target = (ctypes.c_float * 32)(*range(32)), (ctypes.c_float * 32)()
    blob = (ctypes.c_float * 16)()
    at = [ctypes.addressof(a) for a in (source, blob, target)]
    address, keep = frame.call_frame(at[:2], at[2:], segment.address)
    assert keep and host.function("handler", 1)(address) == 0
    assert list(target) == [-float(i) for i in range(32)]
    assert segment.calls == 1


def test_no_other_file_names_an_offset_of_the_frame() -> None:
    """Only `frame.py` has the offsets, only `ffi.py` uses them as native code."""
    for path in NATIVE.parent.rglob("*.py"):
        if path.name not in ("frame.py", "ffi.py"):
            text = path.read_text()
            assert not re.search(r"\bframe \+ ", text), path
            assert not re.search(r"frame\[\d", text), path
    assert not re.search(r"(ld|st|st32)\([a-z]+ \+ \d", (NATIVE / "ffi.py").read_text())
