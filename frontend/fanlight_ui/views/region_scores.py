"""Artifact kind `region-scores`: a value per region, laid over the picture. The scores of every class are stored: the target switches live."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html
from dash.development.base_component import Component

from fanlight.wire import ArtifactRef
from fanlight_ui.views.base import Scene, over_picture, scale


def view(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    return html.Div([over_picture(ref, told, scene), scale(told["legend"], scene.slot)], className="view")
