"""The contract of an explainer: attributes declare, `run` computes, a generator yields at step boundaries.

An explainer is pure: (model, items, parameters) -> artifacts. No HTTP, SQL, files or drawing. Declarations load without torch
(modules import it inside the computation), so that the page server and the shell can list methods.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict

from fanlight.artifact import Artifact
from fanlight.errors import Unavailable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from fanlight.adapters.base import Box

T = TypeVar("T")


class Paper(NamedTuple):
    """Where a method comes from."""

    citation: str
    link: str
    bibtex: str


class Params(BaseModel):
    """Parameters of an explainer. Every field has bounds (or an enumeration), a default, and a description with its unit."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


@dataclass(frozen=True)
class Target:
    """What is explained: the logit of class `index`, the difference logit[index] - logit[minus], the similarity of the
    picture's embedding to that of the input `similar_to`, or, with `concept`, the logit of concept `index` of a bottleneck.
    For the last two the model comes as one that is asked that (`adapters.similarity`, `concepts_of`)."""

    index: int
    minus: int | None = None
    similar_to: str | None = None
    concept: bool = False
    drawn: bool = False
    """The picture that a model drew, or was given, for a prompt: there is nothing to choose."""

    @property
    def of_class(self) -> bool:
        """Whether it is about the model's own outputs."""
        return self.similar_to is None and not self.concept and not self.drawn

    def value(self, logits: Tensor) -> Tensor:
        """(B, K) -> (B,)"""
        chosen = logits[:, self.index]
        return chosen if self.minus is None else chosen - logits[:, self.minus]

    def json(self) -> dict[str, Any]:
        if self.similar_to is not None:
            return {"similar_to": self.similar_to}
        if self.concept:
            return {"concept": self.index}
        if self.drawn:
            return {"drawn": True}
        return {"class": self.index} if self.minus is None else {"minus": [self.index, self.minus]}

    def name(self, classes: Sequence[str], concepts: Sequence[str] = ()) -> str:
        """As people read it. Args: classes, concepts: of the model itself."""
        if self.similar_to is not None:
            return f"similarity to picture {self.similar_to[:8]}"
        if self.drawn:
            return "the picture"
        if self.concept:
            return " ".join(concepts[self.index].replace("::", " ").split())
        chosen = classes[self.index]
        return chosen if self.minus is None else f"{chosen} rather than {classes[self.minus]}"

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Target:
        """From canonical JSON: {"class": i}, {"minus": [a, b]}, {"similar_to": input} or {"concept": k}."""
        if "similar_to" in value:
            return cls(0, None, str(value["similar_to"]))
        if "drawn" in value:
            return DRAWN
        if "concept" in value:
            return cls(int(value["concept"]), concept=True)
        return cls(int(value["class"])) if "class" in value else cls(int(value["minus"][0]), int(value["minus"][1]))


DRAWN = Target(0, drawn=True)


@dataclass(frozen=True)
class Drawing:
    """One input of a batch for a model that draws pictures from words.

    Args:
        text: the prompt.
        image: (h, w, 3) uint8, the picture that was given with it; None where the model is to draw it.
        seed: of this request.
        key: names (model, input): the same key means the same text and picture. For `Context.reuse`.
    """

    text: str
    image: np.ndarray[Any, np.dtype[np.uint8]] | None
    seed: int
    key: str
    target: Target = DRAWN


@dataclass(frozen=True)
class Item:
    """One input of a batch, prepared.

    Args:
        x: (3, H, W) float32 in model space, on the device.
        image: (h, w, 3) uint8, the part of the stored picture inside `box` at the model's resolution (H, W).
        target: resolved.
        logits: (K,) float32 of x, on the CPU.
        seed: of this request.
        box: the part of the stored picture that x shows.
        key: names (model, input, edits): the same key means the same x. For `Context.reuse`.
    """

    x: Tensor
    image: np.ndarray[Any, np.dtype[np.uint8]]
    target: Target
    logits: Tensor
    seed: int
    box: Box
    key: str
    chances: Tensor | None = None
    """(K,) P(class) as the model states it, where that is not the softmax of its logits."""


@dataclass(frozen=True)
class Step:
    """What a run yields at least every 200 ms of device time: the fraction done (0..1), and now and then what is known so far.

    `preview` makes the artifact to show meanwhile, for the only item of the batch (long methods have theirs alone); it is called only when
    a picture is due.
    """

    done: float
    message: str = ""
    preview: Callable[[], Artifact] | None = None


class Context(Protocol):
    """What the compute core lends a run."""

    device: torch.device
    chunk: int
    """Rows per forward pass; a pass with gradients takes fewer, see `evaluate.gradient_rows`. Partial chunks are padded, so that bytes repeat."""

    def reuse(self, key: Hashable, compute: Callable[[], T]) -> T:
        """`compute()`, or its result from an earlier request with the same key: evictable, bounded in bytes."""
        ...

    def remember(self, key: Hashable, value: Any) -> None:
        """Keeps a value that took several steps to compute."""
        ...

    def recall(self, key: Hashable) -> Any | None:
        """A remembered value, or None."""
        ...


Run = Generator[Step, None, list[list[Artifact]]]


