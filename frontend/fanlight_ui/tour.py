"""The first-visit tour: three steps, dismissed for good (in the browser's storage; Settings brings it back)."""

from __future__ import annotations

from dash import html
from dash.development.base_component import Component

STEPS = (
    (
        "Ask why",
        "Choose a picture under Explain, or click one under Data. Fanlight asks the model and shows which parts of the picture made its answer.",
    ),
    (
        "See how far to trust it",
        "Each map is measured against a random one on the same picture. Amber means: it is not above random here, so do not read it.",
    ),
    (
        "Keep it, send it",
        "Every explanation is kept in the Gallery under its own address. Share makes a link to exactly what you saw; you can revoke it.",
    ),
)


def tour() -> Component:
    """Hidden until `assets/shell.js` finds that it was not dismissed."""
    steps = [
        html.Li([html.Strong(title), html.P(text)], className="step", hidden=i > 0, **{"data-step": str(i)})
        for i, (title, text) in enumerate(STEPS)
    ]
    return html.Aside(
        [
            html.Ol(steps),
            html.Div(
                [
                    html.Span(f"1 of {len(STEPS)}", className="quiet num", id="tour-place"),
                    html.Button("No, thanks", id="tour-dismiss", className="plain"),
                    html.Button("Next", id="tour-next", className="button primary"),
                ],
                className="row",
            ),
        ],
        id="tour",
        hidden=True,
        className="tour card",
        **{"aria-label": "First steps"},
    )
