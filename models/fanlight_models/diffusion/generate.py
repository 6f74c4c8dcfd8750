"""Drawing pictures, and drawing them again with a word gone, replaced, moved or weighed otherwise, from the same noise.

DDIM (Song et al., ICLR 2021) without added noise, on a grid of log-SNRs of its own, so that it draws with every denoiser, the exact ones too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fanlight_models.diffusion.channel import generator, noised
from fanlight_models.diffusion.heads import picture_of
from fanlight_models.diffusion.protocol import Denoiser, rows
from fanlight_models.diffusion.words import BadPrompt, Conditioning, Prompt, Word, apart, tidy, without

STEPS, GUIDANCE = 50, 7.5


@dataclass(frozen=True)
class Drawing:
    """How a picture is drawn: recorded with it, because with guidance above 1 it is no sample of p(picture | prompt), and the signed information
    of its words is inflated. span: log-SNRs of begin and end, None for the trained range within -9 to 9. Errors: ValueError."""

    seed: int = 0
    steps: int = STEPS
    guidance: float = GUIDANCE
    span: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not (1 <= self.steps <= 1000 and 0 <= self.guidance <= 50):
            raise ValueError(
                f"A picture takes 1 to 1000 steps and guidance 0 to 50, not {self.steps} and {self.guidance}."
            )


@dataclass(frozen=True)
class Weighed:
    """A prompt with a word weighed by w: eps(without) + w (eps(with) - eps(without)). 0: the word is gone; 1: the prompt; above 1: stronger [OWN]."""

    whole: Conditioning
    less: Conditioning
    weight: float


Asked = Conditioning | Weighed


@dataclass(frozen=True, eq=False)
class Drawn:
    """step of steps; latents (n, C, h, w): what the pictures are expected to be at this point, and at the last step the pictures."""

    step: int
    steps: int
    latents: Tensor


def draw(model: Denoiser, prompts: Sequence[Asked], how: Drawing | None = None) -> Iterator[Drawn]:
    """Draws one picture per prompt, all from the same noise; yields after every step. To cancel, stop iterating.

    Errors: ValueError without prompts; BadPrompt."""
    how = how or Drawing()
    if not prompts:
        raise ValueError("At least one prompt is drawn.")
    needed = [c for p in prompts for c in ((p.whole, p.less) if isinstance(p, Weighed) else (p,))]
    chosen = sorted({Conditioning(""), *needed})
    encoded, place = model.encode(chosen), {c: i for i, c in enumerate(chosen)}
    asked = [i for i in range(len(chosen)) if chosen[i] in needed or how.guidance != 1]
    low, high = how.span or (max(model.logsnr[0], -9.0), min(model.logsnr[1], 9.0))
    alphas = torch.linspace(low, high, how.steps + 1, dtype=torch.float64)
    noise = torch.randn(model.shape, generator=generator(how.seed, "drawing"))
    z = noise.to(model.device).expand(len(prompts), *model.shape)
    for step in range(how.steps):
        now, following = (alphas[i].expand(len(prompts)).to(model.device) for i in (step, step + 1))
        with torch.inference_mode():
            said = {i: model.noise(z, now, rows(encoded, torch.full((len(prompts),), i))) for i in asked}
            own = torch.stack([_one(said, place, p, n) for n, p in enumerate(prompts)])
            if how.guidance != 1:
                empty = said[place[Conditioning("")]]
                own = empty + how.guidance * (own - empty)
            clean = picture_of(own, z, now)
            last = step == how.steps - 1
            z = clean if last else noised(clean, own, following.to(clean.dtype))
        yield Drawn(step + 1, how.steps, clean.clone())


def _one(said: Mapping[int, Tensor], place: Mapping[Conditioning, int], prompt: Asked, row: int) -> Tensor:
    if isinstance(prompt, Conditioning):
        return said[place[prompt]][row]
    less = said[place[prompt.less]][row]
    return less + prompt.weight * (said[place[prompt.whole]][row] - less)


def finished(model: Denoiser, prompts: Sequence[Asked], how: Drawing | None = None) -> Tensor:
    """`draw` to its end: latents (n, C, h, w)."""
    *_, last = draw(model, prompts, how)
    return last.latents


# --- edits of a prompt


def dropped(prompt: Prompt, word: Word, mode: str = "delete") -> Conditioning:
    """The prompt without a word."""
    return without(prompt, [word], mode)


def replaced(prompt: Prompt, word: Word, other: str) -> Conditioning:
    """Another word in its place. Errors: BadPrompt where there is none."""
    return without(prompt, [word], "swap", {word: other})


def exchanged(prompt: Prompt, one: Word, other: Word) -> Conditioning:
    """Two words change places. Errors: BadPrompt where they overlap."""
    apart([one, other])
    return without(prompt, [one, other], "swap", {one: other.text, other: one.text})


def reordered(prompt: Prompt, order: Sequence[int]) -> Conditioning:
    """All words in another order, what stands between them staying in place. order: the number, from 0, of the word at each place.

    Errors: BadPrompt where it does not name every word once."""
    if sorted(order) != list(range(len(prompt.words))):
        raise BadPrompt(f"An order names each of the {len(prompt.words)} words once, from 0.")
    text = prompt.text
    for place in reversed(range(len(order))):
        there = prompt.words[place]
        text = text[: there.start] + prompt.words[order[place]].text + text[there.end :]
    return Conditioning(tidy(text))


def weighed(prompt: Prompt, word: Word, weight: float, mode: str = "delete") -> Weighed:
    """A word weighed by -10 to 10. Errors: BadPrompt."""
    if not -10 <= weight <= 10:
        raise BadPrompt(f"A word is weighed by -10 to 10, not {weight}.")
    return Weighed(without(prompt, (), mode), without(prompt, [word], mode), weight)


# --- what an edit did


def difference(before: Tensor, after: Tensor) -> Tensor:
    """(C, H, W) twice -> (H, W): mean over channels of how far each pixel moved."""
    return (before - after).abs().mean(0)


def to_grid(values: Tensor, grid: tuple[int, int]) -> Tensor:
    """(H, W) -> the mean over blocks (h, w), to lay a picture's difference beside a latent's map."""
    shrunk: Tensor = torch.nn.functional.adaptive_avg_pool2d(values[None, None], grid)[0, 0]
    return shrunk


def correlation(one: Tensor, other: Tensor) -> float:
    """Pearson's over pixels of two maps of equal shape; NaN where one is constant. Errors: ValueError for shapes that differ."""
    if one.shape != other.shape:
        raise ValueError(
            f"Maps of {tuple(one.shape)} and {tuple(other.shape)} cannot be compared; bring them to one grid."
        )
    a, b = (m.double().flatten() - m.double().mean() for m in (one, other))
    norm = float((a @ a).sqrt() * (b @ b).sqrt())
    return float(a @ b) / norm if norm > 0 else float("nan")
