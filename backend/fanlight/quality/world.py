"""What each method scores on the field guide, where the truth is known. `fanlight bench world` measures it beforehand and writes the file
beside this module; nothing is computed here. A score holds for one version of a method: of another it says nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from fanlight import wire
from fanlight.drawing.world import number

FILE = Path(__file__).with_name("field_guide.json")
HEADLINE = "part ranking"
"""The measure that is put in words and in the bar: rank correlation of what a map puts on the parts with the truth."""


class Entry(BaseModel):
    """What one version of a method scored at its default parameters, by measure."""

    model_config = ConfigDict(frozen=True)

    version: str
    measures: dict[str, wire.Measurement]


class Record(BaseModel):
    """What was measured, on what. Args: scenes: how many of the test split; unavailable: method -> why it was not measured, a sentence."""

    model_config = ConfigDict(frozen=True)

    world: str
    world_version: int
    model: str
    model_digest: str
    scenes: int
    date: str
    versions: dict[str, str]
    explainers: dict[str, Entry]
    unavailable: dict[str, str]


def read(path: Path = FILE) -> Record | None:
    """What was measured; None where nothing was yet."""
    return Record.model_validate_json(path.read_bytes()) if path.exists() else None


@cache
def shipped() -> Record | None:
    """The record that this version of Fanlight was released with."""
    return read()


def score(name: str, version: str, record: Record | None) -> wire.WorldScore | None:
    """What is known of this version of a method; None for one that was never measured, as those of third parties."""
    if record is None:
        return None
    about = {"world": record.world, "model": record.model, "model_digest": record.model_digest}
    if name in record.unavailable:
        said = f"Not measured on the field guide, whose own network it does not fit. {record.unavailable[name]}"
        return wire.WorldScore(state="unavailable", sentence=said, **about)
    entry = record.explainers.get(name)
    if entry is None:
        return None
    if entry.version != version:
        said = "Not measured on the field guide for this version of the method."
        return wire.WorldScore(state="outdated", sentence=said, **about)
    return wire.WorldScore(
        state="measured",
        sentence=sentence(entry.measures.get(HEADLINE)),
        detail=f"Mean of {record.scenes} scenes with its 95 % interval, at the method's default parameters. It judges the method, not one map.",
        headline=entry.measures.get(HEADLINE),
        measures=entry.measures,
        scenes=record.scenes,
        date=record.date,
        **about,
    )


def sentence(found: wire.Measurement | None) -> str:
    """The headline in words."""
    if found is None:
        return "On the field guide, where the truth is known, this method's maps put the bird's parts in no order."
    said = (
        f"On the field guide, where the truth is known, this method ranks the bird's parts with correlation {number(found.value)} to the truth "
        f"({number(found.lo)} to {number(found.hi)}); random {number(found.floor)}, best possible {number(found.ceiling)}."
    )
    return said if found.lo > found.floor else f"{said} That is not above random."
