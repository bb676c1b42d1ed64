"""The CUDA driver through ctypes, looked up at run time: mapped memory, device kernels, attributes of the device."""

from __future__ import annotations

import ctypes
import functools
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .. import config
from ..codegen.native.ptx import BLOCK, KERNELS, ptx
from ..codegen.program import Op, Value
from ..codegen.runtime.relay import Relay
from ..compat import xla_knows
from ..ir.words import DEVICE
from .cores import numbers
from .record import Device
from .registry import register

_MAPPED = 1 | 2  # portable, mapped into the device's address space
_NON_BLOCKING, _NO_TIMING = 1, 2
_ATTRIBUTES = {"capability_major": 75, "capability_minor": 76, "multiprocessors": 16}
BLOCKS_A_MULTIPROCESSOR = 4
BUSES = pathlib.Path("/sys/bus/pci/devices")
CHANNELS_FIRST = "xla_gpu_force_conv_nchw"  # XLA's option
OWN_PRODUCTS = "xla_gpu_enable_triton_gemm"  # XLA's option
SLICES = "xla_gpu_enable_dynamic_slice_fusion"  # XLA's option
#: XLA's option that lists what becomes part of CUDA graphs, and its usual list with convolutions
GRAPHS, LAUNCHED = "xla_gpu_enable_command_buffer", "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,CONVOLUTION"


class CudaError(RuntimeError):
    """A call of the CUDA driver failed; the text names it and the driver's word for the code."""


class Cuda:
    """The device that JAX uses (`index` among those that this process sees), through its primary context.

    It is a `Driver`: addresses and handles are integers. Whatever the driver refuses raises `CudaError`, and so does a
    device that is too old.
    """

    platform = "CUDA"
    stream = 0
    workspace = 1 << 23

    def __init__(self, index: int = 0):
        try:
            self._lib = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            raise CudaError(f"xcoexec: the CUDA driver library cannot be loaded ({e}).") from None
        device, self._context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(index))
        self._device = device.value
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), device)
        with self:
            capability = 10 * self._attribute("capability_major") + self._attribute("capability_minor")
            if capability < 70:
                raise CudaError(
                    f"xcoexec: got a device of compute capability {capability / 10}; valid is 7.0 or newer."
                )
            module = ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), ptx().encode())
            self.functions = tuple(self._function(module, k) for k in KERNELS)
            self.multiprocessors = self._attribute("multiprocessors")
            self.sides = tuple(self.new_stream() for _ in range(3))
            together = min(self._together(f) for f in self.functions[:2])
        self.blocks = BLOCKS_A_MULTIPROCESSOR * self.multiprocessors
        self.waiters = max(1, min(BLOCKS_A_MULTIPROCESSOR, together - 1)) * self.multiprocessors
        self.launch = self._address("cuLaunchKernel")
        self.copies = tuple(
            map(
                self._address,
                ("cuMemcpyAsync", "cuMemcpy2DAsync_v2", "cuEventRecord", "cuStreamWaitEvent", "cuStreamSynchronize"),
            )
        )

    def __enter__(self) -> None:
        self.call("cuCtxPushCurrent_v2", self._context)

    def __exit__(self, *_: object) -> None:
        self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def call(self, name: str, *args: object) -> None:
        """A function of the driver by its name, with arguments as ctypes has them. Raises `CudaError`."""
        code = getattr(self._lib, name)(*args)
        if code:
            raise CudaError(f"xcoexec: {name} failed: {self.describe(code)}.")

    def _address(self, name: str) -> int:
        return ctypes.cast(getattr(self._lib, name), ctypes.c_void_p).value or 0

    def new_stream(self) -> int:
        """The handle of a new stream beside the default one (within the context). Raises `CudaError`."""
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), ctypes.c_uint(_NON_BLOCKING))
        return handle.value or 0

    def event(self) -> int:
        """The handle of a new event, without timing. Raises `CudaError`."""
        handle = ctypes.c_void_p()
        with self:
            self.call("cuEventCreate", ctypes.byref(handle), ctypes.c_uint(_NO_TIMING))
        return handle.value or 0

    def free_event(self, event: int) -> None:
        """Destroys an event. Raises `CudaError`."""
        with self:
            self.call("cuEventDestroy_v2", ctypes.c_void_p(event))

    def bus(self) -> str:
        """Where the device is on its bus, as the system's files have it ("0000:17:00.0"). Raises `CudaError`."""
        text = ctypes.create_string_buffer(32)
        self.call("cuDeviceGetPCIBusId", text, ctypes.c_int(32), ctypes.c_int(self._device))
        return text.value.decode().lower()

    def memory(self) -> tuple[int, int]:
        """(free, total) bytes of the device. Raises `CudaError`."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self:
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def describe(self, code: int) -> str:
        """The driver's words for an error code, with the code."""
        text = ctypes.c_char_p()
        self._lib.cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or b"unknown error").decode() + f" (code {code})"

    def _attribute(self, name: str) -> int:
        value = ctypes.c_int()
        self.call(
            "cuDeviceGetAttribute", ctypes.byref(value), ctypes.c_int(_ATTRIBUTES[name]), ctypes.c_int(self._device)
        )
        return value.value

    def _function(self, module: ctypes.c_void_p, name: str) -> int:
        handle = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(handle), module, name.encode())
        return handle.value or 0

    def _together(self, function: int) -> int:
        """Blocks of a kernel that one multiprocessor runs at a time."""
        n = ctypes.c_int()
        self.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            ctypes.byref(n),
            ctypes.c_void_p(function),
            ctypes.c_int(BLOCK),
            ctypes.c_size_t(0),
        )
        return n.value

    def mapped(self, nbytes: int) -> tuple[int, int]:
        """(host address, device address) of so many bytes of host memory that the device reads and writes. Raises
        `CudaError`.
        """
        host, device = ctypes.c_void_p(), ctypes.c_uint64()
        with self:
            self.call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(nbytes), ctypes.c_uint(_MAPPED))
            self.call("cuMemHostGetDevicePointer_v2", ctypes.byref(device), host, ctypes.c_uint(0))
        return host.value or 0, device.value

    def free_mapped(self, host: int) -> None:
        """Frees what `mapped` gave, by its host address. Raises `CudaError`."""
        with self:
            self.call("cuMemFreeHost", ctypes.c_void_p(host))

    def words(self, nbytes: int) -> int:
        """The address of so many bytes of device memory, zeroed. Raises `CudaError`."""
        address = ctypes.c_uint64()
        with self:
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(nbytes))
            self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), ctypes.c_size_t(nbytes))
        return address.value

    def free_words(self, address: int) -> None:
        """Frees what `words` gave. Raises `CudaError`."""
        with self:
            self.call("cuMemFree_v2", ctypes.c_uint64(address))

    def synchronize(self) -> None:
        """Waits until the device has nothing to do. Raises `CudaError`, also for what has failed on it before."""
        with self:
            self.call("cuCtxSynchronize")


