"""Artifact kind `concepts`: bars that the server draws in both schemes. Answering happens on a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from fanlight.wire import ArtifactRef
from fanlight_ui.session import src
from fanlight_ui.views.base import Scene


def view(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    x0, y0, x1, y1 = (float(v) for v in told.get("meta", ref.meta)["box"])
    url = f"{src(ref.url)}/render.png?size={scene.size}"
    bars = html.Div(
        className="curves",
        role="img",
        style={
            "--light": f"url({url})",
            "--dark": f"url({url}&dark=true)",
            "aspectRatio": f"{x1 - x0:g} / {y1 - y0:g}",
        },
        **{"aria-label": told.get("sentence", "")},
    )
    return html.Div(bars, className="view")
