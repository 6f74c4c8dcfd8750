"""A map made again: of another picture, by another network, or by another method. What the further checks are made of.

Whatever an explainer remembers for later requests belongs to the true model and the true picture, so each of these runs
has a context of its own, which goes when the run is over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fanlight.artifact import Artifact
from fanlight.comparison import plane
from fanlight.errors import FanlightError
from fanlight.explainers import maps
from fanlight.explainers.attribution.edges import Edges
from fanlight.explainers.base import Context, Explainer, Item, Params, Step

if TYPE_CHECKING:
    import torch
    from torch import Tensor

T = TypeVar("T")
Floats = np.ndarray[Any, np.dtype[np.float64]]
MAP = "image-map"
PATCH = 16  # pixels: most
ACROSS = 8  # patches along the shorter side: fewest


class NotMade(Exception):
    """A method made no map that could be compared; the message is a sentence."""


class Alone(Context):
    """A context that shares nothing with other runs. Args: lent: the context whose device and chunk it uses."""

    def __init__(self, lent: Context):
        self.device: torch.device = lent.device
        self.chunk = lent.chunk
        self._kept: dict[Hashable, Any] = {}

    def reuse(self, key: Hashable, compute: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]  # type: ignore[no-any-return]

    def remember(self, key: Hashable, value: Any) -> None:
        self._kept[key] = value

    def recall(self, key: Hashable) -> Any | None:
        return self._kept.get(key)


@dataclass(frozen=True)
class Subject:
    """What is checked: a stored map, and the means to make it again.

    Args:
        model: as it is asked for this target; `network` with another output where that is the similarity to a picture.
        network: the model itself. A check works on copies and never changes it.
        asked: from a copy of `network` to what stands in for `model`.
        item, explainer, params: the request.
        artifact: the stored `image-map`.
        ctx: lends device and chunk.
    """

    model: Any
    network: Any
    asked: Callable[[Any], Any]
    item: Item
    explainer: type[Explainer]
    params: Params
    artifact: Artifact
    ctx: Context

    @property
    def signed(self) -> bool:
        return bool(self.artifact.meta["signed"])

    @property
    def value(self) -> Floats:
        """The stored map, (H, W)."""
        return plane(self.artifact)

    @property
    def side(self) -> int:
        """Of a patch in pixels, so that a small picture still has enough of them to rank."""
        return max(1, min(PATCH, min(self.item.x.shape[1:]) // ACROSS))

    def patches(self, value: Floats) -> Floats:
        """Mean of a map over each patch, (R,)."""
        return patch_means(value, maps.squares((value.shape[0], value.shape[1]), self.side))


def patch_means(value: Floats, label: np.ndarray[Any, np.dtype[np.int32]]) -> Floats:
    """Mean of a map over each patch, (R,)."""
    flat = label.ravel()
    return np.asarray(np.bincount(flat, value.ravel()) / np.bincount(flat))


def made(
    subject: Subject,
    model: Any,
    item: Item,
    span: tuple[float, float],
    message: str,
    explainer: type[Explainer] | None = None,
    params: Params | None = None,
) -> Generator[Step, None, Artifact]:
    """The first `image-map` that the subject's method, or another, makes of `item` by `model`.

    Raises:
        NotMade: the method raised an error, made no map, or one that is not finite.
    """
    chosen = explainer or subject.explainer
    with excused(f"{chosen.title} made no map"):
        run = chosen().run(model, [item], params or subject.params, Alone(subject.ctx))
        while True:
            try:
                step = next(run)
            except StopIteration as end:
                (artifacts,) = end.value
                found: Artifact = next(a for a in artifacts if a.kind == MAP).check()
                break
            yield Step(min(span[1], span[0] + (span[1] - span[0]) * step.done), message)
    yield Step(span[1], message)
    return found


@contextmanager
def excused(what: str) -> Iterator[None]:
    """Errors of somebody's method or network as NotMade, with what did not happen; not those of memory, which the engine
    answers by freeing what it can."""
    import torch

    try:
        yield
    except (NotMade, MemoryError, torch.OutOfMemoryError):
        raise
    except FanlightError as e:
        raise NotMade(f"{what}: {e.message}") from e
    except Exception as e:
        raise NotMade(f"{what}: {type(e).__name__}: {e}") from e


def seen(model: Any, item: Item, **changes: Any) -> Item:
    """`item` as this model sees it, perhaps changed: its logits are asked for again."""
    import torch

    other = replace(item, **changes)
    with excused("The network gave no answer"), torch.inference_mode():
        row: Tensor = model.logits(other.x[None]).float().cpu()[0]
    return replace(other, logits=row)


def edges(model: Any, item: Item, ctx: Context) -> Floats:
    """The edge detector's map of the picture, (H, W); the model is not asked."""
    run = Edges().run(model, [item], Edges.Params(), ctx)
    while True:
        try:
            next(run)
        except StopIteration as end:
            return plane(end.value[0][0])
