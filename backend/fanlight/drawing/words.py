"""Artifact kind `words`: maps of what two words say about a picture, on one scale in nats, from the artifact alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image, ImageDraw
from PIL.Image import Resampling

from fanlight.artifact import Artifact
from fanlight.drawing import colour, lettering
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.information import SHOWN, Read
from fanlight.drawing.number import digits, signed
from fanlight.drawing.words_parts import attention, floor, moved, painted, pair_sums, png, rows, single

SIZE = 640
UNIT = "nat per latent pixel"
INK = {False: ("#1B1D21", "#5C626D", "#E4E4DF", "#FFFFFF"), True: ("#ECEDEF", "#9BA1AC", "#2C3038", "#1C1F25")}
FOR, AGAINST = "#B2432F", "#2B6CB0"
TOLD = ("prompt", "cut", "fitted", "tokens", "words", "pair", "rule", "chances", "band", "context", "removal", "nodes")
"""Metadata that `detail` hands on as it is."""


class Words:
    kind = "words"

    def legend(
        self, artifact: Artifact, *, cmap: str | None = None, lo: float | None = None, hi: float | None = None
    ) -> Legend:
        """Of all maps but synergy, which runs from -hi to hi."""
        top = Read(artifact).top if hi is None else hi
        chosen = cmap or "sequential"
        return Legend(0.0 if lo is None else lo, top, UNIT, chosen, colour.stops(chosen), "", "more")

    def image(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,
        lo: float | None = None,  # noqa: ARG002 (information starts at 0)
        hi: float | None = None,
        size: int | None = None,
        dark: bool = False,
    ) -> Image.Image:
        """The picture and the seven maps in two rows, under them the redrawn picture where there is one, then scales and signed values."""
        ink, quiet, line, paper = INK[dark]
        width = size or SIZE
        picture = Image.fromarray(artifact.arrays["picture"])
        meta = artifact.meta
        if not meta["nodes"]:
            return picture.resize((width, round(width * picture.height / picture.width)), Resampling.NEAREST)
        read = Read(artifact)
        top = read.top if hi is None else hi
        shots = [("the picture", picture)]
        for name, values in read.maps.items():
            shots.append((f"{read.titles[name]} {digits(float(values.sum()), 2)}", painted(name, values, top, cmap)))
        if artifact.arrays["changed"].size:
            shots.append((meta["redrawn_as"], Image.fromarray(artifact.arrays["changed"])))
            there = artifact.arrays["difference"].astype(np.float64)
            shots.append(("what moved", painted("a", there, float(there.max()) or 1.0, cmap)))
        looks = artifact.arrays["attention"].astype(np.float64)
        for n, name in zip(meta["pair"], (read.a, read.b), strict=True) if len(looks) else ():
            shots.append((f"attention: {name}", painted("a", looks[n], float(looks.max()) or 1.0, cmap)))
        if len(looks) and meta["floored"]:
            shots.append(("noise floor", painted("a", artifact.arrays["floor"].astype(np.float64), top, cmap)))
        lines = -(-len(shots) // 4)
        side, foot = width // 4, max(9, width // 36)
        if (tall := lines * (side + foot) + 4 * foot) > width:
            side = (width - 4 * foot) // lines - foot
            tall = lines * (side + foot) + 4 * foot
        canvas = Image.new("RGB", (4 * side, tall), paper)
        draw = ImageDraw.Draw(canvas)
        face = lettering.font(max(7, round(foot * 0.7)))
        for n, (words, shot) in enumerate(shots):
            x, y = n % 4 * side, n // 4 * (side + foot)
            canvas.paste(_fitted(shot, side - 2), (x + 1, y + 1))
            draw.text((x + 2, y + side), lettering.fit(draw, words, face, side - 4), ink, face)
        where = (2, lines * (side + foot), 2 * side - 8, foot)
        _scales(canvas, draw, where, top, cmap or "sequential", face, (ink, quiet))
        _signed(draw, read, (2 * side, where[1], 4 * side - 4, foot), face, (ink, quiet, line))
        return canvas

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:  # noqa: ARG002 (it has words)
        """Sum of each map; of the words and both the signed value of the picture with its standard error."""
        read = Read(artifact)
        found: list[tuple[Any, ...]] = []
        for name, values in read.maps.items():
            value, error = read.told[name] if name in read.told else (None, None)
            found.append((read.titles[name], _rounded(float(values.sum())), _rounded(value), _rounded(error)))
        if artifact.meta["floored"]:
            found.append(("noise floor", _rounded(float(artifact.arrays["floor"].sum())), None, None))
        return Table(("map", "sum (nat)", "signed, of the picture (nat)", "± standard error (nat)"), tuple(found))

    def detail(self, artifact: Artifact) -> dict[str, Any]:
        """Everything a page paints: maps, their standard errors and colours, signed values, all pairs, and how it was computed."""
        read, meta, arrays = Read(artifact), artifact.meta, artifact.arrays
        value, error = read.interaction()
        return {
            **{k: meta[k] for k in (*TOLD, "evaluations", "drawn", "edits", "redrawn", "redrawn_as")},
            "caveat": meta.get("caveat", ""),
            "probabilities": meta.get("probabilities"),
            "source": meta.get("source", ""),
            "unit": UNIT,
            "top": read.top,
            "stops": {"sequential": colour.stops("sequential"), "diverging": colour.stops("diverging")},
            "maps": [
                {
                    "name": name,
                    "title": read.titles[name],
                    "sum": float(values.sum()),
                    "values": rows(values),
                    "errors": rows(read.errors[name]),
                    "image": png(painted(name, values, read.top, None)),
                }
                for name, values in read.maps.items()
            ],
            "signed": {n: {"value": v, "error": e} for n, (v, e) in read.told.items()},
            "interaction": {"value": value, "error": error},
            "contradicted": {n: read.contradicted(n) for n in SHOWN},
            "calibrated": {n: read.calibrated(n) for n in SHOWN},
            "singles": [single(read, n) for n in range(len(meta["singles"]))],
            "matrix": [pair_sums(read, meta, p) for p in meta["pairs"]],
            "range": [float(arrays["alpha"][0]), float(arrays["alpha"][-1])],
            "curves": read.curves(),
            "floor": float(arrays["floor"].mean()) if meta["floored"] else None,
            "floor_sum": float(arrays["floor"].sum()) if meta["floored"] else None,
            "floor_map": floor(read),
            "attention": attention(read),
            "picture": png(Image.fromarray(arrays["picture"])),
            "changed": png(Image.fromarray(arrays["changed"])) if arrays["changed"].size else None,
            "moved": moved(read),
        }

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:  # noqa: ARG002 (there is but one)
        if not artifact.meta["nodes"]:
            return f"The picture of “{artifact.meta['prompt']}” is being drawn."
        read, meta = Read(artifact), artifact.meta
        (a, ea), (b, eb), (both, eboth) = (read.told[n] for n in SHOWN)
        given = "given the rest of the prompt" if meta["context"] else "alone"
        said = [
            f"“{read.a}” says {signed(a)} ± {digits(ea, 1)} nat about the picture {given}, “{read.b}” {signed(b)} ± {digits(eb, 1)}, "
            f"both {signed(both)} ± {digits(eboth, 1)}; {_largest(read)}."
        ]
        if meta["redrawn_as"]:
            again = moved(read)
            like = "" if again is None or again["correlation"] is None else f" (correlation {again['correlation']:.2f})"
            said.append(
                f"Drawn again {meta['redrawn_as']}" + (f", it changed where the map says{like}." if like else ".")
            )
        if meta["drawn"] and meta["drawn"]["guidance"] != 1:
            said.append(f"Drawn with guidance {meta['drawn']['guidance']:g}, which inflates signed values.")
        if meta["cut"]:
            said.append(f"The model never saw “{meta['cut'].strip()}”.")
        return " ".join(filter(None, [*said, meta.get("caveat", ""), meta["fitted"]]))


def _fitted(shot: Image.Image, side: int) -> Image.Image:
    """In a square of `side`, in its own proportions."""
    scale = side / max(shot.size)
    return shot.resize((max(1, round(shot.width * scale)), max(1, round(shot.height * scale))), Resampling.NEAREST)


def _scales(
    canvas: Image.Image, draw: ImageDraw.ImageDraw, at: tuple[int, int, int, int], top: float, cmap: str, face: Any, ink: tuple[str, str],
) -> None:  # fmt: skip
    """The scale of the maps and that of synergy, each with its ends, one under the other."""
    left, y, right, foot = at
    for n, (lo, chosen, words) in enumerate(((0.0, cmap, UNIT), (-top, "diverging", "synergy"))):
        middle = (left + right) // 2
        values = np.linspace(lo, top, max(2, middle - left))[None]
        bar = Image.fromarray(colour.colours(values, lo, top, chosen)).resize((middle - left, max(3, foot // 2)))
        height = y + 2 * n * foot
        canvas.paste(bar, (left, height + 2))
        draw.text((left, height + foot * 0.7), lettering.drawable(digits(lo, 2)), ink[0], face)
        draw.text((middle, height + foot * 0.7), lettering.drawable(digits(top, 2)), ink[0], face, anchor="ra")
        draw.text((middle + 6, height), lettering.fit(draw, words, face, right - middle - 6), ink[1], face)


def _signed(
    draw: ImageDraw.ImageDraw, read: Read, at: tuple[int, int, int, int], face: Any, ink: tuple[str, str, str]
) -> None:  # fmt: skip
    """Signed values of the picture as bars from a common zero, with twice their standard errors."""
    left, y, right, foot = at
    start = left + (right - left) // 4
    ends = [v + s * 2 * e for v, e in read.told.values() for s in (-1, 1)]
    lo, hi = min(0.0, *ends), max(0.0, *ends)
    room = (right - start) * 0.7 / ((hi - lo) or 1.0)
    zero = start - lo * room
    draw.text((left, y), lettering.fit(draw, "signed, of the picture (nat)", face, right - left), ink[1], face)
    for n, (name, (value, error)) in enumerate(read.told.items(), 1):
        top = y + n * foot
        middle = top + foot * 0.45
        words = {"a": read.a, "b": read.b}.get(name, "both")
        draw.text((left, top), lettering.fit(draw, words, face, start - left - 4), ink[0], face)
        ends_x = sorted((zero, zero + value * room))
        draw.rectangle((ends_x[0], top + 2, ends_x[1], top + foot * 0.8), FOR if value >= 0 else AGAINST)
        draw.line((zero + (value - 2 * error) * room, middle, zero + (value + 2 * error) * room, middle), ink[0])
        draw.text((right, top), lettering.drawable(f"{signed(value)} ± {digits(error, 1)}"), ink[0], face, anchor="ra")
    draw.line((zero, y + foot, zero, y + 4 * foot - 2), ink[2])


def _largest(read: Read) -> str:
    sums = {n: float(read.maps[n].sum()) for n in ("redundant", "unique_a", "unique_b", "synergy")}
    largest = max(sums, key=lambda n: abs(sums[n]))
    return {
        "redundant": "either of them says most of it",
        "unique_a": f"most of it only “{read.a}” says",
        "unique_b": f"most of it only “{read.b}” says",
        "synergy": "most of it only both together say" if sums["synergy"] > 0 else "together they say less than apart",
    }[largest]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
