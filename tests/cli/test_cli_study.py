"""`fanlight study` against a running server: table, file, exit codes."""

import csv
import json

import pytest
from typer.testing import CliRunner

from fanlight.cli import app
from support.processes import FanlightServer

LISTS = ("study", "scenes-exact", "--second", "circle,cross", "--param", "nodes=32", "--param", "steps=4")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = FanlightServer(tmp_path_factory.mktemp("study-cli"), trust="request", scenes=True, default_model=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fanlight(server, monkeypatch, tmp_path):
    monkeypatch.setenv("FANLIGHT_URL", server.url)
    monkeypatch.setenv("FANLIGHT_TOKEN", server.token)
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


def test_a_study_ends_with_its_table_its_page_and_a_file(fanlight, server, tmp_path):
    (tmp_path / "colours.txt").write_text("red\n\ngreen\n")
    asked = (*LISTS, "--first", "colours.txt", "--seeds", 2, "--template", "a {a} {b} left of a blue cross")
    run = fanlight(*asked, "--csv", "all.csv", "--column", "redundant")
    assert run.exit_code == 0, run.stderr
    assert "8 explained" in run.stdout and f"{server.url}/sweeps/" in run.stdout
    table = next(n for n, line in enumerate(run.stdout.splitlines()) if line.startswith("redundant"))
    head, *rows = run.stdout.splitlines()[table + 1 : table + 4]
    assert head.split() == ["circle", "cross"] and [r.split()[0] for r in rows] == ["red", "green"]
    assert "[0.00]" in run.stdout and "[1.00]" in run.stdout and "too narrow" in run.stdout
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len(rows) == 8 and all(float(r["redundant"]) >= 0 for r in rows)
    again = json.loads(fanlight(*asked, "--json").stdout)
    assert again["sweep"]["reused"] == 8 and again["study"]["column"] == "interaction"
    assert len(again["study"]["cells"]) == 2 and again["study"]["cells"][0][0]["n"] == 2


def test_it_need_not_wait_and_what_cannot_be_is_a_sentence(fanlight):
    run = fanlight(*LISTS, "--first", "yellow", "--no-wait", "--json")
    assert run.exit_code == 0 and json.loads(run.stdout)["total"] == 2
    wrong = fanlight(*LISTS, "--first", "red", "--template", "a {a}")
    assert wrong.exit_code == 4 and "{a} and {b} once each" in wrong.stderr
    assert fanlight(*LISTS, "--first", "red", "--method", "saliency").exit_code == 4
    assert fanlight(*LISTS, "--first", "red", "--seeds", 1001).exit_code == 2
