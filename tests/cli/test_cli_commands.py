import json

import pytest
from typer.testing import CliRunner

from fanlight.cli import app
from fanlight.cli.explain import of_class, parameters, standing
from fanlight.cli.output import EXIT_CODES, exit_code
from fanlight.errors import FanlightError, NotFound, TooBusy, Unavailable
from fanlight.wire import Job
from support.processes import free_port

COMMANDS = ("serve", "pages", "doctor", "models", "datasets", "explain", "share", "bench")


@pytest.fixture(autouse=True)
def no_server(monkeypatch, tmp_path):
    monkeypatch.setenv("FANLIGHT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("FANLIGHT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("FANLIGHT_TOKEN", raising=False)


def run(*args):
    return CliRunner().invoke(app, args)


def test_help_lists_every_command_and_the_exit_codes():
    shown = run("--help")
    assert shown.exit_code == 0
    assert [c for c in COMMANDS if c not in shown.stdout] == []
    assert EXIT_CODES[:40] in " ".join(shown.stdout.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    shown = run(command, "--help")
    assert shown.exit_code == 0 and "Usage:" in shown.stdout


@pytest.mark.parametrize(
    "args",
    [
        ("models",),
        ("models", "list", "--json"),
        ("datasets",),
        ("share", "some-id"),
        ("share", "--days", "3", "x"),
        ("share", "revoke", "x"),
    ],
)
def test_without_a_server_a_command_says_so_and_ends_with_3(args):
    ended = run(*args)
    assert ended.exit_code == 3
    assert "No Fanlight server answers" in ended.stderr and "fanlight serve" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize(
    "args",
    [
        ("explain", "missing.png", "--model", "m", "--explainer", "e"),
        ("explain", __file__, "--model", "m", "--explainer", "e", "--param", "steps"),
        ("explain", __file__, "--model", "m", "--explainer", "e", "--minus", "cat"),
        ("explain", __file__, "--model", "m", "--explainer", "e", "--target", "1", "--similar-to", "x"),
        ("serve", "--port", "99999"),
        ("bench", "no-such-benchmark"),
        ("nonsense",),
    ],
)
def test_wrong_usage_ends_with_2_and_a_sentence(args):
    ended = run(*args)
    assert ended.exit_code == 2
    assert "Error" in ended.stderr and "Traceback" not in ended.output


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FanlightError("a", code="no_server"), 3),
        (NotFound("b"), 4),
        (TooBusy("c", retry_after=1), 4),
        (Unavailable("d"), 4),
        (FanlightError("e", code="model_failed"), 1),
    ],
)
def test_exit_codes_tell_a_refusal_from_a_failure(error, code):
    assert exit_code(error) == code


def test_parameters_are_read_as_json_where_they_are_json():
    assert parameters(["steps=50", "baseline=black", "adaptive=true", "label=a=b"]) == {
        "steps": 50,
        "baseline": "black",
        "adaptive": True,
        "label": "a=b",
    }


def test_a_class_is_an_index_or_a_name():
    assert (of_class("13"), of_class("cardinal"), of_class(None)) == (13, "cardinal", None)


def test_a_waiting_job_shows_its_place_and_a_running_one_its_time():
    job = Job(id="j", explanation="e", state="queued", created=0, place=3)
    assert standing(job) == "3 before it"
    assert (
        standing(job.model_copy(update={"place": None, "message": "48 of 96", "seconds_left": 2.4}))
        == "48 of 96, about 2 s left"
    )


def test_doctor_reports_as_json(tmp_path):
    ended = run("doctor", "--json")
    report = json.loads(ended.stdout)
    assert report["subject"] == "installation"
    assert ended.exit_code == (0 if report["sound"] else 1)


def test_doctor_fails_on_a_model_that_is_none(tmp_path):
    ended = run("doctor", str(tmp_path))
    assert ended.exit_code == 1
    assert "WRONG" in ended.stdout and "bundle.toml" in ended.stdout


def test_benchmarks_are_listed():
    assert json.loads(run("bench", "--list", "--json").stdout) is not None
