"""Where installed bundles are: beside the environment's packages, so that they outlive every data folder."""

from __future__ import annotations

import sys
from pathlib import Path

DEFAULT = "efficientnet-lite0"
"""The bundle that `make run` installs."""


def folder() -> Path:
    """Folder of the bundles that `fanlight models install` wrote into this environment."""
    return Path(sys.prefix) / "share" / "fanlight" / "models"


def installed() -> list[Path]:
    """The installed bundles, by name."""
    return sorted(p.parent for p in folder().glob("*/bundle.toml"))
