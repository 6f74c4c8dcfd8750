"""A server in this process for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient

from fanlight.app import create


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with TestClient(
        create(settings(tmp_path), token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}
    ) as http:
        yield Api(started(http))
