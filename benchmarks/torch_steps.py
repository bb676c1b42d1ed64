"""The same training steps in PyTorch: twins of the networks, SGD with momentum, in a process of its own.

    python -m benchmarks.torch_steps resnet18 8 --threads 2

Networks of torchvision are torchvision's; what they drop at random in training they keep here, as ours do.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .block_processes import Block, own_output, peak_bytes, serve
from .train_cases import BATCHES, MOMENTUM, RATE, WAYS


def lenet() -> nn.Module:
    convolutions = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    convolutions += [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*convolutions, *_dense((400, 120, 84, 10)))


def mlp() -> nn.Module:
    return nn.Sequential(*_dense((784, 2500, 2000, 1500, 1000, 500, 10)))


def _dense(widths: tuple[int, ...]) -> list[nn.Module]:
    """Dense layers with ReLU between them."""
    layers = [part for a, b in zip(widths, widths[1:], strict=False) for part in (nn.Linear(a, b), nn.ReLU())]
    return layers[:-1]


class TransformerBlock(nn.Module):
    """A transformer's block, norms first."""

    def __init__(self, width: int, heads: int, epsilon: float, approximate: str, causal: bool):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norms = nn.ModuleList(nn.LayerNorm(width, epsilon) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, t, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
        return x + self.mlp(self.norms[1](x))


class ViT(nn.Module):
    """ViT-S/16 as the zoo's."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 384, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, 384))
        self.position = nn.Parameter(0.02 * torch.randn(1, 197, 384))
        self.blocks = nn.Sequential(*(TransformerBlock(384, 6, 1e-6, "none", False) for _ in range(12)))
        self.norm, self.head = nn.LayerNorm(384, 1e-6), nn.Linear(384, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x)[:, 0]))


class GPT(nn.Module):
    """The decoder of `benchmarks.networks`."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5000, 384)
        self.position = nn.Parameter(0.02 * torch.randn(128, 384))
        self.blocks = nn.Sequential(*(TransformerBlock(384, 6, 1e-6, "tanh", True) for _ in range(6)))
        self.norm, self.head = nn.LayerNorm(384, 1e-6), nn.Linear(384, 5000, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens) + self.position[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def vision(name: str, **given: Any) -> Callable[[], nn.Module]:
    """A network of torchvision."""

    def make() -> nn.Module:
        import torchvision

        return getattr(torchvision.models, name)(**given)

    return make


#: network -> (what makes it, the shape of an input, classes); inputs without a shape are tokens
TWINS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "lenet": (lenet, (1, 28, 28), 10),
    "mlp": (mlp, (784,), 10),
    "mobilenet_v2": (vision("mobilenet_v2", dropout=0.0), (3, 224, 224), 1000),
    "resnet18": (vision("resnet18"), (3, 224, 224), 1000),
    "resnet50": (vision("resnet50"), (3, 224, 224), 1000),
    "efficientnet_b0": (vision("efficientnet_b0", dropout=0.0, stochastic_depth_prob=0.0), (3, 224, 224), 1000),
    "convnext_t": (vision("convnext_tiny", stochastic_depth_prob=0.0), (3, 224, 224), 1000),
    "vit_s16": (ViT, (3, 224, 224), 1000),
    "gpt": (GPT, (), 5000),
}


def data(name: str, batch: int) -> list[tuple[Tensor, Tensor]]:
    """Batches of inputs and labels."""
    _, shape, classes = TWINS[name]
    if not shape:
        tokens = [torch.randint(classes, (batch, 128)) for _ in range(BATCHES)]
        return [(x, x.roll(-1, 1)) for x in tokens]
    return [(torch.randn(batch, *shape), torch.randint(classes, (batch,))) for _ in range(BATCHES)]


def stepper(name: str, batch: int, way: str) -> tuple[Callable[[int], float], int]:
    """(the i-th step -> its loss, number of parameters). Raises what PyTorch raises where the way does not work."""
    model, batches = TWINS[name][0]().train(), data(name, batch)
    if way != "eager" and len(TWINS[name][1]) == 3:
        model = model.to(memory_format=torch.channels_last)
        batches = [(x.to(memory_format=torch.channels_last), y) for x, y in batches]
    elif way == "channels_last":
        raise ValueError("there are no images")
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    forward = torch.compile(model) if way == "compile" else model

    def step(i: int) -> float:
        x, y = batches[i % BATCHES]
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(forward(x).flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step, sum(p.numel() for p in model.parameters())


def block_of(step: Callable[[int], float]) -> Block:
    """Seconds of each step for so many seconds, without the first one unless it is the only one."""

    def block(seconds: float) -> list[float]:
        times: list[float] = []
        began = time.perf_counter()
        while not times or time.perf_counter() - began < seconds:
            start = time.perf_counter()
            step(len(times))
            times.append(time.perf_counter() - start)
        return times[1:] or times

    return block


def main(argv: list[str]) -> None:
    out = own_output()
    parser = argparse.ArgumentParser(prog="benchmarks.torch_steps", description=__doc__)
    parser.add_argument("model")
    parser.add_argument("batch", type=int)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    given = parser.parse_args(argv)
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    blocks: dict[str, Block] = {}
    hello: dict[str, Any] = {"version": torch.__version__, "threads": given.threads, "first_seconds": {}, "missing": {}}
    for way in given.ways:
        try:
            step, hello["parameters"] = stepper(given.model, given.batch, way)
            began = time.perf_counter()
            step(0)
            hello["first_seconds"][way] = time.perf_counter() - began
            step(1)
            blocks[way] = block_of(step)
        except Exception as e:
            hello["missing"][way] = f"{type(e).__name__}: {str(e).splitlines()[0][:200] if str(e) else ''}"
        hello.setdefault("peak_bytes", peak_bytes())  # of the first way alone
    serve({**hello, "ways": list(blocks)}, blocks, out)


if __name__ == "__main__":
    main(sys.argv[1:])
