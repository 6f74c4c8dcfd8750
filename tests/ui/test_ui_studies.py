"""Studies on pages: what an address and a form say, what a cell shows, and both pages on a real server with the scenes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from fanlight import wire
from fanlight.app import create
from fanlight.client import calls, credentials
from fanlight.settings import Settings
from fanlight_ui import studies, study_form, study_panel, sweeps
from fanlight_ui.session import ask

TOKEN = "a-token-for-tests"
COLUMNS = [
    wire.StudyColumn(name="interaction", title="interaction: both less the sum of the two, signed"),
    wire.StudyColumn(name="unique_first", title="unique to the first word, sum of its map"),
]


def flat(component: Any) -> str:
    return json.dumps(component, default=lambda v: v.to_plotly_json() if hasattr(v, "to_plotly_json") else str(v), ensure_ascii=False)  # fmt: skip


def study(**changes: Any) -> wire.Study:
    cells = [
        [
            wire.StudyCell(n=8, mean=0.5, lo=0.25, hi=0.75, normalised=1.0, normalised_lo=0.8, normalised_hi=1.0),
            wire.StudyCell(n=8, mean=-0.25, lo=-0.5, hi=0.125, normalised=0.0, normalised_lo=0.0, normalised_hi=0.3),
        ],
        [wire.StudyCell(n=1, mean=0.25), wire.StudyCell(n=0)],
    ]
    known: dict[str, Any] = {
        "sweep": "s", "template": "a {a} {b}", "first": ["red", "green"], "second": ["circle", "cross"], "seeds": list(range(8)),
        "column": "interaction", "columns": COLUMNS, "rule": "min", "cells": cells, "lowest": -0.25, "highest": 0.5, "n": 17,
        "total": 32, "complete": False, "about": "Of the model.",
    }  # fmt: skip
    return wire.Study(**{**known, **changes})


def test_a_view_is_what_an_address_says_and_nonsense_is_left_out() -> None:
    asked = studies.View.of({"column": "synergy", "rule": "pointwise", "scale": "normalised", "cell": "1,0"})
    assert asked == studies.View("synergy", "pointwise", "normalised", (1, 0))
    assert studies.View.of(asked.data()) == asked
    for nonsense in ({}, {"rule": "x", "scale": "y", "cell": "1"}, {"cell": "-1,2"}, {"cell": "a,b"}, {"cell": None}):
        assert studies.View.of(nonsense) == studies.View()


def test_a_cell_says_its_number_interval_and_how_many_pictures_it_is_of() -> None:
    found = study()
    view = studies.View(cell=(0, 1))
    sure, less, one, none = (studies.cell(found, view, i, j, 0.5).children for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)))
    assert flat(sure).count("+0.500") == 2 and "+0.25 to +0.75" in flat(sure)
    assert sure.className == "st-cell sure" and sure.style["--share"] == f"{studies.SHADE}%"
    assert less.className == "st-cell less" and less.style["--share"] == f"{studies.SHADE / 2:.0f}%"
    said = less.to_plotly_json()["props"]
    assert said["aria-label"] == "red, cross: −0.250 nat, 95 % interval −0.50 to +0.12, of 8 pictures"
    assert (said["aria-pressed"], sure.to_plotly_json()["props"]["aria-pressed"]) == ("true", "false")
    assert "of 1 picture" in flat(one) and "1 of 8" in flat(one) and "to" not in one.children[1].children
    assert "not yet" in flat(none) and "none" in flat(studies.cell(study(complete=True), view, 1, 1, 0.5))


def test_the_normalised_table_has_its_own_intervals_and_says_what_its_ends_are() -> None:
    view = studies.View(scale="normalised")
    low = studies.cell(study(), view, 0, 1, 0.5).children
    assert "0 to 0.30" in flat(low) and low.style["--share"] == "0%" and "less" not in low.className
    said = flat(studies.scale(study(), view))
    assert "0 stands for −0.25 nat, 1 for +0.50 nat" in said and "Bold" not in said
    assert "Bold: the interval leaves 0 out." in flat(studies.scale(study(), studies.View()))
    assert studies.scale(study(lowest=None, highest=None), view) is None


def test_numbers_are_called_as_the_server_calls_them() -> None:
    said = flat(studies.controls(study(), studies.View()))
    assert '"interaction"' in said and '"unique to the first word"' in said
    plain = study(
        column="unique_first", cells=[[wire.StudyCell(n=2, mean=0.5, lo=0.4, hi=0.6)]], first=["a"], second=["b"]
    )
    assert not studies.crosses(plain) and studies.crosses(study())
    assert "sure" not in flat(studies.numbers(plain, studies.View())), "a sum of a map is never below 0"


def test_what_was_typed_is_read_back() -> None:
    assert study_form.listed(" red,  dark  blue\nRed;;\n green ") == ["red", "dark blue", "green"]
    assert study_form.listed(None) == [] and study_form.seeds("3", 5) == [5, 6, 7] and study_form.seeds("", None) == []
    assert study_form.example("a {a} {b}", ["red"], ["cross"]) == "First: “a red cross”."
    assert "each once" in study_form.example("a {a}", ["red"], ["cross"]) and "needs a word" in study_form.example(
        "{a} {b}", [], ["x"]
    )
    assert (
        study_form.foretold(100, 24).startswith("24 pictures, ≈ 2,400 forward passes")
        and study_form.foretold(9, 0) == ""
    )


# --- on a real server


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    settings = Settings(
        data=tmp_path_factory.mktemp("studies"), engine="inline", examples=False, field_guide=False, scenes=True,
        default_model=False, trust="request",
    )  # fmt: skip
    with TestClient(create(settings, token=TOKEN), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        yield http


@pytest.fixture(scope="module")
def done(http: TestClient) -> str:
    words = {
        "template": "a {a} {b} left of a blue cross",
        "first": ["red", "green"],
        "second": ["circle", "cross"],
        "seeds": [0, 1],
    }
    body = {
        "model": "scenes-exact",
        "explainer": "diffusion-pid",
        "source": {"words": words},
        "params": {"nodes": "32", "steps": 8},
    }
    answer = http.post("/api/v1/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    end = time.monotonic() + 60
    while http.get(f"/api/v1/sweeps/{answer.json()['id']}").json()["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.1)
    return str(answer.json()["id"])


def shown(http: TestClient, id: str, **address: str) -> str:
    async def asked() -> str:
        credentials.set({"Authorization": f"Bearer {TOKEN}"})
        return flat(await study_panel.page(await ask(calls.sweep(id)), address))

    return str(http.portal.call(asked))  # type: ignore[union-attr] # the portal is there while the client is entered


def test_the_page_of_a_study_shows_the_numbers_of_the_api_and_the_pictures_of_a_cell(
    http: TestClient, done: str
) -> None:
    table = http.get(f"/api/v1/sweeps/{done}/study?column=redundant").json()
    said = shown(http, done, column="redundant", cell="1,0")
    assert all(studies.digits(c["mean"], 3) in said for row in table["cells"] for c in row)
    assert f"/api/v1/sweeps/{done}/study.csv" in said and "“green” and “circle”" in said
    items = http.get(f"/api/v1/sweeps/{done}/items").json()["items"]
    mine = [i["explanation"] for i in items if i["name"].startswith("green, circle")]
    others = {i["explanation"] for i in items} - set(mine)
    assert len(mine) == 2 and all(f"/e/{i}" in said for i in mine) and not any(f"/e/{i}" in said for i in others)
    assert "Interaction" in shown(http, done, column="beauty", cell="9,9"), (
        "nonsense in an address shows the first column"
    )


def test_the_list_says_where_a_study_is_and_a_sweep_over_pictures_has_no_table(http: TestClient, done: str) -> None:
    found = wire.Sweep.model_validate(http.get(f"/api/v1/sweeps/{done}").json())
    assert "study.csv" in flat(sweeps.head(found))
    source = wire.SweepSource(dataset="birds")
    other = found.model_copy(update={"request": found.request.model_copy(update={"source": source})})
    assert "study.csv" not in flat(sweeps.head(other))


def test_the_script_knows_the_same_views() -> None:
    script = (Path(studies.__file__).parent / "assets" / "studies.js").read_text()
    plain = studies.View()
    assert f'{{ column: "{plain.column}", rule: "{plain.rule}", scale: "{plain.scale}" }}' in script
