"""Inputs, data sets, models and explainers on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, StringConstraints

from fanlight.wire.base import Id, Request, Wire


class Input(Wire):
    """What is explained. `id` is the digest of the decoded content, so the same picture in another file is the same input.

    A prompt has words and perhaps a picture of its own; where it has none, its picture is a card with the words."""

    id: str
    kind: Literal["image", "prompt"] = "image"
    text: str = ""
    """Of a prompt."""
    picture: str | None = None
    """Of a prompt with a picture of its own: that input."""
    width: int
    height: int
    name: str = ""
    notes: list[str] = []
    """What decoding did that a person may want to know: turned by EXIF, scaled from 16 bit, alpha laid on white, ..."""
    created: float
    url: str
    thumbnail: str


class Prompt(Request):
    """Words for a model that draws, or that were said of a picture, an input's id."""

    text: Annotated[str, StringConstraints(max_length=2000)]
    picture: Id | None = None


def _words(value: Any) -> Any:
    """Words alone are a prompt too; told apart here, so that an error speaks of what was meant."""
    return {"text": value} if isinstance(value, str) else value


class NewInput(Request):
    """An input that is no file."""

    kind: Literal["prompt"]
    value: Annotated[Prompt, BeforeValidator(_words)]


class Dataset(Wire):
    id: str
    name: str
    version: int
    digest: str
    count: int
    unreadable: int = 0
    terms: str = ""
    description: str = ""
    world: bool = False
    """Drawn by Fanlight, so that more is known of it: GET /datasets/{id}/world."""


class DatasetReading(Wire):
    """A data set that is being read: `done` of `total` pictures."""

    id: str
    name: str
    done: int
    total: int


class Sample(Wire):
    """One item of a data set."""

    dataset: str
    position: int
    name: str
    label: str | None = None
    input: str
    width: int
    height: int
    thumbnail: str


class Availability(Wire):
    """Whether an explainer fits a model, and if not, why, in a sentence."""

    name: str
    available: bool
    reason: str | None = None


class Model(Wire):
    id: str
    name: str
    task: str
    takes: Literal["image", "prompt"] = "image"
    """The kind of input that it is explained on."""
    digest: str
    description: str = ""
    terms: str = ""
    size: tuple[int, int]
    classes: list[str] | None = None
    concepts: list[str] | None = None
    """Of a concept bottleneck."""
    capabilities: list[str]
    head: Literal["single-label", "multi-label", "regression"] = "single-label"
    """How outputs become predictions: one of several classes, labels of their own, or values."""
    unit: str = ""
    """Of the values of a regression."""
    explainers: list[Availability]
    card: str = ""
    examples: list[str] = []
    """Prompts to begin with, of a model that draws."""


class Citation(Wire):
    citation: str
    link: str
    bibtex: str


class Measurement(Wire):
    """A mean over scenes with its 95 % interval, and what random maps (`floor`) and the truth's own map (`ceiling`) get on the same scenes."""

    value: float
    lo: float
    hi: float
    floor: float
    ceiling: float
    unit: str

    def place(self, value: float) -> float:
        """Where a value of this measure lies between floor (0) and ceiling (1), no further than either; 0 where they are equal."""
        span = self.ceiling - self.floor
        return min(max((value - self.floor) / span, 0.0), 1.0) if span else 0.0


class WorldScore(Wire):
    """What a method scores in a world where the truth is known, measured beforehand; see docs/trust.md.

    `outdated`: another version of the method was measured, so that there is no score. `unavailable`: the method does not fit the world's
    model. `sentence` says each of them in words.
    """

    state: Literal["measured", "outdated", "unavailable"]
    world: str
    sentence: str
    detail: str = ""
    """On how many scenes, with which parameters."""
    headline: Measurement | None = None
    """The measure that `sentence` tells."""
    measures: dict[str, Measurement] = {}
    model: str
    model_digest: str
    scenes: int | None = None
    date: str | None = None


class ExplainerInfo(Wire):
    """A method: what it accepts, its parameters as JSON Schema, what it returns."""

    name: str
    title: str
    family: str
    version: str
    summary: str
    reading: str
    misleads: str
    accepts: str
    needs: list[str]
    params: dict[str, Any]
    returns: list[str]
    cost: int
    """Forward passes at default parameters on a 224 px model."""
    edits: dict[str, str] = {}
    """What can be changed of its results live, and in what words: POST /live, POST /interventions."""
    asks: list[str] = []
    """Those of `edits` that ask the network, and so are no live ones: saved, they are a job."""
    general: list[str] = []
    """Those of them that mean the same for every picture: POST /sweeps/{id}/trials."""
    pairs: bool = False
    """Whether it compares two words of a prompt, so that `POST /sweeps` takes lists of words for it."""
    paper: Citation
    docs: str
    world: WorldScore | None = None
    """None for a method that was never measured in a world, as those of third parties."""


class Finding(Wire):
    """One thing that the doctor looked at. `outcome`: good; warning: works, but one should know; bad: does not work; none: does not apply."""

    name: str
    outcome: Literal["good", "warning", "bad", "none"]
    says: str
    hint: str = ""


class Cost(Wire):
    """What a method costs on a model at its defaults: passes, seconds, and peak of memory beyond the model. `measured`: it was run to its end;
    otherwise its time is projected. `reason`: why it does not fit; `error`: how it failed."""

    name: str
    available: bool
    reason: str | None = None
    forwards: int | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    measured: bool = False
    error: str | None = None


class Examination(Wire):
    """What `fanlight doctor MODEL` finds. `seconds`: the time in which it runs the methods that fit."""

    state: Literal["none", "running", "done"]
    model: str
    seconds: float
    since: float | None = None
    finished: float | None = None
    sound: bool | None = None
    checks: list[Finding] = []
    costs: list[Cost] = []
    forward_seconds: float | None = None
    device: str = ""
