"""Image classifiers of transformers from a local folder in the published format: config.json, preprocessor_config.json,
safetensors. No code of the folder is run, and no pickle is opened.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import hub, weights as files
from fanlight.artifact import canonical
from fanlight_models.shards import strangers

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

HEADS = {
    "single_label_classification": "single-label",
    "multi_label_classification": "multi-label",
    "regression": "regression",
}
RESAMPLING = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
MAX_TEXT = 1 << 20


def load(source: Mapping[str, Any], device: torch.device | str = "cpu") -> TorchImageClassifier:
    """{"transformers": folder}; class names, head and preprocessing are those that the folder states."""
    folder = Path(source["transformers"])
    config = described(folder)
    hub.required("transformers")
    import torch
    from torch import nn
    from transformers import AutoConfig, AutoImageProcessor, AutoModelForImageClassification, logging

    class Logits(nn.Module):
        """(B, 3, H, W) -> (B, K)"""

        def __init__(self, model: nn.Module):
            super().__init__()
            self.model = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.model(pixel_values=x).logits
            return logits

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        with torch.random.fork_rng(devices=[]):
            net, found = AutoModelForImageClassification.from_pretrained(
                folder, use_safetensors=True, dtype=torch.float32, output_loading_info=True, **safe
            )
        parsed = AutoConfig.from_pretrained(folder, **safe)
        processor = AutoImageProcessor.from_pretrained(folder, **safe)
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as e:
        said = str(e).strip().partition("\n")[0]
        raise hub.BadModel(
            f"“{folder.name}” is no image classifier that transformers can load: {said}.", given=str(folder)
        ) from e
    if found["missing_keys"]:
        lacking = sorted(found["missing_keys"])
        raise files.BadWeights(
            f"The weights of “{folder.name}” lack {len(lacking)} tensors, which would be random.", given=lacking[:5]
        )
    kind = parsed.problem_type or ("regression" if parsed.num_labels == 1 else "single_label_classification")
    readme = folder / "README.md"
    return hub.adapter(
        Logits(net),
        source,
        classes=[str(parsed.id2label[i]) for i in range(parsed.num_labels)],
        preprocessing=preprocessing(processor, parsed),
        device=device,
        name=folder.name,
        code=canonical(["transformers", {k: v for k, v in config.items() if k != "transformers_version"}]).decode(),
        head=HEADS[kind],
        description=f"{config['architectures'][0] if config.get('architectures') else parsed.model_type} "
        "from a folder of transformers.",
        card=readme.read_text(encoding="utf-8", errors="replace")[:MAX_TEXT] if readme.is_file() else "",
    )


def described(folder: Path) -> dict[str, Any]:
    """config.json, after looking at what lies in the folder; a sentence where something is missing, a pickle, or code."""
    lacking = [f for f in ("config.json", "preprocessor_config.json") if not (folder / f).is_file()]
    if lacking:
        raise hub.BadModel(
            f"“{folder.name}” is no folder of transformers: it lacks {' and '.join(lacking)}.", given=str(folder)
        )
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        pickled = sorted(f.name for f in folder.glob("*.bin"))
        raise files.BadWeights(
            f"“{folder.name}” holds its weights as a pickle ({', '.join(pickled)}), which could run code and is not opened."
            if pickled
            else f"“{folder.name}” lacks model.safetensors.",
            given=pickled,
            allowed=["model.safetensors"],
            hint="Where you trust it, load it with transformers and save it again: save_pretrained writes safetensors.",
        )
    if strange := strangers(folder):
        raise files.BadWeights(
            f"The index of the weights of “{folder.name}” names {', '.join(strange[:3])}; only safetensors of the same folder are opened.",
            given=strange[:5],
        )
    for file in weights:
        files.check_header(file)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as e:
        raise hub.BadModel(f"config.json of “{folder.name}” is not valid JSON: {e}.") from e
    if not isinstance(config, dict) or "auto_map" in config:
        raise hub.BadModel(
            f"“{folder.name}” brings code of its own, which is not run.",
            hint="Wrap such a model in a Python file that you have read; docs/models.md.",
        )
    return config


def preprocessing(processor: Any, config: Any) -> Preprocessing:
    """What the folder's image processor does, as data: scale to a size (the picture's proportions go) or the shorter
    side to a length, cut out the middle, mean and std per channel."""
    from fanlight.adapters.image_classifier import Preprocessing

    stated = processor.to_dict()
    size, crop = stated.get("size") or {}, stated.get("crop_size") or {}
    if not stated.get("do_resize", True) or not size:
        side = config.image_size
        size = {"height": side, "width": side} if isinstance(side, int) else {"height": side[0], "width": side[1]}
    share, squash = 1.0, "height" in size
    if squash:
        shape = int(size["height"]), int(size["width"])
    else:
        shape = (int(size["shortest_edge"]),) * 2
    if stated.get("crop_pct") and not squash:  # ConvNeXt and ResNet: small pictures are cut, large ones squashed
        squash = shape[0] >= 384
        share = 1.0 if squash else float(stated["crop_pct"])
    elif stated.get("do_center_crop") and crop:
        inner = int(crop["height"]), int(crop["width"])
        share, shape = min(1.0, inner[0] / shape[0]), inner
    factor = 1 / float(stated["rescale_factor"]) if stated.get("do_rescale", True) else 1.0
    normal = stated.get("do_normalize", True)
    mean, std = (stated["image_mean"], stated["image_std"]) if normal else ((0.0,) * 3, (1.0,) * 3)
    return Preprocessing(
        shape,
        crop=share,
        squash=squash,
        interpolation=RESAMPLING[int(stated["resample"])],  # type: ignore[arg-type]
        mean=tuple(factor * float(m) for m in mean),  # type: ignore[arg-type]
        std=tuple(factor * float(s) for s in std),  # type: ignore[arg-type]
    )
