"""A worker without API: what a server has promised and can no longer do, it does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest
from faults_client import MODEL, Remote, from_outside

from support.processes import BIN, FanlightServer, Process, answers, free_port


@pytest.mark.slow
@pytest.mark.postgres
def test_a_worker_does_what_a_server_handed_back_and_answers_nothing_but_health_checks(
    tmp_path: Path, new_database: Callable[[], str]
) -> None:
    url, model, port = new_database(), tmp_path / "tiny.py", free_port()
    model.write_text(MODEL)
    shared = {"database_url": url, "artifacts_url": tmp_path / "artifacts", "models": model, "default_model": False}
    shared |= {"trust": "request", "threads": 1}
    server = FanlightServer(tmp_path, **shared)
    home = f"http://127.0.0.1:{port}"
    worker = Process(
        [BIN / "fanlight", "worker", "--port", str(port), "--data-dir", tmp_path / "worker"],
        ready=lambda: answers(f"{home}/readyz"),
        log=tmp_path / "worker.log",
        env={"FANLIGHT_TOKEN": server.token, **{f"FANLIGHT_{k.upper()}": str(v) for k, v in shared.items()}},
    )
    try:
        server.start()
        remote = Remote(server, model)
        with remote.slow():
            ident = remote.promise(
                explainer="occlusion", params={"window": 16, "stride": 4}
            )  # longer than a polite end
            remote.begun(ident)
            remote.http.close()
            server.stop()
        worker.start()

        def state() -> str:
            with psycopg.connect(from_outside(url)) as conn:
                return str(conn.execute("SELECT state FROM explanation WHERE id = %s", [ident]).fetchone()[0])

        worker.ready = lambda: state() == "succeeded"
        worker.until()
        refused = httpx.get(f"{home}/api/v1/models", headers=server.headers, trust_env=False)
        assert refused.status_code == 404 and "worker" in refused.json()["error"]["message"]
        assert httpx.get(f"{home}/metrics", trust_env=False).status_code == 401
        told = httpx.get(f"{home}/metrics", headers=server.headers, trust_env=False).text
        assert 'fanlight_jobs_ended_total{kind="explain",state="done"} 1.0' in told
        worker.stop()
        assert '"drained"' in worker.output() and "Traceback" not in worker.output()
    finally:
        worker.stop()
        server.stop()


def test_a_worker_on_sqlite_is_refused_with_a_sentence(tmp_path: Path) -> None:
    command = [BIN / "fanlight", "worker", "--port", str(free_port()), "--data-dir", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={"PATH": ""})
    assert run.returncode == 1
    assert "belongs to one server" in run.stderr and "FANLIGHT_DATABASE_URL" in run.stderr
    assert "Traceback" not in run.stderr
