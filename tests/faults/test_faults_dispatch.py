"""The dispatcher when the ledger or the program fails it: no job is lost sight of, and none is tried for ever."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from faults_client import LONG, MODEL
from PIL import Image
from sqlalchemy import Connection, select, update

from fanlight.app import create
from fanlight.errors import NotFound, Unavailable
from fanlight.service import dispatch
from fanlight.settings import Settings
from fanlight.store.ledger import MAX_CRASHES
from fanlight.store.tables import job

OPEN = ("queued", "running")


class App:
    """A server in this process. Args: folder: of its data and its model."""

    def __init__(self, http: TestClient, folder: Path):
        self.http, self.folder = http, folder
        self.context = http.app.state.context  # type: ignore[attr-defined]
        self.pictures = 0

    def picture(self) -> str:
        self.pictures += 1
        pixels = np.random.default_rng(self.pictures).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        return str(self.http.post("/api/v1/inputs", files={"file": ("x.png", out.getvalue())}).json()["id"])

    def promise(self, **request: Any) -> str:
        body = {"model": "tiny", "explainer": "saliency", **request}
        body.setdefault("input", self.picture())
        answer = self.http.post("/api/v1/explanations", json=body)
        assert answer.status_code in (200, 202), answer.text
        return str(answer.json()["id"])

    def record(self, ident: str) -> dict[str, Any]:
        return dict(self.http.get(f"/api/v1/explanations/{ident}").json())

    def until(self, ident: str, *states: str, patience: float = 30) -> dict[str, Any]:
        end = time.monotonic() + patience
        while (record := self.record(ident))["state"] not in states:
            assert time.monotonic() < end, record["state"]
            time.sleep(0.02)
        return record

    def finished(self, ident: str, patience: float = 30) -> dict[str, Any]:
        return self.until(ident, "succeeded", "failed", "cancelled", "expired", patience=patience)

    def job(self, ident: str) -> Any:
        return self.context.db.read(lambda c: c.execute(select(job).where(job.c.explanation == ident)).one())


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    model = tmp_path / "tiny.py"
    model.write_text(MODEL)
    settings = Settings(
        data_dir=tmp_path / "data", models=str(model), isolate=False, default_model=False, examples=False, threads=1, trust="request"
    )  # fmt: skip
    with TestClient(create(settings, token="t", pages=False), headers={"Authorization": "Bearer t"}) as http:
        end = time.monotonic() + 60
        while http.get("/readyz").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.02)
        yield App(http, tmp_path)


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, times: int) -> list[int]:
    """Writing down a result fails this often; returns a list with one entry per try."""
    tries: list[int] = []
    real = dispatch.finished

    def finished(*args: Any) -> None:
        tries.append(1)
        if len(tries) <= times:
            raise error
        real(*args)

    monkeypatch.setattr(dispatch, "finished", finished)
    return tries


def test_a_ledger_that_is_away_for_a_moment_costs_no_result(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = failing(monkeypatch, Unavailable("away"), 2)
    ident = app.promise()
    assert app.finished(ident)["state"] == "succeeded"
    assert len(tries) == 3 and app.job(ident).attempt == 1, "written again, not computed again"


def test_a_ledger_that_is_away_for_long_costs_an_attempt(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, Unavailable("away"), 5)
    ident = app.promise()
    assert app.finished(ident)["state"] == "succeeded"
    assert (app.job(ident).attempt, app.job(ident).crashes) == (2, 0)


@pytest.mark.parametrize("error", [KeyError("bug"), NotFound("This is gone.")], ids=["bug", "refusal"])
def test_a_result_that_cannot_be_written_down_is_not_tried_for_ever(
    app: App, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tries = failing(monkeypatch, error, 99)
    record = app.finished(app.promise())
    assert record["state"] == "failed" and len(tries) == MAX_CRASHES
    said = record["error"]["message"]
    assert said == "This is gone." if isinstance(error, NotFound) else "could not be written down" in said


def test_a_clock_that_is_set_does_not_start_a_job_twice(app: App) -> None:
    """As after a night asleep: the leases look long over, and the jobs are being worked on."""
    (app.folder / "tiny.py.slow").touch()
    ident = app.promise(**LONG)
    app.until(ident, "running")

    def jump(conn: Connection) -> None:
        conn.execute(update(job).values(lease_until=1))

    app.context.db.write(jump)
    time.sleep(1.5)  # the sweep comes by every second
    (app.folder / "tiny.py.slow").unlink()
    assert app.finished(ident)["state"] == "succeeded"
    assert app.job(ident).attempt == 1


def test_what_was_lost_sight_of_comes_back(app: App) -> None:
    """A job under this server's name that no task of it follows."""
    (app.folder / "tiny.py.slow").touch()
    busy = app.promise(**LONG)
    app.until(busy, "running")
    ident = app.promise()
    app.finished(ident)
    values = {"state": "queued", "owner": app.context.dispatcher.owner, "lease_until": 1, "finished": None}
    app.context.db.write(lambda c: c.execute(update(job).where(job.c.explanation == ident).values(**values)))
    end = time.monotonic() + 10
    while app.job(ident).state in OPEN:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert app.job(ident).attempt == 2
    (app.folder / "tiny.py.slow").unlink()


def test_a_job_past_its_deadline_expires_with_a_sentence(app: App) -> None:
    (app.folder / "tiny.py.slow").touch()
    ident = app.promise(**LONG)
    app.until(ident, "running")
    other = app.promise(**LONG)
    held = [app.job(i).id for i in (ident, other)]
    app.context.db.write(
        lambda c: c.execute(update(job).where(job.c.id.in_(held)).values(owner=None, lease_until=None, deadline=1))
    )
    for late in (ident, other):
        record = app.finished(late)
        assert (record["state"], record["error"]["code"]) == ("expired", "deadline")
    (app.folder / "tiny.py.slow").unlink()
    assert app.finished(app.promise())["state"] == "succeeded"


def test_a_request_without_a_target_is_found_again_when_the_prediction_becomes_known_meanwhile(app: App) -> None:
    """Another request for the same picture overtakes it, and the top class is known before it has begun."""
    (app.folder / "tiny.py.slow").touch()
    app.until(app.promise(**LONG), "running")
    picture = app.picture()
    waiting = app.promise(input=picture, **LONG)
    quick = app.finished(app.promise(input=picture))
    record = app.record(waiting)
    assert record["state"] == "queued" and record["target"] == quick["target"]
    assert app.promise(input=picture, **LONG) == waiting
    assert app.promise(input=picture, target=quick["target"], **LONG) == waiting
    (app.folder / "tiny.py.slow").unlink()
    assert app.finished(waiting)["target"] == quick["target"]
