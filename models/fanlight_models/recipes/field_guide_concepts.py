"""The concept bottlenecks of the field guide: `python -m fanlight_models.recipes.field_guide_concepts --out models/fanlight_models/bundles` trains
them and writes the bundles `scbm-field-guide` and `cbm-field-guide`. About 25 minutes on one core.

1. An encoder, from the convolutions of the shipped classifier, learns the 79 concepts on 6,000 scenes.
2. It is frozen, and both bottlenecks are trained on its features of 6,000 other scenes: on scenes that it was trained on it is surer than it may be,
   and what the covariance is to learn, what remains unknown given the picture, would look smaller than it is.
3. Both are measured on the test split, over seeds, and the first seed's models become the bundles.

Everything is kept in --work; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fanlight_models.concepts import bundle
from fanlight_models.concepts.bundle import Model
from fanlight_models.concepts.cbm import CBM
from fanlight_models.concepts.protocol import Reading
from fanlight_models.concepts.scbm import SCBM
from fanlight_models.concepts.strategies import percentiles
from fanlight_models.concepts.training import Plan, TensorCases, shell, train
from fanlight_models.recipes import field_guide_card as card
from fanlight_models.worlds import fieldguide

SIZE, MEAN, STD = 112, 127.5, 64.0
CONCEPTS = tuple(f"{group}::{value}" for group, value in fieldguide.CONCEPTS)
WIDTH = 256
ENCODER: dict[str, Any] = {"kind": "plain-cnn", "widths": [32, 64, 128, 192], "depth": 2, "width": WIDTH}
SHIFT = 6
FROZEN = 8  # modules of the first two stages, which stay those of the classifier: half of the cost
VIEWS = 2  # of each later scene: as it is, and moved, mirrored and lit in its own way
FIRST = Plan(mode="sequential", epochs=2, head_epochs=0, rate=1e-3, decay=1e-4, schedule="constant", cool=0.5, clip=5.0)
SECOND = Plan(
    mode="independent",
    epochs=30,
    head_epochs=30,
    rate=5e-4,
    head_rate=1e-2,
    batch=128,
    samples=50,
    schedule="constant",
    cool=0.5,
    average=0.2,
    covariance_rate=0.3,
    clip=5.0,
)
KINDS: dict[str, dict[str, Any]] = {
    "scbm": {"kind": "scbm", "covariance": "amortized"},
    "hard-cbm": {"kind": "hard-cbm"},
    "cem": {"kind": "cem"},
}
SHIPPED = {  # CEM is trained to compare with
    "scbm": ("scbm-field-guide", "Field guide, stochastic bottleneck"),
    "hard-cbm": ("cbm-field-guide", "Field guide, concept bottleneck"),
}
JOINT = ("cem",)  # its head reads embeddings, which no truth can stand in for


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of bundles")
    parser.add_argument("--work", type=Path, default=Path("field-guide-concepts"), help="drawn scenes and checkpoints")
    parser.add_argument("--scenes", type=int, default=6000, help="of the training split, for the encoder")
    parser.add_argument("--later", type=int, default=6000, help="the scenes after them, for the bottlenecks")
    parser.add_argument("--test", type=int, default=1200, help="scenes of the test split")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=FIRST.epochs, help="of the encoder")
    parser.add_argument(
        "--later-epochs", type=int, default=SECOND.epochs, help="of the bottlenecks, and of their heads"
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    encoder = trained_encoder(options)
    later = seen(options, encoder, "later")
    test = seen(options, encoder, "test")
    models = {kind: [bottleneck(options, kind, seed, later) for seed in range(options.seeds)] for kind in KINDS}
    measured = card.summary({kind: [card.measured(model, test) for model in made] for kind, made in models.items()})
    (options.work / "measured.json").write_text(json.dumps(measured, indent=1))
    for kind in SHIPPED:
        write(options, kind, encoder, models[kind][0], later, measured)


@dataclass(frozen=True, eq=False)
class Scenes:
    """Drawn scenes as a training set, augmented where chance is given: images (n, S, S, 3) uint8, concepts (n, K), seen (n, K), labels (n,)."""

    images: Tensor
    concepts: Tensor
    seen: Tensor
    labels: Tensor

    def inputs(self, index: Tensor, chance: torch.Generator | None) -> Tensor:
        x = prepared(self.images[index])
        return x if chance is None else augmented(x, chance)


def prepared(images: Tensor) -> Tensor:
    """(n, S, S, 3) uint8 -> (n, 3, S, S) float32 in model space."""
    return (images.permute(0, 3, 1, 2).float() - MEAN) / STD


def augmented(x: Tensor, chance: torch.Generator) -> Tensor:
    """Each picture mirrored, moved and lit in its own way."""
    n, _, rows, columns = x.shape
    wide = F.pad(x, (SHIFT,) * 4, mode="replicate")
    out = torch.empty_like(x, memory_format=torch.channels_last)
    places = torch.randint(0, 2 * SHIFT + 1, (n, 2), generator=chance).tolist()
    mirror = (torch.rand(n, generator=chance) < 0.5).tolist()
    for i, (top, left) in enumerate(places):
        part = wide[i, :, top : top + rows, left : left + columns]
        out[i] = part.flip(2) if mirror[i] else part
    light = torch.rand(n, 4, 1, 1, generator=chance)
    return out * (0.85 + 0.3 * light[:, :1]) + (0.4 * light[:, 1:] - 0.2)


def drawn(options: argparse.Namespace, name: str) -> Scenes:
    """Scenes of `encoder` (the first of the training split), `later` (those after them) or `test`; drawn once, about 7 ms each."""
    count = {"encoder": options.scenes, "later": options.later, "test": options.test}[name]
    kept = options.work / f"{name}-{options.scenes}-{count}.safetensors"
    if not kept.exists():
        sys.stderr.write(f"drawing the scenes “{name}”\n")
        if name == "test":
            scenes = fieldguide.split("test", count)
        else:
            first = 0 if name == "encoder" else options.scenes
            scenes = fieldguide.split("train", first + count)[first:]
        arrays = fieldguide.arrays(scenes, SIZE)
        owner = np.repeat(np.arange(len(fieldguide.GROUPS)), [len(g.values) for g in fieldguide.GROUPS])
        save_file(
            {
                "images": torch.from_numpy(arrays.images),
                "concepts": torch.from_numpy(arrays.concepts).to(torch.uint8),
                "seen": torch.from_numpy(arrays.seen[:, owner].copy()).to(torch.uint8),
                "labels": torch.from_numpy(arrays.species),
            },
            kept,
        )
    found = load_file(kept)
    return Scenes(found["images"], found["concepts"].float(), found["seen"].bool(), found["labels"])


def config(kind: str, encoder: dict[str, Any]) -> dict[str, Any]:
    return {**KINDS[kind], "concepts": len(CONCEPTS), "classes": len(fieldguide.SPECIES), "encoder": encoder}


def trained_encoder(options: argparse.Namespace) -> nn.Module:
    """The encoder, frozen, from its checkpoint where there is one."""
    kept = options.work / f"encoder-{options.scenes}-{options.epochs}.safetensors"
    torch.manual_seed(0)
    model = bundle.build(config("hard-cbm", ENCODER))
    if not kept.exists():
        shipped = load_file(Path(fieldguide.__file__).parents[2] / "bundles" / "field-guide" / "weights.safetensors")
        own = {f"encoder.{k}": v for k, v in shipped.items() if k.startswith("features.")}
        model.load_state_dict(own, strict=False)
        for part in list(model.encoder.features)[:FROZEN]:  # type: ignore[arg-type]
            part.requires_grad_(False)
        model.to(memory_format=torch.channels_last)
        plan = replace(FIRST, epochs=options.epochs)
        train(
            model,
            drawn(options, "encoder"),
            plan,
            checkpoint=options.work / "encoder.checkpoint.safetensors",
            progress=shell,
        )
        save_file({k: v.clone().contiguous() for k, v in model.state_dict().items()}, kept)
    model.load_state_dict(load_file(kept))
    return model.eval().requires_grad_(False).encoder


def seen(options: argparse.Namespace, encoder: nn.Module, name: str) -> card.Features:
    """Features (n, F) of scenes; of those for training also as moved, mirrored and differently lit."""
    kept = (
        options.work / f"features-{name}-{options.scenes}-{options.epochs}-{options.later}-{options.test}.safetensors"
    )
    if not kept.exists():
        scenes = drawn(options, name)
        every = torch.arange(len(scenes.labels))
        rounds: list[torch.Generator | None] = [None]
        if name == "later":
            rounds += [torch.Generator().manual_seed(n) for n in range(1, VIEWS)]
        parts = []
        with torch.no_grad():
            for chance in rounds:
                parts.append(torch.cat([encoder(scenes.inputs(some, chance)) for some in torch.split(every, 100)]))
        save_file(
            {
                "x": torch.cat(parts),
                "concepts": scenes.concepts.repeat(len(parts), 1),
                "seen": scenes.seen.to(torch.uint8).repeat(len(parts), 1),
                "labels": scenes.labels.repeat(len(parts)),
            },
            kept,
        )
    found = load_file(kept)
    return card.Features(found["x"], found["concepts"], found["seen"].bool(), found["labels"])


def bottleneck(options: argparse.Namespace, kind: str, seed: int, cases: card.Features) -> Model:
    """A bottleneck on frozen features."""
    kept = (
        options.work
        / f"{kind}-{seed}-{options.scenes}-{options.epochs}-{options.later}-{options.later_epochs}.safetensors"
    )
    torch.manual_seed(seed)
    model = bundle.build(config(kind, {"kind": "features", "inputs": WIDTH}))
    if not kept.exists():
        mode = "joint" if kind in JOINT else SECOND.mode
        plan = replace(SECOND, mode=mode, epochs=options.later_epochs, head_epochs=options.later_epochs, seed=seed)
        part = options.work / f"{kind}-{seed}.checkpoint.safetensors"
        sys.stderr.write(f"{kind}, seed {seed}\n")
        train(model, TensorCases(cases.x, cases.concepts, cases.labels), plan, checkpoint=part, progress=quiet)
        part.unlink(missing_ok=True)
        settle(model, cases.x)
        save_file({k: v.clone().contiguous() for k, v in model.state_dict().items()}, kept)
    model.load_state_dict(load_file(kept))
    return model.eval().requires_grad_(False)


def quiet(epoch: Any) -> None:
    """Every tenth epoch, and the last."""
    if epoch.number % 10 == 0 or epoch.number == epoch.of:
        shell(epoch)


def settle(model: Model, x: Tensor) -> None:
    """Takes the percentiles of the concept probabilities on training inputs, for the empirical strategy."""
    model.eval()
    if isinstance(model, SCBM | CBM):
        p = torch.cat([reading_probabilities(model.read(some)) for some in torch.split(x, 500)])
        model.table.copy_(percentiles(p))


def reading_probabilities(reading: Reading) -> Tensor:
    """(B, K): P(concept) before any answer."""
    return card.probabilities(reading)


def write(
    options: argparse.Namespace,
    kind: str,
    encoder: nn.Module,
    model: Model,
    later: card.Features,
    measured: dict[str, Any],
) -> None:
    """The bundle: encoder and bottleneck as one model."""
    whole_config = config(kind, ENCODER)
    whole = bundle.build(whole_config)
    weights = {f"encoder.{k}": v for k, v in encoder.state_dict().items()} | {
        k: v for k, v in model.state_dict().items() if not k.startswith("encoder.")
    }
    whole.load_state_dict(weights)
    some = slice(0, min(1000, options.later))
    place, name = SHIPPED[kind]
    bundle.write(
        options.out / place,
        whole,
        whole_config,
        name=name,
        description="Twenty-four invented birds by 79 concepts that a person can correct; their truth is known.",
        terms="Apache-2.0",
        concepts=CONCEPTS,
        classes=fieldguide.SPECIES,
        preprocessing={"size": [SIZE, SIZE], "mean": [MEAN] * 3, "std": [STD] * 3},
        card=card.text(kind, measured, options),
        cases=reading_probabilities(model.read(later.x[some])),
        labels=later.labels[some],
    )
    sys.stderr.write(f"{options.out / place}\n")


if __name__ == "__main__":
    main()
