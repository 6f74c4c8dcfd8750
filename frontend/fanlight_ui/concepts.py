"""The parts of the page on which concepts are corrected, pure: names and controls.

assets/concepts.js paints every number, at first from what the server said of the stored result and then from what it answers to each change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import record as parts
from fanlight_ui.session import href
from fanlight_ui.views import base, numbers

KIND = "concepts"
ANSWERS = (("model", ""), ("no", "no"), ("yes", "yes"))
SORTS = (("group", "by group"), ("uncertain", "most uncertain"), ("influential", "most influential"))


@dataclass(frozen=True)
class Shown:
    """What the page shows.

    Args:
        record: a finished explanation by concepts; ref, told: its artifact and what the server says of it.
        methods: explainers that can map a concept to the picture, (name, title).
        log: records with answers to the same question, oldest first, among them perhaps this one.
    """

    record: wire.Explanation
    ref: wire.ArtifactRef
    told: Mapping[str, Any]
    methods: Sequence[tuple[str, str]] = ()
    log: Sequence[wire.Explanation] = field(default_factory=tuple)


def grouped(names: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Concepts by what stands before `::`, in their order; those without such a part come under no heading."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        found.setdefault(name.partition("::")[0] if "::" in name else "", []).append(k)
    return list(found.items())


def plain(name: str) -> str:
    return " ".join(name.replace("::", " ").split())


def answers_of(record: wire.Explanation) -> list[Mapping[str, Any]]:
    return [e["set_concept"] for e in record.edits if "set_concept" in e]


def data(shown: Shown) -> dict[str, str]:
    """What assets/concepts.js needs, on the page's own element; Dash escapes attributes."""
    record, meta = shown.record, shown.told["meta"]
    held = {
        "record": record.id,
        "model": record.model,
        "input": record.input,
        "target": record.target_name,
        "names": meta["concepts"],
        "exclusive": meta["exclusive"],
        "pixels": [e for e in record.edits if "mask_region" in e],
        "detail": shown.told["detail"],
        "summary": shown.told["sentence"],
    }
    return {"data-concepts": json.dumps(held)}


def head(shown: Shown) -> Component:
    record = shown.record
    origin = [
        record.model_name,
        record.input_name or numbers.short(record.input, 8),
        f"e/{numbers.short(record.id, 6)}",
    ]
    said = html.Span([" · ".join(origin), " · ", html.Span(id="co-state", role="status")], className="quiet from")

    def button(name: str, text: str, **more: Any) -> Component:
        return html.Button(text, id=f"co-{name}", className="button" + (" primary" if name == "share" else ""), **more)

    actions = [
        parts._neighbour("previous", "‹", "k"),
        parts._neighbour("next", "›", "j"),
        dcc.Link("The record", href=href(f"/e/{record.id}"), className="button"),
        button("undo", "↶ Undo", title="Take the last answer back (Ctrl Z)"),
        button("redo", "↷", title="Answer it again (Ctrl Shift Z)", **{"aria-label": "Redo"}),
        button("save", "Save"),
        parts.export(record),
        button("share", "Share"),
    ]
    return html.Div(
        [html.H1("What does it see?", id="co-title"), said, html.Div(actions, className="actions")], className="head"
    )


def body(shown: Shown) -> Component:
    return html.Div(
        [
            html.Div([picture(shown), ask_next(), history(shown)], className="column"),
            concepts(shown.told["meta"]["concepts"]),
            html.Div([prediction(), reason(), selected(), trust(shown)], className="column"),
        ],
        className="co-columns",
    )


def picture(shown: Shown) -> Component:
    record = shown.record
    box = [float(v) for v in shown.told["meta"]["box"]]
    marks = [base.hidden(r, box) for r in base.hidden_regions(record.edits)]
    layers = [
        html.Img(
            src=base.picture(record.input, box, 512), alt=f"The picture {record.input_name}".strip(), className="under"
        ),
        html.Img(src="", alt="", id="co-over", className="over", hidden=True),
        *marks,
    ]
    frame = html.Div(
        layers, className="map co-picture", style={"aspectRatio": f"{box[2] - box[0]:g} / {box[3] - box[1]:g}"}
    )
    caption: list[Component] = [html.P(id="co-evidence", role="status")]
    if shown.methods:
        choices = [html.Option(title, value=name) for name, title in shown.methods]
        caption += [
            html.Div(id="co-scale", className="co-scale", hidden=True),
            html.Div(
                [
                    html.Button("Show where", id="co-where", className="button small"),
                    html.Label("Method of the map", htmlFor="co-method", className="sr"),
                    html.Select(choices, id="co-method"),
                ],
                className="row",
            ),
        ]
    return html.Section(
        [frame, html.Div(caption, className="co-caption")],
        className="card co-part co-seen",
        **{"aria-label": "The picture"},
    )


def ask_next() -> Component:
    return html.Section(
        [
            html.H2("Ask about this next"),
            html.Div(id="co-questions"),
            html.P(id="co-questions-said", className="quiet"),
        ],
        className="card pad co-part co-next",
    )


def history(shown: Shown) -> Component:
    log = [saved(e, shown.record.id) for e in shown.log]
    kept = [html.H3("Saved answers"), html.Ol(log, className="co-log")] if log else []
    many = dcc.Link(
        "answers on many pictures", href=href("/sweeps/new", model=shown.record.model, explainer=shown.record.explainer)
    )
    return html.Section(
        [
            html.H2("History"),
            html.Ol(id="co-steps", className="co-steps"),
            *kept,
            html.P(["Try ", many, ": a sweep, and a rule for all of it."], className="quiet"),
        ],
        className="card pad co-part",
    )


