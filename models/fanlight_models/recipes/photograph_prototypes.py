"""Prototypes of any folder of photographs: `python -m fanlight_models.recipes.photograph_prototypes FOLDER --out BUNDLES` reads a folder with a
subfolder for each class, or one with --table, and writes a bundle. Minutes on a CPU: the backbone is EfficientNet-Lite0, frozen, whose
cells are the tokens, so that only the head is trained.

Tokens and checkpoint are kept in --work; the same command goes on from there.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from fanlight_models.prototypes import bundle, cells, quality
from fanlight_models.prototypes.nearest import nearest
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.training import Plan, Training
from fanlight_models.recipes.field_guide_prototypes import teller

SIZE, MEAN, STD = 224, 127.0, 128.0
BATCH = 32
EPOCHS = {"backbone": 0, "warm": 5, "joint": 30, "slots": 5, "last": 10}
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
HELD = 0.15  # of the training photographs, to see how far it is
INSTALLED = Path(sys.prefix) / "share" / "fanlight" / "models" / "efficientnet-lite0"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "folder", type=Path, metavar="FOLDER", help="a subfolder for each class, or a folder with --table"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of bundles")
    parser.add_argument("--name", default="prototypes-photographs")
    parser.add_argument("--table", default=None, help="CSV with path, a column --label, and split (train, test)")
    parser.add_argument("--images", default=".", help="where the paths of --table begin")
    parser.add_argument("--label", default="label", help="column of the class in --table")
    parser.add_argument("--classes", type=int, default=None, help="the first so many classes by name")
    parser.add_argument("--test", type=float, default=0.3, help="share that is tested on, where nothing says which")
    parser.add_argument("--per-class", type=int, default=5)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=EPOCHS["joint"], help="of the joint stage")
    parser.add_argument("--encoder", type=Path, default=INSTALLED, help="bundle of EfficientNet-Lite0")
    parser.add_argument("--work", type=Path, default=Path("photograph-prototypes"), help="tokens and checkpoint")
    parser.add_argument("--terms", default="Those of the photographs.", help="what the bundle says of its terms")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    photographs = listed(options)
    backbone = frozen(options.encoder)
    data = Tokens.of(photographs, tokens(backbone, photographs, options.work), options.seed)
    torch.manual_seed(options.seed)
    model = ProtoViT(cells.SHAPE, len(photographs.classes), per_class=options.per_class, parts=options.parts)
    model.features = cells.Kept()
    plan = Plan(epochs={**EPOCHS, "joint": options.epochs}, joint_rate=0.0, seed=options.seed)
    training = Training(model, data, plan, options.work / "head.safetensors", teller())
    training.run()
    write(options, photographs, backbone, training)


@dataclass(frozen=True)
class Photographs:
    """Args: paths; labels: of each, into classes; tested: positions that are not trained on."""

    paths: Sequence[Path]
    labels: Sequence[int]
    classes: Sequence[str]
    tested: frozenset[int]

    @property
    def trained(self) -> list[int]:
        return [i for i in range(len(self.paths)) if i not in self.tested]


def listed(options: argparse.Namespace) -> Photographs:
    """Errors: SystemExit says what is missing."""
    rows: list[tuple[Path, str, str]] = []
    if options.table is not None:
        with (options.folder / options.table).open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if options.label not in row or "path" not in row:
                    raise SystemExit(
                        f"{options.table} has no columns “path” and “{options.label}”; it has {', '.join(row)}."
                    )
                rows.append((options.folder / options.images / row["path"], row[options.label], row.get("split") or ""))
    else:
        for path in sorted(options.folder.rglob("*")):
            if path.suffix.lower() in SUFFIXES and path.parent != options.folder:
                rows.append((path, path.relative_to(options.folder).parts[0], ""))
    classes = sorted({label for _, label, _ in rows})[: options.classes]
    rows = [r for r in rows if r[1] in classes]
    if len(classes) < 2:
        raise SystemExit(
            f"Prototypes tell classes apart; {options.folder.name} has {len(classes)}. Each needs a subfolder, or a row of --table."
        )
    number = {c: n for n, c in enumerate(classes)}
    tested = {i for i, r in enumerate(rows) if r[2] == "test"}
    if not tested:
        tested = set(random.Random(0).sample(range(len(rows)), round(options.test * len(rows))))
    left = {rows[i][1] for i in range(len(rows)) if i not in tested}
    if bare := [c for c in classes if c not in left]:
        raise SystemExit(f"No photograph of “{bare[0]}” is left to train on.")
    return Photographs([r[0] for r in rows], [number[r[1]] for r in rows], classes, frozenset(tested))


def frozen(folder: Path) -> cells.Cells:
    """The backbone with the published weights. Errors: SystemExit says how they are installed."""
    file = folder / "weights.safetensors"
    if not file.is_file():
        raise SystemExit(
            f"There are no weights in {folder.name}. `fanlight models install efficientnet-lite0` makes them; --encoder names them."
        )
    net = cells.Cells()
    held = {k: v for k, v in load_file(file).items() if k.split(".")[0] in ("stem", "blocks")}
    net.load_state_dict(held)
    return net.eval().requires_grad_(False)


def picture(path: Path) -> np.ndarray[Any, Any]:
    """(224, 224, 3) uint8, squashed to the square, as the bundle prepares pictures."""
    with Image.open(path) as opened:
        small = opened.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    return np.array(small, np.uint8)


def tokens(backbone: cells.Cells, photographs: Photographs, work: Path) -> Tensor:
    """(2, n, 49, 320): of each photograph and of its mirror image; read once."""
    kept = work / f"tokens-{len(photographs.paths)}.safetensors"
    if not kept.exists():
        parts = []
        for n, path in enumerate(photographs.paths):
            x = (torch.from_numpy(picture(path)).permute(2, 0, 1).float() - MEAN) / STD
            with torch.inference_mode():
                parts.append(backbone.tokens(torch.stack([x, x.flip(2)])))
            if n % 100 == 99:
                sys.stderr.write(f"{n + 1} of {len(photographs.paths)} photographs read\n")
        save_file({"z": torch.stack(parts, 1).contiguous()}, kept)
    return load_file(kept)["z"]


@dataclass(frozen=True, eq=False)
class Tokens:
    """The training photographs as tokens. Args: z: (2, n, N, D); labels (n,); own: positions trained on; held: positions looked at meanwhile."""

    z: Tensor
    labels: Tensor
    own: Tensor
    held: Tensor
    seed: int

    @classmethod
    def of(cls, photographs: Photographs, z: Tensor, seed: int) -> Tokens:
        every = photographs.trained
        draw = np.random.default_rng(seed).permutation(every)
        held = draw[: max(1, round(HELD * len(every)))]
        # A class is projected onto its own pictures: what is looked at meanwhile is trained on too where nothing else of a class would be left.
        labels = np.asarray(photographs.labels)
        own = np.array([i for i in every if i not in set(held.tolist())])
        lacking = [i for i in held if labels[i] not in set(labels[own].tolist())]
        return cls(
            z,
            torch.tensor(labels),
            torch.from_numpy(np.sort(np.concatenate([own, lacking])).astype(np.int64)),
            torch.from_numpy(held),
            seed,
        )

    @property
    def steps(self) -> int:
        return max(1, -(-len(self.own) // BATCH))

    def augmented(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        chance = torch.Generator().manual_seed(self.seed * 100_003 + epoch)
        order = self.own[torch.randperm(len(self.own), generator=chance)]
        for some in torch.split(order, BATCH):
            side = torch.randint(0, 2, (len(some),), generator=chance)
            yield self.z[side, some], self.labels[some]

    def plain(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self._batches(self.own)

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]:
        return self._batches(self.held)

    def _batches(self, which: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        for some in torch.split(which, 100):
            yield self.z[0, some], self.labels[some]


def linear(z: Tensor, labels: Tensor, own: Tensor, tested: Tensor, classes: int) -> float:
    """Accuracy of a linear head on the largest value of every feature over the cells, by L-BFGS with weight decay: what the tokens are worth."""
    x = z[0].amax(1)
    x = (x - x[own].mean(0)) / x[own].std(0).clamp(min=1e-6)
    head = nn.Linear(x.shape[1], classes)
    optimiser = torch.optim.LBFGS(head.parameters(), max_iter=200)

    def loss() -> Tensor:
        optimiser.zero_grad()
        value = F.cross_entropy(head(x[own]), labels[own]) + 1e-2 * head.weight.square().sum()
        torch.autograd.backward(value)
        return value

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return float((head(x[tested]).argmax(1) == labels[tested]).double().mean())


def write(options: argparse.Namespace, photographs: Photographs, backbone: cells.Cells, training: Training) -> None:
    """The bundle: backbone and head as one model, its sources and nearest photographs, and what was measured."""
    data, model = training.data, training.model
    assert isinstance(data, Tokens)
    model.eval().requires_grad_(False)
    found, used = nearest(model, data.plain)
    own = [int(i) for i in data.own]
    tested = torch.tensor(sorted(photographs.tested))
    right = torch.cat(
        [model(data.z[0, some]).logits.argmax(1) == data.labels[some] for some in torch.split(tested, 100)]
    )
    labels = data.labels[data.own]
    measured = {
        **quality.summary(model, training.sources, found, used, labels),
        "accuracy": float(right.double().mean()),
        "tested_on": len(tested),
        "linear": linear(data.z, data.labels, data.own, tested, len(photographs.classes)),
        "additivity": quality.additivity(model, data.z[0, tested[:50]]),
    }
    model.features = backbone
    kept = bundle.kept(training.sources, found)
    place = options.out / options.name
    bundle.write(
        place,
        model,
        name=options.name,
        description=f"{len(photographs.classes)} classes of photographs, told apart by what parts of them look like.",
        terms=options.terms,
        classes=photographs.classes,
        preprocessing={"size": [SIZE, SIZE], "mean": [MEAN] * 3, "std": [STD] * 3},
        card=card(options, photographs, data, measured),
        sources=training.sources,
        labels=labels.tolist(),
        pictures={i: picture(photographs.paths[own[i]]) for i in kept},
        names={i: photographs.paths[own[i]].name for i in kept},
        nearest=found,
        quality=measured,
        about={"split": "train", "seed": options.seed},
    )
    sys.stderr.write(
        f"{place}: {measured['accuracy']:.3f} of the test photographs right, linear head {measured['linear']:.3f}\n"
    )


def card(options: argparse.Namespace, photographs: Photographs, data: Tokens, measured: Mapping[str, Any]) -> str:
    figures = "\n".join(f"| {k} | {v:.3f} |" if isinstance(v, float) else f"| {k} | {v} |" for k, v in measured.items())
    return CARD.format(
        name=options.name, classes=len(photographs.classes), own=len(data.own), tested=len(photographs.tested), terms=options.terms,
        epochs=options.epochs, seed=options.seed, figures=figures,
    )  # fmt: skip


CARD = """# {name}

Tells {classes} classes of photographs apart by prototypes, each a place in a photograph that it was trained on.

- **Data**: {own} photographs that it was trained on; {tested} others that it was tested on.
- **Backbone**: EfficientNet-Lite0, frozen; 7 by 7 cells of its last block, less their mean. A cell sees far more of the photograph than its
  32 pixels, so that a box says where the answer of the network was read, not all of what it depends on.
- **Training**: `python -m fanlight_models.recipes.photograph_prototypes`, {epochs} joint epochs, seed {seed}.
- **Terms**: {terms}

## Figures

| what | figure |
|---|---|
{figures}

`linear` is a linear head on the same cells. Movement is 1 - cosine, how far projection moved the prototypes: where that is far, a source shows
what a prototype was replaced by, not what it was trained to mean.
"""

if __name__ == "__main__":
    main()
