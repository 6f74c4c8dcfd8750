"""The panel on which a rule is applied to a whole sweep: its form read back, what it shows, and the panel of a real server."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from fanlight import wire
from fanlight.app import create
from fanlight.client import credentials
from fanlight.settings import Settings
from fanlight_ui import trial_panel, trials
from support.prototypes import write

TOKEN = "a-token-for-tests"


def flat(component: Any) -> str:
    """All text and attributes of a component."""
    return json.dumps(
        component, default=lambda v: v.to_plotly_json() if hasattr(v, "to_plotly_json") else str(v), ensure_ascii=False
    )


def given(**values: Any) -> dict[str, Any]:
    return {p: values.get(p) for p in trials.PARTS}


def test_controls_say_an_edit_or_nothing() -> None:
    assert trials.edit("set_concept", given(concept="3", value="no")) == {"set_concept": {"concept": 3, "value": "no"}}
    soft = trials.edit("set_concept", given(concept="3", value="soft", soft=0.25))
    assert soft == {"set_concept": {"concept": 3, "value": 0.25}}
    assert trials.edit("set_concept", given(value="yes")) is None
    assert trials.edit("mute_prototype", given(prototype=0)) == {"mute_prototype": 0}
    assert trials.edit("mute_prototype", given(prototype="")) is None
    assert trials.edit("gate_part", given(prototype=4, part=1)) == {"gate_part": [4, 0]}, "parts are counted from 1"
    assert trials.edit("of_a_plugin", given(json='{"a": 1}')) == {"of_a_plugin": {"a": 1}}
    assert trials.edit("of_a_plugin", given(json="{a")) is None


def test_only_what_has_something_to_say_is_shown() -> None:
    def shown(kind: str, value: str | None = "yes") -> list[str]:
        return [p for p, off in zip(trials.PARTS, trials.hidden(kind, value), strict=True) if not off]

    assert shown("set_concept") == ["concept", "value"]
    assert shown("set_concept", "soft") == ["concept", "value", "soft"]
    assert shown("remove_part") == ["prototype", "part"]
    assert shown("of_a_plugin") == ["json"]


def trial(edits: list[dict[str, Any]], **changes: Any) -> wire.Trial:
    base: dict[str, Any] = {
        "id": "t1",
        "sweep": "s1",
        "edits": edits,
        "about": "Crest long no; tried on 4 pictures.",
        "where": {},
        "state": "done",
        "total": 4,
        "counts": {"waiting": 0, "done": 4, "failed": 0, "cancelled": 0},
        "progress": 1,
        "seconds": 0.2,
        "mine": True,
        "created": 0,
    }
    return wire.Trial.model_validate(base | changes)


def test_a_picture_opens_with_the_edits_of_the_rule() -> None:
    said = trial([{"set_concept": {"concept": 7, "value": "no"}}, {"set_concept": {"concept": 2, "value": 0.3}}])
    assert trials.opened(said, "abc").endswith("/e/abc/concepts?answers=7%3Ano%2C2%3A0.3")
    muted = trials.opened(trial([{"mute_prototype": 5}]), "abc")
    assert muted.endswith("/e/abc/prototypes?edits=%5B%7B%22mute_prototype%22%3A5%7D%5D")
    assert trials.opened(trial([{"of_a_plugin": 1}]), "abc").endswith("/e/abc")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TestClient]:
    """The pages over a real server with a prototype classifier and eight pictures of two labels."""
    for n in range(8):
        place = tmp_path / "pictures" / ("ant", "bee")[n % 2]
        place.mkdir(parents=True, exist_ok=True)
        coarse = np.random.default_rng(n).integers(0, 255, (4, 4, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((32, 32)).save(place / f"{n}.png")
    settings = Settings(
        data_dir=tmp_path / "data",
        models=str(write(tmp_path / "small")),
        datasets=f"pictures={tmp_path / 'pictures'}",
        engine="local",
        isolate=False,
        default_model=False,
        examples=False,
        field_guide=False,
        threads=1,
        trust="request",
    )
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(settings, token=TOKEN), headers=headers) as http:
        end = time.monotonic() + 60
        while http.get("/readyz").status_code != 200 or "pictures" not in [
            d["id"] for d in http.get("/api/v1/datasets").json()
        ]:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield http


def swept(http: TestClient, explainer: str) -> wire.Sweep:
    source = {"dataset": "pictures"}
    answer = http.post("/api/v1/sweeps", json={"model": "small", "explainer": explainer, "source": source})
    assert answer.status_code == 201, answer.text
    end = time.monotonic() + 60
    while True:
        found = wire.Sweep.model_validate(http.get(f"/api/v1/sweeps/{answer.json()['id']}").json())
        if found.state == "done":
            return found
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_panel_of_a_sweep_offers_its_edits_and_shows_what_came_of_them(server: TestClient) -> None:
    def asked(make: Any, *args: Any) -> Any:
        async def on_behalf() -> Any:
            credentials.set({"Authorization": f"Bearer {TOKEN}"})
            return await make(*args)

        assert server.portal is not None
        return server.portal.call(on_behalf)

    plain = swept(server, "saliency")
    assert asked(trial_panel.panel, plain, None) is None, "a map has no edits that mean the same everywhere"
    found = swept(server, "protovit")
    before = flat(asked(trial_panel.panel, found, None))
    assert "Mute a prototype" in before and "Answer a concept" not in before and "Apply to 8 pictures" in before
    refused = asked(trial_panel.apply, 1, found.id, [], "mute_prototype", None, None, "", *given(prototype=99).values())
    assert "There is no prototype 99" in refused[-1]
    nothing = asked(trial_panel.apply, 1, found.id, [], "mute_prototype", None, None, "", *given().values())
    assert nothing[-1] == "Say first what is changed."
    where = ("ant", None, "")
    name = asked(trial_panel.apply, 1, found.id, [], "mute_prototype", *where, *given(prototype=1).values())[0]
    end = time.monotonic() + 30
    while True:
        shown, over = asked(trial_panel.follow, 1, name)
        if over:
            break
        assert time.monotonic() < end
        time.sleep(0.05)
    text = flat(shown)
    assert "Prototype 1 muted; tried on 4 pictures labelled ant." in text and "4 of 4 computed" in text
    assert "Right before" in text and f"/api/v1/trials/{name}/export.csv" in text and "Forget it" in text
    again = flat(asked(trial_panel.panel, found, name))
    assert "Prototype 1 muted" in again and '"tr-poll"' in again
    gone = asked(trial_panel.forget, 1, name, found.id)
    assert gone[0] is None and server.get(f"/api/v1/trials/{name}").status_code == 404
