"""Ray: where jobs go, what crosses, and what a lost replica costs. The suite of all engines runs on it too (test_engine_conformance.py)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pytest
from engine_rig import ON_RAY, Rig

from fanlight.engine.base import BULK, Event
from fanlight.engine.cluster import Plan, Pool, planned
from fanlight.engine.handles import QueueHandle, thinned
from fanlight.engine.ray import RayEngine
from fanlight.errors import FanlightError
from fanlight.settings import Settings

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="fanlight[ray] is not installed")


def slow(test: Any) -> Any:
    for mark in ON_RAY:
        test = mark(test)
    return test


# --- without a cluster


@pytest.fixture
def routing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the router; authentication is said before Ray is first imported, as the engine does."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    return pytest.importorskip("fanlight.engine.replica", exc_type=ImportError)


@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_a_model_goes_to_the_same_replica_and_to_the_next_only_when_that_is_full(routing: Any) -> None:
    names = [f"replica {n}" for n in range(5)]
    first, second, *_ = routing.order("model", names)
    busy = dict.fromkeys(names, 0)
    assert {routing.preferred("model", busy, 4) for _ in range(3)} == {first}
    assert routing.preferred("model", {**busy, first: 4}, 4) == second
    assert routing.preferred("model", dict.fromkeys(names, 4), 4) is None
    assert routing.preferred("model", {}, 4) is None


@needs_ray
@pytest.mark.filterwarnings("ignore")
def test_models_spread_over_replicas_and_one_more_moves_only_its_share(routing: Any) -> None:
    models = [f"model {n}" for n in range(400)]

    def placed(replicas: int) -> dict[str, str]:
        return {m: routing.order(m, [f"replica {n}" for n in range(replicas)])[0] for m in models}

    before, after = placed(4), placed(5)
    assert min(Counter(before.values()).values()) > 60, "a fourth is 100"
    moved = [m for m in models if before[m] != after[m]]
    assert {after[m] for m in moved} == {"replica 4"} and len(moved) < 130, "a fifth is 80"


def test_of_progress_in_a_row_the_last_is_told_with_the_latest_picture() -> None:
    told = [
        Event("j", "started"),
        Event("j", "progress", {"done": 0.1, "message": "a", "preview": "p"}),
        Event("j", "progress", {"done": 0.2, "message": "b"}),
        Event("j", "predicted", {"prediction": []}),
        Event("j", "progress", {"done": 0.3, "message": "c"}),
        Event("j", "done", {}),
    ]
    kinds = [(e.kind, e.data.get("done")) for e in thinned(told)]
    assert kinds == [("started", None), ("progress", 0.2), ("predicted", None), ("progress", 0.3), ("done", None)]
    assert thinned(told)[1].data["preview"] == "p"


def test_a_batch_of_events_waits_only_where_it_holds_nothing_but_progress() -> None:
    async def act() -> list[list[str]]:
        handle = QueueHandle("j", lambda _: None)
        found: list[list[str]] = []

        async def read() -> None:
            async for some in handle.batches():
                found.append([e.kind for e in some])

        reading = asyncio.create_task(read())
        handle.put(Event("j", "started"))
        await asyncio.sleep(0.01)
        assert found == [["started"]], "at once"
        for n in range(5):
            handle.put(Event("j", "progress", {"done": n / 10, "message": ""}))
            await asyncio.sleep(0.001)
        handle.put(Event("j", "done"))
        await asyncio.wait_for(reading, 1)
        return found

    assert asyncio.run(act()) == [["started"], ["progress", "done"]]


def test_the_settings_say_how_many_replicas() -> None:
    plan = planned(Settings(ray_interactive="2:6", ray_bulk="0", device="cuda", threads=3))
    assert plan.pools == {"interactive": Pool(2, 6)} and (plan.cpus, plan.gpus) == (3, 1)
    assert planned(Settings(ray_gpus=0.5, device="cuda")).gpus == 0.5
    with pytest.raises(FanlightError, match="Ray chooses the GPU"):
        planned(Settings(device="cuda:1"))


@pytest.mark.parametrize("wrong", ["0", "4:2", "a", "1:2:3", ""])
def test_bounds_that_make_no_sense_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="ray_interactive"):
        Settings(ray_interactive=wrong)


@needs_ray
def test_no_cluster_is_joined_without_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "")

    async def act() -> None:
        engine = RayEngine({"artifacts": str(tmp_path), "explainers": ()}, Plan(address="127.0.0.1:6379"))
        await engine.start()
        with pytest.raises(FanlightError, match="joins none without a token"):
            await engine.describe({"file": "x"})
        assert not (await engine.health()).ready
        await engine.close()

    asyncio.run(asyncio.wait_for(act(), 30))


# --- on a cluster


@pytest.fixture(scope="module")
def on_ray(cluster: Path) -> Iterator[Rig]:
    made = Rig("ray", cluster).start()
    yield made
    made.stop()


def replicas(pool: str) -> list[psutil.Process]:
    return [p for p in psutil.process_iter() if p.name().startswith("ray::Serve") and f":{pool}" in p.cmdline()[0]]


def kill_when_predicted(rig: Rig, work: Any, victim: psutil.Process) -> list[Event]:
    async def act() -> list[Event]:
        handle = await rig.engine.submit(work)
        seen = []
        async for event in handle.events():
            seen.append(event)
            if event.kind == "predicted":
                victim.send_signal(signal.SIGKILL)
        return seen

    return list(rig.run(act()))


@slow
def test_a_killed_replica_costs_an_attempt_and_another_comes(on_ray: Rig) -> None:
    victim = replicas("interactive")[0]
    seen = kill_when_predicted(on_ray, on_ray.slow(), victim)
    assert (seen[-1].kind, seen[-1].data["code"], seen[-1].data["retryable"]) == ("failed", "worker_crashed", True)
    assert [e.kind for e in seen].count("started") == 1
    assert on_ray.last(on_ray.work()).kind == "done"
    assert [p.pid for p in replicas("interactive")] != [victim.pid]


@slow
def test_a_killed_worker_inside_a_replica_costs_an_attempt_and_not_the_replica(on_ray: Rig) -> None:
    replica = replicas("interactive")[0]
    seen = kill_when_predicted(on_ray, on_ray.slow(), replica.children()[0])
    assert (seen[-1].data["code"], seen[-1].data["retryable"]) == ("worker_crashed", True)
    assert on_ray.last(on_ray.work()).kind == "done"
    assert replicas("interactive")[0].pid == replica.pid


@slow
def test_a_killed_controller_ends_nothing_that_runs(on_ray: Rig) -> None:
    controller = next(p for p in psutil.process_iter() if p.name().startswith("ray::ServeContr"))
    seen = kill_when_predicted(on_ray, on_ray.slow(), controller)
    assert seen[-1].kind == "done"
    assert on_ray.last(on_ray.work()).kind == "done"


@slow
def test_bulk_work_is_done_by_the_other_pool(on_ray: Rig) -> None:
    held = on_ray.slow(priority=BULK)

    async def act() -> tuple[str, str]:
        bulk = asyncio.create_task(on_ray.events(held))
        await asyncio.sleep(0.2)
        os.kill(replicas("bulk")[0].pid, signal.SIGSTOP)
        try:
            other = (await on_ray.events(on_ray.work()))[-1].kind
        finally:
            os.kill(replicas("bulk")[0].pid, signal.SIGCONT)
        return other, (await bulk)[-1].kind

    assert on_ray.run(act()) == ("done", "done")


@slow
def test_a_second_server_with_equal_settings_shares_the_replicas(on_ray: Rig, cluster: Path) -> None:
    before = {p.pid for pool in ("interactive", "bulk") for p in replicas(pool)}
    other = Rig("ray", cluster).start()
    assert other.last(other.work()).kind == "done"
    other.stop()
    assert {p.pid for pool in ("interactive", "bulk") for p in replicas(pool)} == before
    assert on_ray.last(on_ray.work()).kind == "done", "the end of one server leaves the replicas to the other"


@slow
def test_every_open_port_is_on_loopback_or_asks_for_the_token(on_ray: Rig) -> None:
    import grpc
    from ray.serve.generated import serve_pb2, serve_pb2_grpc

    ours = [p for p in psutil.process_iter() if "ray" in p.name().lower() or "ray" in " ".join(p.cmdline()[:4]).lower()]
    ports = {
        (c.laddr.ip, c.laddr.port): p.name()
        for p in ours
        for c in p.net_connections("tcp")
        if c.status == psutil.CONN_LISTEN
    }
    assert ports
    wide = {port: name for (ip, port), name in ports.items() if not ip_address(ip.removeprefix("::ffff:")).is_loopback}
    assert all(name.startswith("ray::ServeReplic") for name in wide.values()), ports
    for port in wide:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.RpcError) as caught:
                serve_pb2_grpc.ASGIServiceStub(channel).HandleRequest(serve_pb2.ASGIRequest(), timeout=10)
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
