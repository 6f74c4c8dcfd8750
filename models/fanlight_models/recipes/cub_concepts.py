"""A bird bundle from photographs with concepts: `python -m fanlight_models.recipes.cub_concepts FOLDER --out BUNDLES` reads a downloaded
CUB-200-2011 folder in its official layout, and writes the bundle `scbm-birds`. Minutes on a CPU: the features of EfficientNet-Lite0 are frozen.

A folder with a CSV instead of that layout works too: --table names it, --class-table one with the concepts of each class (`concepts.data.images`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from fanlight_models.concepts import bundle
from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.cbm import CBM
from fanlight_models.concepts.curves import curve
from fanlight_models.concepts.data import Labelled, cub, images
from fanlight_models.concepts.encoders import LiteTrunk
from fanlight_models.concepts.metrics import class_metrics, concept_metrics
from fanlight_models.concepts.scbm import SCBM
from fanlight_models.concepts.strategies import percentiles
from fanlight_models.concepts.training import Plan, TensorCases, shell, train
from fanlight_models.recipes.field_guide_card import Features, probabilities, read

SIZE, CROP, MEAN, STD = 224, 0.875, 127.0, 128.0
WIDTH = 512
# With 124 concepts the inverse of L blows up within ten steps at a rate of 1e-3: its entries grow with the power of their number. So L learns slower.
PLAN = Plan(
    mode="joint", epochs=60, rate=1e-3, decay=1e-2, batch=64, schedule="constant", cool=0.5, average=0.2, samples=50, clip=5.0, covariance_rate=0.1
)  # fmt: skip
INSTALLED = Path(sys.prefix) / "share" / "fanlight" / "models" / "efficientnet-lite0"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="CUB_200_2011, or a folder with --table")
    parser.add_argument("--out", type=Path, required=True, help="folder of bundles")
    parser.add_argument("--name", default="scbm-birds")
    parser.add_argument("--kind", choices=("scbm", "hard-cbm", "cem"), default="scbm")
    parser.add_argument("--covariance", choices=("amortized", "global", "empirical"), default="amortized")
    parser.add_argument("--labels", choices=cub.VOTES, default="majority", help="of concepts, in the official layout")
    parser.add_argument("--least", type=int, default=cub.LEAST, help="classes that a concept must be present in")
    parser.add_argument("--table", default=None, help="CSV of images: path, label, split, concepts")
    parser.add_argument("--class-table", default=None, help="CSV with the concepts of each class")
    parser.add_argument("--class-key", default=None, help="its column with the class")
    parser.add_argument("--images", default=".", help="where the paths of --table begin")
    parser.add_argument("--label", default="label", help="column of the class in --table")
    parser.add_argument("--encoder", type=Path, default=INSTALLED, help="bundle of EfficientNet-Lite0")
    parser.add_argument("--features", type=Path, default=None, help="file that keeps the features between runs")
    parser.add_argument("--epochs", type=int, default=PLAN.epochs)
    parser.add_argument("--steps", type=int, default=10, help="answers of the curve in the card")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    data = loaded(options)
    trunk = frozen(options.encoder)
    x = features(trunk, data.paths, options.features)
    write(options, data, trunk, x)


def loaded(options: argparse.Namespace) -> Labelled:
    """The photographs with their labels."""
    if options.table is None:
        return cub.load(options.folder).labelled(options.labels, options.least)
    data = images.load(
        options.folder, options.table, classes=options.class_table, key=options.class_key, images=options.images, label=options.label,
        seed=options.seed,
    )  # fmt: skip
    varied = [
        k for k in range(len(data.names))
        if options.least <= len({int(c) for c in data.labels[data.concepts[:, k] > 0.5]}) <= len(data.classes) - options.least
    ]  # fmt: skip
    return data.keeping(varied)


def frozen(folder: Path) -> LiteTrunk:
    """The trunk with the published weights. Errors: SystemExit says how they are installed."""
    file = folder / "weights.safetensors"
    if not file.is_file():
        raise SystemExit(
            f"There are no weights in {folder.name}. `python -m fanlight_models.convert efficientnet-lite0 FOLDER` makes them; --encoder names them."
        )
    trunk = LiteTrunk(WIDTH)
    published = {k.replace("head.", "top.", 1) if k.startswith("head.") else k: v for k, v in load_file(file).items()}
    left = trunk.load_state_dict({k: v for k, v in published.items() if not k.startswith("classifier.")}, strict=False)
    if left.unexpected_keys or set(left.missing_keys) != {"hidden.weight", "hidden.bias"}:
        raise SystemExit(f"The weights in {folder.name} are not those of EfficientNet-Lite0.")
    return trunk.eval().requires_grad_(False)


def picture(path: Path) -> Tensor:
    """A file -> (3, 224, 224) in model space: the centred square of 0.875 of the shorter side."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    side = CROP * min(image.size)
    left, top = ((extent - side) / 2 for extent in image.size)
    small = image.resize((SIZE, SIZE), Image.Resampling.BICUBIC, box=(left, top, left + side, top + side))
    pixels = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8).reshape(SIZE, SIZE, 3)
    return (pixels.permute(2, 0, 1).float() - MEAN) / STD


def features(trunk: LiteTrunk, paths: Sequence[Path], kept: Path | None) -> Tensor:
    """(n, 1280), from the file where it fits."""
    if kept is not None and kept.exists():
        found = load_file(kept)["x"]
        if len(found) == len(paths):
            return found
        raise SystemExit(
            f"{kept.name} holds features of {len(found)} photographs; there are {len(paths)}. Remove it or name another."
        )
    parts = []
    with torch.no_grad():
        for first in range(0, len(paths), 32):
            parts.append(trunk.pooled(torch.stack([picture(p) for p in paths[first : first + 32]])))
            sys.stderr.write(f"\rfeatures {min(first + 32, len(paths))} of {len(paths)}")
            sys.stderr.flush()
    sys.stderr.write("\n")
    x = torch.cat(parts)
    if kept is not None:
        save_file({"x": x}, kept)
    return x


