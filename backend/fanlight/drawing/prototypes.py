"""Artifact kind `prototypes`: rows of "this part - looks like - that part", from the artifact alone."""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from PIL.Image import Resampling

from fanlight.artifact import Artifact
from fanlight.drawing import lettering, places
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.image_map import fitted
from fanlight.drawing.number import digits, percent

Array = np.ndarray[Any, np.dtype[Any]]
NOWHERE = 65535
PARTS = ("#B45309", "#0B7A75", "#6D3AAE", "#B3304F", "#2B6CB0", "#5B6B12", "#8A3FA0", "#5C626D")
"""Colours of the parts by number, dark enough for white figures; assets/prototypes.css has the same."""
INK = {False: ("#1B1D21", "#5C626D", "#E4E4DF", "#FFFFFF"), True: ("#ECEDEF", "#9BA1AC", "#2C3038", "#1C1F25")}
DRAWN = 3
SIZE = 640


class Read:
    """What an artifact says, taken apart once."""

    def __init__(self, artifact: Artifact):
        self.meta, self.arrays = artifact.meta, artifact.arrays
        self.text: dict[str, Any] = json.loads(artifact.arrays["text"].tobytes())
        self.classes = [c["index"] for c in self.text["classes"]]
        self.rows = {r["prototype"]: r for r in self.text["rows"]}
        self.place = {int(j): n for n, j in enumerate(artifact.arrays["row"])}
        target = self.meta["target"]
        self.first: int = target["minus"][0] if "minus" in target else target["class"]
        self.minus: int | None = target["minus"][1] if "minus" in target else None
        self.weight = self._of(self.first) - (0 if self.minus is None else self._of(self.minus))
        self.changed: dict[tuple[int, int], str] = {}
        self.muted: set[int] = set()
        for edit in self.meta["edits"]:
            ((kind, value),) = edit.items()
            if kind == "mute_prototype":
                self.muted.add(value)
            elif kind in ("gate_part", "remove_part"):
                self.changed[value[0], value[1]] = kind

    def _of(self, index: int) -> Array:
        """(m,) weights for a class."""
        weight: Array = self.arrays["weight"][self.classes.index(index)].astype(np.float64)
        return weight

    def named(self, index: int) -> str:
        return str(next(c["name"] for c in self.text["classes"] if c["index"] == index))

    def shares(self, j: int, prefix: str = "") -> Array:
        """(K,) what each part adds to the activation; they sum to it."""
        slot = self.arrays[f"{prefix}slot"][j].astype(np.float64)
        if not prefix and j in self.muted:
            return np.zeros(len(slot))
        share: Array = slot * self.arrays[f"{prefix}val"][j] * len(slot) / max(slot.sum(), 1e-10)
        return share

    def cell(self, token: int) -> list[float]:
        """x0, y0, x1, y1 of a token as shares of what the model saw."""
        rows, columns = self.meta["grid"]
        r, c = divmod(token, columns)
        return [c / columns, r / rows, (c + 1) / columns, (r + 1) / rows]

    def state(self, j: int, k: int) -> str:
        """Of a part: open, shut (left out in training), gated or removed (by a person)."""
        done = self.changed.get((j, k))
        if done is not None and self.arrays["found_slot"][j, k]:
            return "gated" if done == "gate_part" else "removed"
        return "open" if self.arrays["slot"][j, k] else "shut"

    def points(self, j: int, prefix: str = "", weight: Array | None = None) -> float:
        return float((self.weight if weight is None else weight)[j] * self.arrays[f"{prefix}activation"][j])

    @property
    def total(self) -> float:
        """The logit of what is explained: the sum of all points."""
        return float(self.weight @ self.arrays["activation"].astype(np.float64))


