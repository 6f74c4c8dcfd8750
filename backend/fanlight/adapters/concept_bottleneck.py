"""A concept bottleneck as an image classifier: a picture in, concepts, and classes from nothing but them (docs/concepts.md).

What explains pictures sees two ordinary networks that share all weights. The class network answers with the expected logit: for a head that is
linear in hard concepts, b + W E[c], exactly, differentiable in the picture. The concept network answers with the concepts' logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
from fanlight.artifact import canonical
from fanlight.errors import FanlightError, InvalidField
from fanlight_models.concepts import Answers, Reading, bundle
from fanlight_models.concepts.autoregressive import Autoregressive
from fanlight_models.concepts.cbm import CBM
from fanlight_models.concepts.cem import CEM
from fanlight_models.concepts.encoders import ENCODERS
from fanlight_models.concepts.explaining import roots
from fanlight_models.concepts.heads import Head
from fanlight_models.concepts.quadrature import expected_sigmoid
from fanlight_models.concepts.scbm import SCBM

if TYPE_CHECKING:
    from fanlight.adapters.bundle import Manifest

VECTORS = ("features", "fcnn")
"""Encoders that read vectors: no picture goes through them."""
USUAL = 0.99
"""Share of the reference cases that lie within `Usual.reach`."""
FEWEST = 20
EDGE = 1e-3  # of a probability before its logit is taken: beyond, one sure concept would decide alone
RIDGE = 0.01  # of the mean variance, added to each


class ConceptLogits(nn.Module):
    """The bottleneck asked for its concepts: (B, 3, H, W) -> (B, K) logits."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return concept_logits(self.model, x)


