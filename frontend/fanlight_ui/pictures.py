"""Pictures that load once they are near the screen; Dash's own image has no such attribute."""

from __future__ import annotations

import dash_mantine_components as dmc
from dash.development.base_component import Component


def lazy(src: str, alt: str = "", **props: object) -> Component:
    return dmc.Image(src=src, alt=alt, attributes={"root": {"loading": "lazy"}}, **props)
