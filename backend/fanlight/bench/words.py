"""Words and pictures: how often the network is asked, what common noise is worth, and whether maps find what was planted.

On scenes whose information is known, asked of their optimal denoiser, and with --folder of a model of the scenes beside it. Evaluations are
counted, not timed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fanlight.bench._figures import Declared, figures, passed
from fanlight.bench._machine import machine, today, versions
from fanlight.cli.output import say

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight_models.diffusion import Plan, Readings

ROLES = {"half": 0.9, "unique": 0.8}
NEUTRAL = "the"
FIGURES = {
    "pair": Declared(measures="Evaluations of a pair, over nodes", at_most=4),
    "all_context": Declared(measures="Evaluations of all pairs of 8 words in context, over nodes", at_most=37),
    "all_alone": Declared(measures="Evaluations of all pairs of 8 words alone, over nodes", at_most=37),
    "again": Declared(measures="Evaluations of a further contrast of what was measured", at_most=0),
    "variance": Declared(measures="Variance of signed information of both words: independent noise over common", at_least=10),
    "variance_given": Declared(measures="The same of one word given the other", at_least=10),
    "schemes": Declared(measures="Variance of the same map: independent log-SNRs and noise over strata and opposite signs"),
    "fewer": Declared(
        measures="Evaluations for the whole map at equal standard error: independent, one conditioning at a time, over ours", at_least=3
    ),
    "rate": Declared(measures="Evaluations of the optimal denoiser per second, one thread", unit="1/s"),
    "independent": Declared(measures="Colours of two objects: share of i(A,B) that is unique", at_least=0.8),
    "own_half": Declared(measures="Of it, share that lies in the half of its own object", at_least=0.9),
    "synonym": Declared(measures="Two names of one shape: share of i(A,B) that is redundant", at_least=0.8),
    "parity": Declared(measures="Two words whose parity is the shape: share of i(A,B) that is synergy", at_least=0.8),
    **{
        f"{side}_{name}": Declared(measures=f"{said}: {what}", unit=unit, **goal)
        for side, said in (("exact", "Optimum"), ("model", "Model"), ("attention", "Attention of the model"))
        for name, what, unit, goal in (
            ("colour_auc", "AUC of a colour word's map for its object", "", {"at_least": 0.97} if side != "attention" else {}),
            ("object_auc", "AUC of an object's map", "", {"at_least": 0.97} if side != "attention" else {}),
            ("colour_like", "correlation of a colour word's map with the optimum's", "", {"at_least": 0.8} if side == "model" else {}),
            ("colour_off", "distance of a colour word's mean signed information from ln 4", "nat", {"at_most": 0.15} if side == "model" else {}),
        )
        if not (side == "attention" and name == "colour_off") and not (side == "exact" and name == "colour_like")
    },
    **{
        f"{side}_{name}": Declared(measures=f"{said}: {what}", **({} if side == "attention" or name not in ROLES else {"at_least": ROLES[name]}))
        for side, said in (("exact", "Optimum"), ("model", "Model"), ("attention", "Attention of the model"))
        for name, what in (
            ("inside", "share of a colour word's map that lies on its object"),
            ("half", "colours of two objects: share of what each alone says, or of its attention, in the half of its own object"),
            ("unique", "colours of two objects: share of i(A,B) that is unique"),
        )
        if not (side == "attention" and name == "unique")
    },
    "model_floor": Declared(measures="Model: noise floor, sum of the map of a word that says nothing over that of an object"),
}  # fmt: skip
PACKAGES = ("fanlight", "torch", "diffusers", "transformers")
TEXT = "a red circle left of a blue cross"
PLANTED = {"independent": "plain", "synonym": "synonym", "parity": "xor"}
CHUNK = 64
Found = dict[str, list[float]]


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --repeats N (of every sampling scheme), --scenes N, --nodes N, --folder FOLDER (a model of the scenes as diffusers writes one)."""
    import torch

    parser = argparse.ArgumentParser(prog="fanlight bench words --", description=__doc__)
    parser.add_argument("--repeats", type=int, default=60)
    parser.add_argument("--scenes", type=int, default=12)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(options)
    torch.set_num_threads(1)
    about = {"benchmark": "words", "date": today(), "machine": machine(), "versions": versions(PACKAGES)}
    found: Found = defaultdict(list)
    _counted(found, chosen.nodes)
    _schemes(found, chosen.nodes, chosen.repeats)
    _roles(found, chosen.nodes, chosen.scenes)
    _places(found, chosen.nodes, chosen.scenes, chosen.folder)
    none = {"exact_colour_auc": "attention: none, the optimum has no layers", "exact_object_auc": "attention: none"}
    made = figures(FIGURES, found, none)
    return {**about, "options": {k: str(v) for k, v in vars(chosen).items()}, **made, "passed": passed(made)}


