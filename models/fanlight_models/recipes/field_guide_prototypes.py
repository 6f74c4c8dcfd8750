"""Prototypes of the field guide: `python -m fanlight_models.recipes.field_guide_prototypes --out models/fanlight_models/bundles` trains a ProtoViT
on it and writes the bundle `prototypes-field-guide`.

There are no pretrained weights, so the transformer is trained first, on more scenes than the split has: drawing them costs nothing but time. A
checkpoint is written after every epoch; the same command goes on from it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fanlight_models.prototypes import bundle, vit
from fanlight_models.prototypes.nearest import nearest
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.training import Epoch, Plan, Training
from fanlight_models.recipes import field_guide_prototypes_card as card
from fanlight_models.recipes.field_guide import MEAN, STD, augmented, prepared
from fanlight_models.worlds import fieldguide

NAME = "prototypes-field-guide"
SIZE, PATCH = 112, 14
SHAPE = vit.Shape("deit", size=SIZE, patch=PATCH, width=160, depth=6, heads=5, drop=0.05)
PER_CLASS, PARTS, RADIUS = 5, 4, 1
SCENES, BATCH = 12_000, 64
EPOCHS = {"backbone": 24, "warm": 2, "joint": 8, "slots": 3, "last": 3}


class Scenes:
    """The field guide as training data. Args: count: training scenes; seed: of the augmentation."""

    def __init__(self, count: int, seed: int):
        self.seed = seed
        # The first of them are the training split itself; prototypes are projected onto that alone.
        self.train = fieldguide.arrays(fieldguide.split("train", count), SIZE)
        self.held_out = fieldguide.arrays(fieldguide.split("validation"), SIZE)
        self.own = min(count, fieldguide.SPLITS["train"])

    @property
    def steps(self) -> int:
        return len(self.train.species) // BATCH

    def augmented(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        draw = np.random.default_rng([self.seed, epoch])
        order = draw.permutation(len(self.train.species))[: self.steps * BATCH]
        for some in order.reshape(-1, BATCH):
            x = prepared(torch.from_numpy(self.train.images[some]))
            yield augmented(x, draw).contiguous(), torch.from_numpy(self.train.species[some])

    def plain(self) -> Iterator[tuple[Tensor, Tensor]]:
        return _batches(self.train, self.own)

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        return _batches(self.held_out, len(self.held_out.species))


def _batches(arrays: fieldguide.Arrays, count: int) -> Iterator[tuple[Tensor, Tensor]]:
    for at in range(0, count, 100):
        end = min(at + 100, count)
        yield prepared(torch.from_numpy(arrays.images[at:end])), torch.from_numpy(arrays.species[at:end])


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of bundles")
    parser.add_argument("--scenes", type=int, default=SCENES, help="scenes to train on")
    parser.add_argument(
        "--variant", choices=("paper", "repo"), default="paper", help="losses as in the paper or as in its code"
    )
    parser.add_argument("--measured", type=int, default=fieldguide.SPLITS["test"], help="test scenes to measure on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, default=Path("field-guide-prototypes.checkpoint.safetensors"))
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    data = Scenes(options.scenes, options.seed)
    training = Training(
        model(), data, Plan(variant=options.variant, epochs=EPOCHS, seed=options.seed), options.checkpoint, teller()
    )
    training.run()
    write(options.out, training, fieldguide.arrays(fieldguide.split("test", options.measured), SIZE), options)


def model() -> ProtoViT:
    torch.manual_seed(0)
    return ProtoViT(SHAPE, len(fieldguide.SPECIES), per_class=PER_CLASS, parts=PARTS, radius=RADIUS)


class teller:  # noqa: N801 (a function with a clock)
    """Says each epoch in a line, with its seconds."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def __call__(self, epoch: Epoch) -> None:
        took, self.began = time.monotonic() - self.began, time.monotonic()
        losses = ", ".join(f"{name} {value:.3f}" for name, value in epoch.losses.items())
        sys.stderr.write(
            f"{epoch.stage} {epoch.number} of {epoch.of}: {losses}; validation {epoch.accuracy:.3f}, "
            f"{epoch.open:.2f} parts open, {took:.0f} s\n"
        )
        sys.stderr.flush()


def write(folder: Path, training: Training, test: fieldguide.Arrays, options: argparse.Namespace) -> None:
    """The bundle: weights, classes, where each prototype comes from with those pictures, and what is measured of it."""
    place = folder / NAME
    data, model = training.data, training.model
    assert isinstance(data, Scenes)
    sys.stderr.write("nearest training patches\n")
    found, used = nearest(model, data.plain)
    labels = data.train.species[: data.own]
    kept = bundle.kept(training.sources, found)
    measured = card.measured(model, training.sources, found, used, torch.from_numpy(labels), test, options.measured)
    bundle.write(
        place,
        model,
        name="Field guide, prototypes",
        description="Twenty-four invented birds, told apart by what parts of them look like.",
        terms="Apache-2.0",
        classes=fieldguide.SPECIES,
        preprocessing={"size": [SIZE, SIZE], "mean": [MEAN] * 3, "std": [STD] * 3},
        card=card.text(training.history, measured, scenes=options.scenes, variant=options.variant, seed=options.seed),
        sources=training.sources,
        labels=labels.tolist(),
        pictures={i: data.train.images[i] for i in kept},
        names={i: f"training scene {i}" for i in kept},
        nearest=found,
        quality=measured,
        about={"world": "field-guide", "version": fieldguide.VERSION, "split": "train", "seed": 0},
    )
    size = sum(f.stat().st_size for f in place.rglob("*") if f.is_file()) / 1e6
    sys.stderr.write(f"{place}: {measured['accuracy']:.3f} of the test split right, {size:.1f} MB\n")


if __name__ == "__main__":
    main()
