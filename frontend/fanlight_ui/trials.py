"""A rule applied to all of a sweep, as components, pure: the form that says which, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.drawing.trial import crossed, points
from fanlight.wire import Page, Portion, Trial, TrialItem, TrialSummary
from fanlight_ui import session
from fanlight_ui.pictures import lazy
from fanlight_ui.views.numbers import percent, seconds, when

KINDS = {
    "set_concept": "Answer a concept",
    "mute_prototype": "Mute a prototype",
    "gate_part": "Leave out a part of a prototype",
    "remove_part": "Take out a part, the others look again",
}
VALUES = {"yes": "yes", "no": "no", "unknown": "cannot tell", "soft": "how probable"}
OUTCOMES = {"": "right and wrong", "right": "that it has right", "wrong": "that it has wrong"}
STATES = {"running": "running", "done": "done", "cancelled": "cancelled", "failed": "failed"}
HELP = (
    "The same change on every picture of this sweep, computed from what is stored; no picture is looked at again and no record is changed. "
    "Does the model get better or worse, and for whom?"
)
CLASSES, SHOWN = 12, 12


def form(general: Sequence[str], concepts: Sequence[str] | None, classes: Sequence[str], pictures: int) -> Component:
    """Which edits, on which pictures. Args: general: kinds of edits that the method allows; pictures: finished ones of the sweep."""
    kinds = [{"value": k, "label": KINDS.get(k, k.replace("_", " "))} for k in sorted(general, key=_order)]
    named = [{"value": str(n), "label": plain(c)} for n, c in enumerate(concepts or ())]
    every = [{"value": c, "label": c} for c in classes]
    what = [
        dmc.Select(id="tr-kind", label="What", data=kinds, value=kinds[0]["value"], allowDeselect=False),
        _field("concept", dmc.Select(id="tr-concept", label="Concept", data=named, searchable=True, limit=200)),
        _field(
            "value", dmc.Select(id="tr-value", label="Answer", data=_data(VALUES), value="yes", allowDeselect=False)
        ),
        _field("soft", _number("tr-soft", "Probability", 0.5, max=1, step=0.05)),
        _field("prototype", _number("tr-prototype", "Prototype, from 0", None, allowDecimal=False)),
        _field("part", _number("tr-part", "Part, from 1", 1, min=1, allowDecimal=False)),
        _field("json", dmc.TextInput(id="tr-json", label="Value, as JSON")),
        html.Button("Add another", id="tr-add", className="button small"),
    ]
    which = [
        dmc.Select(
            id="tr-label", label="Labelled", data=every, searchable=True, clearable=True, placeholder="anything"
        ),
        dmc.Select(
            id="tr-predicted", label="Predicted as", data=every, searchable=True, clearable=True, placeholder="anything"
        ),
        dmc.Select(id="tr-outcome", label="Pictures", data=_data(OUTCOMES), value="", allowDeselect=False),
    ]
    return html.Div(
        [
            dcc.Store(id="tr-edits", data=[]),
            html.Div(what, className="fields"),
            html.Ul(id="tr-chips", className="rule"),
            html.Div(which, className="fields"),
            html.Div(
                [
                    html.Button(f"Apply to {pictures:,} pictures", id="tr-apply", className="button primary"),
                    html.Span(id="tr-said", role="status"),
                ],
                className="row",
            ),
        ],
        className="trial-form",
    )


def _order(kind: str) -> int:
    return list(KINDS).index(kind) if kind in KINDS else len(KINDS)


def _field(name: str, control: Component) -> Component:
    return html.Div(control, id=f"tr-{name}-part", hidden=True)


def _number(id: str, label: str, value: float | None, **props: Any) -> Component:
    return dmc.NumberInput(id=id, label=label, value=value, **{"min": 0, **props})


def _data(words: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"value": k, "label": v} for k, v in words.items()]


FIELDS = {
    "set_concept": ("concept", "value"),
    "mute_prototype": ("prototype",),
    "gate_part": ("prototype", "part"),
    "remove_part": ("prototype", "part"),
}
PARTS = ("concept", "value", "soft", "prototype", "part", "json")


def hidden(kind: str, value: str | None) -> list[bool]:
    """Of each of `PARTS` whether its control has nothing to say."""
    shown = {*FIELDS.get(kind, ("json",)), *(["soft"] if kind == "set_concept" and value == "soft" else [])}
    return [p not in shown for p in PARTS]


def edit(kind: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the controls say, by the names of `PARTS`; None where something is missing."""
    if kind == "set_concept":
        value = given["soft"] if given["value"] == "soft" else given["value"]
        whole = given["concept"] not in (None, "") and value not in (None, "")
        return {kind: {"concept": int(given["concept"]), "value": value}} if whole else None
    if kind not in FIELDS:
        return _read(kind, given["json"])
    numbers = [given[p] for p in FIELDS[kind]]
    if any(not isinstance(n, (int, float)) for n in numbers):
        return None
    if kind == "mute_prototype":
        return {kind: int(numbers[0])}
    return {kind: [int(numbers[0]), int(numbers[1]) - 1]}


