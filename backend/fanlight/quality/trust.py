"""Trust of an `image-map`: its measured faithfulness against random maps and the edge detector on the same input.
docs/trust.md says it in words.

Patches of the picture are put onto a grey picture in the order of the map (insertion), or taken away in that order
(deletion), and the target's value is read at each step. The same with random orders of the patches is the floor, and
with the order of the edge detector, which has not seen the model, the edge floor. A map is as good as it is better than
those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fanlight.artifact import Artifact
from fanlight.explainers import evaluate, maps
from fanlight.explainers.base import Context, Item, Step
from fanlight.quality.again import edges, patch_means as patch_means

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

PATCH = 16  # pixels
STEPS = 28
ORDERS = 10
T95 = 2.2621572  # 97.5 % quantile of Student's t with ORDERS - 1 degrees of freedom
MIN_DIFFERENCE = 0.1  # logits between the picture and the baseline, below which there is nothing to share out
FLOOR = 2  # changes with the floor's definition; a cached floor of another version is measured again

Floats = np.ndarray[Any, np.dtype[np.float64]]
Order = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class TrustResult:
    """What a measurement gives.

    Args:
        record: the fields of `wire.Trust` except `curves` and `seconds`.
        floor: to be cached per (model, input, target) and handed in again; None where none was measured.
        curves: the curves behind the numbers; None where trust is unavailable.
    """

    record: dict[str, Any]
    floor: dict[str, Any] | None = None
    curves: Artifact | None = None


def run(
    model: ImageClassifier, item: Item, artifacts: Sequence[Artifact], floor: Mapping[str, Any] | None, ctx: Context
) -> Generator[Step, None, TrustResult]:
    """Measures the first `image-map` among the artifacts (Petsiuk, Das & Saenko, RISE, 2018; on logits, normalised,
    against a floor).

    Relative scores: insertion = AUC - floor's mean, deletion = floor's mean - AUC, faithfulness = the mean of both. Their
    intervals are 95 % prediction intervals: a random order's would cover 0 in 95 % of cases. `edges` are
    the same scores of the edge detector's map. Curves are (f - f(b)) / |f(x) - f(b)|.
    """
    chosen = next((a for a in artifacts if a.kind == "image-map"), None)
    if chosen is None:
        return unavailable("Trust is measured on maps over the pixels; this explanation has none.")
    error = chosen.meta.get("completeness_error")
    label = maps.squares((item.x.shape[1], item.x.shape[2]), PATCH)
    scores = patch_means(np.asarray(chosen.arrays["value"], dtype=np.float64), label)
    if not np.ptp(scores) > 0:
        return unavailable("The map has the same value everywhere, so it puts the patches into no order.", error)

    known = usable(floor)
    share = 1 / (2 + ORDERS) if known is None else 1.0
    order = descending(scores, np.random.default_rng(item.seed))
    values = yield from _walk(model, item, [order], label, ctx, (0, share))
    f_b, f_x = float(values[0, 0]), float(values[0, -1])
    if not np.isfinite(values).all():
        return unavailable("The model returned values that are not finite while patches were hidden.", error)
    if abs(f_x - f_b) < MIN_DIFFERENCE:
        return unavailable(
            f"The explained value is {f_x:.3g} for the picture and {f_b:.3g} for plain grey. They differ by less than "
            f"{MIN_DIFFERENCE:g}, so there is no difference that a map could explain.",
            error,
        )
    if known is None:
        known = yield from _floor(model, item, label, f_b, f_x, ctx, (share, 1.0))
    return _compare(normal(values, f_b, f_x), known, error, f_b, f_x)


def usable(floor: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A cached floor, if it is of this definition."""
    return dict(floor) if floor is not None and floor.get("version") == FLOOR else None


def unavailable(reason: str, error: float | None = None) -> TrustResult:
    return TrustResult({"state": "unavailable", "reason": reason, "completeness_error": error})


def descending(scores: Floats, rng: np.random.Generator) -> Order:
    """Patches from the highest score to the lowest; equal ones in random order, lest the raster decide."""
    return np.lexsort((rng.permutation(len(scores)), -scores))


def counts(patches: int) -> list[int]:
    """How many patches have been inserted, or deleted, at each of the STEPS + 1 points."""
    return [int(patches * t / STEPS + 0.5) for t in range(STEPS + 1)]


def auc(curves: Floats) -> Floats:
    """(..., STEPS + 1) -> (...): area under each curve over 0..1, by the trapezoid rule."""
    return np.asarray((curves[..., 1:] + curves[..., :-1]).mean(-1) / 2)


def normal(values: Floats, f_b: float, f_x: float) -> Floats:
    """Values relative to the baseline, in units of the whole difference. The sign stays: what raises the target
    always goes up."""
    return (values - f_b) / abs(f_x - f_b)


