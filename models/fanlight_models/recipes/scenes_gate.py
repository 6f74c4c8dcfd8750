"""How far a text-to-image model of the scenes is from the truth: `python -m fanlight_models.recipes.scenes_gate FOLDER` prints JSON.

On held-out scenes, words in the context of their prompt. The same nodes and the same noise go through the model and through the optimal
denoiser, so that a map and its truth differ by the model and not by chance. The exact total is that of the mixture, without any estimate.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fanlight_models.diffusion.channel import Sampling
from fanlight_models.diffusion.folders import read
from fanlight_models.diffusion.measure import finished
from fanlight_models.diffusion.stable import Stable
from fanlight_models.diffusion.words import Conditioning, Prompt, without
from fanlight_models.worlds import scenes
from fanlight_models.worlds.scenes import measures
from fanlight_models.worlds.scenes.bayes import Bayes

SCENES, NODES, NOISES, SIDE = 96, 96, 2, 32
SEED = 1_000_000  # of held-out scenes; training uses seeds below
WORDS = {"colour": (1,), "shape": (2,), "object": (1, 2)}  # of the left object
MEASURES = (
    "estimate", "exact", "auc", "correlation", "attention auc", "attention correlation",
    "orthogonal", "orthogonal of the optimum", "estimate of the optimum",
)  # fmt: skip
SHOWN = {
    "estimate": "estimate, nat", "exact": "exact, nat", "auc": "AUC", "correlation": "correlation with the exact map",
    "attention auc": "attention: AUC", "attention correlation": "attention: correlation",
}  # fmt: skip
LIMITS = {
    "error of a colour word": 0.15,
    "error of a colour word in one scene": 0.15,
    "AUC of a colour word": 0.97,
    "AUC of an object": 0.97,
    "correlation of a colour word": 0.8,
}


def gate(
    folder: Path, world: str = "plain", count: int = SCENES, nodes: int = NODES, noises: int = NOISES
) -> dict[str, Any]:
    """Figures, each as {"value", "error" (standard, over scenes), "limit", "met"}; and per kind of word all measures.

    "error of a colour word" is |mean of estimate - exact| over scenes, nat: what is wrong on average. "... in one scene" is the mean of
    |estimate - that of the optimum from the same noise|: the chance of few nodes is in both and falls out of the difference. `count`: scenes;
    those of the world whose prompts begin as the plain ones do."""
    model = read(folder)
    if not isinstance(model, Stable):
        raise ValueError(f"“{folder.name}” is no model of the scenes.")
    table = scenes.world(world)
    truth = Bayes(table, SIDE, fold=model.codec.factor)
    every: dict[str, list[tuple[float, ...]]] = {k: [] for k in WORDS}
    index = done = 0
    while done < count:
        scene = scenes.draw(table, SEED, index, SIDE)
        index += 1
        words = scene.prompt.split()
        if words[2] not in scenes.SHAPES:
            continue
        done += 1
        prompt, full = Prompt(scene.prompt), Conditioning(scene.prompt)
        bases = {k: without(prompt, [prompt.words[i] for i in gone]) for k, gone in WORDS.items()}
        x = model.codec.encode(torch.from_numpy(scene.image)[None])[0]
        sampling = Sampling(nodes, noises, law=model.law, seed=index)
        asked = [full, *bases.values()]
        own, best = (
            finished(m, x, asked, sampling, chunk=c, attend=a) for m, c, a in ((model, 32, full), (truth, 64, None))
        )
        block = model.codec.factor
        mask = scene.masks[0].reshape(SIDE // block, block, SIDE // block, block).any((1, 3))
        for name, base in bases.items():
            signed, orthogonal = (own.contrast(base, full, e) for e in ("signed", "orthogonal"))
            right = best.contrast(base, full)
            at = [t for i in WORDS[name] for t in model.tokens(full, prompt.words[i].span)]
            looks = own.attention_map(full, at).double().numpy()
            found, known = orthogonal.map.double().numpy(), right.map.double().numpy()
            every[name].append(
                (signed.total, truth.information(x, base, full), measures.auc(found, mask), measures.correlation(found, known),
                 measures.auc(looks, mask), measures.correlation(looks, known), orthogonal.total, right.total,
                 best.contrast(base, full, "signed").total)
            )  # fmt: skip
        sys.stderr.write(f"scene {done} of {count}\n")
    return _told(every, {"scenes": count, "nodes": nodes, "noises": noises, "world": world})


def _told(every: dict[str, list[tuple[float, ...]]], how: dict[str, Any]) -> dict[str, Any]:
    kinds: dict[str, Any] = {}
    for kind, rows in every.items():
        values = np.array(rows)
        kinds[kind] = {n: [float(v.mean()), _error(v)] for n, v in zip(MEASURES, values.T, strict=True)}
        off = values[:, 0] - values[:, 1]
        kinds[kind]["difference"] = [float(off.mean()), _error(off)]
        kinds[kind]["spread"] = float(np.abs(off).mean())
        # the same noise went through the optimum: what is left is the model's own error
        paired = values[:, 0] - values[:, 8]
        kinds[kind]["difference to the optimum"] = [float(paired.mean()), _error(paired)]
        kinds[kind]["distance to the optimum"] = [float(np.abs(paired).mean()), _error(np.abs(paired))]
    colour, thing = kinds["colour"], kinds["object"]
    found = {
        "error of a colour word": [abs(colour["difference"][0]), colour["difference"][1]],
        "error of a colour word in one scene": colour["distance to the optimum"],
        "AUC of a colour word": colour["auc"],
        "AUC of an object": thing["auc"],
        "correlation of a colour word": colour["correlation"],
    }
    gates = {}
    for name, (value, error) in found.items():
        limit = LIMITS[name]
        met = value < limit if name.startswith("error") else value >= limit
        gates[name] = {"value": value, "error": error, "limit": limit, "met": bool(met)}
    return {"how": how, "gate": gates, "words": kinds}


def _error(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf


def table(measured: dict[str, Any]) -> str:
    """For the card."""
    how = measured["how"]
    lines = [
        f"On {how['scenes']} held-out scenes, {how['nodes']} log-SNRs with {how['noises']} noises each; ± is the standard error over scenes.",
        "",
        "| figure | value | limit | |",
        "|---|---|---|---|",
    ]
    for name, g in measured["gate"].items():
        unit = " nat" if name.startswith("error") else ""
        sign = "below" if name.startswith("error") else "at least"
        lines.append(
            f"| {name} | {g['value']:.3f} ± {g['error']:.3f}{unit} | {sign} {g['limit']} | {'met' if g['met'] else '**not met**'} |"
        )
    lines += ["", f"| word of the left object | {' | '.join(SHOWN.values())} |", "|---" * (len(SHOWN) + 1) + "|"]
    for kind, k in measured["words"].items():
        lines.append(f"| {kind} | {' | '.join(f'{k[n][0]:.3f} ± {k[n][1]:.3f}' for n in SHOWN)} |")
    return "\n".join(lines) + "\n"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--world", choices=scenes.WORLDS, default="plain")
    parser.add_argument("--scenes", type=int, default=SCENES)
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--noises", type=int, default=NOISES)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    measured = gate(options.folder, options.world, options.scenes, options.nodes, options.noises)
    sys.stdout.write(json.dumps(measured, indent=2) + "\n")
    if not all(g["met"] for g in measured["gate"].values()):
        sys.exit("The gate is not met.")


if __name__ == "__main__":
    main()
