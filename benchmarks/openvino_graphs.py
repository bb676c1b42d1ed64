"""Networks as graphs of OpenVINO's own operations, channels first, with random weights: what it runs best.

int8 stands in a graph as pairs of rounding and scaling (FakeQuantize): of weights by output channel, of activations by
one range.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

NETWORKS = ("resnet50", "mobilenet_v2")
PLUS, BOTH = (0.0, 4.0), (-4.0, 4.0)  # ranges of activations: behind a ReLU, and of any sign
LEVELS = 256


class _Graph:
    """Operations of a network; in `int8` where that is wanted."""

    def __init__(self, int8: bool):
        from openvino import opset13

        self.ops, self.int8, self.random = opset13, int8, np.random.default_rng(0)

    def number(self, x: Any) -> Any:
        return self.ops.constant(np.asarray(x, np.float32))

    def rounded(self, x: Any, span: tuple[float, float]) -> Any:
        """Activations as int8 has them."""
        if not self.int8:
            return x
        ends = [self.number(end) for end in span]
        return self.ops.fake_quantize(x, *ends, *ends, LEVELS)

    def weights(self, *shape: int) -> Any:
        """Random ones, output channels first."""
        array = self.random.standard_normal(shape, np.float32) * (2 / np.prod(shape[1:])) ** 0.5
        if not self.int8:
            return self.number(array)
        most = np.abs(array).reshape(shape[0], -1).max(1).reshape(-1, *[1] * (len(shape) - 1))
        ends = [self.number(-most), self.number(most)]
        return self.ops.fake_quantize(self.number(array), *ends, *ends, LEVELS - 1)

    def conv(self, x: Any, cin: int, cout: int, k: int, stride: int = 1, span: tuple[float, float] = PLUS) -> Any:
        """A convolution with a bias."""
        where = ([stride] * 2, [k // 2] * 2, [k // 2] * 2, [1, 1])
        y = self.ops.convolution(self.rounded(x, span), self.weights(cout, cin, k, k), *where)
        return self.ops.add(y, self.number(np.full((1, cout, 1, 1), 0.1)))

    def depthwise(self, x: Any, channels: int, stride: int) -> Any:
        """A depthwise convolution of 3 by 3 with a bias."""
        where = ([stride] * 2, [1, 1], [1, 1], [1, 1])
        y = self.ops.group_convolution(self.rounded(x, PLUS), self.weights(channels, 1, 1, 3, 3), *where)
        return self.ops.add(y, self.number(np.full((1, channels, 1, 1), 0.1)))

    def head(self, x: Any, channels: int) -> Any:
        """Means of all pixels, and a dense layer."""
        x = self.ops.reduce_mean(x, self.ops.constant(np.array([2, 3])), False)
        y = self.ops.matmul(self.rounded(x, PLUS), self.weights(1000, channels), False, True)
        return self.ops.add(y, self.number(np.zeros((1, 1000))))


def _resnet50(g: _Graph, x: Any) -> Any:
    relu, c = g.ops.relu, 64
    x = relu(g.conv(x, 3, 64, 7, 2, BOTH))
    x = g.ops.max_pool(x, [2, 2], [1, 1], [1, 1], [1, 1], [3, 3]).output(0)
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            y = relu(g.conv(relu(g.conv(x, c, width, 1)), width, width, 3, stride))
            y = g.conv(y, width, 4 * width, 1)
            x = g.conv(x, c, 4 * width, 1, stride) if not block else g.rounded(x, BOTH)
            x, c = relu(g.ops.add(y, x)), 4 * width
    return g.head(x, c)


def _mobilenet_v2(g: _Graph, x: Any) -> Any:
    relu6: Callable[[Any], Any] = lambda y: g.ops.clamp(y, 0.0, 6.0)
    x, c = relu6(g.conv(x, 3, 32, 3, 2, BOTH)), 32
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for wider, out, blocks, first in rows:
        for block in range(blocks):
            stride = first if not block else 1
            y = relu6(g.conv(x, c, c * wider, 1, 1, BOTH)) if wider > 1 else x
            y = g.conv(relu6(g.depthwise(y, c * wider, stride)), c * wider, out, 1)
            x, c = g.ops.add(x, y) if stride == 1 and c == out else y, out
    return g.head(relu6(g.conv(x, c, 1280, 1, 1, BOTH)), 1280)


def request(name: str, kind: str, batch: int, threads: int) -> tuple[Callable[[], Any], dict[str, int]]:
    """A call of a network as f32, bf16 or int8, and the convolutions and dense layers by the type they run in."""
    import openvino as ov

    g = _Graph(kind == "int8")
    x = g.ops.parameter([batch, 3, 224, 224], np.float32)
    y = {"resnet50": _resnet50, "mobilenet_v2": _mobilenet_v2}[name](g, x)
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "bf16" if kind == "bf16" else "f32",
    }
    made = ov.Core().compile_model(ov.Model([y], [x], name), "CPU", options)
    asked = made.create_infer_request()
    asked.set_input_tensor(0, ov.Tensor(g.random.standard_normal((batch, 3, 224, 224), np.float32)))
    return asked.infer, types(made)


def types(made: Any) -> dict[str, int]:
    """Convolutions and dense layers of a compiled model by the type they run in."""
    ran: dict[str, int] = {}
    for op in made.get_runtime_model().get_ordered_ops():
        about = {key: str(getattr(value, "value", value)) for key, value in op.get_rt_info().items()}
        if about["layerType"] in ("Convolution", "FullyConnected", "MatMul"):
            key = f"{about['layerType']} {about['runtimePrecision']}"
            ran[key] = ran.get(key, 0) + 1
    return ran
