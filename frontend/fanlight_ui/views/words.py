"""Artifact kind `words`: the picture and its maps as the server draws them in both schemes; choosing words happens on a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from fanlight.wire import ArtifactRef
from fanlight_ui.views import base
from fanlight_ui.views.base import Scene


def view(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    scale = {} if scene.hi is None else {"hi": repr(float(scene.hi))}
    address = base.address(ref, "render.png", size=str(2 * scene.size), **scale)
    drawn = html.Div(
        className="words-drawn",
        role="img",
        style={"--light": f"url('{address}')", "--dark": f"url('{address}&dark=true')"},
        **{"aria-label": told.get("sentence", "")},
    )
    return html.Div(drawn, className="view")