def cuda(index: int | None = None) -> Cuda:
    """The device of that number among those that this process sees (None: the one that JAX computes on by default).
    Raises `CudaError` where the driver cannot be had.
    """
    import jax

    return _cuda(jax.local_devices()[0].local_hardware_id or 0 if index is None else index)


@functools.lru_cache
def _cuda(index: int) -> Cuda:
    return Cuda(index)


@functools.lru_cache(maxsize=64)
def relay(cpus: tuple[int, ...], index: int | None = None) -> Relay:
    """What serves host calls of a device (see `cuda`) with the team of these cores (none given: the process's team).
    Raises `CudaError` where the driver cannot be had.
    """
    return Relay(cuda(index), cpus)


def _near(index: int) -> tuple[int, ...]:
    """The cores next to a device's bus; none where the system does not tell."""
    try:
        path = BUSES / cuda(index).bus() / "local_cpulist"
        return numbers(path.read_text())
    except (OSError, ValueError, CudaError):
        return ()


def _title() -> str:
    """The kind of device, and how many of its multiprocessors this process may use."""
    import jax

    return f"{jax.devices()[0].device_kind} {cuda().multiprocessors}"


def _compiling(ops: Sequence[Op]) -> dict[str, object]:
    """Convolutions of f32 that must not be rounded to TF32 are computed with channels first, and XLA lays them out with
    channels last, as for TF32: cuDNN then turns image, weights and result around at every call, each in a kernel of its
    own (a fifth of ResNet-18's seconds on 8 multiprocessors of an H100).
    """
    convs = [op for op in ops if op.prim == "conv_general_dilated"]
    return {CHANNELS_FIRST: True} if convs and all(map(_exact, convs)) and xla_knows(CHANNELS_FIRST) else {}


