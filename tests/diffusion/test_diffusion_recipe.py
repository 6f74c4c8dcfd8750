"""The recipe of the small model, on few steps: it goes on from where it was, writes what it promises, and is measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("diffusers", reason="diffusers is not installed (pip install 'fanlight[diffusion]')")
pytest.importorskip("transformers", reason="transformers is not installed (pip install 'fanlight[diffusion]')")

from fanlight_models.diffusion import folders
from fanlight_models.recipes import scenes_diffusion, scenes_gate
from fanlight_models.worlds import scenes


@pytest.fixture(autouse=True)
def threads():
    """The recipe sets them for its process."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_it_goes_on_from_its_checkpoint_to_the_same_weights(tmp_path: Path, capfd) -> None:
    whole = scenes_diffusion.fit("plain", 3, 0, tmp_path / "whole.safetensors", size=4)
    scenes_diffusion.fit("plain", 3, 0, tmp_path / "parts.safetensors", stop=2, size=4)
    parts = scenes_diffusion.fit("plain", 3, 0, tmp_path / "parts.safetensors", size=4)
    for name, value in whole.both().state_dict().items():
        assert torch.equal(value, parts.both().state_dict()[name]), name
    with pytest.raises(ValueError, match="remove it or name another"):
        scenes_diffusion.fit("plain", 4, 0, tmp_path / "parts.safetensors", size=4)
    new = scenes_diffusion.Training.new("plain", 0).both().state_dict()
    assert any(not torch.equal(v, new[k]) for k, v in whole.both().state_dict().items())


def test_it_writes_a_folder_with_the_gate_on_its_card(tmp_path: Path, capfd) -> None:
    given = f"--out {tmp_path} --steps 20 --batch 2 --gate 2 --gate-nodes 8 --checkpoint {tmp_path / 'c.safetensors'}".split()
    scenes_diffusion.main(given)
    assert "step 20 of 20: loss" in capfd.readouterr().err
    place = tmp_path / "scenes-diffusion"
    assert sum(f.stat().st_size for f in place.rglob("*") if f.is_file()) < 10e6
    assert not list(place.rglob("*.bin"))
    measured, card = json.loads((place / "gate.json").read_text()), (place / "card.md").read_text()
    assert set(measured["gate"]) == set(scenes_gate.LIMITS) and "20 steps of 2 scenes" in card
    assert f"{measured['gate']['AUC of a colour word']['value']:.3f}" in card and "**not met**" in card
    assert measured["words"]["object"]["exact"][0] == pytest.approx(np.log(8), abs=1e-2)
    assert folders.read(place).law == scenes_diffusion.LAW


def test_a_stop_writes_nothing(tmp_path: Path, capfd) -> None:
    given = f"--out {tmp_path / 'out'} --steps 2 --stop 1 --batch 2 --checkpoint {tmp_path / 'c.safetensors'}".split()
    scenes_diffusion.main(given)
    assert "1 of 2 steps done" in capfd.readouterr().err and not (tmp_path / "out").exists()


def test_prompts_lose_words_as_questions_will_take_them() -> None:
    chance = np.random.default_rng(0)
    full = "a red circle left of a blue cross"
    made = [scenes_diffusion.shortened(full, chance) for _ in range(4000)]
    assert 0.25 < sum(m == full for m in made) / 4000 < 0.45
    assert 0.05 < sum(m == "" for m in made) / 4000 < 0.2
    for wanted in (
        "a circle left of a blue cross",
        "a red circle left of a cross",
        "a left of a blue cross",
        "red",
        f"{full} the",
    ):
        assert wanted in made
    world = scenes.world()
    for words in (tuple(m.removesuffix(" the").removesuffix("the").split()) for m in made[:300]):
        assert sum(world.ways(words)) > 0


def test_the_rate_and_the_log_snrs() -> None:
    assert scenes_diffusion.share(0, 1000) < 0.01 and scenes_diffusion.share(300, 1000) > 0.7
    assert scenes_diffusion.share(999, 1000) < 1e-4
    drawn = scenes_diffusion.log_snrs(4000, torch.Generator().manual_seed(0))
    low, high = scenes_diffusion.small.TRAINED
    assert drawn.min() >= low and drawn.max() <= high and 0.1 < float((drawn > 3).double().mean()) < 0.2


def test_the_truth_itself_would_pass_the_gate(tmp_path: Path) -> None:
    """The limits can be reached: the exact denoiser in the model's place differs from itself by nothing and from the exact total by chance."""
    rows = {k: [] for k in scenes_gate.WORDS}
    for k, known in (("colour", 4), ("shape", 2), ("object", 8)):
        for n in range(40):
            off = 0.05 * np.sin(n)
            rows[k].append((np.log(known) + off, np.log(known), 0.99, 0.9, 0.8, 0.5, 1.0, 1.0, np.log(known) + off))
    told = scenes_gate._told(rows, {"scenes": 40, "nodes": 1, "noises": 1, "world": "plain"})
    assert all(g["met"] for g in told["gate"].values())
    assert told["words"]["colour"]["difference to the optimum"][0] == 0
    rows["colour"] = [(a + 0.3, *rest) for a, *rest in rows["colour"]]
    gate = scenes_gate._told(rows, told["how"])["gate"]
    assert not gate["error of a colour word"]["met"] and gate["AUC of an object"]["met"]
    assert "**not met**" in scenes_gate.table({**told, "gate": gate})
