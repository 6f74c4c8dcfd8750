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
    Cost as Cost,
    Dataset as Dataset,
    DatasetReading as DatasetReading,
    Examination as Examination,
    ExplainerInfo as ExplainerInfo,
    Finding as Finding,
    Input as Input,
    Measurement as Measurement,
    Model as Model,
    NewInput as NewInput,
    Prompt as Prompt,
    Sample as Sample,
    WorldScore as WorldScore,
)
from fanlight.wire.chances import (
    Chances as Chances,
    ChancesRequest as ChancesRequest,
    WordChance as WordChance,
)
from fanlight.wire.changes import (
    Edits as Edits,
    InterventionRequest as InterventionRequest,
    LivePanel as LivePanel,
    LiveRequest as LiveRequest,
)
from fanlight.wire.comparisons import Comparison as Comparison
from fanlight.wire.derivations import (
    Change as Change,
    Derivation as Derivation,
    DerivationRequest as DerivationRequest,
    DerivationState as DerivationState,
    Effect as Effect,
)
from fanlight.wire.explanations import (
    MEASURES as MEASURES,
    Accepted as Accepted,
    ArtifactInfo as ArtifactInfo,
    ArtifactRef as ArtifactRef,
    Check as Check,
    ClassTarget as ClassTarget,
    ConceptTarget as ConceptTarget,
    Deleted as Deleted,
    Explanation as Explanation,
    ExplanationPatch as ExplanationPatch,
    ExplanationRequest as ExplanationRequest,
    Index as Index,
    Interval as Interval,
    Job as Job,
    Measure as Measure,
    MinusTarget as MinusTarget,
    Prediction as Prediction,
    Provenance as Provenance,
    Reading as Reading,
    SimilarTarget as SimilarTarget,
    Target as Target,
    Trust as Trust,
    TrustRequest as TrustRequest,
    Verified as Verified,
)
from fanlight.wire.keys import (
    AuditEntry as AuditEntry,
    Key as Key,
    KeyRequest as KeyRequest,
    NewKey as NewKey,
    Scope as Scope,
)
from fanlight.wire.people import (
    Me as Me,
    Member as Member,
    MemberRequest as MemberRequest,
    Membership as Membership,
    PasswordChange as PasswordChange,
    Person as Person,
    PersonPatch as PersonPatch,
    PersonRequest as PersonRequest,
    Role as Role,
    Switch as Switch,
    Workspace as Workspace,
    WorkspacePatch as WorkspacePatch,
    WorkspaceRequest as WorkspaceRequest,
)
from fanlight.wire.shares import (
    NewShare as NewShare,
    Share as Share,
    ShareRequest as ShareRequest,
    System as System,
)
from fanlight.wire.sweeps import (
    Cluster as Cluster,
    Clusters as Clusters,
    Faithful as Faithful,
    ItemState as ItemState,
    Point as Point,
    Portion as Portion,
    Projection as Projection,
    Rule as Rule,
    Study as Study,
    StudyCell as StudyCell,
    StudyColumn as StudyColumn,
    Sweep as Sweep,
    SweepItem as SweepItem,
    SweepRequest as SweepRequest,
    SweepSource as SweepSource,
    SweepState as SweepState,
    SweepSummary as SweepSummary,
    WordLists as WordLists,
)
from fanlight.wire.trainings import Training as Training, TrainingState as TrainingState, TrainingStep as TrainingStep
from fanlight.wire.trials import (
    Difference as Difference,
    Move as Move,
    Trial as Trial,
    TrialClass as TrialClass,
    TrialItem as TrialItem,
    TrialItemState as TrialItemState,
    TrialRequest as TrialRequest,
    TrialState as TrialState,
    TrialSummary as TrialSummary,
    TrialWhere as TrialWhere,
)
from fanlight.wire.views import (
    VIEWED as VIEWED,
    SavedView as SavedView,
    ViewPatch as ViewPatch,
    ViewRequest as ViewRequest,
)
from fanlight.wire.worlds import (
    World as World,
    WorldGroup as WorldGroup,
    WorldKind as WorldKind,
    WorldPair as WorldPair,
)
