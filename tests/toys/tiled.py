"""A matrix unit: the vector kernel's arithmetic, in blocks of at most 4 rows and 2 vectors, under another name."""

from __future__ import annotations

from xcoexec.codegen.kernels import gemm
from xcoexec.codegen.native.build import Spec, family
from xcoexec.codegen.target import MatrixUnit, Target

TILED = MatrixUnit("tiled", "float32", "toy_tiled", tile=(4, 2))


@family("toy_tiled")
def kernel(name: str, key: Spec, target: Target) -> str:
    """Arguments and words are those of `gemm`; the spec's first entry is this family's name."""
    return gemm.gemm(name, key, target)
