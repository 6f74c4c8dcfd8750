"""A torch network as an `ImageClassifier`: preprocessing as data, features by the name of a module, frozen, with a
digest."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Literal, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from fanlight.adapters import canonical as canonical_form, heads, structure, survey
from fanlight.adapters.attention import Tap
from fanlight.adapters.base import Box, Pixels
from fanlight.adapters.tokens import Grid, read_grid
from fanlight.artifact import canonical
from fanlight.errors import InvalidField

RESAMPLING = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Preprocessing:
    """How a picture becomes an input: a part of it, scaled, then (pixel - mean) / std per channel.

    Args:
        size: (H, W) of the input, 8..2048 each.
        crop: size of the centred part that is used, relative to the largest part of the input's proportions, 0..1;
            None uses the whole picture and lets its proportions go.
        squash: the picture's proportions go, and `crop` is a share of each of its sides.
        interpolation: nearest, bilinear, bicubic or lanczos; smoothed where it shrinks.
        mean, std: per channel (R, G, B), on the scale 0..255.
    """

    size: tuple[int, int]
    crop: float | None = 1.0
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] = "bilinear"
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (255.0, 255.0, 255.0)
    squash: bool = False

    def __post_init__(self) -> None:
        if len(self.size) != 2 or not all(isinstance(n, int) and 8 <= n <= 2048 for n in self.size):
            raise InvalidField(
                "An input's size is two whole numbers (height, width) of 8 to 2048 pixels.", given=list(self.size)
            )
        if self.crop is not None and not 0 < self.crop <= 1:
            raise InvalidField("The crop is a share of the picture above 0 and up to 1, or left out.", given=self.crop)
        if self.interpolation not in RESAMPLING:
            raise InvalidField(
                f"Unknown interpolation “{self.interpolation}”.", given=self.interpolation, allowed=list(RESAMPLING)
            )
        if (
            len(self.mean) != 3
            or len(self.std) != 3
            or not np.isfinite([*self.mean, *self.std]).all()
            or min(self.std) <= 0
        ):
            raise InvalidField(
                "Mean and std are three finite numbers each, std above 0.", given=[list(self.mean), list(self.std)]
            )

    def view(self, width: int, height: int) -> Box:
        """The part of a picture of this size that is used, in whole pixels."""
        if self.crop is None:
            return Box(0, 0, width, height)
        rows, columns = self.size
        unit = min(height / rows, width / columns) * self.crop
        across, down = (self.crop * width, self.crop * height) if self.squash else (unit * columns, unit * rows)
        h, w = max(1, int(down)), max(1, int(across))
        top, left = (height - h + 1) // 2, (width - w + 1) // 2
        return Box(left, top, left + w, top + h)

    def pixels(self, image: Pixels) -> Pixels:
        """(h, w, 3) uint8 -> (H, W, 3) uint8: what `view` shows, at the input's resolution."""
        rows, columns = self.size
        left, top, right, bottom = (int(v) for v in self.view(image.shape[1], image.shape[0]))
        # cut first: scaling a box of the whole would let pixels from outside it bleed in at its border
        part = Image.fromarray(np.ascontiguousarray(image[top:bottom, left:right]))
        return np.asarray(part.resize((columns, rows), RESAMPLING[self.interpolation]))


class Seen(NamedTuple):
    """What one pass showed, all in one graph: logits (B, K); where asked for, the grid (B, D, h, w), the attention of
    each layer (B, heads, N, N), the embedding (B, D)."""

    logits: Tensor
    grid: Tensor | None
    attention: list[Tensor]
    embedding: Tensor | None


