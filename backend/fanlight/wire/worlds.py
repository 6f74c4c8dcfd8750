"""Worlds on the wire: what is known of a data set because Fanlight made it itself."""

from __future__ import annotations

from fanlight.wire.base import Wire


class WorldGroup(Wire):
    """Concepts that exclude each other: values of one property. `parts`: where it is seen; none: on the whole."""

    name: str
    values: list[str]
    parts: list[str]
    variation: float
    """Probability of a value that is not the typical one."""


class WorldKind(Wire):
    """A label of the world: `typical` has a value for each group, of a male adult in breeding season."""

    name: str
    family: str
    typical: dict[str, str]


class WorldPair(Wire):
    """Two groups that hang together: the largest size of a correlation between concepts of one and of the other, over all pictures, and
    given the picture, where it remains because part of it is hidden."""

    first: str
    second: str
    overall: float
    remains: float


class World(Wire):
    """`correlation`: for each pair of groups, in their order, the largest size of a correlation between their concepts; 1 with themselves."""

    dataset: str
    name: str
    description: str
    docs: str
    parts: list[str]
    families: list[str]
    kinds: list[WorldKind]
    groups: list[WorldGroup]
    correlation: list[list[float]]
    pairs: list[WorldPair]
    measured_on: int
    """Pictures behind what remains given the picture."""
