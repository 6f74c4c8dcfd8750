"""Text-to-image models from folders in diffusers' layout: Stable Diffusion 1 and 2, SDXL, and as experiments Stable
Diffusion 3 and FLUX.1 dev.

Only safetensors are read, nothing is fetched. Needs diffusers and transformers (`pip install 'fanlight[diffusion]'`); importing this does not.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch

from fanlight_models.diffusion.channel import Law
from fanlight_models.diffusion.codec import Autoencoder, Codec, SpaceToDepth
from fanlight_models.diffusion.flux import Flux, guided
from fanlight_models.diffusion.generate import GUIDANCE
from fanlight_models.diffusion.sd3 import StableThree
from fanlight_models.diffusion.sdxl import StableXL
from fanlight_models.diffusion.stable import BadFolder, Stable
from fanlight_models.shards import strangers

PIPELINES = {
    "StableDiffusionPipeline": ("unet", "text_encoder"),
    "StableDiffusionXLPipeline": ("unet", "text_encoder", "text_encoder_2"),
    "StableDiffusion3Pipeline": ("transformer", "text_encoder", "text_encoder_2"),
    "FluxPipeline": ("transformer", "text_encoder", "text_encoder_2"),
}
"""What is read, and which parts of it need weights."""
_DISTILLED = re.compile(r"turbo|lightning|lcm|hyper-?sd|schnell", re.IGNORECASE)


def read(
    folder: Path, device: str = "cpu", dtype: torch.dtype = torch.float32, name: str = ""
) -> Stable | StableThree | Flux:
    """A model from a folder.

    Args: name: what it is called, where the folder is called otherwise; a network distilled into few steps is known by it too.

    Errors: BadFolder for a folder of another kind, pickled weights, an unknown prediction type, or a network that was distilled into few steps;
    ImportError without diffusers."""
    name = name or folder.name
    index = _json(folder / "model_index.json")
    kind = str(index.get("_class_name", "nothing"))
    if kind not in PIPELINES:
        raise BadFolder(f"“{name}” holds a {kind}. Supported: {', '.join(PIPELINES)}.")
    said = own(folder)
    for part in (*PIPELINES[kind], *(() if "space_to_depth" in said else ("vae",))):
        if not list((folder / part).glob("*.safetensors")):
            raise BadFolder(
                f"The {part} of “{name}” has no weights as safetensors; pickles are not opened. Convert them first."
            )
        if strange := strangers(folder / part):
            raise BadFolder(
                f"The index of the weights of {part} of “{name}” names {', '.join(strange[:3])}; only safetensors beside it are opened."
            )
    network = PIPELINES[kind][0]
    config, scheduler = _json(folder / network / "config.json"), _json(folder / "scheduler/scheduler_config.json")
    named = f"{name} {index.get('_name_or_path', '')} {config.get('_name_or_path', '')}"
    if scheduler.get("_class_name") == "LCMScheduler" or config.get("time_cond_proj_dim") or _DISTILLED.search(named):
        raise BadFolder(
            f"“{name}” was distilled to draw in few steps: it no longer predicts the mean of the noise, so that its errors are no information."
        )
    if kind == "FluxPipeline":
        guided(config)
    parts = _Parts(folder, device, dtype)
    codec: Codec = SpaceToDepth(int(said["space_to_depth"])) if "space_to_depth" in said else parts.codec()
    law = Law(**said["law"]) if "law" in said else None
    trained = (float(said["trained"][0]), float(said["trained"][1])) if "trained" in said else None
    if kind == "StableDiffusion3Pipeline":
        texts = [(parts.tokenizer(n), parts.text(n, "CLIPTextModelWithProjection")) for n in ("", "_2")]
        if (folder / "text_encoder_3").is_dir():
            texts.append((parts.tokenizer("_3"), parts.text("_3", "T5EncoderModel")))
        return StableThree(parts.network("SD3Transformer2DModel", network), texts, codec, law)
    if kind == "FluxPipeline":
        clip = (parts.tokenizer(""), parts.text("", "CLIPTextModel"))
        t5 = (parts.tokenizer("_2"), parts.text("_2", "T5EncoderModel"))
        size = int(said.get("size", 0)) or int(_json(folder / "vae/config.json").get("sample_size", 1024))
        return Flux(parts.network("FluxTransformer2DModel", network), clip, t5, codec, size // codec.factor, law)
    import diffusers

    steps = diffusers.DDIMScheduler.from_config(scheduler).alphas_cumprod
    head = str(scheduler.get("prediction_type", "epsilon"))
    first = (parts.network("UNet2DConditionModel", network), parts.tokenizer(""), parts.text("", "CLIPTextModel"))
    if kind == "StableDiffusionXLPipeline":
        zeros = bool(index.get("force_zeros_for_empty_prompt", True))
        second = (parts.tokenizer("_2"), parts.text("_2", "CLIPTextModelWithProjection"), zeros)
        return StableXL(*first, steps, head, codec, law, trained, second=second)
    return Stable(*first, steps, head, codec, law, trained)


def guidance(folder: Path, usual: float = GUIDANCE) -> float:
    """As pictures of this model are usually drawn: what its `fanlight.json` says, else as those of its kind."""
    return float(own(folder).get("guidance", usual))


def own(folder: Path) -> dict[str, Any]:
    """What `fanlight.json` says beyond diffusers: codec, law and range of log-SNR, guidance, size of FLUX's pictures; perhaps name,
    description, terms and examples. Empty where there is none. Errors: BadFolder."""
    return _json(folder / "fanlight.json") if (folder / "fanlight.json").exists() else {}


class _Parts:
    """The networks of a folder, each loaded by its own library."""

    def __init__(self, folder: Path, device: str, dtype: torch.dtype):
        self.folder, self.device, self.dtype = folder, device, dtype
        self.local = {"local_files_only": True, "use_safetensors": True}

    def network(self, kind: str, part: str) -> Any:
        import diffusers

        # The other way of loading needs accelerate.
        made = getattr(diffusers, kind).from_pretrained(
            self.folder / part, torch_dtype=self.dtype, low_cpu_mem_usage=False, **self.local
        )
        return made.to(self.device)

    def codec(self) -> Codec:
        return Autoencoder(self.network("AutoencoderKL", "vae").eval().requires_grad_(False))

    def text(self, number: str, kind: str) -> Any:
        import transformers

        made = getattr(transformers, kind).from_pretrained(
            self.folder / f"text_encoder{number}", dtype=self.dtype, **self.local
        )
        return made.to(self.device)

    def tokenizer(self, number: str) -> Any:
        import transformers

        return transformers.AutoTokenizer.from_pretrained(
            self.folder / f"tokenizer{number}", local_files_only=True, trust_remote_code=False
        )


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise BadFolder(f"“{path.name}” cannot be read in “{path.parent.name}”: {problem}") from None
    if not isinstance(read, dict):
        raise BadFolder(f"“{path.name}” in “{path.parent.name}” is no JSON object.")
    return read
