"""How long the steps of the default model are: interactive work waits at most for one of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fanlight import bundles
from fanlight.adapters import loader
from fanlight.blobs import Blobs
from fanlight.engine.base import Event, Work
from fanlight.engine.core import Core
from fanlight.engine.execute import Config, Execution
from fanlight.explainers.registry import find, registry
from fanlight.images import encode

WANTED = 0.2  # seconds


def default_model() -> Path:
    for path in bundles.installed():
        if path.name == bundles.DEFAULT:
            return path
    pytest.skip("the default model is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("explainer", registry())
def test_the_longest_step_of_the_default_model_is_told(
    explainer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine that is busy has no steady times, so the number is printed and only the result is asserted."""
    source = loader.source(default_model())
    blobs = Blobs(str(tmp_path))
    picture = blobs.put(encode(np.random.default_rng(0).integers(0, 255, (224, 224, 3), dtype=np.uint8)))
    about = loader.describe(source)
    method = find(explainer)
    events: list[Event] = []
    core = Core(Execution(Config(str(tmp_path), device="cpu"), blobs), events.append)

    def explain(seed: int) -> Any:
        core.submit(
            Work(
                job=str(seed), attempt=1, kind="explain", model={"id": "m", "source": source, **about}, input=picture, explainer=explainer,
                version=method.version, params=method.Params().model_dump(mode="json"), target=None, seed=seed, numerics="n",
            )
        )  # fmt: skip
        while core.turn(block=False):
            pass
        return events[-1]

    assert explain(0).kind == "done", events[-1].data
    first, core.longest_step = core.longest_step, 0.0
    assert explain(1).kind == "done"
    with capsys.disabled():
        late = "" if core.longest_step <= WANTED else f", more than {1000 * WANTED:.0f} ms"
        sys.stdout.write(
            f"\n{explainer}: longest step {1000 * core.longest_step:.0f} ms{late}; "
            f"while the model is loaded {1000 * first:.0f} ms\n"
        )
