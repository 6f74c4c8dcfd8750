"""Concepts that a person can correct: what a concept bottleneck says it sees, what follows, and what follows from an answer."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.explainers import answers, base

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.concept_bottleneck import ConceptClassifier
    from fanlight_models.concepts import Answers, Outcome, Reading, Strategy

Z90 = 1.6448536269514722  # 95 % quantile of the normal: the range holds 90 % of what the model holds possible
ASKED = 20  # concepts that a suggestion looks at: the most uncertain ones
SUGGESTED = 3
SIMILAR = 6
CHUNK = 32  # hypothetical answers at once
TOP = 10  # classes of a prediction


class Scbm(base.Explainer):
    """Vandenhirtz, Laguna, Marcinkevics & Vogt, Stochastic Concept Bottleneck Models (NeurIPS 2024); of bottlenecks without covariance the same,
    only that an answer moves no other concept."""

    name = "scbm"
    title = "Prediction by concepts"
    family = "concepts"
    summary = "Which concepts the model sees, what they say for the answer, and what changes when you correct one."
    reading = (
        "Each bar is how probable the model holds a concept; the line on it is the range that it holds possible for this picture. "
        "An answer of yours counts as true: other concepts move as far as they hang together with it, and the class follows. "
        "The share of a concept is its weight times how far it is from what is usual."
    )
    misleads = (
        "What moves with an answer is what went together in the training data, not what causes what. "
        "A concept's name is what its labels meant; the network may look at something else. "
        "A model that is unsure of everything gains most from answers, which says nothing good about it."
    )
    paper = base.Paper(
        "Vandenhirtz, Laguna, Marcinkevics & Vogt: Stochastic Concept Bottleneck Models. NeurIPS 2024",
        "https://arxiv.org/abs/2406.19272",
        "@inproceedings{vandenhirtz2024stochastic, title={Stochastic Concept Bottleneck Models}, author={Vandenhirtz, Moritz and Laguna, Sonia "
        "and Marcinkevi{\\v{c}}s, Ri{\\v{c}}ards and Vogt, Julia E.}, booktitle={NeurIPS}, year={2024}}",
    )
    accepts = "concept-bottleneck"
    returns = ("concepts",)
    version = "1"
    edits = {answers.EDIT: f'{{"concept": name or number, "value": {answers.VALUE}}}'}
    general = frozenset(edits)

    class Params(base.Params):
        strategy: Literal["own", "confidence-region", "percentile", "empirical-percentile", "hard"] = Field(
            "own",
            description="Which logit an answer stands for when other concepts are moved; own: the confidence region, where it has a covariance.",
        )
        level: float = Field(0.99, ge=0.5, le=0.999, description="Level of the confidence region, a probability.")
        samples: int = Field(100, ge=10, le=1000, description="Draws of the concepts behind the class probabilities.")

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (the network is asked once)
        return 1

    @classmethod
    def canonical(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
        return answers.canonical(edits, about)

    @classmethod
    def told(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
        return answers.told(edits, about)

    def run(self, model: ConceptClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        del ctx
        found = []
        for n, item in enumerate(items):
            found.append([(yield from _read(model, item, params, n / len(items), (n + 1) / len(items)))])
        return found

    def edit(
        self,
        model: ConceptClassifier,
        artifacts: Sequence[Artifact],
        edits: Sequence[Mapping[str, Any]],
        params: Params,
    ) -> base.Edited:
        stored = artifacts[0]
        reading, said = _asked(stored, edits)
        outcome = _intervene(model, reading, said, params, stored.meta["seed"])
        meta = {
            **stored.meta,
            "answers": [[e[answers.EDIT]["concept"], e[answers.EDIT]["value"]] for e in edits],
            "against": outcome.against[0].nonzero()[:, 0].tolist(),
            "samples": outcome.samples,
            "jitter": float(outcome.jitter[0]),
        }
        arrays = {**stored.arrays, "after": _ranges(outcome), "classes_after": _classes(outcome)}
        known = _similar(model, outcome)
        made = Artifact(
            stored.name,
            stored.kind,
            {**arrays, "case": known[0], "distance": known[1]},
            {**meta, "cases": known[2]},
        )
        return base.Edited([made], _prediction(model, outcome, stored.meta["target"]))

    def suggest(
        self,
        model: ConceptClassifier,
        artifacts: Sequence[Artifact],
        edits: Sequence[Mapping[str, Any]],
        params: Params,
    ) -> dict[str, Any]:
        """{"questions": [{concept, gain}], "certainty", "of"}: the answers that most raise the expected probability of the best class, among the
        most uncertain twenty; a group of which one value was answered with yes is not asked about any more."""
        import torch

        from fanlight_models.concepts import policies

        stored = artifacts[0]
        reading, said = _asked(stored, edits)
        now = _intervene(model, reading, said, params, stored.meta["seed"])
        shut = said.asked[0].clone()
        for group in stored.meta["exclusive"]:
            if any(said.known[0, c] and said.value[0, c] == 1 for c in group):
                shut[list(group)] = True
        score = policies.uncertainty(now)[0].masked_fill(shut, -torch.inf)
        among = torch.zeros_like(shut)
        among[score.topk(min(ASKED, len(score))).indices] = True
        gain = policies.expected_gain(
            model.head_model,
            reading,
            said,
            _strategy(reading, params),
            samples=params.samples,
            seed=stored.meta["seed"],
            only=(among & ~shut)[None],
        )[0]
        best = [int(k) for k in gain.argsort(descending=True, stable=True) if torch.isfinite(gain[k])]
        return {
            "questions": [{"concept": k, "gain": float(gain[k])} for k in best[:SUGGESTED]],
            "certainty": float(now.classes.max()),
            "of": int((among & ~shut).sum()),
        }


def _read(
    model: ConceptClassifier, item: base.Item, params: Scbm.Params, lo: float, hi: float
) -> Generator[base.Step, None, Artifact]:
    from fanlight.adapters.concept_bottleneck import arrays, reading_of
    from fanlight_models.concepts import Answers
    from fanlight_models.concepts.bundle import groups

    stored = arrays(model.read(item.x[None]))
    reading = reading_of(stored)  # as edits will see it
    said = Answers.none(1, len(model.concepts))
    outcome = _intervene(model, reading, said, params, item.seed)
    yield base.Step(lo + (hi - lo) / 4, "what each answer would do")
    weights = model.head_model.weights()
    of = _none(len(model.concepts)) if weights is None else weights.detach().cpu().float().numpy()
    effects = _none(len(model.concepts))
    if weights is not None:
        effects = yield from _effects(
            model, reading, outcome, params, item, _row(weights.double(), item.target), (lo + (hi - lo) / 4, hi)
        )
    known, usual = _similar(model, outcome), model.usual
    meta = {
        "unit": "probability",
        "box": list(item.box),
        "target": item.target.json(),
        "concepts": list(model.concepts),
        "classes": list(model.classes),
        "exclusive": groups(model.concepts),
        "answers": [],
        "against": [],
        "bottleneck": str(model.model.kind),
        "strategy": params.strategy,
        "level": params.level,
        "samples": outcome.samples,
        "jitter": float(outcome.jitter[0]),
        "seed": item.seed,
        "cases": known[2],
        "distance": None if usual is None else usual.distance(outcome.concepts[0]),
        "reach": None if usual is None else usual.reach,
    }
    now, classes = _ranges(outcome), _classes(outcome)
    every = {
        **stored, "before": now, "after": now, "classes_before": classes, "classes_after": classes, "weights": of,
        "base": model.base.numpy(), "effects": effects, "case": known[0], "distance": known[1],
    }  # fmt: skip
    yield base.Step(hi)
    return Artifact("concepts", "concepts", every, meta)


def _asked(stored: Artifact, edits: Sequence[Mapping[str, Any]]) -> tuple[Reading, Answers]:
    from fanlight.adapters.concept_bottleneck import reading_of
    from fanlight_models.concepts import Answers

    said = {e[answers.EDIT]["concept"]: e[answers.EDIT]["value"] for e in edits}
    return reading_of(stored.arrays), Answers.of([said], len(stored.meta["concepts"]))


def _strategy(reading: Reading, params: Scbm.Params) -> Strategy | None:
    """None: the model's own; the level counts where that is the confidence region."""
    from fanlight_models.concepts import Strategy

    if params.strategy != "own":
        return Strategy(params.strategy, params.level)
    return Strategy("confidence-region", params.level) if reading.lower is not None else None