@dataclass(eq=False)
class TorchImageClassifier:
    """An `ImageClassifier` (adapters/base.py) around a torch network.

    >>> TorchImageClassifier(net, classes=["cat", "dog"], preprocessing=Preprocessing((224, 224)), features_at="layer4")

    Args:
        net: (B, 3, H, W) float32 -> logits (B, K). Set to eval mode, its parameters frozen.
        classes: K distinct names: of classes, labels, or the values of a regression.
        preprocessing: picture -> input.
        features_at: name of the module whose output is the grid of features that the logits come from, (B, D, h, w),
            (B, h, w, D) or tokens (B, N, D); "auto" looks for it; None where there is none.
        prefix_tokens: how many tokens of a transformer come before those of the picture; None finds it out.
        head: how outputs become predictions: "single-label" (softmax), "multi-label" (a sigmoid each) or "regression"
            (the output is the value).
        unit: of the values of a regression, for example "years".
        name, description, terms, card: for people.
        code: what builds the network (source text, or architecture and configuration); part of the digest.
        differentiable: False where no gradient reaches the input.
        channels_last: keep channels innermost in memory: a third faster for convolutions, but `view` in a network may not like it.
    """

    net: nn.Module
    classes: Sequence[str]
    preprocessing: Preprocessing
    features_at: str | None = None
    name: str = ""
    description: str = ""
    terms: str = ""
    card: str = ""
    code: str = ""
    differentiable: bool = True
    channels_last: bool = False
    prefix_tokens: int | None = None
    head: heads.Kind = "single-label"
    unit: str = ""
    task: str = field(default="image-classifier", init=False)
    asked: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        names = list(self.classes)
        heads.check(self.head, self.unit, len(names))
        if not names or len(set(names)) != len(names) or not all(isinstance(n, str) and n.strip() for n in names):
            raise InvalidField("A model needs a name for each output, all different and none empty.", given=names[:5])
        self.net.eval().requires_grad_(False)
        self.net.to(memory_format=self._layout)
        if self.features_at == "auto":
            self._survey = survey.look(self.net, self.size, prefix=self.prefix_tokens, features=True)
            self.features_at = self._survey.features
        if self.features_at is not None and self.features_at not in dict(self.net.named_modules()):
            known = [n for n, _ in self.net.named_modules() if n][:12]
            raise InvalidField(
                f"The network has no module “{self.features_at}” to read features from.",
                given=self.features_at,
                allowed=known,
            )

    @property
    def size(self) -> tuple[int, int]:
        return self.preprocessing.size

    @property
    def measure(self) -> str:
        """What one output is counted in, as maps print it."""
        return "logit" if self.head != "regression" else self.unit or "value"

    @property
    def capabilities(self) -> frozenset[str]:
        offered = {
            "gradients": self.differentiable,
            "spatial-features": self.features_at is not None and self.differentiable,
            "attention": self._survey.tokens is not None and self.differentiable,
            "embedding": self._survey.embedding is not None,
            "rectifiers": self._structure.rectifiers and self.differentiable,
            "rescale-rule": self._structure.rescale and self.differentiable,
            "relevance-rules": self._canonical and self.differentiable,
        }
        return frozenset(name for name, there in offered.items() if there)

    @property
    def device(self) -> torch.device:
        return next(self.net.parameters(), torch.empty(0)).device

    @cached_property
    def digest(self) -> str:
        """sha256 over weights, code, classes, preprocessing and the place of the features."""
        p = self.preprocessing
        head: dict[str, object] = {
            "task": self.task,
            "code": self.code,
            "classes": list(self.classes),
            "features": self.features_at,
            "preprocessing": [p.size, p.crop, p.interpolation, p.mean, p.std],
        }
        # what came later is in the digest only where it is used, so that older models keep theirs
        if self.prefix_tokens is not None:
            head["prefix"] = self.prefix_tokens
        if p.squash:
            head["squash"] = True
        if self.head != "single-label":
            head["head"] = [self.head, self.unit]
        total = sha256(canonical(head))
        for key, value in sorted(self.net.state_dict().items()):
            total.update(canonical([key, str(value.dtype), list(value.shape)]))
            total.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return total.hexdigest()

    def view(self, width: int, height: int) -> Box:
        return self.preprocessing.view(width, height)

    def pixels(self, image: Pixels) -> Pixels:
        """(h, w, 3) uint8 -> (H, W, 3) uint8: the part that the model sees, as it sees it, before mean and std."""
        return self.preprocessing.pixels(image)

    def prepare(self, image: Pixels) -> Tensor:
        x = torch.from_numpy(self.pixels(image).astype(np.float32).transpose(2, 0, 1).copy()).to(self.device)
        return (x - self._channels(self.preprocessing.mean)) / self._channels(self.preprocessing.std)

    def colour(self, rgb: tuple[float, float, float]) -> Tensor:
        return (self._channels(rgb) - self._channels(self.preprocessing.mean)) / self._channels(self.preprocessing.std)

    def logits(self, x: Tensor) -> Tensor:
        self.asked += len(x)
        out: Tensor = self.net(x.contiguous(memory_format=self._layout))
        return out

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        seen = self.observe(x, grid=True)
        assert seen.grid is not None
        return seen.logits, seen.grid

    def attentions(self, x: Tensor) -> tuple[Tensor, list[Tensor], int, tuple[int, int]]:
        seen = self.observe(x, attention=True)
        prefix, rows, columns = self.tokens
        return seen.logits, seen.attention, prefix, (rows, columns)

    def embedding(self, x: Tensor) -> Tensor:
        seen = self.observe(x, embedding=True)
        assert seen.embedding is not None
        return seen.embedding

    def observe(self, x: Tensor, *, grid: bool = False, attention: bool = False, embedding: bool = False) -> Seen:
        """One pass over (B, 3, H, W) with whatever is asked for beside the logits."""
        grids: list[Tensor | None] = []
        embeddings: list[Tensor] = []
        with ExitStack() as stack:
            if grid:
                stack.callback(read_grid(self._site(), self.size, self.prefix_tokens, grids).remove)
            if embedding:
                head = self._head_layer()
                hook = head.register_forward_pre_hook(lambda _module, inputs: embeddings.append(inputs[0]))
                stack.callback(hook.remove)
            tap = stack.enter_context(Tap()) if attention and self.tokens else None
            logits = self.logits(x)
        if grid and (len(grids) != 1 or grids[0] is None):
            raise InvalidField(
                f"The module “{self.features_at}” must run once and put out a grid (batch, channels, height, width), "
                "or tokens of one.",
                given=f"{len(grids)} runs",
            )
        return Seen(logits, grids[0] if grid else None, tap.rows if tap else [], embeddings[0] if embedding else None)

    def _site(self) -> nn.Module:
        if self.features_at is None:
            raise InvalidField(
                "This model names no module to read features from.",
                hint="Name one: features_at=... in your file, features = ... in bundle.toml.",
            )
        return self.net.get_submodule(self.features_at)

    def _head_layer(self) -> nn.Module:
        if self._survey.embedding is None:
            raise InvalidField("The logits of this model do not come from a linear layer, so it has no embedding.")
        return self.net.get_submodule(self._survey.embedding)

    @property
    def tokens(self) -> Grid:
        """Prefix and grid of the tokens, where attention is offered."""
        if self._survey.tokens is None:
            raise InvalidField("The attention of this model cannot be read.")
        return self._survey.tokens

    @cached_property
    def _survey(self) -> survey.Survey:
        """What the network offers beyond its logits, found by running it once."""
        return survey.look(self.net, self.size, prefix=self.prefix_tokens)

    @cached_property
    def _structure(self) -> structure.Structure:
        """What the network is made of, found by running it once."""
        return structure.look(self.net, self.size)

    @cached_property
    def _canonical(self) -> bool:
        """Whether relevance can be handed back through it."""
        return canonical_form.suitable(self.net, self.size)

    @cached_property
    def held(self) -> int:
        """Bytes that the forward pass of one picture holds for the way back, found by running it once."""
        return structure.held(self.net, self.size)

    @property
    def _layout(self) -> torch.memory_format:
        return torch.channels_last if self.channels_last else torch.contiguous_format

    def _channels(self, rgb: tuple[float, float, float]) -> Tensor:
        return torch.tensor(rgb, dtype=torch.float32, device=self.device).view(3, 1, 1)
