"""The child process: whatever kills it, hangs it or stops it costs an attempt, never the server."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from engine_rig import ASSERT, EXIT, HANG, SEIZE, Rig

from fanlight.engine.local import ProcessEngine
from fanlight.errors import FanlightError


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """With a watchdog that bites after two seconds."""
    made = Rig("process", tmp_path_factory.mktemp("process"), step_timeout=2).start()
    yield made
    made.stop()


async def when(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


def test_a_model_that_ends_the_process_fails_retryable_and_a_new_child_goes_on(rig: Rig) -> None:
    before = rig.engine.pid
    event = rig.last(rig.work(mood=EXIT))
    assert (event.kind, event.data["code"], event.data["retryable"]) == ("failed", "worker_crashed", True)
    assert rig.last(rig.work()).kind == "done"
    assert rig.engine.pid != before and not psutil.pid_exists(before)


def test_a_process_whose_device_is_lost_is_replaced_and_says_why(rig: Rig) -> None:
    before = rig.engine.pid
    event = rig.last(rig.work(mood=ASSERT))
    assert (event.kind, event.data["code"], event.data["retryable"]) == ("failed", "worker_crashed", True)
    assert "device-side assert" in event.data["message"]
    assert rig.last(rig.work()).kind == "done"
    assert rig.engine.pid != before and not psutil.pid_exists(before)


def test_a_thread_whose_device_is_lost_takes_nothing_more(fresh: Callable[..., Rig]) -> None:
    rig = fresh("thread")
    event = rig.last(rig.work(mood=ASSERT))
    assert (event.kind, event.data["retryable"]) == ("failed", True)
    with pytest.raises(FanlightError, match="lost its device") as caught:
        rig.run(rig.engine.submit(rig.work()))
    assert caught.value.code == "engine_down" and not rig.run(rig.engine.health()).ready


def test_only_what_had_the_device_is_blamed_for_a_crash(rig: Rig) -> None:
    innocent = [rig.work(rig.picture(n), "occlusion", params={"window": 4, "stride": 4}) for n in range(6)]
    guilty = rig.work(mood=EXIT, priority=0)
    ends = rig.last(*innocent, guilty)
    assert ends[-1].data["code"] == "worker_crashed"
    lost = [e for e in ends[:-1] if e.kind == "failed"]
    assert lost and {e.data["code"] for e in lost} == {"worker_lost"} and all(e.data["retryable"] for e in lost)


def test_a_second_attempt_runs_alone_so_that_it_blames_nobody_else(rig: Rig) -> None:
    works = [rig.work(rig.picture(n), attempt=2) for n in range(3)] + [rig.work(mood=EXIT, attempt=2)]
    codes = [e.data.get("code") for e in rig.last(*works)]
    assert codes.count("worker_crashed") == 1 and codes[-1] == "worker_crashed"


@pytest.mark.parametrize("mood", [HANG, SEIZE], ids=["sleeps", "holds the interpreter"])
def test_a_model_that_hangs_is_replaced(rig: Rig, mood: int) -> None:
    event = rig.last(rig.work(mood=mood))
    assert event.data["code"] == "worker_crashed" and event.data["retryable"]
    assert rig.last(rig.work()).kind == "done"


def test_a_child_that_is_killed_during_a_run_is_replaced(rig: Rig) -> None:
    async def act() -> Any:
        handle = await rig.engine.submit(rig.slow())
        events = []
        async for event in handle.events():
            events.append(event)
            if event.kind == "predicted":
                os.kill(rig.engine.pid, signal.SIGKILL)
        return events[-1]

    event = rig.run(act())
    assert event.data["code"] == "worker_crashed" and event.data["retryable"]
    assert rig.last(rig.work()).kind == "done"


def test_a_child_that_is_stopped_with_work_is_replaced(rig: Rig) -> None:
    pid = rig.engine.pid
    os.kill(pid, signal.SIGSTOP)
    assert rig.last(rig.work()).data["retryable"]
    assert rig.last(rig.work()).kind == "done"
    assert rig.engine.pid != pid


def test_a_child_that_is_stopped_for_a_moment_goes_on(rig: Rig) -> None:
    async def act() -> Any:
        os.kill(rig.engine.pid, signal.SIGSTOP)
        asyncio.get_running_loop().call_later(0.7, os.kill, rig.engine.pid, signal.SIGCONT)
        return (await rig.events(rig.work()))[-1]

    assert rig.run(act()).kind == "done"


def test_crashes_one_after_the_other_do_not_end_the_engine(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fanlight.engine.local.STARTS", 2)
    for _ in range(3):
        assert rig.last(rig.work(mood=EXIT)).data["retryable"]
    assert rig.last(rig.work()).kind == "done"


def test_a_source_that_ends_or_hangs_the_child_is_a_sentence(rig: Rig) -> None:
    path = rig.folder / "bad.py"
    for text in ("import os; os._exit(3)", "import time; time.sleep(600)"):
        path.write_text(text)
        with pytest.raises(FanlightError) as caught:
            rig.run(rig.engine.describe({"file": str(path)}))
        assert caught.value.code == "worker_crashed"
    assert rig.last(rig.work()).kind == "done"


def test_what_a_model_prints_does_not_disturb_the_seam(rig: Rig) -> None:
    path = rig.folder / "loud.py"
    path.write_text('import os\nprint("{}")\nos.write(1, b"{\\"event\\": []}\\n")\n' + rig.path.read_text())
    assert rig.run(rig.engine.describe({"file": str(path)}))["name"] == "loud"


def test_ending_the_group_politely_leaves_the_child_to_the_server(rig: Rig) -> None:
    pid = rig.engine.pid
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, number)
    assert rig.last(rig.work()).kind == "done"
    assert rig.engine.pid == pid


def test_closing_leaves_no_child_behind(fresh: Callable[..., Rig]) -> None:
    rig = fresh("process")
    pid = rig.engine.pid
    rig.run(rig.engine.close())
    assert not psutil.pid_exists(pid)


def test_a_child_that_cannot_start_is_given_up_with_its_reason(tmp_path: Path) -> None:
    async def act() -> None:
        engine = ProcessEngine({"artifacts": str(tmp_path), "device": "no-such-device", "explainers": ()})
        await engine.start()
        try:
            with pytest.raises(FanlightError, match="no-such-device") as caught:
                await engine.describe({"file": "x"})
            assert caught.value.code == "engine_down"
            assert not (await engine.health()).ready
        finally:
            await engine.close()

    asyncio.run(asyncio.wait_for(act(), 60))


PARENT = """
import asyncio, sys
from fanlight.engine.local import ProcessEngine
async def main():
    engine = ProcessEngine({"artifacts": sys.argv[1], "device": "cpu", "threads": 1, "explainers": ()})
    await engine.start()
    asyncio.ensure_future(engine.describe({"file": sys.argv[2]}))
    await engine._ready.wait()
    print(engine.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "model", ["", "import re; re.match('(a+)+$', 'a' * 60 + 'b')"], ids=["idle", "holds the interpreter"]
)
def test_a_child_ends_with_its_server_whatever_it_is_doing(tmp_path: Path, model: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(model)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, tmp_path, path], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent, parent.stdout as out:
        child = psutil.Process(int(out.readline()))
        time.sleep(1)
        parent.kill()
        parent.wait()
        try:
            child.wait(5)
        except psutil.TimeoutExpired:
            child.kill()
            pytest.fail("the child outlived its server")
