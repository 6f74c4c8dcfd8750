"""Figures of a trial with their intervals. Pure functions of what was predicted before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import sqrt
from typing import Protocol

from fanlight import wire
from fanlight.service.sweeps import outcome, plain
from fanlight.service.sweeps_figures import Z, portion


class Item(Protocol):
    """Of one picture: its label and the predicted classes."""

    @property
    def label(self) -> str | None: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...


def move(label: str | None, before: str, after: str) -> wire.Move:
    """What became of a prediction."""
    if before == after:
        return "same"
    was, now = outcome(label, before), outcome(label, after)
    if was == now:
        return "other"
    return "corrected" if now == "right" else "spoiled"


def difference(gained: int, lost: int, n: int) -> wire.Difference:
    """(gained - lost) / n with its 95 % interval, of shares of the same n pictures, which are not independent of each other.

    A. Agresti and Y. Min (2005): Wald's interval after half a picture was added to each of the four cells. Near its nominal level down to
    small n, where Wald's own is of no width if nothing moved.
    """
    if n == 0:
        return wire.Difference(n=0)
    g, l, m = gained + 0.5, lost + 0.5, n + 2  # noqa: E741
    middle, half = (g - l) / m, Z * sqrt(g + l - (g - l) ** 2 / m) / m
    value = (gained - lost) / n
    return wire.Difference(n=n, value=value, lo=max(-1.0, middle - half), hi=min(1.0, middle + half))


def summary(ident: str, found: Sequence[Item], total: int, *, complete: bool) -> wire.TrialSummary:
    """What finished items say. Pictures without a label count for what was predicted, not for what is right."""
    labelled = [i for i in found if i.label is not None]
    moves = [(i, move(i.label, i.before, i.after)) for i in labelled]
    gained = Counter(plain(i.label or "") for i, m in moves if m == "corrected")
    lost = Counter(plain(i.label or "") for i, m in moves if m == "spoiled")
    before = sum(outcome(i.label, i.before) == "right" for i in labelled)
    return wire.TrialSummary(
        trial=ident,
        n=len(found),
        total=total,
        complete=complete,
        labelled=len(labelled),
        before=portion(before, len(labelled)),
        after=portion(before + gained.total() - lost.total(), len(labelled)),
        change=difference(gained.total(), lost.total(), len(labelled)),
        corrected=gained.total(),
        spoiled=lost.total(),
        moved=sum(i.before != i.after for i in found),
        classes=_classes(found, gained, lost),
    )


def _classes(found: Sequence[Item], gained: Counter[str], lost: Counter[str]) -> list[wire.TrialClass]:
    labels = Counter(plain(i.label) for i in found if i.label is not None)
    was, now = Counter(plain(i.before) for i in found), Counter(plain(i.after) for i in found)
    names = {plain(i.label): i.label for i in found if i.label is not None}
    names |= {plain(c): c for i in found for c in (i.before, i.after)}  # as the model has them
    every = [
        wire.TrialClass(
            name=name,
            labelled=labels[key],
            gained=gained[key],
            lost=lost[key],
            predicted_before=was[key],
            predicted_after=now[key],
        )
        for key, name in names.items()
    ]
    changed = [c for c in every if c.gained or c.lost or c.predicted_before != c.predicted_after]
    return sorted(
        changed,
        key=lambda c: (
            -abs(c.gained - c.lost),
            -(c.gained + c.lost),
            -abs(c.predicted_after - c.predicted_before),
            c.name,
        ),
    )
