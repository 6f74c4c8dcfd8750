"""What the doctor says of models that draw: one that is right, one that mixes rows, one that is deaf to words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from fanlight import bundles
from fanlight.doctor import drawing
from fanlight.doctor.model import examine, inspect
from fanlight_models.diffusion import BadPrompt
from support.painting import painter
from support.pipelines import flux, third


def found(model: Any, seconds: float = 0.0) -> dict[str, Any]:
    report = drawing.inspect("tests", model, 1, seconds)
    return {c.name: c for c in report.checks}


def test_the_shipped_model_is_sound_and_its_method_is_measured() -> None:
    place = next(p for p in bundles.shipped() if p.name == "scenes-exact")
    report = examine(str(place), 60)
    assert report.sound, [c.says for c in report.checks]
    rows = {e["name"]: e for e in report.details["explainers"]}
    assert rows["diffusion-pid"]["measured"] and not rows["saliency"]["available"]
    assert "text-to-image" in rows["saliency"]["reason"]


def test_faults_are_found() -> None:
    assert found(painter())["words"].outcome == "good"
    deaf = painter()
    with torch.no_grad():
        deaf.net.said.weight.zero_()
    assert found(deaf)["words"].outcome == "warning"
    lost = painter()
    with torch.no_grad():
        lost.net.last.bias.fill_(float("nan"))
    assert found(lost)["finite"].outcome == "bad"
    drifting = painter()
    again, calls = drifting.denoiser.noise, iter(range(100))
    drifting.denoiser.noise = lambda z, alpha, encoded: again(z, alpha, encoded) + next(calls)
    assert found(drifting)["repeats"].outcome == "bad"
    mixing = painter()
    plain = mixing.denoiser.noise
    mixing.denoiser.noise = lambda z, alpha, encoded: plain(z, alpha, encoded) + z.mean(0)
    assert found(mixing)["batch"].outcome == "bad" and "beside" in found(mixing)["batch"].says


def test_what_one_prediction_costs_and_how_much_of_a_prompt_is_read() -> None:
    checks = found(painter())
    assert "One prediction takes" in checks["cost"].says and "on cpu" in checks["cost"].says
    assert checks["pictures"].outcome == "good" and "all of a prompt of 1,000" in checks["prompt"].says
    short = painter()
    short.denoiser.lost = lambda text: text[text.index(" ", 10) + 1 :]
    assert "the first 6 short words" in found(short)["prompt"].says  # “a a a a a ”, and the one where the sixth ends


def test_a_model_without_the_doctors_words_is_asked_with_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    model = painter()
    plain = model.denoiser.encode

    def knowing(prompts: Any) -> Any:
        if any("red" in p.text for p in prompts):
            raise BadPrompt("This model has no word “red”.")
        return plain(prompts)

    monkeypatch.setattr(model.denoiser, "encode", knowing)
    assert found(model)["words"].hint.startswith("Name prompts")
    model.examples = ["a green dog"]
    assert found(model)["words"].outcome == "good"


def test_which_methods_of_words_work_and_why_others_do_not() -> None:
    said = found(painter(), 30.0)["methods"]
    assert said.outcome == "good" and said.says.startswith("Of words: diffusion-pid.") and "other tasks" in said.says


@pytest.mark.parametrize("make", [flux, third])
def test_folders_of_diffusers(make: Any, tmp_path: Path) -> None:
    """In this process: loaded, asked, and no attention to read; of FLUX it is said that it is no MMSE denoiser."""
    make(tmp_path)
    report = inspect(str(tmp_path / "model"), 5.0)
    checks = {c.name: c for c in report.checks}
    assert report.sound, [c.says for c in report.checks]
    assert (
        "16 x 16 pixels from latents 4 x 8 x 8" in checks["load"].says
        and "batches of 4, 3, 2 and 1" in checks["batch"].says
    )
    assert checks["attention"].outcome == "none" and "no attention maps" in checks["attention"].says
    assert f"the first {511 if make is flux else 75:,} short words" in checks["prompt"].says
    assert ("kind" in checks) == (make is flux)
