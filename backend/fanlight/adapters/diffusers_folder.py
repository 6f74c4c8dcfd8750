"""Text-to-image models from a local folder that diffusers wrote (`fanlight_models.diffusion.folders`). No code of the folder is run, no pickle is
opened, nothing is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import hub

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.text_to_image import Painter

MAX_TEXT = 1 << 20
TEXTS = (".json", ".txt", ".model")
"""Configuration and tokenizers: with the weights they say what the model is."""
EXPERIMENTAL = ("StableThree", "Flux")


def load(source: Mapping[str, Any], device: torch.device | str = "cpu") -> Painter:
    """{"diffusers": folder}. Errors: BadModel for another kind of folder, pickled weights, an unknown prediction type, a network that was
    distilled into few steps."""
    hub.required("diffusers", "diffusion")
    hub.required("transformers", "diffusion")
    from torch import nn

    from fanlight.adapters.text_to_image import Painter
    from fanlight_models.diffusion import Conditioning, folders, stable

    folder = Path(source["diffusers"])
    if not folder.is_dir():
        raise hub.BadModel(f"There is no folder “{folder}”.", given=str(folder))
    try:
        read = folders.read(folder, str(device))
        read.encode(
            [Conditioning("")]
        )  # transformers hangs hooks of its own into a text encoder when it is first asked
    except stable.BadFolder as e:
        raise hub.BadModel(str(e), given=str(folder)) from e
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as e:
        said = str(e).strip().partition("\n")[0]
        raise hub.BadModel(f"“{folder.name}” cannot be loaded by diffusers: {said}", given=str(folder)) from e
    own = folders.own(folder)
    parts = {name: value for name, value in vars(read).items() if isinstance(value, nn.Module)}
    parts |= {f"text_{n}": encoder for n, (_, encoder) in enumerate(getattr(read, "texts", ()))}
    vae = getattr(read.codec, "vae", None)
    card = next((f for f in (folder / "card.md", folder / "README.md") if f.is_file()), None)
    experimental = type(read).__name__ in EXPERIMENTAL
    return Painter(
        read,
        read.codec,
        nn.ModuleDict({**parts, **({} if vae is None else {"vae": vae})}),
        identity=["diffusers", *described(folder)],
        name=str(own.get("name", folder.name))[:200],
        description=str(own.get("description", ""))[:2000]
        or " ".join(
            filter(
                None,
                [
                    f"A text-to-image model from a folder of diffusers{', read as an experiment' if experimental else ''}.",
                    getattr(read, "caveat", ""),
                ],
            )
        ),
        terms=str(own.get("terms", ""))[:2000],
        examples=[str(e)[:300] for e in own.get("examples", ())][:12],
        guidance=folders.guidance(folder),
        card=card.read_text(encoding="utf-8", errors="replace")[:MAX_TEXT] if card else "",
    )


def described(folder: Path) -> list[list[str]]:
    """Name and digest of every text that says how the networks are built and how words become numbers."""
    files = (f for f in sorted(folder.rglob("*")) if f.suffix in TEXTS and f.is_file())
    return [[str(f.relative_to(folder)), sha256(f.read_bytes()).hexdigest()] for f in files]
