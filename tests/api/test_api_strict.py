"""Requests that are nearly right are refused: what is misspelt or of another type would otherwise look answered."""

from __future__ import annotations

from typing import Any

import pytest
from api_rig import Api


def refused(answer: Any, status: int, word: str) -> None:
    error = answer.json()["error"]
    assert answer.status_code == status and word in f"{error['message']} {error.get('given')}", answer.text


def test_a_parameter_that_the_address_does_not_have_is_refused(api: Api) -> None:
    answer = api.call("GET", "/explanations", params={"modell": "x"})
    refused(answer, 422, "modell")
    assert "model" in answer.json()["error"]["allowed"]


@pytest.mark.parametrize("seed", [True, "1", 1.0, 1.5, None])
def test_a_seed_is_a_whole_number(api: Api, seed: Any) -> None:
    body = {"model": "m", "input": "i", "explainer": "saliency", "seed": seed}
    refused(api.call("POST", "/explanations", json=body), 422, "seed")
