"""One explanation of a share page: everything its template prints, already in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.drawing import pictures, renderer, trust
from fanlight.drawing.base import Legend, Table
from fanlight.drawing.curves import ASPECT
from fanlight.drawing.number import MINUS, day, digits, output, percent
from fanlight.drawing.places import short
from fanlight.drawing.scene import OWN, PICTURES, Style
from fanlight.drawing.seen import Seen, inside, sentences
from fanlight.drawing.world import Bar, bar

SHOWN = 5


@dataclass(frozen=True)
class Answer:
    """A line of the prediction: name, full name, probability or value in words, bar in percent of its track."""

    name: str
    full: str
    chance: str
    width: str


@dataclass(frozen=True)
class Section:
    """Addresses of pictures are None where the artifact is gone or was never made."""

    question: str
    answer: str
    sentence: str
    method: str
    overlay: str | None
    picture: str | None
    curves: str | None
    curves_dark: str | None
    width: int
    height: int
    curves_width: int
    curves_height: int
    legend: Legend | None
    table: Table | None
    inside: Table | None
    answers: list[Answer]
    badge: trust.Badge
    measures: str
    rows: list[trust.Row]
    world: wire.WorldScore | None
    bar: Bar | None
    edited: str
    reading: str
    misleads: str
    paper: str
    link: str
    facts: list[tuple[str, str, str]]

    @property
    def description(self) -> str:
        """The page in a line, for messengers."""
        return " ".join(filter(None, (self.answer, self.sentence, f"{self.method}, {self.badge.text}.")))

    @property
    def unit(self) -> str:
        """Under the scale: the unit, and the largest value where the colours end before it."""
        legend = self.legend
        return ", ".join(filter(None, (legend.unit, legend.hi_label.partition(" (")[2].rstrip(")")))) if legend else ""

    @property
    def alt(self) -> str:
        return f"{self.method}{' over the picture' if self.legend else ''}. {self.sentence}"


def section(
    snapshot: Mapping[str, Any], drawn: Artifact | None, view: Mapping[str, Any], address: Callable[[str], str | None]
) -> Section:
    """Of one frozen explanation and its map. `address` turns a name of `pictures.NAMES` into where it is."""
    record = wire.Explanation.model_validate(snapshot)
    style = Style.of(view)
    width, height = pictures.extent(drawn) if drawn else (0, 0)
    sentence = renderer(drawn.kind).sentence(drawn, target=record.target_name) if drawn else record.summary
    seen = Seen.of(view)
    paper, link = _paper(snapshot.get("paper"))
    world = wire.WorldScore.model_validate(snapshot["world"]) if snapshot.get("world") else None
    return Section(
        question=question(record),
        answer=_answer(record),
        sentence=" ".join(filter(None, (sentence, sentences(drawn, seen) if drawn else ""))),
        method=str(snapshot.get("method_title") or record.explainer_title),
        overlay=address("overlay.png") if drawn else None,
        # what holds its picture is drawn alone, unless something is marked on it
        picture=address("picture.png") if drawn and (drawn.kind not in OWN or seen.fits(drawn)) else None,
        curves=address("curves.png") if record.trust.curves else None,
        curves_dark=address("curves-dark.png") if record.trust.curves else None,
        width=width,
        height=height,
        curves_width=pictures.CURVES,
        curves_height=round(pictures.CURVES * ASPECT),
        legend=renderer(drawn.kind).legend(drawn, **style.scale) if drawn and drawn.kind in PICTURES else None,
        table=renderer(drawn.kind).table(drawn) if drawn else None,
        inside=inside(drawn, seen) if drawn else None,
        answers=[
            Answer(
                short(p.name), p.name, output(p.probability, p.logit, p.unit, 1), f"{100 * (p.probability or 0):.2f}"
            )
            for p in record.prediction[:SHOWN]
        ],
        badge=trust.badge(record.trust),
        measures=_measures(record.trust),
        rows=_rows(record.trust),
        world=world,
        bar=bar(world.headline) if world and world.headline else None,
        edited=_edited(record.edits),
        reading=str(snapshot.get("reading") or ""),
        misleads=str(snapshot.get("misleads") or ""),
        paper=paper,
        link=link,
        facts=_facts(record),
    )


def question(record: wire.Explanation) -> str:
    """What an explanation answers."""
    if (record.target or {}).get("drawn"):
        return "Which word put what where?"
    name = short(record.target_name)
    return f"Why “{name}”?" if name else "Why?"


def _answer(record: wire.Explanation) -> str:
    if (record.target or {}).get("drawn"):
        return f"“{record.input_name}”, asked of {record.model_name}."
    if not record.prediction:
        return ""
    best = record.prediction[0]
    return f"{record.model_name} says {short(best.name)}, {output(best.probability, best.logit, best.unit)}."


def _measures(record: wire.Trust) -> str:
    """Insertion and deletion, each relative to the floor."""
    if record.state != "succeeded":
        return ""
    parts = [
        f"{name} {trust.score(value)}"
        + (f" ({trust.score(r.lo)} to {trust.score(r.hi)})" if (r := record.interval.get(name)) else "")
        for name, value in (("insertion", record.insertion), ("deletion", record.deletion))
        if value is not None
    ]
    if record.completeness_error is not None:
        parts.append(f"completeness error {percent(record.completeness_error, 1)}")
    return ", ".join(parts).capitalize() + ("." if parts else "")


def _rows(record: wire.Trust) -> list[trust.Row]:
    """Faithfulness beside its floors, and the further checks that were over when the record was frozen."""
    over = {name for name, check in record.checks.items() if check.state != "pending"}
    return [row for row in trust.rows(record) if row.name == "faithfulness" or row.name in over]


def _edited(edits: list[dict[str, Any]]) -> str:
    hidden = sum("mask_region" in edit for edit in edits)
    if not hidden:
        return ""
    if hidden == 1:
        return "One part of the picture was hidden from the model: the grey rectangle."
    return f"{hidden} parts of the picture were hidden from the model: the grey rectangles."


def _paper(paper: Any) -> tuple[str, str]:
    """Citation, and its address where that is one that a browser should follow."""
    if isinstance(paper, Mapping):
        link = str(paper.get("link") or "")
        return str(paper.get("citation") or ""), link if link.startswith("https://") else ""
    return str(paper or ""), ""


def _facts(record: wire.Explanation) -> list[tuple[str, str, str]]:
    """(name, value, what it is in full or ""), in the order in which somebody would repeat it."""
    made = record.provenance
    work = [
        f"{digits(made.seconds)} s" if made.seconds is not None else "",
        f"{made.forwards:,} forward {'pass' if made.forwards == 1 else 'passes'}" if made.forwards else "",
    ]
    place = [made.device, f"{made.threads} threads" if made.threads else "", made.numerics]
    facts = [
        ("method", f"{record.explainer_title}, version {made.explainer_version}", ""),
        ("parameters", _parameters(record.params), ""),
        ("seed", str(record.seed), ""),
        ("target", record.target_name, ""),
        ("model", f"{record.model_name}, {_brief(made.model_digest)}", made.model_digest),
        ("picture", ", ".join(filter(None, (record.input_name, _brief(made.input_digest)))), made.input_digest),
        ("versions", ", ".join(f"{name} {version}" for name, version in sorted(made.versions.items())), ""),
        ("computed on", ", ".join(filter(None, place)), ""),
        ("computed in", ", ".join(filter(None, work)), ""),
        ("computed at", day(made.created), ""),
        ("record", f"{record.id}, {_brief(made.key)}", made.key),
    ]
    return [fact for fact in facts if fact[1]]


def _parameters(params: Mapping[str, Any]) -> str:
    given = {name: value for name, value in params.items() if value != ""}
    return ", ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in given.items()) or "none"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}".replace("-", MINUS)
    return {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def _brief(digest: str) -> str:
    return f"{digest[:8]}…" if len(digest) > 8 else digest
