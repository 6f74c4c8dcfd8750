"""Photographs: measured one by one, stopped at any moment, gone on with, and told honestly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fanlight.bench import _table, photographs
from fanlight.bench._records import Records
from fanlight.errors import BadRequest, NotFound
from fanlight.explainers.registry import find
from support.explaining import conv_net, photo

ABOUT = {"model": "a", "samples": None, "floor": 1}
METHODS = ("random", "saliency", "grad-cam", "kernel-shap", "attn-lrp")


@pytest.fixture(scope="module")
def model():
    return conv_net(side=64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "photographs"
    place.mkdir()
    for n in range(3):
        Image.fromarray(photo(n, 64)).save(place / f"{n}.png")
    (place / "broken.jpg").write_bytes(b"no picture")
    (place / "notes.csv").write_text("not a photograph")
    return place


def tasks(model):
    return photographs.fitting([find(n) for n in METHODS], model, 32)


def without_seconds(rows):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


class Stopped(Records):
    """Stops as a person does, after some results."""

    left = 5

    def add(self, row):
        super().add(row)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_results(model, folder, tmp_path):
    files, (todo, unfit) = photographs.photographs(folder, 100), tasks(model)
    assert [f.name for f in files] == ["0.png", "1.png", "2.png", "broken.jpg"]
    assert list(unfit) == ["attn-lrp"] and "attention" in unfit["attn-lrp"]
    at_once = Records(tmp_path / "at-once.jsonl", ABOUT)
    photographs.measure(model, files, todo, at_once)

    path = tmp_path / "stopped.jsonl"
    with pytest.raises(KeyboardInterrupt):
        photographs.measure(model, files, todo, Stopped(path, ABOUT))
    kept = path.read_text().splitlines()
    path.write_text("\n".join([*kept, kept[-1][: len(kept[-1]) // 2]]))  # and one that was being written
    again = Records(path, ABOUT)
    photographs.measure(model, files, todo, again)
    assert without_seconds(again.rows) == without_seconds(at_once.rows)
    assert [json.loads(line) for line in path.read_text().splitlines()] == again.rows

    before = len(again.rows)
    photographs.measure(model, files, todo, again)
    assert len(again.rows) == before, "nothing is measured twice"


def test_the_floor_of_a_photograph_is_measured_once(model, folder, tmp_path):
    records = Records(tmp_path / "r.jsonl", ABOUT)
    todo, _ = tasks(model)
    photographs.measure(model, photographs.photographs(folder, 100), todo, records)
    floors = [r["photo"] for r in records.rows if "floor" in r]
    assert sorted(floors) == ["0.png", "1.png", "2.png"]
    rows = [r for r in records.rows if r.get("method") == "random"]
    assert len(rows) == 3 and all(r["state"] == "succeeded" for r in rows)


def test_cheap_methods_come_first_and_samples_are_bounded(model):
    todo, _ = tasks(model)
    assert [t.method.name for t in todo][-1] == "kernel-shap"
    assert todo[-1].params.samples == 32


def test_results_that_were_made_otherwise_are_not_mixed(tmp_path):
    Records(tmp_path / "r.jsonl", ABOUT)
    with pytest.raises(BadRequest, match="cannot be mixed"):
        Records(tmp_path / "r.jsonl", {**ABOUT, "samples": 7})
    (tmp_path / "x.jsonl").write_text("[\n")
    with pytest.raises(BadRequest, match="no file of results"):
        Records(tmp_path / "x.jsonl", ABOUT)
    with pytest.raises(NotFound, match="no photographs"):
        photographs.photographs(tmp_path / "nowhere", 3)


def test_what_is_told_is_the_mean_over_what_was_measured(model, folder, tmp_path):
    todo, unfit = tasks(model)
    records = Records(tmp_path / "r.jsonl", ABOUT)
    photographs.measure(model, photographs.photographs(folder, 2), todo, records)
    photographs.measure(model, [folder / "broken.jpg"], todo, records)
    names = ["0.png", "1.png", "2.png", "broken.jpg"]
    told = photographs.summary(names, todo, records.rows)
    assert told["complete"] == 2 and list(told["unreadable"]) == ["broken.jpg"]
    values = [r["faithfulness"] for r in records.rows if r.get("method") == "saliency"]
    saliency = told["methods"]["saliency"]
    assert saliency["n"] == 2 and saliency["value"] == pytest.approx(np.mean(values))
    assert saliency["lo"] == pytest.approx(min(values)) and saliency["hi"] == pytest.approx(max(values))
    run = {
        "benchmark": "photographs",
        "date": "2026-01-02",
        "machine": {"cpu": "CPU"},
        "versions": {"python": "3.11"},
        "options": {"model": "M", "photographs": 4, "samples": 32},
        "unfit": unfit,
        **told,
    }
    text = photographs.table(run)
    assert "2 of 4 photographs so far" in text and "broken.jpg is left out: " in text
    assert "[KernelSHAP](methods/kernel-shap.md), 32 samples |" in text and "AttnLRP (It needs" in text
    assert text.count("\n| [") == 4


@pytest.mark.parametrize(
    ("lo", "hi", "above", "said"),
    [
        (-0.3, -0.1, 0.0, "worse"),
        (-0.1, 0.1, 0.1, "not told apart"),
        (0.01, 0.1, 0.3, "near the floor"),
        (0.1, 0.3, 0.7, "above the floor"),
        (0.1, 0.3, 0.95, "nearly every"),
        (None, None, None, "not yet measured"),
    ],
)
def test_words(lo, hi, above, said):
    assert said in photographs.words(lo, hi, above)


def test_the_document_has_a_place(root):
    text = (root / "docs" / "measurements.md").read_text()
    assert _table.replaced(text, "photographs", "rows") != text
