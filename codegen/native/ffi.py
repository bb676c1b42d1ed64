"""What handlers read from XLA's call frame and ask of XLA, as native code; the offsets are in `frame.py`.

Only imported when the native code is not in the cache (see `build.native_address`).
"""

from __future__ import annotations

from .call_layout import Relay
from .frame import (
    API_VERSION,
    ERROR_ARGS_BYTES,
    STATE_ARGS_BYTES,
    STREAM_ARGS_BYTES,
    Api,
    Buffer,
    CallFrame,
    ErrorArgs,
    Metadata,
    MetadataExtension,
    Scalar,
    StateArgs,
    StreamArgs,
)
from .words import call1, ld, scratch, st, st32

MAJOR, MINOR = API_VERSION


def registering(frame):
    """Whether XLA only asks for the API version (0.1, no traits)."""
    extension = ld(frame + CallFrame.EXTENSION)
    if extension == 0:
        return False
    metadata = ld(extension + MetadataExtension.METADATA)
    st32(metadata + Metadata.MAJOR, MAJOR)
    st32(metadata + Metadata.MINOR, MINOR)
    st32(metadata + Metadata.TRAITS, 0)
    return True


def attribute(frame):
    """The only attribute of a call: an address."""
    return ld(ld(ld(ld(frame + CallFrame.ATTRS)) + Scalar.VALUE))


def argument(frame, i):
    """Address of the i-th operand's data."""
    return ld(ld(ld(frame + CallFrame.ARGS) + 8 * i) + Buffer.DATA)


def result(frame, i):
    """Address of the i-th result's data."""
    return ld(ld(ld(frame + CallFrame.RETS) + 8 * i) + Buffer.DATA)


def error(frame, message, code):
    """An XLA error with a text and one of XLA's codes."""
    args = scratch(4)
    st(args + ErrorArgs.STRUCT_SIZE, ERROR_ARGS_BYTES)
    st(args + ErrorArgs.EXTENSION, 0)
    st(args + ErrorArgs.MESSAGE, message)
    st(args + ErrorArgs.CODE, code)
    return call1(ld(ld(frame + CallFrame.API) + Api.ERROR_CREATE), args)


def stream_of(frame, relay):
    """The stream that XLA launches on; 0 when it does not say (stream 0 of the driver is another one, whose order is
    not XLA's).
    """
    own = ld(relay + Relay.STREAM)
    if own != 0:
        return own
    args = scratch(4)
    st(args + StreamArgs.STRUCT_SIZE, STREAM_ARGS_BYTES)
    st(args + StreamArgs.EXTENSION, 0)
    st(args + StreamArgs.CONTEXT, ld(frame + CallFrame.CONTEXT))
    st(args + StreamArgs.STREAM, 0)
    if call1(ld(ld(frame + CallFrame.API) + Api.STREAM_GET), args) != 0:
        return 0
    return ld(args + StreamArgs.STREAM)


def keep_state(frame, type_id, state):
    """Gives XLA a state of this call site, which it deletes with the executable (only while a site is made). An error,
    or 0.
    """
    args = scratch(6)
    st(args + StateArgs.STRUCT_SIZE, STATE_ARGS_BYTES)
    st(args + StateArgs.EXTENSION, 0)
    st(args + StateArgs.CONTEXT, ld(frame + CallFrame.CONTEXT))
    st(args + StateArgs.STAGE, ld(frame + CallFrame.STAGE) & 0xFFFFFFFF)
    st(args + StateArgs.TYPE_ID, type_id)
    st(args + StateArgs.STATE, state)
    return call1(ld(ld(frame + CallFrame.API) + Api.STATE_SET), args)
