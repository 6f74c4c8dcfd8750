"""Pipelines as diffusers publishes them, tiny and random, written by diffusers itself: Stable Diffusion 1 and 2, SDXL, 3, FLUX."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

diffusers = pytest.importorskip("diffusers", reason="diffusers is not installed (pip install 'fanlight[diffusion]')")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (pip install 'fanlight[diffusion]')")  # fmt: skip

WORDS = ("a", "red", "teddy", "bear", "dog", "and")


def clip_tokenizer(place: Path, words: Sequence[str] = WORDS) -> Any:
    """A tokenizer of CLIP's kind: letters, letters at the end of a word, and merges that build these words of them."""
    letters = sorted({c for w in words for c in w} | set("ostv,"))
    vocabulary, merges = letters + [f"{c}</w>" for c in letters], []
    for word in words:
        left = word[0]
        for n, letter in enumerate(word[1:], 1):
            right = letter + ("</w>" if n == len(word) - 1 else "")
            if left + right not in vocabulary:
                merges.append(f"{left} {right}")
                vocabulary.append(left + right)
            left += right
    vocabulary += ["<|startoftext|>", "<|endoftext|>"]
    place.mkdir(parents=True)
    (place / "vocab.json").write_text(json.dumps({t: n for n, t in enumerate(vocabulary)}))
    (place / "merges.txt").write_text("\n".join(["#version: 0.2", *merges, ""]))
    return transformers.CLIPTokenizer.from_pretrained(place, model_max_length=77)


def parts(place: Path, large: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    tokens = clip_tokenizer(place / "words")

    def text(width: int, kind: Any) -> Any:
        end = tokens.eos_token_id
        config = transformers.CLIPTextConfig(
            vocab_size=len(tokens), hidden_size=width, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
            projection_dim=width, eos_token_id=end, bos_token_id=end - 1, pad_token_id=end,
        )  # fmt: skip
        return kind(config)

    more = {
        "addition_embed_type": "text_time",
        "addition_time_embed_dim": 4,
        "projection_class_embeddings_input_dim": 6 * 4 + 24,
    }
    unet = diffusers.UNet2DConditionModel(
        sample_size=8, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4,
        cross_attention_dim=40 if large else 16, attention_head_dim=(2, 4), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), **(more if large else {}),
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=(8, 8), latent_channels=4, norm_num_groups=4, down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    every = {"vae": vae, "unet": unet, "tokenizer": tokens, "text_encoder": text(16, transformers.CLIPTextModel)}
    if large:
        every |= {"tokenizer_2": tokens, "text_encoder_2": text(24, transformers.CLIPTextModelWithProjection)}
    return every


def scheduler(head: str) -> Any:
    return diffusers.DDIMScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False, set_alpha_to_one=False,
        steps_offset=1, prediction_type=head,
    )  # fmt: skip


def saved(place: Path, large: bool = False, head: str = "epsilon") -> Path:
    every = parts(place, large)
    if large:
        pipeline = diffusers.StableDiffusionXLPipeline(scheduler=scheduler(head), **every)
    else:
        pipeline = diffusers.StableDiffusionPipeline(
            scheduler=scheduler(head), safety_checker=None, feature_extractor=None, requires_safety_checker=False, **every
        )  # fmt: skip
    pipeline.save_pretrained(place / "model", safe_serialization=True)
    return place / "model"


def third(place: Path, deep: bool = False) -> Any:
    """The pipeline of Stable Diffusion 3, saved to place / "model". Args: deep: with a T5 beside the CLIPs."""
    every = parts(place, large=True)
    torch.manual_seed(1)
    small = transformers.CLIPTextModelWithProjection(every["text_encoder"].config)
    network = diffusers.SD3Transformer2DModel(
        sample_size=8, patch_size=2, in_channels=4, out_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=2,
        joint_attention_dim=48, caption_projection_dim=16, pooled_projection_dim=40, pos_embed_max_size=8,
    )  # fmt: skip
    t5, words = small_t5() if deep else (None, None)
    pipeline = diffusers.StableDiffusion3Pipeline(
        transformer=network, scheduler=diffusers.FlowMatchEulerDiscreteScheduler(), vae=every["vae"], text_encoder=small,
        tokenizer=every["tokenizer"], text_encoder_2=every["text_encoder_2"], tokenizer_2=every["tokenizer"],
        text_encoder_3=t5, tokenizer_3=words,
    )  # fmt: skip
    pipeline.save_pretrained(place / "model", safe_serialization=True)
    return pipeline


def flux(place: Path, guided: bool = True) -> Any:
    """The pipeline of FLUX, saved to place / "model". Args: guided: as dev, which is told a guidance; else as schnell."""
    every = parts(place, large=False)
    torch.manual_seed(1)
    network = diffusers.FluxTransformer2DModel(
        in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=8, num_attention_heads=2, joint_attention_dim=48,
        pooled_projection_dim=16, guidance_embeds=guided, axes_dims_rope=(2, 2, 4),
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        **{k: v for k, v in every["vae"].config.items() if not k.startswith("_")}
        | {"sample_size": 16, "scaling_factor": 0.3611, "shift_factor": 0.1159}
    )
    t5, words = small_t5()
    pipeline = diffusers.FluxPipeline(
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(), vae=vae, text_encoder=every["text_encoder"], tokenizer=every["tokenizer"],
        text_encoder_2=t5, tokenizer_2=words, transformer=network,
    )  # fmt: skip
    pipeline.save_pretrained(place / "model", safe_serialization=True)
    return pipeline


def small_t5() -> tuple[Any, Any]:
    """A text encoder of T5's kind, 48 wide, and its tokenizer."""
    words = small_words()
    config = transformers.T5Config(vocab_size=len(words), d_model=48, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    return transformers.T5EncoderModel(config).eval(), words


def small_words() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    table = {"<pad>": 0, "</s>": 1, **{w: n + 2 for n, w in enumerate(WORDS)}}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="</s>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=512, **special)
