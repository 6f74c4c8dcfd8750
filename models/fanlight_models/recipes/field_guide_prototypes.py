"""Prototypes of the field guide: `python -m fanlight_models.recipes.field_guide_prototypes --out models/fanlight_models/bundles` trains a ProtoViT
on it and writes the bundle `field-guide-prototypes`.

There are no pretrained weights, so the transformer is trained first, on more scenes than the split has: drawing them costs nothing but time. A
checkpoint is written after every epoch; the same command goes on from it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from fanlight_models.prototypes import vit
from fanlight_models.prototypes.projection import Source
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.training import Epoch, Plan, Training
from fanlight_models.recipes.field_guide import MEAN, STD, augmented, prepared
from fanlight_models.worlds import fieldguide

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
    test = fieldguide.arrays(fieldguide.split("test"), SIZE)
    training.model.eval()
    with torch.inference_mode():
        right = [training.model(x).logits.argmax(1) == y for x, y in _batches(test, len(test.species))]
    write(options.out, training, float(torch.cat(right).double().mean()), options)


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


def write(folder: Path, training: Training, accuracy: float, options: argparse.Namespace) -> None:
    """The bundle: weights, classes, where each prototype comes from, and what is known of it."""
    place = folder / "field-guide-prototypes"
    place.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in training.model.state_dict().items()}, place / "weights.safetensors")
    (place / "classes.txt").write_text("".join(f"{s}\n" for s in fieldguide.SPECIES))
    (place / "prototypes.json").write_text(json.dumps(provenance(training.sources), indent=1) + "\n")
    shape = asdict(SHAPE)
    config = "\n".join(f"{k} = {json.dumps(v)}" for k, v in shape.items())
    (place / "bundle.toml").write_text(
        TOML.format(config=config, per_class=PER_CLASS, parts=PARTS, radius=RADIUS, size=SIZE, mean=MEAN, std=STD)
    )
    told = {(e.stage, e.number): e.accuracy for e in training.history}
    moved = [s.movement for s in training.sources if s.movement is not None]
    (place / "card.md").write_text(
        CARD.format(
            scenes=options.scenes,
            variant=options.variant,
            seed=options.seed,
            accuracy=accuracy,
            before=told[("slots", EPOCHS["slots"])],
            after=told[("projection", 1)],
            movement=float(np.mean(moved)),
            weak=sum(s.self_activation < 0.99 * PARTS for s in training.sources),
            twins=sum(s.duplicate_of is not None for s in training.sources),
            count=len(training.sources),
            open=training.history[-1].open,
        )
    )
    sys.stderr.write(f"{place}: {accuracy:.3f} of the test split right\n")


def provenance(sources: list[Source]) -> dict[str, object]:
    """What is known of each prototype; pictures are scenes of the training split, which can be drawn again."""
    return {
        "format": 1,
        "world": "field-guide",
        "version": fieldguide.VERSION,
        "split": "train",
        "seed": 0,
        "prototypes": [asdict(s) for s in sources],
    }


TOML = """format = 1
name = "Field guide, prototypes"
task = "prototype-classifier"
architecture = "protovit"
description = "Twenty-four invented birds, told apart by what parts of them look like."
terms = "Apache-2.0"

[config]
{config}
classes = 24
per_class = {per_class}
parts = {parts}
radius = {radius}

[preprocessing]
size = [{size}, {size}]
mean = [{mean}, {mean}, {mean}]
std = [{std}, {std}, {std}]
"""
CARD = """# Field guide, prototypes

A ProtoViT that tells the 24 species of the field guide by prototypes of four parts: each is a place in a picture of the training split, and says
which.

- **Data**: {scenes} scenes drawn like the training split, of which prototypes come from the 6,000 of the split itself.
- **Training**: `python -m fanlight_models.recipes.field_guide_prototypes`, losses of the {variant}, seed {seed}; the transformer from scratch.
- **Accuracy**: {accuracy:.3f} on the 1,200 scenes of the test split. Before projection {before:.3f} and after it {after:.3f} on validation.
- **Projection** moved the {count} prototypes by {movement:.2f} on average (1 - cosine); {weak} are weaker than 0.99 of their size on their own
  source, {twins} are duplicates; {open:.2f} of four parts are open on average.
- **Use**: to see what prototypes show where the truth is known. It knows nothing of real birds.
- **Terms**: Apache-2.0; no data of others.
"""

if __name__ == "__main__":
    main()
