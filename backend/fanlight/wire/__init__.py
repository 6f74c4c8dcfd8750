"""The types that cross HTTP. The client and the pages know only these; OpenAPI is generated from them.

Times are seconds since 1970 (UTC). Digests are sha256 in hex. Words are those of docs/vocabulary.md.
"""

from fanlight.wire.base import (
    TERMINAL as TERMINAL,
    Error as Error,
    ErrorBody as ErrorBody,
    Facet as Facet,
    Id as Id,
    Label as Label,
    Page as Page,
    Request as Request,
    State as State,
    Wire as Wire,
)
from fanlight.wire.catalog import (
    Availability as Availability,
    Citation as Citation,
    Dataset as Dataset,
    ExplainerInfo as ExplainerInfo,
    Input as Input,
    Measurement as Measurement,
    Model as Model,
    Sample as Sample,
    WorldScore as WorldScore,
)
from fanlight.wire.changes import (
    Edits as Edits,
    InterventionRequest as InterventionRequest,
    LivePanel as LivePanel,
    LiveRequest as LiveRequest,
)
from fanlight.wire.comparisons import Comparison as Comparison
from fanlight.wire.explanations import (
    MEASURES as MEASURES,
    Accepted as Accepted,
    ArtifactInfo as ArtifactInfo,
    ArtifactRef as ArtifactRef,
    ClassTarget as ClassTarget,
    Deleted as Deleted,
    Explanation as Explanation,
    Check as Check,
    ExplanationPatch as ExplanationPatch,
    ExplanationRequest as ExplanationRequest,
    Index as Index,
    Interval as Interval,
    Job as Job,
    MinusTarget as MinusTarget,
    Prediction as Prediction,
    Provenance as Provenance,
    Measure as Measure,
    SimilarTarget as SimilarTarget,
    Target as Target,
    Trust as Trust,
    Reading as Reading,
    TrustRequest as TrustRequest,
    Verified as Verified,
)
from fanlight.wire.shares import (
    NewShare as NewShare,
    Share as Share,
    ShareRequest as ShareRequest,
    System as System,
)
