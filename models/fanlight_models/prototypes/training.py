"""Training in stages (ProtoViT, section 3.6): backbone, warm-up, joint, slots, projection, last layer. Resumable after every epoch.

The published rates of the slots and of the last layer mean something only with the published number of steps: Adam moves a weight by about its
rate a step. So those two are given as a distance that a weight may travel, and the rate follows from the steps [OWN].
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fanlight_models.prototypes import losses
from fanlight_models.prototypes.projection import Source, project
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.training_log import TrainingLog, beside

STAGES = ("backbone", "warm", "joint", "slots", "projection", "last")
DECAY = 1e-3
STEP, GAMMA = 5, 0.1  # the joint rates fall to a tenth every five epochs


@dataclass(frozen=True)
class Plan:
    """What is done for how long.

    Args:
        variant: losses as in the paper or as in the authors' code.
        epochs: per stage; `backbone` is 0 where the weights come from elsewhere. Projection happens once, unless it is 0: then the gates
            are rounded and the vectors stay what was learnt, which shows what projection is worth.
        coherent: whether the parts of a prototype are held together by the loss.
        backbone_rate: of the backbone stage, the highest of a one-cycle schedule.
        warm_rate, joint_rate, prototype_rate: AdamW.
        slot_travel, last_travel: distance that a raw gate, and a weight of the last layer, may move in its stage.
    """

    variant: losses.Variant = "paper"
    coherent: bool = True
    epochs: Mapping[str, int] = field(
        default_factory=lambda: {"backbone": 0, "warm": 5, "joint": 10, "slots": 10, "last": 15}
    )
    backbone_rate: float = 1e-3
    warm_rate: float = 1e-7
    joint_rate: float = 5e-5
    prototype_rate: float = 3e-3
    slot_travel: float = 0.6
    last_travel: float = 0.75
    seed: int = 0


class Data(Protocol):
    """Pictures in model space with their classes."""

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        ...

    def augmented(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Training batches, (B, 3, H, W) and (B,), the same for the same epoch."""
        ...

    def plain(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The training pictures as they are, in a fixed order."""
        ...

    def validation(self) -> Iterator[tuple[Tensor, Tensor]]: ...


@dataclass(frozen=True)
class Epoch:
    """What an epoch came to.

    Args: stage, number (from 1), of; losses: means over the epoch; accuracy: on validation, 0..1; open: mean parts per prototype.
    """

    stage: str
    number: int
    of: int
    losses: Mapping[str, float]
    accuracy: float
    open: float


@dataclass
class Training:
    """One training, continued from its checkpoint where there is one.

    Args: model; data; plan; checkpoint: a safetensors file; tell: called after every epoch.
    After `run`: `history` and `sources` (of the projection).
    """

    model: ProtoViT
    data: Data
    plan: Plan
    checkpoint: Path
    tell: Callable[[Epoch], None] = lambda _: None
    history: list[Epoch] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape = self.model.features.shape
        classes = self.model.head.last_layer.out_features
        torch.manual_seed(self.plan.seed)
        self.classifier = nn.Linear(shape.width, classes)  # on the class token, of the backbone stage alone
        self._done: list[tuple[str, int]] = []
        self._moments: dict[str, Tensor] = {}
        self._log = TrainingLog(beside(self.checkpoint), f"Prototypes: {self.checkpoint.stem}")
        if self.checkpoint.exists():
            self._load()

    def run(self, stop: Callable[[], bool] = lambda: False) -> bool:
        """Trains what is left. Returns False where `stop` asked for an end after an epoch: the next `run` goes on."""
        for stage in STAGES:
            if stage == "projection":
                if ("projection", 1) not in self._done:
                    if self.plan.epochs.get("projection", 1):
                        self.sources = project(self.model, self.data.plain)
                    else:
                        self.model.head.round_gates()
                    self._finish(stage, 1, 1, {})
                continue
            total = self.plan.epochs.get(stage, 0)
            first = sum(s == stage for s, _ in self._done)
            if first >= total:
                continue
            optimiser = self._optimiser(stage, total)
            self._restore(optimiser)
            for number in range(first, total):
                self._finish(stage, number + 1, total, self._epoch(stage, number, total, optimiser), optimiser)
                if stop():
                    return False
            self._moments = {}
        self._log.end()
        return True

    # --- one epoch

    def _epoch(self, stage: str, number: int, total: int, optimiser: torch.optim.Optimizer) -> dict[str, float]:
        sums: dict[str, float] = {}
        count = 0
        self.model.train(stage in ("backbone", "warm", "joint"))
        torch.manual_seed(self.plan.seed * 10_000 + STAGES.index(stage) * 1_000 + number)
        for step, (x, classes) in enumerate(self.data.augmented(100 * STAGES.index(stage) + number)):
            self._rate(stage, (number * self.data.steps + step) / max(total * self.data.steps, 1), number, optimiser)
            found = self._losses(stage, x, classes)
            optimiser.zero_grad()
            torch.autograd.backward(found["total"])
            optimiser.step()
            count += 1
            for name, value in found.items():
                sums[name] = sums.get(name, 0.0) + float(value.detach())
        return {name: value / max(count, 1) for name, value in sums.items()}

    def _losses(self, stage: str, x: Tensor, classes: Tensor) -> dict[str, Tensor]:
        head = self.model.head
        if stage == "backbone":
            whole, _ = self.model.features(x)
            cross = F.cross_entropy(self.classifier(whole), classes, label_smoothing=0.05)
            return {"cross_entropy": cross, "total": cross}
        if stage in ("warm", "joint"):
            found = self.model(x)
            return losses.joint(
                found.logits,
                found.similarity,
                head.parts(),
                head.gate,
                head.own,
                classes,
                self.plan.variant,
                coherent=self.plan.coherent,
            )
        with torch.no_grad():
            z = self.model.features.tokens(x)
        found = head(z)
        cross = F.cross_entropy(found.logits, classes)
        if stage == "slots":
            apart = losses.coherence(head.parts().detach(), head.gate, self.plan.variant)
            weight = losses.SLOT_COHERENCE[self.plan.variant] * self.plan.coherent
            return {"cross_entropy": cross, "coherence": apart, "total": cross + weight * apart}
        shrink = losses.last_layer(head.last_layer.weight, head.own)
        return {"cross_entropy": cross, "l1": shrink, "total": cross + losses.LAST_LAYER_L1 * shrink}

    def _optimiser(self, stage: str, total: int) -> torch.optim.Optimizer:
        """Only what a stage trains is in its optimiser."""
        head, plan, steps = self.model.head, self.plan, max(total * self.data.steps, 1)
        backbone = list(self.model.features.parameters())
        groups: list[dict[str, Any]] = {
            "backbone": [{"params": [*backbone, *self.classifier.parameters()], "lr": plan.backbone_rate, "weight_decay": 0.05}],
            "warm": [
                {"params": backbone, "lr": plan.warm_rate, "weight_decay": DECAY},
                {"params": [head.prototype_vectors], "lr": plan.prototype_rate, "weight_decay": 0.0},
            ],
            "joint": [
                {"params": backbone, "lr": plan.joint_rate, "weight_decay": DECAY},
                {"params": [head.prototype_vectors], "lr": plan.prototype_rate, "weight_decay": 0.0},
            ],
            "slots": [{"params": [head.patch_select], "lr": plan.slot_travel / steps, "weight_decay": 0.0}],
            "last": [{"params": [head.last_layer.weight], "lr": plan.last_travel / steps, "weight_decay": 0.0}],
        }[stage]  # fmt: skip
        for group in groups:
            group["initial"] = group["lr"]
        return torch.optim.AdamW(groups)

    def _rate(self, stage: str, done: float, number: int, optimiser: torch.optim.Optimizer) -> None:
        if stage == "backbone":
            factor = done / 0.15 + 0.02 if done < 0.15 else max(0.0, (1 - done) / 0.85)
        elif stage == "joint":
            factor = GAMMA ** (number // STEP)
        else:
            factor = 1.0
        for group in optimiser.param_groups:
            group["lr"] = group["initial"] * factor

    # --- what is told and kept

    def accuracy(self, stage: str = "last") -> float:
        """Share of the validation pictures that are classified right: by the class token in the backbone stage, else by prototypes."""
        self.model.eval()
        right = total = 0
        with torch.inference_mode():
            for x, classes in self.data.validation():
                if stage == "backbone":
                    logits = self.classifier(self.model.features(x)[0])
                else:
                    logits = self.model(x).logits
                right += int((logits.argmax(1) == classes).sum())
                total += len(classes)
        return right / max(total, 1)

    def _finish(
        self,
        stage: str,
        number: int,
        of: int,
        means: Mapping[str, float],
        optimiser: torch.optim.Optimizer | None = None,
    ) -> None:
        self._done.append((stage, number))
        said = Epoch(stage, number, of, means, self.accuracy(stage), float(self.model.head.gate.detach().sum(1).mean()))
        self.history.append(said)
        self._save(optimiser if number < of else None)
        self._log.step(stage, number, of, {**means, "accuracy": said.accuracy})
        self.tell(said)

    def _tensors(self) -> dict[str, Tensor]:
        named = {f"model.{k}": v for k, v in self.model.state_dict().items()}
        return named | {f"classifier.{k}": v for k, v in self.classifier.state_dict().items()}

    def _save(self, optimiser: torch.optim.Optimizer | None) -> None:
        """The whole state in one file that appears at once: weights, moments, and the story as JSON in its header."""
        tensors = {k: v.detach().contiguous() for k, v in self._tensors().items()}
        if optimiser is not None:
            for n, state in optimiser.state_dict()["state"].items():
                tensors |= {f"optimiser.{n}.{k}": v.contiguous() for k, v in state.items()}
        story = {
            "done": self._done,
            "history": [asdict(e) for e in self.history],
            "sources": [asdict(s) for s in self.sources],
        }
        draft = self.checkpoint.with_suffix(".part")
        save_file(tensors, draft, {"story": json.dumps(story)})
        draft.replace(self.checkpoint)

    def _load(self) -> None:
        with safe_open(self.checkpoint, "pt") as file:
            story = json.loads(file.metadata()["story"])
            tensors = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118 (it is no mapping)
        for part, net in (("model.", self.model), ("classifier.", self.classifier)):
            net.load_state_dict({k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)})
        self._moments = {k.removeprefix("optimiser."): v for k, v in tensors.items() if k.startswith("optimiser.")}
        self._done = [(s, n) for s, n in story["done"]]
        self.history = [Epoch(**e) for e in story["history"]]
        self.sources = [Source(**s) for s in story["sources"]]

    def _restore(self, optimiser: torch.optim.Optimizer) -> None:
        """The moments of a stage that was broken off."""
        if not self._moments:
            return
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in self._moments.items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = value
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
        self._moments = {}
