"""Words and pictures through the whole server: drawn, measured, changed live, drawn again, of a given picture, shared, exported."""

from __future__ import annotations

import io
import math
import time
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from api_rig import TOKEN, Api, png, settings, started
from fastapi.testclient import TestClient
from PIL import Image

from fanlight.app import create
from fanlight.service import sensible
from fanlight_models.worlds import scenes

MODEL, TEXT = "scenes-exact", "a red circle left of a blue cross"
FAST = {"nodes": "32", "steps": 20}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("words"), scenes=True)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(create(given, token=TOKEN, pages=False), headers=headers) as http:
        yield Api(started(http))


def prompt(api: Api, value: Any = TEXT) -> str:
    answer = api.call("POST", "/inputs", json={"kind": "prompt", "value": value})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def asked(api: Api, value: Any = TEXT, seed: int = 0, **params: Any) -> dict[str, Any]:
    return api.explain(
        model=MODEL, explainer="diffusion-pid", input=prompt(api, value), seed=seed, params={**FAST, **params}
    )


@pytest.fixture(scope="module")
def record(api: Api) -> dict[str, Any]:
    found = asked(api)
    assert found["state"] == "succeeded", found["error"]
    return found


def told(api: Api, record: dict[str, Any]) -> dict[str, Any]:
    answer = api.call("GET", f"/artifacts/{record['artifacts'][0]['digest']}")
    assert answer.status_code == 200, answer.text
    return answer.json()["detail"]  # type: ignore[no-any-return]


def live(api: Api, record: dict[str, Any], seq: int, *edits: dict[str, Any]) -> Any:
    return api.call(
        "POST", "/live", json={"session": "w" * 8, "explanation": record["id"], "edits": list(edits), "seq": seq}
    )


def saved(api: Api, record: dict[str, Any], *edits: dict[str, Any]) -> dict[str, Any]:
    answer = api.call("POST", "/interventions", json={"explanation": record["id"], "edits": list(edits)})
    assert answer.status_code in (200, 202), answer.text
    return api.finished(answer.json()["id"])


def maps(detail: dict[str, Any]) -> dict[str, Any]:
    return {m["name"]: np.array(m["values"]) for m in detail["maps"]}


def test_the_model_is_offered_as_one_that_takes_words(api: Api) -> None:
    found = {m["id"]: m for m in api.call("GET", "/models").json()}
    assert found[MODEL]["task"] == "text-to-image" and found[MODEL]["takes"] == "prompt"
    assert found["tiny"]["takes"] == "image"
    assert [e["name"] for e in found[MODEL]["explainers"] if e["available"]] == ["diffusion-pid"]
    info = next(e for e in api.call("GET", "/explainers").json() if e["name"] == "diffusion-pid")
    assert (
        set(info["asks"])
        == {"drop_word", "replace_word", "exchange_words", "reorder_words", "weigh_word"}
        < set(info["edits"])
    )


def test_seven_maps_add_up_and_words_are_known(api: Api, record: dict[str, Any]) -> None:
    detail = told(api, record)
    found = maps(detail)
    assert list(found) == ["a", "b", "both", "redundant", "unique_a", "unique_b", "synergy"]
    atoms = sum(found[n] for n in ("redundant", "unique_a", "unique_b", "synergy"))
    np.testing.assert_allclose(atoms, found["both"], atol=2e-3 * found["both"].max())
    np.testing.assert_allclose(found["redundant"] + found["unique_b"], found["b"], atol=2e-3 * found["b"].max())
    # red and circle are independent words: ln 4 and ln 2 of the picture, together ln 8
    for name, exact in (("a", math.log(4)), ("b", math.log(2)), ("both", math.log(8))):
        signed = detail["signed"][name]
        assert abs(signed["value"] - exact) < 4 * signed["error"], (name, signed)
        assert not detail["contradicted"][name]
    assert detail["drawn"] == {"seed": 0, "steps": 20, "guidance": 1}, "as is usual for the scenes"
    assert detail["evaluations"] == 32 * 17 and detail["floor"] == pytest.approx(0, abs=1e-9)
    assert np.abs(detail["floor_map"]["values"]).max() < 1e-9 and detail["floor_map"]["image"].startswith(
        "data:image/png"
    )
    assert detail["attention"] == [], "the optimum has no layers"
    assert "guidance" not in record["summary"] and record["provenance"]["forwards"] >= detail["evaluations"]