class Prototypes:
    kind = "prototypes"

    def legend(
        self,
        artifact: Artifact,  # noqa: ARG002 (a renderer's arguments)
        *,
        cmap: str | None = None,  # noqa: ARG002
        lo: float | None = None,  # noqa: ARG002
        hi: float | None = None,  # noqa: ARG002
    ) -> Legend:
        """Boxes have numbers, not a scale."""
        return Legend(0.0, 1.0, "points", "", ())

    def image(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,  # noqa: ARG002 (colours name parts here)
        lo: float | None = None,  # noqa: ARG002
        hi: float | None = None,  # noqa: ARG002
        size: int | None = None,
        dark: bool = False,
    ) -> Image.Image:
        """The first rows, in the proportions of what the model saw."""
        ink, quiet, line, paper = INK[dark]
        read = Read(artifact)
        x0, y0, x1, y1 = artifact.meta["box"]
        height, width = fitted((round(y1 - y0) or 1, round(x1 - x0) or 1), size or SIZE)
        canvas = Image.new("RGB", (width, height), paper)
        draw = ImageDraw.Draw(canvas)
        rows = [j for j in read.text["main"] if j not in read.muted][:DRAWN] or read.text["main"][:DRAWN]
        foot = round(0.06 * height)
        tall = (height - foot) / max(len(rows), 1)
        gap = max(2, round(0.012 * width))
        side = round(min(tall - 2 * gap, 0.38 * width))
        for n, j in enumerate(rows):
            top = round(n * tall + (tall - side) / 2)
            here = _boxed(read, artifact.arrays["picture"], j, side, source=False)
            there = _boxed(read, artifact.arrays["source"][read.place[j]], j, side, source=True)
            canvas.paste(here, (gap, top))
            canvas.paste(there, (2 * gap + side, top))
            if n:
                draw.line((gap, round(n * tall), width - gap, round(n * tall)), line, max(1, size and size // 400 or 1))
            left, room = 3 * gap + 2 * side, width - 4 * gap - 2 * side
            large, small = max(8, round(room * 0.19)), max(7, round(room * 0.1))
            said = [
                (f"{digits(read.points(j))}", large, ink),
                (f"{digits(float(artifact.arrays['activation'][j]))} × {digits(float(read.weight[j]))}", small, quiet),
                (read.rows[j]["class_name"], small, quiet),
                (f"prototype {j}", small, quiet),
            ]
            y = top + (side - sum(1.3 * s for _, s, _ in said)) / 2
            for words, face_size, colour in said:
                face = lettering.font(face_size)
                draw.text((left, y), lettering.fit(draw, words, face, room), colour, face)
                y += 1.3 * face_size
        face = lettering.font(max(7, round(foot * 0.5)))
        words = f"all {artifact.meta['prototypes']:,} prototypes: {digits(read.total)} points"
        draw.line((gap, height - foot, width - gap, height - foot), line, max(1, width // 400))
        draw.text(
            (width - gap, height - foot / 2), lettering.fit(draw, words, face, 0.7 * width), ink, face, anchor="rm"
        )
        return canvas

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:  # noqa: ARG002 (names are stored)
        """A row per prototype that is shown, and one for all others: they add up to the logit."""
        read = Read(artifact)
        rows: list[tuple[Any, ...]] = []
        for j in read.text["main"]:
            row = read.rows[j]
            similarity, weight = float(artifact.arrays["activation"][j]), float(read.weight[j])
            source = row["source"]
            where = ", ".join(_place(read, int(t)) for t in artifact.arrays["idx"][j] if t != NOWHERE)
            rows.append(
                (
                    str(j),
                    row["class_name"],
                    _rounded(similarity),
                    _rounded(weight),
                    _rounded(read.points(j)),
                    where,
                    source.get("name") or SOURCE[source["status"]],
                    None if source.get("movement") is None else _rounded(source["movement"]),
                )
            )
        rest = read.total - sum(read.points(j) for j in read.text["main"])
        count = int(artifact.meta["prototypes"]) - len(read.text["main"])
        rows.append((f"the other {count}", "", None, None, _rounded(rest), "", "", None))
        rows.append(("all", "", None, None, _rounded(read.total), "", "", None))
        return Table(
            (
                "prototype",
                "class",
                "similarity",
                "weight",
                "points",
                "looks at",
                "source",
                "moved at projection (1 - cos)",
            ),
            tuple(rows),
        )

    def detail(self, artifact: Artifact) -> dict[str, Any]:
        """What the page paints: everything that is shown and nothing of the others but their sum."""
        read = Read(artifact)
        main = read.text["main"]
        points = read.weight * artifact.arrays["activation"]
        was = float(read.weight @ artifact.arrays["found_activation"].astype(np.float64))
        contrast = read.text["contrast"]
        shown = dict.fromkeys([*main, *(contrast["rows"] if contrast else ())])
        return {
            "grid": artifact.meta["grid"],
            "box": artifact.meta["box"],
            "parts": artifact.meta["parts"],
            "target": {"index": read.first, "minus": read.minus, "name": read.named(read.first)},
            "edits": artifact.meta["edits"],
            "rows": [_row(read, j, read.weight) for j in main],
            "rest": {
                "count": int(artifact.meta["prototypes"]) - len(main),
                "points": float(points.sum() - points[main].sum()),
            },
            "total": read.total,
            "was": was,
            "positive": float(points[points > 0].sum()),
            "negative": float(points[points < 0].sum()),
            "classes": read.text["classes"],
            "flip": read.text["flip"],
            "raised": read.text["raised"],
            "contrast": None
            if contrast is None
            else {**contrast, "rows": [_row(read, j, read._of(contrast["class"])) for j in contrast["rows"]]},
            "quality": read.text["quality"],
            "pictures": {
                str(j): _jpeg(artifact.arrays["source"][read.place[j]])
                for j in shown
                if read.rows[j]["source"]["status"] == "projected"
            },
        }

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:
        read = Read(artifact)
        name = places.short(target) or read.named(read.first)
        after = _after(artifact.meta["edits"])
        best = max(read.text["main"], key=read.points)
        of_best = read.points(best)
        if of_best <= 0:
            return f"{after}No prototype adds to {name}."
        share = of_best / max(float(np.maximum(read.weight * artifact.arrays["activation"], 0).sum()), 1e-12)
        parts = [k for k in range(artifact.meta["parts"]) if read.state(best, k) == "open"]
        at = [f"the {p}" for p in dict.fromkeys(_place(read, int(artifact.arrays["idx"][best, k])) for k in parts)]
        source = read.rows[best]["source"].get("name")
        looks = f"{'looks' if len(at) == 1 else 'look'} most like {source or 'a training picture'} ({read.rows[best]['class_name']})"
        said = f"{_listed(at)} {looks}: {digits(of_best)} points, {percent(share)} of all that speaks for {name}."
        return f"{after}{said[0].upper()}{said[1:]}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _after(edits: Sequence[Mapping[str, Any]]) -> str:
    """What was changed, as the beginning of a sentence; "" where nothing was."""
    said: dict[str, list[str]] = {}
    for edit in edits:
        ((kind, value),) = edit.items()
        words = f"part {value[1] + 1} of prototype {value[0]}" if kind in ("gate_part", "remove_part") else str(value)
        said.setdefault(kind, []).append(words)
    muted, spots = said.get("mute_prototype", []), len(said.get("exclude_region", []))
    parts = [
        f"prototype{'s' if len(muted) > 1 else ''} {_listed(muted)} muted" if muted else "",
        f"{_listed(said['gate_part'])} left out" if "gate_part" in said else "",
        f"{_listed(said['remove_part'])} taken out" if "remove_part" in said else "",
        f"{spots} place{'s' if spots > 1 else ''} excluded" if spots else "",
    ]
    kept = [p for p in parts if p]
    return f"With {_listed(kept)}: " if kept else ""


SOURCE = {"projected": "a training picture", "none": "no source", "unavailable": "source not on this machine"}


def _row(read: Read, j: int, weight: Array) -> dict[str, Any]:
    row, arrays = read.rows[j], read.arrays
    source = row["source"]
    tokens = source.get("token") or [None] * read.meta["parts"]
    share = read.shares(j)
    parts = []
    for k in range(read.meta["parts"]):
        token, cosine = int(arrays["idx"][j, k]), (source.get("cosine") or [None] * (k + 1))[k]
        parts.append(
            {
                "k": k,
                "state": read.state(j, k),
                "cos": float(arrays["val"][j, k]),
                "points": float(weight[j] * share[k]),
                "order": int(arrays["order"][j, k]),
                "cell": None if token == NOWHERE else read.cell(token),
                "source": None if tokens[k] is None else read.cell(tokens[k]),
                "cosine": cosine,
            }
        )
    return {
        "prototype": j,
        "class": row["class"],
        "class_name": row["class_name"],
        "state": "muted" if j in read.muted else "empty" if not arrays["slot"][j].any() else "active",
        "activation": float(arrays["activation"][j]),
        "was": float(arrays["found_activation"][j]),
        "weight": float(weight[j]),
        "points": read.points(j, weight=weight),
        "points_were": read.points(j, "found_", weight),
        "most": int(read.meta["parts"]),
        "parts": parts,
        "source": {k: source.get(k) for k in ("status", "name", "split", "movement", "self_activation")},
        "flags": [_flag(f) for f in row["flags"]],
        "nearest": [{**n, "cells": [read.cell(t) for t in n["token"]]} for n in row["nearest"]],
    }


def _boxed(read: Read, picture: Array, j: int, side: int, *, source: bool) -> Image.Image:
    """The picture, longer side `side`, with the numbered boxes of a prototype's open parts; in words where it is gone."""
    height, width = fitted(picture.shape[:2], side)
    status = read.rows[j]["source"]["status"]
    sheet = Image.new("RGB", (side, side), "#EBEBE6")
    if source and status != "projected":
        draw, face = ImageDraw.Draw(sheet), lettering.font(max(8, side // 12))
        for n, words in enumerate(SOURCE[status].split(" on ")):
            draw.text(
                (side / 2, side * (0.45 + 0.12 * n)), words if not n else f"on {words}", "#5C626D", face, anchor="mm"
            )
        return sheet
    shown = Image.fromarray(picture).resize((width, height), Resampling.LANCZOS)
    if not source and j in read.muted:
        shown = Image.blend(shown, Image.new("RGB", shown.size, "#EBEBE6"), 0.6)
    draw = ImageDraw.Draw(shown)
    tokens: Sequence[Any] = (
        read.rows[j]["source"].get("token") or () if source else [int(t) for t in read.arrays["idx"][j]]
    )
    thick, face = max(1, side // 90), lettering.font(max(7, side // 14))
    for k, token in enumerate(tokens):
        if token is None or token == NOWHERE or read.state(j, k) not in ("open",):
            continue
        x0, y0, x1, y1 = read.cell(token)
        box = (round(x0 * width), round(y0 * height), round(x1 * width) - 1, round(y1 * height) - 1)
        draw.rectangle(box, outline=PARTS[k % len(PARTS)], width=thick)
        _number(draw, k, box, face, width)
    sheet.paste(shown, ((side - width) // 2, (side - height) // 2))
    return sheet


def _number(
    draw: ImageDraw.ImageDraw, k: int, box: tuple[int, int, int, int], face: lettering.Font, width: int
) -> None:
    """The number of a part on a tag above its box, or inside at the upper border."""
    tall = round(face.size * 1.15)
    wide = round(draw.textlength(str(k + 1), face) + face.size * 0.5)
    left = min(box[0], width - wide)
    top = box[1] - tall if box[1] >= tall else box[1]
    draw.rectangle((left, top, left + wide, top + tall), fill=PARTS[k % len(PARTS)])
    draw.text((left + wide / 2, top + tall / 2), str(k + 1), "#FFFFFF", face, anchor="mm")


def _place(read: Read, token: int) -> str:
    x0, y0, x1, y1 = read.cell(token)
    return places.name((y0 + y1) / 2, (x0 + x1) / 2)


def _jpeg(picture: Array) -> str:
    return _encoded(picture.shape, picture.tobytes())


@functools.lru_cache(maxsize=128)
def _encoded(shape: tuple[int, ...], blob: bytes) -> str:
    """A picture as a data address. Kept: while somebody changes a result the same pictures are asked for again and again."""
    out = io.BytesIO()
    Image.fromarray(np.frombuffer(blob, np.uint8).reshape(shape)).save(out, "JPEG", quality=88)
    return "data:image/jpeg;base64," + base64.b64encode(out.getvalue()).decode()


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


FLAGS = {
    "removed": "taken out of this model for good",
    "weak_self": "weaker on its own source than it should be",
    "dead": "among the most active of no training picture",
    "empty": "its class had no picture to project onto",
    "largest_weight_other_class": "its largest weight is for another class",
}


def _flag(name: str) -> str:
    """A flag in words."""
    return FLAGS.get(name) or f"the same parts as prototype {name.partition(':')[2]}"
