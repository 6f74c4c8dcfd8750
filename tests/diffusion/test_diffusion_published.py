"""Pipelines as diffusers publishes them, tiny and random, written by diffusers itself: Stable Diffusion 1 and 2, SDXL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fanlight_models.diffusion import (
    BadPrompt,
    Conditioning,
    Law,
    Prompt,
    Sampling,
    finished,
    folders,
    generate,
    plan,
    stable,
)
from fanlight_models.diffusion.words import without
from support.pipelines import diffusers, saved, third as saved_third


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> stable.Stable:
    return folders.read(saved(tmp_path_factory.mktemp("sd1")))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> stable.Stable:
    return folders.read(saved(tmp_path_factory.mktemp("sdxl"), large=True))


TEXT = "a red teddy bear and a dog"


def test_a_saved_pipeline_is_read(first: stable.Stable) -> None:
    assert first.shape == (4, 8, 8) and first.head == "epsilon" and first.law == Law() and first.codec.factor == 2
    assert first.logsnr == pytest.approx((-5.364, 7.069), abs=1e-3)  # the range of Stable Diffusion's schedule
    picture = torch.rand(1, 3, 16, 16) * 2 - 1
    latents = first.codec.encode(picture)
    assert latents.shape == (1, 4, 8, 8) and torch.equal(latents, first.codec.encode(picture))  # the mode, not a draw
    assert first.codec.decode(latents).shape == (1, 3, 16, 16)


def test_the_velocity_of_a_second_generation_is_converted(tmp_path: Path, first: stable.Stable) -> None:
    second = folders.read(saved(tmp_path, head="v_prediction"))
    z, alpha = torch.randn(2, 4, 8, 8), torch.tensor([-1.0, 2.0], dtype=torch.float64)
    with torch.inference_mode():
        velocity = first.noise(z, alpha, first.encode([Conditioning(TEXT)] * 2))  # the same weights, read as noise
        noise = second.noise(z, alpha, second.encode([Conditioning(TEXT)] * 2))
    g = torch.sigmoid(alpha).float()[:, None, None, None]
    torch.testing.assert_close(noise, g.sqrt() * velocity + (1 - g).sqrt() * z, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("which", ["first", "large"])
def test_a_pair_is_measured_from_end_to_end(which: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(which)
    prompt = Prompt(TEXT)
    asked = plan(prompt, [prompt.find("teddy bear"), prompt.find("dog")], context=True, neutral="and")
    asked.check(model)
    x = generate.finished(model, [Conditioning(TEXT)], generate.Drawing(0, 3, 2))[0]
    readings = finished(model, x, asked.conditionings, Sampling(nodes=8), attend=Conditioning(TEXT), chunk=5)
    assert readings.evaluations == 5 * 8
    for base, full in (*asked.singles, asked.floor):
        found = readings.contrast(base, full)
        assert torch.isfinite(found.map).all() and found.total > 0 and found.map.shape == (8, 8)
    looks = readings.attention_map(Conditioning(TEXT), model.tokens(Conditioning(TEXT), prompt.find("dog").span))
    assert looks.shape == (8, 8) and 0 < float(looks.min()) <= float(looks.max()) < 1
    assert readings.alphas.min() > -5.364 and readings.alphas.max() < 7.0001


def test_words_are_found_among_pieces_of_words(first: stable.Stable) -> None:
    prompt = Conditioning("a redo and teddy bears, a red dog")
    text, where = prompt.text, Prompt(prompt.text)
    assert len(first.tokens(prompt, where.find("redo").span)) == 3  # re, d, o
    assert len(first.tokens(prompt, where.find("red").span)) == 1
    both = first.tokens(prompt, where.find("teddy bears").span)
    assert both == list(range(both[0], both[-1] + 1)) and text[where.find("red").start :] == "red dog"
    gone = without(where, [where.find("redo")], "pad")
    ids, kept = first._ids(first.tokenizer, [prompt, gone]).tolist()
    at = first.tokens(prompt, where.find("redo").span)
    assert [n for n in range(77) if ids[n] != kept[n]] == at
    assert all(kept[n] == first.tokenizer.pad_token_id for n in at)


def test_what_a_long_prompt_loses(first: stable.Stable) -> None:
    text = "a dog and " * 30 + "a red bear"
    gone = first.lost(text)
    assert len(text.removesuffix(gone).split()) == 75 and gone.endswith("a red bear") and first.lost(TEXT) == ""
    prompt = Prompt(text)
    with pytest.raises(BadPrompt, match="“bear” is there"):
        plan(prompt, [prompt.find("bear")], context=True).check(first)
    plan(prompt, [prompt.find("dog", 3)], context=True).check(first)
    with pytest.raises(BadPrompt, match="30 times in the prompt; say which"):
        prompt.find("dog")


def test_a_removed_word_leaves_the_vector_of_the_whole_prompt_too(large: stable.Stable) -> None:
    prompt = Prompt(TEXT)
    whole, gone, nothing = (
        large.encode([c]) for c in (Conditioning(TEXT), without(prompt, [prompt.find("dog")]), Conditioning(""))
    )
    assert whole["text"].shape == (1, 77, 40) and whole["pooled"].shape == (1, 24)
    assert not torch.allclose(whole["pooled"], gone["pooled"], atol=1e-4)
    assert nothing["text"].abs().max() == nothing["pooled"].abs().max() == 0  # as the pipeline says of the empty prompt


def test_the_same_noise_as_the_pipeline_itself_predicts(large: stable.Stable, tmp_path: Path) -> None:
    """The text of SDXL by diffusers' own encoding, and its network with the arguments that the pipeline gives it."""
    place = saved(tmp_path, large=True)
    pipeline = diffusers.StableDiffusionXLPipeline.from_pretrained(place, low_cpu_mem_usage=False)
    embeds, _, pooled, _ = pipeline.encode_prompt(
        TEXT, device="cpu", num_images_per_prompt=1, do_classifier_free_guidance=False
    )
    encoded = large.encode([Conditioning(TEXT)])
    torch.testing.assert_close(encoded["text"], embeds)
    torch.testing.assert_close(encoded["pooled"], pooled)
    sizes = pipeline._get_add_time_ids((16, 16), (0, 0), (16, 16), dtype=torch.float32, text_encoder_projection_dim=24)
    z, alpha = torch.randn(1, 4, 8, 8), torch.tensor([0.5], dtype=torch.float64)
    step = (large.steps - 0.5).abs().argmin()
    with torch.inference_mode():
        wanted = pipeline.unet(
            z, step, encoder_hidden_states=embeds, added_cond_kwargs={"text_embeds": pooled, "time_ids": sizes}
        ).sample
        torch.testing.assert_close(large.noise(z, alpha, encoded), wanted, atol=1e-6, rtol=1e-5)


