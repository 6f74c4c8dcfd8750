"""The types that cross HTTP. The client and the pages know only these; OpenAPI is generated from them.

Times are seconds since 1970 (UTC). Digests are sha256 in hex. Words are those of docs/vocabulary.md.
"""

from fanlight.wire.base import (
    TERMINAL as TERMINAL,
)
from fanlight.wire.base import (
    Error as Error,
)
from fanlight.wire.base import (
    ErrorBody as ErrorBody,
)
from fanlight.wire.base import (
    Facet as Facet,
)
from fanlight.wire.base import (
    Id as Id,
)
from fanlight.wire.base import (
    Label as Label,
)
from fanlight.wire.base import (
    Page as Page,
)
from fanlight.wire.base import (
    Request as Request,
)
from fanlight.wire.base import (
    State as State,
)
from fanlight.wire.base import (
    Wire as Wire,
)
from fanlight.wire.catalog import (
    Availability as Availability,
)
from fanlight.wire.catalog import (
    Citation as Citation,
)
from fanlight.wire.catalog import (
    Dataset as Dataset,
)
from fanlight.wire.catalog import (
    ExplainerInfo as ExplainerInfo,
)
from fanlight.wire.catalog import (
    Input as Input,
)
from fanlight.wire.catalog import (
    Model as Model,
)
from fanlight.wire.catalog import (
    Sample as Sample,
)
from fanlight.wire.changes import (
    Edits as Edits,
)
from fanlight.wire.changes import (
    InterventionRequest as InterventionRequest,
)
from fanlight.wire.changes import (
    LivePanel as LivePanel,
)
from fanlight.wire.changes import (
    LiveRequest as LiveRequest,
)
from fanlight.wire.explanations import (
    MEASURES as MEASURES,
)
from fanlight.wire.explanations import (
    Accepted as Accepted,
)
from fanlight.wire.explanations import (
    ArtifactInfo as ArtifactInfo,
)
from fanlight.wire.explanations import (
    ArtifactRef as ArtifactRef,
)
from fanlight.wire.explanations import (
    ClassTarget as ClassTarget,
)
from fanlight.wire.explanations import (
    Deleted as Deleted,
)
from fanlight.wire.explanations import (
    Explanation as Explanation,
)
from fanlight.wire.explanations import (
    ExplanationPatch as ExplanationPatch,
)
from fanlight.wire.explanations import (
    ExplanationRequest as ExplanationRequest,
)
from fanlight.wire.explanations import (
    Index as Index,
)
from fanlight.wire.explanations import (
    Interval as Interval,
)
from fanlight.wire.explanations import (
    Job as Job,
)
from fanlight.wire.explanations import (
    MinusTarget as MinusTarget,
)
from fanlight.wire.explanations import (
    Prediction as Prediction,
)
from fanlight.wire.explanations import (
    Provenance as Provenance,
)
from fanlight.wire.explanations import (
    Target as Target,
)
from fanlight.wire.explanations import (
    Trust as Trust,
)
from fanlight.wire.explanations import (
    TrustRequest as TrustRequest,
)
from fanlight.wire.explanations import (
    Verified as Verified,
)
from fanlight.wire.shares import (
    NewShare as NewShare,
)
from fanlight.wire.shares import (
    Share as Share,
)
from fanlight.wire.shares import (
    ShareRequest as ShareRequest,
)
from fanlight.wire.shares import (
    System as System,
)
