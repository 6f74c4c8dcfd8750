"""One trainer for all bottlenecks: joint, sequential or independent; it goes on from its checkpoint to the same weights.

The chance of an epoch depends on (seed, epoch) alone, and a checkpoint holds weights, moments and averaged weights: nothing else is needed to go on.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fanlight_models.concepts.losses import Losses, temperature
from fanlight_models.training_log import TrainingLog, beside

MODES = ("joint", "sequential", "independent")
SCHEDULES = ("step", "constant")
SECOND = {"sequential": "target", "independent": "target-on-truth"}


class Cases(Protocol):
    """A training set."""

    @property
    def concepts(self) -> Tensor:
        """(n, K) in {0, 1}, float32."""
        ...

    @property
    def labels(self) -> Tensor:
        """(n,) int64."""
        ...

    def inputs(self, index: Tensor, chance: torch.Generator | None) -> Tensor:
        """What the encoder gets for some cases, (b, ...); with `chance` augmented, where that is done."""
        ...


@dataclass(frozen=True, eq=False)
class TensorCases:
    """A training set that is one tensor x (n, ...)."""

    x: Tensor
    concepts: Tensor
    labels: Tensor

    def inputs(self, index: Tensor, chance: torch.Generator | None) -> Tensor:  # noqa: ARG002 # nothing is augmented
        return self.x[index]


@dataclass(frozen=True)
class Plan:
    """How a model is trained; the defaults are the paper's public code's where it states them.

    epochs: of the concepts, or of everything if joint; head_epochs, head_rate: of the second stage (None: the same rate). schedule: `step` halves
    the rate every 150 epochs; `constant` keeps it and lets it fall linearly to nothing in the last `cool` of the steps. average: share of the last
    epochs whose weights are averaged into the result; 0: none. concept_weight: alpha; precision_weight: lambda; clip: most length of the gradient,
    0: any. covariance_rate: share of the rate for the covariance; with many concepts the inverse of L blows up at a rate that the others like."""

    mode: str = "joint"
    epochs: int = 150
    head_epochs: int = 50
    rate: float = 1e-4
    head_rate: float | None = None
    decay: float = 0.0
    batch: int = 64
    samples: int = 100
    concept_weight: float = 1.0
    precision_weight: float = 1.0
    schedule: str = "step"
    cool: float = 0.2
    average: float = 0.0
    clip: float = 0.0
    covariance_rate: float = 1.0
    seed: int = 42

    def __post_init__(self) -> None:
        for name, allowed in (("mode", MODES), ("schedule", SCHEDULES)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"“{getattr(self, name)}” is no {name}. Allowed: {', '.join(allowed)}.")
        if min(self.epochs, self.head_epochs) < 0 or min(self.batch, self.samples) < 1 or self.rate <= 0:
            raise ValueError("Epochs are at least 0, batch and samples at least 1, the rate above 0.")

    def stages(self) -> list[tuple[str, int]]:
        """(stage, epochs) in order."""
        if self.mode == "joint":
            return [("joint", self.epochs)]
        return [("concepts", self.epochs), (SECOND[self.mode], self.head_epochs)]

    def share(self, epoch: int, done: float) -> float:
        """Of the rate: epoch of the stage, done: 0..1 of the stage's steps."""
        if self.schedule == "step":
            return float(0.5 ** (epoch // 150))
        return 1.0 if self.cool <= 0 or done < 1 - self.cool else max((1 - done) / self.cool, 0.0)


@dataclass(frozen=True)
class Epoch:
    """What is known after an epoch: mean losses a case, seconds it took, seconds left of the stage at that pace."""

    stage: str
    number: int
    of: int
    losses: Losses
    seconds: float
    left: float
    jitter: float = 0.0


Progress = Callable[[Epoch], None]


def shell(epoch: Epoch) -> None:
    """Progress as lines on standard error."""
    parts = "  ".join(f"{k} {v:.3f}" for k, v in _parts(epoch).items())
    sys.stderr.write(
        f"{epoch.stage}: epoch {epoch.number} of {epoch.of}  {parts}  {epoch.seconds:.1f} s, {epoch.left:.0f} s left\n"
    )
    sys.stderr.flush()


def train(
    model: Any,
    cases: Cases,
    plan: Plan,
    *,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
    stop: int | None = None,
) -> bool:
    """Trains `model` (a bottleneck of this package) in place; returns whether it is finished.

    Args: checkpoint: file that is replaced after every epoch, and gone on from; a log lies beside it. stop: epochs after which this
    call ends, to go on another time.
    Errors: ValueError where the checkpoint is of another plan or another model, or where the loss is not finite."""
    begin(model, cases, plan.seed)
    count = 0
    log = None if checkpoint is None else TrainingLog(beside(checkpoint), f"Concepts: {model.kind}, seed {plan.seed}")
    for number, (stage, epochs) in enumerate(plan.stages()):
        rate = plan.rate if number == 0 or plan.head_rate is None else plan.head_rate
        optimiser = torch.optim.AdamW(_groups(model, stage, plan), rate, weight_decay=plan.decay)
        mean = _Mean(model)
        at = _resume(checkpoint, plan, number, model, optimiser, mean)
        for epoch in range(at, epochs):
            if stop is not None and count >= stop:
                return False
            told = _epoch(model, cases, plan, stage, epoch, epochs, optimiser, rate)
            if plan.average and epoch >= epochs - max(1, round(plan.average * epochs)):
                mean.add(model)
            if checkpoint is not None:
                _save(checkpoint, plan, number, epoch + 1, model, optimiser, mean)
            if log is not None:
                log.step(told.stage, told.number, told.of, _parts(told), left=told.left)
            if progress is not None:
                progress(told)
            count += 1
        if at <= epochs:
            mean.give(model)
    if log is not None:
        log.end()
    model.eval()
    return True


def _parts(epoch: Epoch) -> dict[str, float]:
    """The losses that count in a stage."""
    return {name: float(value) for name, value in epoch.losses._asdict().items() if float(value)}


def begin(model: nn.Module, cases: Cases, seed: int) -> None:
    """What a model takes from the labels before it is trained."""
    model.begin(cases.concepts)  # type: ignore[operator]
    torch.manual_seed(seed)


def _free(model: Any, stage: str) -> list[nn.Parameter]:
    if stage == "joint":
        return list(model.parameters())
    return list(model.concept_parameters()) if stage == "concepts" else list(model.head.parameters())


def _groups(model: Any, stage: str, plan: Plan) -> list[dict[str, Any]]:
    """What is trained, with its share of the rate."""
    free = _free(model, stage)
    slow = {id(p) for p in model.spread.parameters()} if hasattr(model, "spread") else set()
    parts = [(1.0, [p for p in free if id(p) not in slow]), (plan.covariance_rate, [p for p in free if id(p) in slow])]
    return [{"params": some, "of_rate": share} for share, some in parts if some]


def _epoch(
    model: Any,
    cases: Cases,
    plan: Plan,
    stage: str,
    epoch: int,
    epochs: int,
    optimiser: torch.optim.Optimizer,
    rate: float,
) -> Epoch:
    began = time.monotonic()
    chance = torch.Generator().manual_seed(plan.seed * 1_000_003 + epoch + 7919 * len(stage))
    order = torch.randperm(len(cases.labels), generator=chance)
    steps = max(len(order) // plan.batch, 1)
    tau, total = temperature(epoch, epochs), torch.zeros(3, dtype=torch.float64)
    model.train()
    if stage.startswith("target"):
        model.encoder.eval()  # it is frozen, dropout and statistics too
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.seed * 1_000_003 + epoch + 104_729 * len(stage))
        for step, chosen in enumerate(torch.split(order, plan.batch)[:steps]):
            for group in optimiser.param_groups:
                group["lr"] = group["of_rate"] * rate * plan.share(epoch, (epoch * steps + step) / (epochs * steps))
            x = cases.inputs(chosen, chance)
            found: Losses = model.losses(x, cases.concepts[chosen], cases.labels[chosen], stage, tau, plan.samples)
            loss = found.target + plan.concept_weight * found.concepts + plan.precision_weight * found.precision
            if not math.isfinite(loss.item()):
                raise ValueError(f"The loss of epoch {epoch + 1} ({stage}) is not finite; a lower rate may help.")
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            if plan.clip:
                nn.utils.clip_grad_norm_((p for g in optimiser.param_groups for p in g["params"]), plan.clip)
            optimiser.step()
            total += torch.stack([part.detach().double() for part in found])
    seconds = time.monotonic() - began
    losses = Losses(*(total / steps))
    return Epoch(stage, epoch + 1, epochs, losses, seconds, seconds * (epochs - epoch - 1))


class _Mean:
    """Running mean of a model's weights (and statistics) over epochs."""

    def __init__(self, model: nn.Module):
        self.count = 0
        self.kept = {k: torch.zeros_like(v) for k, v in _floats(model)}

    def add(self, model: nn.Module) -> None:
        self.count += 1
        for k, v in _floats(model):
            self.kept[k] += (v - self.kept[k]) / self.count

    def give(self, model: nn.Module) -> None:
        if self.count:
            own = dict(_floats(model))
            for k, v in self.kept.items():
                own[k].copy_(v)


def _floats(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for k, v in model.state_dict().items():
        if v.is_floating_point():
            yield k, v


def _same(plan: Plan) -> str:
    return json.dumps(asdict(plan), sort_keys=True)


def _save(
    path: Path, plan: Plan, stage: int, epoch: int, model: nn.Module, optimiser: torch.optim.Optimizer, mean: _Mean
) -> None:
    kept = {f"net.{k}": v.contiguous() for k, v in model.state_dict().items()}
    for n, state in optimiser.state_dict()["state"].items():
        kept |= {f"moment.{n}.{k}": v.contiguous() for k, v in state.items()}
    if mean.count:
        kept |= {f"mean.{k}": v.contiguous() for k, v in mean.kept.items()}
    kept = {k: v.clone() for k, v in kept.items()}  # tensors that share memory are refused
    fresh = path.with_suffix(".part")
    about = {"plan": _same(plan), "stage": str(stage), "epoch": str(epoch), "averaged": str(mean.count)}
    save_file(kept, fresh, about)
    fresh.replace(path)


def _resume(
    path: Path | None, plan: Plan, stage: int, model: nn.Module, optimiser: torch.optim.Optimizer, mean: _Mean
) -> int:
    """The epoch of this stage to go on with; past its end where the checkpoint is of a later stage."""
    if path is None or not path.exists():
        return 0
    with safe_open(path, "pt") as opened:
        about = opened.metadata() or {}
        if about.get("plan") != _same(plan):
            raise ValueError(f"{path.name} is the checkpoint of another plan; name another file or remove it.")
        at = int(about["stage"])
        if at < stage:
            return 0
        kept = {key: opened.get_tensor(key) for key in opened.keys()}
    own = {k.removeprefix("net."): v for k, v in kept.items() if k.startswith("net.")}
    if {k: v.shape for k, v in own.items()} != {k: v.shape for k, v in model.state_dict().items()}:
        raise ValueError(f"{path.name} is the checkpoint of another model; name another file or remove it.")
    model.load_state_dict(own)
    if at > stage:
        return sys.maxsize
    state = optimiser.state_dict()
    for key, value in kept.items():
        if key.startswith("moment."):
            _, n, name = key.split(".", 2)
            state["state"].setdefault(int(n), {})[name] = value
    optimiser.load_state_dict(state)
    mean.count = int(about["averaged"])
    mean.kept |= {k.removeprefix("mean."): v for k, v in kept.items() if k.startswith("mean.")}
    return int(about["epoch"])
