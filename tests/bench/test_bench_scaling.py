"""The benchmark of Ray: what it asks is what it says, on an engine without Ray."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fanlight.bench import scaling
from fanlight.engine.local import ProcessEngine
from fanlight.errors import FanlightError


def test_its_work_is_done_by_an_engine_and_a_failure_ends_it(tmp_path: Path) -> None:
    tiny = tmp_path / "tiny.py"
    tiny.write_text(scaling.TINY)
    source = {"file": str(tiny)}
    asker = scaling.Asker(tmp_path, source, source)

    async def act() -> tuple[float, float]:
        async with scaling._running(ProcessEngine(asker.config)) as engine:
            await asker.know(engine)
            found = await asker.maps(engine, 4), await asker.alone(engine)
            asker._models["tiny"]["digest"] = "0" * 64
            with pytest.raises(FanlightError, match="changed since it was registered"):
                await asker.alone(engine)
            return found

    rate, seconds = asyncio.run(asyncio.wait_for(act(), 60))
    assert rate > 0 and 0 < seconds < 30


def test_every_figure_is_declared_with_its_target() -> None:
    assert scaling.FIGURES["overhead"].at_most == 10
    assert {f"replicas_{n}" for n in scaling.REPLICAS} <= set(scaling.FIGURES)
