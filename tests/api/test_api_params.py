"""Parameters that are each in their range but make no sense together, or for this model, are refused before a job is promised."""

from __future__ import annotations

from typing import Any

import pytest
from api_rig import Api, noise


@pytest.mark.parametrize(
    ("explainer", "params", "words"),
    [
        ("kernel-shap", {"patch": 8, "samples": 64}, ("64 regions", "130 samples")),
        ("kernel-shap", {"patch": 128}, ("two regions",)),
        ("occlusion", {"window": 128}, ("128 px", "64 by 64 px")),
        ("lime", {"regions": 200, "samples": 64}, ("200 superpixels", "202 samples")),
        ("shapley", {"regions": 20, "samples": 50}, ("20 superpixels", "78 samples")),
        ("random", {"patch": 128}, ("128 px", "64 by 64 px")),
    ],
)
def test_it_is_a_sentence_and_no_job(api: Api, explainer: str, params: dict[str, Any], words: tuple[str, ...]) -> None:
    picture = api.upload(noise(0))["id"]
    answer = api.ask(input=picture, explainer=explainer, params=params)
    assert answer.status_code == 422, answer.text
    error = answer.json()["error"]
    assert error["code"] == "invalid_params"
    for word in words:
        assert word in error["message"]
    assert error["hint"]
    assert api.call("GET", "/jobs").json()["items"] == []
