"""Image classifiers of timm by name, with published weights or those of a safetensors file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import hub, weights as files

if TYPE_CHECKING:
    import torch
    from torch import nn

    from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

IMAGENET = "imagenet-1k"


def load(source: Mapping[str, Any], device: torch.device | str = "cpu") -> TorchImageClassifier:
    """{"timm": name, with its tag or without, "weights"?: "DEFAULT" or a file}; preprocessing is that of the name's
    configuration."""
    hub.required("timm")
    import timm
    from timm.data import ImageNetInfo

    name = source["timm"]
    if not timm.is_model(name):
        near = timm.list_models(f"*{name.partition('.')[0]}*")[:12]
        raise hub.BadModel(f"timm has no model “{name}”.", given=name, allowed=near or None)
    wanted = source.get("weights", "DEFAULT")
    local = wanted.endswith(".safetensors")
    if not local and wanted != "DEFAULT":
        raise hub.BadModel(
            f"Weights of timm are part of the name; “{wanted}” is neither DEFAULT nor a file.",
            given=wanted,
            allowed=["DEFAULT", "a .safetensors file"],
            hint="For example timm:resnet18.a1_in1k",
        )
    stated = timm.get_pretrained_cfg(name)
    full = f"{name.partition('.')[0]}.{stated.tag}" if stated is not None and stated.tag else name
    tensors = files.read(Path(wanted) if local else hub.published("timm", full, "DEFAULT"))

    def make(outputs: int | None) -> nn.Module:
        given = {} if outputs is None else {"num_classes": outputs}
        made: nn.Module = timm.create_model(name, pretrained=False, **given)
        return made

    net = files.network(make, tensors, f"timm's {name}")
    config = timm.data.resolve_data_config({}, model=net)
    shape = preprocessing(config)
    info = ImageNetInfo(IMAGENET)
    names = [str(info.index_to_description(i)) for i in range(info.num_classes())]
    return hub.adapter(
        net,
        source,
        classes=hub.fitting(names, net, shape.size),
        preprocessing=shape,
        device=device,
        name=name,
        code=f"timm {full}",
        description=f"{name} of timm, weights {Path(wanted).name if local else 'as published'}.",
        terms="" if local else str(getattr(stated, "license", None) or ""),
    )


def preprocessing(config: Mapping[str, Any]) -> Preprocessing:
    """Of timm's configuration: input size, share of the picture, its proportions kept ("center") or not ("squash")."""
    from fanlight.adapters.image_classifier import Preprocessing

    mode = config.get("crop_mode") or "center"
    if mode not in ("center", "squash"):
        raise hub.BadModel(f"Preprocessing of the kind “{mode}” is not offered.", given=mode)
    return Preprocessing(
        (int(config["input_size"][1]), int(config["input_size"][2])),
        crop=float(config["crop_pct"]),
        squash=mode == "squash",
        interpolation=config["interpolation"],
        mean=tuple(255 * m for m in config["mean"]),
        std=tuple(255 * s for s in config["std"]),
    )
