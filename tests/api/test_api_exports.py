"""Every form of an exported explanation holds the numbers of the page; what cannot be exported is a sentence."""

from __future__ import annotations

import csv
import io
import json
import sys
import xml.etree.ElementTree as ET
from typing import Any, get_args

import numpy as np
import pytest
from api_rig import Api, noise, png
from PIL import Image

from fanlight.artifact import Artifact
from fanlight.drawing.number import signed
from fanlight.service.exports import Form

START = {"pdf": b"%PDF-", "png": b"\x89PNG", "parquet": b"PAR1", "svg": b"<svg", "html": b"<!doctype html>"}


def file(api: Api, ident: str, form: str, **headers: str) -> Any:
    return api.call("GET", f"/explanations/{ident}/export.{form}", headers=headers)


@pytest.fixture
def record(api: Api) -> dict[str, Any]:
    return api.explain(input=api.upload(noise(1), "my cat.png")["id"], explainer="integrated-gradients")


def stored(api: Api, record: dict[str, Any]) -> Artifact:
    return Artifact.from_bytes(api.http.get(record["artifacts"][0]["url"] + "/raw").content)


def test_every_form_is_a_file_of_its_kind(api: Api, record: dict[str, Any]) -> None:
    for form in get_args(Form):
        answer = file(api, record["id"], form)
        assert answer.status_code == 200, (form, answer.text)
        assert answer.content.startswith(START.get(form, b"")), form
        assert answer.headers["content-disposition"] == f'attachment; filename="fanlight-{record["id"]}.{form}"'
    assert file(api, record["id"], "docx").status_code == 422


def test_the_values_are_the_stored_ones_bit_for_bit(api: Api, record: dict[str, Any]) -> None:
    value = stored(api, record).arrays["value"]
    rows = list(csv.DictReader(io.StringIO(file(api, record["id"], "csv").text)))
    unit = record["artifacts"][0]["unit"]
    read = np.array([r[f"value ({unit})"] for r in rows], np.float32).reshape(value.shape)
    assert np.array_equal(read, value)
    assert [rows[65][k] for k in ("row", "column")] == ["1", "1"]
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(io.BytesIO(file(api, record["id"], "parquet").content))
    assert np.array_equal(table[f"value ({unit})"].to_numpy().reshape(value.shape), value)
    assert json.loads(table.schema.metadata[b"fanlight"])["id"] == record["id"]
    raw = api.http.get(record["artifacts"][0]["url"] + "/raw").content
    assert file(api, record["id"], "safetensors").content == raw


def test_regions_have_their_region_beside_each_value(api: Api) -> None:
    made = api.explain(input=api.upload(noise(3))["id"], explainer="occlusion")
    kinds = [a["kind"] for a in made["artifacts"]]
    rows = list(csv.DictReader(io.StringIO(file(api, made["id"], "csv").text)))
    assert ("region" in rows[0]) == (kinds == ["region-scores"])


def test_the_figure_says_scale_and_provenance_of_the_page(api: Api, record: dict[str, Any]) -> None:
    page = api.http.get(record["artifacts"][0]["url"]).json()
    root = ET.fromstring(file(api, record["id"], "svg").text)
    space = {"s": "http://www.w3.org/2000/svg"}
    said = " ".join(t.text or "" for t in root.iterfind("s:text", space))
    assert page["legend"]["unit"] in said and page["sentence"] in said
    assert signed(page["legend"]["hi"]) in said and signed(page["legend"]["lo"]) in said
    for word in (record["id"], "integrated", "seed: 0", record["provenance"]["model_digest"][:8]):
        assert word.lower() in said.lower()
    assert len(root.findall("s:image", space)) == 2
    width, height = (float(root.get(k, 0)) for k in ("width", "height"))
    for text in root.iterfind("s:text", space):
        assert 0 <= float(text.get("x", -1)) <= width and 0 < float(text.get("y", -1)) < height
    assert Image.open(io.BytesIO(file(api, record["id"], "png").content)).size == (width, height)


def test_json_and_bibtex_name_the_record_and_the_publication(api: Api, record: dict[str, Any]) -> None:
    page = api.http.get(record["artifacts"][0]["url"]).json()
    said = json.loads(file(api, record["id"], "json").text)
    assert said["explanation"]["id"] == record["id"] and said["sentence"] == page["sentence"]
    assert said["table"] == page["table"] and said["scale"]["hi"] == page["legend"]["hi"]
    assert said["facts"]["model"] == record["provenance"]["model_digest"]
    method = next(m for m in api.call("GET", "/explainers").json() if m["name"] == record["explainer"])
    assert file(api, record["id"], "bib").text.strip() == method["paper"]["bibtex"].strip() == said["bibtex"].strip()


def test_a_deleted_record_is_a_sentence_and_to_a_browser_a_page(api: Api, record: dict[str, Any]) -> None:
    api.call("DELETE", f"/explanations/{record['id']}")
    for form in get_args(Form):
        answer = file(api, record["id"], form)
        assert answer.status_code == 404 and "deleted" in answer.json()["error"]["hint"], form
    page = file(api, record["id"], "pdf", accept="text/html,*/*")
    assert page.status_code == 404 and "There is no explanation" in page.text and "deleted" in page.text
    assert "style-src" in page.headers["content-security-policy"]


def test_without_pyarrow_parquet_is_refused_with_what_to_do(
    api: Api, record: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = file(api, record["id"], "parquet")
    assert answer.status_code == 409 and answer.json()["error"]["code"] == "not_installed"
    assert "fanlight[parquet]" in answer.json()["error"]["hint"]


def test_what_is_not_finished_cannot_be_exported(api: Api) -> None:
    failed = api.explain(input=api.upload(png((255, 0, 0)))["id"])
    assert failed["state"] == "failed"
    answer = file(api, failed["id"], "png")
    assert answer.status_code == 409 and "failed" in answer.json()["error"]["message"]
