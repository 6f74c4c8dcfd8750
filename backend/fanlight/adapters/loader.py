"""From a source (JSON-able, `adapters.sources`) to a model: {"bundle": folder}, {"file": Python file}, or a model of a
library by name or folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import bundle, python_file
from fanlight.adapters.base import takes
from fanlight.adapters.sources import HUBS, named as named, source as source
from fanlight.errors import BadRequest

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import TorchImageClassifier

MODULES = {
    "torchvision": "torchvision_hub",
    "timm": "timm_hub",
    "transformers": "transformers_folder",
    "diffusers": "diffusers_folder",
}


def load(source: Mapping[str, Any], device: torch.device | str = "cpu") -> TorchImageClassifier:
    """The model, on `device`, frozen and in eval mode; its `digest` names it. Must not be called inside
    `torch.inference_mode()`."""
    if "bundle" in source:
        return bundle.load(Path(source["bundle"]), device)
    if "file" in source:
        return python_file.load(Path(source["file"]), device)
    for kind in HUBS:
        if kind in source:
            loading: Callable[..., TorchImageClassifier] = import_module(f"fanlight.adapters.{MODULES[kind]}").load
            return loading(source, device)
    raise BadRequest(
        "A model's source names a bundle, a file or a model of a library.",
        code="bad_source",
        given=sorted(source),
        allowed=["bundle", "file", *HUBS],
    )


def describe(source: Mapping[str, Any]) -> dict[str, Any]:
    """What `wire.Model` says of a model, with its digest, and the `source` that pins it where the given one does not. Loads it, and so checks
    that it can be loaded and runs once."""
    import torch

    model = load(source)
    rows, columns = model.size
    if takes(model.task) == "prompt":
        return _about(_drew(model))
    grey = model.colour((127.5, 127.5, 127.5)).expand(1, 3, rows, columns)
    try:
        with torch.inference_mode():
            outputs = tuple(model.logits(grey).shape)
    except Exception as e:
        raise BadRequest(
            f"The model “{model.name}” failed on a plain grey picture: {type(e).__name__}: {e}", code="bad_model"
        ) from e
    if outputs != (1, len(model.classes)):
        raise BadRequest(
            f"The model “{model.name}” answers one picture with shape {list(outputs)}; (1, {len(model.classes)}) is "
            f"expected for its {len(model.classes)} classes.",
            code="bad_model",
            given=list(outputs),
            allowed=[1, len(model.classes)],
        )
    return _about(model)


def _drew(model: Any) -> Any:
    """The model, after it predicted the noise of one picture without words. Errors: bad_model."""
    import torch

    from fanlight_models.diffusion import Conditioning

    z, alpha = (
        torch.zeros(1, *model.shape, device=model.device),
        torch.zeros(1, dtype=torch.float64, device=model.device),
    )
    try:
        with torch.inference_mode():
            said = model.noise(z, alpha, model.encode([Conditioning("")]))
    except Exception as e:
        raise BadRequest(
            f"The model “{model.name}” failed on an empty picture without words: {type(e).__name__}: {e}",
            code="bad_model",
        ) from e
    if said.shape != z.shape or not bool(torch.isfinite(said).all()):
        raise BadRequest(
            f"The model “{model.name}” predicts noise of shape {list(said.shape)}, or what is no number; {list(z.shape)} is expected.",
            code="bad_model",
            given=list(said.shape),
            allowed=list(z.shape),
        )
    return model


def _about(model: Any) -> dict[str, Any]:
    return {
        "name": model.name,
        "task": model.task,
        "digest": model.digest,
        "classes": list(getattr(model, "classes", ())),
        "size": list(model.size),
        **({"concepts": list(model.concepts)} if hasattr(model, "concepts") else {}),
        "capabilities": sorted(model.capabilities),
        "head": getattr(model, "head", "single-label"),
        "unit": getattr(model, "unit", ""),
        "description": model.description,
        "terms": model.terms,
        "card": model.card,
        "examples": getattr(model, "examples", []),
        **({"source": dict(model.pinned)} if getattr(model, "pinned", None) else {}),
    }


def read_card(source: Mapping[str, Any]) -> dict[str, str]:
    """Name, description, terms and card for a list, without torch: of a bundle its texts, of a Python file its
    docstring (it is not run), of a model of a library its name."""
    if "bundle" in source:
        about = bundle.manifest(Path(source["bundle"]))
        return {"name": about.name, "description": about.description, "terms": about.terms, "card": about.card}
    for kind in HUBS:
        if kind in source:
            return {"name": Path(source[kind]).name, "description": f"A model of {kind}.", "terms": "", "card": ""}
    path = Path(source["file"])
    return {"name": path.stem, "description": python_file.heading(python_file.source(path)), "terms": "", "card": ""}
