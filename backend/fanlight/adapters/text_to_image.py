"""A denoiser with text as a model: words in, a picture out, and its noise predictions counted (docs/diffusion.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fanlight.adapters.base import Box, Pixels
from fanlight.artifact import canonical
from fanlight.images import crop_resize
from fanlight_models.diffusion.codec import Codec, SpaceToDepth
from fanlight_models.diffusion.generate import GUIDANCE
from fanlight_models.diffusion.protocol import Encoded
from fanlight_models.diffusion.words import Conditioning
from fanlight_models.worlds import scenes
from fanlight_models.worlds.scenes.bayes import Bayes

if TYPE_CHECKING:
    from fanlight.adapters.bundle import Manifest

EXACT = "scenes-exact"


class Painter:
    """Task `text-to-image`: an `Attending` denoiser of `fanlight_models.diffusion` whose rows are counted, and its codec.

    Args:
        denoiser: of latents (C, h, w). codec: between those and pictures (B, 3, H, W) from -1 to 1.
        net: what has parameters; an empty module where nothing has.
        identity: JSON-able, what the model is; the digest is of it and of the parameters. examples: prompts to begin with.
        guidance: as pictures of it are usually drawn.
        pinned: the source that names exactly this model, where the given one may mean another tomorrow. versions: of it, for the provenance.
    """

    task = "text-to-image"
    capabilities: frozenset[str] = frozenset()

    def __init__(
        self, denoiser: Any, codec: Codec, net: nn.Module, *, identity: Any, name: str, description: str = "",
        terms: str = "", card: str = "", examples: Sequence[str] = (), guidance: float = GUIDANCE,
        pinned: Mapping[str, str] | None = None, versions: Mapping[str, str] | None = None,
    ):  # fmt: skip
        self.denoiser, self.codec, self.net = denoiser, codec, net.eval().requires_grad_(False)
        self.name, self.description, self.terms, self.card = name, description, terms, card
        self.examples, self.guidance = [str(e) for e in examples], guidance
        self.pinned, self.versions = pinned, dict(versions or {})
        self.asked = 0
        self.shape, self.logsnr, self.law, self.device = denoiser.shape, denoiser.logsnr, denoiser.law, denoiser.device
        self.size = (self.shape[1] * codec.factor, self.shape[2] * codec.factor)
        self.attends = hasattr(denoiser, "noise_and_attention")
        self.caveat = str(
            getattr(denoiser, "caveat", "")
        )  # a sentence about every result, where there is one to be said
        total = sha256(canonical(identity))
        for key, value in sorted(net.state_dict().items()):
            total.update(canonical([key, str(value.dtype), list(value.shape)]))
            total.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        self.digest = total.hexdigest()

    def encode(self, prompts: Sequence[Conditioning]) -> Encoded:
        encoded: Encoded = self.denoiser.encode(prompts)
        return encoded

    def lost(self, text: str) -> str:
        return str(self.denoiser.lost(text))

    def tokens(self, prompt: Conditioning, span: tuple[int, int]) -> list[int]:
        found: list[int] = self.denoiser.tokens(prompt, span)
        return found

    def noise(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> Tensor:
        self.asked += len(z)
        said: Tensor = self.denoiser.noise(z, alpha, encoded)
        return said

    def noise_and_attention(self, z: Tensor, alpha: Tensor, encoded: Encoded) -> tuple[Tensor, Tensor]:
        self.asked += len(z)
        said: tuple[Tensor, Tensor] = self.denoiser.noise_and_attention(z, alpha, encoded)
        return said

    def view(self, width: int, height: int) -> Box:
        """Which part of a given picture it sees: the middle, in the proportions of its own pictures."""
        rows, columns = self.size
        scale = min(width / columns, height / rows)
        x, y = (width - scale * columns) / 2, (height - scale * rows) / 2
        return Box(x, y, width - x, height - y)

    def latent(self, image: Pixels) -> Tensor:
        """(h, w, 3) uint8 of any size -> (C, h, w) float32 on the CPU, of what `view` says, scaled to `size`."""
        seen = np.array(crop_resize(image, self.view(image.shape[1], image.shape[0]), self.size))
        x = torch.from_numpy(seen).permute(2, 0, 1)[None].float() / 127.5 - 1
        with torch.inference_mode():
            found = self.codec.encode(x.to(self.device))
        return found[0].float().cpu().clone()

    def picture(self, latent: Tensor) -> Pixels:
        """(C, h, w) -> (H, W, 3) uint8."""
        with torch.inference_mode():
            x = self.codec.decode(latent[None].to(self.device))[0].float().cpu()
        shown: Pixels = ((x.clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()
        return shown


def load(about: Manifest, device: torch.device | str = "cpu") -> Painter:
    """The bundle's model on `device`. Errors: BadBundle with a sentence where it does not fit."""
    from fanlight.adapters.bundle import BadBundle

    if about.architecture != EXACT:
        raise BadBundle(
            f"“{about.folder.name}” names the architecture “{about.architecture}”, which draws nothing.",
            given=about.architecture,
            allowed=[EXACT],
            hint="A folder of diffusers is named as diffusers:FOLDER.",
        )
    world, side = about.config.get("world", "plain"), about.config.get("side", 16)
    if world not in scenes.WORLDS or side not in scenes.SIDES:
        raise BadBundle(
            f"[config] of “{about.folder.name}” names no world of scenes: {world}, {side}.",
            given=dict(about.config),
            allowed={"world": list(scenes.WORLDS), "side": list(scenes.SIDES)},
        )
    return Painter(
        Bayes(scenes.world(world), side, device=device),
        SpaceToDepth(1),
        nn.Module(),
        identity=[EXACT, scenes.VERSION, world, side],
        name=about.name,
        description=about.description,
        terms=about.terms,
        card=about.card,
        guidance=1.0,  # it is right already
        examples=about.config.get("examples", ()),
    )
