"""Lists of words against each other as a sweep: its table is that of the stored pictures and of the numeric part; what is refused; cancel."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient
from sweeps_rig import items, over

from fanlight.app import create
from fanlight_models.diffusion import Sampling, generate, study
from fanlight_models.worlds import scenes
from fanlight_models.worlds.scenes.bayes import Bayes

MODEL, TEMPLATE = "scenes-exact", "a {a} {b} left of a blue cross"
FIRST, SECOND, SEEDS = ["red", "green"], ["circle", "cross"], [3, 5]
FAST = {"nodes": "32", "steps": 8}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("studies"), scenes=True)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        yield Api(started(http))


def ask(api: Api, model: str = MODEL, explainer: str = "diffusion-pid", params: Any = FAST, **lists: Any) -> Any:
    words = {"template": TEMPLATE, "first": FIRST, "second": SECOND, "seeds": SEEDS, **lists}
    body = {"model": model, "explainer": explainer, "source": {"words": words}, "params": params}
    return api.call("POST", "/sweeps", json=body)


@pytest.fixture(scope="module")
def done(api: Api) -> dict[str, Any]:
    answer = ask(api)
    assert answer.status_code == 201, answer.text
    assert answer.json()["about"] == f"8 pictures of “{TEMPLATE}”: 2 times 2 words, 2 seeds."
    found = over(api, answer.json()["id"])
    assert found["state"] == "done" and found["counts"]["succeeded"] == 8, found
    return found


@pytest.fixture(scope="module")
def numeric() -> list[study.Row]:
    """The same by the numeric part alone, the noise of a picture's measurement from its seed as well."""
    model, found = Bayes(scenes.world()), []
    for seed in SEEDS:
        how, asked = generate.Drawing(steps=8, guidance=1), Sampling(nodes=32, seed=seed)
        found += study.study(model, FIRST, SECOND, TEMPLATE, seeds=[seed], drawing=how, sampling=asked)
    return found


def test_the_table_is_that_of_the_numeric_part(api: Api, done: dict[str, Any], numeric: list[study.Row]) -> None:
    for column in ("both_total", "redundant", "unique_first", "unique_second", "synergy", "interaction"):
        found = api.call("GET", f"/sweeps/{done['id']}/study?column={column}").json()
        assert found["complete"] and found["n"] == found["total"] == 8 and found["guidance"] == 1
        wanted = study.table(numeric, column)
        assert (tuple(found["first"]), tuple(found["second"])) == (wanted.firsts, wanted.seconds)
        ours = np.array([[c["mean"] for c in row] for row in found["cells"]])
        np.testing.assert_allclose(ours, wanted.mean, rtol=1e-3, atol=1e-3)
        normal = np.array([[c["normalised"] for c in row] for row in found["cells"]])
        np.testing.assert_allclose(normal, (ours - ours.min()) / (ours.max() - ours.min()), rtol=1e-4)
        assert (found["lowest"], found["highest"]) == pytest.approx((ours.min(), ours.max()))
        assert all(c["n"] == 2 and c["lo"] <= c["mean"] <= c["hi"] for row in found["cells"] for c in row)


def test_rows_of_the_file_are_the_numbers_of_their_pictures(api: Api, done: dict[str, Any]) -> None:
    text = api.call("GET", f"/sweeps/{done['id']}/study.csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["first"], r["second"], int(r["seed"])) for r in rows] == [
        (a, b, s) for s in SEEDS for a in FIRST for b in SECOND
    ]
    for row in rows[:3]:
        record = api.call("GET", f"/explanations/{row['explanation']}").json()
        assert record["seed"] == int(row["seed"])
        detail = api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}").json()["detail"]
        assert detail["prompt"] == TEMPLATE.format(a=row["first"], b=row["second"])
        shown = {m["name"]: m["sum"] for m in detail["maps"]}
        assert [detail["maps"][n]["title"] for n in (0, 1)] == [row["first"], row["second"]]
        for name, of in (("redundant", "redundant"), ("unique_first", "unique_a"), ("unique_second", "unique_b")):
            assert float(row[name]) == pytest.approx(shown[of], rel=1e-3, abs=1e-6)
        assert float(row["both_total"]) == pytest.approx(detail["signed"]["both"]["value"])
        assert float(row["interaction"]) == pytest.approx(detail["interaction"]["value"])
    wide = csv.DictReader(io.StringIO(api.call("GET", f"/sweeps/{done['id']}/study.csv?rule=pointwise").text))
    for one, other in zip(rows, wide, strict=True):
        assert float(one["redundant"]) <= float(other["redundant"])
        assert float(one["interaction"]) == float(other["interaction"])


def test_items_know_their_prompts_and_the_same_again_is_reused(api: Api, done: dict[str, Any]) -> None:
    found = items(api, done["id"])
    assert found[1]["name"] == "red, cross, seed 3" and all(i["input"] and i["state"] == "succeeded" for i in found)
    prompt = api.call("GET", f"/inputs/{found[1]['input']}").json()
    assert prompt["text"] == "a red cross left of a blue cross"
    again = over(api, ask(api).json()["id"])
    assert again["reused"] == 8
    page = api.call("GET", f"/sweeps/{done['id']}/summary?wait=20").json()
    assert page["n"] == 8 and page["labelled"] == 0


