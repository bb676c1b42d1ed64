"""The models by name, with what is known of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax.typing import VariableDict

from .classic import FCNN, VGG, AlexNet, LeNet5
from .decoder import Decoder, Step
from .dense import FastStyle, FCN8s
from .detect import RetinaFace, YOLOv2, YOLOv3
from .inception import GoogLeNet
from .mobile import MobileNetV1, MobileNetV2, PoseNet
from .residual import Bottleneck, ResNet
from .squeezenet import SqueezeNet
from .transformer import BERT, ViT


@dataclasses.dataclass(frozen=True)
class Entry:
    """A model: its module, the shape of one input (without the batch), its parameter count, and its multiply-adds as
    published.

    `vocabulary` > 0: inputs are token ids below it. `step`: the input is one step of a decoder, with its cache.
    """

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    parameters: int
    macs: float | None = None
    vocabulary: int = 0
    step: bool = False

    @property
    def module(self) -> nn.Module:
        return self.make()

    def variables(self, seed: int = 0) -> VariableDict:
        """Random weights, and running statistics that are not trivial (so that folding is seen to matter): f32 arrays
        of the shapes that the module wants.
        """
        return random_variables(self.module, self.example(), seed)

    def shapes(self) -> VariableDict:
        """The shapes of `variables`, of which none is drawn."""
        return _shapes(self.module, self.example())

    def example(self, batch: int = 1, seed: int = 0) -> jax.Array | Step:
        """A random input: f32 of shape [batch, *shape], token ids s32 [batch, *shape], or a decoder's `Step`."""
        rng = np.random.default_rng(seed)
        if not self.vocabulary:
            return jax.device_put(rng.standard_normal((batch, *self.shape), np.float32))
        tokens = jax.device_put(rng.integers(0, self.vocabulary, (batch, *self.shape)).astype(np.int32))
        if not self.step:
            return tokens
        module = cast(Decoder, self.module)
        cache = jax.tree_util.tree_map(
            lambda c: jax.device_put(rng.standard_normal(c.shape, np.float32)), module.empty_cache(batch)
        )
        return Step(tokens, cache, jnp.int32(module.length // 2))


def random_variables(module: nn.Module, example: object, seed: int = 0) -> VariableDict:
    """Random f32 arrays of the shapes that a module wants for an `example` input, of which shapes and types count."""
    rng = np.random.default_rng(seed)
    made: VariableDict = jax.tree_util.tree_map_with_path(
        lambda path, s: _draw(rng, jax.tree_util.keystr(path), s), _shapes(module, example)
    )
    return made


def _shapes(module: nn.Module, example: object) -> VariableDict:
    made: VariableDict = jax.eval_shape(module.init, jax.random.key(0), example)
    return made


def _draw(rng: np.random.Generator, path: str, s: jax.ShapeDtypeStruct) -> jax.Array:
    if path.endswith("['kernel']"):
        scale = np.sqrt(2.0 / max(1, int(np.prod(s.shape[:-1]))))
        return jax.device_put(rng.standard_normal(s.shape, np.float32) * np.float32(scale))
    if path.endswith("['var']") or path.endswith("['scale']"):
        return jax.device_put(rng.uniform(0.5, 1.5, s.shape).astype(np.float32))
    return jax.device_put(rng.standard_normal(s.shape, np.float32) * np.float32(0.1))


IMAGE = (224, 224, 3)
_ENTRIES = (
    Entry("fcnn", FCNN, (28, 28, 1), 2_913_290),
    Entry("lenet", LeNet5, (28, 28, 1), 61_706),
    Entry("mlp", partial(FCNN, (2500, 2000, 1500, 1000, 500)), (784,), 11_972_510),
    Entry("alexnet", AlexNet, IMAGE, 61_100_840, 0.714e9),
    Entry("vgg11", partial(VGG, ((1, 64), (1, 128), (2, 256), (2, 512), (2, 512))), IMAGE, 132_863_336, 7.61e9),
    Entry("vgg16", VGG, IMAGE, 138_357_544, 15.47e9),
    Entry("squeezenet", SqueezeNet, IMAGE, 1_248_424, 0.82e9),
    Entry("googlenet", GoogLeNet, IMAGE, 6_998_552, 1.58e9),
    Entry("resnet18", ResNet, IMAGE, 11_689_512, 1.81e9),
    Entry("resnet50", partial(ResNet, (3, 4, 6, 3), Bottleneck), IMAGE, 25_557_032, 4.09e9),
    Entry("mobilenet_v1", MobileNetV1, IMAGE, 4_231_976, 0.569e9),
    Entry("mobilenet_v2", MobileNetV2, IMAGE, 3_504_872, 0.300e9),
    Entry("yolov2", YOLOv2, (416, 416, 3), 50_962_889, 14.7e9),
    Entry("yolov3", YOLOv3, (416, 416, 3), 61_949_149, 32.93e9),
    Entry("fcn8s", FCN8s, IMAGE, 134_489_759),
    Entry("posenet", PoseNet, (257, 257, 3), 3_324_851),
    Entry("fast_style", FastStyle, (256, 256, 3), 1_679_235),
    Entry("retinaface_mobile", RetinaFace, (320, 320, 3), 426_608),
    Entry("retinaface_resnet50", partial(RetinaFace, True), (320, 320, 3), 27_293_600),
    Entry("vit_s16", ViT, IMAGE, 22_050_664, 4.6e9),
    Entry("bert_base", BERT, (128,), 109_482_240, vocabulary=30522),
    Entry("decoder", Decoder, (1,), 31_597_056, vocabulary=8192, step=True),
)
_BY_NAME = {e.name: e for e in _ENTRIES}
NAMES = tuple(_BY_NAME)


def get(name: str) -> Entry:
    """The model of that name. Raises `ValueError` that lists the valid names."""
    if name not in _BY_NAME:
        raise ValueError(f"xcoexec.models.get: got {name!r}; valid are {', '.join(NAMES)}.")
    return _BY_NAME[name]