def _read(kind: str, text: str | None) -> dict[str, Any] | None:
    try:
        return {kind: json.loads(text)} if text else None
    except ValueError:
        return None


def chips(edits: Sequence[Mapping[str, Any]], concepts: Sequence[str] | None) -> list[Component]:
    """The rule so far; a click takes an edit out."""
    return [
        html.Li(
            html.Button(
                [said(e, concepts), html.Span(" ✕", **{"aria-hidden": "true"})],
                id={"type": "tr-drop", "n": n},
                className="chip",
                **{"aria-label": f"Take out: {said(e, concepts)}"},
            )
        )
        for n, e in enumerate(edits)
    ]


def said(edit: Mapping[str, Any], concepts: Sequence[str] | None) -> str:
    ((kind, value),) = edit.items()
    if kind == "set_concept" and concepts:
        answer = value["value"]
        return f"{plain(concepts[value['concept']])}: {VALUES.get(answer, answer)}"
    if kind == "mute_prototype":
        return f"prototype {value} muted"
    if kind in FIELDS:
        return f"part {value[1] + 1} of prototype {value[0]} {'left' if kind == 'gate_part' else 'taken'} out"
    return f"{kind.replace('_', ' ')} {json.dumps(value)}"


def plain(name: str) -> str:
    return " ".join(name.replace("::", " ").split())


# --- what came of it


def result(
    t: Trial, found: TrialSummary, corrected: Page[TrialItem], spoiled: Page[TrialItem], other: Page[TrialItem]
) -> list[Component | None]:
    """One trial. Args: corrected, spoiled, other: the first pictures that moved so."""
    return [
        html.Div(
            [
                html.H3(t.about),
                html.Span(STATES[t.state], className=f"tag {'live' if t.state == 'running' else t.state}"),
                html.Div(_actions(t), className="row end"),
            ],
            className="head",
        ),
        html.Progress(value=str(t.progress), max="1", **{"aria-label": "Progress of the rule"})
        if t.state == "running"
        else None,
        html.P(standing(t, found), className="quiet num", role="status"),
        html.P(t.problem, className="warning") if t.problem else None,
        figures(found) if found.labelled else None,
        html.P(crossed(found)) if found.n else None,
        classes(found),
        moves("Corrected", "Wrong before, right now", t, corrected),
        moves("Spoiled", "Right before, wrong now", t, spoiled),
        moves("Another class", "As right or wrong as before, or without a label", t, other),
    ]


def _actions(t: Trial) -> list[Component]:
    parts: list[Component] = []
    if t.mine and t.state == "running":
        parts.append(html.Button("Cancel", id="tr-cancel", className="button small"))
    parts.append(
        html.A(
            "Every picture (CSV)",
            href=session.src(f"/api/v1/trials/{t.id}/export.csv"),
            download="",
            className="button small",
        )
    )
    if t.mine and t.state != "running":
        parts.append(html.Button("Forget it", id="tr-forget", className="button small"))
    return parts


def standing(t: Trial, found: TrialSummary) -> str:
    """How far it is, in words."""
    words = [f"{found.n:,} of {t.total:,} computed"]
    if t.counts["failed"]:
        words.append(f"{t.counts['failed']:,} could not be")
    if t.state == "running" and t.seconds_left is not None:
        words.append(f"about {seconds(t.seconds_left)} left")
    elif t.state != "running":
        words.append(f"{found.moved:,} {'prediction' if found.moved == 1 else 'predictions'} changed")
        words.append(f"in {seconds(t.seconds)}")
    words.append(when(t.created))
    return " · ".join(words)


