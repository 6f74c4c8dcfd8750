"""FLUX, tiny and random, as diffusers saves it: packing, text, the conversion of its velocity, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from fanlight_models.diffusion import Conditioning, Prompt, Sampling, finished, flux, folders, generate, plan, stable
from fanlight_models.diffusion.words import without
from support.pipelines import diffusers, flux as saved

TEXT = "a red teddy bear and a dog"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, flux.Flux, Path]:
    """The pipeline, what is read of its folder, and the folder."""
    place = tmp_path_factory.mktemp("flux")
    pipeline = saved(place)
    model = folders.read(place / "model")
    assert isinstance(model, flux.Flux)
    return pipeline, model, place / "model"


def test_its_latents_and_pictures(both: tuple[Any, flux.Flux, Path]) -> None:
    pipeline, model, _ = both
    assert model.shape == (4, 8, 8) and model.codec.factor == 2
    picture = torch.rand(1, 3, 16, 16) * 2 - 1
    with torch.inference_mode():
        raw = pipeline.vae.encode(picture).latent_dist.mode()
        torch.testing.assert_close(model.codec.encode(picture), (raw - 0.1159) * 0.3611)
        latent = torch.randn(1, 4, 8, 8)
        torch.testing.assert_close(
            model.codec.decode(latent), pipeline.vae.decode(latent / 0.3611 + 0.1159).sample, atol=1e-5, rtol=1e-4
        )


def test_patches_are_packed_as_the_pipeline_packs_them() -> None:
    z = torch.randn(2, 4, 6, 8)
    pipeline = diffusers.FluxPipeline
    assert torch.equal(flux.packed(z), pipeline._pack_latents(z, 2, 4, 6, 8))
    assert torch.equal(flux.unpacked(flux.packed(z), 6, 8), z)
    assert torch.equal(flux.places(3, 4).float(), pipeline._prepare_latent_image_ids(1, 3, 4, "cpu", torch.float32))


def test_its_estimate_of_the_noise_is_that_of_a_head_made_by_hand(both: tuple[Any, flux.Flux, Path]) -> None:
    """z' = z sqrt((1 - s)^2 + s^2), s = 1 / (1 + exp(alpha / 2)), eps = z' + (1 - s) u; the text and the call are the pipeline's own."""
    pipeline, model, _ = both
    with torch.inference_mode():  # other kernels than with gradients, which round otherwise
        embeds, pooled, text_ids = pipeline.encode_prompt([TEXT] * 3)
    encoded = model.encode([Conditioning(TEXT)] * 3)
    torch.testing.assert_close(encoded["text"], embeds)
    torch.testing.assert_close(encoded["pooled"], pooled)
    embeds, pooled = embeds[:1], pooled[:1]
    assert embeds.shape == (1, 512, 48) and pooled.shape == (1, 16)
    z = torch.randn(3, 4, 8, 8)
    alpha = torch.tensor([-3.0, 0.7, 4.0], dtype=torch.float64)
    s = (1 / (1 + torch.exp(alpha / 2))).float()
    one = s[:, None, None, None]
    mixed = z * ((1 - one) ** 2 + one**2).sqrt()
    with torch.inference_mode():
        said = pipeline.transformer(
            hidden_states=pipeline._pack_latents(mixed, 3, 4, 8, 8), timestep=s, guidance=torch.ones(3),
            pooled_projections=pooled.repeat(3, 1), encoder_hidden_states=embeds.repeat(3, 1, 1), txt_ids=text_ids,
            img_ids=pipeline._prepare_latent_image_ids(3, 4, 4, "cpu", torch.float32), return_dict=False,
        )[0]  # fmt: skip
        velocity = pipeline._unpack_latents(said, 16, 16, 2)
        found = model.noise(z, alpha, encoded)
        stronger = pipeline.transformer(
            hidden_states=pipeline._pack_latents(mixed, 3, 4, 8, 8), timestep=s, guidance=torch.full((3,), 3.5),
            pooled_projections=pooled.repeat(3, 1), encoder_hidden_states=embeds.repeat(3, 1, 1), txt_ids=text_ids,
            img_ids=pipeline._prepare_latent_image_ids(3, 4, 4, "cpu", torch.float32), return_dict=False,
        )[0]  # fmt: skip
    torch.testing.assert_close(found, mixed + (1 - one) * velocity, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(said, stronger, atol=1e-4), "the guidance that it is told makes a difference"


def test_a_pair_of_words_from_end_to_end(both: tuple[Any, flux.Flux, Path]) -> None:
    _, model, _ = both
    prompt = Prompt(TEXT)
    asked = plan(prompt, [prompt.find("teddy bear"), prompt.find("dog")], context=True, neutral="and")
    asked.check(model)
    x = generate.finished(model, [Conditioning(TEXT)], generate.Drawing(0, 3, 1))[0]
    assert x.shape == (4, 8, 8)
    readings = finished(model, x, asked.conditionings, Sampling(nodes=6), chunk=4)
    for base, full in (*asked.singles, asked.floor):
        found = readings.contrast(base, full)
        assert found.map.shape == (8, 8) and torch.isfinite(found.map).all() and found.total > 0


def test_a_removed_word_leaves_the_vector_of_the_whole_prompt_too(both: tuple[Any, flux.Flux, Path]) -> None:
    _, model, _ = both
    prompt = Prompt(TEXT)
    whole, gone = (model.encode([c]) for c in (Conditioning(TEXT), without(prompt, [prompt.find("dog")])))
    for name in ("text", "pooled"):
        assert not torch.allclose(whole[name], gone[name], atol=1e-4)


def test_what_a_long_prompt_loses(both: tuple[Any, flux.Flux, Path]) -> None:
    _, model, _ = both
    text = "a dog and " * 200
    gone = model.lost(text)
    assert len(text.removesuffix(gone).split()) == 511 and model.lost(TEXT) == ""


def test_schnell_is_refused_with_the_reason(tmp_path: Path) -> None:
    saved(tmp_path, guided=False)
    with pytest.raises(stable.BadFolder, match=r"no input for guidance, as FLUX.1 schnell, .* distilled"):
        folders.read(tmp_path / "model")


def test_the_size_may_be_another_and_must_be_whole_patches(both: tuple[Any, flux.Flux, Path], tmp_path: Path) -> None:
    import shutil

    for size, said in ((24, None), (14, "patches of 2 x 2")):
        place = tmp_path / str(size)
        shutil.copytree(both[2], place)
        (place / "fanlight.json").write_text(json.dumps({"size": size}))
        if said is None:
            model = folders.read(place)
            assert model.shape == (4, 12, 12)
            z, alpha = torch.randn(1, 4, 12, 12), torch.zeros(1, dtype=torch.float64)
            assert model.noise(z, alpha, model.encode([Conditioning("")])).shape == z.shape
        else:
            with pytest.raises(stable.BadFolder, match=said):
                folders.read(place)
