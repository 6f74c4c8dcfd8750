"""`fanlight sweeps apply` against a running server: numbers, file, exit codes."""

import csv
import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

import fanlight_models
from fanlight.cli import app
from fanlight_models.worlds.fieldguide import draw, split
from support.processes import FanlightServer

MODEL = "scbm-field-guide"
COUNT = 6
HOOKED = json.dumps({"set_concept": {"concept": "bill shape::hooked", "value": "yes"}})


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trial-cli")
    for n, scene in enumerate(split("test", COUNT)):
        place = folder / "birds" / scene.name
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw(scene, 112).image).save(place / f"{n}.png")
    bundle = Path(fanlight_models.__file__).parent / "bundles" / MODEL
    started = FanlightServer(
        folder, trust="request", models=bundle, default_model=False, datasets=f"birds={folder / 'birds'}"
    )
    started.start()
    yield started
    started.stop()


@pytest.fixture
def fanlight(server, monkeypatch, tmp_path):
    monkeypatch.setenv("FANLIGHT_URL", server.url)
    monkeypatch.setenv("FANLIGHT_TOKEN", server.token)
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


def test_a_rule_is_applied_to_a_sweep(fanlight, server, tmp_path):
    swept = json.loads(fanlight("sweep", MODEL, "--method", "scbm", "--dataset", "birds", "--json").stdout)["sweep"]
    run = fanlight("sweeps", "apply", swept["id"], HOOKED, "--csv", tmp_path / "all.csv")
    assert run.exit_code == 0, run.stderr
    assert f"Bill shape hooked yes; tried on {COUNT} pictures." in run.stdout
    assert "Before: " in run.stdout and "After: " in run.stdout and "95 % interval" in run.stdout
    assert f"{server.url}/sweeps/{swept['id']}?trial=" in run.stdout
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len(rows) == COUNT and {r["state"] for r in rows} == {"done"}
    told = json.loads(fanlight("sweeps", "apply", swept["id"], HOOKED, "--outcome", "right", "--json").stdout)
    assert told["summary"]["before"]["value"] == 1 and told["summary"]["corrected"] == 0
    nothing = fanlight("sweeps", "apply", swept["id"], HOOKED, "--label", "penguin")
    assert nothing.exit_code == 4 and "nothing to try" in nothing.stderr
    unknown = fanlight("sweeps", "apply", swept["id"], '{"set_concept": {"concept": "beak", "value": "yes"}}')
    assert unknown.exit_code == 4 and "beak" in unknown.stderr
    assert fanlight("sweeps", "apply", swept["id"], "hooked").exit_code == 2