def figures(found: TrialSummary) -> Component:
    """Accuracy before and after, and the difference."""
    c = found.change
    moved = (
        f"points, 95 % interval {points(c.lo)} to {points(c.hi)}" if c.lo is not None and c.hi is not None else "points"
    )
    way = "" if c.lo is None or c.hi is None or c.lo <= 0 <= c.hi else " up" if c.lo > 0 else " down"
    return html.Div(
        [
            _figure("Right before", found.before),
            _figure("Right after", found.after),
            html.Div(
                [
                    html.H4("Change"),
                    html.P(points(c.value or 0), className=f"figure{way}"),
                    html.P(moved, className="quiet num"),
                ]
            ),
        ],
        className="trial-figures",
    )


def _figure(title: str, p: Portion) -> Component:
    words = f"{p.count:,} of {p.n:,}"
    if p.lo is not None and p.hi is not None:
        words += f", 95 % interval {percent(p.lo)} to {percent(p.hi)}"
    return html.Div(
        [html.H4(title), html.P(percent(p.value or 0), className="figure"), html.P(words, className="quiet num")]
    )


def classes(found: TrialSummary) -> Component | None:
    """Who gained and who lost."""
    if not found.classes:
        return None
    rows = [
        html.Tr(
            [
                html.Th(c.name, scope="row"),
                html.Td(f"{c.labelled:,}"),
                html.Td(f"+{c.gained:,}" if c.gained else "", className="up"),
                html.Td(f"−{c.lost:,}" if c.lost else "", className="down"),
                html.Td(f"{c.predicted_before:,} → {c.predicted_after:,}"),
            ]
        )
        for c in found.classes[:CLASSES]
    ]
    heads = ("Class", "Labelled so", "Gained", "Lost", "Predicted so")
    more = len(found.classes) - CLASSES
    return html.Div(
        [
            html.H4("Classes that gained and lost"),
            html.Div(
                html.Table(
                    [html.Thead(html.Tr([html.Th(h, scope="col") for h in heads])), html.Tbody(rows)],
                    className="num",
                ),
                className="scroll",
                tabIndex=0,
                role="region",
                **{"aria-label": "Classes that gained and lost"},
            ),
            html.P(f"And {more:,} more; the CSV has every picture.", className="quiet") if more > 0 else None,
        ]
    )


def moves(title: str, help: str, t: Trial, found: Page[TrialItem]) -> Component | None:
    """Pictures whose prediction became another; each opens with the rule's edits made."""
    if not found.items:
        return None
    more = found.total - len(found.items)
    return html.Div(
        [
            html.H4(f"{title}: {found.total:,}"),
            html.P(f"{help}. A picture opens with the rule applied.", className="quiet"),
            html.Ul([_moved(t, i) for i in found.items], className="moves"),
            html.P(f"And {more:,} more; the CSV has all.", className="quiet") if more > 0 else None,
        ]
    )


def _moved(t: Trial, i: TrialItem) -> Component:
    now = f" {percent(i.after_probability)}" if i.after_probability is not None else ""
    return html.Li(
        html.A(
            [
                lazy(session.src(f"/api/v1/inputs/{i.input}/thumbnail.webp"), ""),
                html.Span([html.Span(i.before, className="was"), " → ", html.Strong(i.after), now]),
                html.Span(f"labelled {i.label}" if i.label else i.name, className="quiet"),
            ],
            href=opened(t, i.explanation),
        )
    )


def opened(t: Trial, explanation: str) -> str:
    """The page on which a stored result is changed, with the edits of the trial made."""
    kinds = {next(iter(e)) for e in t.edits}
    if kinds == {"set_concept"}:
        said = ((e["set_concept"]["concept"], e["set_concept"]["value"]) for e in t.edits)
        return session.href(f"/e/{explanation}/concepts", answers=",".join(f"{k}:{v}" for k, v in said))
    if kinds <= set(FIELDS):
        return session.href(f"/e/{explanation}/prototypes", edits=json.dumps(t.edits, separators=(",", ":")))
    return session.href(f"/e/{explanation}")


def earlier(every: Sequence[Trial], current: str | None) -> Component | None:
    """Other rules that were tried on this sweep."""
    others = [t for t in every if t.id != current]
    if not others:
        return None
    items = [
        html.Li(
            [
                dcc.Link(t.about, href=session.href(f"/sweeps/{t.sweep}", trial=t.id)),
                html.Span(f" {STATES[t.state]} · {when(t.created)}", className="quiet num"),
            ]
        )
        for t in others
    ]
    return html.Details([html.Summary(f"Other rules: {len(others)}"), html.Ul(items)], className="disclosure")
