"""Where the layers of a user's function can run: `xcoexec explain FILE.py:function`."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import re
import sys
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ..frontend.graph import graph_of
from ..ir.layers import LayerGraph
from ..ir.text import layers_text, number

TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i8": "int8", "u8": "uint8"}
TYPES |= {"bool": "bool", "f64": "float64", "i64": "int64"}
EXAMPLE = "example"


def text(where: str, shapes: str = "") -> str:
    """The layers of a function, which of them kernels can run, and why not. `where`: FILE.py:function; `shapes`: its
    arguments as `f32[1,784];f32[784,10]` (none: what the file's `example()` returns). Raises `ValueError` that says
    what is valid.
    """
    fn = _function(where)
    args = _arrays(shapes) if shapes else _example(fn, where)
    try:
        graph = graph_of(_plain(fn), args, 0)[1]
    except (TypeError, NotImplementedError, ValueError) as e:
        raise ValueError(f"xcoexec explain: {where} cannot be traced: {str(e).splitlines()[0]}") from None
    return _text(where, graph)


def _plain(fn: Callable[..., object]) -> Callable[..., object]:
    """The function below a jit."""
    return getattr(fn, "__wrapped__", fn)


def _function(where: str) -> Callable[..., object]:
    path, _, name = where.rpartition(":")
    if not path.endswith(".py") or not name.isidentifier():
        raise ValueError(f"xcoexec explain: got {where or 'nothing'}; valid is FILE.py:function.")
    if not pathlib.Path(path).is_file():
        raise ValueError(f"xcoexec explain: got {path}; valid is a file that is there.")
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    assert spec is not None and spec.loader is not None  # the name ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not callable(found):
        known = [n for n, f in vars(module).items() if callable(f) and getattr(f, "__module__", "") == module.__name__]
        raise ValueError(f"xcoexec explain: got {name}; valid are {', '.join(known) or 'no functions'}.")
    return found


def _example(fn: Callable[..., object], where: str) -> tuple[object, ...]:
    """The arguments that the function's file gives."""
    made = getattr(_plain(fn), "__globals__", {}).get(EXAMPLE)
    if made is None:
        if not inspect.signature(fn).parameters:
            return ()
        raise ValueError(
            f"xcoexec explain: got {where} without arguments; valid is --shapes='f32[1,784];f32[784,10]', or a function"
            f" {EXAMPLE}() in the file that returns a tuple of them."
        )
    args = made()
    return args if isinstance(args, tuple) else (args,)


def _arrays(shapes: str) -> tuple[object, ...]:
    return tuple(_array(one.strip()) for one in shapes.split(";"))


def _array(one: str) -> object:
    found = re.fullmatch(r"(\w+)\[([\d, ]*)\]", one)
    if not found or found.group(1) not in TYPES:
        raise ValueError(
            f"xcoexec explain: got --shapes={one!r}; valid are shapes such as f32[1,784], of {', '.join(TYPES)}."
        )
    sizes = tuple(int(n) for n in found.group(2).split(",") if n.strip())
    return jnp.asarray(np.zeros(sizes), TYPES[found.group(1)])


def _text(where: str, graph: LayerGraph) -> str:
    work = sum(x.flops for x in graph.layers)
    here = [x for x in graph.layers if not x.host_error]
    share = sum(x.flops for x in here) / work if work else 1.0
    lines = [
        f"{where}: {len(graph.layers)} layer{'s' * (len(graph.layers) != 1)}, {number(work / 1e6)} MFLOP a call.",
        f"Kernels can run {len(here)} of them ({100 * share:.0f} % of the FLOP); the others stay with XLA.",
        "",
        layers_text(graph),
    ]
    return "\n".join([*lines, "", "Which half is the faster one is measured when the function is planned."])


__all__ = ["text"]
