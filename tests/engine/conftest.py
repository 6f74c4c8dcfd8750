"""Engines of each kind with a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from engine_rig import KINDS, Rig


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a Ray cluster with a replica in each pool: one for all tests of a run, because it takes a while to start."""
    if find_spec("ray") is None:  # not imported here: the engine first says how it authenticates
        pytest.skip("fanlight[ray] is not installed")
    owner = Rig("ray", tmp_path_factory.mktemp("ray"), address="").start(240)
    yield owner.folder
    owner.stop()


@pytest.fixture(scope="module", params=KINDS)
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One engine for all tests of a module: they leave it in working order, which is part of what they test."""
    ray = request.param == "ray"
    folder = request.getfixturevalue("cluster") if ray else tmp_path_factory.mktemp(request.param)
    made = Rig(request.param, folder).start()
    yield made
    made.stop()


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    """`fresh(kind)`: an engine of its own, for what ends it."""
    made: list[Rig] = []

    def make(kind: str, **options: Any) -> Rig:
        folder = request.getfixturevalue("cluster") if kind == "ray" else tmp_path / str(len(made))
        folder.mkdir(exist_ok=True)
        made.append(Rig(kind, folder, **options).start())
        return made[-1]

    yield make
    for one in made:
        one.stop()
