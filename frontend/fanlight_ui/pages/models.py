"""Models: what is registered, what it is for, how many methods fit."""

from __future__ import annotations

from typing import Any

import dash
from dash import dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.wire import Model
from fanlight_ui import errors, session

dash.register_page(__name__, path="/models", title="Models · Fanlight")


@errors.page
async def layout(**_address: Any) -> Component:
    models = await session.ask(calls.models())
    listed = html.Div([card(m) for m in models], className="entries", **{"data-walk": "models"})
    none = html.P(
        "No model is registered. Name bundles or Python files in FANLIGHT_MODELS, and check one with: fanlight doctor MODEL"
    )
    return html.Main([html.Div(html.H1("Models"), className="head"), listed if models else none], className="page")


def card(m: Model) -> Component:
    fits = sum(a.available for a in m.explainers)
    return html.Article(
        [
            html.H2(dcc.Link(m.name, href=session.href(f"/models/{m.id}"))),
            html.P(m.description),
            html.P(facts(m), className="quiet num"),
            html.P(f"{fits} of {len(m.explainers)} methods fit", className="quiet num"),
        ],
        className="card pad item",
        **{"data-item": m.id},
    )


def facts(m: Model) -> str:
    """Task, classes, size and terms in a line."""
    height, width = m.size
    classes = f"{len(m.classes):,} classes" if m.classes else None
    return " · ".join(filter(None, [m.task.replace("-", " "), classes, f"{width} × {height} px", m.terms]))
