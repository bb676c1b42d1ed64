"""The environment is read in one place of each package."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

from xcoexec import config
from xcoexec.codegen import environment

ROOT = pathlib.Path(__file__).parent.parent
READERS = {"xcoexec": "config.py", "codegen": "environment.py"}


@pytest.mark.parametrize("package", READERS)
def test_one_module_of_a_package_reads_the_environment(package: str) -> None:
    found = {
        str(p.relative_to(ROOT / package))
        for p in (ROOT / package).rglob("*.py")
        if re.search(r"\benviron\b|\bgetenv\b", p.read_text())
    }
    assert found == {READERS[package]}


def test_each_variable_is_read_in_one_of_the_two() -> None:
    text = {name: (ROOT / name / READERS[name]).read_text() for name in READERS}
    names = {k: set(re.findall(r'"(XCOEXEC_\w+)"', t)) for k, t in text.items()}
    assert names["codegen"] == {environment.ISA, environment.CACHE_DIR}
    assert names["xcoexec"] and not names["codegen"] & names["xcoexec"]
    assert all(name in (config.__doc__ or "") for name in names["codegen"] | names["xcoexec"])


def test_jax_jit_replaced_before_the_library_is_loaded() -> None:
    """The library is loaded when its first name is asked for, which may be inside of what stands for `jax.jit`."""
    script = """
import jax, xcoexec
jax.jit = lambda *args, **kwargs: xcoexec.jit(*args, **kwargs)
fast = jax.jit(lambda x, n: x * n, static_argnums=1)
print(fast(jax.numpy.ones(3), 2), type(fast).__name__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[2. 2. 2.] CoPjitFunction\n", done.stderr
