"""A server of its own process with a small model that is slow while a file lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults_client import MODEL, Remote

from support.postgres import Postgres
from support.processes import FanlightServer

SETTINGS: dict[str, Any] = {"default_model": False, "trust": "request", "threads": 1, "step_timeout": 3}


@pytest.fixture(scope="session", params=["superuser", "ordinary"])
def new_database(request: pytest.FixtureRequest, postgres_server: Postgres) -> Callable[[], str]:
    """Gives the URL of a fresh, empty database: of a role for whom row-level security does not hold, and of one for whom it does."""
    return postgres_server.walled if request.param == "ordinary" else postgres_server.database


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Remote]]:
    """`start(**settings)`: a ready server; several share the folder of artifacts and the model."""
    made: list[Remote] = []
    model = tmp_path / "tiny.py"
    model.write_text(MODEL)

    def make(**settings: Any) -> Remote:
        folder = tmp_path / f"server-{len(made)}"
        folder.mkdir()
        server = FanlightServer(folder, **{**SETTINGS, "models": model, **settings})
        server.start()
        made.append(Remote(server, model))
        return made[-1]

    yield make
    for remote in made:
        remote.http.close()
        remote.server.stop(patience=15)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    """One server for the faults that it must get over by itself."""
    folder = tmp_path_factory.mktemp("faults")
    model = folder / "tiny.py"
    model.write_text(MODEL)
    server = FanlightServer(folder, **{**SETTINGS, "models": model})
    server.start()
    made = Remote(server, model)
    yield made
    made.http.close()
    server.stop(patience=15)