def _intervene(model: ConceptClassifier, reading: Reading, said: Answers, params: Scbm.Params, seed: int) -> Outcome:
    import torch

    with torch.no_grad():
        found: Outcome = model.head_model.intervene(
            reading, said, _strategy(reading, params), samples=params.samples, seed=seed
        )
    return found


def _ranges(outcome: Outcome) -> np.ndarray[Any, Any]:
    """(3, K): P(concept), and sigmoid of the logit's 5 % and 95 % quantile; an answered concept has no range."""
    import torch

    p, mean, spread = outcome.concepts[0], outcome.mean[0], outcome.deviation[0]
    ends = [torch.where(spread > 0, torch.sigmoid(mean + z * spread), p) for z in (-Z90, Z90)]
    return torch.stack([p, *ends]).numpy()


def _classes(outcome: Outcome) -> np.ndarray[Any, Any]:
    """(2, C): P(class) and its standard error."""
    import torch

    return torch.stack([outcome.classes[0], outcome.classes_error[0].nan_to_num(0.0)]).double().numpy()


def _none(concepts: int) -> np.ndarray[Any, Any]:
    return np.zeros((0, concepts), np.float32)


def _row(weights: Tensor, target: base.Target) -> Tensor:
    """(C, K) -> (K,): weights of what is explained."""
    row = weights[target.index]
    return row if target.minus is None else row - weights[target.minus]