def _counted(found: Found, nodes: int) -> None:
    """Evaluations, by the denoiser's own count."""
    import torch

    from fanlight.adapters.text_to_image import Painter
    from fanlight_models.diffusion import Conditioning, Prompt, Sampling, atoms, finished, generate, plan, start
    from fanlight_models.diffusion.codec import SpaceToDepth
    from fanlight_models.worlds import scenes
    from fanlight_models.worlds.scenes.bayes import Bayes

    model = Painter(Bayes(scenes.world()), SpaceToDepth(1), torch.nn.Module(), identity="benchmark", name="optimum")
    x = generate.finished(model, [Conditioning(TEXT)], generate.Drawing(guidance=1))[0]
    prompt = Prompt(TEXT)

    def asked(question: Plan, readings: Readings) -> float:
        before = model.asked
        finished(model, x, question.conditionings, readings=readings, chunk=1)
        return (model.asked - before) / nodes

    pair = plan(prompt, [prompt.find("red"), prompt.find("circle")], context=True)
    readings = start(model, Sampling(nodes))
    found["pair"].append(asked(pair, readings))
    before = model.asked
    atoms.decompose(readings, pair.pairs[0, 1], rule="pointwise", band=(-2, 2))
    finished(model, x, pair.conditionings, readings=readings)
    found["again"].append(model.asked - before)
    for name, context in (("all_context", True), ("all_alone", False)):
        began = time.perf_counter()
        found[name].append(asked(plan(prompt, prompt.words, context=context), start(model, Sampling(nodes))))
        say(f"{name}: {found[name][-1]:g} conditionings in {time.perf_counter() - began:.1f} s")


def _schemes(found: Found, nodes: int, repeats: int) -> None:
    """One picture measured again and again: variance over repeats, of signed values, which alone mean something with independent noise."""
    import torch

    from fanlight_models.diffusion import Prompt, Sampling, finished, plan
    from fanlight_models.worlds import scenes
    from fanlight_models.worlds.scenes.bayes import Bayes

    world = scenes.world()
    scene = next(s for s in (scenes.draw(world, 0, n) for n in range(1000)) if s.prompt == TEXT)
    model, x, prompt = Bayes(world), torch.from_numpy(scene.image), Prompt(TEXT)
    quad = plan(prompt, [prompt.find("red"), prompt.find("circle")], context=True).pairs[0, 1]
    every = [quad.base, quad.a, quad.b, quad.ab]
    schemes: dict[str, dict[str, Any]] = {
        "independent": {"stratified": False, "antithetic": False, "common": False},
        "common": {"stratified": False, "antithetic": False},
        "ours": {},
    }
    totals: dict[str, list[tuple[float, float]]] = defaultdict(list)
    maps: dict[str, list[Tensor]] = defaultdict(list)
    began, asked = time.perf_counter(), 0
    for seed in range(repeats):
        for name, how in schemes.items():
            readings = finished(model, x, every, Sampling(nodes, seed=seed, **how), chunk=CHUNK)
            asked += readings.evaluations
            both, given = (readings.contrast(base, quad.ab, "signed") for base in (quad.base, quad.a))
            totals[name].append((both.total, given.total))
            maps[name].append(both.map)
    found["rate"].append(asked / (time.perf_counter() - began))
    spread = {name: np.var(np.array(values), axis=0, ddof=1) for name, values in totals.items()}
    wide = {name: float(torch.stack(values).var(0).sum()) for name, values in maps.items()}
    found["variance"].append(float(spread["independent"][0] / spread["common"][0]))
    found["variance_given"].append(float(spread["independent"][1] / spread["common"][1]))
    found["schemes"].append(wide["common"] / wide["ours"])
    # three contrasts of two conditionings, each by itself, where ours share four
    found["fewer"].append(wide["independent"] / wide["ours"] * 6 / 4)
    say(f"variance: {found['variance'][0]:.0f} and {found['variance_given'][0]:.0f} times smaller with common noise")


def _roles(found: Found, nodes: int, count: int) -> None:
    """What was planted in a pair of words: the sums of its atoms by the rule `min`, over scenes."""
    import torch

    from fanlight_models.diffusion import Prompt, Sampling, decompose, finished, plan
    from fanlight_models.worlds import scenes
    from fanlight_models.worlds.scenes.bayes import Bayes

    for role, name in PLANTED.items():
        world = scenes.world(name)
        model = Bayes(world)
        for index in range(count):
            scene = scenes.draw(world, 1, index)
            prompt = Prompt(scene.prompt)
            one, other = (prompt.words[n] for n in ((1, 6) if role == "independent" else (2, 3)))
            quad = plan(prompt, [one, other], context=True).pairs[0, 1]
            asked = [quad.base, quad.a, quad.b, quad.ab]
            x = torch.from_numpy(scene.image)
            got = decompose(finished(model, x, asked, Sampling(nodes, seed=index), chunk=CHUNK), quad)
            sums = {n: float(getattr(got.localised, n)) for n in ("redundant", "unique_a", "unique_b", "synergy")}
            unique = sums["unique_a"] + sums["unique_b"]
            whole = sum(sums.values())
            found[role].append(
                {"independent": unique, "synonym": sums["redundant"], "parity": sums["synergy"]}[role] / whole
            )
            if role == "independent":
                left, right = got.maps.unique_a[:, :8].sum(), got.maps.unique_b[:, 8:].sum()
                found["own_half"].append(float(left + right) / unique)
        say(f"{role}: {np.median(found[role]):.2f}")


