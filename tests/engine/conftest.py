"""Engines of each kind with a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_rig import KINDS, Rig


@pytest.fixture(scope="module", params=KINDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One engine for all tests of a module: they leave it in working order, which is part of what they test."""
    made = Rig(request.param, tmp_path_factory.mktemp(request.param)).start()
    yield made
    made.stop()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """`fresh(kind)`: an engine of its own, for what ends it."""
    made: list[Rig] = []

    def make(kind: str, **options: Any) -> Rig:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Rig(kind, folder, **options).start())
        return made[-1]

    yield make
    for one in made:
        one.stop()