class Edited(NamedTuple):
    """A result after edits: its artifacts, named and of the kinds as before, and the model's prediction, best first, as
    `wire.Prediction` says it (at least the best ten and the explained one)."""

    artifacts: list[Artifact]
    prediction: list[dict[str, Any]]


class Explainer:
    """Base of all explainers: declarations only, no behaviour beyond the contract."""

    name: ClassVar[str]
    """Kebab-case; the module has the same name with underscores."""
    title: ClassVar[str]
    family: ClassVar[str]
    summary: ClassVar[str]
    """One line for people."""
    reading: ClassVar[str]
    """How to read its result, two or three plain sentences."""
    misleads: ClassVar[str]
    """How it misleads, two or three plain sentences."""
    paper: ClassVar[Paper]
    accepts: ClassVar[str]
    """The task of the models it explains, for example `image-classifier`."""
    needs: ClassVar[frozenset[str]] = frozenset()
    package: ClassVar[tuple[str, str] | None] = None
    """An optional package it needs: the name it is imported by, and the extra of Fanlight that brings it."""
    returns: ClassVar[tuple[str, ...]]
    """Artifact kinds, in order."""
    version: ClassVar[str]
    """Changes with every change of its output; part of the key."""
    Params: ClassVar[type[Params]]
    edits: ClassVar[Mapping[str, str]] = {}
    """What can be changed of its result without asking the network again: name of the edit -> what its value is, in words.
    The whole list is applied to the result as it was found, so that the order in which people clicked is not lost and no state is kept."""

    asks: ClassVar[frozenset[str]] = frozenset()
    """Those of `edits` that do ask the network: they are saved as an intervention, and live only kept where they are saved already."""

    general: ClassVar[frozenset[str]] = frozenset()
    """Those of `edits` that mean the same for every picture, so that one list of them can be applied to many."""

    foresees: ClassVar[bool] = False
    """Whether it can tell from the words of a prompt that a job on it would fail (`foresee`)."""

    def foresee(self, model: Any, text: str, params: Any, edits: Sequence[Mapping[str, Any]] = ()) -> None:
        """Raises InvalidField where a job on this prompt, or its own `edits`, would fail by its words alone. Asked before a job is promised, beside
        running work; a thousandth of its cost at most."""

    pairs: ClassVar[bool] = False
    """Whether it compares two words of a prompt, so that lists of words can be gone through (`pair`)."""

    @classmethod
    def pair(cls, template: str, first: str, second: str) -> tuple[str, dict[str, Any]]:
        """Of a method with `pairs`: the prompt of two words, and the parameters that make them its pair, in this order.

        Args: template: holds {a} and {b} once each. Errors: InvalidField with a sentence."""
        raise NotImplementedError

    @classmethod
    def cost(cls, params: Any, size: tuple[int, int]) -> int:
        """Forward passes (a backward counts as one more) for one input of `size` = (H, W) at these parameters."""
        raise NotImplementedError

    @classmethod
    def check(cls, params: Any, size: tuple[int, int]) -> None:
        """Raises InvalidField where these parameters make no sense for an input of `size` = (H, W). Asked before a job is promised."""

    @classmethod
    def canonical(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Edits as they are stored: names resolved, what was overwritten left out. Needs no torch and no model.

        Args:
            edits: each an object with one key of `edits`.
            about: metadata of its first artifact.

        Errors: InvalidField, code invalid_edit, for a value that makes no sense for this result.
        """
        raise NotImplementedError

    @classmethod
    def told(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> str:
        """Canonical edits in words; of those that are `general`. Needs no torch and no model. Args as of `canonical`."""
        raise NotImplementedError

    def edit(
        self, model: Any, artifacts: Sequence[Artifact], edits: Sequence[Mapping[str, Any]], params: Any
    ) -> Edited:
        """The result after canonical `edits`: from stored artifacts and the head of the model, never from the picture. Pure and read-only: it
        is called beside running work, and equal edits give equal bytes."""
        raise NotImplementedError

    def ask(
        self, model: Any, artifacts: Sequence[Artifact], edits: Sequence[Mapping[str, Any]], params: Any
    ) -> Generator[Step, None, Edited]:
        """As `edit`, with some that the network is asked for (`asks`): in steps, as part of the job that saves them."""
        raise NotImplementedError

    def suggest(
        self, model: Any, artifacts: Sequence[Artifact], edits: Sequence[Mapping[str, Any]], params: Any
    ) -> dict[str, Any]:
        """What to change next and what may come of it, JSON-able. As `edit`, but may take 100 ms."""
        raise NotImplementedError

    def run(self, model: Any, items: Sequence[Item], params: Any, ctx: Context) -> Run:
        """Yields steps; returns for each item its artifacts. Items share model, parameters and shape."""
        raise NotImplementedError


def absent(explainer: type[Explainer]) -> str | None:
    """Why an explainer cannot run in this environment, as a sentence; None where it can."""
    if explainer.package is None or find_spec(explainer.package[0]) is not None:
        return None
    module, extra = explainer.package
    return f"It needs the package {module}, which is not installed here: pip install 'fanlight[{extra}]'."


def importable(explainer: type[Explainer]) -> None:
    """Raises where the optional package of an explainer is missing."""
    reason = absent(explainer)
    if reason is not None:
        raise Unavailable(f"{explainer.title} is not available. {reason}", code="not_installed")
