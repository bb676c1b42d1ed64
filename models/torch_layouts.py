"""Names and layouts of PyTorch models that the zoo has too: those of the common implementations, one table a family.

A table lists (path of a Flax module, name of the PyTorch module, layout). Paths and names are spelled out from the
structure of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .classic import VGG, AlexNet
from .decoder import Decoder
from .dense import FastStyle
from .detect import RetinaFace
from .inception import MODULES, GoogLeNet
from .mobile import SEPARABLE, MobileNetV1, MobileNetV2
from .residual import BasicBlock, ResNet
from .squeezenet import SqueezeNet
from .transformer import BERT, ViT

Array = np.ndarray
Line = tuple[str, str, str]  # Flax path, PyTorch name, layout
Table = Iterator[Line]
Take = Callable[[str], Array | None]  # the tensor of that end of a module's name; None: there is none
Leaves = dict[str, Array | None]  # collection/leaf -> array
Layout = Callable[[Take], Leaves]

# -- layouts: PyTorch tensors of one module -> Flax leaves (collection/leaf -> array) ------------------------


def _conv(take: Take) -> Leaves:
    w = take("weight")
    return {"params/kernel": None if w is None else w.transpose(2, 3, 1, 0), "params/bias": take("bias")}


def _dense(take: Take) -> Leaves:
    w = take("weight")
    return {"params/kernel": None if w is None else w.T, "params/bias": take("bias")}


def _norm(take: Take) -> Leaves:
    names = {
        "params/scale": "weight",
        "params/bias": "bias",
        "batch_stats/mean": "running_mean",
        "batch_stats/var": "running_var",
    }
    return {leaf: take(name) for leaf, name in names.items()}


def _flat(channels: int) -> Layout:
    """A dense layer behind a flattened image: PyTorch flattens [C, H, W], Flax [H, W, C]."""

    def rule(take: Take) -> Leaves:
        w = take("weight")
        if w is not None:
            side = round((w.shape[1] // channels) ** 0.5)
            w = w.reshape(-1, channels, side, side).transpose(2, 3, 1, 0).reshape(-1, w.shape[0])
        return {"params/kernel": w, "params/bias": take("bias")}

    return rule


def _part(index: int) -> Layout:
    """One third of a dense layer that computes queries, keys and values at once."""

    def rule(take: Take) -> Leaves:
        w, b = take("weight"), take("bias")
        return {
            "params/kernel": None if w is None else np.split(w, 3)[index].T,
            "params/bias": None if b is None else np.split(b, 3)[index],
        }

    return rule


def _whole(leaf: str, *index: int) -> Layout:
    return lambda take: {f"params/{leaf}": take("")}


def _ignored(take: Take) -> Leaves:
    """A head that is the embedding, of which some files hold a copy."""
    take("weight")
    return {}


def _turned(*found: Array | None) -> Array | None:
    """The first matrix that is there, [in, out]."""
    return next((w.T for w in found if w is not None), None)


def _experts(count: int) -> Layout:
    """Matrices of `count` experts, one beside the other: [count, in, out]. Their names are Qwen's, or Mixtral's."""

    def stacked(take: Take, qwen: str, mixtral: str) -> Array | None:
        names = (
            (f"mlp.experts.{e}.{qwen}.weight", f"block_sparse_moe.experts.{e}.{mixtral}.weight") for e in range(count)
        )
        found = [_turned(take(a), take(b)) for a, b in names]
        there = [w for w in found if w is not None]
        return np.stack(there) if len(there) == count else None

    parts = {"gate": ("gate_proj", "w1"), "up": ("up_proj", "w3"), "down": ("down_proj", "w2")}
    return lambda take: {f"params/{leaf}": stacked(take, *names) for leaf, names in parts.items()}


def layout_of(text: str) -> Layout:
    """The rule of a layout's name; `experts:8` is that of 8 experts."""
    kind, _, count = text.partition(":")
    return _experts(int(count)) if kind == "experts" else LAYOUTS[text]


LAYOUTS: dict[str, Layout] = {
    "conv": _conv,
    "dense": _dense,
    "norm": _norm,
    "rows": lambda take: {"params/kernel": take("weight"), "params/bias": take("bias")},
    "embed": lambda take: {"params/embedding": take("weight")},
    "tied": _ignored,
    "router": lambda take: {"params/kernel": _turned(take("mlp.gate.weight"), take("block_sparse_moe.gate.weight"))},
    "query": _part(0),
    "key": _part(1),
    "value": _part(2),
    **{f"flat{c}": _flat(c) for c in (256, 512)},
    **{f"raw:{leaf}": _whole(leaf) for leaf in ("token", "position", "kind")},
}


# -- tables ---------------------------------------------------------------------------------------------------


def _normed(path: str, conv: str, norm: str) -> Table:
    yield f"{path}/Conv_0", conv, "conv"
    yield f"{path}/BatchNorm_0", norm, "norm"


def _vgg(module: VGG) -> Table:
    at = count = 0
    for convs, _ in module.stages:
        for _ in range(convs):
            yield f"Conv_{count}", f"features.{at}", "conv"
            at, count = at + 2, count + 1
        at += 1
    for i, (name, layout) in enumerate((("0", "flat512"), ("3", "dense"), ("6", "dense"))):
        yield f"Dense_{i}", f"classifier.{name}", layout


