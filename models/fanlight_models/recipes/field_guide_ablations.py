"""What projection, slots, coherence and moving parts are each worth on the field guide:
`python -m fanlight_models.recipes.field_guide_ablations --folder FOLDER` trains the same transformer once a seed, and from it the shipped recipe
with one thing taken away at a time, a rigid square of parts among them.

Every training goes on from its checkpoint in the folder, and what is measured is kept in `results.jsonl` there: the same command goes on after a
stop, and prints the table of what there is.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from fanlight_models.prototypes import quality
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.rigid import RigidHead
from fanlight_models.prototypes.training import Plan, Training
from fanlight_models.recipes import field_guide_prototypes as shipped, field_guide_prototypes_card as card
from fanlight_models.worlds import fieldguide

SCENES = 6000
EPOCHS = {"backbone": 30, "warm": 2, "joint": 8, "slots": 3, "last": 3}
LINEAR = "linear head"


@dataclass(frozen=True)
class Variant:
    """What is taken from the recipe. Args: epochs: of the stages that are changed."""

    says: str
    epochs: Mapping[str, int] = field(default_factory=dict)
    coherent: bool = True
    rigid: bool = False


VARIANTS = {
    "whole": Variant("the recipe of the shipped bundle"),
    "rigid": Variant("parts in a square of 2 by 2 tokens, as ProtoPNet's prototypes", rigid=True),
    "no projection": Variant("prototypes stay what was learnt; gates are rounded", {"projection": 0}),
    "no slots": Variant("all four parts stay open", {"slots": 0}),
    "no coherence": Variant("nothing holds the parts of a prototype together", coherent=False),
}


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="checkpoints and results")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--scenes", type=int, default=SCENES, help="scenes to train on")
    parser.add_argument("--measured", type=int, default=fieldguide.SPLITS["test"], help="test scenes to measure on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print what is known as JSON, not as a table")
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    options.folder.mkdir(parents=True, exist_ok=True)
    results = options.folder / "results.jsonl"
    about = {"scenes": options.scenes, "measured": options.measured, "epochs": EPOCHS}
    test = fieldguide.arrays(fieldguide.split("test", options.measured), shipped.SIZE)
    cases = card.seen(test, options.measured, shipped.SIZE)
    for seed in options.seeds:
        done = {r["variant"] for r in _read(results, about) if r["seed"] == seed}
        wanted = [v for v in options.variants if v not in done]
        if not wanted and LINEAR in done:
            continue
        data = shipped.Scenes(options.scenes, seed)
        plain = backbone(data, seed, options.folder)
        if LINEAR not in done:
            _keep(results, {"about": about, "seed": seed, "variant": LINEAR, "accuracy": linear(plain, cases)})
        for name in wanted:
            found = measured(trained(name, plain, data, seed, options.folder), cases)
            _keep(results, {"about": about, "seed": seed, "variant": name, **found})
    rows = [r for r in _read(results, about) if r["seed"] in options.seeds]
    sys.stdout.write(json.dumps(rows, indent=2) + "\n" if options.json else table(rows))


def backbone(data: shipped.Scenes, seed: int, folder: Path) -> Training:
    """The transformer with a linear head on its class token: what everything else begins with."""
    plan = Plan(epochs={"backbone": EPOCHS["backbone"], "projection": 0}, seed=seed)
    made = Training(_model(seed), data, plan, folder / f"backbone-{seed}.safetensors", shipped.teller())
    made.run()
    return made


def trained(name: str, plain: Training, data: shipped.Scenes, seed: int, folder: Path) -> ProtoViT:
    variant = VARIANTS[name]
    plan = Plan(epochs={**EPOCHS, **variant.epochs, "backbone": 0}, coherent=variant.coherent, seed=seed)
    model = _model(seed, rigid=variant.rigid)
    model.features.load_state_dict(plain.model.features.state_dict())
    sys.stderr.write(f"{name}: {variant.says}\n")
    place = folder / f"{name.replace(' ', '-')}-{seed}.safetensors"
    training = Training(model, data, plan, place, shipped.teller())
    training.run()
    return model


def _model(seed: int, *, rigid: bool = False) -> ProtoViT:
    torch.manual_seed(seed)
    options = {"per_class": shipped.PER_CLASS, "parts": shipped.PARTS, "radius": shipped.RADIUS}
    model = ProtoViT(shipped.SHAPE, len(fieldguide.SPECIES), **options)
    if rigid:
        like = model.head
        model.head = RigidHead(shipped.SHAPE.width, len(fieldguide.SPECIES), shipped.SHAPE.grid, **options)
        model.head.load_state_dict(like.state_dict())  # the same beginning
    return model


def linear(plain: Training, cases: quality.Cases) -> float:
    plain.model.eval()
    with torch.inference_mode():
        right = [plain.classifier(plain.model.features(c.x)[0]).argmax(1) == c.classes for c in cases()]
    return float(torch.cat(right).double().mean())


def measured(model: ProtoViT, cases: quality.Cases) -> dict[str, float]:
    """Accuracy, consistency and stability on the test split, mean open parts, share of the gradient inside the patches, all 0..1 but the parts."""
    model.eval().requires_grad_(False)
    with torch.inference_mode():
        right = torch.cat([model(c.x).logits.argmax(1) == c.classes for c in cases()])
    same, stable = quality.consistency(model, cases), quality.stability(model, cases)
    few = next(iter(cases()))
    with torch.inference_mode():
        mine = model(few.x).activation.masked_fill(model.head.own != few.classes[:, None], float("-inf"))
    return {
        "accuracy": float(right.double().mean()),
        "consistency": same["patches"],
        "consistency_box": same["box"],
        "stability": stable["parts"],
        "token_stability": stable["tokens"],
        "inside": float(quality.inside(model, few.x, mine.argmax(1)).mean()),
        "parts": float(model.head.gate.sum(1).mean()),
        "nearest": nearest(model, cases),
    }


def nearest(model: ProtoViT, cases: quality.Cases) -> float:
    """Mean over prototypes of the cosine of their open parts with what they match best in the pictures of their class: how much of a prototype is
    really seen anywhere."""
    best = torch.full((len(model.head.own),), float("-inf"))
    gate = model.head.gate
    with torch.inference_mode():
        for case in cases():
            found = model(case.x).similarity
            value = (found * gate).sum(2) / gate.sum(1)
            best = torch.maximum(
                best, value.masked_fill(case.classes[:, None] != model.head.own, float("-inf")).amax(0)
            )
    return float(best[best.isfinite()].mean())


COLUMNS = {
    "accuracy": "accuracy",
    "consistency": "consistency, patches",
    "consistency_box": "consistency, box",
    "stability": "stability, parts",
    "token_stability": "stability, patches",
    "inside": "gradient inside",
    "nearest": "cosine on test pictures",
    "parts": "open parts",
}


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: the mean over seeds, and with several of them the smallest and the largest."""
    lines = ["| variant | " + " | ".join(COLUMNS.values()) + " |", "|---|" + "---|" * len(COLUMNS)]
    for name in (LINEAR, *VARIANTS):
        mine = [r for r in rows if r["variant"] == name]
        if mine:
            cells = [_cell([r[c] for r in mine if c in r]) for c in COLUMNS]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{statistics.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _read(path: Path, about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Errors: ValueError where the results are of other options."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    if any(r["about"] != about for r in rows):
        raise ValueError(f"{path.name} holds results of other options; name another folder.")
    return rows


def _keep(path: Path, row: Mapping[str, Any]) -> None:
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