def _walk(
    model: ImageClassifier,
    item: Item,
    orders: Sequence[Order],
    label: np.ndarray[Any, np.dtype[np.int32]],
    ctx: Context,
    span: tuple[float, float],
) -> Generator[Step, None, Floats]:
    """The target's value as patches are inserted into the grey picture in each order, and as they are deleted from the
    whole picture in each order: (2 * orders, STEPS + 1), all insertions first."""
    import torch

    at = torch.from_numpy(label).to(item.x.device, torch.int64)
    reference = maps.baseline(model, item, "grey")
    n = len(orders[0])
    inner = counts(n)[1:-1]  # the ends are the same for all and asked for once
    kept = np.zeros((2 + 2 * len(orders) * len(inner), n), dtype=bool)
    kept[1] = True
    paths = kept[2:].reshape(2, len(orders), len(inner), n)
    for p, order in enumerate(orders):
        for t, count in enumerate(inner):
            paths[0, p, t, order[:count]] = True
            paths[1, p, t, order[count:]] = True
    rows = torch.from_numpy(kept).to(item.x.device)

    def picture(start: int, stop: int) -> Tensor:
        return evaluate.composite(item.x, reference, rows[start:stop][:, at])

    logits = yield from evaluate.logits(model, picture, len(kept), ctx, span, "measuring faithfulness")
    values = item.target.value(logits.double()).numpy()
    ends = np.stack(
        [np.tile(values[:2], (len(orders), 1)), np.tile(values[[1, 0]], (len(orders), 1))]
    )  # (2, orders, 2)
    whole = np.concatenate([ends[..., :1], values[2:].reshape(2, len(orders), -1), ends[..., 1:]], -1)
    return whole.reshape(2 * len(orders), -1)


def _floor(
    model: ImageClassifier,
    item: Item,
    label: np.ndarray[Any, np.dtype[np.int32]],
    f_b: float,
    f_x: float,
    ctx: Context,
    span: tuple[float, float],
) -> Generator[Step, None, dict[str, Any]]:
    """Curves of ORDERS random orders and of the order of the edge detector, JSON-able; no edges, no such curves. The
    orders are drawn from the input's key, so that a floor can be measured again."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(item.key.encode()).digest()[:8], "little"))
    orders = [rng.permutation(int(label.max()) + 1) for _ in range(ORDERS)]
    outline = patch_means(edges(model, item, ctx), label)
    if np.ptp(outline) > 0:
        orders.append(descending(outline, rng))
    values = normal((yield from _walk(model, item, orders, label, ctx, span)), f_b, f_x)
    insertion, deletion = values.reshape(2, len(orders), -1).tolist()
    drawn = {"insertion": insertion[:ORDERS], "deletion": deletion[:ORDERS]}
    plain = {"insertion": insertion[ORDERS:], "deletion": deletion[ORDERS:]}
    return {"version": FLOOR, **drawn, "edges": plain}


def _compare(values: Floats, floor: dict[str, Any], error: float | None, f_b: float, f_x: float) -> TrustResult:
    """Relative scores, their intervals and the curves. values: (2, STEPS + 1), normalised, both read from the empty
    picture."""
    random = {k: np.asarray(floor[k]) for k in ("insertion", "deletion")}  # (ORDERS, STEPS + 1)
    ours = {"insertion": values[0], "deletion": values[1]}
    gains, chance = _gains(ours), _gains(random)  # (), (ORDERS,)
    outline = _gains({k: np.asarray(floor["edges"][k]) for k in ours}) if floor["edges"]["insertion"] else {}  # (1,)
    relative = {k: float(gains[k] - chance[k].mean()) for k in gains}
    reach = {k: float(band(chance[k])) for k in gains}
    record = {
        "state": "succeeded",
        **relative,
        "above_floor": relative["faithfulness"] > reach["faithfulness"],
        "completeness_error": error,
        "edges": {k: float(outline[k][0] - chance[k].mean()) for k in outline},
        "floor": {k: float(auc(random[k]).mean()) for k in random} | {"orders": ORDERS, "patch": PATCH, "steps": STEPS},
        "interval": {k: {"lo": relative[k] - reach[k], "hi": relative[k] + reach[k]} for k in relative},
        "reason": None,
    }
    middle = np.stack([*ours.values(), *(random[k].mean(0) for k in random)])  # (4, STEPS + 1)
    half = np.stack([np.zeros_like(middle[0])] * 2 + [band(random[k]) for k in random])
    curves = Artifact(
        "trust-curves",
        "curves",
        {"x": np.linspace(0, 1, STEPS + 1), "y": middle, "lo": middle - half, "hi": middle + half},
        {
            "x_label": "share of patches inserted or deleted",
            "y_label": "explained value, 0 = grey picture, 1 = whole picture"
            if f_x > f_b
            else "explained value, 0 = grey picture, -1 = whole picture",
            "series": ["insertion", "deletion", "insertion, random order", "deletion, random order"],
            "f_x": f_x,
            "f_baseline": f_b,
        },
    )
    return TrustResult(record, floor, curves)


def _gains(curves: Mapping[str, Floats]) -> dict[str, Floats]:
    """Insertion, deletion and the mean of both, each so that more is better, of curves (..., STEPS + 1)."""
    insertion, deletion = auc(curves["insertion"]), -auc(curves["deletion"])
    return {"insertion": insertion, "deletion": deletion, "faithfulness": (insertion + deletion) / 2}


def band(draws: Floats) -> Floats:
    """(ORDERS, ...) -> (...): half width of the 95 % prediction interval of one more draw, t s sqrt(1 + 1 / n)."""
    return np.asarray(T95 * draws.std(0, ddof=1) * np.sqrt(1 + 1 / len(draws)))