def _graphs(ops: Sequence[Op]) -> dict[str, object]:
    """XLA makes CUDA graphs of all that it launches but convolutions, and so of next to nothing in networks that have
    them. Each of these takes the launching thread 10 to 20 us, more than its kernel takes on a whole H100. Who says
    in the environment what becomes part of graphs has the last word.
    """
    convs = any(op.prim == "conv_general_dilated" for op in ops)
    return {GRAPHS: LAUNCHED} if convs and GRAPHS not in config.xla_flags() and xla_knows(GRAPHS, LAUNCHED) else {}


def _singly() -> dict[str, object]:
    """Graphs are made for a call's addresses, and changed where a call has others, as calls in flight have. Threads
    that do so for several devices wait for each other: on four H100s calls of ResNet-18 in flight take 1.17 ms with
    XLA's usual graphs, and 0.86 without.
    """
    return {GRAPHS: ""} if GRAPHS not in config.xla_flags() and xla_knows(GRAPHS, "") else {}


def _calling() -> dict[str, object]:
    """A host call that reads a slice is made once more, as part of a kernel that reads what the slice is taken of, and
    the first one stays, because it has an effect: it would begin, or end, twice.
    """
    return {SLICES: False} if xla_knows(SLICES) else {}


def _libraries(ops: Sequence[Op]) -> dict[str, object]:
    """For each shape of a matrix product XLA compiles and times dozens of kernels that it makes itself (Triton) beside
    those of cuBLAS. Where f32 must not be rounded to TF32 that takes 27 s for BERT, and 1.5 s without them, and calls
    take 2 % longer then (8 multiprocessors of an H100). Products of a plan's parts have shapes of their own, so that
    each plan that is tried would take that. In TF32 the same takes 5 to 7 s, and its kernels are up to a quarter
    faster. Who says in the environment which kernels are made has the last word.
    """
    products = [op for op in _inner(ops) if op.prim == "dot_general"]
    asked = OWN_PRODUCTS in config.xla_flags()
    libraries = bool(products) and all(map(_exact, products)) and not asked and xla_knows(OWN_PRODUCTS)
    return {OWN_PRODUCTS: False} if libraries else {}


def _inner(ops: Iterable[Op]) -> Iterator[Op]:
    """Operations, with those that loops among them repeat."""
    for op in ops:
        yield op
        yield from _inner(op.body.all_ops) if op.body is not None else ()


def _filters(ops: Sequence[Op], options: Mapping[str, object]) -> dict[Value, tuple[int, ...]]:
    """Weights of convolutions in the order in which cuDNN reads them: XLA turns others around at every call."""
    found = {}
    for op in ops:
        w = op.ins[1] if op.prim == "conv_general_dilated" else None
        if isinstance(w, Value):
            out, into, *window = op.params["dimension_numbers"].rhs_spec
            order = (out, into, *window) if options.get(CHANNELS_FIRST) else (out, *window, into)
            if order != tuple(range(len(order))):
                found[w] = order
    return found


def _exact(op: Op) -> bool:
    """Whether f32 must not be rounded to TF32: JAX's precision, or that of both operands, is the highest."""
    precision = op.params.get("precision")
    both = precision if isinstance(precision, tuple) else (precision,)
    return op.out.dtype == "float32" and all(str(p).split(".")[-1].upper() == "HIGHEST" for p in both)


RECORD = register(
    Device(
        name=Cuda.platform,
        half=DEVICE,
        apart=True,
        shares_cores=False,
        handlers=Cuda.platform,
        title=_title,
        connect=relay,
        connect_at=relay,
        near=_near,
        tiles=((32, 32), (64, 64), (128, 128), (256, 64)),  # the usual ones of cuDNN and cuBLAS
        processors=lambda threads: max(1, cuda().multiprocessors),
        tuning="xla_gpu_per_fusion_autotune_cache_dir",
        compiling=_compiling,
        graphs=_graphs,
        singly=_singly,
        libraries=_libraries,
        calling=_calling,
        filters=_filters,
    )
)
