"""Stable Diffusion 3, an experiment: flow matching, and a transformer that mixes text and picture, so that there is no cross-attention to read.

Untested on published weights. Its text is two CLIP encoders side by side, and behind them those of a T5 where the folder has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fanlight_models.diffusion import heads
from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.codec import Codec
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.stable import prompt_ids, tokenized
from fanlight_models.diffusion.words import Conditioning

LONG = 256  # tokens that T5 gets
TRAINED = (-12.0, 12.0)  # s from 0.0025 to 0.9975


class StableThree:
    """A `Denoiser`. texts: (tokenizer, text encoder) of both CLIPs and perhaps of T5."""

    def __init__(self, transformer: Any, texts: Sequence[tuple[Any, Any]], codec: Codec, law: Law | None = None):
        self.transformer, self.texts, self.codec = transformer.eval().requires_grad_(False), list(texts), codec
        for _, encoder in self.texts:
            encoder.eval().requires_grad_(False)
        self.device = next(transformer.parameters()).device
        size, channels = int(transformer.config.sample_size), int(transformer.config.in_channels)
        self.shape, self.logsnr, self.law = (channels, size, size), TRAINED, law or Law()

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """{"text": (n, T, d), "pooled": (n, d1 + d2)}."""
        width = int(self.transformer.config.joint_attention_dim)
        clips, pooled = [], []
        with torch.inference_mode():
            for tokenizer, encoder in self.texts[:2]:
                ids = prompt_ids(tokenizer, prompts, int(tokenizer.model_max_length)).to(self.device)
                said = encoder(ids, output_hidden_states=True)
                clips.append(said.hidden_states[-2])
                pooled.append(said.text_embeds)
            both = torch.cat(clips, 2)
            text = F.pad(both, (0, width - both.shape[2]))
            if len(self.texts) > 2:
                tokenizer, encoder = self.texts[2]
                more = encoder(prompt_ids(tokenizer, prompts, LONG).to(self.device))[0]
            else:
                more = text.new_zeros(len(text), LONG, width)
            return {"text": torch.cat([text, more.to(text)], 1).clone(), "pooled": torch.cat(pooled, 1).clone()}

    def lost(self, text: str) -> str:
        """What no encoder sees: with a T5 what is too long for that, else for CLIP."""
        tokenizer = self.texts[-1][0]
        length = LONG if len(self.texts) > 2 else int(tokenizer.model_max_length)
        ids, at = tokenized(tokenizer, text, None)
        return "" if len(ids) <= length else text[at[length - 1][0] :]

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        """The network is asked at s = 1 / (1 + exp(alpha / 2)); how a sampler shifts its grid has no say in it."""
        text = encoded["text"]
        mixed, s = heads.flow_input(z.float(), alpha)
        out = self.transformer(
            hidden_states=mixed.to(text.dtype),
            timestep=1000 * s,
            encoder_hidden_states=text,
            pooled_projections=encoded["pooled"],
        ).sample
        return heads.noise_of("flow", out.float(), z.float(), alpha)
