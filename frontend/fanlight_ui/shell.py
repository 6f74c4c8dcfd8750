"""What surrounds every page: header, skip link, live region, toasts, the stores that events are written to."""

from __future__ import annotations

import dash
import dash_mantine_components as dmc
from dash import Input, Output, State, dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight_ui import may, session, theme
from fanlight_ui.tour import tour

PAGES = (
    ("Gallery", "/"),
    ("Explain", "/explain"),
    ("Models", "/models"),
    ("Data", "/data"),
    ("Jobs", "/jobs"),
    ("Shares", "/shares"),
    ("Settings", "/settings"),
)


def layout() -> Component:
    """The whole document. It holds nothing of any visitor: pages ask for what they show."""
    return dmc.MantineProvider(
        [
            html.A("Skip to the content", href="#content", className="skip"),
            header(),
            *may.frame(),
            html.Div(dash.page_container, id="content", tabIndex="-1"),
            html.Div(id="live", role="status", className="sr", **{"aria-live": "polite"}),
            dmc.NotificationContainer(id="toasts", position="bottom-right"),
            dcc.Store(id="events"),
            dcc.Store(id="transitions"),
            dcc.Store(id="settled"),
            tour(),
        ],
        theme=theme.THEME,
        defaultColorScheme="auto",
    )


def mark() -> Component:
    return html.Img(src=dash.get_asset_url("mark.svg"), alt="", className="mark", width=28, height=28)


def header() -> Component:
    links = [dcc.Link(name, href=session.href(path), className="nav") for name, path in PAGES]
    search = html.Form(
        [
            html.Label("Search explanations, models, tags", htmlFor="search", className="sr"),
            dcc.Input(
                id="search",
                name="q",
                type="search",
                placeholder="Search explanations, models, tags",
                autoComplete="off",
            ),
            html.Kbd("/", **{"aria-hidden": "true"}),
        ],
        action=session.href("/"),
        method="GET",
        className="search",
        role="search",
        **{"data-go": "true"},
    )
    return html.Header(
        [
            dcc.Link([mark(), html.Span("Fanlight")], href=session.href("/"), className="brand"),
            html.Nav(links, **{"aria-label": "Main"}),
            search,
            dcc.Link("", id="running", href=session.href("/jobs"), className="num"),
            scheme_toggle(),
        ],
        className="bar",
    )


def scheme_toggle() -> Component:
    """Switches between light and dark; Settings also offers what the system prefers. `assets/shell.js` does it."""
    return html.Button(
        html.Span("◐", **{"aria-hidden": "true"}),
        id="scheme",
        className="icon",
        title="Light or dark",
        **{"aria-label": "Light or dark"},
    )


def register(app: dash.Dash) -> None:
    """Declares the frame's callbacks on `app`."""
    app.callback(Output("running", "children"), Input("settled", "data"), State("running", "children"))(running)
    app.callback(Output("may", "children"), Input("may", "id"))(may.told)


async def running(_settled: float | None, shown: str) -> str:
    """The header's "2 running", or nothing. Asked again a moment after jobs changed their state, once for all of them."""
    try:
        system = await session.ask(calls.system())
    except Exception:  # the header says nothing rather than disturb every page; pages themselves report
        return shown or ""
    parts = [f"{system.running} running"] if system.running else []
    return " · ".join(parts + ([f"{system.queued} waiting"] if system.queued else []))
