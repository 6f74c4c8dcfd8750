"""Denoisers of the Stable Diffusion 1 and 2 kind: a UNet that looks at the text through cross-attention. `folders.read` makes one of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fanlight_models.diffusion import attention, heads
from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.codec import Codec
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.words import BadPrompt, Conditioning

HEADS = ("epsilon", "v_prediction", "sample")
MOST_NAMED = 200  # words in an error


class BadFolder(ValueError):
    """A folder that cannot be read as a text-to-image model; the message is a sentence."""


class Stable:
    """An `Attending` denoiser.

    Args:
        alphas_cumprod: (T,), g of each time step the network knows. head: what it predicts, one of `HEADS`.
        law, trained: where it is asked, and what it was trained on; None: loc 1, scale 2, and all its steps.
    Errors: BadFolder for another head."""

    def __init__(
        self, unet: Any, tokenizer: Any, text_encoder: Any, alphas_cumprod: Tensor, head: str, codec: Codec,
        law: Law | None = None, trained: tuple[float, float] | None = None,
    ):  # fmt: skip
        if head not in HEADS:
            raise BadFolder(f"The scheduler says the network predicts “{head}”. Supported: {', '.join(HEADS)}.")
        self.unet, self.text_encoder = unet.eval(), text_encoder.eval()
        for net in (self.unet, self.text_encoder):
            net.requires_grad_(False)
        self.tokenizer, self.head, self.codec = tokenizer, head, codec
        self.steps = torch.logit(alphas_cumprod.double())  # log-SNR of each step, falling
        self.device = next(unet.parameters()).device
        size = unet.config.sample_size
        rows, columns = (size, size) if isinstance(size, int) else size
        self.shape = (int(unet.config.in_channels), int(rows), int(columns))
        self.logsnr = trained or (float(self.steps.min()), float(self.steps.max()))
        self.law = law or Law()

    @property
    def length(self) -> int:
        """Tokens of a prompt, with those for its begin and end."""
        return int(self.tokenizer.model_max_length)

    def _tokens(self, text: str, cut: bool = True) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and the characters each stands for; (0, 0) for begin, end and padding."""
        return tokenized(self.tokenizer, text, self.length if cut else None)

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        """{"text": (n, T, d)}. Errors: BadPrompt for a word that the tokenizer does not know (word tokenizers only)."""
        ids = self._ids(self.tokenizer, prompts)
        with torch.inference_mode():
            out = self.text_encoder(ids)[0]
        return {"text": out.clone()}

    def _ids(self, tokenizer: Any, prompts: Sequence[Conditioning]) -> Tensor:
        return prompt_ids(tokenizer, prompts, self.length).to(self.device)

    def _added(self, encoded: Encoded) -> dict[str, Any]:  # noqa: ARG002 # nothing more than text goes into this network
        """Further arguments of the network."""
        return {}

    def lost(self, text: str) -> str:
        ids, at = self._tokens(text, cut=False)
        return "" if len(ids) <= self.length else text[at[self.length - 1][0] :]

    def tokens(self, prompt: Conditioning, span: tuple[int, int]) -> list[int]:
        """Errors: BadPrompt where the text encoder never sees these characters."""
        _, at = self._tokens(prompt.text)
        found = [n for n, (a, b) in enumerate(at) if a < span[1] and b > span[0] and b > a]
        if not found:
            raise BadPrompt(f"The text encoder never sees “{prompt.text[slice(*span)]}”; shorten the prompt.")
        return found

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        """The network is told the time step whose log-SNR is nearest [REPO]; what it says is turned into noise at alpha itself."""
        steps = (alpha.double().cpu()[:, None] - self.steps).abs().argmin(1).to(self.device)
        text = encoded["text"]
        out = self.unet(z.to(text.dtype), steps, encoder_hidden_states=text, **self._added(encoded)).sample.float()
        return heads.noise_of(self.head, out, z.float(), alpha)

    def noise_and_attention(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> tuple[Tensor, Tensor]:
        with attention.looking(self.unet) as kept:
            noise = self.noise(z, alpha, encoded)
        return noise, attention.maps(kept, self.shape[1:])


def prompt_ids(tokenizer: Any, prompts: Sequence[Conditioning], length: int) -> Tensor:
    """(n, length) int64, with padding for what shall be padding. Errors: BadPrompt for a word that a tokenizer of whole words does not know."""
    unknown, end = tokenizer.unk_token_id, tokenizer.eos_token_id
    every = []
    for prompt in prompts:
        ids, at = tokenized(tokenizer, prompt.text, length)
        if unknown is not None and unknown != end and unknown in ids:
            start, stop = at[ids.index(unknown)]
            special = set(tokenizer.all_special_tokens)
            known = sorted(w for w in tokenizer.get_vocab() if w not in special)
            more = f"{len(known)} others" if len(known) > MOST_NAMED else ", ".join(known)
            raise BadPrompt(f"This model has no word “{prompt.text[start:stop]}”. Its words: {more}.")
        for start, stop in prompt.padded:
            ids = [tokenizer.pad_token_id if a < stop and b > start else n for n, (a, b) in zip(ids, at, strict=True)]
        every.append(ids)
    return torch.tensor(every)


def tokenized(tokenizer: Any, text: str, length: int | None) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids and the characters each stands for, cut and padded to a length; None: as many as there are."""
    how = {"verbose": False} if length is None else {"padding": "max_length", "max_length": length, "truncation": True}
    said = tokenizer(text, return_offsets_mapping=True, **how)
    return list(said["input_ids"]), [(int(a), int(b)) for a, b in said["offset_mapping"]]