class ClassLogits(nn.Module):
    """The bottleneck asked for its classes: (B, 3, H, W) -> (B, C) logits, see `class_logits`."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return class_logits(self.model, x)


def concept_logits(model: Any, x: Tensor) -> Tensor:
    """(B, K), differentiable in x. Of an autoregressive bottleneck each concept is given the probabilities, not draws, of those before it."""
    if isinstance(model, (SCBM, CBM)):
        out: Tensor = model.mean(model.encoder(x))
    elif isinstance(model, CEM):
        out = model.embeddings(x)[1]
    elif isinstance(model, Autoregressive):
        out = _in_turn(model, model.encoder(x))
    else:
        out = model.concept_logits(x)
    return out


def class_logits(model: Any, x: Tensor) -> Tensor:
    """(B, C), differentiable in x. SCBM and hard CBM with a linear head: the exact expected logit. With a hidden layer, and autoregressive: the
    logit of the expected concepts. Soft CBM and CEM draw nothing: their own logit."""
    if isinstance(model, SCBM):
        features = model.encoder(x)
        p = expected_sigmoid(model.mean(features), (model.spread(features) ** 2).sum(2))
    elif isinstance(model, CBM) and model.soft:
        return _two(model.head(model.mean(model.encoder(x))))
    elif isinstance(model, (CBM, Autoregressive)):
        p = torch.sigmoid(concept_logits(model, x))
    elif isinstance(model, CEM):
        both, logits = model.embeddings(x)
        return _two(model.mixed(both, torch.sigmoid(logits)))
    else:
        own: Tensor = model.class_logits(x)
        return own
    return of_probabilities(model.head, p)


def of_probabilities(head: Head, p: Tensor) -> Tensor:
    """(B, K) -> (B, C): the head on probabilities instead of draws."""
    return _two(head(p.to(head.dtype)))


def _two(logits: Tensor) -> Tensor:
    """The one logit of a binary head as those of both classes."""
    return torch.cat([torch.zeros_like(logits), logits], 1) if logits.shape[1] == 1 else logits


def _in_turn(model: Autoregressive, features: Tensor) -> Tensor:
    """(B, F) -> (B, K): one concept after the other, given the probabilities of those before."""
    start = torch.einsum("bf,kuf->bku", features, model.from_features) + model.inner
    out: list[Tensor] = []
    for i in range(model.concepts):
        before = torch.sigmoid(torch.stack(out, 1)) if out else features.new_zeros(len(features), 0)
        inner = start[:, i] + before @ model.from_concepts[i, :, :i].T
        out.append((nn.functional.leaky_relu(inner) * model.outer[i]).sum(1) + model.last[i])
    return torch.stack(out, 1)


@dataclass(frozen=True, eq=False)
class Usual:
    """The Gaussian of the reference cases' concept logits: pictures far from it are unlike what the model was trained on (the measure of Lee et
    al., NeurIPS 2018, on concepts instead of features). mean (K,), white (K, K): the squared length of (logit - mean) @ white is the Mahalanobis
    distance squared. reach: within it lie 99 % of the cases."""

    mean: Tensor
    white: Tensor
    reach: float

    @classmethod
    def of(cls, cases: Tensor) -> Usual:
        """cases (n, K) probabilities."""
        logits = torch.logit(cases.double().clamp(EDGE, 1 - EDGE))
        mean = logits.mean(0)
        values, vectors = torch.linalg.eigh((logits - mean).T @ (logits - mean) / len(logits))
        white = vectors / (values.clamp_min(0) + RIDGE * values.mean() + 1e-12).sqrt()
        return cls(mean, white, float(((logits - mean) @ white).norm(dim=1).quantile(USUAL)))

    def distance(self, p: Tensor) -> float:
        """p (K,) probabilities."""
        return float(((torch.logit(p.double().clamp(EDGE, 1 - EDGE)) - self.mean) @ self.white).norm())


@dataclass(eq=False)
class ConceptClassifier(TorchImageClassifier):
    """A `ConceptBottleneck` (adapters/base.py) around a model of `fanlight_models.concepts.protocol`.

    Your own model: an `nn.Module` with the protocol's `kind`, `concepts`, `classes`, `read`, `intervene` and `weights`, and with
    `concept_logits(x)` (B, K) and `class_logits(x)` (B, C), both differentiable in x, for the methods that explain pictures.

    >>> ConceptClassifier.of(model, concepts=["crest", ...], classes=["finch", ...], preprocessing=Preprocessing((112, 112)))

    Args beyond those of `TorchImageClassifier`:
        concepts: K distinct names; those that begin with the same `group::` exclude each other.
        cases: (n, K) probabilities of reference cases; labels: (n,) their classes.
    """

    concepts: Sequence[str] = ()
    cases: Tensor = field(default_factory=lambda: torch.zeros(0, 0, dtype=torch.float64))
    labels: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    task: str = field(default="concept-bottleneck", init=False)

    @classmethod
    def of(cls, model: nn.Module, *, concepts: Sequence[str], classes: Sequence[str], **more: Any) -> ConceptClassifier:
        """Errors: InvalidField where names and model do not fit each other."""
        lacking = [a for a in ("kind", "concepts", "classes", "read", "intervene", "weights") if not hasattr(model, a)]
        if lacking:
            raise InvalidField(
                f"A concept model has kind, concepts, classes, read, intervene and weights; this one lacks {', '.join(lacking)}.",
                given=type(model).__name__,
            )
        for what, names, count in (("concepts", concepts, model.concepts), ("classes", classes, model.classes)):
            if len(names) != count or len(set(names)) != len(names):
                raise InvalidField(
                    f"The model has {count} {what}; {len(set(names))} different names are given.", given=len(names)
                )
        more.setdefault("features_at", "auto")
        return cls(ClassLogits(model), concepts=tuple(concepts), classes=tuple(classes), **more)

    @property
    def model(self) -> Any:
        """The bottleneck itself."""
        return self.net.model

    @cached_property
    def concepts_of(self) -> TorchImageClassifier:
        """The same weights, asked for concepts."""
        return TorchImageClassifier(
            ConceptLogits(self.model),
            classes=list(self.concepts),
            preprocessing=self.preprocessing,
            features_at=self.features_at,
            name=self.name,
            code=self.code,
            differentiable=self.differentiable,
            channels_last=self.channels_last,
            head="multi-label",
        )

    @cached_property
    def digest(self) -> str:
        """Also over the names of the concepts and the reference cases: they are part of what is said."""
        own = sha256(canonical([super().digest, list(self.concepts), list(self.cases.shape)]))
        own.update(self.cases.numpy().tobytes() + self.labels.numpy().tobytes())
        return own.hexdigest()

    def chances(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, C): mean over the fixed draws, as `intervene` gives it without answers."""
        reading = self.read(x)
        said: Tensor = self.head_model.intervene(reading, Answers.none(*reading.mean.shape)).classes
        return said

    def read(self, x: Tensor) -> Reading:
        """(B, 3, H, W) -> what is believed before any answer, on the CPU."""
        self.asked += len(x)
        found = self.model.read(x.contiguous(memory_format=self._layout))
        return Reading.of({k: v.cpu() for k, v in found.arrays().items()})

    @cached_property
    def head_model(self) -> Any:
        """The bottleneck on the CPU, for interventions; its head is so small that a GPU only costs the way there."""
        if self.device.type == "cpu":
            return self.model
        import copy

        return copy.deepcopy(self.model).cpu()

    def expected_logits(self, concepts: Tensor, classes: Tensor) -> Tensor:
        """(B, C) from probabilities of concepts (B, K): the expected logit where the head is linear and ours, else log P(class) of `classes`."""
        head = getattr(self.head_model, "head", None)
        if self.head_model.weights() is not None and isinstance(head, Head):
            with torch.no_grad():
                return of_probabilities(head, concepts).double()
        return classes.clamp_min(1e-12).log()

    @cached_property
    def usual(self) -> Usual | None:
        """What the concepts of the reference cases are like; None with fewer than `FEWEST` cases."""
        return Usual.of(self.cases) if len(self.cases) >= FEWEST else None

    @cached_property
    def case_roots(self) -> Tensor:
        """Of the reference cases, for `similar`."""
        return roots(self.cases)

    @cached_property
    def base(self) -> Tensor:
        """(K,) how frequent each concept is among the reference cases; 1/2 without cases."""
        return self.cases.mean(0) if len(self.cases) else torch.full((len(self.concepts),), 0.5, dtype=torch.float64)


