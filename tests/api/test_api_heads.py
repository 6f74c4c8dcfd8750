"""Models that answer with a value or with labels of their own, from the registration to the page that is shared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from api_rig import MODEL, TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[str], Api]]:
    """`served('head="regression", unit="years"')`: a server whose model has one output, or three labels."""
    opened: list[TestClient] = []

    def start(head: str) -> Api:
        text = MODEL.replace('features_at="features"', f'features_at="features", {head}')
        if "regression" in head:
            text = text.replace("nn.Linear(8, 3)", "nn.Linear(8, 1)").replace('["left", "right", "middle"]', '["age"]')
        assert text != MODEL
        given = settings(tmp_path)
        (tmp_path / "tiny.py").write_text(text)
        http = TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"})
        opened.append(http.__enter__())
        return Api(started(http))

    yield start
    for http in opened:
        http.__exit__(None, None, None)


def test_a_regression_is_told_with_its_unit_and_never_as_a_probability(served):
    api = served('head="regression", unit="years"')
    model = api.call("GET", "/models/tiny").json()
    assert (model["head"], model["unit"], model["classes"]) == ("regression", "years", ["age"])
    picture = api.upload(noise(1))["id"]
    record = api.explain(input=picture)
    (answer,) = record["prediction"]
    assert answer["probability"] is None and answer["unit"] == "years" and record["target"] == {"class": 0}
    assert api.trusted(record["id"])["state"] in ("succeeded", "unavailable")
    token = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()["token"]
    page = api.http.get(f"/s/{token}").text
    assert " years" in page
    heading = page.partition('class="answers"')[2].partition("</ol>")[0]
    assert "%" not in heading.partition("</svg>")[2]
    assert api.http.get(f"/s/{token}/preview.png").status_code == 200
    again = api.call("GET", "/explanations?sort=probability").json()
    assert [e["id"] for e in again["items"]] == [record["id"]]


def test_labels_have_probabilities_of_their_own(served):
    api = served('head="multi-label"')
    record = api.explain(input=api.upload(noise(1))["id"])
    for answer in record["prediction"]:
        z = answer["logit"]
        assert answer["probability"] == pytest.approx(1 / (1 + 2.718281828459045**-z))
