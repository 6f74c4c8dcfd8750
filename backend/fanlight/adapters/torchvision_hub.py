"""Image classifiers of torchvision by name, with published weights or those of a safetensors file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import hub, weights as files

if TYPE_CHECKING:
    import torch
    from torch import nn

    from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier


def load(source: Mapping[str, Any], device: torch.device | str = "cpu") -> TorchImageClassifier:
    """{"torchvision": name, "weights"?: name of published weights or file}; preprocessing is that of the weights, for
    a file that of the architecture's default weights."""
    from torchvision import models

    name = source["torchvision"]
    known = models.list_models(module=models)
    if name not in known:
        raise hub.BadModel(f"torchvision has no image classifier “{name}”.", given=name, allowed=known)
    published = models.get_model_weights(name)
    wanted = source.get("weights", "DEFAULT")
    local = wanted.endswith(".safetensors")
    if not local and wanted not in (*published.__members__, "DEFAULT"):
        raise hub.BadModel(
            f"torchvision publishes no weights “{wanted}” of {name}.",
            given=wanted,
            allowed=["DEFAULT", *published.__members__, "a .safetensors file"],
        )
    chosen = published["DEFAULT" if local else wanted]
    tensors = files.read(Path(wanted) if local else hub.published("torchvision", name, chosen.name))

    def make(outputs: int | None) -> nn.Module:
        made: nn.Module = models.get_model(name, weights=None, **({} if outputs is None else {"num_classes": outputs}))
        return made

    net = files.network(make, tensors, f"torchvision's {name}")
    names, shape = chosen.meta["categories"], preprocessing(chosen.transforms())
    return hub.adapter(
        net,
        source,
        classes=hub.fitting(names, net, shape.size),
        preprocessing=shape,
        device=device,
        name=name,
        code=f"torchvision {name}",
        description=f"{name} of torchvision, weights {Path(wanted).name if local else chosen.name}.",
        terms="BSD-3-Clause; the data it was trained on have terms of their own" if not local else "",
    )


def preprocessing(published: Any) -> Preprocessing:
    """Of torchvision's preset: the shorter side is scaled, the middle cut out, mean and std per channel."""
    from fanlight.adapters.image_classifier import Preprocessing

    side = int(published.crop_size[0])
    return Preprocessing(
        (side, side),
        crop=min(1.0, side / int(published.resize_size[0])),
        interpolation=published.interpolation.value,
        mean=tuple(255 * m for m in published.mean),
        std=tuple(255 * s for s in published.std),
    )
