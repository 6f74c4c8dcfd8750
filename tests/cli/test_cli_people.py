"""`fanlight people` and `fanlight workspaces` against a running server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fanlight.cli import app
from support.processes import FanlightServer

PASSWORD = "seven quiet herons"


def test_accounts_and_workspaces_are_looked_after_in_the_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FanlightServer(tmp_path, default_model=False)
    server.start()
    try:
        monkeypatch.setenv("FANLIGHT_URL", server.url)
        monkeypatch.setenv("FANLIGHT_TOKEN", server.token)

        def fanlight(*args: str, typed: str = "") -> tuple[int, str]:
            run = CliRunner().invoke(app, list(args), input=typed)
            return run.exit_code, run.output

        assert fanlight("workspaces", "create", "lab", "--title", "The lab")[0] == 0
        assert fanlight("people", "add", "Ann", "--workspace", "lab=owner", typed=PASSWORD + "\n")[0] == 0
        assert fanlight("people", "add", "ann", typed=PASSWORD + "\n")[0] == 4
        assert fanlight("people", "add", "bob", typed="short\n")[0] == 4
        assert fanlight("people", "add", "bob", typed=PASSWORD + "\n")[0] == 0
        assert "bob is viewer of lab" in fanlight("workspaces", "add", "lab", "bob", "--role", "viewer")[1]
        listed = {p["name"]: p for p in json.loads(fanlight("people", "--json")[1])}
        assert [(m["workspace"], m["role"]) for m in listed["ann"]["workspaces"]] == [("lab", "owner")]
        assert "lab (viewer)" in fanlight("people")[1]
        assert [m["name"] for m in json.loads(fanlight("workspaces", "members", "lab", "--json")[1])] == ["ann", "bob"]
        assert "0 of 5 unfinished jobs" in fanlight("workspaces", "quota", "lab", "--jobs", "5", "--cost", "1000")[1]
        assert "0 of 1,000 forward passes" in fanlight("workspaces", "quota", "lab")[1]
        assert "of 5" in fanlight("workspaces")[1]
        assert fanlight("people", "passwd", "bob", typed="nine loud sparrows\n")[0] == 0
        assert fanlight("people", "disable", "bob")[0] == 0 and "disabled" in fanlight("people")[1]
        assert fanlight("people", "enable", "bob")[0] == 0
        assert fanlight("workspaces", "remove", "lab", "bob")[0] == 0
        assert fanlight("people", "remove", "bob")[0] == 0 and fanlight("people", "remove", "bob")[0] == 4
        actions = [e["action"] for e in json.loads(fanlight("audit", "--json")[1])][::-1]
        assert actions[:3] == ["workspace.create", "person.create", "person.create"] and "person.remove" in actions
        log = server.log.read_text()
        assert PASSWORD not in log and "nine loud sparrows" not in log
    finally:
        server.stop()
