"""Networks in int8 as ONNX Runtime's own quantiser writes them: it runs the faster way, OpenVINO the static one.

Weights have a scale for each output channel. Activations have one scale, known before the call ("static") or found in
each call ("dynamic"). Products alone are quantised: with all that the quantiser knows, results are wrong (ResNet-50 by
0.93 of its scale instead of 0.05).
"""

from __future__ import annotations

import collections
import functools
import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from xcoexec.codegen.target import target
from xcoexec.measure.timing import alternate
from xcoexec.tools import bench

from . import networks, onnx_graphs, openvino_graphs, peers
from .onnx_idioms import idiomatic

Call = Callable[[], Any]
PRODUCTS = ("Conv", "Gemm", "MatMul")
WAYS = ("static", "dynamic")


def quantised(name: str, batch: int, way: str) -> bytes:
    """A network in int8 as an ONNX graph, calibrated by its example. Raises what the quantiser raises."""
    from onnxruntime import quantization as q
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with tempfile.TemporaryDirectory() as folder:
        wide, ready, narrow = (pathlib.Path(folder) / f"{part}.onnx" for part in ("wide", "ready", "narrow"))
        wide.write_bytes(_wide(name, batch))
        quant_pre_process(str(wide), str(ready))
        _whole_biases(ready)
        common: dict[str, Any] = {
            "per_channel": True,
            "weight_type": q.QuantType.QInt8,
            "reduce_range": not _sums_whole(),
        }
        if way == "dynamic":
            q.quantize_dynamic(str(ready), str(narrow), **common)
        else:
            common |= {"activation_type": q.QuantType.QUInt8, "op_types_to_quantize": list(PRODUCTS)}
            extra = {"QDQDisableWeightAdjustForInt32Bias": True}
            q.quantize_static(str(ready), str(narrow), _example(name, batch, ready), extra_options=extra, **common)
        return narrow.read_bytes()


def _sums_whole() -> bool:
    """Whether the CPU adds four products of bytes without a limit of 16 bits (VNNI); elsewhere ONNX Runtime's kernels
    need weights of 7 bits.
    """
    return bool({"+avxvnni", "+avx512vnni"} & set(target().features.split(",")))


def _wide(name: str, batch: int) -> bytes:
    """The graph in f32 that ONNX Runtime takes."""
    try:
        graph = idiomatic(onnx_graphs.exported(name, batch))
        peers.ort_made(graph, 1)
    except Exception:  # its own shape inference refuses some exports
        return idiomatic(onnx_graphs.exported(name, batch, True))
    return graph


def _whole_biases(path: pathlib.Path) -> None:
    """A dense layer's bias that is one number becomes an array: the quantiser takes nothing else."""
    import onnx

    model = onnx.load(str(path))
    known = {i.name: i for i in model.graph.initializer}
    for node in model.graph.node:
        bias = known.get(node.input[2]) if node.op_type == "Gemm" and len(node.input) > 2 else None
        if bias is not None and not bias.dims:
            turned = any(a.name == "transB" and a.i for a in node.attribute)
            wide = np.full(known[node.input[1]].dims[0 if turned else 1], onnx.numpy_helper.to_array(bias))
            node.input[2] = f"{node.output[0]} bias"
            model.graph.initializer.append(onnx.numpy_helper.from_array(wide, node.input[2]))
    onnx.save(model, str(path))


def _example(name: str, batch: int, graph: pathlib.Path) -> Any:
    """The network's example, as the quantiser asks for it."""
    import onnx
    from onnxruntime import quantization as q

    names = [i.name for i in onnx.load(str(graph), load_external_data=False).graph.input]
    leaves = jax.tree_util.tree_leaves(networks.get(name).example(batch, bench.SEED))
    left = [dict(zip(names, map(np.asarray, leaves), strict=True))]

    class Reader(q.CalibrationDataReader):  # type: ignore[misc]
        def get_next(self) -> Any:
            return left.pop() if left else None

    return Reader()


def session(graph: bytes, threads: int) -> tuple[Any, dict[str, int]]:
    """ONNX Runtime's session of a graph, and how often each of its operations is in what it runs."""
    import onnx

    with tempfile.TemporaryDirectory() as folder:
        optimised = str(pathlib.Path(folder) / "run.onnx")
        made = peers.ort_made(graph, threads, optimised)
        nodes = onnx.load(optimised).graph.node
    return made, dict(collections.Counter(n.op_type for n in nodes))


def ort(name: str, batch: int, threads: int) -> tuple[Call, dict[str, int]]:
    """A call of a network on ONNX Runtime in the faster way, and what it runs."""
    leaves = jax.tree_util.tree_leaves(networks.get(name).example(batch, bench.SEED))
    ran, calls = {}, {}
    for way in WAYS:
        made, ran[way] = session(quantised(name, batch, way), threads)
        calls[way] = functools.partial(made.run, None, peers.ort_feeds(made, leaves))
    seconds = alternate(calls, 3, 0.2)
    way = min(seconds, key=lambda k: seconds[k])
    return calls[way], {way: 1, **ran[way]}


def openvino(name: str, batch: int, threads: int) -> tuple[Call, dict[str, int]]:
    """A call of a network on OpenVINO, and the products by the type they run in."""
    request = peers.openvino_request(quantised(name, batch, WAYS[0]), threads)
    peers.openvino_run(request, jax.tree_util.tree_leaves(networks.get(name).example(batch, bench.SEED)))
    return request.infer, openvino_graphs.types(request.get_compiled_model())
