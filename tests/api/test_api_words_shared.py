"""A link to a result of words: what it answers, the region that was marked, the word alone; a view that says nothing is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create

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