def test_the_left_object_is_where_its_words_are(api: Api, record: dict[str, Any]) -> None:
    found = maps(told(api, record))
    left = found["both"][:, :8].sum()
    assert left > 0.9 * found["both"].sum()


def test_live_edits_change_words_rule_and_band(api: Api, record: dict[str, Any]) -> None:
    first = told(api, record)
    words = [w[2] for w in first["words"]]
    pair = [words.index("blue"), words.index("red")]
    panel = live(api, record, 1, {"set_words": pair}).json()["detail"]
    assert panel["pair"] == pair and [m["title"] for m in panel["maps"]][:2] == ["blue", "red"]
    assert maps(panel)["a"][:, 8:].sum() > 0.8 * maps(panel)["a"].sum()
    wide = live(api, record, 2, {"set_rule": "pointwise"}).json()["detail"]
    np.testing.assert_allclose(
        maps(wide)["redundant"], np.maximum(maps(first)["a"], maps(first)["b"]), atol=1e-3 * maps(first)["a"].max()
    )
    likelier = live(api, record, 3, {"set_rule": ["pointwise", 0.2, 0.001]}).json()["detail"]
    np.testing.assert_allclose(maps(likelier)["redundant"], maps(first)["a"], atol=1e-3 * maps(first)["a"].max())
    low, high = (
        live(api, record, n, {"set_band": band}).json()["detail"] for n, band in ((4, [-40, 0]), (5, [0.0001, 40]))
    )
    np.testing.assert_allclose(
        maps(low)["both"] + maps(high)["both"], maps(first)["both"], atol=2e-3 * maps(first)["both"].max()
    )
    assert live(api, record, 6).json()["detail"] == first, "no edits: as it was found"


def test_drawing_again_is_a_job_and_no_live_answer(api: Api, record: dict[str, Any]) -> None:
    detail = told(api, record)
    red = next(n for n, t in enumerate(detail["tokens"]) if t[2] == "red")
    for edit in ({"drop_word": red}, {"replace_word": [red, "green"]}):
        refused = live(api, record, 10, edit)
        assert refused.status_code == 422 and refused.json()["error"]["code"] == "not_editable"
        assert "asks the model again" in refused.json()["error"]["message"]
    kept = saved(api, record, {"replace_word": [red, "yellow"]}, {"set_rule": "pointwise"})
    assert kept["state"] == "succeeded" and kept["parent"] == record["id"], kept
    shown = told(api, kept)
    assert shown["rule"] == "pointwise" and shown["redrawn"] == {"replace_word": [red, "yellow"]}
    before, after = (
        np.asarray(Image.open(io.BytesIO(b64decode(shown[n].partition(",")[2]))).convert("RGB"), float)
        for n in ("picture", "changed")
    )
    moved = np.abs(before - after).mean(2)
    assert moved[:, :8].sum() > 0.9 * moved.sum(), "the left object alone has another colour"
    np.testing.assert_allclose(np.array(shown["moved"]["values"]), moved / 127.5, atol=2e-3)
    words = [w[2] for w in shown["words"]]
    single = next(s for s in shown["singles"] if words[s["word"]] == "red")
    np.testing.assert_allclose(shown["moved"]["foretold"], single["values"])
    expected = np.corrcoef(np.ravel(shown["moved"]["values"]), np.ravel(single["values"]))[0, 1]
    assert shown["moved"]["correlation"] == pytest.approx(expected, rel=1e-3)
    ours = shown["moved"]["correlations"]["a"]
    assert ours == pytest.approx(
        np.corrcoef(np.ravel(shown["moved"]["values"]), maps(shown)["a"].ravel())[0, 1], rel=1e-3
    )
    assert 0.5 < shown["moved"]["correlation"] <= 1 and "“yellow” for “red”" in kept["summary"]
    # it replays to the same bytes, and live on it everything but the redrawing can be changed
    again = api.call("POST", f"/explanations/{kept['id']}/recompute").json()
    assert api.finished(again["id"])["verified"]["equal"]
    panel = live(api, kept, 11, {"replace_word": [red, "yellow"]}, {"set_band": [-2, 2]}).json()["detail"]
    assert panel["changed"] == shown["changed"] and panel["band"] == [-2, 2]
    assert live(api, kept, 12).json()["detail"] == detail


