"""What the concept bottlenecks of the field guide are measured by, and the card that says it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fanlight_models.concepts.answers import Answers
from fanlight_models.concepts.bundle import Model
from fanlight_models.concepts.curves import Curve, curve
from fanlight_models.concepts.metrics import bootstrap, class_metrics, concept_metrics
from fanlight_models.concepts.protocol import Reading
from fanlight_models.concepts.quadrature import expected_sigmoid
from fanlight_models.concepts.strategies import Strategy

STEPS = 10
SHOWN = (0, 1, 2, 3, 5, 10)
NAMES = {"scbm": "SCBM", "hard-cbm": "hard CBM", "cem": "CEM"}


@dataclass(frozen=True, eq=False)
class Features:
    """x (n, F), concepts (n, K), seen (n, K), labels (n,)."""

    x: Tensor
    concepts: Tensor
    seen: Tensor
    labels: Tensor


@dataclass(frozen=True, eq=False)
class Measured:
    """Of one trained model on the test split: figures without answers, and the curves of answers by uncertainty per strategy."""

    figures: dict[str, float]
    curves: dict[str, Curve]


def probabilities(reading: Reading) -> Tensor:
    """(B, K): P(concept) before any answer, exact."""
    variance = torch.zeros_like(reading.mean) if reading.lower is None else reading.lower.square().sum(2)
    return expected_sigmoid(reading.mean, variance)


def read(model: Model, x: Tensor) -> Reading:
    return Reading.cat([model.read(some) for some in torch.split(x, 400)])


def measured(model: Model, test: Features) -> Measured:
    """Accuracy, calibration and curves."""
    reading = read(model, test.x)
    p, truth = probabilities(reading), test.concepts > 0.5
    right = ((p > 0.5) == truth).double()
    classes = torch.cat(
        [
            model.intervene(reading.rows(some), Answers.none(len(some), model.concepts)).classes
            for some in torch.split(torch.arange(len(test.labels)), 200)
        ]
    )
    own, target = concept_metrics(p, test.concepts), class_metrics(classes, test.labels)
    figures = {
        "class accuracy": target["accuracy"],
        "class ece": target["ece"],
        "concept accuracy": own["accuracy"],
        "concept accuracy, visible": float(right[test.seen].mean()),
        "concept accuracy, hidden": float(right[~test.seen].mean()),
        "complete": own["complete"],
        "concept auroc": own["auroc"],
        "concept ece": own["ece"],
        "concept brier": own["brier"],
    }
    names = ("confidence-region", "percentile") if model.kind == "scbm" else ("hard",)
    return Measured(
        figures,
        {
            n: curve(model, reading, test.concepts, test.labels, steps=min(STEPS, model.concepts), strategy=Strategy(n))
            for n in names
        },
    )


def paired(first: Sequence[Curve], second: Sequence[Curve], what: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rise since no answer of the first minus that of the second, per number of answers: mean over seeds and pictures, 95 % interval over
    resampled pictures."""

    def risen(curves: Sequence[Curve]) -> Tensor:
        values = torch.stack([getattr(c, what) for c in curves]).mean(0)
        return values - values[:, :1]

    return bootstrap(risen(first) - risen(second))


def summary(found: Mapping[str, Sequence[Measured]]) -> dict[str, Any]:
    """Everything that the card says, as numbers: per kind figures (mean and range over seeds) and curves."""
    out: dict[str, Any] = {}
    for kind, every in found.items():
        figures = {k: [m.figures[k] for m in every] for k in every[0].figures}
        curves: dict[str, dict[str, Any]] = {}
        for name in every[0].curves:
            curves[name] = {}
            for what in ("concepts", "right", "probability"):
                values = torch.stack([getattr(m.curves[name], what) for m in every])
                mean, low, high = bootstrap(values.mean(0))
                curves[name][what] = {
                    "mean": mean.tolist(),
                    "low": low.tolist(),
                    "high": high.tolist(),
                    "seeds": values.mean(1).tolist(),
                }
        out[kind] = {"figures": figures, "curves": curves}
    out["difference"] = {}
    for rival in (k for k in found if k != "scbm"):
        other = [m.curves["hard"] for m in found[rival]]
        out["difference"][rival] = {}
        for name in found["scbm"][0].curves:
            own = [m.curves[name] for m in found["scbm"]]
            out["difference"][rival][name] = {}
            for what in ("concepts", "right", "probability"):
                mean, low, high = paired(own, other, what)
                part = {"mean": mean.tolist(), "low": low.tolist(), "high": high.tolist()}
                out["difference"][rival][name][what] = part
    return out


