"""What is trained in `benchmarks.train`, for processes with JAX and for those with PyTorch."""

from __future__ import annotations

#: network -> batch
CASES = {
    **{"lenet": 32, "mlp": 32},
    **{name: 8 for name in ("mobilenet_v2", "resnet18", "resnet50", "efficientnet_b0", "convnext_t", "vit_s16", "gpt")},
}
RATE, MOMENTUM = 1e-3, 0.9  # of stochastic gradient descent
BATCHES = 4  # that steps take in turn
#: PyTorch's: eager as users write it, in channels-last memory, and compiled (in channels-last memory too)
WAYS = ("eager", "channels_last", "compile")
