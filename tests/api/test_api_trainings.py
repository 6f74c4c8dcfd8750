"""Trainings beside the server: the log that a trainer leaves, read by the server, and who may see it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create
from fanlight.service import trainings
from fanlight.settings import Settings
from fanlight_models.concepts.cbm import CBM
from fanlight_models.concepts.encoders import features
from fanlight_models.concepts.training import Plan, TensorCases, train
from fanlight_models.training_log import TrainingLog, beside


def context(folder: Path | None) -> SimpleNamespace:
    return SimpleNamespace(settings=Settings(trainings=folder))


def read(folder: Path, now: float | None = None):
    return trainings.listed(context(folder), now)  # type: ignore[arg-type]


def test_without_a_folder_there_are_none(tmp_path: Path) -> None:
    assert read(tmp_path / "missing") == [] and trainings.listed(context(None)) == []  # type: ignore[arg-type]


def test_what_a_log_says_is_told_and_what_is_no_line_is_passed_over(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "birds.training.jsonl", "Birds")
    log.step("joint", 1, 3, {"loss": 2.0, "broken": float("nan")}, left=40.0)
    log.step("joint", 2, 3, {"loss": 1.0}, left=20.0)
    with log.path.open("a") as file:
        file.write('{"at": 1, "stage": "jo')
    now = time.time()
    (told,) = read(tmp_path, now)
    assert (told.id, told.title, told.state, told.unit) == ("birds", "Birds", "running", "epochs")
    assert [(s.done, s.of, s.figures) for s in told.steps] == [(1, 3, {"loss": 2.0}), (2, 3, {"loss": 1.0})]
    assert told.seconds_left == pytest.approx(20, abs=2)
    (later,) = read(tmp_path, now + 301)
    assert later.state == "quiet" and later.seconds_left == 0


def test_slow_steps_are_waited_for_and_an_end_is_an_end(tmp_path: Path) -> None:
    path = tmp_path / "slow.training.jsonl"
    lines = [{"at": 1000.0 * n, "stage": "s", "done": n, "of": 9} for n in range(4)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read(tmp_path, 5900)[0].state == "running" and read(tmp_path, 6100)[0].state == "quiet"
    with path.open("a") as file:
        file.write(json.dumps({"at": 3100, "ended": True}) + "\n")
    assert read(tmp_path, 9e9)[0].state == "done"


def test_of_a_long_log_few_steps_are_shown_with_the_last(tmp_path: Path) -> None:
    log = TrainingLog(tmp_path / "long.training.jsonl", "Long")
    for n in range(1000):
        log.step("s", n, 1000, {"loss": float(n)}, unit="steps")
    steps = read(tmp_path)[0].steps
    assert len(steps) == trainings.SHOWN and (steps[0].done, steps[-1].done) == (0, 999)


def test_a_trainer_leaves_its_log_beside_the_checkpoint_and_goes_on_in_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    cases = TensorCases(torch.randn(32, 4), (torch.rand(32, 3) > 0.5).float(), torch.randint(0, 2, (32,)))
    part = tmp_path / "small.checkpoint.safetensors"
    plan = Plan(epochs=3, batch=16, samples=2)
    model = CBM(features(4), 3, 2)
    assert not train(model, cases, plan, checkpoint=part, stop=1)
    (first,) = read(tmp_path)
    assert first.state == "running" and [s.done for s in first.steps] == [1]
    assert train(model, cases, plan, checkpoint=part)
    (whole,) = read(tmp_path)
    assert whole.state == "done" and [s.done for s in whole.steps] == [1, 2, 3]
    assert beside(part).name == "small.training.jsonl" and set(whole.steps[0].figures) >= {"concepts"}


def test_only_who_runs_the_server_sees_them(tmp_path: Path) -> None:
    TrainingLog(tmp_path / "birds.training.jsonl", "Birds").step("joint", 1, 3, {"loss": 2.0})
    given = settings(tmp_path, trainings=tmp_path)
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        assert [t["title"] for t in api.call("GET", "/trainings").json()] == ["Birds"]
        key = api.call("POST", "/keys", json={"name": "a program", "scopes": ["admin"]}).json()["key"]
        refused = http.get("/api/v1/trainings", headers={"Authorization": f"Bearer {key}"})
        assert refused.status_code == 403 and "Birds" not in refused.text
