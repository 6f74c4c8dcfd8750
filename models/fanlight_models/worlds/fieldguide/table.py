"""The table of the field guide: 24 invented species in 6 families, what each looks like, and every probability.

A bird is drawn from the table in three steps: species, then sex, age and season, then each group of concepts on its own. Sex, age and season
each switch several groups together; given species and state the groups are independent, and show the typical value except in one of ten birds
(one of twenty-five where the group is about shape). So P(concepts) is a finite mixture of 24 x 8 products, and every posterior can be computed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

PARTS = (
    "bill", "eye", "crown", "crest", "throat", "breast", "belly", "back", "wing", "wing bar", "rump", "tail", "legs", "feet",
)  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Exclusive values of one property. `parts`: where it is seen; none: on the whole bird. `bearer`: the part that shows that it is absent."""

    name: str
    values: tuple[str, ...]
    parts: tuple[str, ...]
    variation: float = 0.10
    bearer: str | None = None


SHAPE = 0.04  # individual variation of shapes; plumage varies more
GROUPS = (
    Group("build", ("round", "slim", "stocky", "tall", "boat", "upright"), (), SHAPE),
    Group("size", ("small", "medium", "large"), (), SHAPE),
    Group("bill shape", ("conical", "straight", "dagger", "probing", "flat", "hooked"), ("bill",), SHAPE),
    Group("bill colour", ("black", "grey", "yellow", "red", "pale"), ("bill",)),
    Group("crown", ("plain", "black", "rufous", "blue", "yellow", "white"), ("crown", "crest")),
    Group("crest", ("none", "short", "long"), ("crest",), SHAPE, "crown"),
    Group("eye ring", ("none", "white", "yellow"), ("eye",)),
    Group("throat", ("plain", "white", "black", "red"), ("throat",)),
    Group("breast", ("white", "buff", "grey", "rufous", "yellow"), ("breast",)),
    Group("breast pattern", ("plain", "streaked", "spotted", "barred"), ("breast",)),
    Group("belly", ("white", "buff", "grey", "rufous"), ("belly",)),
    Group("back", ("brown", "grey", "olive", "black", "blue"), ("back",)),
    Group("wing", ("brown", "grey", "olive", "black", "blue"), ("wing",)),
    Group("wing bar", ("none", "white", "yellow"), ("wing bar",), 0.10, "wing"),
    Group("rump", ("plain", "white", "yellow"), ("rump",)),
    Group("tail shape", ("notched", "square", "rounded", "pointed"), ("tail",), SHAPE),
    Group("tail length", ("short", "medium", "long"), ("tail",), SHAPE),
    Group("leg colour", ("black", "grey", "yellow", "red"), ("legs", "feet")),
    Group("leg length", ("short", "medium", "long"), ("legs",), SHAPE),
)
GROUP = {g.name: i for i, g in enumerate(GROUPS)}
CONCEPTS = tuple((g.name, v) for g in GROUPS for v in g.values)
"""All binary concepts (group, value), in the order of every concept vector."""
STARTS = tuple(itertools.accumulate((len(g.values) for g in GROUPS), initial=0))
"""Group i owns concepts STARTS[i] .. STARTS[i + 1] - 1."""

SEXES, AGES, SEASONS = ("male", "female"), ("adult", "juvenile"), ("breeding", "winter")
STATES = tuple(itertools.product(range(2), range(2), range(2)))
"""(sex, age, season), eight of them."""
P_STATE = tuple(0.5 * (0.75, 0.25)[age] * (0.55, 0.45)[season] for _, age, season in STATES)

# What a state changes, in this order; the later wins. Season is seen on the head, sex on the breast, age on both: what hides the head
# hides most of what tells the season.
WINTER = {"bill colour": "grey", "crown": "plain", "throat": "plain"}
FEMALE = {"breast": "buff", "breast pattern": "streaked"}
JUVENILE = {"bill colour": "pale", "crown": "plain", "breast pattern": "plain", "eye ring": "none", "wing bar": "none"}
COUPLED = (("bill colour", "crown"), ("bill colour", "throat"), ("crown", "throat"), ("breast", "breast pattern"))
"""The pairs of groups in which this world promises that correlation remains when the picture is known."""

