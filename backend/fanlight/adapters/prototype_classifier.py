"""A bundle of a prototype classifier as a model: an image classifier whose logits are sums over prototypes, and that says where these come from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fanlight.adapters.base import Pixels
from fanlight.adapters.bundle import BadBundle, Manifest
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.artifact import canonical
from fanlight.errors import FanlightError
from fanlight_models.prototypes import matching
from fanlight_models.prototypes.bundle import BadPrototypes, Bundle, read
from fanlight_models.prototypes.head import Found, activation
from fanlight_models.prototypes.protovit import ProtoViT


class Answers(nn.Module):
    """The network as every method on classifiers knows them: (B, 3, H, W) -> logits (B, C)."""

    def __init__(self, prototypes: ProtoViT):
        super().__init__()
        self.prototypes = prototypes

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.prototypes(x).logits
        return logits

    @property
    def head(self) -> nn.Linear:
        """The layer that makes the logits."""
        return self.prototypes.head.last_layer


class Looked(NamedTuple):
    """What prototypes found in a batch: `found` as the head says it, and the tokens (B, N, D) of length 1 that they looked at."""

    found: Found
    tokens: Tensor


@dataclass(eq=False)
class TorchPrototypeClassifier(TorchImageClassifier):
    """Task `prototype-classifier`. Args: as `TorchImageClassifier`, whose `net` is an `Answers`; bundle: what the folder held."""

    bundle: Bundle | None = None

    def __post_init__(self) -> None:
        self.task = "prototype-classifier"
        super().__post_init__()

    @property
    def prototypes(self) -> ProtoViT:
        net = self.net
        assert isinstance(net, Answers)
        return net.prototypes

    @property
    def source(self) -> Bundle:
        assert self.bundle is not None
        return self.bundle

    @cached_property
    def gate(self) -> Tensor:
        """(m, K), each 0 or 1, on the CPU."""
        return self.prototypes.head.gate.detach().cpu()

    @cached_property
    def parts(self) -> Tensor:
        """(m, K, D) of length 1; 0 where a part was left out. On the CPU."""
        return self.prototypes.head.parts().detach().cpu()

    @cached_property
    def weight(self) -> Tensor:
        """(C, m), on the CPU."""
        return self.prototypes.head.last_layer.weight.detach().cpu()

    @cached_property
    def near(self) -> Tensor:
        """(N, N) bool: which tokens are neighbours. On the CPU."""
        return self.prototypes.head.near.cpu()

    @property
    def own(self) -> Tensor:
        """(m,): the class of each prototype."""
        return self.prototypes.head.own.cpu()

    @property
    def grid(self) -> tuple[int, int]:
        return self.prototypes.head.grid

    @property
    def radius(self) -> int:
        return self.prototypes.head.radius

    def look(self, x: Tensor) -> Looked:
        """(B, 3, H, W) -> what every prototype found, one pass without gradients."""
        self.asked += len(x)
        with torch.inference_mode():
            z = self.prototypes.features.tokens(x)
            return Looked(self.prototypes.head(z), F.normalize(z, dim=-1))

    def again(
        self, tokens: Tensor, which: Tensor, free: Tensor | None = None, without: list[int] | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The walk of some prototypes over stored tokens.

        Args:
            tokens: (N, D) of length 1. which: (n,) prototypes. free: (N,) bool, tokens that may be used. without: parts that do not take part.

        Returns: similarity (n, K), token (n, K), order (n, K); of parts left out 0, -1, -1. Errors: ValueError.
        """
        count = self.parts.shape[1]
        taking = [k for k in range(count) if k not in (without or ())]
        similarity = torch.zeros(len(which), count)
        token, order = (torch.full((len(which), count), -1) for _ in range(2))
        if not taking or len(which) == 0:
            return similarity, token, order
        chosen = self.parts[which][:, taking]
        found = matching.match(tokens[None], chosen, self.near, free=None if free is None else free[None])
        # the same sum, in the same order, as in the network: numbers that are not changed stay bit for bit
        similarity[:, taking] = (tokens[found.token[0]] * chosen).sum(-1)
        token[:, taking], order[:, taking] = found.token[0], found.order[0]
        return similarity, token, order

    def activation(self, similarity: Tensor, gate: Tensor) -> Tensor:
        """(m, K), (m, K) -> (m,); 0 without an open part."""
        return activation(similarity, gate)

    def picture(self, index: int | None) -> Pixels | None:
        """A training picture as the model saw it; None where it is not on this machine."""
        return None if index is None else self.source.picture(index)


def load(manifest: Manifest, device: torch.device | str = "cpu") -> TorchPrototypeClassifier:
    """Errors: BadBundle, a sentence."""
    try:
        held = read(manifest.folder)
    except BadPrototypes as e:
        raise BadBundle(str(e)) from e
    p: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in manifest.preprocessing.items()}
    classes, shape = held.model.head.last_layer.out_features, held.model.features.shape
    if len(manifest.classes) != classes:
        raise BadBundle(f"“{manifest.folder.name}” names {len(manifest.classes)} classes; its model has {classes}.")
    if list(p.get("size", ())) != [shape.size, shape.size]:
        raise BadBundle(
            f"“{manifest.folder.name}” prepares pictures of {list(p.get('size', ()))} px; its model sees {shape.size} by {shape.size}."
        )
    try:
        return TorchPrototypeClassifier(
            Answers(held.model).to(device),
            classes=manifest.classes,
            preprocessing=Preprocessing(**p),
            features_at=manifest.features or "auto",
            prefix_tokens=1,
            name=manifest.name,
            description=manifest.description,
            terms=manifest.terms,
            card=manifest.card,
            code=canonical([manifest.architecture, manifest.config, held.digest]).decode(),
            bundle=held,
        )
    except TypeError as e:
        raise BadBundle(
            f"[preprocessing] of “{manifest.folder.name}” does not fit: {e}.", given=dict(manifest.preprocessing)
        ) from e
    except FanlightError as e:
        raise BadBundle(f"“{manifest.folder.name}”: {e.message}", given=e.given, allowed=e.allowed, hint=e.hint) from e
