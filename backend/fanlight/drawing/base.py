"""The contract of a renderer: one module per artifact kind, pure (arrays -> PNG, table, sentence), no torch, no browser.

The same drawing serves the pages, the share page, the preview image, the exported file and the notebook. Colour maps and ranges are the
caller's choice; what a map means without one is decided here, once: signed maps are symmetric about 0, unsigned ones start at 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from PIL import Image

from fanlight.artifact import Artifact


@dataclass(frozen=True)
class Legend:
    """What must be printed beside a map: its ends, unit and colours.

    Args:
        lo, hi: values of the first and last colour.
        unit: of the values.
        cmap: name of the colour map.
        stops: hex colours from lo to hi, evenly spaced.
        lo_label, hi_label: words for the ends ("against", "for"; "", "more").
    """

    lo: float
    hi: float
    unit: str
    cmap: str
    stops: tuple[str, ...]
    lo_label: str = ""
    hi_label: str = ""


@dataclass(frozen=True)
class Table:
    """The text alternative of a drawing: columns with units in their names, rows most important first."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...] = field(default_factory=tuple)


class Renderer(Protocol):
    """One per artifact kind, registered in `fanlight.drawing.RENDERERS`."""

    kind: str

    def legend(
        self, artifact: Artifact, *, cmap: str | None = None, lo: float | None = None, hi: float | None = None
    ) -> Legend:
        """The scale that `image` uses for the same arguments."""
        ...

    def image(
        self,
        artifact: Artifact,
        *,
        cmap: str | None = None,
        lo: float | None = None,
        hi: float | None = None,
        size: int | None = None,
        dark: bool = False,
    ) -> Image.Image:
        """The drawing alone, without the picture under it. `size`: length of the longer side in pixels."""
        ...

    def table(self, artifact: Artifact, *, classes: list[str] | None = None) -> Table:
        """The numbers that matter, for screen readers and CSV."""
        ...

    def detail(self, artifact: Artifact) -> dict[str, Any]:
        """What a page draws beyond the picture, JSON-able; {} where the picture says it all."""
        ...

    def sentence(self, artifact: Artifact, *, target: str = "") -> str:
        """What a person would say of it: "The middle and the upper left carry 61 % of the evidence for cardinal." """
        ...
