"""The instruction set that kernels are made for, as data: vector length, registers, features."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import platform

import llvmlite.binding as llvm


@dataclasses.dataclass(frozen=True)
class Target:
    """`vl`: f32 lanes of a vector; `registers`: vector registers; `cpu`/`features`: LLVM's names."""

    name: str
    vl: int
    registers: int
    cpu: str
    features: str

    @property
    def bf16(self) -> bool:
        """Whether there are dot products of pairs of bf16 (AVX512-BF16)."""
        return self.vl == 16 and "+avx512bf16" in self.features

    @property
    def fingerprint(self) -> str:
        """Short hash of everything that changes generated code."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:12]


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
    return llvm.get_host_cpu_name(), dict(llvm.get_host_cpu_features())


@functools.lru_cache
def target(isa: str | None = None) -> Target:
    """The widest target this CPU runs, or the named one. `XCOEXEC_ISA` overrides the choice.

    Raises `ValueError` for a name that is unknown or that this CPU cannot run.
    """
    cpu, features = _host()
    runnable = [n for n, (needs, *_) in ISAS.items() if all(features.get(f) for f in needs)]
    chosen = isa or os.environ.get("XCOEXEC_ISA") or runnable[0]
    if chosen not in runnable:
        raise ValueError(f"XCOEXEC_ISA: got {chosen!r}; this {platform.machine()} CPU runs {', '.join(runnable)}.")
    _, vl, registers, off = ISAS[chosen]
    flags = ",".join(f"{'+' if on else '-'}{name}" for name, on in sorted(features.items()))
    return Target(chosen, vl, registers, cpu, ",".join(s for s in (flags, off) if s))
