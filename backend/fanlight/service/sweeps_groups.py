"""Groups of the maps of a sweep, each with its mean picture and its mean map: what catches a model that looks where it should not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image
from sqlalchemy import Row, select

from fanlight import images, patterns, wire
from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.errors import FanlightError
from fanlight.service import inputs, sweeps, sweeps_figures
from fanlight.service.context import Context
from fanlight.store.tables import input_

Array = np.ndarray[Any, np.dtype[Any]]

FINE = 28
"""Cells along each side of a map as it is kept; a multiple of `patterns.GRID`."""
SIDE = 112
"""Pixels along each side of a mean picture."""
PICTURED = 100
"""Pictures of a group that its mean picture is made of; where there are more, these are drawn from them."""
POINTS = 2000
MEMBERS = 12
SEED = 0
UNIT = "share of each map's largest value"


@dataclass(frozen=True)
class Groups:
    """Args: ids: explanations that took part; number: the group of each, from 1; pictures, maps: PNG of each group."""

    ids: list[str]
    number: list[int]
    pictures: list[bytes]
    maps: list[bytes]
    clusters: wire.Clusters
    projection: wire.Projection | None


def grouped(
    context: Context,
    found: Sequence[Row[Any]],
    read: tuple[Array, Sequence[Artifact | None]],
    *,
    workspace: str,
    base: str,
    content: str,
) -> Groups:
    """Groups of finished explanations.

    Args:
        found: rows of `sweeps.results`.
        read: (n, FINE, FINE) maps, and an artifact without arrays that carries the metadata of each; None where it could not be read.
        workspace: of the sweep.
        base: address of the groups' pictures; content: that the pictures are of.
    """
    fine, heads = read
    there = [i for i, h in enumerate(heads) if h is not None and fine[i].any()]
    rows, fine = [found[i] for i in there], fine[there]
    blank = len(found) - len(there)
    if len(rows) < 2:
        none = wire.Clusters(
            n=len(rows), blank=blank, grid=patterns.GRID, k=0, measured_on=0, sentence="Two maps or more are needed."
        )
        return Groups([], [], [], [], none, None)
    points = patterns.reduced(fine.astype(np.float64))
    groups = patterns.grouped(points, SEED)
    own = fine / np.abs(fine).max(axis=(1, 2), keepdims=True)  # (n, FINE, FINE)
    head = next(h for h in heads if h is not None)
    signed = any(bool(h.meta["signed"]) for h in heads if h is not None)
    pictures, maps, items = [], [], []
    for g in range(len(groups.centre)):
        inside = np.flatnonzero(groups.label == g)
        mean = Artifact(
            "mean",
            "image-map",
            {"value": own[inside].mean(0, dtype=np.float64).astype(np.float32)},
            {"unit": UNIT, "signed": signed, "box": head.meta["box"]},
        )
        draw = renderer(mean.kind)
        picture, pictured = _mean_picture(context, workspace, [(rows[i], heads[there[i]]) for i in inside])
        pictures.append(picture)
        maps.append(images.png(draw.image(mean, size=2 * SIDE)))
        outcomes = [sweeps.outcome(rows[i].label, rows[i].top_class) for i in inside]
        labelled = [o for o in outcomes if o is not None]
        scores = [rows[i].faithfulness for i in inside if rows[i].faithfulness is not None]
        close = inside[np.argsort(((points[inside] - groups.centre[g]) ** 2).sum(1), kind="stable")]
        common = Counter(rows[i].label or rows[i].top_class for i in inside).most_common(3)
        items.append(
            wire.Cluster(
                number=g + 1,
                size=len(inside),
                silhouette=float(groups.by_group[g]),
                pictured=pictured,
                where=draw.sentence(mean),
                common=[(str(name), n) for name, n in common],
                accuracy=sweeps_figures.portion(labelled.count("right"), len(labelled)),
                faithfulness=float(np.mean(scores)) if scores else None,
                members=[rows[i].explanation for i in close[:MEMBERS]],
                picture=f"{base}/{g + 1}/picture.png?content={content}",
                map=f"{base}/{g + 1}/map.png?content={content}",
            )
        )
    clusters = wire.Clusters(
        n=len(rows),
        blank=blank,
        grid=patterns.GRID,
        k=len(items),
        silhouette=groups.silhouette,
        tried=groups.tried,
        measured_on=groups.measured,
        sentence=said(groups, len(rows)),
        items=items,
    )
    number = [int(v) + 1 for v in groups.label]
    return Groups([r.explanation for r in rows], number, pictures, maps, clusters, _projection(rows, points, number))


def said(groups: patterns.Groups, n: int) -> str:
    """How clear the groups are; the bounds are conventions of L. Kaufman and P. Rousseeuw, 1990."""
    if groups.silhouette is None:
        return (
            f"{n} maps are too few, or too much alike, to be grouped."
            if n < patterns.LEAST
            else "The maps are all alike."
        )
    k, value = len(groups.centre), f"{groups.silhouette:.2f}"
    if groups.silhouette > 0.5:
        return f"{k} groups, well apart (silhouette {value})."
    if groups.silhouette > 0.25:
        return f"{k} groups, somewhat apart (silhouette {value})."
    return f"{k} groups that run into each other (silhouette {value}): parts of one cloud rather than kinds."


def _projection(rows: Sequence[Row[Any]], points: Array, number: Sequence[int]) -> wire.Projection:
    at, share = patterns.components(points)
    chosen = np.arange(len(rows))
    if len(rows) > POINTS:
        chosen = np.sort(np.random.default_rng(SEED).choice(len(rows), POINTS, replace=False))
    return wire.Projection(
        explained=share,
        of=len(rows),
        points=[
            wire.Point(
                explanation=rows[i].explanation,
                x=round(float(at[i, 0]), 5),
                y=round(float(at[i, 1]), 5),
                cluster=number[i],
                name=rows[i].name,
                predicted=rows[i].top_class or "",
                outcome=sweeps.outcome(rows[i].label, rows[i].top_class),
                faithfulness=rows[i].faithfulness,
            )
            for i in map(int, chosen)
        ],
    )


def _mean_picture(
    context: Context, workspace: str, members: Sequence[tuple[Row[Any], Artifact | None]]
) -> tuple[bytes, int]:
    """PNG of the mean of what the model saw of these pictures, and of how many; each is read as its thumbnail."""
    if len(members) > PICTURED:
        drawn = np.sort(np.random.default_rng(SEED).choice(len(members), PICTURED, replace=False))
        members = [members[i] for i in drawn]
    wanted = {row.input: head for row, head in members if head is not None}
    here = input_.c.workspace == workspace, input_.c.id.in_(wanted)
    rows = context.db.read(lambda c: list(c.execute(select(input_).where(*here))))
    total, n = np.zeros((SIDE, SIDE, 3)), 0
    for row in rows:
        head = wanted[row.id]
        if head is None:
            continue
        try:
            small = images.load(inputs.thumbnail(context, row))
        except (FanlightError, ValueError):
            continue
        across, down = small.shape[1] / row.width, small.shape[0] / row.height
        x0, y0, x1, y1 = head.meta["box"]
        cut = images.crop_resize(small, (x0 * across, y0 * down, x1 * across, y1 * down), (SIDE, SIDE))
        total += np.asarray(cut, np.float64)
        n += 1
    mean = (total / max(n, 1)).round().astype(np.uint8)
    return images.png(Image.fromarray(mean)), n
