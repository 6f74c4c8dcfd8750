"""How a model's outputs become predictions: one of several classes, any number of labels, or values with a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

from fanlight.errors import InvalidField

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

Kind = Literal["single-label", "multi-label", "regression"]
KINDS: tuple[str, ...] = get_args(Kind)


def check(kind: str, unit: str, outputs: int) -> None:
    """Refuses a head that makes no sense, in a sentence."""
    if kind not in KINDS:
        raise InvalidField(f"Unknown head “{kind}”.", given=kind, allowed=list(KINDS))
    if unit and kind != "regression":
        raise InvalidField(f"Only a regression has a unit; this head is {kind}.", given=unit)
    if outputs < 2 and kind == "single-label":
        raise InvalidField(
            "A classifier needs at least two class names, all different and none empty.",
            given=outputs,
            hint="A single output is a regression or one label that is there or not: name its head.",
        )


def order(kind: str, outputs: Tensor) -> list[int]:
    """(K,) -> indices: classes and labels from the highest output to the lowest, values as the model gives them. The
    first is what is explained where no target is named."""
    if kind == "regression":
        return list(range(len(outputs)))
    ranked: list[int] = outputs.double().argsort(descending=True, stable=True).tolist()
    return ranked


def predictions(
    kind: str,
    unit: str,
    names: Sequence[str],
    outputs: Tensor,
    most: int,
    also: Sequence[int] = (),
    chances: Tensor | None = None,
) -> list[dict[str, Any]]:
    """The first `most` in order, and those of `also`: index, name, probability (None of a regression), logit (the
    output as it is), unit. Fields of `wire.Prediction`. Args: chances: (K,) where the model states probabilities itself."""
    import torch

    z = outputs.double()
    logit = z.tolist()
    probability = (torch.softmax(z, 0) if kind == "single-label" else torch.sigmoid(z)).tolist()
    if chances is not None:
        probability = chances.double().tolist()
    best = order(kind, outputs if chances is None else chances)[:most]
    return [
        {
            "index": i,
            "name": names[i],
            "probability": None if kind == "regression" else probability[i],
            "logit": logit[i],
            "unit": unit,
        }
        for i in (*best, *(i for i in also if i not in best))
    ]
