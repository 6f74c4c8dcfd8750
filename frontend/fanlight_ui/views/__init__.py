"""One view per artifact kind: Dash components around the server's rendering. No page knows a method; it asks `show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash.development.base_component import Component

from fanlight.wire import ArtifactRef
from fanlight_ui.views import concepts, curves, image_map, prototypes, region_scores, words
from fanlight_ui.views.base import Scene, View

VIEWS: dict[str, View] = {
    "image-map": image_map.view,
    "region-scores": region_scores.view,
    "curves": curves.view,
    "concepts": concepts.view,
    "prototypes": prototypes.view,
    "words": words.view,
}

PICTURES = ("image-map", "region-scores")
"""Kinds that lie over the picture and have a scale that panels can share."""

SCALED = (*PICTURES, "words")
"""Kinds whose drawing takes the ends of a scale from whoever shows several side by side."""

PAGES: dict[str, tuple[str, str]] = {
    "concepts": ("concepts", "Correct the concepts"),
    "prototypes": ("prototypes", "This looks like that"),
    "words": ("words", "Which word put what where?"),
}
"""Kinds with a page of their own, `/e/{id}/{path}`: its path, and what the link to it says."""


def show(ref: ArtifactRef, told: Mapping[str, Any], scene: Scene) -> Component:
    """The view of an artifact, by its kind."""
    return VIEWS[ref.kind](ref, told, scene)


def principal(artifacts: list[ArtifactRef]) -> ArtifactRef | None:
    """The artifact that stands for an explanation: its first map, else its first."""
    return next((a for a in artifacts if a.kind in PICTURES), artifacts[0] if artifacts else None)


def page(artifacts: list[ArtifactRef]) -> tuple[str, str] | None:
    """The page of its own of what stands for an explanation."""
    chosen = principal(artifacts)
    return PAGES.get(chosen.kind) if chosen else None
