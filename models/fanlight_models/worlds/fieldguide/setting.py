"""Surroundings: backgrounds (soft, out of focus), perches, small objects and occluders."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from fanlight_models.worlds.fieldguide.anatomy import Colour, Points, smooth, tone
from fanlight_models.worlds.fieldguide.chance import Chance, cos, sin
from fanlight_models.worlds.fieldguide.scenes import BACKGROUNDS, EXTENT, Scene, Thing

Fill = Callable[[Colour, Points], None]
"""Fills a polygon, in units of the picture."""

# Top and bottom of the gradient behind everything.
SKY: dict[str, tuple[Colour, Colour]] = {
    "water": ((214, 228, 232), (108, 154, 168)),
    "forest": ((196, 208, 168), (84, 104, 76)),
    "reeds": ((240, 228, 196), (188, 172, 120)),
    "sky": ((150, 190, 222), (232, 238, 236)),
}


def background(scene: Scene, size: int) -> NDArray[np.uint8]:
    """(size, size, 3): what is behind perch and bird; drawn at twice the size, then softened."""
    chance = Chance(scene.seed, scene.index, 2 + BACKGROUNDS.index(scene.background))
    side = 2 * size
    top, bottom = SKY[scene.background]
    rows = _gradient(side, top, bottom)
    picture = Image.fromarray(rows[:, None, :]).resize((side, side), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(picture)

    def fill(colour: Colour, points: Points) -> None:
        draw.polygon(np.floor(points * (side / EXTENT) + 0.5).astype(np.int64).ravel().tolist(), fill=colour)

    def disc(colour: Colour, x: float, y: float, rx: float, ry: float) -> None:
        fill(colour, _disc() * np.array((rx, ry)) + np.array((x, y)))

    _PAINTERS[scene.background](chance, fill, disc)
    far = ImageFilter.BoxBlur(max(1, size // 75))
    return np.asarray(picture.reduce(2).filter(far).filter(far))


def _gradient(n: int, top: Colour, bottom: Colour) -> NDArray[np.uint8]:
    i = np.arange(n)[:, None]
    return ((np.array(top) * (n - 1 - i) + np.array(bottom) * i) // (n - 1)).astype(np.uint8)


@lru_cache(1)
def _disc() -> Points:
    return np.array([(cos(a), sin(a)) for a in range(0, 360, 18)])


Disc = Callable[[Colour, float, float, float, float], None]


def _between(a: Colour, b: Colour, t: float) -> Colour:
    return tuple(int(x + (y - x) * t) for x, y in zip(a, b, strict=True))  # type: ignore[return-value]


def _hills(chance: Chance, fill: Fill, colour: Colour, y: float, rise: float) -> None:
    xs = np.linspace(-6, 118, 8)
    crest = smooth([(float(x), y + chance.between(-rise, rise)) for x in xs], steps=4)
    fill(colour, np.concatenate((crest, [(118.0, 120.0), (-6.0, 120.0)])))


def _water(chance: Chance, fill: Fill, disc: Disc) -> None:
    shore = chance.between(24, 40)
    _hills(chance, fill, (168, 190, 188), shore - 7, 4)
    _hills(chance, fill, (128, 158, 146), shore - 2, 2)
    rows = np.linspace(0, 1, 7)
    for t in rows:
        y = shore + t * (112 - shore)
        fill(
            _between((156, 190, 198), (74, 126, 146), float(t)),
            np.array([(-2, y), (114, y), (114, 114), (-2, 114)], np.float64),
        )
    for _ in range(16):
        y = chance.between(shore + 2, 112)
        near = (y - shore) / (112 - shore)
        light = chance.happens(0.55)
        disc((206, 226, 228) if light else (60, 110, 132), chance.between(0, 112), y, 5 + 12 * near, 0.7 + 0.8 * near)


def _forest(chance: Chance, fill: Fill, disc: Disc) -> None:
    for _ in range(10):
        green = _between((150, 172, 112), (92, 124, 82), chance.unit())
        disc(green, chance.between(0, 112), chance.between(0, 60), chance.between(10, 20), chance.between(8, 16))
    for depth in range(3):
        for _ in range(3):
            x, w = chance.between(-4, 116), 1.6 + 1.7 * depth
            bark = _between((142, 146, 114), (82, 78, 60), depth / 2)
            lean = chance.between(-4, 4)
            fill(bark, np.array([(x - w, -2), (x + w * 0.8, -2), (x + w + lean, 114), (x - w + lean, 114)], np.float64))
    _hills(chance, fill, (88, 108, 70), 92, 5)
    _hills(chance, fill, (70, 90, 60), 102, 3)
    for _ in range(7):
        r = chance.between(2.5, 5.5)
        disc(
            _between((222, 228, 176), (190, 206, 148), chance.unit()),
            chance.between(0, 112),
            chance.between(0, 66),
            r,
            r,
        )


def _reeds(chance: Chance, fill: Fill, disc: Disc) -> None:
    _hills(chance, fill, (206, 194, 150), 52, 4)
    fill((150, 168, 150), np.array([(-2, 88), (114, 84), (114, 114), (-2, 114)], np.float64))
    for k in range(26):
        near = k / 25
        x, tall, lean = chance.between(-6, 118), chance.between(38, 92), chance.between(-13, 13)
        w = 0.8 + 1.2 * near
        c = _between((208, 196, 142), (136, 134, 74), near * 0.6 + 0.4 * chance.unit())
        tip = (x + lean, 112 - tall)
        fill(
            c,
            np.array(
                [
                    (x - w, 114),
                    (x + w, 114),
                    (x + lean * 0.4 + w * 0.7, 112 - tall * 0.6),
                    tip,
                    (x + lean * 0.4 - w * 0.7, 112 - tall * 0.6),
                ]
            ),
        )
        if k % 6 == 5:
            disc((126, 88, 56), tip[0], tip[1] + 1, 1.7, 5.5)


def _sky(chance: Chance, fill: Fill, disc: Disc) -> None:
    for _ in range(3):
        x, y, w = chance.between(0, 112), chance.between(10, 70), chance.between(12, 22)
        for k in range(6):
            c = _between((246, 248, 248), (226, 234, 240), chance.unit())
            disc(c, x + (k - 2.5) * w * 0.36, y + chance.between(-3, 3), w * 0.42, chance.between(3.5, 7.5))
        disc((214, 224, 232), x, y + 5, w * 1.1, 2.2)
    _hills(chance, fill, (178, 198, 204), 98, 4)
    _hills(chance, fill, (150, 176, 160), 106, 3)


_PAINTERS: dict[str, Callable[[Chance, Fill, Disc], None]] = {
    "water": _water,
    "forest": _forest,
    "reeds": _reeds,
    "sky": _sky,
}


def perch(scene: Scene, fill: Fill) -> None:
    """Under the feet, where chance first put them."""
    chance = Chance(scene.seed, scene.index, 8)
    y, x = scene.ground - 1.2, scene.place[0] + scene.hip()[0] * (-1 if scene.flip else 1)
    if scene.perch == "branch":
        bend = [chance.between(-1.5, 1.5) for _ in range(5)]
        xs = (-8.0, 22.0, x, 90.0, 122.0)
        top = smooth(
            [(a, y + b * (0.2 if k == 2 else 1.6)) for k, (a, b) in enumerate(zip(xs, bend, strict=True))], steps=5
        )
        thick = np.linspace(6.2, 3.6, len(top)) if scene.flip else np.linspace(3.6, 6.2, len(top))
        low = top + np.stack((np.zeros(len(top)), thick), 1)
        mid = top + np.stack((np.zeros(len(top)), thick * 0.36), 1)
        fill((84, 64, 48), np.concatenate((top, low[::-1])))
        fill((124, 98, 74), np.concatenate((top, mid[::-1])))
        for _ in range(3):
            leaf(fill, chance.between(2, 110), y + 4, 6.5, chance.below(140) + 20, (104, 136, 66))
    elif scene.perch == "post":
        w = 7.5
        fill((120, 104, 86), np.array([(x - w, y), (x + w, y + 0.6), (x + w + 1, 114), (x - w - 1, 114)]))
        fill((148, 132, 110), np.array([(x - w, y), (x - w * 0.3, y), (x - w * 0.4, 114), (x - w - 1, 114)]))
        fill((172, 156, 132), np.array([(x - w - 0.6, y), (x + w + 0.6, y), (x + w, y + 2.2), (x - w, y + 2.2)]))
        for _ in range(4):
            a, b = x + chance.between(-w * 0.8, w * 0.8), y + chance.between(4, 14)
            fill((96, 82, 66), np.array([(a - 0.4, b), (a + 0.4, b), (a + 0.5, b + 22), (a - 0.3, b + 22)]))
    elif scene.perch == "rock":
        shape = [
            (x - 34, 116),
            (x - 29, y + 9),
            (x - 17, y + 1.5),
            (x - 3, y - 0.2),
            (x + 13, y + 0.6),
            (x + 25, y + 7),
            (x + 33, 116),
        ]
        rock = smooth([(a + chance.between(-1.5, 1.5) * (abs(a - x) > 14), b) for a, b in shape], steps=4)
        fill((116, 116, 112), rock)
        fill(
            (150, 150, 142),
            smooth(
                [
                    (x - 27, y + 9),
                    (x - 16, y + 2),
                    (x - 2, y + 0.2),
                    (x + 12, y + 1.2),
                    (x + 6, y + 6),
                    (x - 12, y + 8),
                ],
                True,
                4,
            ),
        )
        for _ in range(7):
            a, b, r = x + chance.between(-20, 20), y + chance.between(7, 24), chance.between(0.8, 2.2)
            fill((98, 100, 96), _disc() * np.array((r * 1.6, r)) + np.array((a, b)))
    else:
        mound = smooth([(-6, y + 6), (24, y + 2.5), (x, y + 0.2), (88, y + 2.0), (118, y + 5)], steps=5)
        fill((112, 128, 66), np.concatenate((mound, [(118.0, 116.0), (-6.0, 116.0)])))
        for k in range(34):
            a, h, lean = chance.between(-2, 114), chance.between(4, 10), chance.between(-4, 4)
            c = _between((132, 150, 78), (84, 102, 50), chance.unit())
            b = y + 4 + 0.5 * k
            fill(c, np.array([(a - 0.9, b), (a + 0.9, b), (a + lean, b - h)]))


def leaf(fill: Fill, x: float, y: float, extent: float, angle: int, colour: Colour) -> None:
    """A leaf with its midrib, from its stalk at (x, y)."""
    c, s = cos(angle) * extent, sin(angle) * extent
    turned = np.empty_like(_LEAF)
    turned[:, 0] = _LEAF[:, 0] * c - _LEAF[:, 1] * s + x
    turned[:, 1] = _LEAF[:, 0] * s + _LEAF[:, 1] * c + y
    fill(colour, turned[:8])
    fill(tone(colour, 116), turned[:5])
    fill(tone(colour, 72), turned[8:])


_LEAF = np.array((
    (0, 0), (0.25, -0.26), (0.55, -0.30), (0.82, -0.16), (1, 0), (0.82, 0.16), (0.55, 0.30), (0.25, 0.26), (0, -0.03), (0.9, 0), (0, 0.03),
))  # fmt: skip


def thing(item: Thing, fill: Fill) -> None:
    """A small object beside the bird."""
    x, y, r, a = item.x, item.y, item.extent, item.detail
    if item.kind == "leaf":
        leaf(fill, x, y, r * 1.8, a, ((116, 142, 70), (186, 126, 56), (146, 156, 84))[a % 3])
    elif item.kind == "berries":
        for k in range(3):
            px, py = x + r * 0.5 * cos(a + 120 * k), y + r * 0.5 * sin(a + 120 * k)
            fill((172, 52, 56), _disc() * (r * 0.42) + np.array((px, py)))
            fill((226, 140, 132), _disc() * (r * 0.12) + np.array((px - r * 0.12, py - r * 0.14)))
    elif item.kind == "butterfly":
        c = ((222, 150, 60), (232, 226, 206), (112, 148, 196))[a % 3]
        for side in (-1, 1):
            fill(c, _disc() * np.array((r * 0.52, r * 0.62)) + np.array((x + side * r * 0.5, y - r * 0.3)))
            fill(tone(c, 82), _disc() * np.array((r * 0.36, r * 0.40)) + np.array((x + side * r * 0.38, y + r * 0.45)))
        fill((60, 50, 46), _disc() * np.array((r * 0.12, r * 0.75)) + np.array((x, y)))
    else:
        c = ((236, 224, 236), (226, 168, 176), (240, 210, 110))[a % 3]
        for k in range(5):
            fill(c, _disc() * (r * 0.36) + np.array((x + r * 0.55 * cos(a + 72 * k), y + r * 0.55 * sin(a + 72 * k))))
        fill((206, 152, 52), _disc() * (r * 0.30) + np.array((x, y)))


def occluder(item: Thing, fill: Fill) -> None:
    """Leaves so close together that what is behind them cannot be seen: an opaque heart, and leaves around it."""
    chance = Chance(item.detail)
    x, y, r = item.x, item.y, item.extent
    greens: tuple[Colour, ...] = ((92, 124, 58), (112, 142, 70), (78, 108, 54), (128, 152, 82))
    edge = (-4.0 if y < 52 else 116.0, x + chance.between(-16, 16))
    fill((92, 72, 54), np.array([(x - 1.0, y), (x + 1.0, y), (edge[1] + 1.7, edge[0]), (edge[1] - 1.7, edge[0])]))
    fill((70, 96, 48), _disc() * (r * 0.80) + np.array((x, y)))
    around = 11 if item.kind == "foliage" else 15
    for k in range(around):
        a = 360 * k // around + chance.below(24)
        leaf(
            fill,
            x + 0.45 * r * cos(a),
            y + 0.45 * r * sin(a),
            r * chance.between(0.62, 0.85),
            a + chance.below(40) - 20,
            greens[chance.below(4)],
        )
    for _ in range(8 if item.kind == "foliage" else 12):
        a, d = chance.below(360), chance.between(0.0, 0.45)
        size = r * (chance.between(0.5, 0.75) if item.kind == "foliage" else chance.between(0.35, 0.5))
        leaf(fill, x + d * r * cos(a), y + d * r * sin(a), size, chance.below(360), greens[chance.below(4)])
