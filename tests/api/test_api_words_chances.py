"""Probabilities of words over the wire: equal, from tables, of a masked language model that the operator named; the edit that comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from fanlight.wire.chances import MOST
from support.language import SPECIAL, bert, transformers

MODEL, TEXT = "scenes-exact", "a red circle left of a blue cross"
WORDS = ["red", "circle", "left", "blue", "cross"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bert(tmp_path_factory.mktemp("language") / "tiny-bert", sorted({*TEXT.split()}))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("chances"), scenes=True, word_model=folder)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        yield Api(started(http))


@pytest.fixture(scope="module")
def record(api: Api) -> dict[str, Any]:
    made = api.call("POST", "/inputs", json={"kind": "prompt", "value": TEXT}).json()
    found = api.explain(model=MODEL, explainer="diffusion-pid", input=made["id"], params={"nodes": "32", "steps": 8})
    assert found["state"] == "succeeded", found["error"]
    return found


def chances(api: Api, record: dict[str, Any], **body: Any) -> Any:
    return api.call("POST", f"/explanations/{record['id']}/probabilities", json=body)


def live(api: Api, record: dict[str, Any], seq: int, *edits: Any) -> Any:
    body = {"session": "c" * 8, "explanation": record["id"], "edits": list(edits), "seq": seq}
    answer = api.call("POST", "/live", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["detail"]


def test_the_language_model_says_what_its_network_says(api: Api, record: dict[str, Any], folder: Path) -> None:
    found = chances(api, record, source="masked").json()
    assert [w["text"] for w in found["words"]] == WORDS and "tiny-bert" in found["about"]
    model = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    ids = [SPECIAL.index("[CLS]")]
    pieces = [*SPECIAL, *sorted({*TEXT.split()})]
    ids += [pieces.index(w) for w in TEXT.split()] + [SPECIAL.index("[SEP]")]
    for word in found["words"]:
        place = 1 + TEXT.split().index(word["text"])
        asked = list(ids)
        asked[place] = SPECIAL.index("[MASK]")
        with torch.inference_mode():
            said = model(torch.tensor([asked])).logits[0, place].double().softmax(0)[ids[place]]
        assert word["probability"] == pytest.approx(float(said), rel=1e-4)
    assert len({w["probability"] for w in found["words"]}) == len(WORDS)


def test_the_edit_weighs_every_pair_live_and_saved(api: Api, record: dict[str, Any]) -> None:
    given = chances(api, record, source="masked").json()
    p = [w["probability"] for w in given["words"]]
    plain = live(api, record, 1, {"set_rule": "pointwise"})
    shown = live(api, record, 2, given["edit"])
    assert (
        shown["probabilities"] == p
        and shown["chances"] == p[:2]
        and shown["source"] == "the masked language model tiny-bert"
    )
    maps = {m["name"]: np.array(m["values"]) for m in shown["maps"]}
    h = -np.log(p[:2])
    wanted = np.maximum(maps["a"] - (h[0] - h.min()), maps["b"] - (h[1] - h.min()))
    np.testing.assert_allclose(maps["redundant"], wanted, atol=2e-3 * np.abs(wanted).max())
    assert [m["pair"] for m in shown["matrix"]] == [m["pair"] for m in plain["matrix"]]
    differing = [a["redundant"] != b["redundant"] for a, b in zip(shown["matrix"], plain["matrix"], strict=True)]
    assert all(differing), "every pair has the probabilities of its words"
    other = live(api, record, 3, given["edit"], {"set_words": [3, 1]})
    assert other["chances"] == [p[3], p[1]]
    of_pair = next(m for m in shown["matrix"] if m["pair"] == [1, 3])
    sums = {m["name"]: m["sum"] for m in other["maps"]}
    assert sums["redundant"] == pytest.approx(of_pair["redundant"], rel=1e-6)
    kept = api.call("POST", "/interventions", json={"explanation": record["id"], "edits": [given["edit"]]})
    done = api.finished(kept.json()["id"])
    assert done["state"] == "succeeded" and done["edits"] == [given["edit"]]


def test_tables_are_probabilities_or_counts(api: Api, record: dict[str, Any]) -> None:
    table = {"Red": 0.2, "circle": 0.1, "left": 0.05, "blue": 0.2, "cross": 1e-30, "never": 0.4}
    found = chances(api, record, source="table", table=table).json()
    assert [w["probability"] for w in found["words"]] == [0.2, 0.1, 0.05, 0.2, 1e-12], "none is impossible"
    counts = {"red": 30, "RED": 10, "circle": 20, "left": 20, "blue": 10, "cross": 10}
    found = chances(api, record, source="counts", table=counts).json()
    assert [w["probability"] for w in found["words"]] == [0.4, 0.2, 0.2, 0.1, 0.1]
    among = chances(api, record, source="counts", table=counts, total=1000).json()
    assert [w["probability"] for w in among["words"]] == [0.04, 0.02, 0.02, 0.01, 0.01]
    assert live(api, record, 10, found["edit"])["source"] == "a table of 6 words"
    uniform = chances(api, record, source="uniform").json()
    assert uniform["edit"] == {"set_rule": "pointwise"} and uniform["words"][0]["probability"] is None


def test_words_in_a_row_have_the_product_unless_they_are_in_the_table(api: Api) -> None:
    from fanlight.service.chances import listed

    table = {"fire": 0.1, "truck": 0.2, "tall tree": 0.3}
    assert listed(["fire truck", "Tall  tree"], table, 1.0) == pytest.approx([0.02, 0.3])


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"source": "table", "table": {"red": 0.1}}, "unknown_word", "The table has no “circle”"),
        ({"source": "table"}, None, "a table goes with"),
        ({"source": "masked", "table": {"red": 0.1}}, None, "a table goes with"),
        ({"source": "table", "table": {"red": 2}}, None, "up to 1"),
        ({"source": "counts", "table": {"red": 0}}, None, "greater than 0"),
        ({"source": "counts", "table": {}}, None, "at least 1"),
        ({"source": "counts", "table": {"x" * 101: 1}}, None, "at most 100"),
        ({"source": "counts", "table": {f"w{n}": 1 for n in range(MOST + 1)}}, None, "more than 1,000"),
        ({"source": "counts", "table": {"red": 3}, "total": 2}, None, "no less than their sum"),
        ({"source": "table", "table": {"red": 0.3}, "total": 2}, None, "total goes with counts"),
        ({"source": "folder", "table": None}, None, "masked"),
        ({"source": "masked", "folder": "/etc"}, None, "folder"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(api: Api, record: dict[str, Any], body: Any, code: str | None, said: str) -> None:
    answer = chances(api, record, **body)
    assert answer.status_code == 422 and said in answer.text, answer.text[:300]
    assert code is None or answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    "rule",
    [
        ["pointwise", [0.1, 0.2]],
        ["pointwise", [0.1, 0.2, 0.3, 0.4, 0]],
        ["pointwise", [0.1, 0.2, 0.3, 0.4, 2]],
        ["pointwise", [0.1, 0.2, 0.3, 0.4, "1"]],
        ["min", [0.1, 0.2, 0.3, 0.4, 0.5]],
        ["pointwise", [0.1, 0.2, 0.3, 0.4, 0.5], ""],
        ["pointwise", [0.1, 0.2, 0.3, 0.4, 0.5], "x" * 101],
        ["pointwise", [0.1, 0.2, 0.3, 0.4, 0.5], 7],
        ["pointwise"],
    ],
)
def test_probabilities_that_are_none_are_no_edit(api: Api, record: dict[str, Any], rule: Any) -> None:
    body = {"session": "e" * 8, "explanation": record["id"], "edits": [{"set_rule": rule}], "seq": 1}
    answer = api.call("POST", "/live", json=body)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_edit", answer.text


def test_a_result_about_a_picture_has_no_words(api: Api) -> None:
    found = api.explain(input=api.upload(noise(1))["id"])
    answer = chances(api, found, source="uniform")
    assert answer.status_code == 409 and answer.json()["error"]["code"] == "not_editable"


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("none", "not_configured", "no language model"),
        ("gone", "bad_model", "There is no folder “gone”"),
        ("pickled", "bad_model", "pickles are not opened"),
    ],
)
def test_a_server_without_a_language_model_says_so(
    folder: Path, tmp_path: Path, kind: str, code: str, said: str
) -> None:
    (tmp_path / "pickled").mkdir()
    (tmp_path / "pickled" / "pytorch_model.bin").write_bytes(b"x")
    given = settings(tmp_path, scenes=True, word_model=None if kind == "none" else tmp_path / kind)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        made = api.call("POST", "/inputs", json={"kind": "prompt", "value": TEXT}).json()
        params = {"nodes": "32", "steps": 4, "all_pairs": False}
        record = api.explain(model=MODEL, explainer="diffusion-pid", input=made["id"], params=params)
        answer = chances(api, record, source="masked")
        assert answer.json()["error"]["code"] == code and said in answer.text, answer.text
        assert str(tmp_path) not in answer.text, "where it lies is nobody's business"
