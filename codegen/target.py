"""The instruction set that kernels are made for, as data: vector length, registers, features."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import hashlib
import pathlib
import platform

import llvmlite.binding as llvm

from . import environment

_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA = 158, 0x1023, 18  # of Linux on x86-64


@dataclasses.dataclass(frozen=True)
class MatrixUnit:
    """How an instruction set multiplies a block of pixels with a block of channels.

    `dtype`: of what is multiplied (sums of "int8" are s32, all others f32; "uint8": int8 of which hardly any is
    negative). `kernel`: the family of its micro-kernel, which takes the words and arguments of `kernels.gemm`. `needs`:
    CPU features, in LLVM's names. `vl`: f32 lanes that vectors must have (0: any). `tile`: most rows and vectors of a
    block (None: as many as the vector registers hold); with a `step`, a block of half as many vectors may have twice as
    many rows. `per`: elements side by side in 4 bytes, which one lane multiplies and adds. `shift`: what is added to
    each element of the image, so that none is negative. `step`: words that a run is filled up to a multiple of (1:
    none).
    """

    name: str
    dtype: str
    kernel: str
    needs: tuple[str, ...] = ()
    vl: int = 0
    tile: tuple[int, int] | None = None
    per: int = 1
    shift: int = 0
    step: int = 1


#: by name; of those for a type that a target has, the last one is used
MATRIX_UNITS: dict[str, MatrixUnit] = {
    unit.name: unit
    for unit in (
        MatrixUnit("vector", "float32", "gemm"),
        MatrixUnit("avx512bf16", "bfloat16", "gemm", ("avx512bf16",), 16, per=2),
        MatrixUnit("s16", "int8", "gemm", per=2),
        MatrixUnit("sse2", "int8", "gemm", ("sse2",), per=2),
        MatrixUnit("avx2", "uint8", "gemm", ("avx2",), 8, per=4),
        MatrixUnit("avx512vnni", "int8", "gemm", ("avx512vnni",), 16, per=4, shift=128),
        MatrixUnit("amx_bf16", "bfloat16", "tiles", ("amx-tile", "amx-bf16"), 16, (16, 4), per=2, step=16),
        MatrixUnit("amx_int8", "int8", "tiles", ("amx-tile", "amx-int8"), 16, (16, 4), per=4, step=16),
    )
}


@dataclasses.dataclass(frozen=True)
class Target:
    """`vl`: f32 lanes of a vector; `registers`: vector registers; `cpu`/`features`: LLVM's names; `kept`: bytes that a
    core's second cache keeps beside the weights that it multiplies; `resident`: bytes of weights that the last cache
    keeps from call to call and gives as fast as cores ask (0 where that is not known); `steady`: whether a core that
    reads f32 or bf16 from anywhere gets them fastest where it asks for nothing ahead.
    """

    name: str
    vl: int
    registers: int
    cpu: str
    features: str
    kept: int = 1 << 18
    resident: int = 0
    steady: bool = False

    def unit(self, dtype: str, kernel: str = "") -> MatrixUnit | None:
        """The matrix unit for products of a type, with kernels of that family where one is named; None where there is
        none, and values are multiplied as f32.
        """
        has = set(self.features.split(","))
        fitting = [
            u
            for u in MATRIX_UNITS.values()
            if u.dtype == dtype
            and u.vl in (0, self.vl)
            and kernel in ("", u.kernel)
            and all(f"+{need}" in has for need in u.needs)
        ]
        return fitting[-1] if fitting else None

    @property
    def fingerprint(self) -> str:
        """Short hash of everything that changes generated code."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]


CACHES = "/sys/devices/system/cpu/cpu0/cache"
SECOND_CACHE, LAST_CACHE = (pathlib.Path(CACHES, index, "size") for index in ("index2", "index3"))
FAST_LAST_CACHE, STEADY = ("znver4",), ("znver5",)  # CPUs of which it is measured; see `kernels.streams`
#: name -> (needed CPU features, f32 lanes, registers, features to switch off), widest first.
ISAS: dict[str, tuple[tuple[str, ...], int, int, str]] = {
    "avx512": (("avx512f", "avx512vl", "avx512bw", "avx512dq"), 16, 32, "-prefer-256-bit"),
    "avx2": (("avx2", "fma"), 8, 16, "-avx512f"),
    "neon": (("neon",), 4, 32, ""),
    "portable": ((), 4, 16, "-avx512f"),
}


def initialise() -> None:
    """Makes LLVM ready for this machine's instructions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@functools.lru_cache
def _host() -> tuple[str, dict[str, bool]]:
    initialise()
    features = dict(llvm.get_host_cpu_features())
    if features.get("amx-tile") and not _tiles_granted():
        features |= {name: False for name in features if name.startswith("amx")}
    return llvm.get_host_cpu_name(), features


def _tiles_granted() -> bool:
    """Whether the kernel lets this process' threads use tiles, for which it has to be asked once (Linux,
    `arch_prctl`).
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    return call(_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XTILEDATA) == 0


@functools.lru_cache
def target(isa: str | None = None) -> Target:
    """The widest target this CPU runs, or the named one. `XCOEXEC_ISA` overrides the choice.

    Raises `ValueError` for a name that is unknown or that this CPU cannot run.
    """
    cpu, features = _host()
    runnable = [n for n, (needs, *_) in ISAS.items() if all(features.get(f) for f in needs)]
    chosen = isa or environment.isa() or runnable[0]
    if chosen not in runnable:
        raise ValueError(f"XCOEXEC_ISA: got {chosen!r}; this {platform.machine()} CPU runs {', '.join(runnable)}.")
    _, vl, registers, off = ISAS[chosen]
    flags = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    resident = cache_bytes(LAST_CACHE) // 2 if cpu in FAST_LAST_CACHE else 0
    all_flags = ",".join(s for s in (flags, off) if s)
    return Target(chosen, vl, registers, cpu, all_flags, _kept(), resident, cpu in STEADY)


def _kept() -> int:
    """Half of the second cache, a quarter of a MiB at least, 1 MiB at most."""
    return min(max(cache_bytes(SECOND_CACHE) // 2, 1 << 18), 1 << 20)


def cache_bytes(size: pathlib.Path) -> int:
    """The bytes of a cache as Linux knows it; 0 on another system."""
    try:
        return int(size.read_text().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 0
