"""The cluster of Ray: joined or started, with the pools of replicas that the settings ask for."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fanlight.artifact import canonical, digest
from fanlight.errors import InvalidField, Unavailable
from fanlight.settings import Settings

ONGOING = 256  # calls in one replica: its core fills batches from many, and a live edit must never wait for a place
WAITING = 64  # calls of this server that wait for a place before the next is sent back to the ledger
TARGET = 16  # calls per replica at which Ray starts another: a batch's worth
BOUND = {"interactive": 4, "bulk": 16}  # calls in the replica that has the model before another may load it too
GRACE = 60.0  # seconds that a replica which is not needed any more has for what it does
OBJECTS = 80 * 2**20  # bytes of Ray's shared memory: only JSON passes, the rest is in the artifact store


@dataclass(frozen=True)
class Pool:
    """Replicas of one kind. Args: least, most: bounds of their number."""

    least: int = 1
    most: int = 1

    @classmethod
    def of(cls, text: str) -> Pool:
        """Of "2" or "1:4"."""
        least, _, most = text.partition(":")
        return cls(int(least), int(most or least))


@dataclass(frozen=True)
class Plan:
    """Where and how many.

    Args:
        address: of a cluster that runs, for example "auto" or "10.0.0.5:6379"; empty: one of our own, on loopback.
        interactive, bulk: the pools; without bulk replicas the interactive ones do everything.
        cpus, gpus: what each replica reserves.
        name: of the applications, so that two installations may share a cluster.
        isolate, step_timeout: of the engine in each replica.
    """

    address: str = ""
    interactive: Pool = field(default_factory=Pool)
    bulk: Pool = field(default_factory=Pool)
    cpus: float = 1
    gpus: float = 0
    name: str = "fanlight"
    isolate: bool = True
    step_timeout: float = 120

    @property
    def pools(self) -> dict[str, Pool]:
        pools = {"interactive": self.interactive, "bulk": self.bulk}
        return {name: pool for name, pool in pools.items() if pool.most}


def planned(settings: Settings) -> Plan:
    """What the settings ask for. Where no threads are named a replica has one, because several may share a machine."""
    if ":" in settings.device:
        raise InvalidField(
            "Ray chooses the GPU of each replica.",
            code="ray_device",
            given=settings.device,
            allowed=["auto", "cpu", "cuda"],
            hint="Set FANLIGHT_DEVICE=cuda.",
        )
    return Plan(
        settings.ray_address,
        Pool.of(settings.ray_interactive),
        Pool.of(settings.ray_bulk),
        cpus=settings.threads or 1,
        gpus=settings.ray_gpus or float(settings.device == "cuda"),
        isolate=settings.isolate,
        step_timeout=settings.step_timeout,
    )


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself, and ends the process three seconds after it: too soon to hand work back."""
    mine = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if mine and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def join(plan: Plan) -> None:
    """Connects to the cluster, or starts one on loopback. Authentication is by token always; nothing is reported to anybody."""
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    known = os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH")
    if plan.address and not known:
        raise Unavailable(
            "A Ray cluster runs code for whoever reaches it, so Fanlight joins none without a token.",
            code="ray_token",
            hint="Set RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to the same token on every node.",
        )
    if not plan.address:
        if not known:
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        # Otherwise Ray listens on the address by which others reach this machine.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    if ray.is_initialized():
        return
    options: dict[str, Any] = {"namespace": "fanlight", "log_to_driver": False, "logging_level": "error"}
    if plan.address:
        ray.init(plan.address, **options)
    else:
        # The controller of Serve needs a processor of its own in Ray's books.
        cpus = 1 + sum(pool.most for pool in plan.pools.values()) * plan.cpus
        ray.init("local", num_cpus=int(-(-cpus // 1)), include_dashboard=False, object_store_memory=OBJECTS, **options)


def deploy(hosted: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """Handles of the pools, which are running when this returns; equal ones that run already are left as they are, others go."""
    from ray import serve
    from ray.serve.config import ProxyLocation

    logging.getLogger("ray.serve").setLevel(logging.ERROR)  # what it says of itself is in files of its own
    serve.start(proxy_location=ProxyLocation.Disabled, logging_config={"log_level": "WARNING"})
    names = {name: _named(hosted, plan, name) for name in plan.pools}
    known = serve.status().applications
    for old in [n for n in known if n.startswith(f"{plan.name}-") and n not in names.values()]:
        serve.delete(old)
    absent = [name for name in names if names[name] not in known or known[names[name]].status == "DEPLOY_FAILED"]
    if absent:
        serve.run_many([_target(name, names[name], hosted, plan) for name in absent])
    return {name: serve.get_app_handle(full) for name, full in names.items()}


def _named(hosted: Mapping[str, Any], plan: Plan, pool: str) -> str:
    """The name of a pool's application says what runs in it, so that servers with equal settings share it."""
    from fanlight import __version__

    return f"{plan.name}-{pool}-{digest(canonical([__version__, hosted, plan.cpus, plan.gpus]))[:12]}"


def _target(name: str, full: str, hosted: Mapping[str, Any], plan: Plan) -> Any:
    from ray import serve
    from ray.serve.config import AutoscalingConfig, RequestRouterConfig

    from fanlight.engine.replica import Affinity, Replica

    pool = plan.pools[name]
    scaling = AutoscalingConfig(
        min_replicas=pool.least,
        max_replicas=pool.most,
        target_ongoing_requests=TARGET,
        upscale_delay_s=5,
        downscale_delay_s=300,
    )
    deployment = serve.deployment(
        Replica,
        name=name,
        autoscaling_config=scaling,
        max_ongoing_requests=ONGOING,
        max_queued_requests=WAITING,
        ray_actor_options={"num_cpus": plan.cpus, "num_gpus": plan.gpus},
        graceful_shutdown_timeout_s=GRACE,
        health_check_period_s=5,
        health_check_timeout_s=30,
        request_router_config=RequestRouterConfig(
            request_router_class=Affinity, request_router_kwargs={"bound": BOUND[name]}
        ),
    )
    return serve.RunTarget(deployment.bind(hosted), name=full, route_prefix=None)


def replicas(hosted: Mapping[str, Any], plan: Plan) -> dict[str, int]:
    """How many replicas of each pool are running."""
    from ray import serve

    known = serve.status().applications
    found = {name: known.get(_named(hosted, plan, name)) for name in plan.pools}
    return {
        name: app.deployments[name].replica_states.get("RUNNING", 0) if app and name in app.deployments else 0
        for name, app in found.items()
    }


def leave() -> None:
    """Ends the cluster that is our own."""
    import ray
    from ray import serve

    if ray.is_initialized():
        with contextlib.suppress(Exception):
            serve.shutdown()
        ray.shutdown()
