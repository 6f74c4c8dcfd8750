"""What the unfinished work of one workspace may be at most, so that none takes a server from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, or_, select

from fanlight.errors import TooBusy
from fanlight.store.people import workspace
from fanlight.store.tables import job

OPEN = ("queued", "running")
_LIMITED = select(workspace.c.most_jobs, workspace.c.most_cost).where(
    or_(workspace.c.most_jobs.is_not(None), workspace.c.most_cost.is_not(None))
)


def keep(conn: Connection, row: Mapping[str, Any]) -> None:
    """Refuses a job beyond the quotas of its workspace. As with the limits of the server, what is less urgent than the job does not count, so that a
    sweep keeps nobody from asking, and a job alone is let in however large it is.

    Args:
        row: workspace, priority, cost (forward passes).

    Errors: quota.
    """
    # Locked, where the database has rows to lock: two who ask at once must not both find room for one.
    limits = conn.execute(_LIMITED.where(workspace.c.id == row["workspace"]).with_for_update()).first()
    if limits is None:
        return
    held = select(func.count(), func.coalesce(func.sum(job.c.cost), 0)).where(
        job.c.workspace == row["workspace"], job.c.state.in_(OPEN), job.c.priority <= row["priority"]
    )
    jobs, cost = conn.execute(held).one()
    if limits.most_jobs is not None and jobs >= limits.most_jobs:
        raise _full(f"Your workspace has {jobs} unfinished job{'s'[: jobs != 1]}.", limits.most_jobs)
    if limits.most_cost is not None and jobs and cost + row["cost"] > limits.most_cost:
        raise _full(f"Your workspace has {cost} forward passes of work ahead; this is {row['cost']}.", limits.most_cost)


def _full(message: str, most: int) -> TooBusy:
    return TooBusy(
        message,
        code="quota",
        retry_after=5,
        allowed=int(most),
        hint="Wait for some of it, cancel what is not needed under Jobs, or ask an operator for more.",
    )
