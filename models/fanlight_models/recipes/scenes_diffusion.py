"""The text-to-image model of the scenes: `python -m fanlight_models.recipes.scenes_diffusion --out models/fanlight_models/bundles` trains it,
writes the folder `scenes-diffusion` in diffusers' layout, and measures the gate.

Every step draws new scenes, so nothing is seen twice. A checkpoint is written every few minutes; the same command goes on from it to the same
weights. About 0.6 s a step on one core. `python -m fanlight_models.recipes.scenes_gate FOLDER` measures a folder again.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fanlight_models.diffusion import small
from fanlight_models.diffusion.channel import Law, generator, noised
from fanlight_models.diffusion.codec import SpaceToDepth
from fanlight_models.diffusion.heads import output_of
from fanlight_models.training_log import TrainingLog, beside
from fanlight_models.worlds import scenes
from fanlight_models.worlds.scenes.bayes import LAWS
from fanlight_models.worlds.scenes.variants import IGNORED

STEPS, BATCH, RATE, WARM, DECAY = 9_000, 64, 1.5e-3, 300, 1e-4
AVERAGE = 0.999  # of the weights that ship
EVERY = 200  # steps between checkpoints
WIDE = 0.3  # share of log-SNRs that are uniform over the trained range, for drawing; the others follow the integrator's law
LAW = LAWS[small.SIDE]


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder of bundles")
    parser.add_argument("--world", choices=scenes.WORLDS, default="plain", help="which scenes it learns")
    parser.add_argument("--steps", type=int, default=STEPS, help="the rate falls to nothing over them")
    parser.add_argument("--batch", type=int, default=BATCH, help="scenes a step")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="0 to 999,999")
    parser.add_argument("--checkpoint", type=Path, default=Path("scenes-diffusion.checkpoint.safetensors"))
    parser.add_argument(
        "--stop", type=int, default=None, help="end before this step, to go on another time; nothing is written"
    )
    parser.add_argument("--gate", type=int, default=96, help="held-out scenes that are measured; 0: none")
    parser.add_argument("--gate-nodes", type=int, default=96, help="log-SNRs of each")
    options = parser.parse_args(given)
    torch.set_num_threads(options.threads)
    model = fit(options.world, options.steps, options.seed, options.checkpoint, options.stop, options.batch)
    if model.step < options.steps:
        say(f"{model.step} of {options.steps} steps done; the same command without --stop goes on.")
        return
    place = options.out / ("scenes-diffusion" if options.world == "plain" else f"scenes-diffusion-{options.world}")
    ship(model, place, options)


@dataclass(eq=False)
class Training:
    """Networks, their averages, and how far they are."""

    world: scenes.World
    net: Any
    text: Any
    tokens: Any
    average: dict[str, Tensor] = field(default_factory=dict)
    step: int = 0
    loss: float = math.nan

    @classmethod
    def new(cls, world: str, seed: int) -> Training:
        torch.manual_seed(seed)
        table = scenes.world(world)
        words = vocabulary(table)
        made = cls(table, small.unet(), small.text_encoder(words), small.tokenizer(words))
        made.average = {k: v.detach().clone() for k, v in made.both().state_dict().items()}
        return made

    def both(self) -> nn.ModuleDict:
        return nn.ModuleDict({"net": self.net, "text": self.text})

    def averaged(self) -> Training:
        """The same with the averaged weights in place."""
        self.both().load_state_dict(self.average)
        return self


def vocabulary(world: scenes.World) -> list[str]:
    return sorted({*world.vocabulary, *IGNORED}) + ["_"]


def fit(world: str, steps: int, seed: int, checkpoint: Path, stop: int | None = None, size: int = BATCH) -> Training:
    """Trains to the end, or before step `stop`. Errors: ValueError where the checkpoint is of other options, or the loss is not finite."""
    model = Training.new(world, seed)
    every = model.both()
    optimiser = torch.optim.AdamW(every.parameters(), RATE, betas=(0.9, 0.99), weight_decay=DECAY)
    story = {"world": world, "steps": steps, "seed": seed, "batch": size}
    resume(checkpoint, model, optimiser, story)
    table, codec = small.alphas_cumprod(), SpaceToDepth(small.FOLD)
    table = torch.logit(table.double())
    began, first, total = time.monotonic(), model.step, 0.0
    log = TrainingLog(beside(checkpoint), f"Scenes, text to image: {world}")
    every.train()
    last = steps if stop is None else min(stop, steps)
    while model.step < last:
        pictures, texts = batch(model.world, seed, model.step, size)
        x = codec.encode(pictures)
        chance = generator(seed, "training", model.step)
        step = (log_snrs(len(x), chance)[:, None] - table).abs().argmin(1)
        alpha = table[step].float()  # exactly what the network is told
        noise = torch.randn(x.shape, generator=chance)
        ids = model.tokens(texts, padding="max_length", truncation=True, return_tensors="pt")["input_ids"]
        said = model.net(noised(x, noise, alpha), step, encoder_hidden_states=model.text(ids)[0]).sample
        loss = (said - output_of("v_prediction", x, noise, alpha)).square().mean()
        for group in optimiser.param_groups:
            group["lr"] = RATE * share(model.step, steps)
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(every.parameters(), 1.0)
        optimiser.step()
        model.step += 1
        keep = min(AVERAGE, (1 + model.step) / (10 + model.step))
        for name, value in every.state_dict().items():
            model.average[name].lerp_(value, 1 - keep) if value.is_floating_point() else model.average[name].copy_(
                value
            )
        total += loss.item()
        if not math.isfinite(total):
            raise ValueError(
                f"The loss is not finite at step {model.step}; go on from an older checkpoint, or with another seed."
            )
        if model.step % 20 == 0:
            model.loss, total = total / 20, 0.0
            pace = (time.monotonic() - began) / (model.step - first)
            left = (steps - model.step) * pace
            say(f"step {model.step} of {steps}: loss {model.loss:.5f}, {pace:.2f} s a step, {left / 60:.0f} min left")
            log.step("training", model.step, steps, {"loss": model.loss}, left=left, unit="steps")
        if model.step % EVERY == 0 or model.step == last:
            save(checkpoint, model, optimiser, story)
    if model.step == steps:
        log.end()
    every.eval()
    return model.averaged()


def batch(world: scenes.World, seed: int, step: int, size: int = BATCH) -> tuple[Tensor, list[str]]:
    """Pictures (size, 3, 32, 32) and prompts, most of them shortened."""
    drawn = [scenes.draw(world, seed, step * size + n, small.SIDE) for n in range(size)]
    chance = np.random.default_rng([seed, step, 1])
    return torch.from_numpy(np.stack([s.image for s in drawn])), [shortened(s.prompt, chance) for s in drawn]


def shortened(prompt: str, chance: np.random.Generator) -> str:
    """A prompt as questions will shorten it, so that a missing word is nothing unheard of: whole (35 %), without one to four of its words (35 %),
    each word left out with one probability from 0 to 1 (20 %), empty (10 %); in one of ten a word is added that says nothing."""
    words, kind = prompt.split(), chance.random()
    if kind < 0.35:
        kept = words
    elif kind < 0.7:
        gone = set(chance.choice(len(words), int(chance.integers(1, 5)), replace=False).tolist())
        kept = [w for n, w in enumerate(words) if n not in gone]
    elif kind < 0.9:
        rate = chance.random()
        kept = [w for w in words if chance.random() >= rate]
    else:
        kept = []
    return " ".join([*kept, "the"] if chance.random() < 0.1 else kept)


def log_snrs(count: int, chance: torch.Generator) -> Tensor:
    """(count,) float64: most by the integrator's law, some uniform over all that is trained."""
    u, kind = torch.rand(2, count, generator=chance, dtype=torch.float64)
    low, high = small.TRAINED
    return torch.where(kind < WIDE, low + (high - low) * u, LAW.at(u))


