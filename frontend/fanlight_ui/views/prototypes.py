"""Artifact kind `prototypes`: the first rows of "this part looks like that part" as the server draws them; the rest is on the page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from fanlight.wire import ArtifactRef
from fanlight_ui.session import src
from fanlight_ui.views.base import Scene


def view(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    address = f"{src(ref.url)}/render.png?size={2 * scene.size}"
    box = [float(v) for v in told.get("meta", ref.meta)["box"]]
    style = {
        "aspectRatio": f"{box[2] - box[0]:g} / {box[3] - box[1]:g}",
        "--light": f"url('{address}')",
        "--dark": f"url('{address}&dark=true')",
    }
    drawn = html.Div(className="rows-drawn", role="img", style=style, **{"aria-label": told.get("sentence", "")})
    return html.Div(drawn, className="view")
