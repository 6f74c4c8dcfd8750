"""Whoever promises a job need not be the one that computes it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from faults_client import MODEL
from test_faults_dispatch import App

from fanlight.app import create
from fanlight.settings import Settings

pytestmark = pytest.mark.postgres


@contextlib.contextmanager
def served(folder: Path, name: str, url: str) -> Iterator[App]:
    model = folder / "tiny.py"
    model.write_text(MODEL)
    places = {"database_url": url, "artifacts_url": str(folder / "artifacts"), "models": str(model)}
    settings = Settings(
        data_dir=folder / name, isolate=False, default_model=False, examples=False, field_guide=False, scenes=False, threads=1,
        trust="request", **places,
    )  # fmt: skip
    with TestClient(create(settings, token="t", pages=False), headers={"Authorization": "Bearer t"}) as http:
        end = time.monotonic() + 60
        while http.get("/readyz").status_code != 200:
            assert time.monotonic() < end
            time.sleep(0.02)
        yield App(http, folder)


def ended(app: App) -> int:
    """Attempts that this server's dispatcher has seen through."""
    return int(app.context.dispatcher.seen)


def test_a_job_submitted_at_one_server_is_computed_by_the_other(
    new_database: Callable[[], str], tmp_path: Path
) -> None:
    url = new_database()
    with served(tmp_path, "one", url) as one, served(tmp_path, "other", url) as other:
        one.http.portal.call(one.context.dispatcher.drain, 0)  # type: ignore[union-attr]
        begun = time.monotonic()
        ident = one.promise()
        record = one.finished(ident)
        assert record["state"] == "succeeded" and other.record(ident) == record
        assert time.monotonic() - begun < 5
        assert (ended(one), ended(other)) == (0, 1)
        for a in record["artifacts"]:  # and drawn by the one that never had it
            assert one.http.get(a["url"]).status_code == 200