def share(step: int, steps: int) -> float:
    """Of the highest rate: up over the first steps, down along a cosine."""
    return min((step + 1) / WARM, 0.5 + 0.5 * math.cos(math.pi * step / steps))


def save(path: Path, model: Training, optimiser: torch.optim.Optimizer, story: dict[str, Any]) -> None:
    """Weights, averages and moments in one file that is replaced as a whole."""
    kept = {f"now.{k}": v.contiguous() for k, v in model.both().state_dict().items()}
    kept |= {f"average.{k}": v.contiguous() for k, v in model.average.items()}
    for n, state in optimiser.state_dict()["state"].items():
        kept |= {f"moment.{n}.{k}": v.contiguous() for k, v in state.items()}
    fresh = path.with_suffix(".part")
    save_file(kept, fresh, {"story": json.dumps(story), "step": str(model.step), "loss": str(model.loss)})
    fresh.replace(path)


def resume(path: Path, model: Training, optimiser: torch.optim.Optimizer, story: dict[str, Any]) -> None:
    """Errors: ValueError where the checkpoint is of other options."""
    if not path.exists():
        return
    with safe_open(path, "pt") as opened:
        told = opened.metadata()
        if json.loads(told["story"]) != story:
            raise ValueError(
                f"The checkpoint {path.name} is of {told['story']}, not of {json.dumps(story)}; remove it or name another."
            )
        kept = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 (it is no mapping)
    model.both().load_state_dict({k.removeprefix("now."): v for k, v in kept.items() if k.startswith("now.")})
    model.average = {k.removeprefix("average."): v for k, v in kept.items() if k.startswith("average.")}
    moments: dict[int, dict[str, Tensor]] = {}
    for key, value in kept.items():
        if key.startswith("moment."):
            _, n, name = key.split(".", 2)
            moments.setdefault(int(n), {})[name] = value
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
    model.step, model.loss = int(told["step"]), float(told["loss"])


