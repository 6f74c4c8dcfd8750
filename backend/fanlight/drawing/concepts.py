"""Artifact kind `concepts`: what a bottleneck says it sees, before and after a person's answers, and the classes that follow."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from fanlight.artifact import Artifact
from fanlight.drawing import colour, lettering
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.curves import FINE, INKS
from fanlight.drawing.image_map import fitted
from fanlight.drawing.number import digits, percent, signed
from fanlight.drawing.places import short

Array = np.ndarray[Any, np.dtype[Any]]

WIDTH = 640
CLASSES = 6  # of a page
BARS = 3  # classes of a picture
MOVED = 0.01  # a change of probability below which a bar gets no mark
TOLD = 0.05  # and below which it is not worth a word
NEIGHBOURS = 5  # concepts that hang together with one
FILLED = {False: ("#0B7A75", "#8A8F98", "#B7791F"), True: ("#4FC3BC", "#8A8F98", "#E0B050")}


class Concepts:
    kind = "concepts"

    def legend(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,  # noqa: ARG002 (bars carry their own numbers)
        lo: float | None = None,  # noqa: ARG002
        hi: float | None = None,  # noqa: ARG002
    ) -> Legend:
        return Legend(0.0, 1.0, str(artifact.meta["unit"]), "grey", colour.stops("grey"))

    def image(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,  # noqa: ARG002
        lo: float | None = None,  # noqa: ARG002
        hi: float | None = None,  # noqa: ARG002
        size: int | None = None,
        dark: bool = False,
    ) -> Image.Image:
        """Bars of the concepts that matter most and of the best classes, in the proportions of the picture; the mark is where a bar was before."""
        x0, y0, x1, y1 = artifact.meta["box"]
        height, width = fitted((max(1, round(y1 - y0)), max(1, round(x1 - x0))), size or WIDTH)
        canvas = Image.new("RGB", (width * FINE, height * FINE), INKS[dark]["card"])
        _chart(canvas, artifact, dark)
        return canvas.reduce(FINE)

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:  # noqa: ARG002
        """A row per concept, those that say most for or against the target first."""
        was, now = artifact.arrays["before"], artifact.arrays["after"]
        said = dict(artifact.meta["answers"])
        share = shares(artifact)
        heads = ["concept", "probability", "before", "change", "range", "answer"]
        rows = []
        for k in importance(artifact):
            row: list[Any] = [plain(artifact.meta["concepts"][k]), _round(now[0, k]), _round(was[0, k])]
            row += [_round(now[0, k] - was[0, k]), f"{now[1, k]:.2f} to {now[2, k]:.2f}", _word(said.get(k))]
            rows.append(tuple(row if share is None else [*row, _round(share[k])]))
        if share is not None:
            heads.append("share of the logit")
        return Table(tuple(heads), tuple(rows))

    def detail(self, artifact: Artifact) -> dict[str, Any]:
        """Numbers of every concept in order, classes that matter, and what hangs together with what; all that a page paints."""
        a, meta = artifact.arrays, artifact.meta
        share = shares(artifact)
        return {
            "p": _list(a["after"][0]),
            "lo": _list(a["after"][1]),
            "hi": _list(a["after"][2]),
            "was": _list(a["before"][0]),
            "share": None if share is None else _list(share),
            "effects": [_list(row) for row in a["effects"]],
            "answers": meta["answers"],
            "against": meta["against"],
            "samples": meta["samples"],
            "classes": [
                {
                    "index": i,
                    "name": meta["classes"][i],
                    "p": _round(a["classes_after"][0, i]),
                    "error": _round(a["classes_after"][1, i]),
                    "was": _round(a["classes_before"][0, i]),
                }
                for i in shown(artifact)
            ],
            "together": together(artifact),
            "cases": [
                {"case": int(c), "name": name, "distance": _round(d)}
                for c, d, name in zip(a["case"], a["distance"], meta["cases"], strict=True)
            ],
            "unusual": unusual(artifact),
        }

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:
        """The reason in one or two sentences; with answers, what they moved and what followed."""
        told = _answered(artifact) if artifact.meta["answers"] else _as_found(artifact, short(target))
        note = unusual(artifact)
        return f"{told} {note}" if note else told


def plain(name: str) -> str:
    """ "bill shape::hooked" as people say it."""
    return " ".join(name.replace("::", " ").split())


def explained(artifact: Artifact) -> list[int]:
    """The class in question, and the one that it is explained rather than."""
    target = artifact.meta["target"]
    return [int(i) for i in target.get("minus", [target.get("class")])]


def weight(artifact: Artifact) -> Array | None:
    """(K,) of the explained output; None where the head is not linear in the concepts."""
    of = artifact.arrays["weights"].astype(np.float64)
    if not len(of):
        return None
    first, *other = explained(artifact)
    row: Array = of[first] - of[other[0]] if other else of[first]
    return row


def shares(artifact: Artifact) -> Array | None:
    """(K,) weight times (probability - how frequent the concept is): what each concept adds to the expected logit beyond what is usual."""
    row = weight(artifact)
    return None if row is None else row * (artifact.arrays["after"][0] - artifact.arrays["base"])


def importance(artifact: Artifact) -> list[int]:
    """All concepts: answered ones, then those that moved, then by the size of their share (of a head that has none, the surest)."""
    moved = np.abs(artifact.arrays["after"][0] - artifact.arrays["before"][0])
    share = shares(artifact)
    size = np.abs(share) if share is not None else np.abs(artifact.arrays["after"][0] - 0.5)
    said = {k for k, _ in artifact.meta["answers"]}
    return sorted(
        range(len(size)), key=lambda k: (k not in said, moved[k] < MOVED, -moved[k] if moved[k] >= MOVED else -size[k])
    )


def shown(artifact: Artifact) -> list[int]:
    """Classes worth a bar: the explained ones, the best after and the best before; by what they have now."""
    after, before = artifact.arrays["classes_after"][0], artifact.arrays["classes_before"][0]
    wanted = {*explained(artifact), int(before.argmax())}
    for i in np.argsort(-np.maximum(after, before), kind="stable"):
        if len(wanted) >= min(CLASSES, len(after)):
            break
        wanted.add(int(i))
    return sorted(wanted, key=lambda i: (-after[i], i))


def together(artifact: Artifact) -> list[list[list[float]]]:
    """Per concept the others whose logits correlate most with its own given this picture: [number, correlation]; [] without a covariance."""
    lower = artifact.arrays["lower"]
    return _together(lower.tobytes(), len(lower)) if lower.size else []


@lru_cache(32)
def _together(numbers: bytes, size: int) -> list[list[list[float]]]:
    """No answer changes them, and somebody who drags asks again and again. Args: numbers: of L (K, K) float32."""
    lower = np.frombuffer(numbers, np.float32).reshape(size, size).astype(np.float64)
    covariance = lower @ lower.T
    spread = np.sqrt(np.maximum(covariance.diagonal(), 1e-300))
    r = covariance / np.outer(spread, spread)
    np.fill_diagonal(r, 0)
    most = np.argsort(-np.abs(r), axis=1, kind="stable")[:, :NEIGHBOURS]
    return [[[int(j), round(float(r[k, j]), 2)] for j in row] for k, row in enumerate(most)]


def unusual(artifact: Artifact) -> str:
    """A sentence where the picture is unlike the data of the model, by what is measured: how far its concepts are from those of reference cases."""
    far, reach = artifact.meta.get("distance"), artifact.meta.get("reach")
    if far is None or reach is None or far <= reach:
        return ""
    return (
        "This picture is unlike those that the model knows: its concepts lie at a Mahalanobis distance of "
        f"{digits(far)} from the mean of the reference cases, 99 % of which lie within {digits(reach)}."
    )


def _as_found(artifact: Artifact, target: str) -> str:
    share, p, names = shares(artifact), artifact.arrays["after"][0], artifact.meta["concepts"]
    if share is None:
        return (
            "The head of this model is not linear in the concepts, so that no concept has a share of its own; "
            "answer one to see what follows."
        )
    order = np.argsort(-share, kind="stable")
    speaks = [k for k in order[:3] if share[k] > 0]
    against = [k for k in order[::-1][:1] if share[k] < 0]
    if not speaks:
        return f"No concept speaks for {target or 'the target'} beyond what is usual."
    said = f"{_listed([_seen(names[k], p[k]) for k in speaks])} {'speaks' if len(speaks) == 1 else 'speak'} most for {target or 'the target'}"
    if against:
        said += f"; {_seen(names[against[0]], p[against[0]])} speaks most against it"
    return f"{said[0].upper()}{said[1:]}."


def _answered(artifact: Artifact) -> str:
    a, names = artifact.arrays, artifact.meta["concepts"]
    known = artifact.meta["answers"]
    said = [k for k, _ in known]
    move = a["after"][0] - a["before"][0]
    parts = [f"Answered: {_listed([f'{plain(names[k])} {_word(v)}' for k, v in known[:4]])}"]
    parts[0] += f" and {len(known) - 4} more." if len(known) > 4 else "."
    others = [int(k) for k in np.argsort(-np.abs(move), kind="stable") if k not in said and abs(move[k]) >= TOLD]
    if others:
        told = [f"{plain(names[k])} ({signed(float(move[k]), 2)})" for k in others[:3]]
        more = f"; {len(others) - 3} more moved" if len(others) > 3 else ""
        parts.append(f"With that moved {_listed(told)}{more}.")
    after, before = a["classes_after"][0], a["classes_before"][0]
    up, down = int((after - before).argmax()), int((after - before).argmin())
    if len(a["weights"]) and others:
        sums = a["weights"].astype(np.float64)[:, others] @ move[others]
        name = short(artifact.meta["classes"][up])
        own = a["weights"].astype(np.float64)[up][said] @ move[said]
        parts.append(
            f"For {name} the answers themselves count {signed(float(own), 2)} and what moved along {signed(float(sums[up]), 2)} logits."
        )
    told_of = [i for i in dict.fromkeys((up, down)) if abs(after[i] - before[i]) >= 0.005]
    if told_of:
        told = [
            f"{short(artifact.meta['classes'][i])} {percent(float(before[i]))} → {percent(float(after[i]))}"
            for i in told_of
        ]
        parts.append(f"{', '.join(told)}.")
    else:
        parts.append("No class moved by half a percent.")
    return " ".join(parts)


def _seen(name: str, p: float) -> str:
    return f"{'not ' if p < 0.5 else ''}{plain(name)} ({p:.2f})"


def _word(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.2f}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _round(value: Any) -> float:
    return round(float(value), 5) + 0.0


def _list(values: Array) -> list[float]:
    return [_round(v) for v in values]


def _chart(canvas: Image.Image, artifact: Artifact, dark: bool) -> None:
    """As many rows as are legible at this size: concepts above, classes below."""
    draw, ink = ImageDraw.Draw(canvas), INKS[dark]
    strong, plain_fill, mark = FILLED[dark]
    k = canvas.width / WIDTH
    row = 14 * FINE + 20 * k  # small pictures get fewer rows rather than smaller letters
    face, margin = lettering.font(max(8, round(row * 0.52))), row * 0.5
    room = int((canvas.height - 2 * margin) // row)
    bars = min(BARS, artifact.arrays["classes_after"].shape[1], max(1, room // 3))
    said = {c for c, _ in artifact.meta["answers"]}
    now, was = artifact.arrays["after"], artifact.arrays["before"]
    y = margin
    for c in importance(artifact)[: max(1, room - bars - 1)]:
        name = plain(artifact.meta["concepts"][c])
        fill = strong if c in said else plain_fill
        old = float(was[0, c]) if abs(now[0, c] - was[0, c]) >= MOVED else None
        _bar(draw, y, row, (name, f"{now[0, c]:.2f}"), float(now[0, c]), fill, face, ink, (old, mark), margin)
        y += row
    y += row * 0.3
    draw.line([(margin, y), (canvas.width - margin, y)], fill=ink["line"], width=max(1, round(FINE * k)))
    y += row * 0.4
    after, before = artifact.arrays["classes_after"][0], artifact.arrays["classes_before"][0]
    for n, i in enumerate(shown(artifact)[:bars]):
        old = float(before[i]) if abs(after[i] - before[i]) >= 0.005 else None
        text = (short(artifact.meta["classes"][i]), percent(float(after[i])))
        _bar(draw, y, row, text, float(after[i]), strong if n == 0 else plain_fill, face, ink, (old, mark), margin)
        y += row


def _bar(
    draw: ImageDraw.ImageDraw, y: float, row: float, text: tuple[str, str], value: float, fill: str, face: lettering.Font,
    ink: dict[str, str], before: tuple[float | None, str], margin: float,
) -> None:  # fmt: skip
    width = draw.im.size[0] - 2 * margin
    left, right = margin + width * 0.5, margin + width * 0.84
    middle, half = y + row / 2, row * 0.16
    draw.text((margin, middle), lettering.fit(draw, text[0], face, width * 0.48), ink["ink"], face, anchor="lm")
    draw.rectangle((left, middle - half, right, middle + half), fill=ink["line"])
    draw.rectangle((left, middle - half, left + max(1, (right - left) * value), middle + half), fill=fill)
    if before[0] is not None:
        x = left + (right - left) * before[0]
        draw.line([(x, middle - 2 * half), (x, middle + 2 * half)], fill=before[1], width=max(2, round(row / 12)))
    draw.text((margin + width, middle), text[1], ink["ink"], face, anchor="rm")
