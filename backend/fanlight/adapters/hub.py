"""What the models of all libraries share: options of their source, class names, published weights in a cache.

Published weights often come as a pickle, which the server never opens: `published` fetches and converts them in a process of its
own (`python -m fanlight.adapters.download`), where torch's restricted unpickler reads them, and keeps safetensors.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters.weights import BadWeights
from fanlight.errors import BadRequest

if TYPE_CHECKING:
    import torch
    from torch import nn

    from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

PATIENCE = 1800  # seconds for a download


class BadModel(BadRequest):
    code = "bad_model"


def required(package: str, extra: str = "") -> None:
    """Says how to install a library that is missing. Args: extra: of Fanlight, that brings it; its own name if not given."""
    if find_spec(package) is None:
        raise BadModel(
            f"Models of {package} need the package {package}, which is not installed here.",
            code="not_installed",
            given=package,
            hint=f"pip install 'fanlight[{extra or package}]'",
        )


def adapter(
    net: nn.Module,
    source: Mapping[str, Any],
    *,
    classes: Sequence[str],
    preprocessing: Preprocessing,
    device: torch.device | str,
    name: str,
    code: str,
    head: str = "single-label",
    description: str = "",
    terms: str = "",
    card: str = "",
) -> TorchImageClassifier:
    """The adapter around a network of a library. `classes`: names of its outputs, which the source's option replaces."""
    from fanlight.adapters.image_classifier import TorchImageClassifier

    return TorchImageClassifier(
        net.to(device),
        classes=named(source["classes"]) if "classes" in source else distinct(classes),
        preprocessing=preprocessing,
        features_at=source.get("features", "auto"),
        head=source.get("head", head),
        unit=source.get("unit", ""),
        name=name,
        description=description,
        terms=terms,
        card=card,
        code=code,
    )


def named(file: str) -> list[str]:
    """The class names of a text file, one a line."""
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise BadModel(f"The class names in “{file}” cannot be read: {e}.", given=file) from e
    return [line.strip() for line in lines if line.strip()]


def distinct(names: Sequence[str]) -> list[str]:
    """Names that differ: those that occur several times get their index. ImageNet has two cranes."""
    several = {n for n, count in Counter(names).items() if count > 1}
    return [f"{n} ({i})" if n in several else n for i, n in enumerate(names)]


def fitting(names: Sequence[str], net: nn.Module, size: tuple[int, int]) -> list[str]:
    """The published names where the network, asked once, has as many outputs; else its outputs are numbered."""
    import torch

    with torch.no_grad():
        count = int(net.eval()(torch.zeros(1, 3, *size)).shape[1])
    return list(names) if count == len(names) else [f"class {i}" for i in range(count)]


def published(kind: str, name: str, weights: str) -> Path:
    """The file of published weights, fetched once; BadWeights with a sentence where that fails."""
    import torch

    cached = Path(torch.hub.get_dir()) / "fanlight" / f"{kind}-{name}-{weights}.safetensors"
    if cached.is_file():
        return cached
    cached.parent.mkdir(parents=True, exist_ok=True)
    hint = f"Name a file instead: {kind}:{name}?weights=/path/to/file.safetensors"
    command = [sys.executable, "-m", "fanlight.adapters.download", kind, name, weights, str(cached)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise BadWeights(f"Fetching the weights of {name} took more than {PATIENCE} s.", hint=hint) from None
    if run.returncode:
        said = run.stderr.strip().splitlines()[-1:] or [f"exit code {run.returncode}"]
        raise BadWeights(f"The weights of {name} could not be fetched: {said[0][:300]}", given=weights, hint=hint)
    return cached