def ship(model: Training, place: Path, options: argparse.Namespace) -> None:
    """Writes the folder, measures it as it was written, and writes the card."""
    from fanlight_models.recipes import scenes_gate

    law = Law(LAW.loc, LAW.scale, LAW.low, LAW.high)
    small.write(place, model.net, model.text, model.tokens, law, about=about(options.world))
    size = sum(f.stat().st_size for f in place.rglob("*.safetensors")) / 1e6
    told = f"{model.step} steps of {options.batch} scenes, seed {options.seed}, loss {model.loss:.4f}"
    figures = "Not measured; `python -m fanlight_models.recipes.scenes_gate FOLDER` does it.\n"
    if options.gate:
        measured = scenes_gate.gate(place, options.world, options.gate, options.gate_nodes)
        (place / "gate.json").write_text(json.dumps(measured, indent=2) + "\n")
        figures = scenes_gate.table(measured)
    (place / "card.md").write_text(CARD.format(world=options.world, told=told, size=size, figures=figures))
    say(f"{place}: {size:.1f} MB")


def about(world: str) -> dict[str, Any]:
    """What lists say of the model, for `fanlight.json`."""
    return {
        "name": "Scenes, trained" if world == "plain" else f"Scenes, trained ({world})",
        "description": "Draws two objects from words like “a red circle left of a blue cross”. Trained on scenes whose information is known exactly.",
        "terms": "Apache-2.0",
        "examples": [scenes.draw(scenes.world(world), 7, n).prompt for n in range(3)],
    }


def say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


CARD = """# Scenes, text to image

Draws two objects from a prompt such as “a red circle left of a blue cross”, at 32 x 32 pixels. It is here because what every word says about every
picture is known exactly (docs/diffusion.md): its maps can be marked right or wrong, beside those of the optimal denoiser.

- **Data**: scenes of the world “{world}”, drawn while it trains; nobody else's data.
- **Network**: UNet2DConditionModel (32, 64, 64), velocity prediction, on 12 x 16 x 16 latents that only rearrange pixels; CLIP text encoder of two
  layers on a tokenizer of whole words. {size:.1f} MB.
- **Training**: `python -m fanlight_models.recipes.scenes_diffusion --world {world}`: {told}. Prompts lose words while it trains, so that
  a missing word is nothing unheard of. Averaged weights.
- **Use**: to see what information maps show where the truth is known. It draws nothing else.
- **Terms**: Apache-2.0.

## Gate

{figures}"""

if __name__ == "__main__":
    main()
