"""What is counted while a server runs, for Prometheus; figures of the moment are read when it asks (`api/health.py`).

Labels come from closed sets only: route templates, methods, classes of status, kinds and states of jobs, codes of errors. No id, name or
address of a visitor is ever a label. The counts are those of one process; a compute worker of its own process reports through its results.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

REGISTRY = CollectorRegistry()
# From a live edit (5 to 100 ms) to a long wait of `?wait=`.
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

requests = Histogram(
    "fanlight_request_seconds",
    "Seconds from the head of a request to the end of its answer, by route template",
    ["method", "route", "status"],
    buckets=SECONDS,
    registry=REGISTRY,
)
ended = Counter("fanlight_jobs_ended", "Jobs that ended on this server", ["kind", "state"], registry=REGISTRY)
failures = Counter("fanlight_job_failures", "Attempts that failed, by code of the error", ["code"], registry=REGISTRY)
job_seconds = Histogram(
    "fanlight_job_seconds",
    "Seconds from claim to end of a job, by kind",
    ["kind"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
    registry=REGISTRY,
)
refused = Counter("fanlight_too_busy", "Requests answered 429", registry=REGISTRY)
store_errors = Counter("fanlight_artifact_store_errors", "Failures of the artifact store", ["code"], registry=REGISTRY)
database_errors = Counter("fanlight_database_errors", "Failures of the database", ["code"], registry=REGISTRY)
lost_leases = Counter("fanlight_leases_expired", "Jobs taken back from workers that were silent", registry=REGISTRY)
