"""One CSV with features, concepts and a label in its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fanlight_models.concepts.data.base import BadData, Labelled, binary, coded, column, divided, numbers, rows, splits


def load(
    path: Path,
    *,
    label: str,
    concepts: Sequence[str],
    features: Sequence[str] | None = None,
    threshold: float = 0.5,
    missing: str = "refuse",
    share: float = 0.7,
    seed: int = 0,
) -> Labelled:
    """Columns -> features x (n, p), scaled to mean 0 and deviation 1 over the training rows, concepts and labels.

    Args: features: their columns; None: all that are neither label, concept nor `split`. Others as in `images.load`.
    Errors: BadData: a column that is missing or has two roles, an empty or non-numeric feature, one that is constant."""
    header, lines = rows(path)
    named = column(path, header, label)
    places = [column(path, header, name) for name in concepts]
    if not places:
        raise BadData(f"No column of {path.name} was named as a concept.")
    taken = {label, "split", *concepts}
    chosen = [name for name in header if name not in taken] if features is None else list(features)
    both = [name for name in chosen if name in taken]
    if both:
        raise BadData(f"The column “{both[0]}” cannot be a feature and something else too.")
    if not chosen:
        raise BadData(f"{path.name} has no column left for features.")
    labels, classes = coded([row[named].strip() for row in lines])
    x = numbers(path, header, lines, [column(path, header, name) for name in chosen])
    if np.isnan(x).any():
        i, j = np.argwhere(np.isnan(x))[0]
        raise BadData(f"Row {i + 2} of {path.name} has no {chosen[j]}.")
    values = binary(path, numbers(path, header, lines, places), list(concepts), labels, threshold, missing)
    train = (
        splits(path, [row[header.index("split")] for row in lines])
        if "split" in header
        else divided(labels, share, seed)
    )
    if not train.any():
        raise BadData(f"No row of {path.name} is for training.")
    mean, deviation = x[train].mean(0), x[train].std(0)
    if (deviation == 0).any():
        raise BadData(f"The column “{chosen[int(np.argmin(deviation))]}” has the same value in every training row.")
    return Labelled(
        values,
        labels,
        tuple(concepts),
        classes,
        train,
        x=(x - mean) / deviation,
        columns=tuple(chosen),
        rule=f"per row, from {threshold:g} on",
    )
