"""The stored explanation, its trust, its provenance and its job on the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from fanlight.wire.base import ErrorBody, Id, Label, Request, State, Wire

Index = Annotated[int, Field(strict=True)]


class MinusTarget(Request):
    """The difference of two logits: evidence for the first class rather than the second."""

    minus: tuple[Index | Label, Index | Label]


class ClassTarget(Request):
    """Canonical form of a single class."""

    class_: Annotated[int, Field(alias="class", ge=0)]


class SimilarTarget(Request):
    """How similar the picture is to another one, an input's id: the cosine between the two embeddings."""

    similar_to: Id


class ConceptTarget(Request):
    """The logit of one concept of a concept bottleneck, by index or name."""

    concept: Index | Label


Target = Index | Label | MinusTarget | ClassTarget | SimilarTarget | ConceptTarget


class ExplanationRequest(Request):
    """Ask for an explanation. An omitted target means the top prediction."""

    model: Id
    input: Id
    explainer: Id
    target: Target | None = None
    params: dict[str, Any] = {}
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0


class Prediction(Wire):
    """One output of the model. Of a regression `probability` is None, and `logit` is the value, in `unit`."""

    index: int
    name: str
    probability: float | None
    logit: float
    unit: str = ""


class ArtifactRef(Wire):
    """A stored artifact of an explanation; `url` serves its metadata as JSON, `render` its picture, `raw` its arrays (safetensors)."""

    name: str
    kind: str
    digest: str
    url: str
    unit: str = ""
    meta: dict[str, Any] = {}


class ArtifactInfo(Wire):
    """What a page needs to show an artifact's picture with its words."""

    digest: str
    name: str
    kind: str
    meta: dict[str, Any]
    arrays: dict[str, dict[str, Any]]
    """Array name -> {"dtype", "shape"}."""
    legend: dict[str, Any]
    sentence: str
    table: dict[str, list[Any]]
    detail: dict[str, Any] = {}
    """What a page draws beyond the picture; docs/artifacts.md says what it is of each kind."""


class Interval(Wire):
    """95 % interval; see docs/trust.md for what varies."""

    lo: float
    hi: float


class Reading(Wire):
    """A number with its 95 % interval."""

    value: float
    lo: float
    hi: float


class Check(Wire):
    """One of the further measurements of a map, made on request; docs/trust.md says what each is and what its interval covers.

    Args:
        found: the number that stands for it.
        floors: what random maps ("random") and the edge detector ("edges") get.
        verdict: good, plain, or warn where a reader ought to know.
        more: further numbers by name.
        parameters, seeds, version, versions: all that it takes to measure it again.
    """

    state: Literal["pending", "succeeded", "failed", "unavailable"]
    job: str | None = None
    found: Reading | None = None
    floors: dict[str, Reading] = {}
    verdict: Literal["good", "plain", "warn"] | None = None
    more: dict[str, Reading] = {}
    parameters: dict[str, Any] = {}
    seeds: list[int] = []
    version: str = ""
    versions: dict[str, str] = {}
    device: str = ""
    seconds: float | None = None
    forwards: int | None = None
    curves: ArtifactRef | None = None
    reason: str | None = None


class Measure(Wire):
    """A further measurement that can be asked for, with what it will cost. Without `seconds` where it cannot be made; `reason` says why."""

    name: str
    title: str
    about: str
    available: bool
    reason: str | None = None
    passes: int | None = None
    seconds: float | None = None


class Trust(Wire):
    """How far to trust a map: its measured faithfulness against a random floor on the same input, and what was measured further.

    `insertion`, `deletion` and `faithfulness` are relative to the floor: 0 is what a random order of patches gets, more is better. `edges` are
    the same numbers of the edge detector's map, where it was measured and the picture has edges. `checks` are by name.
    `unavailable` says why in `reason`.
    """

    state: Literal["pending", "running", "succeeded", "failed", "unavailable"]
    insertion: float | None = None
    deletion: float | None = None
    faithfulness: float | None = None
    above_floor: bool | None = None
    completeness_error: float | None = None
    edges: dict[str, float] = {}
    floor: dict[str, float] = {}
    interval: dict[str, Interval] = {}
    curves: ArtifactRef | None = None
    reason: str | None = None
    seconds: float | None = None
    checks: dict[str, Check] = {}


MEASURES = ("insertion", "deletion")


class TrustRequest(Request):
    """Ask for the trust record. `measures` names what is wanted: insertion and deletion, which are made together, and further ones
    (stability, randomisation, agreement). Left out, it is insertion and deletion."""

    measures: list[str] | None = None


class Provenance(Wire):
    """Everything needed to compute it again."""

    key: str
    model_digest: str
    input_digest: str
    explainer_version: str
    versions: dict[str, str] = {}
    numerics: str
    device: str = ""
    threads: int | None = None
    chunk: int | None = None
    created: float
    seconds: float | None = None
    forwards: int | None = None


class Explanation(Wire):
    """The stored record."""

    id: str
    state: State
    job: str | None = None
    parent: str | None = None
    edits: list[dict[str, Any]] = []
    model: str
    model_name: str
    input: str
    input_name: str = ""
    explainer: str
    explainer_title: str
    family: str
    target: dict[str, Any] | None = None
    target_name: str = ""
    params: dict[str, Any]
    seed: int
    prediction: list[Prediction] = []
    artifacts: list[ArtifactRef] = []
    summary: str = ""
    """What a person would say of it, in a sentence."""
    trust: Trust
    provenance: Provenance
    error: ErrorBody | None = None
    title: str = ""
    note: str = ""
    tags: list[str] = []
    label: str | None = None
    outcome: Literal["right", "wrong"] | None = None
    dataset: str | None = None
    principal: str = ""
    superseded_by: str | None = None
    recomputes: str | None = None
    """The record that this one computed again."""
    verified: Verified | None = None
    """For a recomputation: how its numbers compare with the record it computed again."""
    created: float


class Verified(Wire):
    """Two computations of the same request, compared number by number."""

    equal: bool
    """Bit for bit."""
    largest_difference: float
    """Largest absolute difference over the largest absolute value, over all arrays."""


class ExplanationPatch(Request):
    title: Annotated[str, StringConstraints(max_length=200)] | None = None
    note: Annotated[str, StringConstraints(max_length=10_000)] | None = None
    tags: (
        Annotated[
            list[Annotated[str, StringConstraints(min_length=1, max_length=50, strip_whitespace=True)]],
            Field(max_length=32),
        ]
        | None
    ) = None


class Deleted(Wire):
    """What a deletion took along."""

    id: str
    revoked_shares: list[str] = []


class Job(Wire):
    """The computation of one explanation, of its trust record, or of one of the further checks."""

    id: str
    explanation: str
    kind: Literal["explain", "trust", "check"] = "explain"
    state: State
    progress: float = 0.0
    message: str = ""
    place: int | None = None
    """How many jobs are before it in the queue; None once it runs."""
    seconds_left: float | None = None
    mine: bool = False
    error: ErrorBody | None = None
    title: str = ""
    created: float
    started: float | None = None
    finished: float | None = None


class Accepted(Wire):
    """202: the work is kept; it survives a crash of the server."""

    id: str
    job: str
    state: State


Explanation.model_rebuild()