def saved(record: wire.Explanation, current: str) -> Component:
    """Who answered what, when, and what followed."""
    said = "; ".join(f"{_name(record, a['concept'])} {_word(a['value'])}" for a in answers_of(record))
    best = record.prediction[0] if record.prediction else None
    follows = f" → {best.name} {numbers.output(best, 0)}" if best else ""
    who = f"{numbers.when(record.created)} · {numbers.short(record.principal, 8) or 'somebody'}"
    here = {"aria-current": "true"} if record.id == current else {}
    note = [html.Span(f"“{record.note}”", className="quiet")] if record.note else []
    return html.Li(
        [dcc.Link(said + follows, href=href(f"/e/{record.id}/concepts")), html.Span(who, className="quiet"), *note],
        **here,
    )


def _name(record: wire.Explanation, concept: int) -> str:
    names = next((a.meta["concepts"] for a in record.artifacts if a.kind == KIND), [])
    return plain(names[concept]) if concept < len(names) else f"concept {concept}"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.2f}"


def concepts(names: Sequence[str]) -> Component:
    """All concepts with their controls, by group."""
    sorts = [
        html.Button(text, className="co-sort", **{"data-sort": name, "aria-pressed": str(name == "group").lower()})
        for name, text in SORTS
    ]
    rows: list[Component] = []
    for group, inside in grouped(names):
        if group:
            rows.append(html.H3(group, className="co-group"))
        rows += [row(k, names[k]) for k in inside]
    help = "Keys in a row: y yes, n no, u cannot tell, m as the model has it; ← → drag the bar; ↑ ↓ go to the next row."
    return html.Section(
        [
            html.Div(
                [html.H2("Concepts"), html.Div(sorts, className="co-sorts", role="group", **{"aria-label": "Order"})],
                className="row co-top",
            ),
            html.Div(id="co-problem", role="alert"),
            html.Div(rows, id="co-rows"),
            html.P(
                [
                    html.Span(className="co-key", **{"aria-hidden": "true"}),
                    html.Span("before your answers · filled: now · thin line: range of 90 %. "),
                    html.Span(id="co-moved", role="status"),
                ],
                className="quiet co-foot",
            ),
            html.P(help, className="quiet"),
        ],
        className="card pad co-middle",
        **{"aria-label": "Concepts"},
    )


def row(k: int, name: str) -> Component:
    said, short = plain(name), name.partition("::")[2] or name
    radios = [
        html.Button(text, role="radio", **{"data-answer": value, "aria-checked": "false"}) for text, value in ANSWERS
    ]
    dial = html.Div(
        [html.Span(className=c, **{"aria-hidden": "true"}) for c in ("level", "range", "ghost")],
        className="co-bar",
        role="slider",
        tabIndex=0,
        **{"aria-label": f"Probability of {said}", "aria-valuemin": "0", "aria-valuemax": "1", "aria-valuenow": "0"},
    )
    return html.Div(
        [
            html.Button(
                [html.Span(f"{name.partition('::')[0]} ", className="of") if "::" in name else None, short],
                className="co-name",
                title=f"Select {said}",
                **{"aria-pressed": "false"},
            ),
            html.Div(radios, className="co-answer", role="radiogroup", **{"aria-label": f"Answer: {said}"}),
            dial,
            html.Span(className="co-p"),
            html.Span(className="co-move"),
        ],
        className="co-row",
        **{"data-concept": str(k)},
    )


def prediction() -> Component:
    return html.Section(
        [
            html.H2("Prediction"),
            html.Ul(id="co-classes", className="co-classes"),
            html.P("outline: before your answers", className="quiet"),
        ],
        className="card pad co-part co-outcome",
    )


def reason() -> Component:
    return html.Section(
        [html.H2("Because"), html.P(id="co-reason", role="status")], className="card pad co-part co-why"
    )


def selected() -> Component:
    return html.Section(
        [html.H2("Goes together", id="co-selected"), html.Div(id="co-together")], className="card pad co-part"
    )


def trust(shown: Shown) -> Component:
    verify = html.Div(
        [
            html.Button("Recompute and verify", id="ex-recompute", className="button small"),
            html.Div(id="ex-verdict", role="status"),
        ],
        className="row",
    )
    card = dcc.Link("the model’s card", href=href(f"/models/{shown.record.model}"))
    return html.Section(
        [
            html.H2("How far to trust it"),
            html.P(id="co-unusual", className="warning", hidden=True),
            html.P(id="co-draws"),
            html.P(["How well its concepts are calibrated, and what an answer is worth on average, is on ", card, "."]),
            html.P(
                "What moves with an answer is what went together in the training data, not what causes what.",
                className="quiet",
            ),
            html.Details([html.Summary("Similar cases"), html.Div(id="co-cases")], className="disclosure"),
            verify,
        ],
        className="card pad co-part",
    )


def log_of(records: Iterable[wire.Explanation]) -> list[wire.Explanation]:
    """Those with answers, oldest first, each once."""
    found = {e.id: e for e in records if answers_of(e) and e.state == "succeeded"}
    return sorted(found.values(), key=lambda e: e.created)
