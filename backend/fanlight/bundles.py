"""Where bundles are: those that ship with the package, and those installed beside the environment's packages, so that they outlive every
data folder."""

from __future__ import annotations

import sys
from pathlib import Path

import fanlight_models

DEFAULT = "efficientnet-lite0"
"""The bundle that `make run` installs."""


def folder() -> Path:
    """Folder of the bundles that `fanlight models install` wrote into this environment."""
    return Path(sys.prefix) / "share" / "fanlight" / "models"


PLACE = Path(fanlight_models.__file__).parent / "bundles"
"""What ships with the package."""


def shipped() -> list[Path]:
    """The bundles that were trained by the recipes of this package, by name."""
    return sorted(p.parent for p in PLACE.glob("*/bundle.toml"))


def pipelines() -> list[Path]:
    """The folders in diffusers' layout that were trained by them, by name."""
    return sorted(p.parent for p in PLACE.glob("*/model_index.json"))


def installed() -> list[Path]:
    """The installed bundles, by name."""
    return sorted(p.parent for p in folder().glob("*/bundle.toml"))


def derived(data_dir: Path) -> Path:
    """Folder of the models that were made of others: those of a data folder, so that they go where it goes."""
    return data_dir / "derived"


def made(data_dir: Path) -> list[Path]:
    """The bundles in there, by name; what is still being written begins with a dot."""
    return sorted(p.parent for p in derived(data_dir).glob("[!.]*/bundle.toml"))
