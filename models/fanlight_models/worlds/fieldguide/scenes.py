"""A scene: one bird in its surroundings, determined by (seed, index) and by what was changed on purpose since.

Counterfactuals return a new scene that draws exactly the same picture but for what they name: everything that chance decided when the scene was
made (place, pose, light, surroundings) is kept as it was, even where another bird would have been placed differently.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fanlight_models.worlds.fieldguide import anatomy, table
from fanlight_models.worlds.fieldguide.anatomy import Mark, Points
from fanlight_models.worlds.fieldguide.chance import Chance, cos, sin
from fanlight_models.worlds.fieldguide.table import (
    AGES,
    FAMILIES,
    FAMILY_OF,
    GROUP,
    GROUPS,
    PARTS,
    SEASONS,
    SEXES,
    SPECIES,
)

BACKGROUNDS = ("water", "forest", "reeds", "sky")
PERCHES = ("branch", "post", "rock", "grass")
LIGHTS = ("noon", "evening", "overcast")
HOME = {"finch": "sky", "thrush": "forest", "kingfisher": "reeds", "wader": "reeds", "duck": "water", "hawk": "sky"}
"""The background of a family in the biased splits; with six families on four backgrounds some share one."""
BIAS = 0.95
EXTENT = 112  # units across a picture; all places and lengths of a scene are in them
SIZES = {"small": 0.82, "medium": 0.98, "large": 1.14}
HIDING = (("head", 0.30), ("underside", 0.28), ("rear", 0.14), ("legs", 0.12))
"""Where occluders may lie, and how often; independent of each other."""


@dataclass(frozen=True)
class Thing:
    """A small object, or an occluder: kind, place and extent in units, a number that decides its details."""

    kind: str
    x: float
    y: float
    extent: float
    detail: int


@dataclass(frozen=True)
class Scene:
    """Everything that decides a picture. `values`: the number of the value shown, per group of the table."""

    seed: int
    index: int
    species: int
    state: int
    values: tuple[int, ...]
    scale: float
    turn: int
    flip: bool
    place: tuple[float, float]
    ground: float
    light: str
    background: str
    perch: str
    distractors: tuple[Thing, ...] = ()
    occluders: tuple[Thing, ...] = ()
    removed: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Species in words."""
        return SPECIES[self.species]

    @property
    def family(self) -> str:
        return FAMILIES[FAMILY_OF[self.species]]

    @property
    def sex(self) -> str:
        return SEXES[table.STATES[self.state][0]]

    @property
    def age(self) -> str:
        return AGES[table.STATES[self.state][1]]

    @property
    def season(self) -> str:
        return SEASONS[table.STATES[self.state][2]]

    def value(self, group: str) -> str:
        return GROUPS[_group(group)].values[self.values[_group(group)]]

    def concepts(self) -> NDArray[np.bool_]:
        """(concepts,): what is drawn in this picture, in the order of `table.CONCEPTS`, whether it can be seen or not."""
        return table.vector(self.values)

    def without(self, *parts: str) -> Scene:
        """The same picture without some parts. Errors: ValueError names the parts there are."""
        unknown = [p for p in parts if p not in PARTS]
        if unknown:
            raise ValueError(f"No part is called “{unknown[0]}”. Parts: {', '.join(PARTS)}.")
        return replace(self, removed=self.removed | frozenset(parts))

    def only(self, parts: Iterable[str]) -> Scene:
        """The same picture with these parts of the bird and no others."""
        return replace(self, removed=frozenset()).without(*(set(PARTS) - set(parts)))

    def blank(self) -> Scene:
        """The same picture without the bird: surroundings, perch, small objects and occluders stay."""
        return self.without(*PARTS)

    def with_(self, **groups: str) -> Scene:
        """The same picture with other values, `with_(bill_shape="hooked")`; underscores stand for blanks. Errors: ValueError."""
        values = list(self.values)
        for key, value in groups.items():
            i = _group(key)
            if value not in GROUPS[i].values:
                raise ValueError(f"“{value}” is no value of {GROUPS[i].name}. Values: {', '.join(GROUPS[i].values)}.")
            values[i] = GROUPS[i].values.index(value)
        return replace(self, values=tuple(values))

    def on(self, background: str) -> Scene:
        """The same picture before another background. Errors: ValueError."""
        if background not in BACKGROUNDS:
            raise ValueError(f"No background is called “{background}”. Backgrounds: {', '.join(BACKGROUNDS)}.")
        return replace(self, background=background)

    def clear(self) -> Scene:
        """The same picture with no occluder."""
        return replace(self, occluders=())

    def parts(self) -> tuple[str, ...]:
        """The parts that this bird has, drawn or not: a crest and a wing bar only if its values say so."""
        absent = {p for p in ("crest", "wing bar") if self.value(p) == "none"}
        return tuple(p for p in PARTS if p not in absent and p not in self.removed)

    def marks(self, every: bool = False) -> tuple[Mark, ...]:
        """What is drawn of the bird, back to front, in its own frame; `every`: also of the parts that were removed."""
        return tuple(m for m in _bird(self.values) if every or m.part not in self.removed)

    def to_picture(self, points: Points, standing: NDArray[np.bool_] | bool = False) -> Points:
        """Points of the bird's frame -> units of the picture. Products and sums only, so that all platforms agree."""
        hip, size = self.hip(), self._size
        c, s = cos(self.turn), sin(self.turn)
        x, y = points[:, 0] * size, points[:, 1] * size
        out = np.empty_like(points)
        out[:, 0] = np.where(standing, x + hip[0], x * c - y * s)
        out[:, 1] = np.where(standing, y + hip[1], x * s + y * c)
        if self.flip:
            out[:, 0] = -out[:, 0]
        return np.asarray(out + np.array(self.place), np.float64)

    def hip(self) -> tuple[float, float]:
        """Where the legs begin, relative to the body's centre, before flipping."""
        x, y = (v * self._size for v in anatomy.hips(self.value("build")))
        c, s = cos(self.turn), sin(self.turn)
        return x * c - y * s, x * s + y * c

    @property
    def _size(self) -> float:
        return self.scale * SIZES[self.value("size")]