def test_a_word_that_stands_twice_is_the_one_of_the_template(api: Api) -> None:
    # “cross” of the template is not the one of the list, whatever comes first
    found = over(api, ask(api, first=["blue"], second=["cross"], seeds=[0]).json()["id"])
    assert found["counts"]["succeeded"] == 1, items(api, found["id"])
    record = api.call("GET", f"/explanations/{items(api, found['id'])[0]['explanation']}").json()
    assert record["params"]["words"] == "blue#1, cross#1" and not record["params"]["all_pairs"]
    detail = api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}").json()["detail"]
    assert np.array(detail["maps"][2]["values"])[:, :8].sum() > 0.9 * detail["maps"][2]["sum"]


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"template": "a {a} cross"}, 422, "{a} and {b} once each"),
        ({"template": "a {a}ish {b}"}, 422, "only a part of another word"),
        ({"first": ["red, or green"]}, 422, "is no word to compare"),
        ({"first": ["!"]}, 422, "is no word to compare"),
        ({"first": []}, 422, "at least 1"),
        ({"first": ["red", "Red"]}, 422, "twice"),
        ({"seeds": [1, 1]}, 422, "twice"),
        ({"first": ["red", "purple"]}, 422, "“purple” is no word of this world"),
        ({"second": ["circle", "dog"]}, 422, "“dog” is no word of this world"),
        ({"seeds": [-1]}, 422, "greater than or equal to 0"),
        ({"seeds": list(range(1000)), "second": [f"w{n}" for n in range(20)]}, 422, "2 times 20 words and 1000 seeds are 40,000"),
        ({"params": {"nodes": "33"}}, 422, "nodes"),
        ({"model": "tiny", "explainer": "saliency", "params": {}}, 422, "does not compare two words"),
        ({"model": "nobody"}, 404, "nobody"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(api: Api, changes: dict[str, Any], status: int, said: str) -> None:
    answer = ask(api, **changes)
    assert answer.status_code == status and said in answer.json()["error"]["message"], answer.text
    assert answer.json()["error"]["code"] != "internal"


def test_a_sweep_over_pictures_has_no_study_and_words_no_data_set(api: Api, done: dict[str, Any]) -> None:
    unknown = api.call("GET", f"/sweeps/{done['id']}/study?column=beauty")
    assert unknown.status_code == 422 and "interaction" in unknown.json()["error"]["allowed"]
    body = {"model": MODEL, "explainer": "diffusion-pid", "source": {"dataset": "birds"}}
    refused = api.call("POST", "/sweeps", json=body)
    assert refused.status_code == 422 and "draws from words" in refused.json()["error"]["message"]
    both = {**body, "source": {"dataset": "birds", "words": {"first": ["a"], "second": ["b"]}}}
    assert api.call("POST", "/sweeps", json=both).status_code == 422
    assert api.call("GET", "/sweeps/nothing/study").status_code == 404


def test_it_is_paused_resumed_and_cancelled_and_the_table_says_what_is_there(api: Api) -> None:
    answer = ask(api, seeds=list(range(40, 60)), params={"nodes": "100", "steps": 20})
    ident = answer.json()["id"]
    end = time.monotonic() + 60
    while api.call("GET", f"/sweeps/{ident}/study").json()["n"] < 1:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert api.call("POST", f"/sweeps/{ident}/pause").json()["state"] == "paused"
    assert api.call("POST", f"/sweeps/{ident}/resume").json()["state"] == "running"
    found = api.call("POST", f"/sweeps/{ident}/cancel").json()
    assert found["state"] == "cancelled" and found["counts"]["cancelled"] > 0
    part = api.call("GET", f"/sweeps/{ident}/study").json()
    assert 1 <= part["n"] < part["total"] == 80 and not part["complete"]
    assert sum(c["n"] for row in part["cells"] for c in row) == part["n"]


def test_it_goes_on_after_the_server_was_stopped(tmp_path: Path) -> None:
    given = settings(tmp_path, scenes=True)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        first = Api(started(http))
        ident = ask(first, params={"nodes": "100", "steps": 20}, seeds=list(range(6))).json()["id"]
        end = time.monotonic() + 60
        while not (known := items(first, ident, state="succeeded")):
            assert time.monotonic() < end
            time.sleep(0.02)
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        second = Api(started(http))
        found = over(second, ident, 120)
        assert found["state"] == "done" and found["counts"]["succeeded"] == 24, found
        again = {i["position"]: i["explanation"] for i in items(second, ident)}
        assert all(again[i["position"]] == i["explanation"] for i in known), "nothing is computed twice"
        assert second.call("GET", f"/sweeps/{ident}/study").json()["n"] == 24
