"""The types that cross HTTP. The client and the pages know only these; OpenAPI is generated from them.

Times are seconds since 1970 (UTC). Digests are sha256 in hex. Words are those of docs/vocabulary.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

T = TypeVar("T")

State = Literal["queued", "running", "succeeded", "failed", "cancelled", "expired"]
TERMINAL: tuple[State, ...] = ("succeeded", "failed", "cancelled", "expired")

Id = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Label = Annotated[str, StringConstraints(max_length=200)]


class Wire(BaseModel):
    """Answers may grow fields; requests refuse what they do not know."""

    model_config = ConfigDict(frozen=True)


class Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Page(Wire, Generic[T]):
    """A page of a list. `total` is exact to 10,000; `total_is_floor` says that there are more."""

    items: list[T]
    next_cursor: str | None = None
    total: int
    total_is_floor: bool = False
    facets: dict[str, list[Facet]] = {}


class Facet(Wire):
    value: str
    label: str
    count: int


class ErrorBody(Wire):
    code: str
    message: str
    given: Any = None
    allowed: Any = None
    hint: str | None = None


class Error(Wire):
    """The one error shape, everywhere."""

    error: ErrorBody


# --- inputs, data sets, models, explainers


class Input(Wire):
    """What is explained. `id` is the digest of the decoded content, so the same picture in another file is the same input."""

    id: str
    kind: Literal["image"] = "image"
    width: int
    height: int
    name: str = ""
    notes: list[str] = []
    """What decoding did that a person may want to know: turned by EXIF, scaled from 16 bit, alpha laid on white, ..."""
    created: float
    url: str
    thumbnail: str


class Dataset(Wire):
    id: str
    name: str
    version: int
    digest: str
    count: int
    unreadable: int = 0
    terms: str = ""
    description: str = ""


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
    digest: str
    description: str = ""
    terms: str = ""
    size: tuple[int, int]
    classes: list[str] | None = None
    capabilities: list[str]
    explainers: list[Availability]
    card: str = ""


class Citation(Wire):
    citation: str
    link: str
    bibtex: str


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
    paper: Citation
    docs: str


# --- explanations


Index = Annotated[int, Field(strict=True)]


class MinusTarget(Request):
    """The difference of two logits: evidence for the first class rather than the second."""

    minus: tuple[Index | Label, Index | Label]


class ClassTarget(Request):
    """Canonical form of a single class."""

    class_: Annotated[int, Field(alias="class", ge=0)]


Target = Index | Label | MinusTarget | ClassTarget


class ExplanationRequest(Request):
    """Ask for an explanation. An omitted target means the top prediction."""

    model: Id
    input: Id
    explainer: Id
    target: Target | None = None
    params: dict[str, Any] = {}
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Prediction(Wire):
    index: int
    name: str
    probability: float
    logit: float


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


class Interval(Wire):
    """95 % interval; see docs/trust.md for what varies."""

    lo: float
    hi: float


class Trust(Wire):
    """How far to trust a map: its measured faithfulness against a random floor on the same input.

    `insertion`, `deletion` and `faithfulness` are relative to the floor: 0 is what a random order of patches gets, more is better.
    `unavailable` says why in `reason`.
    """

    state: Literal["pending", "running", "succeeded", "failed", "unavailable"]
    insertion: float | None = None
    deletion: float | None = None
    faithfulness: float | None = None
    above_floor: bool | None = None
    completeness_error: float | None = None
    floor: dict[str, float] = {}
    interval: dict[str, Interval] = {}
    curves: ArtifactRef | None = None
    reason: str | None = None
    seconds: float | None = None


MEASURES = ("insertion", "deletion")


class TrustRequest(Request):
    """Ask for the trust record; `measures` omitted means all of them."""

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
    """The computation of one explanation."""

    id: str
    explanation: str
    kind: Literal["explain", "trust"] = "explain"
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


# --- interventions and live edits


Edits = Annotated[list[dict[str, Any]], Field(max_length=100)]


class InterventionRequest(Request):
    """A new explanation whose parent is `explanation`, with the whole list of edits. docs/interventions.md lists the edits of each family."""

    explanation: Id
    edits: Edits
    note: Annotated[str, StringConstraints(max_length=10_000)] = ""


class LiveRequest(Request):
    """A preview of edits, not stored. Of a session only the latest `seq` is answered."""

    session: Id
    explanation: Id
    edits: Edits
    seq: Annotated[int, Field(ge=0, lt=2**53)]


class LivePanel(Wire):
    seq: int
    target: dict[str, Any] | None = None
    target_name: str = ""
    summary: str = ""
    image: str
    """data:image/png;base64, ..."""
    legend: dict[str, Any]


# --- shares


class ShareRequest(Request):
    explanations: Annotated[list[Id], Field(min_length=1, max_length=16)]
    view: dict[str, Any] = {}
    expires_in_days: Annotated[int, Field(ge=1, le=3650)] | None = None


class Share(Wire):
    """A link as its owner sees it. The token itself is shown once, when the share is made."""

    id: str
    explanations: list[str]
    title: str = ""
    created: float
    expires: float
    revoked: float | None = None
    views: int = 0
    principal: str = ""


class NewShare(Share):
    url: str
    token: str
    loopback_only: bool
    """True where nobody else can open the link: the server is bound to loopback and no public URL is set."""


# --- system


class System(Wire):
    """What the pages need to know of the server."""

    version: str
    device: str
    ready: bool
    queued: int
    running: int
    explanations: int
    principal: str
    loopback: bool
    public_url: str | None = None
    numerics: str
    versions: dict[str, str] = {}
    settings: dict[str, Any] = {}


Page.model_rebuild()
Explanation.model_rebuild()
