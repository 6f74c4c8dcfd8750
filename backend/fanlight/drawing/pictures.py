"""The pictures beside a share page, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fanlight.artifact import Artifact
from fanlight.decoding import Pixels
from fanlight.drawing import renderer, scene
from fanlight.drawing.image_map import fitted
from fanlight.drawing.scene import OWN, Style
from fanlight.drawing.seen import Seen, marked
from fanlight.images import apply_edits, png

NAMES = ("overlay.png", "picture.png", "curves.png", "curves-dark.png")
SIDE = 640
CURVES = 960


def extent(drawn: Artifact) -> tuple[int, int]:
    """(width, height) of overlay and picture of this map."""
    height, width = fitted(scene.grid(drawn), SIDE)
    return width, height


def share_image(
    name: str,
    snapshot: Mapping[str, Any],
    pixels: Pixels,
    drawn: Artifact,
    curves: Artifact | None,
    view: Mapping[str, Any],
) -> bytes:
    """PNG of one of NAMES for a frozen explanation.

    Args:
        snapshot: the explanation as JSON; its edits are applied to `pixels`.
        pixels: (h, w, 3) the stored picture.
        drawn: the map over it.
        curves: of its trust, for the curves.
        view: the view state of the share.

    Raises:
        KeyError: not one of NAMES, or curves that were never made.
    """
    if name.startswith("curves") and name in NAMES:
        if curves is None:
            raise KeyError(name)
        return png(renderer(curves.kind).image(curves, size=CURVES, dark=name == "curves-dark.png"), level=6)
    seen = apply_edits(pixels, [edit for edit in snapshot.get("edits", ()) if "mask_region" in edit])
    if name == "picture.png":
        picture, looked = scene.picture(seen, drawn, size=SIDE), Seen.of(view)
        if looked.fits(drawn) and looked.region is not None:
            picture = marked(picture, looked.region)
        return png(picture, level=6)
    if name == "overlay.png":
        large = 2 * SIDE if drawn.kind in OWN else SIDE  # it has letters
        return png(scene.overlay(seen, drawn, size=large, style=Style.of(view)), level=6)
    raise KeyError(name)