def trained(options: argparse.Namespace, data: Labelled, x: Tensor, kind: str) -> bundle.Model:
    """A bottleneck on the features of the training photographs."""
    own = torch.from_numpy(data.train)
    concepts, labels = torch.from_numpy(data.concepts).float(), torch.from_numpy(data.labels)
    torch.manual_seed(options.seed)
    model = bundle.build(config(options, data, kind, {"kind": "features", "inputs": x.shape[1], "hidden": WIDTH}))
    plan = Plan(
        **{**PLAN.__dict__, "epochs": options.epochs, "seed": options.seed, "batch": min(PLAN.batch, int(own.sum()))}
    )
    train(model, TensorCases(x[own], concepts[own], labels[own]), plan, progress=shell)
    if isinstance(model, SCBM | CBM):
        model.table.copy_(percentiles(probabilities(read(model, x[own]))))
    return model.requires_grad_(False)


def config(options: argparse.Namespace, data: Labelled, kind: str, encoder: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": kind, "concepts": len(data.names), "classes": len(data.classes), "encoder": encoder}
    return made | ({"covariance": options.covariance} if kind == "scbm" else {})


def write(options: argparse.Namespace, data: Labelled, trunk: LiteTrunk, x: Tensor) -> None:
    """Trains the model and a hard CBM to compare it with, and writes the bundle."""
    test = Features(
        x[torch.from_numpy(~data.train)],
        torch.from_numpy(data.concepts[~data.train]).float(),
        torch.ones(int((~data.train).sum()), len(data.names), dtype=torch.bool),
        torch.from_numpy(data.labels[~data.train]),
    )
    kinds = list(dict.fromkeys([options.kind, "hard-cbm"]))
    models = {kind: trained(options, data, x, kind) for kind in kinds}
    lines = [row(kind, model, test, min(options.steps, model.concepts)) for kind, model in models.items()]
    model = models[options.kind]
    whole_config = config(options, data, options.kind, {"kind": "efficientnet-lite0", "width": WIDTH})
    whole = bundle.build(whole_config)
    weights = {f"encoder.{k}": v for k, v in trunk.state_dict().items() if not k.startswith("hidden.")}
    for key, value in model.state_dict().items():
        weights[key.replace("encoder.layers.0.", "encoder.hidden.")] = value
    whole.load_state_dict(weights)
    some = torch.from_numpy(data.train).nonzero()[:, 0][:2000]
    bundle.write(
        options.out / options.name,
        whole,
        whole_config,
        name="Birds by concepts",
        description=f"{len(data.classes)} species by {len(data.names)} concepts that a person can correct.",
        terms="the terms of the photographs and their labels; CUB-200-2011 is for research only",
        concepts=data.names,
        classes=data.classes,
        preprocessing={"size": [SIZE, SIZE], "crop": CROP, "interpolation": "bicubic", "mean": [MEAN] * 3, "std": [STD] * 3},
        card=CARD.format(
            kind=options.kind, n=int(data.train.sum()), test=len(test.labels), concepts=len(data.names), classes=len(data.classes),
            rule=data.rule, epochs=options.epochs, seed=options.seed, rows="\n".join(lines), steps=min(options.steps, model.concepts),
        ),
        cases=probabilities(read(model, x[some])),
        labels=torch.from_numpy(data.labels)[some],
    )  # fmt: skip
    sys.stderr.write("\n".join(lines) + f"\n{options.out / options.name}\n")


def row(kind: str, model: bundle.Model, test: Features, steps: int) -> str:
    """One line of the card's table."""
    reading = read(model, test.x)
    if not len(test.labels):
        return f"| {kind} | no test photographs |  |  |  |"
    nothing = [
        model.intervene(reading.rows(i), Answers.none(len(i), model.concepts)).classes
        for i in torch.split(torch.arange(len(test.labels)), 200)
    ]
    concepts, target = (
        concept_metrics(probabilities(reading), test.concepts),
        class_metrics(torch.cat(nothing), test.labels),
    )
    found = curve(model, reading, test.concepts, test.labels, steps=steps)
    mean, low, high = (part[-1].item() for part in found.interval("right"))
    return (
        f"| {kind} | {100 * concepts['accuracy']:.1f} % | {concepts['ece']:.3f} | {100 * target['accuracy']:.1f} % | "
        f"{100 * mean:.1f} % ({100 * low:.1f} to {100 * high:.1f}) |"
    )


CARD = """# Birds by concepts

A concept bottleneck ({kind}) on frozen features of EfficientNet-Lite0, made by
`python -m fanlight_models.recipes.cub_concepts` from photographs that are not part of Fanlight.

- **Data**: {n} photographs for training, {test} for testing, {classes} species, {concepts} concepts, labelled {rule}.
- **Training**: {epochs} epochs, all parts together, seed {seed}.
- **Terms**: those of the photographs and labels. CUB-200-2011 is for research, not for commerce; so is a model made of it.

| model | concepts right | concept ECE | species right | after {steps} answers by uncertainty (95 % over photographs) |
|---|---|---|---|---|
{rows}

## Limits

- Class-level labels say what a species looks like, not what a photograph shows: a concept can be "right" that cannot be seen.
- The encoder was not trained on birds; ImageNet's terms apply to it (see the card of EfficientNet-Lite0).
"""

if __name__ == "__main__":
    main()
