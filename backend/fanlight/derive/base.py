"""What every change of a model needs: labelled pictures, what a model says of them, and figures with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fanlight.adapters.base import Pixels
from fanlight.errors import BadRequest, InvalidField
from fanlight.service.sweeps import plain
from fanlight.service.sweeps_figures import portion
from fanlight.service.trials_figures import difference

Array = np.ndarray[Any, np.dtype[Any]]
Progress = Callable[[float, str], None]
"""Told how much is done, 0..1, and of what."""
MOST = 20_000
"""Pictures of a data set that a change looks at."""


@dataclass(frozen=True)
class Labelled:
    """A picture of a data set. `read` decodes it; BadRequest where it is none."""

    name: str
    label: str | None
    read: Callable[[], Pixels]


@dataclass(frozen=True)
class Data:
    """A data set as a change sees it. Args: digest: names its content, where that is known."""

    name: str
    pictures: Sequence[Labelled]
    digest: str = ""


def places(labels: Sequence[str | None], classes: Sequence[str]) -> Array:
    """(n,) class of each label, -1 where it is none of the classes, compared as sweeps compare them."""
    names = [plain(c) for c in classes]
    known = {n: i for i, n in enumerate(names) if names.count(n) == 1}
    return np.array([-1 if label is None else known.get(plain(label), -1) for label in labels], np.int64)


def readable(data: Data, problems: list[str]) -> Iterator[tuple[Labelled, Pixels]]:
    """The pictures that can be decoded; of the others the reason is noted."""
    if len(data.pictures) > MOST:
        raise InvalidField(
            f"“{data.name}” has {len(data.pictures):,} pictures.",
            code="too_many_items",
            given=len(data.pictures),
            allowed=[1, MOST],
        )
    for picture in data.pictures:
        try:
            yield picture, picture.read()
        except (BadRequest, OSError) as e:
            problems.append(f"{picture.name}: {e}")


def figures(before: Array, after: Array, labels: Array) -> dict[str, Any]:
    """Accuracy before and after with intervals. Args: predicted classes (n,); labels (n,), -1 where there is none."""
    known = labels >= 0
    was, now = (before == labels)[known], (after == labels)[known]
    n, gained, lost = int(known.sum()), int((~was & now).sum()), int((was & ~now).sum())
    return {
        "labelled": n,
        "before": portion(int(was.sum()), n).model_dump(),
        "after": portion(int(now.sum()), n).model_dump(),
        "difference": difference(gained, lost, n).model_dump(),
        "corrected": gained,
        "spoiled": lost,
        "moved": int((before != after).sum()),
    }


def slug(text: str) -> str:
    return (
        "-".join("".join(ch if ch.isascii() and ch.isalnum() else " " for ch in text.lower()).split())[:80] or "model"
    )


def free(folder: Path, name: str) -> Path:
    """A folder of this name in `folder` that does not exist, with a number where it does."""
    found, n = folder / name, 2
    while found.exists():
        found, n = folder / f"{name}-{n}", n + 1
    return found