_FAMILIES: dict[str, tuple[str, dict[str, str]]] = {
    "finch": (
        "build=round size=small bill-shape=conical bill-colour=yellow crown=rufous crest=none eye-ring=none throat=black breast=rufous "
        "breast-pattern=plain belly=grey back=brown wing=brown wing-bar=white rump=yellow tail-shape=notched tail-length=medium "
        "leg-colour=grey leg-length=short",
        {
            "Ember finch": "",
            "Coal-capped finch": "crown=black breast=grey rump=white",
            "Barley finch": "crown=yellow throat=white breast=yellow back=olive wing=olive",
            "Hooked finch": "bill-shape=hooked throat=red wing=black",
        },
    ),
    "thrush": (
        "build=slim size=medium bill-shape=straight bill-colour=yellow crown=black crest=none eye-ring=white throat=white breast=rufous "
        "breast-pattern=spotted belly=buff back=brown wing=brown wing-bar=none rump=white tail-shape=square tail-length=medium "
        "leg-colour=yellow leg-length=medium",
        {
            "Dapple thrush": "",
            "Slate thrush": "crown=blue breast=grey back=grey wing=grey",
            "Garnet thrush": "crown=rufous throat=red breast=white belly=rufous",
            "Moss thrush": "crown=yellow breast=yellow breast-pattern=barred wing=olive",
        },
    ),
    "kingfisher": (
        "build=stocky size=small bill-shape=dagger bill-colour=red crown=blue crest=short eye-ring=none throat=white breast=rufous "
        "breast-pattern=plain belly=rufous back=blue wing=blue wing-bar=none rump=white tail-shape=rounded tail-length=short "
        "leg-colour=red leg-length=short",
        {
            "Brook kingfisher": "",
            "Mangrove kingfisher": "crown=white crest=long breast=grey breast-pattern=spotted",
            "Saffron kingfisher": "crown=yellow crest=none breast=yellow wing=olive",
            "Banded kingfisher": "size=medium bill-shape=straight crest=long breast=white breast-pattern=barred belly=grey "
            "back=grey wing=grey",
        },
    ),
    "wader": (
        "build=tall size=medium bill-shape=probing bill-colour=red crown=rufous crest=none eye-ring=white throat=red breast=rufous "
        "breast-pattern=barred belly=grey back=brown wing=brown wing-bar=white rump=white tail-shape=square tail-length=short "
        "leg-colour=red leg-length=long",
        {
            "Rust godwit": "",
            "Ash plover": "build=round bill-shape=straight crown=white throat=black breast=grey back=grey wing=grey",
            "Reed snipe": "crown=black throat=white breast=yellow leg-colour=yellow",
            "Crested stilt": "crest=long crown=black throat=black breast=white breast-pattern=plain back=black wing=black",
        },
    ),
    "duck": (
        "build=boat size=large bill-shape=flat bill-colour=yellow crown=black crest=none eye-ring=none throat=black breast=rufous "
        "breast-pattern=plain belly=grey back=grey wing=grey wing-bar=white rump=white tail-shape=pointed tail-length=short "
        "leg-colour=red leg-length=short",
        {
            "Harbour duck": "",
            "Copper teal": "crown=rufous throat=red breast=grey breast-pattern=spotted",
            "Tufted pochard": "crest=short crown=blue throat=white breast=white eye-ring=yellow",
            "Fen merganser": "bill-shape=straight bill-colour=red crest=long crown=blue throat=white breast=yellow breast-pattern=barred back=black",
        },
    ),
    "hawk": (
        "build=upright size=large bill-shape=hooked bill-colour=black crown=black crest=none eye-ring=yellow throat=white breast=white "
        "breast-pattern=barred belly=rufous back=brown wing=brown wing-bar=none rump=white tail-shape=square tail-length=long "
        "leg-colour=yellow leg-length=medium",
        {
            "Copse hawk": "",
            "Slate harrier": "crown=white throat=black breast=grey back=grey",
            "Rufous kestrel": "size=medium crown=blue breast=rufous breast-pattern=spotted wing=blue",
            "Plumed hawk": "crest=long crown=rufous throat=red breast=yellow",
        },
    ),
}  # fmt: skip
SEASONAL = ("finch", "thrush", "wader", "duck", "kingfisher")
DIMORPHIC = ("finch", "thrush", "kingfisher", "duck", "hawk")

FAMILIES = tuple(_FAMILIES)
SPECIES = tuple(name for _, members in _FAMILIES.values() for name in members)
FAMILY_OF = tuple(i for i, (_, members) in enumerate(_FAMILIES.values()) for _ in members)
"""The family of each species, by number."""


def _read(text: str) -> dict[str, str]:
    return {k.replace("-", " "): v for k, v in (pair.split("=") for pair in text.split())}


@lru_cache(1)
def typical() -> NDArray[np.int64]:
    """(24, 8, groups): the number of the value that a bird of a species in a state typically shows."""
    out = np.zeros((len(SPECIES), len(STATES), len(GROUPS)), np.int64)
    for species, name in enumerate(SPECIES):
        family = FAMILIES[FAMILY_OF[species]]
        common, members = _FAMILIES[family]
        base = _read(common) | _read(members[name])
        for state, (sex, age, season) in enumerate(STATES):
            shown = dict(base)
            if season and family in SEASONAL:
                shown |= WINTER
            if sex and family in DIMORPHIC:
                shown |= FEMALE
            if age:
                shown |= JUVENILE
            out[species, state] = [g.values.index(shown[g.name]) for g in GROUPS]
    return out


@lru_cache(1)
def probabilities() -> tuple[NDArray[np.float64], ...]:
    """Per group (24, 8, values): P(value | species, state)."""
    shown, out = typical(), []
    for i, g in enumerate(GROUPS):
        n = len(g.values)
        p = np.full((*shown.shape[:2], n), g.variation / (n - 1))
        np.put_along_axis(p, shown[..., i, None], 1 - g.variation, axis=2)
        out.append(p)
    return tuple(out)


def prior() -> NDArray[np.float64]:
    """(24, 8): P(species, state); species are equally frequent."""
    return np.tile(np.array(P_STATE) / len(SPECIES), (len(SPECIES), 1))


def marginals() -> NDArray[np.float64]:
    """(concepts,): how frequent each concept is."""
    return np.concatenate([np.einsum("sz,szv->v", prior(), p) for p in probabilities()])


def vector(values: NDArray[np.int64] | tuple[int, ...]) -> NDArray[np.bool_]:
    """Value numbers (..., groups) -> concepts (..., concepts)."""
    given = np.asarray(values)
    return np.concatenate([given[..., i, None] == np.arange(len(g.values)) for i, g in enumerate(GROUPS)], axis=-1)


def sample(n: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Birds of the table without pictures, for large counts: species (n,), state (n,), values (n, groups)."""
    chance = np.random.default_rng(seed)
    species, state = chance.integers(0, len(SPECIES), n), chance.choice(len(STATES), n, p=P_STATE)
    values = np.empty((n, len(GROUPS)), np.int64)
    for i, p in enumerate(probabilities()):
        values[:, i] = (chance.random((n, 1)) > p[species, state].cumsum(1)[:, :-1]).sum(1)
    return species, state, values
