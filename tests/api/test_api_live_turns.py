"""Turns of live edits: of a session only the latest waits, in the place of its first; answers before suggestions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from fanlight.errors import Conflict
from fanlight.service import live_turns
from fanlight.service.live_turns import LiveTurns, Session


def person(name: str) -> Session:
    return ("default", "somebody", name)


class Line:
    """One place, held until `free` is set; who came through, in order."""

    def __init__(self, places: int = 1):
        self.turns = LiveTurns(places)
        self.free = asyncio.Event()
        self.through: list[tuple[str, int]] = []

    def ask(self, name: str, seq: int, **more: Any) -> asyncio.Task[None]:
        async def asked() -> None:
            async with self.turns.turn(person(name), seq, **more):
                self.through.append((name, seq))
                await self.free.wait()

        return asyncio.create_task(asked())


def of(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def overtaken(task: Awaitable[None]) -> None:
    with pytest.raises(Conflict) as e:
        await task
    assert e.value.code == "superseded"


@of
async def test_a_newer_change_takes_the_place_of_the_one_that_waits() -> None:
    line = Line()
    holder = line.ask("a", 0)
    await settled()
    first, other = line.ask("b", 0), line.ask("c", 0)
    await settled()
    newer = line.ask("b", 1)
    await overtaken(first)
    line.free.set()
    await asyncio.gather(holder, other, newer)
    assert line.through == [("a", 0), ("b", 1), ("c", 0)]  # before c, although it came after it


@of
async def test_an_older_change_that_comes_late_is_refused() -> None:
    line = Line()
    line.free.set()
    await line.ask("a", 5)
    await overtaken(line.ask("a", 4))
    await line.ask("a", 5)
    assert line.through == [("a", 5), ("a", 5)]


@of
async def test_a_session_has_one_place_and_sessions_of_others_are_their_own() -> None:
    line = Line(places=3)
    running = line.ask("a", 0)
    await settled()
    waits = line.ask("a", 1)
    await settled()
    assert line.through == [("a", 0)]
    other = asyncio.create_task(line.turns._wait(("default", "somebody else", "a"), 0, 0.0))
    await asyncio.wait_for(other, 1)
    line.free.set()
    await asyncio.gather(running, waits)
    assert line.through == [("a", 0), ("a", 1)]


@of
async def test_suggestions_let_answers_pass_but_not_for_ever() -> None:
    line = Line()
    holder = line.ask("a", 0)
    await settled()
    patient, quick = line.ask("b", 0, patient=True), line.ask("c", 0)
    await settled()
    before = live_turns.PATIENCE
    live_turns.PATIENCE = -1.0  # as if it had waited longer than that
    try:
        old = line.ask("d", 0, patient=True)
        await settled()
    finally:
        live_turns.PATIENCE = before
    line.free.set()
    await asyncio.gather(holder, patient, quick, old)
    assert line.through == [("a", 0), ("d", 0), ("c", 0), ("b", 0)]


@of
async def test_who_leaves_keeps_no_place() -> None:
    line = Line()
    holder = line.ask("a", 0)
    await settled()
    gone, stays = line.ask("b", 0), line.ask("c", 0)
    await settled()
    gone.cancel()
    line.free.set()
    await asyncio.gather(holder, stays)
    assert line.through == [("a", 0), ("c", 0)] and gone.cancelled()


@of
async def test_who_leaves_in_the_moment_of_their_turn_gives_it_on() -> None:
    line = Line()
    holder = line.ask("a", 0)
    await settled()
    gone, stays = line.ask("b", 0), line.ask("c", 0)
    await settled()
    holder.cancel()
    for _ in range(20):  # until the turn is given, before it is taken
        if person("b") in line.turns._busy:
            break
        await asyncio.sleep(0)
    gone.cancel()
    line.free.set()
    await asyncio.wait_for(stays, 1)
    assert ("c", 0) in line.through and not line.turns._busy


@of
async def test_a_failure_gives_the_place_on() -> None:
    turns = LiveTurns(1)
    with pytest.raises(ValueError):
        async with turns.turn(person("a"), 0):
            raise ValueError
    async with asyncio.timeout(1), turns.turn(person("b"), 0):
        pass


@of
async def test_of_twenty_who_drag_each_is_served_in_turn_with_what_is_new() -> None:
    """Three times more than can be computed: nobody gets much less than anybody, and what is answered is not long gone."""
    turns, computed = LiveTurns(1), asyncio.Semaphore(0)
    answered: dict[int, list[int]] = {n: [] for n in range(20)}
    now = 0

    async def ask(n: int, seq: int) -> None:
        try:
            async with turns.turn(person(str(n)), seq):
                await computed.acquire()
                answered[n].append(now - seq)
        except Conflict as e:
            assert e.code == "superseded"

    tasks = []
    for now in range(60):  # noqa: B007 (the asker reads it)
        tasks += [asyncio.create_task(ask(n, now)) for n in range(20)]
        for _ in range(7):
            computed.release()
            await settled()
    for _ in tasks:
        computed.release()
    await asyncio.gather(*tasks)
    counts = [len(a) for a in answered.values()]
    assert sum(counts) < 20 * 60 / 2 and min(counts) >= 0.8 * max(counts)
    late = sorted(age for a in answered.values() for age in a)
    assert late[int(0.95 * len(late))] <= 1
