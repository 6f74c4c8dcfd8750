"""What runs beside a server: `fanlight backup`, `restore`, `gc`, `doctor --service`; and its log and its end."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import Result
from typer.testing import CliRunner

from fanlight.cli import app
from support.processes import FanlightServer, free_port

Fanlight = Callable[..., Result]
NOTHING: dict[str, Any] = {"default_model": False}  # a server that is ready at once


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FanlightServer]:
    server = FanlightServer(tmp_path_factory.mktemp("maintain"), **NOTHING)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def fanlight(server: FanlightServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Fanlight:
    monkeypatch.setenv("FANLIGHT_DATA_DIR", str(server.data))
    monkeypatch.setenv("FANLIGHT_PORT", str(server.port))
    monkeypatch.chdir(tmp_path)
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


def examined(fanlight: Fanlight) -> tuple[int, dict[str, dict[str, str]]]:
    run = fanlight("doctor", "--service", "--json")
    return run.exit_code, {c["name"]: c for c in json.loads(run.stdout)["checks"]}


def test_a_running_service_is_found_well(fanlight: Fanlight) -> None:
    code, checks = examined(fanlight)
    assert code == 0, checks
    wanted = ["database", "revision", "clock", "walls", "queue", "leases", "artifacts", "disk", "server"]
    assert list(checks) == wanted and {c["outcome"] for c in checks.values()} == {"good"}
    assert all(c["says"].endswith((".", "ms.")) for c in checks.values())


def test_examining_leaves_no_artifact_behind(fanlight: Fanlight, server: FanlightServer) -> None:
    before = sorted(p for p in (server.data / "artifacts").rglob("*") if p.is_file())
    examined(fanlight)
    assert sorted(p for p in (server.data / "artifacts").rglob("*") if p.is_file()) == before


def test_a_server_that_does_not_answer_is_a_finding(fanlight: Fanlight, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FANLIGHT_PORT", str(free_port()))
    code, checks = examined(fanlight)
    assert code == 1 and checks["server"]["outcome"] == "bad" and checks["database"]["outcome"] == "good"


def test_no_database_and_no_store_are_findings(
    fanlight: Fanlight, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FANLIGHT_DATA_DIR", str(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FANLIGHT_ARTIFACTS_URL", str(tmp_path / "file" / "x"))
    code, checks = examined(fanlight)
    assert code == 1 and checks["database"]["outcome"] == checks["artifacts"]["outcome"] == "bad"
    assert not (tmp_path / "none").exists()


def test_tables_of_another_revision_and_work_of_the_dead_are_found(
    fanlight: Fanlight, server: FanlightServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert fanlight("backup", tmp_path / "all.tar").exit_code == 0
    assert fanlight("restore", tmp_path / "all.tar", "--data-dir", tmp_path / "copy").exit_code == 0
    monkeypatch.setenv("FANLIGHT_DATA_DIR", str(tmp_path / "copy"))
    long_ago = int((time.time() - 7200) * 1e6)
    with closing(sqlite3.connect(tmp_path / "copy" / "fanlight.sqlite")) as db:
        values = (long_ago, long_ago)
        db.execute(
            "insert into job (id, workspace, principal, explanation, kind, work, priority, cost, state, attempt, crashes, owner, lease_until,"
            " progress, message, cancel_requested, created) values ('j', 'w', 'p', 'e', 'explain', '{}', 1, 7, 'queued', 1, 0, 'dead', ?, 0,"
            " '', 0, ?)",
            values,
        )
        db.commit()
    checks = examined(fanlight)[1]
    assert checks["queue"]["outcome"] == checks["leases"]["outcome"] == "warning"
    assert "7 forward passes" in checks["queue"]["says"] and "120 min" in checks["queue"]["says"]
    with closing(sqlite3.connect(tmp_path / "copy" / "fanlight.sqlite")) as db:
        db.execute("update alembic_version set version_num = '0001'")
        db.commit()
    code, checks = examined(fanlight)
    assert code == 1 and checks["revision"]["outcome"] == "bad" and "0001" in checks["revision"]["says"]
    run = fanlight("gc", "--delete")
    assert run.exit_code == 4 and "0001" in run.stderr


def test_a_model_and_the_service_are_two_questions(fanlight: Fanlight) -> None:
    assert fanlight("doctor", "x", "--service").exit_code == 2


def test_collecting_counts_and_deletes_only_when_told(fanlight: Fanlight) -> None:
    dry = json.loads(fanlight("gc", "--json").stdout)
    assert dry["removed"] == 0 and dry["deleted"] is False
    assert fanlight("gc", "--delete").exit_code == 0
    assert fanlight("gc", "--grace-hours", "0.1").exit_code == 2


def test_a_backup_is_not_written_twice(fanlight: Fanlight, tmp_path: Path) -> None:
    assert fanlight("backup", tmp_path / "a.tar").exit_code == 0
    run = fanlight("backup", tmp_path / "a.tar")
    assert run.exit_code == 4 and "already" in run.stderr
    assert fanlight("restore", tmp_path / "none.tar", "--data-dir", tmp_path / "n").exit_code == 4
    assert [p.name for p in tmp_path.iterdir() if ".part" in p.name or "backup-" in p.name] == []


def test_a_drained_server_ends_in_order_and_its_log_holds_no_token(tmp_path: Path) -> None:
    server = FanlightServer(tmp_path, token="a-very-secret-token", log_level="debug", **NOTHING)
    server.start()
    httpx.get(server.url + "/?token=a-very-secret-token", trust_env=False)
    httpx.get(server.url + "/api/v1/models", headers=server.headers, trust_env=False)
    begun = time.monotonic()
    page = httpx.Client(headers=server.headers, trust_env=False)
    with page.stream("GET", server.url + "/api/v1/events") as stream:  # an open page does not keep it
        next(stream.iter_lines())
        _stopped(server, begun)
    page.close()
    text = server.log.read_text()
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert any(line["event"] == "request" and line["route"] == "/api/v1/models" for line in lines)
    events = [line["event"] for line in lines]
    assert events.index("draining") < events.index("drained")
    assert "a-very-secret-token" not in text


def _stopped(server: FanlightServer, begun: float) -> None:
    assert server.stop(signal.SIGTERM, patience=30) in (0, -signal.SIGTERM)
    assert time.monotonic() - begun < 8