def _effects(
    model: ConceptClassifier,
    reading: Reading,
    now: Outcome,
    params: Scbm.Params,
    item: base.Item,
    weight: Tensor,
    span: tuple[float, float],
) -> Generator[base.Step, None, np.ndarray[Any, Any]]:
    """(4, K) change of the target's expected logit after each possible answer: yes directly, yes through others, no directly, no through others."""
    import torch

    from fanlight_models.concepts import Answers

    count = reading.mean.shape[1]
    places, said = torch.arange(count).repeat(2), torch.cat([torch.ones(count), torch.zeros(count)]).double()
    moved = torch.empty(2 * count, count, dtype=torch.float64)
    for start in range(0, 2 * count, CHUNK):
        some = slice(start, min(start + CHUNK, 2 * count))
        rows = torch.zeros(some.stop - start, dtype=torch.int64)
        asked = Answers.none(len(rows), count).with_(places[some], said[some])
        after = _intervene(model, reading.rows(rows), asked, params, item.seed)
        moved[some] = after.concepts - now.concepts
        yield base.Step(span[0] + (span[1] - span[0]) * some.stop / (2 * count) * 0.95)
    total = (moved @ weight.cpu()).reshape(2, count)
    direct = moved.reshape(2, count, count).diagonal(dim1=1, dim2=2) * weight.cpu()
    found: np.ndarray[Any, Any] = torch.stack([direct[0], (total - direct)[0], direct[1], (total - direct)[1]]).numpy()
    return found


def _similar(
    model: ConceptClassifier, outcome: Outcome
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], list[str]]:
    """The nearest reference cases: numbers, distances and classes."""
    from fanlight_models.concepts.explaining import similar

    if not len(model.cases):
        return np.zeros(0, np.int32), np.zeros(0), []
    which, apart = similar(outcome.concepts, model.case_roots, SIMILAR)
    return (
        which[0].int().numpy(),
        apart[0].numpy(),
        [model.classes[int(c)] for c in model.labels[which[0]]],
    )


def _prediction(model: ConceptClassifier, outcome: Outcome, target: Mapping[str, Any]) -> list[dict[str, Any]]:
    from fanlight.adapters import heads

    of = base.Target.of(target)
    also = [i for i in (of.index, of.minus) if i is not None]
    logits = model.expected_logits(outcome.concepts, outcome.classes)[0]
    return heads.predictions(model.head, model.unit, model.classes, logits, TOP, also, outcome.classes[0])
