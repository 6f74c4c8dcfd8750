"""What answers are worth: accuracy over the number of answered concepts, and of a rule that is applied to a set of pictures.

After every answer the policy decides anew and the model conditions from its original Gaussian on all answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fanlight_models.concepts import policies
from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.metrics import bootstrap
from fanlight_models.concepts.protocol import SAMPLES, ConceptModel, Reading
from fanlight_models.concepts.strategies import Strategy

MOST = 200  # interventions of a curve
CHUNK = 128  # pictures at once


@dataclass(frozen=True, eq=False)
class Curve:
    """Per picture and number of answers 0 .. steps. concepts (n, steps + 1): share of all concepts that are right, answered ones included;
    right (n, steps + 1): the best class is the true one; probability (n, steps + 1): of the true class; asked (n, steps): which concept."""

    concepts: Tensor
    right: Tensor
    probability: Tensor
    asked: Tensor

    def gain(self, what: str = "right") -> Tensor:
        """(n,): rise per answer, mean over the answers."""
        values: Tensor = getattr(self, what)
        return (values[:, -1] - values[:, 0]) / max(values.shape[1] - 1, 1)

    def interval(self, what: str = "right", seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, low and high (steps + 1,): 95 % over resampled pictures."""
        return bootstrap(getattr(self, what), seed=seed)


def curve(
    model: ConceptModel,
    reading: Reading,
    concepts: Tensor,
    labels: Tensor,
    *,
    steps: int,
    policy: str = "uncertainty",
    strategy: Strategy | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    among: Tensor | None = None,
) -> Curve:
    """Answers with the true concepts (n, K), one at a time. among (n, K): concepts that may be asked about (default: all); a picture that has
    no more of them stays as it is.

    Errors: ValueError for an unknown policy or number of steps."""
    if policy not in policies.POLICIES:
        raise ValueError(f"“{policy}” is no policy. Policies: {', '.join(policies.POLICIES)}.")
    if not 0 <= steps <= min(MOST, reading.mean.shape[1]):
        raise ValueError(f"A curve has 0 to {min(MOST, reading.mean.shape[1])} steps, not {steps}.")
    order = policies.random_order(len(labels), reading.mean.shape[1], seed)
    parts = []
    for some in torch.split(torch.arange(len(labels)), CHUNK):
        shut = None if among is None else ~among[some]
        parts.append(
            _curve(
                model,
                reading.rows(some),
                concepts[some],
                labels[some],
                steps,
                policy,
                strategy,
                samples,
                seed,
                order[some],
                shut,
            )
        )
    return Curve(
        torch.cat([p.concepts for p in parts]),
        torch.cat([p.right for p in parts]),
        torch.cat([p.probability for p in parts]),
        torch.cat([p.asked for p in parts]),
    )


def _curve(
    model: ConceptModel, reading: Reading, concepts: Tensor, labels: Tensor, steps: int, policy: str, strategy: Strategy | None,
    samples: int, seed: int, order: Tensor, shut: Tensor | None,
) -> Curve:  # fmt: skip
    n, width = concepts.shape
    out = [torch.empty(n, steps + 1, dtype=torch.float64) for _ in range(3)]
    asked = torch.full((n, steps), -1)
    answers, rows = Answers.none(n, width), torch.arange(n)
    for step in range(steps + 1):
        outcome = model.intervene(reading, answers, strategy, samples=samples, seed=seed)
        out[0][:, step] = ((outcome.concepts > 0.5) == (concepts > 0.5)).double().mean(1)
        out[1][:, step] = (outcome.classes.argmax(1) == labels).double()
        out[2][:, step] = outcome.classes[rows, labels]
        if step == steps:
            break
        if policy == "uncertainty":
            scores = policies.uncertainty(outcome)
        elif policy == "expected-gain":
            scores = policies.expected_gain(model, reading, answers, strategy, samples=samples, seed=seed)
        else:
            scores = order
        place = policies.chosen(scores, answers.asked if shut is None else answers.asked | shut)
        asked[:, step] = place
        more = place >= 0
        known = answers.known.clone()
        known[rows[more], place[more]] = True
        answers = Answers.truth(concepts, known)
    return Curve(out[0], out[1], out[2], asked)


@dataclass(frozen=True)
class RuleEffect:
    """A rule on a set of n pictures: accuracy of classes before and after, and how far it moves, with 95 % intervals over resampled pictures;
    turned_right, turned_wrong: pictures whose prediction the rule corrects and spoils."""

    n: int
    before: tuple[float, float, float]
    after: tuple[float, float, float]
    change: tuple[float, float, float]
    turned_right: int
    turned_wrong: int


def rule_effect(
    model: ConceptModel,
    reading: Reading,
    labels: Tensor,
    rule: dict[int, float],
    *,
    where: Tensor | None = None,
    strategy: Strategy | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
) -> RuleEffect:
    """The same answers `rule` (concept -> probability) to every picture where (n,) says so, for example "bill hooked" to all in a filter.

    Errors: ValueError for an empty set, BadAnswer for answers."""
    which = torch.arange(len(labels)) if where is None else where.nonzero()[:, 0]
    if not len(which):
        raise ValueError("The rule fits no picture of this set.")
    some, width = reading.rows(which), reading.mean.shape[1]
    right = []
    for answers in (Answers.none(len(which), width), Answers.of([dict(rule)] * len(which), width)):
        outcome = model.intervene(some, answers, strategy, samples=samples, seed=seed)
        right.append((outcome.classes.argmax(1) == labels[which]).double())
    before, after = right

    def told(values: Tensor) -> tuple[float, float, float]:
        mean, low, high = bootstrap(values, seed=seed)
        return float(mean), float(low), float(high)

    return RuleEffect(
        len(which),
        told(before),
        told(after),
        told(after - before),
        int((after > before).sum()),
        int((after < before).sum()),
    )
