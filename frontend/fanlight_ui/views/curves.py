"""Artifact kind `curves`: lines with bands, drawn by the server in both schemes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component
from fanlight_ui.session import src
from fanlight_ui.views.base import Scene, table

from fanlight.wire import ArtifactRef


def view(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    return html.Div([drawing(ref, told.get("sentence", ""), scene.size), table(told, "Curves as a table")], className="view")


def drawing(ref: ArtifactRef, alt: str, size: int) -> Component:
    """Both pictures of the curves; the one that does not fit the scheme is not loaded."""
    url = f"{src(ref.url)}/render.png?size={size}"
    return html.Div(
        [
            dmc.Box(html.Img(src=url, alt=alt, loading="lazy"), darkHidden=True),
            dmc.Box(html.Img(src=f"{url}&dark=true", alt=alt, loading="lazy"), lightHidden=True),
        ],
        className="curves",
    )
