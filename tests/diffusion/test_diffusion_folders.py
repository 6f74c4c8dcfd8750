"""Folders in diffusers' layout with tiny random weights: reading, text, prediction types, attention."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("diffusers", reason="diffusers is not installed (pip install 'fanlight[diffusion]')")
pytest.importorskip("transformers", reason="transformers is not installed (pip install 'fanlight[diffusion]')")

from fanlight_models.diffusion import (
    BadPrompt,
    Conditioning,
    Law,
    Prompt,
    Sampling,
    attention,
    finished,
    folders,
    heads,
    plan,
    small,
    stable,
)
from fanlight_models.diffusion.words import without

WORDS = ["a", "blue", "circle", "cross", "left", "of", "red", "the", "_"]
TEXT = "a red circle left of a blue cross"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    place = tmp_path_factory.mktemp("models") / "tiny"
    small.write(place, small.unet((8, 16, 16)), small.text_encoder(WORDS), small.tokenizer(WORDS), Law(-4, 1.5, -9, 3))
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> stable.Stable:
    return folders.read(folder)


def test_a_folder_is_read_as_it_was_written(model: stable.Stable) -> None:
    assert model.shape == (12, 16, 16) and model.logsnr == (-9, 9) and model.law == Law(-4, 1.5, -9, 3)
    assert model.head == "v_prediction" and model.codec.factor == 2 and not model.unet.training
    assert not any(p.requires_grad for p in model.unet.parameters())
    picture = torch.rand(1, 3, 32, 32)
    assert torch.equal(model.codec.decode(model.codec.encode(picture)), picture)


Z = torch.randn(3, 12, 16, 16, generator=torch.Generator().manual_seed(5))
ALPHA = torch.tensor([-3.0, 0.5, 4.0], dtype=torch.float64)


@pytest.mark.parametrize("head", stable.HEADS)
def test_every_prediction_type_becomes_noise(model: stable.Stable, head: str) -> None:
    other = stable.Stable(
        model.unet, model.tokenizer, model.text_encoder, small.alphas_cumprod(), head, model.codec, model.law
    )
    encoded = other.encode([Conditioning(TEXT)] * 3)
    steps = (ALPHA[:, None] - torch.logit(small.alphas_cumprod().double())).abs().argmin(1)
    with torch.inference_mode():
        raw = model.unet(Z, steps, encoder_hidden_states=encoded["text"]).sample
        found = other.noise(Z, ALPHA, encoded)
    torch.testing.assert_close(found, heads.noise_of(head, raw, Z, ALPHA))
    assert (torch.logit(small.alphas_cumprod().double())[steps] - ALPHA).abs().max() < 0.05


def test_a_prediction_type_that_is_none_is_refused(model: stable.Stable) -> None:
    with pytest.raises(stable.BadFolder, match="predicts “flow_prediction”. Supported: epsilon"):
        stable.Stable(
            model.unet, model.tokenizer, model.text_encoder, small.alphas_cumprod(), "flow_prediction", model.codec
        )


def test_attention_is_that_of_all_heads_and_leaves_the_network_as_it_was(model: stable.Stable) -> None:
    """The naive twin reads what comes out of the projections, at guidance 1, one prompt in the batch."""
    seen: dict[str, list[torch.Tensor]] = {"q": [], "k": []}
    layers = [m for n, m in model.unet.named_modules() if n.endswith("attn2") and not n.startswith("mid_block")]
    hooks = [
        getattr(layer, f"to_{which}").register_forward_hook(lambda _m, _i, out, w=which: seen[w].append(out))
        for layer in layers
        for which in seen
    ]
    encoded, before = model.encode([Conditioning(TEXT)]), dict(model.unet.attn_processors)
    with torch.inference_mode():
        noise, looks = model.noise_and_attention(Z[:1], ALPHA[:1], encoded)
        for hook in hooks:
            hook.remove()
        plain = model.noise(Z[:1], ALPHA[:1], encoded)
    torch.testing.assert_close(noise, plain, atol=1e-5, rtol=1e-4)
    assert model.unet.attn_processors == before
    assert looks.shape == (1, 16, 16, 16)  # tokens, rows, columns
    twin = []
    for layer, q, k in zip(layers, seen["q"], seen["k"], strict=True):
        each = [
            torch.softmax(a @ b.T / a.shape[1] ** 0.5, 1)
            for a, b in zip(q[0].chunk(layer.heads, 1), k[0].chunk(layer.heads, 1), strict=True)
        ]
        assert len(each) == 2
        mean = torch.stack(each).mean(0)  # (N, T)
        grid = mean.T.reshape(16, int(len(mean) ** 0.5), -1)
        if grid.shape[-1] != 16:
            grid = torch.nn.functional.interpolate(grid[None], (16, 16), mode="bicubic")[0].clamp_min(0)
        twin.append(grid)
    assert len(twin) == 6
    torch.testing.assert_close(looks[0], torch.stack(twin).mean(0), atol=1e-5, rtol=1e-4)


def test_attention_comes_with_the_forwards_that_measure(model: stable.Stable) -> None:
    full, base = Conditioning(TEXT), Conditioning("a circle left of a blue cross")
    x = torch.randn(12, 16, 16, generator=torch.Generator().manual_seed(6)) * 0.5
    sampling = Sampling(nodes=8, law=model.law)
    readings = finished(model, x, [full, base], sampling, attend=full, chunk=4)
    assert readings.evaluations == 16 and readings.attended == {full.key: 8}
    span = Prompt(TEXT).find("red").span
    assert model.tokens(full, span) == [2]  # behind the token for the begin, and “a”
    found = readings.attention_map(full, model.tokens(full, span))
    one = []
    for node, alpha in enumerate(readings.alphas):
        g = torch.sigmoid(alpha).float()
        z = g.sqrt() * x + (1 - g).sqrt() * sampling.noise(node, 0, x.shape)
        with torch.inference_mode():
            one.append(model.noise_and_attention(z[None], alpha[None], model.encode([full]))[1][0, 2])
    torch.testing.assert_close(found, torch.stack(one).mean(0), atol=1e-5, rtol=1e-3)
    plain = finished(model, x, [full, base], sampling, chunk=4)
    torch.testing.assert_close(readings.contrast(base, full).map, plain.contrast(base, full).map, rtol=1e-3, atol=1e-6)


def test_maps_are_bit_for_bit_the_same_whatever_is_asked_beside(model: stable.Stable) -> None:
    x = torch.randn(12, 16, 16, generator=torch.Generator().manual_seed(7)) * 0.5
    prompt = Prompt(TEXT)
    asked = plan(prompt, [prompt.find("red"), prompt.find("blue")], context=True)
    quad = asked.pairs[0, 1]
    together = finished(model, x, asked.conditionings, Sampling(nodes=6), chunk=5)
    alone = finished(model, x, [quad.base, quad.ab], Sampling(nodes=6), chunk=5)
    assert torch.equal(together.contrast(quad.base, quad.ab).map, alone.contrast(quad.base, quad.ab).map)
    other = finished(model, x, asked.conditionings, Sampling(nodes=6), chunk=3)
    # A difference of two outputs that are nearly equal: relative to the outputs, not to their difference.
    one, two = (r.energies[quad.ab.key] for r in (together, other))
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


def test_removed_words_reach_the_text_encoder(model: stable.Stable) -> None:
    prompt = Prompt(TEXT)
    red = prompt.find("red")
    whole, padded, swapped = (
        model.encode([c])["text"][0]
        for c in (Conditioning(TEXT), without(prompt, [red], "pad"), without(prompt, [red], "swap", {red: "blue"}))
    )
    for other in (padded, swapped):  # causal: what stands before is the same, what stands behind is not
        torch.testing.assert_close(whole[:2], other[:2])
        assert all(not torch.allclose(whole[n], other[n], atol=1e-4) for n in range(2, 10))
    assert [n for n, _ in zip(*model._tokens(TEXT), strict=True)][:4] == [1, 4, 10, 6]


def test_what_a_prompt_loses_is_said(model: stable.Stable) -> None:
    long = TEXT + " left of a red cross left of the circle"
    assert model.lost(TEXT) == ""
    assert model.lost(long) == "of the circle"  # fourteen words fit: sixteen tokens less begin and end
    prompt = Prompt(long)
    with pytest.raises(BadPrompt, match="too long for this model"):
        plan(prompt, [prompt.words[-1]], context=True).check(model)
    with pytest.raises(BadPrompt, match="never sees “circle”"):
        model.tokens(Conditioning(long), prompt.words[-1].span)


def test_words_it_does_not_know_are_named(model: stable.Stable) -> None:
    with pytest.raises(BadPrompt, match="no word “Purple”. Its words: _, a, blue"):
        model.encode([Conditioning("a Purple circle")])
    model.encode([Conditioning(""), Conditioning("A red circle, left of a blue cross.")])


def changed(folder: Path, place: Path, name: str, **values: object) -> Path:
    import shutil

    shutil.copytree(folder, place)
    path = place / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    return place


def test_folders_that_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(stable.BadFolder, match="“model_index.json” cannot be read"):
        folders.read(tmp_path / "empty")
    with pytest.raises(stable.BadFolder, match="holds a HunyuanDiTPipeline. Supported"):
        folders.read(changed(folder, tmp_path / "hunyuan", "model_index.json", _class_name="HunyuanDiTPipeline"))
    for name, file, values in (
        ("lcm", "scheduler/scheduler_config.json", {"_class_name": "LCMScheduler"}),
        ("guided", "unet/config.json", {"time_cond_proj_dim": 256}),
        ("sd-turbo", "model_index.json", {}),
    ):
        with pytest.raises(stable.BadFolder, match="distilled to draw in few steps"):
            folders.read(changed(folder, tmp_path / name, file, **values))
    pickled = changed(folder, tmp_path / "pickled", "model_index.json")
    weights = pickled / "unet/diffusion_pytorch_model.safetensors"
    weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(stable.BadFolder, match="no weights as safetensors; pickles are not opened"):
        folders.read(pickled)
    with pytest.raises(stable.BadFolder, match="predicts “flow”"):
        folders.read(changed(folder, tmp_path / "flow", "scheduler/scheduler_config.json", prediction_type="flow"))


def test_layers_that_are_too_coarse_are_left_out() -> None:
    fine, coarse = torch.rand(1, 16, 3), torch.rand(1, 1, 3)
    torch.testing.assert_close(attention.maps([fine, coarse], (8, 8)), attention.maps([fine], (8, 8)))
    with pytest.raises(ValueError, match="fine enough"):
        attention.maps([coarse], (8, 8))


def test_the_package_needs_neither_diffusers_nor_transformers() -> None:
    code = (
        "import sys; sys.modules['diffusers'] = sys.modules['transformers'] = sys.modules['tokenizers'] = None\n"
        "import fanlight_models.diffusion, fanlight_models.diffusion.generate, fanlight_models.diffusion.folders\n"
        "import fanlight_models.diffusion.small, fanlight_models.worlds.scenes.bayes, fanlight_models.recipes.scenes_diffusion"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
