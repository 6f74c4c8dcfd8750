"""What an address that leads nowhere shows."""

import dash
from dash import dcc, html
from dash.development.base_component import Component

from fanlight_ui import session

dash.register_page(__name__, path="/404", title="Not found · Fanlight")


def layout(**_query: str) -> Component:
    return html.Main(
        [
            html.H1("There is nothing at this address"),
            html.P("The explanation may have been deleted, or the link was cut short."),
            dcc.Link("Open the gallery", href=session.href("/"), className="button primary"),
        ],
        className="page narrow",
    )
