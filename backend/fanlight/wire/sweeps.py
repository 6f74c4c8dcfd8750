"""Sweeps on the wire: one method on one model over many pictures, and what came of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from fanlight.wire.base import Id, Label, Request, Wire
from fanlight.wire.explanations import ClassTarget, Index, MinusTarget
from fanlight.wire.views import VIEWED, Asked

SweepState = Literal["running", "paused", "done", "cancelled"]
ItemState = Literal["waiting", "submitted", "measuring", "succeeded", "failed", "skipped", "cancelled"]
Rule = Literal["predicted", "class", "label"]

Count = Annotated[int, Field(strict=True, ge=1)]


Listed = Annotated[str, StringConstraints(min_length=1, max_length=100, strip_whitespace=True)]
Seed = Annotated[int, Field(strict=True, ge=0, lt=2**63)]


class WordLists(Request):
    """Two lists of words against each other: a picture of the template is drawn for every pair and every seed. All pictures of a seed begin with
    the same noise, so that they differ by their words."""

    template: Annotated[str, StringConstraints(max_length=500)] = "a {a} {b}"
    first: Annotated[list[Listed], Field(min_length=1, max_length=1000)]
    second: Annotated[list[Listed], Field(min_length=1, max_length=1000)]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=1000)] = [0]

    @model_validator(mode="after")
    def _once(self) -> WordLists:
        for name in ("first", "second", "seeds"):
            values = [v.casefold() if isinstance(v, str) else v for v in getattr(self, name)]
            twice = next((v for n, v in enumerate(values) if v in values[:n]), None)
            if twice is not None:
                raise ValueError(f"{name} names {twice} twice")
        return self

    @property
    def count(self) -> int:
        return len(self.first) * len(self.second) * len(self.seeds)

    def at(self, position: int) -> tuple[str, str, int]:
        """The words and the seed of a picture: every pair once, then every pair with the next seed."""
        seed, pair = divmod(position, len(self.first) * len(self.second))
        return self.first[pair // len(self.second)], self.second[pair % len(self.second)], self.seeds[seed]


class SweepSource(Request):
    """Which pictures: a data set, or the pictures of a filtered gallery; of them those that `label` and `q` name, then the first or some at random.
    Or pictures that are drawn, of lists of words.

    `gallery` holds filters of `GET /explanations`; each picture counts once.
    """

    dataset: Id | None = None
    gallery: Asked | None = None
    words: WordLists | None = None
    label: Label | None = None
    q: Annotated[str, StringConstraints(max_length=200)] | None = None
    first: Count | None = None
    sample: Count | None = None
    sample_seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0

    @model_validator(mode="after")
    def _one(self) -> SweepSource:
        if sum(v is not None for v in (self.dataset, self.gallery, self.words)) != 1:
            raise ValueError("give either a data set or a gallery, or lists of words")
        if self.words is not None and (self.label or self.q or self.first or self.sample):
            raise ValueError("lists of words are gone through as a whole")
        if self.first is not None and self.sample is not None:
            raise ValueError("give either first or sample")
        if self.gallery is not None and (self.label or self.q):
            raise ValueError("label and q narrow a data set; the filters of a gallery are in gallery itself")
        if unknown := sorted(set(self.gallery or ()) - set(VIEWED)):
            raise ValueError(f"a gallery has no filter {unknown[0][:60]}")
        return self


class SweepRequest(Request):
    """Ask for a sweep. `rule` says what is explained of each picture: the predicted class, the class `target`, or the class of its label."""

    model: Id
    explainer: Id
    source: SweepSource
    rule: Rule = "predicted"
    target: Index | Label | MinusTarget | ClassTarget | None = None
    params: dict[str, Any] = {}
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    name: Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)] = ""

    @model_validator(mode="after")
    def _target(self) -> SweepRequest:
        if self.source.words is not None and self.rule != "predicted":
            raise ValueError("where a model draws there is no class to choose")
        if (self.rule == "class") != (self.target is not None):
            raise ValueError("target goes with the rule class, and only with it")
        return self


class Sweep(Wire):
    """A bulk job. `counts` has a number for each state of its items; they add up to `total`."""

    id: str
    name: str
    model: str
    model_name: str
    explainer: str
    explainer_title: str
    dataset: str | None = None
    request: SweepRequest
    about: str
    """What was asked, in words: pictures, target rule."""
    state: SweepState
    problem: str | None = None
    """Why the server paused it."""
    total: int
    counts: dict[ItemState, int]
    reused: int
    """How many of the finished were there before."""
    progress: float
    rate: float | None = None
    """Finished items a second, while it runs."""
    seconds_left: float | None = None
    seconds: float
    """In which it ran, without pauses."""
    mine: bool
    created: float
    finished: float | None = None


class SweepItem(Wire):
    position: int
    name: str
    label: str | None = None
    input: str | None = None
    state: ItemState
    explanation: str | None = None
    reused: bool = False
    reason: str | None = None
    """Why there is no result."""
    predicted: str | None = None
    probability: float | None = None
    faithfulness: float | None = None
    above_floor: bool | None = None
    outcome: Literal["right", "wrong"] | None = None
    cluster: int | None = None
    """Of the summary, where it is made; from 1."""


class StudyColumn(Wire):
    name: str
    title: str


class StudyCell(Wire):
    """A pair of words: mean over its seeds with the 95 % interval of it, and the mean brought to 0 to 1 over the whole table, with its interval.
    Without values where nothing is finished, without intervals from fewer than two seeds."""

    n: int
    mean: float | None = None
    lo: float | None = None
    hi: float | None = None
    normalised: float | None = None
    normalised_lo: float | None = None
    normalised_hi: float | None = None


class Study(Wire):
    """What a sweep over lists of words found so far: one number for every pair, in nats."""

    sweep: str
    template: str
    first: list[str]
    """Of the rows of `cells`."""
    second: list[str]
    seeds: list[int]
    column: str
    columns: list[StudyColumn]
    """What else can be asked for."""
    rule: Literal["min", "pointwise"]
    cells: list[list[StudyCell]]
    lowest: float | None = None
    highest: float | None = None
    """The means that stand for 0 and 1 in the normalised table."""
    guidance: float | None = None
    """That the pictures were drawn with."""
    n: int
    total: int
    complete: bool
    about: str
    """How to read it, sentences."""


class Portion(Wire):
    """`count` of `n`, with its share and the 95 % interval of that (Wilson, 1927). Without an interval where n is 0."""

    count: int
    n: int
    value: float | None = None
    lo: float | None = None
    hi: float | None = None


class Faithful(Wire):
    """The distribution of faithfulness; 0 is what a random order of patches gets on the same picture."""

    n: int
    mean: float | None = None
    lo: float | None = None
    hi: float | None = None
    """95 % interval of the mean over pictures, from 2 on (Student)."""
    quartiles: tuple[float, float, float] | None = None
    edges: list[float] = []
    counts: list[int] = []
    above: Portion


class Cluster(Wire):
    """Maps that look alike."""

    number: int
    size: int
    silhouette: float
    """Mean over the maps that it was measured on, -1 to 1."""
    pictured: int
    """Of how many of its pictures the mean picture is made."""
    where: str
    """Where its mean map has most of its weight, in words."""
    common: list[tuple[str, int]]
    """The most frequent labels, else predicted classes, in it."""
    accuracy: Portion
    faithfulness: float | None = None
    members: list[str]
    """Explanations nearest to its centre, the nearest first."""
    picture: str
    map: str


class Clusters(Wire):
    """k-means on maps reduced to `grid` x `grid` cells of length 1; k by silhouette, seeded."""

    n: int
    """Maps that took part."""
    blank: int
    """Maps that are the same everywhere, or could not be read."""
    grid: int
    k: int
    silhouette: float | None = None
    tried: dict[int, float] = {}
    measured_on: int
    sentence: str
    items: list[Cluster] = []


class Point(Wire):
    """A map on the first two principal components."""

    explanation: str
    x: float
    y: float
    cluster: int
    name: str
    predicted: str
    outcome: Literal["right", "wrong"] | None = None
    faithfulness: float | None = None


class Projection(Wire):
    """Principal components of the reduced maps; `explained` is the share of their variance along x and y."""

    explained: tuple[float, float]
    points: list[Point]
    of: int
    """Maps in all; where they are more than the points, those are a sample."""


class SweepSummary(Wire):
    """What is known so far. `content` names it: the same content, the same summary."""

    sweep: str
    content: str
    n: int
    """Finished explanations that it is about."""
    total: int
    complete: bool
    current: bool
    """False where more has finished since, and a newer one is being made."""
    labelled: int
    accuracy: Portion
    faithful: Faithful
    most: list[str]
    least: list[str]
    confident: list[str]
    """Wrong with the highest probability."""
    clusters: Clusters | None = None
    """None while they are being made."""
    projection: Projection | None = None
