"""One method on one picture as the server's worker runs it, without a server."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fanlight.adapters import heads
from fanlight.adapters.base import Pixels
from fanlight.artifact import Artifact
from fanlight.bench._offline import Lent
from fanlight.errors import NotFound
from fanlight.explainers.base import Explainer, Item, Params, Target

if TYPE_CHECKING:
    from fanlight.adapters.image_classifier import TorchImageClassifier

T = TypeVar("T")
CHUNK = 8  # rows per pass, as in the server's worker


def default_model() -> TorchImageClassifier:
    """The classifier that `make run` installs. Errors: NotFound where it is not installed."""
    from fanlight.adapters import loader
    from fanlight.bundles import DEFAULT, folder

    place = folder() / DEFAULT
    if not place.is_dir():
        raise NotFound(
            f"The model {DEFAULT} is not installed here.",
            code="unknown_model",
            hint=f"fanlight models install {DEFAULT}",
        )
    return loader.load(loader.source(place))


def lent() -> Lent:
    """What a run is lent: a chunk of the server's size, nothing kept from an earlier one."""
    import torch

    return Lent(torch.device("cpu"), CHUNK)


def item(model: TorchImageClassifier, pixels: Pixels) -> Item:
    """(h, w, 3) uint8, prepared, with what the model gives first as its target and a seed drawn from the picture."""
    import torch

    x = model.prepare(pixels)
    with torch.inference_mode():
        logits = model.logits(x[None])[0].float().cpu()
    key = hashlib.sha256(pixels.tobytes()).hexdigest()
    target = Target(heads.order(model.head, logits)[0])
    box = model.view(pixels.shape[1], pixels.shape[0])
    return Item(x, model.pixels(pixels), target, logits, int(key[:8], 16), box, key)


def finished(steps: Generator[Any, None, T]) -> T:
    """What a run returns, its steps not looked at."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found


def explained(method: type[Explainer], params: Params, model: TorchImageClassifier, one: Item) -> list[Artifact]:
    return finished(method().run(model, [one], params, lent()))[0]


def unfit(method: type[Explainer], params: Params, model: TorchImageClassifier) -> str | None:
    """Why a method makes no map of this model at these parameters, as a sentence; None where it does."""
    from fanlight.adapters.base import missing
    from fanlight.errors import InvalidField
    from fanlight.explainers.base import absent

    if method.accepts != model.task or "image-map" not in method.returns:
        return "It makes no map of an image classifier."
    reason = missing(method.needs, model.capabilities) or absent(method)
    if reason is None:
        try:
            method.check(params, model.size)
        except InvalidField as e:
            return e.message
    return reason


def thrifty(method: type[Explainer], samples: int | None, model: TorchImageClassifier) -> Params:
    """The method's defaults, of which those that ask for more than `samples` samples ask for that many."""
    params = method.Params()
    most = getattr(params, "samples", None)
    if samples is None or most is None or most <= samples:
        return params
    fewer = method.Params.model_validate({"samples": samples})
    method.check(fewer, model.size)
    return fewer


def interval(values: np.ndarray[Any, np.dtype[np.float64]], draws: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the mean over (n,) values, by percentiles; the same for the same values."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(0, len(values), (draws, len(values)))].mean(1)
    lo, hi = np.percentile(means, [2.5, 97.5])
    return float(lo), float(hi)
