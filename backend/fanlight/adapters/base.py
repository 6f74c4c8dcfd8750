"""What a model offers an explainer: one structural protocol per task, and capabilities as data.

An adapter says what it can do (`capabilities`), an explainer says what it needs (`needs`); matching the two is set arithmetic, so a page
can say in words why a method is not available. Loading this module needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor, nn

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

CAPABILITIES = {
    "gradients": "the output can be differentiated with respect to the input",
    "spatial-features": "a layer with a grid of features can be read, as Grad-CAM needs",
    "attention": "the attention of every layer can be read, over the same grid of tokens",
    "rectifiers": "it rectifies somewhere (ReLU or a clipped one)",
    "rescale-rule": "all of it is linear but for activations that are modules of their own and run once, and no two of them meet",
    "relevance-rules": "it is made of convolutions, linear layers, pooling, plain activations and sums, each of which has a rule",
    "embedding": "the logits come from an embedding by one linear layer",
}


TASKS: dict[str, tuple[str, ...]] = {
    "image-classifier": (),
    "concept-bottleneck": ("image-classifier",),
    "prototype-classifier": ("image-classifier",),
    "text-to-image": (),
}
"""What else a model of a task is: a bottleneck is an image classifier too, and whatever explains those explains it."""


def takes(task: str) -> Literal["image", "prompt"]:
    """The kind of input that models of a task are explained on."""
    return "prompt" if task == "text-to-image" else "image"


class Box(NamedTuple):
    """The part of the stored picture that the model sees: left, top, right, bottom in its pixels (may be fractional)."""

    x0: float
    y0: float
    x1: float
    y1: float


class ImageClassifier(Protocol):
    """Task `image-classifier`: a picture in, one logit per class out.

    `net` is in eval mode with frozen parameters; an explainer leaves it so. Shapes: B pictures, K classes, (H, W) = `size`.
    """

    task: str
    net: nn.Module
    asked: int
    """Pictures it was asked about so far: the cost of a run is counted, not estimated."""
    classes: Sequence[str]
    size: tuple[int, int]
    capabilities: frozenset[str]
    head: str
    """How outputs become predictions: single-label, multi-label or regression (`adapters.heads`)."""
    unit: str
    """Of the values of a regression."""
    measure: str
    """What one output is counted in: logit, the unit of a regression, cosine similarity."""
    held: int
    """Bytes that the forward pass of one picture holds for the way back, where gradients are asked for."""

    def view(self, width: int, height: int) -> Box:
        """Which part of a stored picture of this size the model sees."""
        ...

    def prepare(self, image: Pixels) -> Tensor:
        """(h, w, 3) uint8 RGB -> (3, H, W) float32 in model space, on the model's device."""
        ...

    def pixels(self, image: Pixels) -> Pixels:
        """(h, w, 3) uint8 RGB -> (H, W, 3) uint8: exactly what `prepare` normalises."""
        ...

    def colour(self, rgb: tuple[float, float, float]) -> Tensor:
        """A colour (0..255 per channel) in model space, (3, 1, 1)."""
        ...

    def logits(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, K), differentiable in x."""
        ...

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 3, H, W) -> logits (B, K) and the activation (B, D, h, w) they were computed from, both in one graph.

        Of a transformer the tokens of the picture as a grid; its prefix tokens (class, registers) go on beside it.
        Only with the capability `spatial-features`.
        """
        ...

    def attentions(self, x: Tensor) -> tuple[Tensor, list[Tensor], int, tuple[int, int]]:
        """(B, 3, H, W) -> logits (B, K); of each layer in order the rows of attention (B, heads, N, N), which sum to 1 and which
        the logits were computed from; the number of prefix tokens; and the grid (h, w) of the others, N = prefix + h w.

        Only with the capability `attention`.
        """
        ...

    def embedding(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, D), what the last linear layer makes the logits from, differentiable in x.

        Only with the capability `embedding`.
        """
        ...


class ConceptBottleneck(ImageClassifier, Protocol):
    """Task `concept-bottleneck`: a picture in, K concepts, and classes from nothing but them (docs/concepts.md)."""

    concepts: Sequence[str]
    concepts_of: ImageClassifier
    """The same network asked for its concepts: its outputs are their logits, differentiable in x. For targets {"concept": k}."""

    def chances(self, x: Tensor) -> Tensor:
        """(B, 3, H, W) -> (B, C): P(class) as the model states it, where that is not the softmax of its logits."""
        ...


class PrototypeClassifier(ImageClassifier, Protocol):
    """Task `prototype-classifier`: a picture in, logits that are sums over prototypes out (docs/prototypes.md)."""


class TextToImage(Protocol):
    """Task `text-to-image`: words in, a picture out, by taking noise away (docs/diffusion.md). It is given `explainers.base.Drawing`s."""

    task: str
    net: nn.Module
    asked: int
    """Rows that the network was asked about so far."""
    size: tuple[int, int]
    """(H, W) of its pictures in pixels."""
    guidance: float
    """As its pictures are usually drawn; 1 is the model itself."""
    capabilities: frozenset[str]


def fits(accepts: str, task: str) -> bool:
    """Whether what explains models of the task `accepts` explains one of `task`."""
    return accepts == task or accepts in TASKS.get(task, ())


def missing(needs: frozenset[str], capabilities: frozenset[str]) -> str | None:
    """Why an explainer with `needs` does not fit, as a sentence; None where it fits."""
    lacking = sorted(needs - capabilities)
    if not lacking:
        return None
    return (
        "It needs that "
        + " and that ".join(CAPABILITIES.get(c, c) for c in lacking)
        + "; this model does not offer it."
    )
