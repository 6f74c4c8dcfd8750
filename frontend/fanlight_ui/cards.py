"""Explanations as cards: the picture beside its map, what the model said, by which method, how far to trust it."""

from __future__ import annotations

from collections.abc import Iterable

from dash import dcc, html
from dash.development.base_component import Component

from fanlight.wire import Explanation
from fanlight_ui import session
from fanlight_ui.pictures import lazy
from fanlight_ui.views import prediction, trust
from fanlight_ui.views.numbers import output

UNFINISHED = {
    "queued": "waiting",
    "running": "being computed",
    "failed": "failed",
    "cancelled": "cancelled",
    "expired": "expired",
}


def grid(items: Iterable[Explanation]) -> Component:
    return html.Div([card(e) for e in items], className="cards", **{"data-walk": "cards"})


def tray() -> Component:
    """What has been chosen for a comparison; assets/compare.js fills and shows it."""
    parts = [
        html.Output(**{"aria-live": "polite"}),
        html.A("Compare", href="#", className="button primary", hidden=True),
        html.Button("Clear", id="compare-clear", className="plain"),
    ]
    return html.Div(parts, id="compare-tray", className="tray card", hidden=True)


def card(e: Explanation) -> Component:
    """The whole card leads to the record; its link is the name."""
    return html.Article(inside(e), id=card_id(e.id), className="card item", **{"data-item": e.id})


def card_id(explanation: str) -> dict[str, str]:
    """So that an event about an explanation can renew its card."""
    return {"type": "card", "explanation": explanation}


def inside(e: Explanation) -> list[Component]:
    words = [
        html.H2(dcc.Link(name(e), href=session.href(f"/e/{e.id}"))),
        html.Span(probability(e), className="p"),
        html.P(f"{e.explainer_title} · {e.model_name}", className="quiet"),
        html.Div(badge(e), className="badges"),
    ]
    return [picture(e), html.Div(words, className="words"), pick(e)]


def pick(e: Explanation) -> Component | None:
    """Chooses a finished one for a comparison."""
    if e.state != "succeeded":
        return None
    data = {
        "data-pick": e.id,
        "aria-pressed": "false",
        "aria-label": f"Choose {name(e)}, {e.explainer_title}, to compare",
    }
    return html.Button("compare", className="pick", title="Choose to compare (c)", **data)


def picture(e: Explanation) -> Component:
    if e.state != "succeeded":
        return html.Div(UNFINISHED[e.state], className="shot waiting")
    # The alternative text says what a person would say; without a summary the name beside it is enough.
    return lazy(session.src(f"/api/v1/explanations/{e.id}/card.png"), e.summary, className="shot")


def name(e: Explanation) -> str:
    if prediction.drawn(e):
        return e.title or f"“{e.input_name}”"
    return e.title or e.target_name or (e.prediction[0].name if e.prediction else e.input_name or e.id)


def probability(e: Explanation) -> str:
    """Of the class in question: without decimals, because a card is for recognising, not for measuring."""
    wanted = (e.target or {}).get("class")
    p = next((p for p in e.prediction if p.index == wanted), None)
    return "" if p is None else output(p, 0)


def badge(e: Explanation) -> Component:
    if e.state != "succeeded":
        return html.Span(UNFINISHED[e.state], className="trust")
    return trust.badge(e.trust)
