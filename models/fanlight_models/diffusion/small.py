"""A text-to-image model small enough to ship: a UNet on 12 x 16 x 16 latents of 32-pixel pictures, a CLIP text encoder of two layers, a tokenizer
of whole words. Written as a folder of diffusers. Needs diffusers and transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from fanlight_models.diffusion.channel import Law

SIDE, FOLD = 32, 2
WIDTHS, DIMENSION, LENGTH = (32, 64, 64), 64, 16
TRAINED = (-9.0, 9.0)
SPECIAL = ("<pad>", "<start>", "<end>", "<unknown>")
SCHEDULER = {
    "_class_name": "DDIMScheduler",
    "num_train_timesteps": 1000,
    "beta_schedule": "squaredcos_cap_v2",
    "prediction_type": "v_prediction",
    "clip_sample": False,
    "set_alpha_to_one": False,
}


def unet(widths: Sequence[int] = WIDTHS) -> Any:
    """(B, 12, 16, 16), a step and text (B, 16, 64) -> velocity. Cross-attention on 16 x 16 and 8 x 8."""
    import diffusers

    return diffusers.UNet2DConditionModel(
        sample_size=SIDE // FOLD,
        in_channels=3 * FOLD**2,
        out_channels=3 * FOLD**2,
        layers_per_block=1,
        block_out_channels=tuple(widths),
        cross_attention_dim=DIMENSION,
        attention_head_dim=2,  # diffusers reads it as the number of heads; more cost half as much time again
        norm_num_groups=8,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    )


def text_encoder(words: Sequence[str]) -> Any:
    import transformers

    return transformers.CLIPTextModel(
        transformers.CLIPTextConfig(
            vocab_size=len(SPECIAL) + len(words),
            hidden_size=DIMENSION,
            intermediate_size=2 * DIMENSION,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=LENGTH,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )


def tokenizer(words: Sequence[str]) -> Any:
    """One token per word and one for “_”; start, words, end, padding: 16 tokens."""
    import tokenizers
    import transformers

    table = {w: n for n, w in enumerate([*SPECIAL, *words])}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="<unknown>"))
    made.normalizer = tokenizers.normalizers.Sequence(
        [
            tokenizers.normalizers.Lowercase(),
            tokenizers.normalizers.Replace(tokenizers.Regex(r"[,.;:!?]"), " "),  # a comma says nothing here
        ]
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", 1), ("<end>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=LENGTH, pad_token="<pad>", bos_token="<start>", eos_token="<end>",
        unk_token="<unknown>",
    )  # fmt: skip


def alphas_cumprod() -> Tensor:
    import diffusers

    found: Tensor = diffusers.DDIMScheduler.from_config(SCHEDULER).alphas_cumprod
    return found


def write(
    folder: Path,
    net: Any,
    text: Any,
    tokens: Any,
    law: Law,
    trained: tuple[float, float] = TRAINED,
    half: bool = False,
    about: Mapping[str, Any] | None = None,
) -> None:
    """The folder. half: weights in half precision. about: name, description, terms and examples of prompts, for lists."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, model, name in (("unet", net, "diffusion_pytorch_model"), ("text_encoder", text, "model")):
        kept = {
            k: v.detach().to(torch.float16 if half else torch.float32).contiguous()
            for k, v in model.state_dict().items()
        }
        (folder / part).mkdir(exist_ok=True)
        (model.config.save_pretrained if part == "text_encoder" else model.save_config)(folder / part)
        save_file(kept, folder / part / f"{name}.safetensors", {"format": "pt"})
    tokens.save_pretrained(folder / "tokenizer")
    (folder / "scheduler").mkdir(exist_ok=True)
    _put(folder / "scheduler/scheduler_config.json", SCHEDULER)
    _put(
        folder / "model_index.json",
        {
            "_class_name": "StableDiffusionPipeline",
            "scheduler": ["diffusers", "DDIMScheduler"],
            "text_encoder": ["transformers", "CLIPTextModel"],
            "tokenizer": ["transformers", "PreTrainedTokenizerFast"],
            "unet": ["diffusers", "UNet2DConditionModel"],
        },
    )
    _put(
        folder / "fanlight.json",
        {"space_to_depth": FOLD, "law": asdict(law), "trained": list(trained), "guidance": 1.0, **(about or {})},
    )


def _put(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")
