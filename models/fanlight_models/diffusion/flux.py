"""FLUX.1 dev, an experiment: flow matching in a transformer over patches of 2 x 2 latent pixels, guided by a number that it is told.

Its text is a T5, and of a CLIP the vector of the whole prompt, which is computed anew for every shortened prompt. It was distilled from guided
pictures, so that it is no denoiser of least squared error; it is asked at guidance 1, which is the nearest to a plain one that it offers.
Untested on published weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from fanlight_models.diffusion import heads
from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.codec import Codec
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.sd3 import TRAINED
from fanlight_models.diffusion.stable import BadFolder, prompt_ids, tokenized
from fanlight_models.diffusion.words import Conditioning

LONG = 512  # tokens that T5 gets
GUIDED = 1.0
"""What the network is told as guidance: none. It was distilled to draw as at about 3.5 where it is told so."""
DRAWN = 3.5
"""How strongly pictures are drawn towards the prompt, by the difference with the empty one [RECALLED]."""
CAVEAT = (
    "This model was distilled from guided pictures and is not an MMSE denoiser: "
    "its errors are no log-likelihoods, so that its nats say where a word counts rather than how much."
)


class Flux:
    """A `Denoiser`.

    Args:
        transformer: one that is told a guidance (`guided`).
        clip, t5: tokenizer and text encoder of each.
        side: latent pixels of a picture's side, even.
    Errors: BadFolder for latents that are not made of patches of 2 x 2."""

    caveat = CAVEAT
    guidance = DRAWN

    def __init__(
        self, transformer: Any, clip: tuple[Any, Any], t5: tuple[Any, Any], codec: Codec, side: int, law: Law | None = None
    ):  # fmt: skip
        channels, odd = divmod(int(transformer.config.in_channels), 4)
        if odd or side % 2 or side < 2 or channels != codec.channels:
            raise BadFolder(
                f"Latents of {codec.channels} channels and {side} x {side} pixels are not cut into the patches of 2 x 2 that make "
                f"{transformer.config.in_channels} channels of this transformer."
            )
        self.transformer, self.codec = transformer.eval().requires_grad_(False), codec
        self.texts = [clip, t5]
        for _, encoder in self.texts:
            encoder.eval().requires_grad_(False)
        self.device = next(transformer.parameters()).device
        self.shape, self.logsnr, self.law = (channels, side, side), TRAINED, law or Law()

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """{"text": (n, 512, d), "pooled": (n, d1)}."""
        (words, clip), (pieces, t5) = self.texts
        with torch.inference_mode():
            pooled = clip(prompt_ids(words, prompts, int(words.model_max_length)).to(self.device)).pooler_output
            text = t5(prompt_ids(pieces, prompts, LONG).to(self.device))[0]
        return {"text": text.clone(), "pooled": pooled.clone()}

    def lost(self, text: str) -> str:
        """What no encoder sees: what is too long for T5."""
        ids, at = tokenized(self.texts[1][0], text, None)
        return "" if len(ids) <= LONG else text[at[LONG - 1][0] :]

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        """The network is asked at s = 1 / (1 + exp(alpha / 2)) itself, in contrast to Stable Diffusion 3, which wants 1000 s."""
        text, (_, rows, columns) = encoded["text"], self.shape
        mixed, s = heads.flow_input(z.float(), alpha)
        out = self.transformer(
            hidden_states=packed(mixed).to(text.dtype),
            timestep=s,
            guidance=torch.full_like(s, GUIDED),
            encoder_hidden_states=text,
            pooled_projections=encoded["pooled"],
            txt_ids=text.new_zeros(text.shape[1], 3),
            img_ids=places(rows // 2, columns // 2).to(text),
        ).sample
        return heads.noise_of("flow", unpacked(out.float(), rows, columns), z.float(), alpha)


def guided(config: Mapping[str, Any]) -> None:
    """Errors: BadFolder for a transformer, by its configuration, that is told no guidance."""
    if not config.get("guidance_embeds"):
        raise BadFolder(
            "This FLUX has no input for guidance, as FLUX.1 schnell, which was distilled to draw in few steps: it no longer predicts the mean of the "
            "noise, so that its errors are no information. FLUX.1 dev can be read."
        )


def packed(z: Tensor) -> Tensor:
    """(B, C, h, w) -> (B, h / 2 * w / 2, 4 C): patches by rows; within one, the four pixels of a channel lie together."""
    return torch.nn.functional.pixel_unshuffle(z, 2).flatten(2).transpose(1, 2)


def unpacked(patches: Tensor, rows: int, columns: int) -> Tensor:
    """Back from `packed`: -> (B, C, rows, columns)."""
    grid = patches.transpose(1, 2).reshape(len(patches), -1, rows // 2, columns // 2)
    return torch.nn.functional.pixel_shuffle(grid, 2)


def places(rows: int, columns: int) -> Tensor:
    """(rows * columns, 3): of each patch 0, its row and its column; text is at (0, 0, 0)."""
    grid = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    return torch.nn.functional.pad(grid, (1, 0))
