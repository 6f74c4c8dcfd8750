"""What the doctor says of models that draw: one that is right, one that mixes rows, one that is deaf to words."""

from __future__ import annotations

from typing import Any

import torch

from fanlight import bundles
from fanlight.doctor import drawing
from fanlight.doctor.model import examine
from support.painting import painter


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
    mixing = painter()
    plain = mixing.denoiser.noise
    mixing.denoiser.noise = lambda z, alpha, encoded: plain(z, alpha, encoded) + z.mean(0)
    assert found(mixing)["batch"].outcome == "bad" and "beside" in found(mixing)["batch"].says
