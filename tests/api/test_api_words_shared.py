"""Links to a result of words, and files of it: what it answers, the region that was marked, the word alone; what says nothing is refused."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient
from PIL import Image

from fanlight.app import create
from fanlight.artifact import Artifact
from fanlight.drawing.information import Read
from fanlight.drawing.number import digits

LEFT = "16x16.0." + ".".join(["8.8"] * 16)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("shared"), scenes=True)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        yield Api(started(http))


@pytest.fixture(scope="module")
def record(api: Api) -> dict[str, Any]:
    made = api.call("POST", "/inputs", json={"kind": "prompt", "value": "a red circle left of a blue cross"}).json()
    params = {"nodes": "32", "steps": 8, "guidance": 1}
    found: dict[str, Any] = api.explain(
        model="scenes-exact", input=made["id"], explainer="diffusion-pid", params=params
    )
    return found


def shared(api: Api, record: dict[str, Any], view: dict[str, Any]) -> Any:
    return api.call("POST", "/shares", json={"explanations": [record["id"]], "view": view})


def test_a_link_tells_of_the_region_and_the_word_that_were_looked_at(api: Api, record: dict[str, Any]) -> None:
    made = shared(api, record, {"region": LEFT, "word": 0}).json()
    assert made["title"] == "Which word put what where?"
    page = api.http.get(f"/s/{made['token']}").text
    assert "Which word put what where?" in page and "a red circle left of a blue cross" in page
    assert "128 of 256 places was marked: 50 % of the picture" in page and "“red” alone" in page
    assert "Inside the region" in page and "at most" in page
    picture = api.http.get(f"/s/{made['token']}/0/picture.png")
    plain = shared(api, record, {}).json()
    other = api.http.get(f"/s/{plain['token']}/0/picture.png")
    assert picture.status_code == other.status_code == 200 and picture.content != other.content
    said = api.http.get(f"/s/{plain['token']}").text
    assert "Inside the region" not in said and "picture.png" not in said, "what holds its picture is drawn alone"


@pytest.mark.parametrize("view", [{"region": "16x16.1"}, {"region": 3}, {"word": "red"}])
def test_a_view_that_says_nothing_is_refused(api: Api, record: dict[str, Any], view: dict[str, Any]) -> None:
    answer = shared(api, record, view)
    assert answer.status_code == 422 and next(iter(view)) in answer.json()["error"]["message"]


def file(api: Api, record: dict[str, Any], form: str, region: str | None = None) -> Any:
    params = {} if region is None else {"region": region}
    return api.call("GET", f"/explanations/{record['id']}/export.{form}", params=params)


def test_files_show_the_region_with_the_nats_of_every_word_inside(api: Api, record: dict[str, Any]) -> None:
    digest = record["artifacts"][0]["digest"]
    made = Artifact.from_bytes(api.call("GET", f"/artifacts/{digest}/raw").content)
    read = Read(made)
    here = np.zeros((16, 16), bool)
    here[:, :8] = True
    wanted = {
        w[2]: float(read.map(m)[here].sum()) for w, m in zip(made.meta["words"], made.meta["singles"], strict=True)
    }
    inside = file(api, record, "json", LEFT).json()["inside"]
    found = {row[0]: row[1] for row in inside["rows"]}
    assert {name: found[name] for name in wanted} == pytest.approx(wanted, rel=1e-3) and len(wanted) >= 4
    assert "inside" not in file(api, record, "json").json()

    svg = ET.fromstring(file(api, record, "svg", LEFT).content)
    texts = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}text")]
    assert "in the region" in texts and "nat inside" in texts
    assert all(digits(float(f"{value:.4g}")) in texts for value in wanted.values())
    assert "Inside the region" in file(api, record, "html", LEFT).text
    assert "in the region" not in file(api, record, "svg").text

    plain, marked = (Image.open(io.BytesIO(file(api, record, "png", r).content)) for r in (None, LEFT))
    assert marked.height > plain.height, "a table more"
    right = [np.asarray(i.convert("L"), float)[130:400, 400:640].mean() for i in (plain, marked)]
    assert right[1] < 0.9 * right[0], "what is outside is darker"
    longer, report = (file(api, record, "pdf", r).content for r in (LEFT, None))
    assert longer.startswith(b"%PDF-") and len(longer) != len(report)


@pytest.mark.parametrize(
    ("form", "region", "said"),
    [
        ("svg", "16x16.1", "base 36"),
        ("svg", "4x4.5.2.2.2.5", "The maps of this result have 16 x 16 places."),
        ("csv", LEFT, "A region is drawn in html, pdf, svg, png, json; csv holds the whole result."),
    ],
)
def test_a_region_that_cannot_be_shown_is_refused(
    api: Api, record: dict[str, Any], form: str, region: str, said: str
) -> None:
    answer = file(api, record, form, region)
    assert answer.status_code == 422 and said in answer.json()["error"]["message"]


def test_other_kinds_of_results_have_no_region(api: Api) -> None:
    other = api.explain(input=api.upload(noise(3))["id"])
    answer = file(api, other, "svg", LEFT)
    assert answer.status_code == 422 and "results of words; this is another" in answer.json()["error"]["message"]
