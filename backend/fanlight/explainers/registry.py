"""The registry: one explicit tuple of modules; a test asserts that it equals the files in the folder. Third parties come by entry point
(`fanlight.explainers`) or by a Python file named in FANLIGHT_EXPLAINERS.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from fanlight.errors import unknown
from fanlight.explainers.base import Explainer

MODULES = (
    "attribution.saliency",
    "attribution.integrated_gradients",
    "attribution.grad_cam",
    "attribution.occlusion",
    "attribution.kernel_shap",
    "attribution.input_x_gradient",
    "attribution.smooth_grad",
    "attribution.expected_gradients",
    "attribution.grad_cam_plus_plus",
    "attribution.layer_cam",
    "attribution.rise",
    "attribution.lime",
    "attribution.shapley",
    "attribution.guided_backprop",
    "attribution.deep_lift",
    "attribution.lrp",
    "attribution.attn_lrp",
    "attribution.attention_rollout",
    "attribution.attention_x_gradient",
    "attribution.random",
    "attribution.edges",
    "concepts.scbm",
    "prototypes.protovit",
    "diffusion.diffusion_pid",
)


def declared(module: ModuleType) -> type[Explainer]:
    """The one explainer that a module declares."""
    found = [
        v
        for v in vars(module).values()
        if isinstance(v, type) and issubclass(v, Explainer) and v.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(f"{module.__name__} must declare exactly one explainer, it declares {len(found)}")
    return found[0]


def from_file(path: Path) -> type[Explainer]:
    """The explainer of a Python file that the operator names. It is code and runs as such: never a visitor's file."""
    spec = importlib.util.spec_from_file_location(f"fanlight_explainer_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return declared(module)


@cache
def registry(files: tuple[str, ...] = ()) -> dict[str, type[Explainer]]:
    """Name -> explainer, in the order of declaration, ours first."""
    ours: Iterable[type[Explainer]] = (declared(importlib.import_module(f"fanlight.explainers.{m}")) for m in MODULES)
    others = [e.load() for e in entry_points(group="fanlight.explainers")]
    found: dict[str, type[Explainer]] = {}
    for explainer in (*ours, *others, *(from_file(Path(f)) for f in files)):
        if explainer.name in found:
            raise ValueError(f"two explainers are named {explainer.name!r}")
        found[explainer.name] = explainer
    return found


def find(name: str, files: tuple[str, ...] = ()) -> type[Explainer]:
    """The explainer of that name, or a 404 that lists the names."""
    known = registry(files)
    if name not in known:
        raise unknown("explainer", name, list(known), hint="GET /api/v1/explainers lists them.")
    return known[name]
