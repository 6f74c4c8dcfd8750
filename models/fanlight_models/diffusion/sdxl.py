"""SDXL: a second text encoder, and vectors of the whole prompt and of sizes that go into the network beside the text.

The vector of the whole prompt is computed anew for every shortened prompt: otherwise a removed word would still be in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.stable import Stable
from fanlight_models.diffusion.words import Conditioning


class StableXL(Stable):
    """second: tokenizer and text encoder with projection, and whether the empty prompt is zeros instead of encoded, as the folder says."""

    def __init__(self, *args: Any, second: tuple[Any, Any, bool]):
        super().__init__(*args)
        self.second_tokenizer, self.second_encoder, self.zeros = second
        self.second_encoder.eval().requires_grad_(False)

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """{"text": (n, T, d1 + d2), "pooled": (n, d)}."""
        with torch.inference_mode():
            first = self.text_encoder(self._ids(self.tokenizer, prompts), output_hidden_states=True)
            second = self.second_encoder(self._ids(self.second_tokenizer, prompts), output_hidden_states=True)
            text = torch.cat([said.hidden_states[-2] for said in (first, second)], 2)  # the last but one layer of both
            pooled: Tensor = second.text_embeds
            if self.zeros:
                said = torch.tensor([float(bool(p.text)) for p in prompts]).to(text)
                text, pooled = text * said[:, None, None], pooled * said[:, None]
        return {"text": text.clone(), "pooled": pooled.clone()}

    def _added(self, encoded: Encoded) -> dict[str, Any]:
        """The whole prompt's vector, and sizes: drawn at the picture's size, nothing cut off."""
        rows, columns = (side * self.codec.factor for side in self.shape[1:])
        pooled = encoded["pooled"]
        sizes = torch.tensor([rows, columns, 0, 0, rows, columns]).to(pooled)
        return {"added_cond_kwargs": {"text_embeds": pooled, "time_ids": sizes.expand(len(pooled), 6)}}
