"""Artifact kind `curves`: lines with bands, drawn by the server in both schemes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from fanlight.wire import ArtifactRef
from fanlight_ui.session import src
from fanlight_ui.views.base import Scene, table


def view(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    return html.Div(
        [drawing(ref, told.get("sentence", ""), scene.size), table(told, "Curves as a table")], className="view"
    )


def drawing(ref: ArtifactRef, alt: str, size: int) -> Component:
    """Both pictures of the curves; the style sheet takes the one that fits the scheme, and only that one is loaded."""
    url = f"{src(ref.url)}/render.png?size={size}"
    return html.Div(
        className="curves",
        role="img",
        style={"--light": f"url({url})", "--dark": f"url({url}&dark=true)"},
        **{"aria-label": alt},
    )
