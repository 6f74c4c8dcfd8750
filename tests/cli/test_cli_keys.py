"""`fanlight keys` and `fanlight audit` against a running server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fanlight.cli import app
from support.processes import FanlightServer


def test_a_key_is_made_used_listed_revoked_and_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FanlightServer(tmp_path, default_model=False)
    server.start()
    try:
        monkeypatch.setenv("FANLIGHT_URL", server.url)
        monkeypatch.setenv("FANLIGHT_TOKEN", server.token)

        def fanlight(*args: str) -> tuple[int, str]:
            run = CliRunner().invoke(app, list(args))
            return run.exit_code, run.stdout

        code, key = fanlight("keys", "create", "nightly", "--scope", "read", "--days", "3")
        assert code == 0 and key.startswith("fl_")
        assert fanlight("models", "--token", key.strip())[0] == 0
        assert fanlight("keys", "--token", key.strip())[0] == 4
        (listed,) = json.loads(fanlight("keys", "--json")[1])
        assert listed["name"] == "nightly" and listed["used"] and "nightly" in fanlight("keys")[1]
        assert fanlight("keys", "revoke", listed["id"])[0] == 0
        assert fanlight("models", "--token", key.strip())[0] == 4
        actions = [e["action"] for e in json.loads(fanlight("audit", "--action", "key", "--json")[1])]
        assert actions == ["key.revoke", "key.create"] and "key.create" in fanlight("audit")[1]
        assert key.strip() not in server.log.read_text()
    finally:
        server.stop()
