"""Occlusion: what the answer loses when a square of the picture is hidden."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from fanlight.artifact import Artifact
from fanlight.explainers import base, evaluate, maps

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

UNIT = "{} per window"


class Occlusion(base.Explainer):
    """Zeiler & Fergus, Visualizing and Understanding Convolutional Networks (ECCV 2014), section 4.2; on logits, and
    averaged over the windows that cover a pixel."""

    name = "occlusion"
    title = "Occlusion"
    family = "attribution"
    summary = "What the answer loses when a square of the picture is hidden."
    reading = (
        "Positive areas are those whose hiding lowers the explained value: the model relies on them. "
        "Hiding a negative area raises it. The value is the mean drop in logits over all windows that cover the pixel."
    )
    misleads = (
        "A hidden square is itself something the model has never seen, and may look like an object to it. "
        "Evidence that occurs twice is missed: hiding one copy changes little. "
        "Nothing smaller than the window can be told apart."
    )
    paper = base.Paper(
        "Zeiler & Fergus: Visualizing and Understanding Convolutional Networks. ECCV 2014",
        "https://arxiv.org/abs/1311.2901",
        "@inproceedings{zeiler2014visualizing, title={Visualizing and Understanding Convolutional Networks}, "
        "author={Zeiler, Matthew D. and Fergus, Rob}, booktitle={ECCV}, year={2014}}",
    )
    accepts = "image-classifier"
    returns = ("image-map",)
    version = "1"

    class Params(base.Params):
        window: int = Field(32, ge=4, le=128, description="Side of the hidden square in pixels of the model's input.")
        stride: int = Field(
            16, ge=4, le=128, description="Distance between neighbouring squares in pixels; at most the window."
        )
        baseline: maps.Hiding = Field("grey", description=maps.HIDING)

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:
        return 1 + len(corners(size, params.window, params.stride))

    @classmethod
    def check(cls, params: Params, size: tuple[int, int]) -> None:
        maps.fits("window", params.window, size)

    def run(self, model: ImageClassifier, items: Sequence[base.Item], params: Params, ctx: base.Context) -> base.Run:
        found = []
        for n, item in enumerate(items):
            found.append([(yield from _explain(model, item, params, ctx, n / len(items), (n + 1) / len(items)))])
        return found


def corners(size: tuple[int, int], window: int, stride: int) -> list[tuple[int, int]]:
    """Top left corners (row, column) of the windows. The last of a line ends at the border, and no pixel is left out:
    a stride larger than the window counts as the window."""
    lines = []
    for n in size:
        last = max(n - window, 0)
        lines.append([*range(0, last, min(stride, window)), last])
    return [(row, column) for row in lines[0] for column in lines[1]]


def covered(corner: tuple[int, int], window: int) -> tuple[slice, slice]:
    """The pixels of a window."""
    return slice(corner[0], corner[0] + window), slice(corner[1], corner[1] + window)


def _spread(size: tuple[int, int], places: list[tuple[int, int]], drops: Tensor, window: int) -> Tensor:
    """The mean drop of the windows over each pixel, (H, W); 0 where no window was tried yet. `drops` (n,) belong to the first n places."""
    import torch

    total, cover = torch.zeros(2, *size, dtype=torch.float64)
    for place, drop in zip(places, drops, strict=False):
        total[covered(place, window)] += drop
        cover[covered(place, window)] += 1
    mean: Tensor = total / cover.clamp(min=1)
    return mean


def _explain(
    model: ImageClassifier, item: base.Item, params: Occlusion.Params, ctx: base.Context, lo: float, hi: float
) -> Generator[base.Step, None, Artifact]:
    import torch

    size = (item.x.shape[1], item.x.shape[2])
    Occlusion.check(params, size)
    places = corners(size, params.window, params.stride)

    def evaluation() -> Generator[base.Step, None, Tensor]:
        hidden = maps.hider(model, item, params.baseline)
        rows = maps.hiding_rows(ctx, params.baseline)

        def picture(start: int, stop: int) -> Tensor:
            kept = torch.ones((stop - start, *size), dtype=torch.bool, device=item.x.device)
            for row, place in zip(kept, places[start:stop], strict=False):  # the whole picture comes last
                row[covered(place, params.window)] = False
            return hidden(kept)

        f_x = float(item.target.value(item.logits[None]))

        def so_far(logits: Tensor) -> Artifact:
            drops = f_x - item.target.value(logits[: len(places)]).double()
            return maps.image_map(
                item, _spread(size, places, drops, params.window), unit=UNIT.format(model.measure), signed=True
            )

        return (yield from evaluate.logits(model, picture, len(places) + 1, ctx, (lo, hi), preview=so_far, limit=rows))

    seed = maps.seed_of(item, params.baseline)
    key = ("occlusion", item.key, params.window, params.stride, params.baseline, seed)
    values = item.target.value((yield from evaluate.once(key, ctx, evaluation))).double()  # (M + 1,)
    return maps.image_map(
        item,
        _spread(size, places, values[-1] - values[:-1], params.window),
        unit=UNIT.format(model.measure),
        signed=True,
        baseline=params.baseline,
        window=params.window,
        stride=params.stride,
        f_x=float(values[-1]),
    )