def _alexnet(module: AlexNet) -> Table:
    for i, at in enumerate((0, 3, 6, 8, 10)):
        yield f"Conv_{i}", f"features.{at}", "conv"
    for i, (name, layout) in enumerate((("1", "flat256"), ("4", "dense"), ("6", "dense"))):
        yield f"Dense_{i}", f"classifier.{name}", layout


def _squeezenet(module: SqueezeNet) -> Table:
    yield "Conv_0", "features.0", "conv"
    for i, at in enumerate((3, 4, 5, 7, 8, 9, 10, 12)):
        for j, name in enumerate(("squeeze", "expand1x1", "expand3x3")):
            yield f"Fire_{i}/Conv_{j}", f"features.{at}.{name}", "conv"
    yield "Conv_1", "classifier.1", "conv"


def _googlenet(module: GoogLeNet) -> Table:
    names = ["conv1", "conv2", "conv3"]
    stages = iter(("3a", "3b", "4a", "4b", "4c", "4d", "4e", "5a", "5b"))
    for m in MODULES:
        if m is not None:
            stage = next(stages)
            names += [
                f"inception{stage}.{b}"
                for b in ("branch1", "branch2.0", "branch2.1", "branch3.0", "branch3.1", "branch4.1")
            ]
    for i, name in enumerate(names):
        if module.norm:
            yield from _normed(f"Convolution_{i}/ConvNorm_0", f"{name}.conv", f"{name}.bn")
        else:
            yield f"Convolution_{i}/Conv_0", f"{name}.conv", "conv"
    yield "Dense_0", "fc", "dense"


def _stages(blocks: tuple[int, ...], basic: bool, prefix: str) -> Table:
    """torchvision's ResNet without the classifier."""
    yield from _normed("ResNetStages_0/ConvNorm_0", f"{prefix}conv1", f"{prefix}bn1")
    kind, convs, number = ("BasicBlock", 2, 0) if basic else ("Bottleneck", 3, 0)
    for stage, count in enumerate(blocks):
        for i in range(count):
            path, name = f"ResNetStages_0/{kind}_{number}", f"{prefix}layer{stage + 1}.{i}"
            for c in range(convs):
                yield from _normed(f"{path}/ConvNorm_{c}", f"{name}.conv{c + 1}", f"{name}.bn{c + 1}")
            if i == 0 and (stage or not basic):
                yield from _normed(f"{path}/ConvNorm_{convs}", f"{name}.downsample.0", f"{name}.downsample.1")
            number += 1


def _resnet(module: ResNet) -> Table:
    yield from _stages(module.blocks, module.block is BasicBlock, "")
    yield "Dense_0", "fc", "dense"


def _separable(path: str, name: str) -> Table:
    yield from _normed(f"{path}/ConvNorm_0", f"{name}.0", f"{name}.1")
    yield from _normed(f"{path}/ConvNorm_1", f"{name}.3", f"{name}.4")


def _mobilenet_v1(module: MobileNetV1) -> Table:
    yield from _normed("ConvNorm_0", "model.0.0", "model.0.1")
    for i in range(len(SEPARABLE)):
        yield from _separable(f"Separable_{i}", f"model.{i + 1}")
    yield "Dense_0", "fc", "dense"


def _mobilenet_v2(module: MobileNetV2) -> Table:
    yield from _normed("ConvNorm_0", "features.0.0", "features.0.1")
    number = 0
    for expansion, _, repeats, _ in module.stages:
        for _ in range(repeats):
            path, name = f"InvertedResidual_{number}", f"features.{number + 1}.conv"
            inner = 1 if expansion == 1 else 2
            for c in range(inner):
                yield from _normed(f"{path}/ConvNorm_{c}", f"{name}.{c}.0", f"{name}.{c}.1")
            yield from _normed(f"{path}/ConvNorm_{inner}", f"{name}.{inner}", f"{name}.{inner + 1}")
            number += 1
    yield from _normed("ConvNorm_1", f"features.{number + 1}.0", f"features.{number + 1}.1")
    yield "Dense_0", "classifier.1", "dense"


def _retinaface(module: RetinaFace) -> Table:
    if module.wide:
        yield from _stages((3, 4, 6, 3), False, "body.")
    else:
        yield from _normed("MobileNetQuarter_0/ConvNorm_0", "body.stage1.0.0", "body.stage1.0.1")
        number = 0
        for stage, (first, count) in enumerate(((1, 5), (0, 6), (0, 2))):
            for i in range(count):
                yield from _separable(f"MobileNetQuarter_0/Separable_{number}", f"body.stage{stage + 1}.{first + i}")
                number += 1
    for i, name in enumerate(("output1", "output2", "output3", "merge2", "merge1")):
        yield from _normed(f"ConvNorm_{i}", f"fpn.{name}.0", f"fpn.{name}.1")
    for i in range(3):
        for c, name in enumerate(("conv3X3", "conv5X5_1", "conv5X5_2", "conv7x7_3", "conv7X7_2")):
            yield from _normed(f"Context_{i}/ConvNorm_{c}", f"ssh{i + 1}.{name}.0", f"ssh{i + 1}.{name}.1")
        for h, head in enumerate(("BboxHead", "ClassHead", "LandmarkHead")):
            yield f"Conv_{3 * h + i}", f"{head}.{i}.conv1x1", "conv"


