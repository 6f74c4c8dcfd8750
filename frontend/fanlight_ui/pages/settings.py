"""Settings: how the pages look, and the facts of the server."""

import dash
from dash import html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight_ui import errors, session

dash.register_page(__name__, path="/settings", title="Settings · Fanlight")


@errors.page
async def layout(**_query: str) -> Component:
    system = await session.ask(calls.system())
    return html.Main([html.H1("Settings"), html.P(f"Fanlight {system.version} on {system.device}")], className="page narrow")