def load(about: Manifest, device: torch.device | str = "cpu") -> ConceptClassifier:
    """The bundle's bottleneck on `device`. Errors: BadBundle with a sentence where it does not fit."""
    from fanlight.adapters.bundle import BadBundle

    encoder = about.config.get("encoder")
    kind = encoder.get("kind") if isinstance(encoder, Mapping) else None
    if kind in VECTORS:
        raise BadBundle(
            f"The encoder “{kind}” of “{about.folder.name}” reads vectors; a model of Fanlight reads pictures.",
            given=kind,
            allowed=sorted(set(ENCODERS) - set(VECTORS)),
        )
    try:
        found = bundle.read(about.folder)
    except (bundle.BadConceptBundle, OSError, ValueError) as e:
        raise BadBundle(str(e)) from e
    p: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about.preprocessing.items()}
    try:
        return ConceptClassifier.of(
            found.model.to(device),
            concepts=found.concepts,
            classes=about.classes,
            preprocessing=Preprocessing(**p),
            features_at=f"model.{about.features}" if about.features else "auto",
            channels_last=True,
            name=about.name,
            description=about.description,
            terms=about.terms,
            card=about.card,
            code=canonical([about.architecture, about.config]).decode(),
            cases=found.cases,
            labels=found.labels,
        )
    except TypeError as e:
        raise BadBundle(
            f"[preprocessing] of “{about.folder.name}” does not fit: {e}.", given=dict(about.preprocessing)
        ) from e
    except FanlightError as e:
        raise BadBundle(f"“{about.folder.name}”: {e.message}", given=e.given, allowed=e.allowed, hint=e.hint) from e


def arrays(reading: Reading) -> dict[str, np.ndarray[Any, Any]]:
    """Of one picture, as an artifact stores them: mean (K,) float64, lower (K, K) and context (D,) float32, empty where there is none.

    `lower` is a float32 network's own numbers, so that nothing is lost."""
    none = np.zeros((0,), np.float32)
    return {
        "mean": reading.mean[0].numpy(),
        "lower": none.reshape(0, 0) if reading.lower is None else reading.lower[0].float().numpy(),
        "context": none if reading.context is None else reading.context[0].float().numpy(),
    }


def reading_of(stored: Mapping[str, np.ndarray[Any, Any]]) -> Reading:
    """The inverse of `arrays`."""
    found = {k: torch.from_numpy(np.array(stored[k]))[None] for k in ("mean", "lower", "context") if stored[k].size}
    return Reading.of(found)