def _fast_style(module: FastStyle) -> Table:
    names = [("conv1", "in1"), ("conv2", "in2"), ("conv3", "in3")]
    names += [(f"res{i}.conv{c}", f"res{i}.in{c}") for i in range(1, 6) for c in (1, 2)]
    names += [("deconv1", "in4"), ("deconv2", "in5"), ("deconv3", "")]
    for i, (conv, norm) in enumerate(names):
        yield f"Conv_{i}", f"{conv}.conv2d", "conv"
        if norm:
            yield f"InstanceNorm_{i}", norm, "norm"


def _vit(module: ViT) -> Table:
    yield "", "cls_token", "raw:token"
    yield "", "pos_embed", "raw:position"
    yield "Conv_0", "patch_embed.proj", "conv"
    for i in range(module.depth):
        for part in ("query", "key", "value"):
            yield f"SelfAttention_{i}/{part}", f"blocks.{i}.attn.qkv", part
        yield f"SelfAttention_{i}/out", f"blocks.{i}.attn.proj", "dense"
        yield f"MLP_{i}/inner", f"blocks.{i}.mlp.fc1", "dense"
        yield f"MLP_{i}/outer", f"blocks.{i}.mlp.fc2", "dense"
        for n in (1, 2):
            yield f"LayerNorm_{2 * i + n - 1}", f"blocks.{i}.norm{n}", "norm"
    yield f"LayerNorm_{2 * module.depth}", "norm", "norm"
    yield "Dense_0", "head", "dense"


def _bert(module: BERT) -> Table:
    yield "", "embeddings.position_embeddings.weight", "raw:position"
    yield "", "embeddings.token_type_embeddings.weight", "raw:kind"
    yield "Embed_0", "embeddings.word_embeddings", "embed"
    yield "LayerNorm_0", "embeddings.LayerNorm", "norm"
    for i in range(module.depth):
        name = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            yield f"SelfAttention_{i}/{part}", f"{name}.attention.self.{part}", "dense"
        yield f"SelfAttention_{i}/out", f"{name}.attention.output.dense", "dense"
        yield f"LayerNorm_{2 * i + 1}", f"{name}.attention.output.LayerNorm", "norm"
        yield f"MLP_{i}/inner", f"{name}.intermediate.dense", "dense"
        yield f"MLP_{i}/outer", f"{name}.output.dense", "dense"
        yield f"LayerNorm_{2 * i + 2}", f"{name}.output.LayerNorm", "norm"
    yield "Dense_0", "pooler.dense", "dense"


def _decoder(module: Decoder) -> Table:
    dense = "rows" if module.rows else "dense"
    yield "Embed_0", "model.embed_tokens", "embed"
    for i in range(module.depth):
        name = f"model.layers.{i}"
        for path, part in (("query", "q"), ("key", "k"), ("value", "v"), ("out", "o")):
            yield f"Attention_{i}/{path}", f"{name}.self_attn.{part}_proj", dense
        for path, part in (("query_norm", "q_norm"), ("key_norm", "k_norm")) if module.normed else ():
            yield f"Attention_{i}/{path}", f"{name}.self_attn.{part}", "norm"
        if module.routing is None:
            for part in ("gate", "up", "down"):
                yield f"{part}_{i}", f"{name}.mlp.{part}_proj", dense
        else:
            yield f"experts_{i}/router", name, "router"
            yield f"experts_{i}", name, f"experts:{module.routing.experts}"
        yield f"RMSNorm_{2 * i}", f"{name}.input_layernorm", "norm"
        yield f"RMSNorm_{2 * i + 1}", f"{name}.post_attention_layernorm", "norm"
    yield f"RMSNorm_{2 * module.depth}", "model.norm", "norm"
    yield "head", "lm_head", "tied" if module.tied else dense


#: module class name -> table; the layouts are those of torchvision, timm (ViT), Transformers (BERT, Llama), and the
#: widely used PyTorch versions of MobileNetV1, RetinaFace and fast neural style; each takes a module of its class
TABLES: dict[str, Callable[..., Table]] = {
    AlexNet.__name__: _alexnet,
    VGG.__name__: _vgg,
    SqueezeNet.__name__: _squeezenet,
    GoogLeNet.__name__: _googlenet,
    ResNet.__name__: _resnet,
    MobileNetV1.__name__: _mobilenet_v1,
    MobileNetV2.__name__: _mobilenet_v2,
    RetinaFace.__name__: _retinaface,
    FastStyle.__name__: _fast_style,
    ViT.__name__: _vit,
    BERT.__name__: _bert,
    Decoder.__name__: _decoder,
}


__all__ = ["TABLES", "Array", "Leaves", "Line", "Take", "layout_of"]
