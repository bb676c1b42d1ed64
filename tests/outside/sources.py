"""The suites that are run, and where their sources come from."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import pathlib
import subprocess
import sys
import tarfile
from collections.abc import Mapping

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "out" / "outside"


@dataclasses.dataclass(frozen=True)
class Suite:
    """A package whose own tests are run, at the version that is installed.

    `tests` and `ci`: what pytest is given for the whole and for the short part, relative to the unpacked source.
    `settings`: the environment that the project's own script sets. `left_out`: files that are not run, with the reason.
    """

    package: str
    tests: tuple[str, ...]
    ci: tuple[str, ...]
    settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    left_out: Mapping[str, str] = dataclasses.field(default_factory=dict)
    exact: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )  # tests that ask for the bits of XLA's own program, and what they compare

    @property
    def inside(self) -> bool:
        """Whether the tests are modules of the package, which is then imported from its source too."""
        return self.tests == (self.package,)

    @property
    def version(self) -> str:
        return importlib.metadata.version(self.package)

    @property
    def folder(self) -> pathlib.Path:
        return OUT / "sources" / f"{self.package}-{self.version}"


SUITES = (
    Suite("chex", tests=("chex",), ci=("chex",)),
    Suite(
        "optax",
        tests=("optax",),
        ci=tuple(
            f"optax/{file}_test.py"
            for file in (
                "_src/numerics",
                "_src/utils",
                "_src/transform",
                "_src/update",
                "_src/combine",
                "_src/lookahead",
                "_src/factorized",
                "contrib/_mechanic",
                "contrib/_schedule_free",
                "contrib/_sam",
                "losses/_classification",
                "losses/_regression",
                "projections/_projections",
                "schedules/_inject",
                "transforms/_accumulation",
                "tree_utils/_tree_math",
            )
        ),
    ),
    Suite(
        "flax",
        tests=("tests",),
        ci=tuple(
            f"tests/{file}_test.py"
            for file in (
                "core/core_lift",
                "core/design/core_resnet",
                "core/design/core_scan",
                "linen/linen_transforms",
                "nnx/integration",
                "nnx/mutable_array",
                "nnx/optimizer",
                "nnx/module",
                "nnx/nn/conv",
                "nnx/nn/recurrent",
                "nnx/spmd",
            )
        ),
        settings={
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
            "JAX_NUMPY_RANK_PROMOTION": "raise",
            "FLAX_PROFILE": "1",
        },
        exact={
            "tests/linen/linen_transforms_test.py::TransformTest::test_jit_with_setup_helpers": (
                "two dense layers with jit against the same without"
            ),
            "tests/linen/linen_transforms_test.py::TransformTest::test_jit": "a dense layer, bit for bit",
            "tests/linen/linen_transforms_test.py::TransformTest::test_jit_decorated": (
                "a dense layer with jit against one without"
            ),
        },
        left_out={"tests/io_test.py": "needs TensorFlow", "tests/tensorboard_test.py": "needs TensorFlow"},
    ),
)


def fetch(suite: Suite) -> pathlib.Path:
    """The unpacked source distribution of a suite's package, from pip where it is not there yet."""
    if suite.folder.is_dir():
        return suite.folder
    archives = OUT / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    wanted = f"{suite.package}=={suite.version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-binary", suite.package, "--dest", str(archives), wanted], check=True)
    with tarfile.open(archives / f"{suite.folder.name}.tar.gz") as archive:
        archive.extractall(suite.folder.parent, filter="data")
    return suite.folder
