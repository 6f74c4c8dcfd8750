"""Drawings of artifacts: one pure renderer per kind, used by pages, share page, preview, export and notebook alike."""

from __future__ import annotations

from fanlight.drawing.base import Renderer
from fanlight.drawing.concepts import Concepts
from fanlight.drawing.curves import Curves
from fanlight.drawing.image_map import ImageMap
from fanlight.drawing.prototypes import Prototypes
from fanlight.drawing.region_scores import RegionScores
from fanlight.drawing.words import Words

RENDERERS: dict[str, Renderer] = {
    r.kind: r for r in (ImageMap(), RegionScores(), Curves(), Concepts(), Prototypes(), Words())
}


def renderer(kind: str) -> Renderer:
    """The renderer of an artifact kind; KeyError for a kind that is not in `fanlight.artifact.KINDS`."""
    return RENDERERS[kind]