def test_words_are_dropped_exchanged_and_weighed(api: Api, record: dict[str, Any]) -> None:
    tokens = [t[2] for t in told(api, record)["tokens"]]
    red, blue = tokens.index("red"), tokens.index("blue")
    exchanged = told(api, saved(api, record, {"exchange_words": [blue, red]}))
    assert exchanged["redrawn_as"] == "“red” and “blue” exchanged" and len(exchanged["moved"]["words"]) == 2
    order = [0, blue, 2, 3, 4, 5, red, 7]
    moved = told(api, saved(api, record, {"reorder_words": order}))
    assert moved["changed"] == exchanged["changed"], "the two words in each other's place are an order too"
    assert moved["redrawn_as"] == "in the order “a blue circle left of a red cross”"
    assert moved["moved"]["correlation"] == exchanged["moved"]["correlation"] > 0.5
    same = told(api, saved(api, record, {"weigh_word": [red, 1]}))
    assert np.array(same["moved"]["values"]).max() < 0.02, "weighed by 1 it is the same picture"
    dropped = told(api, saved(api, record, {"drop_word": red}))
    gone = told(api, saved(api, record, {"weigh_word": [red, 0]}))
    assert dropped["changed"] and gone["changed"] and dropped["redrawn_as"] == "without “red”"


def test_other_words_of_the_same_picture_ask_nothing_again(api: Api, record: dict[str, Any]) -> None:
    other = asked(api, words="blue, cross")
    assert other["provenance"]["forwards"] == 0, "all pairs were measured"
    assert told(api, other)["evaluations"] == 32 * 17
    fresh = asked(api, seed=7, all_pairs=False)
    alone = asked(api, seed=7, all_pairs=False, context=False)
    assert fresh["provenance"]["forwards"] == 32 * 5 + 20 and alone["provenance"]["forwards"] == 32 * 5
    again = api.call("POST", f"/explanations/{other['id']}/recompute").json()
    assert api.finished(again["id"])["verified"]["equal"]


def test_it_stops_at_a_target_error(api: Api) -> None:
    found = told(api, asked(api, seed=1, nodes="256", all_pairs=False, stop_at=0.3))
    assert 16 <= found["nodes"] < 256 and max(s["error"] for s in found["signed"].values()) <= 0.3


def shown(scene: scenes.Scene) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """(side, side, 3)."""
    return np.round((np.clip(scene.image, -1, 1) + 1) * 127.5).astype(np.uint8).transpose(1, 2, 0)


def test_a_given_picture_with_a_caption(api: Api) -> None:
    scene = scenes.draw(scenes.world("plain"), 3, 0)
    wide = np.full((16, 24, 3), 13, np.uint8)
    wide[:, 4:20] = shown(scene)
    picture = api.upload(png(wide))["id"]
    first, second = scene.prompt.split()[1:3]
    found = asked(api, {"text": scene.prompt, "picture": picture}, words=f"{first}, {second}#1")
    assert found["state"] == "succeeded", found["error"]
    detail = told(api, found)
    assert detail["drawn"] is None and "middle 16 x 16" in detail["fitted"] and "24 x 16" in found["summary"]
    both = detail["signed"]["both"]
    assert abs(both["value"] - math.log(8)) < 4 * both["error"] and "guidance" not in found["summary"]
    refused = api.call("POST", "/interventions", json={"explanation": found["id"], "edits": [{"drop_word": 1}]})
    assert refused.status_code == 422 and "given, not drawn" in refused.json()["error"]["message"]


