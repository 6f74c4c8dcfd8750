"""Doing something with an explanation: hiding a part of the picture, sharing, deleting, comparing a recomputation. Pure parts."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui.views import base
from fanlight_ui.views.numbers import day, digits

CORNERS = ("left", "top", "right", "bottom")
HIDE = "Hide this part and ask again"


def hide(record: wire.Explanation) -> Component | None:
    """A picture to draw a rectangle on, and the same rectangle as four numbers for the keyboard."""
    shown = base.seen(record)
    if shown is None:
        return None
    ids = [f"ex-hide-{c}" for c in CORNERS]
    ends = [round(v) for v in shown]  # as the server rounds them
    fields = [
        dmc.NumberInput(
            id=id,
            label=f"{corner.capitalize()}",
            description=f"{ends[i % 2]} to {ends[2 + i % 2]} px",
            placeholder=f"{ends[i]} px",
            min=ends[i % 2],
            max=ends[2 + i % 2],
            startValue=ends[i],
            step=1,
            allowDecimal=False,
            size="sm",
            suffix=" px",
            clampBehavior="none",
        )
        for i, (corner, id) in enumerate(zip(CORNERS, ids, strict=True))
    ]
    sketch = html.Div(
        [
            html.Img(src=base.picture(record.input, shown), alt="The picture, to draw a rectangle on"),
            *[base.hidden(r, shown) for r in base.hidden_regions(record.edits)],
            html.Span(className="drawn"),
        ],
        className="sketch",
        **{"data-draw": "1", "data-box": ",".join(f"{v:g}" for v in shown), "data-into": " ".join(ids)},
    )
    words = [
        html.H2("Change something"),
        html.P(
            "Draw a rectangle on the picture, or type its corners. The model is asked again with that part turned grey; "
            "the new answer is a record of its own, beside this one."
        ),
        html.P(
            f"Corners are counted in pixels of the whole picture. The model sees columns {ends[0]} to {ends[2]} "
            f"and rows {ends[1]} to {ends[3]} of it, which is what is shown here.",
            className="quiet",
        ),
        html.Div(fields, className="corners"),
        html.Div(
            [
                html.Button(HIDE, id="ex-hide", className="button primary"),
                html.Span(id="ex-hide-said", role="status"),
            ],
            className="row",
        ),
    ]
    return html.Div([sketch, html.Div(words)], className="change")


def region(values: Sequence[float | str | None]) -> list[int] | None:
    """The rectangle of four number fields, ordered; None where a corner is missing or it has no area."""
    if any(v in (None, "") for v in values):
        return None
    x0, y0, x1, y1 = (round(float(v)) for v in values if v is not None)
    found = [min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)]
    return found if found[2] > found[0] and found[3] > found[1] else None


def share_dialog(days: int) -> Component:
    return dmc.Modal(
        [
            html.P(
                "Whoever has the link sees exactly this, frozen: picture, map, numbers and provenance. "
                "They can change nothing and reach nothing else. You can revoke it under Shares."
            ),
            dmc.NumberInput(
                id="ex-share-days",
                label="Days until it expires",
                value=days,
                min=1,
                max=3650,
                step=1,
                allowDecimal=False,
            ),
            html.Div(
                html.Button("Make the link", id="ex-share-make", className="button primary"),
                className="row",
                style={"marginTop": 12},
            ),
            html.Div(id="ex-share-made", role="status"),
        ],
        id="ex-share-dialog",
        title="Share this explanation",
        closeButtonProps={"aria-label": "Close"},
    )


def shared(share: wire.NewShare) -> list[Component]:
    """The link, once."""
    parts: list[Component] = [
        html.Div(
            [
                html.Span(share.url, id="ex-share-url", className="snippet", style={"margin": 0}),
                html.Button("Copy", className="button", **{"data-copy": "ex-share-url"}),
            ],
            className="link-made",
        ),
        html.P(f"It is shown only now, and works until {day(share.expires)}.", className="quiet"),
    ]
    if share.loopback_only:
        parts.append(
            html.P(
                [
                    html.Strong("Only you can open it. "),
                    "This server listens on this machine only. Start it with --host and FANLIGHT_TOKEN set, "
                    "or send the self-contained page from Export.",
                ],
                className="warning",
            )
        )
    return parts


def delete_dialog() -> Component:
    return dmc.Modal(
        [
            html.Div(id="ex-delete-says"),
            html.Div(
                [
                    html.Button("Delete it", id="ex-delete-sure", className="button danger"),
                    html.Button("Keep it", id="ex-delete-not", className="button"),
                ],
                className="row",
            ),
        ],
        id="ex-delete-dialog",
        title="Delete this explanation?",
        closeButtonProps={"aria-label": "Close"},
    )


def delete_says(shares: Sequence[wire.Share], id: str, now: float) -> list[Component]:
    """What a deletion takes along."""
    alive = [s for s in shares if id in s.explanations and s.revoked is None and s.expires > now]
    if not alive:
        return [html.P("It cannot be brought back. No live link shows it.")]
    listed = [html.Li(f"made {day(s.created)}, expires {day(s.expires)}, opened {s.views} times") for s in alive]
    what = "this link" if len(alive) == 1 else f"these {len(alive)} links"
    return [html.P(f"It cannot be brought back, and {what} to it will be revoked:"), html.Ul(listed)]


def verdict(record: wire.Explanation) -> str:
    """How a recomputation compares with what it computed again, in a sentence."""
    found = record.verified
    if record.state != "succeeded" or found is None:
        return "Recomputing ended without a result; the stored numbers stand."
    if found.equal:
        return "Recomputed and equal, bit for bit."
    return f"Recomputed: the largest difference is {digits(found.largest_difference, 2)} of the largest value."