@pytest.fixture(scope="module", params=[False, True], ids=["without T5", "with T5"])
def third(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The pipeline of Stable Diffusion 3 and what is read of its folder."""
    place = tmp_path_factory.mktemp("sd3")
    pipeline = saved_third(place, deep=request.param)
    return pipeline, folders.read(place / "model")


def test_flow_matching_is_asked_as_its_pipeline_asks(third: tuple[Any, Any]) -> None:
    pipeline, model = third
    embeds, _, pooled, _ = pipeline.encode_prompt(TEXT, TEXT, TEXT, do_classifier_free_guidance=False)
    encoded = model.encode([Conditioning(TEXT)])
    torch.testing.assert_close(encoded["text"], embeds)
    torch.testing.assert_close(encoded["pooled"], pooled)
    z, alpha = torch.randn(1, 4, 8, 8), torch.tensor([0.7], dtype=torch.float64)
    s = 1 / (1 + torch.exp(alpha / 2)).float()
    mixed = z * ((1 - s) ** 2 + s**2).sqrt()
    with torch.inference_mode():
        said = pipeline.transformer(
            hidden_states=mixed, timestep=1000 * s, encoder_hidden_states=embeds, pooled_projections=pooled
        ).sample
        torch.testing.assert_close(model.noise(z, alpha, encoded), mixed + (1 - s) * said, atol=1e-5, rtol=1e-4)


def test_a_pair_of_words_by_flow_matching(third: tuple[Any, Any]) -> None:
    _, model = third
    prompt = Prompt(TEXT)
    asked = plan(prompt, [prompt.find("bear"), prompt.find("dog")], context=True, mode="pad")
    asked.check(model)
    readings = finished(model, torch.randn(4, 8, 8), asked.conditionings, Sampling(nodes=6), chunk=4)
    assert readings.evaluations == 24
    assert float(readings.contrast(*asked.singles[0]).map.min()) >= 0 and readings.contrast(*asked.singles[0]).total > 0
    gone = model.lost("a dog and " * 100)
    assert gone and len(("a dog and " * 100).removesuffix(gone).split()) == (255 if len(model.texts) > 2 else 75)