def test_a_caption_that_is_not_true_is_contradicted(api: Api) -> None:
    scene = scenes.draw(scenes.world("plain"), 3, 0)
    words = scene.prompt.split()
    wrong = next(c for c in ("red", "green", "blue", "yellow") if c != words[1])
    text = " ".join([words[0], wrong, *words[2:]])
    picture = api.upload(png(shown(scene)))["id"]
    found = told(api, asked(api, {"text": text, "picture": picture}, words=f"{wrong}#1, {words[2]}#1", all_pairs=False))
    assert found["contradicted"]["a"] and found["signed"]["a"]["value"] < 0 < maps(found)["a"].sum()


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (TEXT, "red, dog", "“dog” is not in the prompt"),
        (TEXT, "red, a", "say which, from 1 to 2"),
        (TEXT, "red, a#3", "there is no occurrence 3"),
        (TEXT, "red, a#x", "in whole numbers"),
        (TEXT, "red", "names 1"),
        (TEXT, "red, red", "named twice"),
        ("the red", "", "Name two"),
        ("a red dog left of a blue cross", "", "“dog” is no word of this world"),
        ("a red circle circle circle left of a blue cross", "red, blue", "No scene of this world"),
        ("a red circle left of a blue cross " + "and " * 60 + "left", "red, left#2", "never sees its end"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(api: Api, text: str, words: str, said: str) -> None:
    before = api.call("GET", "/jobs").json()["total"]
    given = {
        "model": MODEL,
        "explainer": "diffusion-pid",
        "input": prompt(api, text),
        "params": {**FAST, "words": words},
    }
    answer = api.ask(**given)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "bad_prompt", answer.text
    assert said in answer.json()["error"]["message"]
    assert api.call("GET", "/jobs").json()["total"] == before, "nothing was promised"


def test_a_repeated_word_can_be_chosen(api: Api) -> None:
    detail = told(api, asked(api, "a red circle left of a red cross", words="red#2, red#1", all_pairs=False))
    assert detail["pair"] == [1, 0]
    assert maps(detail)["a"][:, 8:].sum() > 0.8 * maps(detail)["a"].sum()


def test_what_a_long_prompt_loses_is_said(api: Api) -> None:
    found = asked(api, TEXT + " " + "and " * 60 + "the end")
    assert found["state"] == "succeeded" and "never saw “and and" in found["summary"], found


def test_edits_that_make_no_sense_are_refused(api: Api, record: dict[str, Any]) -> None:
    wrong: list[dict[str, Any]] = [
        {"set_words": [0, 0]},
        {"set_words": [0, 99]},
        {"set_rule": "max"},
        {"set_rule": ["pointwise", 0, 1]},
        {"set_band": [2, 1]},
        {"drop_word": 99},
        {"drop_word": True},
        {"replace_word": [1, " "]},
        {"exchange_words": [1, 1]},
        {"reorder_words": [0, 1, 2, 3, 4, 5, 6, 7]},
        {"reorder_words": [1, 0]},
        {"reorder_words": [0, 1, 2, 3, 4, 5, 6, 6]},
        {"reorder_words": 3},
        {"weigh_word": [1, 11]},
    ]
    for n, edit in enumerate(wrong):
        for answer in (
            live(api, record, 30 + n, edit),
            api.call("POST", "/interventions", json={"explanation": record["id"], "edits": [edit]}),
        ):
            assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_edit", answer.text
    hidden = api.call(
        "POST", "/interventions", json={"explanation": record["id"], "edits": [{"mask_region": [0, 0, 9, 9]}]}
    )
    assert hidden.status_code == 422 and hidden.json()["error"]["code"] == "not_editable"
    target = api.ask(model=MODEL, explainer="diffusion-pid", input=record["input"], target={"class": 0})
    assert target.status_code == 422 and "no class" in target.json()["error"]["message"]
    strange = api.ask(model=MODEL, explainer="diffusion-pid", input=record["input"], params={"guidance": 21})
    assert strange.status_code == 422 and strange.json()["error"]["code"] == "invalid_params"


def test_a_replacement_that_the_model_does_not_know_is_refused(api: Api, record: dict[str, Any]) -> None:
    for edit, said in (
        ({"replace_word": [1, "purple"]}, "“purple” is no word"),
        ({"replace_word": [1, "circle circle"]}, "No scene of this world"),
    ):
        answer = api.call("POST", "/interventions", json={"explanation": record["id"], "edits": [edit]})
        assert answer.status_code == 422 and answer.json()["error"]["code"] == "bad_prompt", answer.text
        assert said in answer.json()["error"]["message"]


def test_where_the_worker_does_not_answer_in_time_the_job_fails_in_the_same_sentence(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sensible, "WAIT", 0.0)
    found = asked(api, TEXT, words="red, dog")
    assert found["state"] == "failed" and found["error"]["code"] == "bad_prompt"
    assert "“dog” is not in the prompt" in found["error"]["message"]


def test_a_running_job_is_cancelled_and_stores_nothing(api: Api) -> None:
    given = {"model": MODEL, "explainer": "diffusion-pid", "input": prompt(api), "seed": 11}
    answer = api.ask(wait=0, **given, params={"nodes": "256", "steps": 200})
    assert answer.status_code == 202, answer.text
    job, end = answer.json()["job"], time.monotonic() + 30
    while not (seen := api.call("GET", f"/jobs/{job}").json())["progress"]:
        assert time.monotonic() < end and seen["state"] in ("queued", "running"), seen
        time.sleep(0.01)
    assert api.call("DELETE", f"/jobs/{job}").json()["state"] in ("running", "cancelled"), "it stops at its next step"
    record = api.finished(answer.json()["id"])
    assert record["state"] == "cancelled" and record["artifacts"] == []
    assert told(api, asked(api, seed=12, all_pairs=False))["nodes"] == 32, "the worker is free for the next"


def test_it_is_shared_exported_and_drawn_from_what_is_stored(api: Api, record: dict[str, Any]) -> None:
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    page = api.http.get("/s/" + share["token"])
    assert page.status_code == 200 and "DiffusionPID" in page.text
    digest = record["artifacts"][0]["digest"]
    for path in (f"/artifacts/{digest}/render.png", f"/explanations/{record['id']}/card.png"):
        drawn = api.call("GET", path)
        assert drawn.status_code == 200 and drawn.content[:4] in (b"\x89PNG", b"RIFF"), path
    for form in ("html", "pdf", "svg", "png", "csv", "parquet", "json", "bib"):
        file = api.call("GET", f"/explanations/{record['id']}/export.{form}")
        assert file.status_code == 200, (form, file.text[:300])
    rows = api.call("GET", f"/explanations/{record['id']}/export.csv").text.splitlines()
    assert rows[0] == (
        "row,column,red (nat),circle (nat),both (nat),redundant (nat),unique: red (nat),unique: circle (nat),synergy (nat),"
        "noise floor (nat)"
    )
    exported = np.array([[float(v) for v in r.split(",")] for r in rows[1:]])
    for n, (_, values) in enumerate(maps(told(api, record)).items(), 2):
        np.testing.assert_allclose(exported[:, n].reshape(16, 16), values, rtol=1e-3)
    sums = api.call("GET", f"/artifacts/{digest}/table.csv").text.splitlines()
    assert (
        sums[0].startswith("map,sum")
        and sums[1].startswith("red,")
        and sums[-2].startswith("synergy,")
        and sums[-1].startswith("noise floor,0")
    )
