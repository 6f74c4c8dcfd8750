"""Who a visitor is, from what a request carries: a key, a session, a name and a password. Everything that the gate asks.

Resolved anew at each request, so that what is taken away is gone at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from fanlight.errors import Forbidden, TooBusy, Unauthorized, unknown
from fanlight.service import admission, identities, passwords
from fanlight.service.admission import SERVER
from fanlight.service.context import ROLES, WORKSPACE, Visitor
from fanlight.service.identities import Newcomers
from fanlight.service.provider import Claims
from fanlight.service.throttle import Throttle
from fanlight.store.audit import note
from fanlight.store.database import Database, now
from fanlight.store.people import member, person, session, workspace

DAY = 86_400_000_000
TOGETHER = 2  # passwords that are hashed at a time: each takes 64 MiB and up to four cores
WAITING = 20  # that may wait for it
WINDOW = 900.0  # seconds
OF_ONE = 10  # failures of one name from one address within WINDOW
OF_NAME = 100  # of one name from anywhere: nobody locks somebody else out easily
FORM = 43  # letters of a session's secret


class Entry:
    """Args: db; days: that a session lasts; newcomers: whom a provider may bring. One per application."""

    def __init__(self, db: Database, days: int, newcomers: Newcomers | None = None):
        self.db, self.days, self._newcomers = db, days, newcomers or Newcomers()
        self._hashing = asyncio.Semaphore(TOGETHER)
        self._waiting = 0
        self._near, self._far = Throttle(OF_ONE, WINDOW), Throttle(OF_NAME, WINDOW)

    async def key(self, given: str) -> Visitor:
        """Who holds this API key. Errors: wrong_token."""
        return await admission.enter(self.db, given)

    async def session(self, secret: str, wanted: str = "") -> Visitor | None:
        """Who this session is of, or None where it is over. Args: wanted: a workspace instead of the current one. Errors: unknown_workspace."""
        if len(secret) != FORM:
            return None
        found = await self.db.aread(lambda c: _resolved(c, fingerprint(secret), wanted))
        if found is not None and wanted and found.workspace != wanted:
            raise no_workspace(wanted)
        return found

    async def elsewhere(self, wanted: str) -> str:
        """The workspace that an operator asks for. Errors: unknown_workspace."""
        there = select(workspace.c.id).where(workspace.c.id == wanted)
        if wanted != WORKSPACE and await self.db.aread(lambda c: c.execute(there).first()) is None:
            raise no_workspace(wanted)
        return wanted

    async def peopled(self) -> bool:
        """Whether there are accounts, so that the door asks for a name."""
        return await self.db.aread(lambda c: c.execute(select(person.c.id).limit(1)).first()) is not None

    async def still(self, who: Visitor) -> bool:
        """Whether a visitor may still read in its workspace. For what goes on after the request was let in."""
        kind, _, named = who.ticket.partition(":")
        if kind == "key":
            return await self.db.aread(lambda c: admission.valid(c, named))
        if kind != "session":
            return True
        found = await self.db.aread(lambda c: _resolved(c, named, who.workspace))
        return found is not None and found.workspace == who.workspace and found.may("read")

    async def login(self, name: str, password: str, address: str, old: str = "") -> str:
        """The secret of a new session. Errors: wrong_login, one and the same whatever was wrong; too_busy.

        Args: address: that it comes from, for counting failures; old: secret of a session that ends with this.
        """
        name = name.strip().casefold()
        limit = (name, address)
        self.patience(limit)
        row = await self.db.aread(lambda c: c.execute(select(person).where(person.c.name == name)).first())
        # The same work for a name that is not there, and the same answer.
        good = await self.compared(password, passwords.NOBODY if row is None else row.password, limit)
        if row is None or not good or row.disabled is not None:
            self.failed(limit)
            if row is not None:  # not waited for: that would take longer than a name that is not there
                self.db.offer(lambda c: note(c, SERVER, principal(row.id), "person.refused", row.id), 0.0)
            raise Unauthorized("Name and password do not go together.", code="wrong_login")
        self._near.forget(limit)
        secret = secrets.token_urlsafe(32)
        await self.db.awrite(lambda c: self._begin(c, row, secret, old))
        return secret

    async def vouched(self, claims: Claims, used: str, until: int, old: str = "") -> str:
        """The secret of a new session of whom a provider vouches for. Errors: provider_refused, unknown_person, no_workspace.

        Args: used, until: of the provider's answer, which begins one session at most; old: as of `login`.
        """
        secret = secrets.token_urlsafe(32)

        def act(conn: Connection) -> None:
            identities.spend(conn, used, until)
            row, fresh = identities.meant(conn, claims, self._newcomers)
            by = {"issuer": claims.issuer, "subject": claims.subject}
            if fresh:
                note(conn, SERVER, principal(row.id), "person.create", row.id, by)
            self._begin(conn, row, secret, old, by)

        try:
            await self.db.awrite(act)
        except Forbidden as refused:
            detail = {"issuer": claims.issuer, "subject": claims.subject, "email": claims.email, "code": refused.code}
            await self.db.awrite(lambda c: note(c, SERVER, "provider", "person.refused", claims.subject, detail))
            raise
        return secret

    def patience(self, limit: tuple[str, str]) -> None:
        """Refuses who has failed too often. Args: limit: name and address. Errors: too_many_attempts."""
        if after := max(self._near.wait(limit), self._far.wait(limit[0])):
            raise TooBusy(
                "There were too many attempts with this name.",
                retry_after=int(after) + 1,
                code="too_many_attempts",
                hint=f"Try again in {int(after / 60) + 1} min.",
            )

    def failed(self, limit: tuple[str, str]) -> None:
        self._near.fail(limit)
        self._far.fail(limit[0])

    async def hashed(self, password: str) -> str:
        async with self._hashing:
            return await asyncio.to_thread(passwords.hashed, password)

    async def compared(self, password: str, stored: str, limit: tuple[str, str]) -> bool:
        """Whether the password is the stored one. Args: limit: name and address, as of `patience`. Errors: too_busy, too_many_attempts."""
        if self._waiting >= WAITING:
            raise TooBusy("Too many people are logging in.", retry_after=5, hint="Try again in a moment.")
        self._waiting += 1
        try:
            async with self._hashing:
                self.patience(limit)  # many may have been sent at once, and have failed while this one waited
                return await asyncio.to_thread(passwords.matches, password[:1024], stored)
        finally:
            self._waiting -= 1

    def _begin(
        self, conn: Connection, row: Row[Any], secret: str, old: str, by: Mapping[str, str] | None = None
    ) -> None:
        t = now(conn)
        conn.execute(delete(session).where((session.c.expires < t) | (session.c.secret_hash == fingerprint(old))))
        # Seen again, so that an account that was closed, or a password that was changed, while this one was compared opens nothing.
        still = person.c.id == row.id, person.c.disabled.is_(None), person.c.password == row.password
        if not conn.execute(update(person).where(*still).values(seen=t)).rowcount:
            raise Unauthorized("Name and password do not go together.", code="wrong_login")
        begun = {"person": row.id, "current": WORKSPACE, "created": t, "expires": t + self.days * DAY}
        conn.execute(insert(session).values(secret_hash=fingerprint(secret), **begun))
        note(conn, SERVER, principal(row.id), "person.login", row.id, by)

    async def logout(self, secret: str) -> None:
        """Ends a session; one that is none is no error."""

        def act(conn: Connection) -> None:
            mine = session.c.secret_hash == fingerprint(secret)
            of = conn.execute(select(session.c.person).where(mine)).scalar()
            if of is not None:
                conn.execute(delete(session).where(mine))
                note(conn, SERVER, principal(of), "person.logout", of)

        await self.db.awrite(act)


def fingerprint(secret: str) -> str:
    """What is stored of a secret of 256 bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def principal(ident: str) -> str:
    """Of a person. Names may be given again; ids are not."""
    return f"person:{ident}"


