"""`fanlight sweep` against a running server: result, files, exit codes."""

import csv
import json

import pytest
from PIL import Image
from typer.testing import CliRunner

from fanlight.cli import app
from support.processes import FanlightServer

COUNT = 3


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep-cli")
    (folder / "pictures").mkdir()
    for n in range(COUNT):
        Image.radial_gradient("L").convert("RGB").rotate(30 * n).resize((64 + n, 64)).save(
            folder / "pictures" / f"{n}.png"
        )
    (folder / "pictures" / "broken.png").write_bytes(b"no picture")
    server = FanlightServer(folder, trust="request", datasets=f"pictures={folder / 'pictures'}")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fanlight(server, monkeypatch, tmp_path):
    monkeypatch.setenv("FANLIGHT_URL", server.url)
    monkeypatch.setenv("FANLIGHT_TOKEN", server.token)
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


SWEEP = ("sweep", "efficientnet-lite0", "--method", "input-x-gradient", "--dataset", "pictures")


def test_a_sweep_ends_with_its_numbers_its_page_and_a_file(fanlight, server, tmp_path):
    run = fanlight(*SWEEP, "--csv", tmp_path / "all.csv", "--name", "three")
    assert run.exit_code == 0, run.stderr
    assert f"{COUNT} explained, 1 skipped" in run.stdout and f"{server.url}/sweeps/" in run.stdout
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert [r["state"] for r in rows] == ["succeeded"] * COUNT + ["skipped"]
    again = json.loads(fanlight(*SWEEP, "--json").stdout)
    assert again["sweep"]["reused"] == COUNT and again["summary"]["n"] == COUNT
    listed = json.loads(fanlight("sweeps", "--json").stdout)
    assert [s["name"] for s in listed][-1] == "three" and "three" in fanlight("sweeps", "list").stdout


def test_it_need_not_wait(fanlight):
    run = fanlight(*SWEEP, "--first", 1, "--no-wait", "--json")
    assert run.exit_code == 0 and json.loads(run.stdout)["total"] == 1


def test_what_cannot_be_is_a_sentence_and_an_exit_code(fanlight):
    unknown = fanlight("sweep", "efficientnet-lite0", "--method", "saliency", "--dataset", "pictuers")
    assert unknown.exit_code == 4 and "Did you mean pictures?" in unknown.stderr
    large = fanlight(*SWEEP, "--first", 10**9)
    assert large.exit_code == 4 and f"Only {COUNT} pictures fit" in large.stderr
    unfit = fanlight("sweep", "efficientnet-lite0", "--method", "attention-rollout", "--dataset", "pictures")
    assert unfit.exit_code == 4 and "not available" in unfit.stderr
    assert fanlight(*SWEEP, "--first", 1, "--sample", 1).exit_code == 2
    assert fanlight(*SWEEP, "--target", "1", "--rule", "label").exit_code == 2
    assert fanlight("sweeps", "pause", "nothing").exit_code == 4
