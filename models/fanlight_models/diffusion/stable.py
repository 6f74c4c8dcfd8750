"""Text-to-image models of the Stable Diffusion 1 and 2 kind, and SDXL (`sdxl`), from a folder that diffusers wrote.

Only safetensors are read, nothing is fetched. Needs diffusers and transformers (`pip install 'fanlight[diffusion]'`); importing this does not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fanlight_models.diffusion import attention, heads
from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.codec import Autoencoder, Codec, SpaceToDepth
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.words import BadPrompt, Conditioning

PIPELINES = ("StableDiffusionPipeline", "StableDiffusionXLPipeline")
HEADS = ("epsilon", "v_prediction", "sample")
_DISTILLED = re.compile(r"turbo|lightning|lcm|hyper-?sd|schnell", re.IGNORECASE)


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
        """(n, T) int64, with padding for what shall be padding."""
        unknown, end = tokenizer.unk_token_id, tokenizer.eos_token_id
        every = []
        for prompt in prompts:
            ids, at = tokenized(tokenizer, prompt.text, self.length)
            if unknown is not None and unknown != end and unknown in ids:
                start, stop = at[ids.index(unknown)]
                raise BadPrompt(
                    f"This model has no word “{prompt.text[start:stop]}”. Its words: {', '.join(self._words())}."
                )
            for start, stop in prompt.padded:
                ids = [
                    tokenizer.pad_token_id if a < stop and b > start else n for n, (a, b) in zip(ids, at, strict=True)
                ]
            every.append(ids)
        return torch.tensor(every, device=self.device)

    def _added(self, encoded: Encoded) -> dict[str, Any]:  # noqa: ARG002 # nothing more than text goes into this network
        """Further arguments of the network."""
        return {}

    def _words(self) -> list[str]:
        special = set(self.tokenizer.all_special_tokens)
        return sorted(w for w in self.tokenizer.get_vocab() if w not in special)

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


def tokenized(tokenizer: Any, text: str, length: int | None) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids and the characters each stands for, cut and padded to a length; None: as many as there are."""
    how = {"verbose": False} if length is None else {"padding": "max_length", "max_length": length, "truncation": True}
    said = tokenizer(text, return_offsets_mapping=True, **how)
    return list(said["input_ids"]), [(int(a), int(b)) for a, b in said["offset_mapping"]]


def read(folder: Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Stable:
    """A model from a folder in diffusers' layout.

    Errors: BadFolder for a folder of another kind, pickled weights, or a network that was distilled into few steps; ImportError without
    diffusers."""
    index = _json(folder / "model_index.json")
    kind = index.get("_class_name", "nothing")
    if kind not in PIPELINES:
        raise BadFolder(f"“{folder.name}” holds a {kind}. Supported: {', '.join(PIPELINES)}.")
    large = kind == "StableDiffusionXLPipeline"
    for part in ("unet", "text_encoder", *(("text_encoder_2",) if large else ())):
        if not list((folder / part).glob("*.safetensors")):
            raise BadFolder(
                f"The {part} of “{folder.name}” has no weights as safetensors; pickles are not opened. Convert them first."
            )
    config, scheduler = _json(folder / "unet/config.json"), _json(folder / "scheduler/scheduler_config.json")
    named = f"{folder.name} {index.get('_name_or_path', '')} {config.get('_name_or_path', '')}"
    if scheduler.get("_class_name") == "LCMScheduler" or config.get("time_cond_proj_dim") or _DISTILLED.search(named):
        raise BadFolder(
            f"“{folder.name}” was distilled to draw in few steps: it no longer predicts the mean of the noise, so that its errors are no information."
        )
    import diffusers
    import transformers

    local = {"local_files_only": True, "use_safetensors": True}
    plain = {**local, "low_cpu_mem_usage": False}  # the other way needs accelerate
    unet = diffusers.UNet2DConditionModel.from_pretrained(folder / "unet", torch_dtype=dtype, **plain).to(device)
    text = transformers.CLIPTextModel.from_pretrained(folder / "text_encoder", dtype=dtype, **local).to(device)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer", local_files_only=True)
    chain = diffusers.DDIMScheduler.from_config(scheduler)
    own = _json(folder / "fanlight.json") if (folder / "fanlight.json").exists() else {}
    codec: Codec
    if "space_to_depth" in own:
        codec = SpaceToDepth(int(own["space_to_depth"]))
    else:
        if not list((folder / "vae").glob("*.safetensors")):
            raise BadFolder(f"The vae of “{folder.name}” has no weights as safetensors; pickles are not opened.")
        vae = diffusers.AutoencoderKL.from_pretrained(folder / "vae", torch_dtype=dtype, **plain)
        codec = Autoencoder(vae.to(device).eval().requires_grad_(False))
    law = Law(**own["law"]) if "law" in own else None
    trained = (float(own["trained"][0]), float(own["trained"][1])) if "trained" in own else None
    head = str(scheduler.get("prediction_type", "epsilon"))
    if large:
        from fanlight_models.diffusion.sdxl import StableXL

        other = transformers.CLIPTextModelWithProjection.from_pretrained(
            folder / "text_encoder_2", dtype=dtype, **local
        )
        words = transformers.AutoTokenizer.from_pretrained(folder / "tokenizer_2", local_files_only=True)
        zeros = bool(index.get("force_zeros_for_empty_prompt", True))
        second = (words, other.to(device), zeros)
        return StableXL(unet, tokenizer, text, chain.alphas_cumprod, head, codec, law, trained, second=second)
    return Stable(unet, tokenizer, text, chain.alphas_cumprod, head, codec, law, trained)


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise BadFolder(f"“{path.name}” cannot be read in “{path.parent.name}”: {problem}") from None
    if not isinstance(read, dict):
        raise BadFolder(f"“{path.name}” in “{path.parent.name}” is no JSON object.")
    return read
