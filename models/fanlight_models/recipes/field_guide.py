"""The classifier of the field guide: `python -m fanlight_models.recipes.field_guide --out models/fanlight_models/bundles` trains it and writes the
bundle `field-guide` (with --biased `field-guide-biased`, which learns the background too). About 20 minutes on one core.

A checkpoint is written after every epoch; the same command goes on from it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from fanlight_models.plain_cnn import PlainCNN, folded
from fanlight_models.training_log import TrainingLog, beside
from fanlight_models.worlds import fieldguide

WIDTHS, DEPTH, SIZE = (32, 64, 128, 192), 2, 112
MEAN, STD = 127.5, 64.0
BATCH, EPOCHS, RATE, DECAY = 64, 14, 3e-3, 5e-4
WARM = 0.25  # share of the steps in which the rate rises
SHIFT = 6  # pixels that a picture is moved by, at most


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of bundles")
    parser.add_argument("--biased", action="store_true", help="train where the background tells the family")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--train", type=int, default=None, help="scenes to train on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoint", type=Path, default=Path("field-guide.checkpoint.safetensors"))
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    train, test = (
        fieldguide.arrays(fieldguide.split(name, count, biased=options.biased), SIZE)
        for name, count in (("train", options.train), ("test", None))
    )
    net = fit(torch.from_numpy(train.images), torch.from_numpy(train.species), options)
    plain = folded(net, WIDTHS, DEPTH, len(fieldguide.SPECIES))
    pictures, species = torch.from_numpy(test.images), torch.from_numpy(test.species)
    right = predictions(plain, pictures).argmax(1) == species
    write(options.out, plain, float(right.double().mean()), options)


def prepared(images: Tensor) -> Tensor:
    """(n, H, W, 3) uint8 -> (n, 3, H, W) float32 in model space."""
    return (images.permute(0, 3, 1, 2).float() - MEAN) / STD


def predictions(net: PlainCNN, images: Tensor) -> Tensor:
    """(n, H, W, 3) uint8 -> (n, classes) logits."""
    with torch.inference_mode():
        return torch.cat([net(prepared(part)) for part in torch.split(images, 200)])


def fit(images: Tensor, species: Tensor, options: argparse.Namespace, stop: int | None = None) -> PlainCNN:
    """Adam with decoupled weight decay under a one-cycle rate; pictures are shifted and their light is changed.

    Args: stop: the epoch before which it ends early, to go on another time."""
    torch.manual_seed(options.seed)
    net = PlainCNN(WIDTHS, DEPTH, len(fieldguide.SPECIES), norm=True)
    net.to(memory_format=torch.channels_last)
    steps = options.epochs * (len(images) // BATCH)
    optimiser = torch.optim.AdamW(net.parameters(), RATE, weight_decay=DECAY)
    first = resume(options.checkpoint, net, optimiser)
    step = first * (len(images) // BATCH)
    log = TrainingLog(beside(options.checkpoint), "Field guide, classifier")
    for epoch in range(first, options.epochs if stop is None else stop):
        draw = np.random.default_rng([options.seed, epoch])
        order = torch.from_numpy(draw.permutation(len(images)))
        total, began = 0.0, time.monotonic()
        net.train()
        for chosen in torch.split(order, BATCH):
            if len(chosen) < BATCH:
                break
            x = augmented(prepared(images[chosen]), draw)
            loss = F.cross_entropy(net(x), species[chosen], label_smoothing=0.05)
            for group in optimiser.param_groups:
                group["lr"] = RATE * one_cycle(step / steps)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            step += 1
            total += loss.item() * BATCH
        save(options.checkpoint, net, optimiser, epoch + 1)
        said = (
            f"epoch {epoch + 1} of {options.epochs}: loss {total / len(images):.3f}, {time.monotonic() - began:.0f} s"
        )
        sys.stderr.write(said + "\n")
        sys.stderr.flush()
        left = (options.epochs - epoch - 1) * (time.monotonic() - began)
        log.step("training", epoch + 1, options.epochs, {"loss": total / len(images)}, left=left)
        if epoch + 1 == options.epochs:
            log.end()
    return net.eval()


def one_cycle(done: float) -> float:
    """Share of the highest rate: up over the first quarter, then down along a cosine to nothing. Args: done: 0..1 of all steps."""
    return done / WARM + 0.04 if done < WARM else 0.5 + 0.5 * math.cos(math.pi * (done - WARM) / (1 - WARM))


def augmented(x: Tensor, draw: np.random.Generator) -> Tensor:
    """Each picture mirrored, moved and lit in its own way."""
    n, _, rows, columns = x.shape
    wide = F.pad(x, (SHIFT,) * 4, mode="replicate")
    out = torch.empty_like(x, memory_format=torch.channels_last)
    for i, (top, left) in enumerate(draw.integers(0, 2 * SHIFT + 1, (n, 2)).tolist()):
        part = wide[i, :, top : top + rows, left : left + columns]
        out[i] = part.flip(2) if draw.random() < 0.5 else part
    gain = torch.from_numpy(draw.uniform(0.85, 1.15, (n, 1, 1, 1)).astype(np.float32))
    shift = torch.from_numpy(draw.uniform(-0.2, 0.2, (n, 3, 1, 1)).astype(np.float32))
    return out * gain + shift


def save(path: Path, net: PlainCNN, optimiser: torch.optim.Optimizer, epoch: int) -> None:
    """Weights, statistics and moments, in one file that is replaced as a whole."""
    kept = {f"net.{k}": v.contiguous() for k, v in net.state_dict().items()}
    for n, state in optimiser.state_dict()["state"].items():
        kept |= {f"moment.{n}.{k}": v.contiguous() for k, v in state.items()}
    fresh = path.with_suffix(".part")
    save_file(kept, fresh, {"epoch": str(epoch)})
    fresh.replace(path)


def resume(path: Path, net: PlainCNN, optimiser: torch.optim.Optimizer) -> int:
    """The epoch to go on with: 0 where there is no checkpoint."""
    if not path.exists():
        return 0
    with safe_open(path, "pt") as opened:
        epoch = int(opened.metadata()["epoch"])
        kept = {key: opened.get_tensor(key) for key in opened.keys()}
    net.load_state_dict({k.removeprefix("net."): v for k, v in kept.items() if k.startswith("net.")})
    state = optimiser.state_dict()
    for key, value in kept.items():
        if key.startswith("moment."):
            _, n, name = key.split(".", 2)
            state["state"].setdefault(int(n), {})[name] = value
    optimiser.load_state_dict(state)
    return epoch


def write(folder: Path, net: PlainCNN, accuracy: float, options: argparse.Namespace) -> None:
    """The bundle: weights, classes, configuration and what is known of it."""
    name = "field-guide-biased" if options.biased else "field-guide"
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in net.state_dict().items()}, place / "weights.safetensors")
    (place / "classes.txt").write_text("".join(f"{s}\n" for s in fieldguide.SPECIES))
    title = "Field guide, biased" if options.biased else "Field guide"
    (place / "bundle.toml").write_text(
        TOML.format(name=title, widths=list(WIDTHS), depth=DEPTH, size=SIZE, mean=MEAN, std=STD)
    )
    made = fieldguide.SPLITS["train"] if options.train is None else options.train
    where = (
        "the background tells the family in 19 of 20 training scenes"
        if options.biased
        else "any bird on any background"
    )
    (place / "card.md").write_text(
        CARD.format(title=title, scenes=made, epochs=options.epochs, seed=options.seed, accuracy=accuracy, where=where)
    )
    sys.stderr.write(f"{place}: {accuracy:.3f} of the test split right\n")


TOML = """format = 1
name = "{name}"
task = "image-classifier"
architecture = "plain-cnn"
description = "Twenty-four invented birds, drawn by Fanlight: a small network whose truth is known."
terms = "Apache-2.0"
features = "features"

[config]
widths = {widths}
depth = {depth}
classes = 24

[preprocessing]
size = [{size}, {size}]
mean = [{mean}, {mean}, {mean}]
std = [{std}, {std}, {std}]
"""
CARD = """# {title}

A chain of convolutions and ReLUs that tells the 24 species of the field guide, the world of birds made of parts that Fanlight draws itself
(docs/data/field-guide.md). It is here because the right answer is known: which part of the bird matters can be found out by drawing it again
without that part.

- **Data**: {scenes} scenes of the training split; {where}.
- **Training**: `python -m fanlight_models.recipes.field_guide`, {epochs} epochs, seed {seed}; batch normalisation is folded into the convolutions.
- **Accuracy**: {accuracy:.3f} on the 1,200 scenes of the test split.
- **Use**: to see what a method of explanation shows where the truth is known. It knows nothing of real birds.
- **Terms**: Apache-2.0; no data of others.
"""

if __name__ == "__main__":
    main()
