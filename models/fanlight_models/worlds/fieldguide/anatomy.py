"""The birds' shapes: what is drawn for each concept, as polygons in the bird's own frame.

The frame: facing right, y downwards, the body about 50 units long around (0, 0). A body lies between an upper and a lower curve; a point of it is
(s, f) with s from the neck (0) to the tail (1) and f from the upper curve (0) to the lower (1), so that markings follow any build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide.chance import cos, sin

Points = NDArray[np.float64]
Colour = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Mark:
    """One filled polygon: (n, 2) points of `part` in `colour`, `standing` if it does not lean with the bird."""

    part: str
    colour: Colour
    points: Points
    standing: bool = False


@dataclass(frozen=True)
class Build:
    """Head centre and radius, control points of the upper and lower curve, direction of the tail in degrees below backwards, hips as s."""

    head: tuple[float, float, float]
    upper: tuple[tuple[float, float], ...]
    lower: tuple[tuple[float, float], ...]
    tail: int
    hips: tuple[float, float]
    centre: tuple[float, float]


BUILDS = {
    "round": Build(
        (13.5, -14, 10.2), ((15, -20), (3, -17), (-8, -11), (-18, -3), (-27, 4)), ((22, -9), (22.5, 4), (11, 15), (-9, 13), (-26, 8.5)),
        24, (0.50, 0.62), (-1, 0),
    ),
    "slim": Build(
        (18.5, -16, 8.7), ((19, -21), (8, -17), (-5, -11), (-19, -2), (-30, 6.5)), ((25.5, -10), (23, 2), (10, 12.5), (-9, 12.5), (-29, 10)),
        22, (0.47, 0.60), (2, -2),
    ),
    "stocky": Build(
        (10, -15, 12.2), ((9, -23), (-3, -17), (-11, -8), (-18, 1), (-23, 9)), ((20, -9), (19.5, 3), (10, 15), (-6, 16.5), (-21, 13)),
        36, (0.50, 0.64), (4, -2),
    ),
    "tall": Build(
        (22.5, -27, 7.2), ((20, -31), (14, -19), (0, -14), (-14, -6), (-26, 4)), ((28, -23), (20.5, -8), (9, 8), (-8, 10.5), (-25, 7)),
        14, (0.50, 0.61), (5, 4),
    ),
    "boat": Build(
        (24, -20, 8.6), ((22, -26), (14.5, -11), (-4, -12), (-19, -9), (-31, -4)), ((30, -15), (27, 1), (13, 13), (-11, 12.5), (-31, -0.5)),
        -10, (0.44, 0.55), (3, -6),
    ),
    "upright": Build(
        (11, -25, 9.2), ((9, -32), (-4, -22), (-11, -8), (-15, 7), (-18, 20)), ((19, -21), (19.5, -7), (15, 8), (3, 20), (-14, 24)),
        62, (0.56, 0.70), (-1, 2),
    ),
}  # fmt: skip

BROWN, GREY, OLIVE, BLACK, BLUE = (134, 98, 66), (132, 140, 148), (116, 126, 68), (52, 52, 60), (58, 112, 164)
RUFOUS, YELLOW, WHITE, BUFF, RED = (182, 92, 50), (230, 192, 70), (240, 236, 226), (216, 188, 146), (196, 58, 44)
NEUTRAL, CAP, TAIL = (196, 180, 152), (164, 144, 116), (92, 84, 78)
COLOURS: dict[str, dict[str, Colour]] = {
    "bill colour": {"black": (58, 56, 60), "grey": (134, 144, 154), "yellow": (236, 180, 48), "red": (212, 74, 48), "pale": (222, 200, 168)},
    "crown": {"plain": CAP, "black": BLACK, "rufous": (168, 76, 40), "blue": (48, 98, 168), "yellow": (236, 196, 58), "white": WHITE},
    "throat": {"plain": NEUTRAL, "white": (248, 246, 238), "black": (46, 44, 50), "red": RED},
    "breast": {"white": WHITE, "buff": BUFF, "grey": (164, 170, 176), "rufous": (200, 108, 58), "yellow": YELLOW},
    "belly": {"white": (244, 242, 234), "buff": (222, 198, 158), "grey": (178, 182, 186), "rufous": (192, 104, 60)},
    "back": {"brown": BROWN, "grey": GREY, "olive": OLIVE, "black": BLACK, "blue": BLUE},
    "wing": {"brown": (118, 84, 56), "grey": (116, 124, 134), "olive": (100, 112, 58), "black": (42, 42, 50), "blue": (44, 94, 148)},
    "wing bar": {"white": (246, 244, 236), "yellow": (240, 200, 72)},
    "rump": {"plain": (150, 126, 98), "white": (246, 244, 238), "yellow": (238, 204, 84)},
    "leg colour": {"black": (50, 48, 50), "grey": (122, 128, 136), "yellow": (226, 172, 52), "red": (206, 82, 58)},
}  # fmt: skip
FOOT = {"short": 6.5, "medium": 12.0, "long": 22.0}  # length of the legs


@lru_cache(512)
def tone(colour: Colour, percent: int) -> Colour:
    """Lighter above 100, darker below."""
    if percent <= 100:
        return tuple(c * percent // 100 for c in colour)  # type: ignore[return-value]
    return tuple(255 - (255 - c) * 100 // percent for c in colour)  # type: ignore[return-value]


def smooth(points: Sequence[tuple[float, float]], closed: bool = False, steps: int = 6) -> Points:
    """Catmull-Rom curve through points: (n, 2)."""
    p = np.array(points, np.float64)
    around = np.concatenate((p[-1:], p, p[:2]) if closed else (2 * p[:1] - p[1:2], p, 2 * p[-1:] - p[-2:-1]))
    t = (np.arange(steps) / steps)[:, None]
    a, b, c, d = (around[k : len(around) - 3 + k, None] for k in range(4))
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t + (3 * b - 3 * c + d - a) * t * t * t)
    flat = curve.reshape(-1, 2)
    return flat if closed else np.concatenate((flat, p[-1:]))


def oval(
    x: float, y: float, rx: float, ry: float, tilt: int = 0, start: int = 0, end: int = 360, n: int = 20
) -> Points:
    """An ellipse or an arc of it, angles in whole degrees clockwise from the right."""
    steps = [start + (end - start) * i // n for i in range(n + (end - start < 360))]
    c, s = cos(tilt), sin(tilt)
    return np.array(
        [(x + rx * cos(a) * c - ry * sin(a) * s, y + rx * cos(a) * s + ry * sin(a) * c) for a in steps], np.float64
    )


@lru_cache(512)
def _edges(build: str) -> tuple[Points, Points]:
    b = BUILDS[build]
    return smooth(b.upper, steps=10), smooth(b.lower, steps=10)


def at(build: str, s: Sequence[float] | Points, f: Sequence[float] | Points | float) -> Points:
    """Points (s, f) of a body: (n, 2)."""
    upper, lower = _edges(build)
    place = np.clip(np.asarray(s, np.float64), 0, 1.12) * (len(upper) - 1)
    i = np.minimum(place.astype(np.int64), len(upper) - 2)
    t = (place - i)[:, None]
    f = np.broadcast_to(np.asarray(f, np.float64), place.shape)[:, None]
    u = upper[i] + (upper[i + 1] - upper[i]) * t
    w = lower[i] + (lower[i + 1] - lower[i]) * t
    return np.asarray(u + (w - u) * f, np.float64)


def patch(build: str, s: tuple[float, float], f: tuple[float, float], n: int = 10) -> Points:
    """The part of a body between two values of s and two of f."""
    along, back = np.linspace(*s, n), np.linspace(*s[::-1], n)
    down, up = np.linspace(*f, 5)[1:-1], np.linspace(*f[::-1], 5)[1:-1]
    return np.concatenate((
        at(build, along, f[0]), at(build, np.full(3, s[1]), down), at(build, back, f[1]), at(build, np.full(3, s[0]), up),
    ))  # fmt: skip


@lru_cache(512)
def hips(build: str) -> tuple[float, float]:
    """Where the legs begin."""
    x, y = at(build, (BUILDS[build].hips[1],), 0.97)[0].tolist()
    return x, y


@lru_cache(512)
def rounding(build: str) -> tuple[tuple[int, Points], ...]:
    """Light on a round body from above: levels (128 changes nothing) and where, later ones over earlier ones."""
    levels = (146, 144, 140, 136, 131, 125, 118, 110, 100)
    bands = [(level, patch(build, (0.0, 1.12), (i / len(levels), 1.0), 8)) for i, level in enumerate(levels)]
    x, y, r = BUILDS[build].head
    for i, level in enumerate((106, 114, 122, 128, 134, 140, 146)):
        bands.append(
            (level, oval(x + 0.07 * r * i, y - 0.12 * r * i, r * (1.08 - 0.13 * i), r * (1.02 - 0.13 * i), n=14))
        )
    return tuple(bands)


@lru_cache(512)
def _regions(build: str) -> tuple[Points, ...]:
    """Outlines of belly, breast, back, shade on the back, rump."""
    return (
        patch(build, (0.40, 1.0), (0.34, 1.0)),
        np.concatenate((
            at(build, np.linspace(0, 0.50, 10), 1.0), at(build, (0.52, 0.53, 0.50, 0.46), (0.85, 0.70, 0.50, 0.36)),
            at(build, np.linspace(0.44, 0.0, 6), 0.33),
        )),
        np.concatenate((
            at(build, np.linspace(0, 0.78, 12), 0.0), at(build, (0.78, 0.6, 0.4, 0.2, 0.1, 0.0), (0.42, 0.44, 0.42, 0.40, 0.36, 0.34)),
        )),
        np.concatenate((at(build, np.linspace(0.12, 0.74, 8), 0.20), at(build, np.linspace(0.74, 0.12, 8), 0.40))),
        patch(build, (0.76, 1.0), (0.0, 0.56), 5),
    )  # fmt: skip


def trunk(build: str, back: str, breast: str, pattern: str, belly: str, rump: str) -> tuple[Mark, ...]:
    below, front, above, shade, behind = _regions(build)
    return (
        Mark("belly", COLOURS["belly"][belly], below),
        Mark("breast", COLOURS["breast"][breast], front),
        *_pattern(build, pattern),
        Mark("back", COLOURS["back"][back], above),
        Mark("back", tone(COLOURS["back"][back], 84), shade),
        Mark("rump", COLOURS["rump"][rump], behind),
    )


@lru_cache(512)
def _pattern(build: str, pattern: str) -> list[Mark]:
    ink = (78, 56, 42)
    if pattern == "spotted":
        spots = [
            (s, f)
            for k, s in enumerate((0.05, 0.13, 0.21, 0.29, 0.37, 0.45))
            for f in np.arange(0.46 + 0.09 * (k % 2), 0.97, 0.18)
        ]
        centres = at(build, [s for s, _ in spots], [f for _, f in spots])
        return [Mark("breast", ink, oval(x, y, 1.35, 1.2, n=8)) for x, y in centres]
    if pattern == "streaked":
        out = []
        for k, f in enumerate(np.linspace(0.44, 0.95, 7)):
            for s in np.arange(0.04 + 0.06 * (k % 2), 0.42, 0.13):
                a = at(build, (s, s + 0.035, s + 0.10, s + 0.035), (f, f - 0.032, f + 0.01, f + 0.032))
                out.append(Mark("breast", ink, a))
        return out
    if pattern == "barred":
        f = np.linspace(0.38, 0.99, 9)
        wave = 0.012 * np.array([0, 1, 0, -1, 0, 1, 0, -1, 0])
        return [
            Mark("breast", ink, np.concatenate((at(build, s + wave, f), at(build, (s + 0.026 + wave)[::-1], f[::-1]))))
            for s in np.arange(0.06, 0.47, 0.075)
        ]
    return []


@lru_cache(512)
def wing(build: str, colour: str) -> tuple[Mark, ...]:
    c = COLOURS["wing"][colour]
    top = at(build, (0.17, 0.22, 0.35, 0.50, 0.65, 0.80, 0.92, 1.04), (0.44, 0.27, 0.22, 0.24, 0.32, 0.42, 0.52, 0.66))
    low = at(build, (0.96, 0.85, 0.72, 0.58, 0.44, 0.32, 0.22), (0.76, 0.78, 0.78, 0.74, 0.70, 0.66, 0.58))
    whole = smooth([tuple(p) for p in np.concatenate((top, low))], closed=True, steps=4)
    marks = [Mark("wing", tone(c, 70), whole)]
    inner = (whole - whole.mean(0)) * np.array([0.955, 0.90]) + whole.mean(0)
    marks.append(Mark("wing", c, inner))
    for k, (a, b) in enumerate(((0.68, 0.97), (0.64, 0.92), (0.60, 0.86), (0.56, 0.80))):  # flight feathers
        f = 0.47 + 0.078 * k
        feather = at(build, (a, (a + b) / 2, b, (a + b) / 2, a), (f, f + 0.05, f + 0.115, f + 0.085, f + 0.035))
        marks.append(Mark("wing", tone(c, 62), feather))
    for row, (s, count) in enumerate(((0.30, 3), (0.40, 4))):  # coverts
        for j in range(count):
            f = 0.34 + 0.10 * j + 0.02 * row
            scale = at(build, (s, s + 0.05, s + 0.075, s + 0.05), (f, f + 0.015, f + 0.05, f + 0.085))
            marks.append(Mark("wing", tone(c, 135), scale))
    return tuple(marks)


@lru_cache(512)
def wing_bar(build: str, colour: str) -> tuple[Mark, ...]:
    if colour == "none":
        return ()
    c = COLOURS["wing bar"][colour]
    f = np.linspace(0.28, 0.70, 6)
    bow = np.array([0, 0.02, 0.03, 0.03, 0.02, 0])
    return tuple(
        Mark("wing bar", c, np.concatenate((at(build, s + bow, f), at(build, (s + w + bow)[::-1], f[::-1]))))
        for s, w in ((0.485, 0.055), (0.585, 0.028))
    )


@lru_cache(512)
def tail(build: str, shape: str, length: str) -> tuple[Mark, ...]:
    n = {"short": 10.0, "medium": 19.0, "long": 29.0}[length]
    outline = {
        "square": ((-3, -2.6), (n, -4.6), (n, 4.6), (-3, 2.6)),
        "notched": ((-3, -2.6), (n, -5.8), (n + 1, -4.2), (n * 0.72, 0), (n + 1, 4.2), (n, 5.8), (-3, 2.6)),
        "rounded": ((-3, -2.6), (n * 0.7, -5.2), (n * 0.9, -4.6), (n, -2.2), (n + 0.6, 0), (n, 2.2), (n * 0.9, 4.6), (n * 0.7, 5.2), (-3, 2.6)),
        "pointed": ((-3, -3.0), (n * 0.5, -3.4), (n + 3, -0.5), (n + 3, 0.5), (n * 0.5, 3.4), (-3, 3.0)),
    }[shape]  # fmt: skip
    base = at(build, (0.985,), 0.5)[0]
    c, s = cos(BUILDS[build].tail), sin(BUILDS[build].tail)

    def place(points: Sequence[tuple[float, float]]) -> Points:
        p = np.array(points, np.float64)
        return np.stack((base[0] - p[:, 0] * c - p[:, 1] * s, base[1] + p[:, 0] * s - p[:, 1] * c), 1)

    reach = n * (0.66 if shape == "notched" else 0.86)
    lines = [((0, y), (reach, y * 2.0 - 0.3), (reach, y * 2.0 + 0.35)) for y in (-1.3, 0, 1.3)]
    light = ((-2, 2.4), (n * 0.7, 3.9), (n * 0.7, 2.9), (-2, 1.4))
    return (
        Mark("tail", TAIL, place(outline)),
        Mark("tail", tone(TAIL, 135), place(light)),
        *(Mark("tail", tone(TAIL, 66), place(line)) for line in lines),
    )


@lru_cache(512)
def face(build: str, throat: str) -> tuple[Mark, ...]:
    x, y, r = BUILDS[build].head
    head = oval(x, y, r * 1.03, r * 0.97, n=28)
    bib = smooth(
        ((x + 0.98 * r, y + 0.22 * r), (x + 0.45 * r, y + 0.34 * r), (x + 0.06 * r, y + 0.62 * r), (x - 0.04 * r, y + 0.98 * r),
         (x + 0.42 * r, y + 1.12 * r), (x + 0.86 * r, y + 0.72 * r)), closed=True, steps=4,
    )  # fmt: skip
    marks = [
        Mark("throat", NEUTRAL, head),
        Mark("throat", tone(NEUTRAL, 90), oval(x - 0.25 * r, y + 0.30 * r, r * 0.42, r * 0.34, n=14)),
    ]
    if throat != "plain":
        marks.append(Mark("throat", COLOURS["throat"][throat], bib))
    return tuple(marks)


@lru_cache(512)
def crown(build: str, colour: str) -> tuple[Mark, ...]:
    x, y, r = BUILDS[build].head
    c = COLOURS["crown"][colour]
    arc = oval(x, y, r * 1.05, r * 1.0, start=188, end=352, n=18)
    under = np.array(
        [
            (x + 0.55 * r, y - 0.32 * r),
            (x + 0.1 * r, y - 0.38 * r),
            (x - 0.5 * r, y - 0.16 * r),
            (x - 0.95 * r, y + 0.22 * r),
        ]
    )
    sheen = oval(x, y, r * 0.86, r * 0.82, start=225, end=305, n=8)
    return (
        Mark("crown", c, np.concatenate((arc, under))),
        Mark(
            "crown",
            tone(c, 128),
            np.concatenate((sheen, oval(x, y, r * 0.78, r * 0.70, start=225, end=305, n=8)[::-1])),
        ),
    )


@lru_cache(512)
def crest(build: str, kind: str, colour: str) -> tuple[Mark, ...]:
    if kind == "none":
        return ()
    x, y, r = BUILDS[build].head
    c = tone(COLOURS["crown"][colour], 90)
    spikes = {
        "short": ((250, 1.42, 26), (228, 1.56, 26), (206, 1.52, 24)),
        "long": ((236, 2.05, 20), (216, 2.35, 20), (198, 2.2, 18)),
    }[kind]
    marks = []
    for k, (a, far, wide) in enumerate(spikes):
        bend = a - 7
        p = [
            (a - wide, 0.90),
            (bend - wide // 2, (0.9 + far) / 2),
            (bend - 6, far),
            (bend + wide // 3, (0.9 + far) / 2),
            (a + wide, 0.90),
        ]
        points = [(x + r * d * cos(int(q)), y + r * d * sin(int(q))) for q, d in p]
        marks.append(Mark("crest", tone(c, 100 - 9 * (k % 2)), smooth(points, steps=4)))
    return tuple(marks)


@lru_cache(512)
def eye(build: str, ring: str) -> tuple[Mark, ...]:
    x, y, r = BUILDS[build].head
    x, y = x + 0.40 * r, y - 0.12 * r
    k = 0.6 + 0.05 * r
    rings = {"none": [], "white": [((252, 250, 244), 3.3)], "yellow": [((246, 196, 40), 3.3)]}[ring]
    return (
        *(Mark("eye", c, oval(x, y, q * k, q * k, n=16)) for c, q in rings),
        Mark("eye", (34, 26, 24), oval(x, y, 2.1 * k, 2.1 * k, n=14)),
        Mark("eye", (255, 255, 255), oval(x + 0.65 * k, y - 0.75 * k, 0.62 * k, 0.62 * k, n=8)),
    )


@lru_cache(512)
def bill(build: str, shape: str, colour: str) -> tuple[Mark, ...]:
    x, y, r = BUILDS[build].head
    x, y = x + 0.90 * r, y + 0.10 * r
    c = COLOURS["bill colour"][colour]
    upper, lower = {
        "conical": (((0, -4.6), (4, -3.9), (8, -1.2), (10, 1.0), (0, 0.9)), ((0, 0.9), (10, 1.0), (6, 3.0), (0, 4.2))),
        "straight": (((0, -2.2), (6, -1.5), (12, 0.2), (12.4, 0.8), (0, 0.6)), ((0, 0.6), (11.6, 0.9), (6, 2.0), (0, 2.6))),
        "dagger": (((0, -3.4), (10, -1.8), (23, 1.0), (0, 0.8)), ((0, 0.8), (23, 1.0), (10, 3.0), (0, 3.8))),
        "probing": (((0, -2.0), (10, -1.0), (20, 1.6), (28, 5.4), (28, 6.2), (18, 2.8), (9, 0.7), (0, 0.4)),
                    ((0, 0.4), (9, 0.7), (18, 2.8), (27, 6.2), (17, 4.0), (8, 2.2), (0, 2.2))),
        "flat": (((0, -3.6), (5, -1.6), (11, -0.4), (15, -0.6), (17.4, 1.0), (16.8, 2.2), (0, 1.6)), ((0, 1.6), (16.0, 2.4), (11, 3.8), (0, 3.8))),
        "hooked": (((0, -4.0), (4, -4.2), (8, -2.2), (10.2, 2.0), (9.6, 6.2), (8.2, 3.2), (6, 1.6), (0, 1.0)),
                   ((0, 1.0), (6, 1.6), (7.4, 3.0), (4, 3.8), (0, 3.6))),
    }[shape]  # fmt: skip
    a, b = np.array(upper, np.float64) + (x, y), np.array(lower, np.float64) + (x, y)
    shine = np.array(
        [upper[0], upper[1], (upper[1][0], upper[1][1] + 1.0), (upper[0][0], upper[0][1] + 1.3)], np.float64
    ) + (x, y)
    return (Mark("bill", tone(c, 78), b), Mark("bill", c, a), Mark("bill", tone(c, 140), shine))


@lru_cache(512)
def legs(build: str, length: str, colour: str) -> tuple[Mark, ...]:
    """In the standing frame of the hips: both are measured from hip height."""
    c = COLOURS["leg colour"][colour]
    n = FOOT[length]
    gap = (BUILDS[build].hips[1] - BUILDS[build].hips[0]) * 50
    out = []
    for x, shade in ((-gap, 82), (0.0, 100)):
        k = tone(c, shade)
        shank = ((x - 1.3, -4), (x - 0.85, n * 0.45), (x - 0.75, n), (x + 0.75, n), (x + 0.85, n * 0.45), (x + 1.5, -4))
        out.append(Mark("legs", k, np.array(shank, np.float64), True))
        toes = ((x - 0.9, n - 1.2), (x + 4.8, n + 1.2), (x + 7.0, n + 2.5), (x + 3.8, n + 2.2), (x + 4.2, n + 3.2), (x + 0.6, n + 2.0),
                (x - 2.8, n + 2.6), (x - 3.4, n + 1.8))  # fmt: skip
        out.append(Mark("feet", k, np.array(toes, np.float64), True))
    return tuple(out)
