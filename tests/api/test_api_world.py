"""The score of a method on the field guide reaches the catalog, share pages and exported files."""

from __future__ import annotations

import html
import re

import pytest
from api_rig import Api, noise

from fanlight import wire
from fanlight.explainers.registry import find
from fanlight.quality import world

RANKING = wire.Measurement(value=0.83, lo=0.71, hi=0.9, floor=0.0, ceiling=0.97, unit="rank correlation")
SAID = "ranks the bird's parts with correlation 0.83 to the truth (0.71 to 0.90); random 0.00, best possible 0.97."


def measured(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """This installation ships a score of saliency of that version, and a reason for occlusion."""
    record = world.Record(
        world="field-guide", world_version=1, model="Field guide", model_digest="a" * 64, scenes=16, date="2026-01-01", versions={},
        explainers={"saliency": world.Entry(version=version, measures={world.HEADLINE: RANKING})},
        unavailable={"occlusion": "It does not fit."},
    )  # fmt: skip
    monkeypatch.setattr(world, "shipped", lambda: record)


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.S)).split())


def pages(api: Api) -> list[str]:
    """The share page and the exported file of a new explanation by saliency."""
    record = api.explain(input=api.upload(noise(1))["id"])
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    found = [api.http.get(f"/s/{share['token']}"), api.call("GET", f"/explanations/{record['id']}/export.html")]
    assert [p.status_code for p in found] == [200, 200]
    return [text(p.text) for p in found]


def test_the_catalog_says_what_each_method_scores(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, find("saliency").version)
    found = {e["name"]: e["world"] for e in api.call("GET", "/explainers").json()}
    assert found["saliency"]["sentence"].endswith(SAID) and found["saliency"]["scenes"] == 16
    assert found["saliency"]["measures"]["part ranking"] == RANKING.model_dump()
    assert found["occlusion"]["state"] == "unavailable" and found["occlusion"]["headline"] is None
    assert found["grad-cam"] is None


def test_shares_and_files_say_it_too(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, find("saliency").version)
    for page in pages(api):
        assert SAID in page and "16 scenes" in page


def test_a_score_of_another_version_is_not_shown(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(monkeypatch, "an older one")
    for page in pages(api):
        assert "Not measured on the field guide for this version of the method." in page and "0.83" not in page
