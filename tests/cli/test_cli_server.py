"""The command against a running server, started once for all tests here. It has no FANLIGHT_TOKEN, so it keeps one in its data folder."""

import json
import re
import subprocess

import pytest
from PIL import Image
from typer.testing import CliRunner

from fanlight.artifact import Artifact
from fanlight.cli import app
from support.processes import BIN, FanlightServer


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = FanlightServer(tmp_path_factory.mktemp("cli"), token="", trust="request")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def token(server):
    return (server.data / "token").read_text()


@pytest.fixture
def fanlight(server, token, monkeypatch, tmp_path):
    """`fanlight("models", "--json")` runs the command against the server."""
    monkeypatch.setenv("FANLIGHT_URL", server.url)
    monkeypatch.setenv("FANLIGHT_TOKEN", token)
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    path = tmp_path_factory.mktemp("pictures") / "circle.png"
    Image.radial_gradient("L").convert("RGB").save(path)
    return path


def explained(fanlight, picture, *args):
    run = fanlight("explain", picture, "--model", "efficientnet-lite0", "--explainer", "saliency", "--json", *args)
    assert run.exit_code == 0, run.stderr
    return json.loads(run.stdout)


def test_models_are_listed_with_the_explainers_that_fit(fanlight):
    models = json.loads(fanlight("models", "--json").stdout)
    assert [m["id"] for m in models] == ["efficientnet-lite0"]
    assert "saliency" in fanlight("models").stdout


def test_data_sets_are_listed(fanlight):
    run = fanlight("datasets", "--json")
    assert run.exit_code == 0 and isinstance(json.loads(run.stdout), list)


def test_explaining_saves_what_the_server_keeps(fanlight, picture, tmp_path):
    record = explained(fanlight, picture, "--out", tmp_path / "out")
    artifact = record["artifacts"][0]
    arrays = Artifact.from_bytes((tmp_path / "out" / f"{artifact['name']}.safetensors").read_bytes()).check()
    assert arrays.kind == artifact["kind"]
    with Image.open(tmp_path / "out" / f"{artifact['name']}.png") as drawing:
        assert drawing.size[0] > 100
    assert json.loads((tmp_path / "out" / "explanation.json").read_text()) == record


def test_without_json_it_is_sentences(fanlight, picture):
    run = fanlight("explain", picture, "--model", "efficientnet-lite0", "--explainer", "saliency")
    assert run.exit_code == 0
    assert "Saliency" in run.stdout and "%" in run.stdout and "Traceback" not in run.stderr


def test_a_difference_of_two_classes_is_a_target(fanlight, picture):
    record = explained(fanlight, picture, "--target", "1", "--minus", "2")
    assert record["target"] == {"minus": [1, 2]}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--model", "no-such-model"),
        ("--explainer", "no-such-explainer"),
        ("--param", "no_such=1"),
        ("--target", "99999"),
    ],
)
def test_a_refusal_ends_with_4_and_says_what_is_allowed(fanlight, picture, option, value):
    given = {"--model": "efficientnet-lite0", "--explainer": "saliency", option: value}
    run = fanlight("explain", picture, *(word for pair in given.items() for word in pair))
    assert run.exit_code == 4
    assert run.stderr.strip() and "Traceback" not in run.stderr and run.stdout == ""


def test_a_wrong_token_and_none_are_refused(fanlight, monkeypatch):
    assert fanlight("models", "--token", "wrong").exit_code == 4
    monkeypatch.delenv("FANLIGHT_TOKEN")
    assert fanlight("models").exit_code == 4


def test_a_link_is_made_listed_and_revoked(fanlight, picture):
    made = json.loads(fanlight("share", explained(fanlight, picture)["id"], "--days", "2", "--json").stdout)
    assert made["url"].endswith(made["token"]) and made["loopback_only"]
    assert made["id"] in fanlight("share", "list").stdout
    assert json.loads(fanlight("share", "revoke", made["id"], "--json").stdout)["revoked"]
    listed = {s["id"]: s for s in json.loads(fanlight("share", "list", "--json").stdout)}
    assert listed[made["id"]]["revoked"]


def test_a_loopback_link_comes_with_a_warning(fanlight, picture):
    run = fanlight("share", explained(fanlight, picture)["id"])
    assert run.stdout.strip().startswith("http") and "this machine only" in run.stderr


def test_a_file_to_send_needs_nothing_else(fanlight, picture, tmp_path):
    run = fanlight("share", explained(fanlight, picture)["id"], "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert run.exit_code == 0
    assert "data:image/png;base64," in page and 'src="http' not in page and 'src="/' not in page


def test_one_file_holds_one_explanation(fanlight, tmp_path):
    assert fanlight("share", "a", "b", "--html", tmp_path / "page.html").exit_code == 2


def test_the_installed_command_finds_the_token_of_a_local_server(server, tmp_path):
    env = {"PATH": "", "HOME": str(tmp_path), "FANLIGHT_URL": server.url, "FANLIGHT_DATA_DIR": str(server.data)}
    run = subprocess.run([BIN / "fanlight", "models", "--json"], capture_output=True, text=True, env=env, check=False)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)[0]["id"] == "efficientnet-lite0"


def test_the_notebook_example_of_the_readme_runs(root, server, token, picture, tmp_path, monkeypatch):
    readme = (root / "README.md").read_text()
    example = next(block for block in re.findall(r"```python\n(.*?)```", readme, re.S) if "Client(" in block)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bird.jpg").write_bytes(picture.read_bytes())
    names = {}
    exec(example.replace("http://127.0.0.1:8321", server.url).replace('"..."', repr(token)), names)
    assert names["values"].ndim == 2 and names["record"].summary
    names["fan"].close()


def test_the_similarity_to_another_picture_is_a_target(fanlight, picture, tmp_path):
    with Image.open(picture) as shown:
        shown.convert("RGB").transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(tmp_path / "mirrored.png")
    record = explained(fanlight, picture, "--similar-to", tmp_path / "mirrored.png")
    other = record["target"]["similar_to"]
    assert other != record["input"]
    assert explained(fanlight, picture, "--similar-to", other)["id"] == record["id"]


def test_waiting_for_the_trust_says_how_far_to_trust_it(fanlight, picture, server):
    run = fanlight("explain", picture, "--model", "efficientnet-lite0", "--explainer", "saliency", "--trust")
    assert run.exit_code == 0, run.stderr
    assert re.search(r"Faithfulness [+−]?[\d.]+ \(.* to .*\): (not )?above random maps", run.stdout), run.stdout
    assert f"{server.url}/e/" in run.stdout


def test_without_waiting_it_says_that_the_trust_is_not_there(fanlight, picture):
    run = fanlight("explain", picture, "--model", "efficientnet-lite0", "--explainer", "saliency", "--seed", "77")
    assert "aithfulness" in run.stdout or "measured" in run.stdout