def no_workspace(given: str) -> Exception:
    """The one answer for a workspace that is not there and for one that is not the asker's."""
    return unknown("workspace", given, [], hint="GET /api/v1/me lists yours.")


def _resolved(conn: Connection, hashed: str, wanted: str) -> Visitor | None:
    """The visitor of a live session: in the wanted workspace, in the current one, or in the first that the person belongs to."""
    mine = select(session.c.current, session.c.expires, person).join(person, person.c.id == session.c.person)
    row = conn.execute(mine.where(session.c.secret_hash == hashed)).first()
    if row is None or row.disabled is not None or row.expires <= now(conn):
        return None
    roles = {
        m.workspace: m.role
        for m in conn.execute(select(member).where(member.c.person == row.id).order_by(member.c.workspace))
    }
    chosen = wanted or row.current
    if chosen not in roles:
        chosen = next(iter(roles), "")
    return Visitor(
        principal(row.id),
        chosen,
        person=True,
        scopes=frozenset(ROLES[roles[chosen]]) if chosen else frozenset(),
        operator=row.operator,
        name=row.name,
        ticket=f"session:{hashed}",
    )


def homeless(who: Visitor) -> Forbidden:
    """For somebody who is in no workspace."""
    return Forbidden(
        "You belong to no workspace yet.", code="no_workspace", given=who.name, hint="Ask an owner of one to add you."
    )
