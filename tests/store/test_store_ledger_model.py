"""The ledger against a model of it in plain Python: any order of events keeps what was promised."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule
from store_jobs import Jobs

from fanlight.errors import FanlightError
from fanlight.store import ledger
from fanlight.store.database import Database
from fanlight.store.ledger import MAX_CRASHES
from fanlight.store.migrate import upgrade

OWNERS = st.sampled_from(["a", "b", "c"])
PEOPLE = st.sampled_from(["anna", "ben"])


@dataclass
class Job:
    """What the ledger should know."""

    priority: int
    number: int
    principal: str
    watchers: set[str]
    state: str = "queued"
    owner: str | None = None
    attempt: int = 0
    crashes: int = 0
    lapsed: bool = False
    cancelled: bool = False
    results: list[int] = field(default_factory=list)

    @property
    def open(self) -> bool:
        return self.state in ledger.OPEN

    def free(self, *, blame: bool) -> None:
        self.crashes += blame
        self.state, self.owner, self.lapsed = "queued", None, False


class Ledger(RuleBasedStateMachine):
    names = Bundle("names")
    attempts = Bundle("attempts")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        url = f"sqlite:///{Path(self.folder.name) / 'x.sqlite'}"
        upgrade(url)
        self.db = Database(url)
        self.jobs = Jobs(self.db)
        self.model: dict[str, Job] = {}

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()

    def held(self, claim: Any) -> Job | None:
        """The model's job if this attempt holds it."""
        job = self.model[claim.id]
        return job if job.open and (job.owner, job.attempt) == (claim.owner, claim.attempt) else None

    @rule(target=names, priority=st.integers(0, 3), principal=PEOPLE)
    def add(self, priority: int, principal: str) -> str:
        name = self.jobs.add(priority=priority, principal=principal)
        self.model[name] = Job(priority, len(self.model), principal, {principal})
        return name

    @rule(target=attempts, owner=OWNERS, limit=st.integers(1, 3))
    def claim(self, owner: str, limit: int) -> Any:
        free = [n for n, j in self.model.items() if j.open and j.owner is None and not j.cancelled]
        asked: dict[tuple[int, str], list[str]] = {}
        for n in free:  # oldest first
            asked.setdefault((self.model[n].priority, self.model[n].principal), []).append(n)
        rows = self.jobs.claim(owner, limit)
        urgent = sorted(self.model[n].priority for n in free)
        assert [r.priority for r in rows] == urgent[:limit], "as many as there are, the most urgent first"
        for (priority, principal), theirs in asked.items():
            got = [r.id for r in rows if (r.priority, r.principal) == (priority, principal)]
            assert got == theirs[: len(got)], "of one person by age"
        for row in rows:
            job = self.model[row.id]
            job.owner, job.attempt, job.lapsed = owner, job.attempt + 1, False
            assert (row.attempt, row.crashes) == (job.attempt, job.crashes)
        return multiple(*rows)

    @rule(claim=attempts)
    def progress(self, claim: Any) -> None:
        job = self.held(claim)
        assert self.jobs.progress(claim, claim.owner) == (job is not None)
        if job:
            job.state = "running"

    @rule(claim=attempts, state=st.sampled_from(["succeeded", "failed", "cancelled", "expired"]))
    def settle(self, claim: Any, state: str) -> None:
        job = self.held(claim)
        assert self.jobs.settle(claim, claim.owner, state) == (job is not None)
        if job:
            job.results.append(claim.attempt)
            job.state, job.owner = state, None

    @rule(claim=attempts, crashed=st.booleans())
    def release(self, claim: Any, crashed: bool) -> None:
        job = self.held(claim)
        back = job is not None and not (crashed and job.crashes + 1 >= MAX_CRASHES)
        assert self.jobs.release(claim, claim.owner, crashed=crashed) == back
        if job and back:
            job.free(blame=crashed)

    @rule(name=names)
    def lapse(self, name: str) -> None:
        job = self.model[name]
        if job.owner is not None:
            self.jobs.lapse(name)
            job.lapsed = True

    @rule(owner=OWNERS, known=st.booleans())
    def reclaim(self, owner: str, known: bool) -> None:
        mine = [n for n, j in self.model.items() if j.owner == owner] if known else []
        doomed = self.jobs.reclaim(held=mine)
        self.freed([j for n, j in self.model.items() if j.open and j.lapsed and n not in mine], doomed)

    @rule()
    def restart(self) -> None:
        doomed = self.jobs.reclaim(dead=True)
        self.freed([j for j in self.model.values() if j.open and j.owner is not None], doomed)

    def freed(self, lost: list[Job], doomed: list[str]) -> None:
        for job in lost:
            job.free(blame=job.state == "running")
        assert set(doomed) == {n for n, j in self.model.items() if j in lost and j.crashes >= MAX_CRASHES}
        self.db.write(lambda c: ledger.close(c, doomed, "failed"))
        for name in doomed:
            self.model[name].state = "failed"

    @rule(owner=OWNERS, data=st.data())
    def renew(self, owner: str, data: st.DataObject) -> None:
        held = data.draw(st.lists(st.sampled_from(sorted(self.model)), unique=True)) if self.model else []
        ours = {n for n in held if self.model[n].open and self.model[n].owner == owner}
        assert self.jobs.renew(owner, held) == set(held) - {n for n in ours if not self.model[n].cancelled}
        for name in ours:
            self.model[name].lapsed = False

    @rule(name=names, principal=PEOPLE)
    def watch(self, name: str, principal: str) -> None:
        job = self.model[name]
        self.jobs.watch(name, principal)
        if principal not in job.watchers:
            job.watchers.add(principal)
            job.cancelled = False

    @rule(name=names, principal=PEOPLE)
    def cancel(self, name: str, principal: str) -> None:
        job = self.model[name]
        try:
            last = self.jobs.cancel(name, principal)
        except FanlightError as e:
            assert e.code == ("job_over" if not job.open or job.cancelled else "not_yours")
            assert not job.open or principal not in job.watchers
            return
        job.watchers.discard(principal)
        assert job.open and last == (not job.watchers)
        job.cancelled = job.cancelled or last

    @rule()
    def sweep(self) -> None:
        late = self.jobs.overdue()
        assert set(late) == {n for n, j in self.model.items() if j.open and j.owner is None and j.cancelled}
        self.db.write(lambda c: ledger.close(c, late, "cancelled"))
        for name in late:
            self.model[name].state = "cancelled"

    @invariant()
    def nothing_is_lost_and_nothing_takes_effect_twice(self) -> None:
        for name, job in self.model.items():
            row = self.jobs.row(name)
            assert (row.state, row.owner, row.attempt, row.crashes, row.cancel_requested) == (
                job.state, job.owner, job.attempt, job.crashes, job.cancelled,
            )  # fmt: skip
            assert len(job.results) <= 1
            assert job.open or row.finished


Ledger.TestCase.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_history_of_the_ledger_agrees_with_its_model = Ledger.TestCase
