"""Weights in several files: what the index beside them names, looked at before a library follows it."""

from __future__ import annotations

import json
from pathlib import Path

INDEX = "*.safetensors.index*.json"


def strangers(folder: Path) -> list[str]:
    """What the indices of a folder name that is no safetensors file of that folder.

    A library opens whatever an index names, pickles too, and the file that it names may lie anywhere. An index that cannot be read is named
    itself.
    """
    found: set[str] = set()
    for index in sorted(folder.glob(INDEX)):
        try:
            named = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
            found |= {str(n) for n in named if Path(str(n)).name != n or not str(n).endswith(".safetensors")}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            found.add(index.name)
    return sorted(found)
