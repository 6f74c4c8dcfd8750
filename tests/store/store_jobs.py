"""Rows for a ledger, and short words for what tests do with it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select, update

from fanlight.store import claims, ledger
from fanlight.store.database import Database
from fanlight.store.tables import explanation, job


def record(conn: Connection, ident: str, **values: Any) -> str:
    """A row of `explanation`, as a job needs one."""
    row = {
        "id": ident, "workspace": "w", "principal": "p", "key": ident, "live": True, "state": "queued", "edits": [], "model": "m",
        "model_digest": "d", "input": "i", "input_name": "i", "explainer": "saliency", "explainer_version": "1", "family": "f",
        "params": {}, "seed": 0, "numerics": "n", "target_name": "", "prediction": [], "artifacts": [], "summary": "", "trust": {},
        "trust_class": "pending", "provenance": {}, "title": "", "note": "", "created": 0,
    }  # fmt: skip
    conn.execute(insert(explanation).values(**{**row, **values}))
    return ident


class Jobs:
    """Short words for what tests do with a ledger."""

    def __init__(self, db: Database):
        self.db = db

    def add(
        self,
        *,
        workspace: str = "w",
        principal: str = "p",
        kind: str = "explain",
        priority: int = 1,
        cost: int = 10,
        deadline: int | None = None,
        queue_limit: int = 10**6,
        principal_limit: int = 10**6,
        throughput: float = 50,
    ) -> str:
        def act(conn: Connection) -> str:
            ident = record(conn, ledger.new_id(), workspace=workspace, principal=principal)
            row = {
                "workspace": workspace, "principal": principal, "explanation": ident, "kind": kind, "work": {}, "priority": priority,
                "cost": cost, "deadline": deadline,
            }  # fmt: skip
            limits = {"queue_limit": queue_limit, "principal_limit": principal_limit, "throughput": throughput}
            name = ledger.enqueue(conn, row, **limits)
            conn.execute(update(explanation).where(explanation.c.id == ident).values(job=name))
            return name

        return self.db.write(act)

    def claim(self, owner: str, limit: int = 1, kind: str = "explain") -> list[Any]:
        return self.db.write(lambda c: claims.claim(c, owner, {kind: limit}))

    def row(self, name: str) -> Any:
        return self.db.read(lambda c: c.execute(select(job).where(job.c.id == name)).one())

    def change(self, name: str, **values: Any) -> None:
        """What only time or a disaster would do."""
        self.db.write(lambda c: c.execute(update(job).where(job.c.id == name).values(**values)))

    def lapse(self, name: str) -> None:
        self.change(name, lease_until=1)

    def progress(self, row: Any, owner: str, done: float = 0.5) -> bool:
        return self.db.write(lambda c: ledger.progress(c, row.id, row.attempt, owner, done, "working"))

    def settle(self, row: Any, owner: str, state: str = "succeeded") -> Any:
        return self.db.write(lambda c: ledger.settle(c, row.id, row.attempt, owner, state))

    def release(self, row: Any, owner: str, *, crashed: bool) -> bool:
        return self.db.write(lambda c: ledger.release(c, row.id, row.attempt, owner, crashed=crashed))

    def reclaim(self, **options: Any) -> list[str]:
        return [r.id for r in self.db.write(lambda c: ledger.reclaim(c, **options))]

    def cancel(self, name: str, principal: str = "p") -> bool:
        return self.db.write(lambda c: ledger.cancel(c, "w", name, principal))

    def watch(self, name: str, principal: str) -> None:
        self.db.write(lambda c: ledger.watch(c, name, principal))

    def renew(self, owner: str, held: list[str]) -> set[str]:
        return self.db.write(lambda c: ledger.renew(c, owner, held))

    def overdue(self) -> list[str]:
        return [r.id for r in self.db.write(ledger.overdue)]