def scene(seed: int, index: int, *, biased: bool = False, **overrides: object) -> Scene:
    """The scene number `index` of `seed`. Biased: the background tells the family 19 times in 20; all else stays the same.
    Overrides: fields of `Scene`, set after chance has decided."""
    chance = Chance(seed, index)
    species = chance.below(len(SPECIES))
    state = chance.pick(table.P_STATE)
    values = tuple(chance.pick(p[species, state].tolist()) for p in table.probabilities())
    made = Scene(
        seed=seed,
        index=index,
        species=species,
        state=state,
        values=values,
        scale=chance.between(0.95, 1.05),
        turn=_lean(chance),
        flip=chance.happens(0.5),
        place=(0.0, 0.0),
        ground=0.0,
        light=LIGHTS[chance.below(3)],
        background=BACKGROUNDS[chance.below(4)],
        perch=PERCHES[chance.below(4)],
    )
    made = _placed(made, chance)
    made = replace(made, distractors=_distractors(chance), occluders=_occluders(made, chance))
    if biased:
        other, home = Chance(seed, index, 1), HOME[made.family]
        elsewhere = [b for b in BACKGROUNDS if b != home]
        made = made.on(home if other.happens(BIAS) else elsewhere[other.below(3)])
    return replace(made, **overrides)  # type: ignore[arg-type]


def _lean(chance: Chance) -> int:
    """Degrees, at most 25 either way and mostly few: the mean of three."""
    return sum(chance.below(51) for _ in range(3)) // 3 - 25


def _placed(made: Scene, chance: Chance) -> Scene:
    """The bird in the middle of the picture, give or take five units, and the ground under its feet."""
    marks = made.marks()
    lengths = [len(m.points) for m in marks]
    every = made.to_picture(np.concatenate([m.points for m in marks]), np.repeat([m.standing for m in marks], lengths))
    low, high = every.min(0), every.max(0)
    middle = EXTENT / 2 + 1
    dx, dy = (chance.between(-5, 5) for _ in range(2))
    x, y = middle - (low[0] + high[0]) / 2 + dx, middle - (low[1] + high[1]) / 2 + dy
    feet = every[np.repeat([m.part == "feet" for m in marks], lengths)]
    return replace(made, place=(float(x), float(y)), ground=float(y + feet[:, 1].max()))


def _distractors(chance: Chance) -> tuple[Thing, ...]:
    kinds = ("leaf", "berries", "butterfly", "flower")
    return tuple(
        Thing(
            kinds[chance.below(4)],
            chance.between(4, 108),
            chance.between(4, 108),
            chance.between(3.5, 6.5),
            chance.below(360),
        )
        for _ in range(chance.below(5))
    )


def _occluders(made: Scene, chance: Chance) -> tuple[Thing, ...]:
    """Each region of the bird is hidden, or not, on its own; where, how far and by what differs."""
    build = anatomy.BUILDS[made.value("build")]
    head = (build.head[0] + 2, build.head[1])
    spots = {
        "head": (head, build.head[2] * 2.0),
        "underside": (tuple(anatomy.at(made.value("build"), (0.34,), 0.80)[0].tolist()), 17.5),
        "rear": (tuple(anatomy.at(made.value("build"), (1.05,), 0.40)[0].tolist()), 14.0),
        "legs": ((0.0, 0.0), 12.0),
    }
    out = []
    for region, p in HIDING:
        hidden, kind, jitter = (
            chance.happens(p),
            ("foliage", "fern")[chance.below(2)],
            (chance.between(-2, 2), chance.between(-2, 2)),
        )
        wide, detail = chance.between(0.90, 1.12), chance.below(1 << 20)
        if not hidden:
            continue
        spot, extent = spots[region]
        x, y = made.to_picture(np.array([spot]))[0].tolist()
        if region == "legs":
            x, y = made.to_picture(np.array([(0.0, 0.0)]), True)[0].tolist()[0], made.ground - 4
        out.append(Thing(kind, x + jitter[0], y + jitter[1], extent * wide * made._size, detail))
    return tuple(out)


def _bird(values: tuple[int, ...]) -> tuple[Mark, ...]:
    v = {g.name: g.values[i] for g, i in zip(GROUPS, values, strict=True)}
    b = v["build"]
    return (
        *anatomy.tail(b, v["tail shape"], v["tail length"]),
        *anatomy.legs(b, v["leg length"], v["leg colour"]),
        *anatomy.trunk(b, v["back"], v["breast"], v["breast pattern"], v["belly"], v["rump"]),
        *anatomy.bill(b, v["bill shape"], v["bill colour"]),
        *anatomy.face(b, v["throat"]),
        *anatomy.crest(b, v["crest"], v["crown"]),
        *anatomy.crown(b, v["crown"]),
        *anatomy.eye(b, v["eye ring"]),
        *anatomy.wing(b, v["wing"]),
        *anatomy.wing_bar(b, v["wing bar"]),
    )


def _group(name: str) -> int:
    key = name.replace("_", " ")
    if key not in GROUP:
        raise ValueError(f"No group is called “{name}”. Groups: {', '.join(GROUP)}.")
    return GROUP[key]
