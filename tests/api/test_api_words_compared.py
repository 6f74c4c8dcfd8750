"""Results of words beside each other: one of their maps at a time, whether the pictures are the same, what has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from fanlight.artifact import Artifact
from fanlight.drawing.information import NAMES, Read

FAST = {"nodes": "32", "steps": 8, "guidance": 1}
PROMPT = "a red circle left of a blue cross"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("compared"), scenes=True)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        yield Api(started(http))


def asked(api: Api, seed: int, words: str) -> dict[str, Any]:
    made = api.call("POST", "/inputs", json={"kind": "prompt", "value": PROMPT}).json()
    found: dict[str, Any] = api.explain(
        model="scenes-exact", input=made["id"], explainer="diffusion-pid", params={**FAST, "words": words}, seed=seed
    )
    return found


def maps(api: Api, record: dict[str, Any]) -> dict[str, np.ndarray]:
    return Read(Artifact.from_bytes(api.http.get(record["artifacts"][0]["url"] + "/raw").content)).maps


def test_each_of_the_seven_maps_can_be_compared_and_subtracted(api: Api) -> None:
    one, other = (asked(api, 0, words) for words in ("red, circle", "blue, cross"))
    ids = f"{one['id']},{other['id']}"
    found = api.call("GET", f"/comparisons?ids={ids}").json()
    assert found["map"] == "both" and found["maps"] == list(NAMES) and found["same_picture"] and found["comparable"]
    assert found["agreement"][0][0] == pytest.approx(1) and found["agreement"][0][1] < 0.3, (
        "they lie on different objects"
    )
    for name in ("a", "synergy"):
        base = f"/comparisons/{one['id']}/{other['id']}"
        raw = Artifact.from_bytes(api.call("GET", f"{base}/raw?map={name}").content)
        np.testing.assert_allclose(raw.arrays["value"], maps(api, one)[name] - maps(api, other)[name], atol=1e-6)
        assert raw.meta["unit"] == "nat per latent pixel"
        assert api.call("GET", f"{base}/render.png?map={name}").content.startswith(b"\x89PNG")
        assert "higher" in api.call("GET", f"{base}?map={name}").json()["sentence"]


def test_another_seed_of_a_prompt_is_another_picture(api: Api) -> None:
    one, other = (asked(api, seed, "red, circle") for seed in (0, 1))
    found = api.call("GET", f"/comparisons?ids={one['id']},{other['id']}&map=a").json()
    assert not found["same_picture"] and found["map"] == "a"


def test_a_map_that_there_is_not_is_a_sentence(api: Api) -> None:
    one, other = (asked(api, 0, words) for words in ("red, circle", "blue, cross"))
    answer = api.call("GET", f"/comparisons?ids={one['id']},{other['id']}&map=beauty")
    assert answer.status_code == 422 and answer.json()["error"]["allowed"] == list(NAMES)
