"""What `make bench` runs: model, batch, strategy."""

from __future__ import annotations

#: (model, batch, strategy); the zoo at batch 1, as in the README's table
CASES: tuple[tuple[str, int, str], ...] = (
    ("fcnn", 1, "auto"),
    ("lenet", 1, "auto"),
    ("alexnet", 1, "auto"),
    ("vgg16", 1, "auto"),
    ("squeezenet", 1, "auto"),
    ("resnet18", 1, "auto"),
    ("mobilenet_v2", 1, "auto"),
)
