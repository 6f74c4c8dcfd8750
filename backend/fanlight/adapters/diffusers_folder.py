"""Text-to-image models from a folder that diffusers wrote (`fanlight_models.diffusion.folders`), here or by its name on the hub (`snapshots`).
No code of the folder is run, no pickle is opened."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters import hub, snapshots
from fanlight.adapters.sources import hub_name

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.text_to_image import Painter

MAX_TEXT = 1 << 20
TEXTS = (".json", ".txt", ".model")
"""Configuration and tokenizers: with the weights they say what the model is."""
EXPERIMENTAL = ("StableThree", "Flux")


def load(source: Mapping[str, Any], device: torch.device | str = "cpu") -> Painter:
    """{"diffusers": folder, or owner/name[@revision] on the hub}. Errors: BadModel for another kind of folder, pickled weights, an unknown prediction
    type, a network that was distilled into few steps, what could not be fetched."""
    hub.required("diffusers", "diffusion")
    hub.required("transformers", "diffusion")
    from torch import nn

    from fanlight.adapters.text_to_image import Painter
    from fanlight_models.diffusion import Conditioning, folders, stable
    from fanlight_models.diffusion.generate import GUIDANCE

    found = snapshots.fetched(source["diffusers"]) if hub_name(source["diffusers"]) else None
    folder = Path(source["diffusers"]) if found is None else found.folder
    if not folder.is_dir():
        raise hub.BadModel(f"There is no folder “{folder}”.", given=str(folder))
    called = folder.name if found is None else found.name
    try:
        read = folders.read(folder, str(device), name=called)
        read.encode(
            [Conditioning("")]
        )  # transformers hangs hooks of its own into a text encoder when it is first asked
    except stable.BadFolder as e:
        raise hub.BadModel(str(e), given=str(folder)) from e
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as e:
        said = str(e).strip().partition("\n")[0]
        raise hub.BadModel(f"“{called}” cannot be loaded by diffusers: {said}", given=str(folder)) from e
    own = folders.own(folder)
    parts = {name: value for name, value in vars(read).items() if isinstance(value, nn.Module)}
    parts |= {f"text_{n}": encoder for n, (_, encoder) in enumerate(getattr(read, "texts", ()))}
    vae = getattr(read.codec, "vae", None)
    card = next((f for f in (folder / "card.md", folder / "README.md") if f.is_file()), None)
    experimental = ", read as an experiment" if type(read).__name__ in EXPERIMENTAL else ""
    about = [
        f"A text-to-image model from a folder of diffusers{experimental}.",
        "" if found is None else f"It is “{found.name}” of the hub at commit {found.commit[:12]}.",
        getattr(read, "caveat", ""),
    ]
    return Painter(
        read,
        read.codec,
        nn.ModuleDict({**parts, **({} if vae is None else {"vae": vae})}),
        # What else of a repository lies in the cache is nothing of the model: its commit says what the texts are.
        identity=["diffusers", *(described(folder) if found is None else [found.name, found.commit])],
        name=str(own.get("name", called.rpartition("/")[2]))[:200],
        description=str(own.get("description", ""))[:2000] or " ".join(filter(None, about)),
        terms=str(own.get("terms", ""))[:2000],
        examples=[str(e)[:300] for e in own.get("examples", ())][:12],
        guidance=folders.guidance(folder, getattr(read, "guidance", GUIDANCE)),
        card=card.read_text(encoding="utf-8", errors="replace")[:MAX_TEXT] if card else "",
        pinned=None if found is None else {"diffusers": found.pinned},
        versions={} if found is None else {found.name: found.commit},
    )


def described(folder: Path) -> list[list[str]]:
    """Name and digest of every text that says how the networks are built and how words become numbers."""
    files = (f for f in sorted(folder.rglob("*")) if f.suffix in TEXTS and f.is_file())
    return [[str(f.relative_to(folder)), sha256(f.read_bytes()).hexdigest()] for f in files]