def _figure(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _cell(part: Mapping[str, Sequence[float]], step: int) -> str:
    return f"{100 * part['mean'][step]:.1f} ({100 * part['low'][step]:.1f} to {100 * part['high'][step]:.1f})"


def tables(told: Mapping[str, Any]) -> str:
    """Markdown tables of `summary`."""
    seeds = len(next(iter(told["scbm"]["figures"].values())))
    kinds = [k for k in NAMES if k in told]
    lines = [
        f"Without answers, mean and range over {seeds} seed{'s' if seeds > 1 else ''}:",
        "",
        "| figure | " + " | ".join(NAMES[k] for k in kinds) + " |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    lines += [
        f"| {figure} | " + " | ".join(_figure(told[k]["figures"][figure]) for k in kinds) + " |"
        for figure in told["scbm"]["figures"]
    ]
    steps = [s for s in SHOWN if s < len(next(iter(told["hard-cbm"]["curves"]["hard"].values()))["mean"])]
    rows = [
        (NAMES[k] if k != "scbm" else f"{NAMES[k]}, {name}", part)
        for k in kinds
        for name, part in told[k]["curves"].items()
    ]
    titles = {"right": "Species right, %", "concepts": "Concepts right, % (answered ones included)"}
    for what, title in titles.items():
        lines += ["", f"{title}, after so many answers, asked by uncertainty (95 % interval over pictures):", ""]
        lines += ["| model | " + " | ".join(map(str, steps)) + " |", "|---" * (len(steps) + 1) + "|"]
        lines += [f"| {n} | " + " | ".join(_cell(part[what], s) for s in steps) + " |" for n, part in rows]
    for rival, strategies in told["difference"].items():
        lines += [
            "",
            f"What SCBM gains beyond {NAMES[rival]} since no answer, points, same pictures (95 % interval):",
            "",
        ]
        lines += ["| strategy, figure | " + " | ".join(map(str, steps[1:])) + " |", "|---" * len(steps) + "|"]
        for name, part in strategies.items():
            for what, title in (
                ("right", "species right"),
                ("probability", "P(true species)"),
                ("concepts", "concepts right"),
            ):
                lines.append(f"| {name}, {title} | " + " | ".join(_cell(part[what], s) for s in steps[1:]) + " |")
    return "\n".join(lines)


def text(kind: str, told: Mapping[str, Any], options: argparse.Namespace) -> str:
    """The card of one bundle."""
    what = {
        "scbm": "A stochastic concept bottleneck: the logits of its 79 concepts have a covariance that depends on the picture, so that\n"
        "correcting one concept moves those that hang together with it (docs/concepts.md).",
        "hard-cbm": "A concept bottleneck with independent concepts, on the same encoder as the stochastic one, to compare with it: correcting one\n"
        "concept changes the species and no other concept (docs/concepts.md).",
    }[kind]
    name = {"scbm": "Field guide, stochastic bottleneck", "hard-cbm": "Field guide, concept bottleneck"}[kind]
    return CARD.format(
        name=name, what=what, scenes=options.scenes,
        scenes_later=options.later, epochs=options.epochs, later=options.later_epochs, test=options.test,
        tables=tables(told), verdict=verdict(told), analysis=analysis(told),
    )  # fmt: skip


def verdict(told: Mapping[str, Any]) -> str:
    """Sentences from the paired differences: better, worse, or not distinguished."""
    lines = []
    for rival, strategies in told["difference"].items():
        for name, part in strategies.items():
            words = []
            for what, title in (("right", "species right"), ("concepts", "concepts right")):
                low, high, mean = (part[what][k][1:] for k in ("low", "high", "mean"))
                better, worse = sum(v > 0 for v in low), sum(v < 0 for v in high)
                words.append(
                    f"{title}: ahead after {better} and behind after {worse} of {len(mean)} numbers of answers, "
                    f"{100 * mean[-1]:+.1f} points after {len(mean)}"
                )
            lines.append(f"- {name}, beside {NAMES[rival]}: {'; '.join(words)}.")
    return "\n".join(lines)


def analysis(told: Mapping[str, Any]) -> str:
    """What the figures without answers say about the two, in sentences."""

    def mean(kind: str, name: str) -> float:
        values = told[kind]["figures"][name]
        return float(sum(values) / len(values))

    lines = []
    for name, unit in (("class accuracy", "species"), ("concept accuracy", "concepts")):
        gap = 100 * (mean("scbm", name) - mean("hard-cbm", name))
        lines.append(f"Without answers SCBM is {abs(gap):.1f} points {'ahead' if gap > 0 else 'behind'} on {unit}.")
    own, other = mean("scbm", "class ece"), mean("hard-cbm", "class ece")
    if own > other + 0.02:
        lines.append(
            f"Its species are less well calibrated ({own:.3f} against {other:.3f}): its covariance is wider than what the pictures leave open, "
            "so that it says less than it knows. A Monte-Carlo likelihood from few draws, and few epochs, favour wide covariances. Part of its gain "
            "per answer is uncertainty that an answer takes away again; compare where the curves end, not only how they rise. With a wide covariance "
            "one answer at the edge of the confidence region moves the others too far, which shows after the first answer."
        )
    return " ".join(lines)


CARD = """# {name}

{what}

- **Data**: the field guide (docs/data/field-guide.md): {scenes} scenes of the training split for the encoder, the {scenes_later} after them for
  concepts, covariance and head; measured on {test} scenes of the test split. Labels say what is drawn, also where foliage hides it.
- **Training**: `python -m fanlight_models.recipes.field_guide_concepts`. The encoder begins as the convolutions of the
  classifier `field-guide`, keeps their first two stages and learns the concepts for {epochs} epochs; frozen, it feeds the bottleneck
  ({later} epochs for the concepts, {later} for the head, on true concepts).
- **Use**: to correct concepts and see what follows, where the truth is known. It knows nothing of real birds.
- **Terms**: Apache-2.0; no data of others.

## Figures

{tables}

An answer is the true value of one concept, visible or not. Gain since no answer, compared ("ahead" and "behind": the 95 % interval excludes zero):

{verdict}

{analysis}

## Limits

- It treats the 79 concepts as binary ones of their own; that the values of a group exclude each other it has only learned.
- A Gaussian of logits has one mode. Where a hidden head leaves "all of summer's colours or all of winter's", it can say so only approximately.
- A percentile answer can pull correlated concepts the wrong way where the model was surer than the percentile; the confidence region cannot.
"""
