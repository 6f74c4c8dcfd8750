"""The parts of a study's page, pure: two lists of words against each other as a table with intervals, and the pictures behind a cell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dash import html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import cards
from fanlight_ui.views.numbers import digits, signed

HELP = (
    "A study draws a picture for every pair of two lists of words and every seed, and asks what the two words say together. "
    "All pictures of a seed begin with the same noise, so that they differ by their words."
)
SHADE = 55
"""Per cent of the colour behind the largest number, so that the number stays legible."""
RULES = (("min", "the smaller of the two"), ("pointwise", "pointwise"))
SCALES = (("nats", "nats"), ("normalised", "0 to 1 over the table"))
MOST_SHOWN = 24
"""Pictures of a cell that are shown; the file has all."""


@dataclass(frozen=True)
class View:
    """What of a study is shown. Args: column: one of `wire.Study.columns`. scale: of `SCALES`. cell: row and column, or None."""

    column: str = "interaction"
    rule: str = "min"
    scale: str = "nats"
    cell: tuple[int, int] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> View:
        """From an address that a person may have written: what cannot be read is left out."""
        rule, scale = given.get("rule"), given.get("scale")
        parts = str(given.get("cell") or "").split(",")
        cell = (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(p.isdecimal() for p in parts) else None
        return cls(
            str(given.get("column") or "interaction")[:40],
            str(rule) if rule in dict(RULES) else "min",
            str(scale) if scale in dict(SCALES) else "nats",
            cell,
        )

    def data(self) -> dict[str, Any]:
        return {**asdict(self), "cell": None if self.cell is None else f"{self.cell[0]},{self.cell[1]}"}


def table(study: wire.Study, view: View) -> list[Component]:
    """What its numbers are, the numbers, their scale, and how to read them."""
    means = meaning(study)
    return [
        html.H2(means[:1].upper() + means[1:]),
        numbers(study, view),
        scale(study, view),
        html.P(study.about, className="quiet"),
    ]


def meaning(study: wire.Study) -> str:
    """What the numbers are, as the server says it."""
    return next((c.title for c in study.columns if c.name == study.column), study.column)


def controls(study: wire.Study, view: View) -> Component:
    def pills(name: str, choices: Sequence[tuple[str, str]], chosen: str, label: str, title: str = "") -> Component:
        made = [
            html.Button(
                text,
                className="wd-pill",
                **{"data-st": name, "data-value": value, "aria-pressed": str(value == chosen).lower()},
            )
            for value, text in choices
        ]
        return html.Div(
            [
                html.Span(label, className="quiet"),
                html.Div(made, className="wd-kinds", role="group", **{"aria-label": label}),
            ],
            className="st-choice",
            title=title,
        )

    short = [
        (c.name, c.title.partition(":")[0].rpartition(", ")[0] or c.title.partition(":")[0]) for c in study.columns
    ]
    return html.Div(
        [
            pills("column", short, study.column, "Number"),
            pills("scale", SCALES, view.scale, "Scale"),
            pills("rule", RULES, study.rule, "What counts as redundant"),
        ],
        className="st-controls",
    )


def numbers(study: wire.Study, view: View) -> Component:
    """Rows are words of the first list. A cell is a button: its pictures are shown below."""
    width = max((abs(c.mean) for row in study.cells for c in row if c.mean is not None), default=0.0) or 1.0
    head = html.Tr([html.Td(), *(html.Th(word, scope="col") for word in study.second)])
    rows = [
        html.Tr([html.Th(word, scope="row"), *(cell(study, view, i, j, width) for j in range(len(study.second)))])
        for i, word in enumerate(study.first)
    ]
    return html.Div(
        html.Table([html.Thead(head), html.Tbody(rows)], className="st-table num"),
        className="scroll st-scroll",
        tabIndex=0,
        role="region",
        **{"aria-label": "Every pair of words"},
    )


def cell(study: wire.Study, view: View, i: int, j: int, width: float) -> Component:
    found = study.cells[i][j]
    names = f"{study.first[i]}, {study.second[j]}"
    seeds = len(study.seeds)
    if found.mean is None:
        waiting = "not yet" if not study.complete else "none"
        return html.Td(html.Span(waiting, className="quiet"), className="st-none")
    normal = view.scale == "normalised" and found.normalised is not None
    value = found.normalised if normal else found.mean
    lo, hi = (found.normalised_lo, found.normalised_hi) if normal else (found.lo, found.hi)
    assert value is not None
    wrote = digits if normal or not crosses(study) else signed
    share = SHADE * (value if normal else abs(value) / width)
    band = f"{wrote(lo, 2)} to {wrote(hi, 2)}" if lo is not None and hi is not None else ""
    # Signed numbers say something where their interval leaves 0 out; sums of maps are never below 0.
    sure = not normal and crosses(study) and lo is not None and hi is not None and (lo > 0 or hi < 0)
    some = f"{found.n} of {seeds}" if found.n < seeds else ""
    interval = f", 95 % interval {band}" if band else ""
    pictures = "1 picture" if found.n == 1 else f"{found.n} pictures"
    said = f"{names}: {wrote(value, 3)}{'' if normal else ' nat'}{interval}, of {pictures}"
    inside = [html.Span(wrote(value, 3), className="st-value"), html.Span(band or some, className="st-band")]
    button = html.Button(
        inside,
        className=f"st-cell{' less' if value < 0 else ''}{' sure' if sure else ''}",
        style={"--share": f"{max(0.0, min(SHADE, share)):.0f}%"},
        **{
            "data-st": "cell",
            "data-value": f"{i},{j}",
            "aria-label": said,
            "aria-pressed": str(view.cell == (i, j)).lower(),
        },
    )
    return html.Td(button)


def crosses(study: wire.Study) -> bool:
    """Whether the numbers have a sign, as their title says or one of them shows."""
    below = any(c.mean is not None and c.mean < 0 for row in study.cells for c in row)
    return below or "signed" in meaning(study)


def scale(study: wire.Study, view: View) -> Component | None:
    if study.lowest is None or study.highest is None:
        return None
    if view.scale == "normalised":
        ends = f"0 stands for {signed(study.lowest, 2)} nat, 1 for {signed(study.highest, 2)} nat"
        said = f"{ends}: the ends of this table, which are known as badly as its numbers."
    else:
        said = (
            f"From {signed(study.lowest, 2)} to {signed(study.highest, 2)} nat; colours are stronger the farther from 0"
        )
        said += ", red below it." if study.lowest < 0 else "."
    bold = " Bold: the interval leaves 0 out." if view.scale == "nats" and crosses(study) else ""
    small = " Small: 95 % interval of the mean over seeds." if len(study.seeds) > 1 else ""
    return html.P(said + small + bold, className="quiet num")


def behind(study: wire.Study, view: View, records: Sequence[wire.Explanation], without: int) -> list[Component]:
    """The pictures of a cell. Args: without: how many of its pictures have no result."""
    if view.cell is None:
        return [html.P("Choose a cell to see its pictures.", className="quiet")]
    i, j = view.cell
    more = len(study.seeds) - len(records) - without
    parts: list[Component] = [html.H2(f"“{study.first[i]}” and “{study.second[j]}”")]
    if records:
        parts.append(cards.grid(records))
    if without:
        parts.append(html.P(f"{without} without a result, or not drawn yet.", className="quiet num"))
    if more > 0:
        parts.append(html.P(f"And {more:,} more seeds; the CSV names all.", className="quiet num"))
    return parts
