"""Data sets with concepts from files: the official layout of CUB-200-2011 (`cub`), a CSV beside a folder of images (`images`), one table (`table`).

All give `Labelled`. What does not fit is refused with `BadData`, a sentence that names file and line.
"""

from __future__ import annotations

from fanlight_models.concepts.data.base import BadData as BadData, Labelled as Labelled
