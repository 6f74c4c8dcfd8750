"""How far to trust a map: in a badge, in rows of numbers beside their floors, and in plain words. docs/trust.md has the
definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from fanlight import wire
from fanlight.drawing import checks
from fanlight.drawing.number import MINUS, percent
from fanlight.drawing.world import number

Tone = Literal["good", "warn", "quiet"]
TONES: dict[str, Tone] = {"good": "good", "plain": "quiet", "warn": "warn"}
GRID = 0.25  # what the ends of a scale are rounded to
NEAR = 0.02  # how far a number may lie outside of a scale before that is made longer
FLOORS = {"random": "random", "edges": "edges"}
FAITHFUL = (
    ("faithfulness", "Faithfulness", "insertion and deletion together"),
    ("insertion", "Insertion", "what the map marks is put in first"),
    ("deletion", "Deletion", "what the map marks is taken out first"),
)


@dataclass(frozen=True)
class Badge:
    """A few words and what they mean; the tone is shown by colour and by shape."""

    tone: Tone
    text: str
    meaning: str


@dataclass(frozen=True)
class Mark:
    """A floor on a scale: its name, its place in percent, and both name and number in words."""

    name: str
    at: float
    text: str


@dataclass(frozen=True)
class Gauge:
    """A number on its scale, all places in percent of it; `text` says it to those who do not see it, `lo` and `hi` stand at its ends."""

    at: float
    start: float
    width: float
    marks: tuple[Mark, ...]
    lo: str
    hi: str
    text: str


@dataclass(frozen=True)
class Row:
    """One measure.

    Args:
        name: of the measure; title, about: for people.
        tone: of what was found.
        value: the number with its interval; "" where there is none.
        floors: what random maps and edges get, in words.
        sentence: what it means; "" where the number says it.
        detail: the numbers behind it.
        gauge: None without a number.
        curves: behind it.
    """

    name: str
    title: str
    about: str
    tone: Tone
    value: str = ""
    floors: str = ""
    sentence: str = ""
    detail: str = ""
    gauge: Gauge | None = None
    curves: wire.ArtifactRef | None = None

    @property
    def line(self) -> str:
        """The row in one line of text."""
        numbers = ", ".join(filter(None, (self.value, self.floors)))
        return " ".join(filter(None, (f"{self.title} {numbers}." if numbers else f"{self.title}.", self.sentence)))


def score(value: float) -> str:
    """A faithfulness: two decimals and a sign, "0.00" without one."""
    text = f"{value:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", MINUS)


def badge(trust: wire.Trust) -> Badge:
    """The badge of a trust record."""
    if trust.state != "succeeded" or trust.faithfulness is None:
        return _without(trust)
    interval = trust.interval.get("faithfulness")
    between = f" ({score(interval.lo)} to {score(interval.hi)})" if interval else ""
    beside = f"; {edges_alone(trust)}" if trust.edges else ""
    if trust.above_floor:
        return Badge(
            "good",
            f"faithfulness {score(trust.faithfulness)} above random{between}{beside}",
            "Hiding what the map ranks highest changes the answer sooner than hiding parts in random order, and putting it "
            "back restores the answer sooner. A random order gets 0; more is better."
            + (" In brackets: the 95 % interval." if interval else "")
            + no_better(trust),
        )
    return Badge(
        "warn",
        f"faithfulness {score(trust.faithfulness)}{between}: not above the random floor, do not read it",
        "Hiding what the map ranks highest changes the answer no sooner than hiding random parts. Whatever the map seems "
        "to show, nothing measured here supports it.",
    )


def edges_alone(trust: wire.Trust) -> str:
    """What the edge detector gets on the same picture; "" where that is not known."""
    return f"edges alone get {score(trust.edges['faithfulness'])}" if trust.edges else ""


def no_better(trust: wire.Trust) -> str:
    """A sentence, with a space before it, where an edge detector does as well; else ""."""
    interval = trust.interval.get("faithfulness")
    if not trust.edges or interval is None or interval.lo > trust.edges["faithfulness"]:
        return ""
    return " An edge detector, which has not seen the model, does about as well on this picture."


def rows(trust: wire.Trust) -> list[Row]:
    """Everything that was measured, with what random maps and edges get. Further checks come in the order of `checks.WORDS`."""
    found: list[Row] = []
    if trust.state == "succeeded":
        found += [_faithful(trust, *about) for about in FAITHFUL if getattr(trust, about[0]) is not None]
        if trust.completeness_error is not None:
            error = percent(trust.completeness_error, 1)
            found.append(
                Row("completeness", "Completeness error", "what the map leaves unaccounted for", "quiet", error)
            )
    found += [_checked(name, trust.checks[name]) for name in checks.WORDS if name in trust.checks]
    return found


def _faithful(trust: wire.Trust, name: str, title: str, about: str) -> Row:
    value, interval = getattr(trust, name), trust.interval.get(name)
    edges = trust.edges.get(name)
    floors = {"random": 0.0, **({} if edges is None else {"edges": edges})}
    lo, hi = (interval.lo, interval.hi) if interval else (value, value)
    known = [*floors.values(), value, lo, hi]
    ends = (math.floor(min(known) / GRID) * GRID, max(2 * GRID, math.ceil(max(known) / GRID) * GRID))
    shown = f"{score(value)} ({score(lo)} to {score(hi)})" if interval else score(value)
    words = ", ".join(f"{FLOORS[k]} {score(v)}" for k, v in floors.items())
    tone: Tone = "quiet" if name != "faithfulness" else "good" if trust.above_floor else "warn"
    gauge = _gauge(value, lo, hi, floors, ends, f"{title} {shown}; {words}.", score)
    return Row(name, title, about, tone, shown, words, gauge=gauge)


def _checked(name: str, check: wire.Check) -> Row:
    words, found = checks.WORDS[name], check.found
    sentence = checks.sentence(name, check)
    if found is None or check.state != "succeeded":
        return Row(name, words.title, words.about, "quiet", sentence=sentence)
    floors = {k: check.floors[k].value for k in FLOORS if k in check.floors}
    low = min([found.lo, *floors.values()])
    ends = (words.ends[0] if low > words.ends[0] - NEAR else math.floor(low / GRID) * GRID, words.ends[1])
    shown = f"{number(found.value)} ({number(found.lo)} to {number(found.hi)})"
    beside = ", ".join(f"{FLOORS[k]} {number(v)}" for k, v in floors.items())
    text = f"{words.title}: {words.unit} {shown}; {beside}."
    gauge = _gauge(found.value, found.lo, found.hi, floors, ends, text, number)
    tone = TONES[check.verdict or "plain"] if words.alarms else "quiet"
    return Row(
        name, words.title, words.about, tone, shown, beside, sentence,
        checks.beside(check), gauge, check.curves,
    )  # fmt: skip


def _gauge(
    value: float,
    lo: float,
    hi: float,
    floors: Mapping[str, float],
    ends: tuple[float, float],
    text: str,
    spell: Callable[[float], str],
) -> Gauge:
    def place(v: float) -> float:
        return round(100 * min(max((v - ends[0]) / (ends[1] - ends[0]), 0.0), 1.0), 2)

    start, stop = place(lo), place(hi)
    marks = tuple(Mark(name, place(v), f"{FLOORS[name]} {spell(v)}") for name, v in floors.items())
    return Gauge(place(value), start, round(stop - start, 2), marks, spell(ends[0]), spell(ends[1]), text)


def _without(trust: wire.Trust) -> Badge:
    if trust.state in ("pending", "running"):
        return Badge("quiet", "not measured yet", "How far to trust this map was not measured before it was frozen.")
    reason = trust.reason or "The measurement failed."
    return Badge("quiet", "trust not available", reason if reason.endswith(".") else reason + ".")