def _places(found: Found, nodes: int, count: int, folder: Path | None) -> None:
    """Maps of a colour word and of an object against where it is, and signed information against ln 4."""
    from fanlight_models.worlds import scenes
    from fanlight_models.worlds.scenes.bayes import Bayes

    sides: dict[str, Any] = {"exact": Bayes(scenes.world())}
    if folder is not None:
        from fanlight_models.diffusion import folders

        sides["model"] = folders.read(folder)
    for name, model in sides.items():
        fold = getattr(getattr(model, "codec", None), "factor", 1)
        side = model.shape[1] * fold
        truth = Bayes(scenes.world(), side, fold=fold)
        told: list[float] = []
        for index in range(count):
            _place(found, told, name, model, truth, scenes.draw(scenes.world(), 2, index, side), nodes, fold)
        found[f"{name}_colour_off"].append(abs(float(np.mean(told)) - math.log(4)))
        say(f"{name}: AUC of a colour {np.median(found[f'{name}_colour_auc']):.3f}")


def _place(
    found: Found, told: list[float], name: str, model: Any, truth: Any, scene: Any, nodes: int, fold: int
) -> None:  # fmt: skip
    import torch

    from fanlight_models.diffusion import Conditioning, Prompt, Sampling, decompose, finished, plan
    from fanlight_models.diffusion.words import without
    from fanlight_models.worlds.scenes import measures

    prompt, full = Prompt(scene.prompt), Conditioning(scene.prompt)
    side = scene.image.shape[1]
    mask = scene.masks[0].reshape(side // fold, fold, side // fold, fold).any((1, 3))
    x = torch.nn.functional.pixel_unshuffle(torch.from_numpy(scene.image)[None], fold)[0]
    bases = {w: without(prompt, [prompt.words[n] for n in gone]) for w, gone in (("colour", (1,)), ("object", (1, 2)))}
    pair = plan(prompt, [prompt.words[1], prompt.words[6]], context=True, neutral=NEUTRAL)
    looks = full if hasattr(model, "noise_and_attention") else None
    sampling = Sampling(nodes, law=model.law)
    own = finished(model, x, [full, *bases.values(), *pair.conditionings], sampling, attend=looks, chunk=CHUNK)
    for word, base in bases.items():
        found[f"{name}_{word}_auc"].append(measures.auc(own.contrast(base, full).map.double().numpy(), mask))
    got = decompose(own, pair.pairs[0, 1])
    unique = (got.maps.unique_a.double(), got.maps.unique_b.double())
    middle = unique[0].shape[1] // 2
    mine = float(unique[0][:, :middle].sum() + unique[1][:, middle:].sum())
    found[f"{name}_half"].append(mine / float(unique[0].sum() + unique[1].sum()))
    found[f"{name}_unique"].append(float(unique[0].sum() + unique[1].sum()) / float(got.ab.map.double().sum()))
    found[f"{name}_inside"].append(_inside(own.contrast(bases["colour"], full).map.double().numpy(), mask))
    told.append(own.contrast(bases["colour"], full, "signed").total)
    if looks is None:
        return
    assert pair.floor is not None
    silent, object_map = own.contrast(*pair.floor), own.contrast(bases["object"], full)
    found[f"{name}_floor"].append(float(silent.map.sum() / object_map.map.sum()))
    best = (
        finished(truth, x, [full, bases["colour"]], sampling, chunk=CHUNK)
        .contrast(bases["colour"], full)
        .map.double()
        .numpy()
    )
    found[f"{name}_colour_like"].append(
        measures.correlation(own.contrast(bases["colour"], full).map.double().numpy(), best)
    )
    for word, gone in (("colour", (1,)), ("object", (1, 2))):
        at = [t for n in gone for t in model.tokens(full, prompt.words[n].span)]
        seen = own.attention_map(full, at).double().numpy()
        found[f"attention_{word}_auc"].append(measures.auc(seen, mask))
        if word == "colour":
            found["attention_inside"].append(_inside(seen, mask))
            other = own.attention_map(full, model.tokens(full, prompt.words[6].span)).double().numpy()
            here = float(seen[:, :middle].sum() + other[:, middle:].sum())
            found["attention_half"].append(here / float(seen.sum() + other.sum()))
            found["attention_colour_like"].append(measures.correlation(seen, best))


def _inside(values: Any, mask: Any) -> float:
    """Share of a map that is not negative and lies where the mask is."""
    return float(values[mask].sum() / values.sum())
