"""Exit code 0 where the environment already has a torch and a torchvision within the range that pyproject.toml states.

Runs before anything is installed, so it uses the standard library and pip's own copy of `packaging`.
"""

import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
compute = [Requirement(r) for r in project["optional-dependencies"]["compute"]]
pair = [r for r in compute if r.name in ("torch", "torchvision")]
try:
    kept = all(r.specifier.contains(version(r.name), prereleases=True) for r in pair)
except PackageNotFoundError:
    kept = False
sys.exit(not kept)
