"""Fetches published weights and keeps them as safetensors: `python -m fanlight.adapters.download KIND NAME WEIGHTS FILE`.

A process of its own, because such weights may be a pickle. Only torch's restricted unpickler opens it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def fetch(kind: str, name: str, weights: str) -> dict[str, Tensor]:
    """The tensors of the weights that a library publishes."""
    if kind == "torchvision":
        from torchvision.models import get_model_weights

        found: dict[str, Tensor] = get_model_weights(name)[weights].get_state_dict(
            progress=False, check_hash=True, weights_only=True
        )
        return found
    import timm

    return dict(timm.create_model(name, pretrained=True).state_dict())


def main(kind: str, name: str, weights: str, file: str) -> None:
    from safetensors.torch import save_file

    tensors = {k: v.detach().clone().contiguous() for k, v in fetch(kind, name, weights).items()}
    part = Path(file).with_suffix(f".{os.getpid()}.part")
    try:
        save_file(tensors, part)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
