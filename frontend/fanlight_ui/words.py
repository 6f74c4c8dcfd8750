"""The parts of the page of words, pure: which word of a prompt put what where. The skeleton is built here; assets/words.js paints every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import editing, record as parts, workbench
from fanlight_ui.session import href
from fanlight_ui.views import numbers
from fanlight_ui.words_change import change, redrawn
from fanlight_ui.words_tools import band, cross, others, place, region, rule, signed, tools

KIND = "words"
OWN = (
    "set_words",
    "set_rule",
    "set_band",
    "drop_word",
    "replace_word",
    "exchange_words",
    "reorder_words",
    "weigh_word",
)
MAPS = ("a", "b", "both", "synergy", "redundant", "unique_a", "unique_b")
"""In the order of the page; the eighth place is that of the signed values."""
SUBTITLES = {
    "both": "A and B together",
    "synergy": "only together",
    "redundant": "either says it",
    "unique_a": "A says it, B does not",
    "unique_b": "B says it, A does not",
}
QUANTITIES = (("redundant", "redundant"), ("synergy", "synergy"), ("unique", "unique"))


@dataclass(frozen=True)
class Shown:
    """What the page shows.

    Args:
        record: finished. told: what the server says of its artifact. prompt: its input; None where that is gone.
        edits: to show it with; `asked`: whether they are other than those that are stored.
        info: of the method, and model; None where they are no longer registered.
        before: the record that this one changed.
    """

    record: wire.Explanation
    told: Mapping[str, Any]
    prompt: wire.Input | None = None
    edits: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    asked: bool = False
    info: wire.ExplainerInfo | None = None
    model: wire.Model | None = None
    before: wire.Explanation | None = None

    @property
    def detail(self) -> dict[str, Any]:
        found: dict[str, Any] = self.told["detail"]
        return found


def state(shown: Shown) -> dict[str, Any]:
    """What assets/words.js starts from."""
    record = shown.record
    return {
        "id": record.id,
        "model": record.model,
        "input": record.input,
        "explainer": record.explainer,
        "params": record.params,
        "seed": record.seed,
        "stored": editing.among(record.edits, OWN),
        "edits": [dict(e) for e in shown.edits],
        "ask": shown.asked,
        "live": shown.model is not None and shown.info is not None,
        "detail": shown.detail,
        "summary": shown.told.get("sentence", record.summary),
    }


def head(shown: Shown) -> Component:
    record, detail = shown.record, shown.detail
    drawn = detail["drawn"]
    origin = [
        record.model_name,
        f"seed {drawn['seed']}" if drawn else "a picture of your own",
        f"{detail['nodes']} log-SNRs",
        f"e/{numbers.short(record.id, 6)}",
    ]
    actions = [
        parts._neighbour("previous", "‹", "k"),
        parts._neighbour("next", "›", "j"),
        dcc.Link("The record", href=href(f"/e/{record.id}"), className="button"),
        _step("undo", "↶", "Undo (Ctrl+Z)"),
        _step("redo", "↷", "Redo (Ctrl+Shift+Z)"),
        html.Button("Save", id="wd-save", className="button", disabled=True),
        parts.export(record),
        html.Button("Share", id="ex-share", className="button primary"),
    ]
    return html.Div(
        [
            html.H1("Which word put what where?"),
            html.Span(" · ".join(origin), className="quiet from"),
            html.Div(actions, className="actions"),
        ],
        className="head",
    )


def _step(name: str, sign: str, words: str) -> Component:
    return html.Button(
        html.Span(sign, **{"aria-hidden": "true"}),
        id=f"wd-{name}",
        className="button",
        title=words,
        disabled=True,
        **{"aria-label": words.partition(" (")[0]},
    )


def body(shown: Shown) -> Component:
    left = [picture(shown), matrix(shown.info), change(shown.detail, shown.info)]
    right = [
        redrawn(shown.before),
        maps(),
        others(),
        tools(),
        html.Div([band(), rule()], className="wd-two"),
        told(shown),
    ]
    return html.Div(
        [
            prompt(shown),
            html.Div(
                [html.Div(left, className="wd-column"), html.Div(right, className="wd-column")], className="wd-columns"
            ),
        ],
        className="wd-page",
    )


def prompt(shown: Shown) -> Component:
    """The words as buttons: one click chooses the first, another the second."""
    context = shown.detail["context"]
    kinds = [
        html.Button(
            text,
            className="wd-pill",
            disabled=shown.model is None,
            title=title,
            **{"data-context": str(value).lower(), "aria-pressed": str(context == value).lower()},
        )
        for value, text, title in (
            (True, "given the rest", "What a word adds to all the others (CPID)"),
            (False, "ignore the rest", "What a word says by itself, against no words at all (PID)"),
        )
    ]
    gone = "The model of this record is gone: what is stored is shown, and cannot be changed."
    return html.Section(
        [
            html.Div(
                [
                    html.Div(
                        id="wd-chips",
                        className="wd-chips",
                        role="group",
                        **{"aria-label": "Words of the prompt: choose one, or two"},
                    ),
                    html.Div(kinds, className="wd-kinds", role="group", **{"aria-label": "In context or not"}),
                ],
                className="wd-prompt",
            ),
            html.P(className="wd-sentence", role="status", **place("sentence")),
            html.P(className="quiet wd-hint", **place("hint")),
            html.Div(id="wd-said", role="alert"),
            html.P(gone, className="quiet") if shown.model is None else None,
        ],
        className="card pad",
        **{"aria-label": "The prompt"},
    )


def picture(shown: Shown) -> Component:
    text = shown.detail["prompt"]
    frame = html.Div(
        [html.Img(alt="", className="wd-image", **place("picture")), cross()],
        className="wd-frame",
        tabIndex=0,
        role="img",
        **{"data-map": "picture", "aria-label": f"The picture of “{text}”. Arrow keys read all maps at one place."},
    )
    return html.Section(
        [
            frame,
            html.Div(
                [
                    html.P(className="num", role="status", **place("place")),
                    html.Dl(className="wd-values num", **place("values")),
                ],
                className="wd-read",
            ),
            *region(),
        ],
        className="card wd-seen",
        **{"aria-label": "The picture"},
    )


def matrix(info: wire.ExplainerInfo | None) -> Component:
    ways = [
        html.Button(
            text, className="wd-pill small", **{"data-quantity": name, "aria-pressed": str(name == "redundant").lower()}
        )
        for name, text in QUANTITIES
    ]
    return html.Section(
        [
            html.Div(
                [html.H2("Every pair"), html.Div(ways, className="wd-kinds", role="group", **{"aria-label": "Show"})],
                className="row wd-top",
            ),
            html.Div(className="wd-scroll", **place("matrix")),
            html.P(className="quiet", **place("matrix-said")),
            html.A("Study these two against other words", hidden=info is None or not info.pairs, **place("study")),
        ],
        className="card pad",
        **{"aria-label": "Every pair"},
    )


def maps() -> Component:
    return html.Section(
        [html.H2("Maps", className="sr"), *(one_map(name) for name in MAPS), signed()],
        className="wd-maps",
        id="wd-maps",
        **{"aria-label": "Maps of two words"},
    )


def one_map(name: str) -> Component:
    frame = html.Div(
        [
            html.Img(alt="", className="wd-image under", **place("under")),
            html.Canvas(className="wd-paint", **place("paint")),
            cross(),
            html.Span(className="pixel", **{"aria-hidden": "true"}),
        ],
        className="wd-frame",
        role="img",
        tabIndex=-1,
        **{"data-map": name, "aria-label": name},
    )
    caption = html.Figcaption(
        [
            html.Div(
                [html.Strong(**place("title")), html.Span(className="num", **place("sum"))], className="wd-caption"
            ),
            html.Span(SUBTITLES.get(name, ""), className="quiet", **place("sub")),
        ]
    )
    return html.Figure(
        [frame, html.P("Choose a second word.", className="wd-empty", hidden=True), caption],
        className="card wd-map",
        id=f"wd-map-{name.replace('_', '-')}",
    )


def told(shown: Shown) -> Component:
    """What to know before believing it, and the numbers as tables."""
    verify = html.Div(
        [
            html.Button("Recompute and verify", id="ex-recompute", className="button small"),
            html.Div(id="ex-verdict", role="status"),
        ],
        className="row",
    )
    honest = html.Section(
        [
            html.H2("How far to trust it"),
            html.P(className="warning", hidden=True, **place("warning")),
            html.Dl(className="wd-facts", **place("facts")),
            html.P("The maps are of the model, not of the world.", className="quiet"),
            verify,
        ],
        className="card pad",
    )
    said = html.Section(
        [
            html.H2("Reading it"),
            workbench.reading(shown.info) if shown.info is not None else None,
            html.Details(
                [html.Summary("Regions as a table"), html.Div(className="table", tabIndex=0, **place("regions"))],
                className="disclosure",
            ),
        ],
        className="card pad",
    )
    return html.Div([said, honest], className="wd-two")
