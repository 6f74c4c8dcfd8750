"""Whoever asks for the models while they are being loaded gets them a moment later."""

from __future__ import annotations

import asyncio

import pytest

from fanlight.service import models as service
from fanlight.service.context import Context
from fanlight.service.models import Models


def test_an_answer_waits_for_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act() -> None:
        models = Models(Context.__new__(Context))
        waiting = asyncio.create_task(models.loaded())
        await asyncio.sleep(0.02)
        assert not waiting.done()
        models.ready.set()
        await asyncio.wait_for(waiting, 1)
        await asyncio.wait_for(models.loaded(), 1)  # and never again

        slow = Models(Context.__new__(Context))
        monkeypatch.setattr(service, "LOADING", 0.02)
        await asyncio.wait_for(slow.loaded(), 1)
        assert not slow.ready.is_set()

    asyncio.run(act())
