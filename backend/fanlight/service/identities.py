"""Whom a provider's name for somebody means here. People are known by issuer and subject, never by an e-mail address, which may change hands.

Who is not known is let in only where the settings say so; their account is new then, is no operator's and has no password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from fanlight.errors import BadRequest, Conflict, Forbidden, Unauthorized
from fanlight.service import passwords
from fanlight.service.context import ROLES
from fanlight.service.provider import Claims
from fanlight.settings import Settings
from fanlight.store.database import now
from fanlight.store.ledger import new_id
from fanlight.store.people import identity, member, person, spent, workspace

LONGEST = 64  # characters of a name
FIT = re.compile(r"[^a-z0-9._@+-]+")
DOMAIN = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")


@dataclass(frozen=True)
class Newcomers:
    """What becomes of people whom nobody has linked to an account.

    Args: workspace: that they belong to from then on, None: they are refused; role: in it; domains: of verified addresses, empty: whatever it is.
    """

    workspace: str | None = None
    role: str = ""
    domains: frozenset[str] = frozenset()

    def welcome(self, claims: Claims) -> bool:
        if self.workspace is None:
            return False
        local, _, domain = claims.email.lower().partition("@")
        return not self.domains or (bool(local) and domain in self.domains)


def newcomers(settings: Settings) -> Newcomers:
    """As the settings say. Errors: bad_request, a sentence that names the setting."""
    domains = frozenset(d.lower() for d in Settings.listed(settings.oidc_domains))
    place, _, role = settings.oidc_new.partition("=")
    if not place and not role:
        if domains:
            raise BadRequest("FANLIGHT_OIDC_DOMAINS is set without FANLIGHT_OIDC_NEW, which says where they belong.")
        return Newcomers()
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", place) or role not in ROLES:
        allowed = ", ".join(ROLES)
        raise BadRequest(f"FANLIGHT_OIDC_NEW is WORKSPACE=ROLE, such as lab=viewer; roles are {allowed}.")
    strange = sorted(d for d in domains if not DOMAIN.fullmatch(d))
    if strange:
        raise BadRequest(f"FANLIGHT_OIDC_DOMAINS has domains such as example.org; “{strange[0]}” is none.")
    return Newcomers(place, role, domains)


def spend(conn: Connection, used: str, until: int) -> None:
    """Notes that this answer has begun a session; a second time it is refused. Args: used: hash of its state; until: microseconds since 1970."""
    conn.execute(delete(spent).where(spent.c.expires < now(conn)))
    if conn.execute(select(spent.c.expires).where(spent.c.state_hash == used)).first() is not None:
        raise Unauthorized(
            "This login has been used already.", code="provider_refused", hint="Start it again from here."
        )
    conn.execute(insert(spent).values(state_hash=used, expires=until))


def meant(conn: Connection, claims: Claims, rule: Newcomers) -> tuple[Row[Any], bool]:
    """The account, and whether it is new. Errors: unknown_person, one sentence for all whom nobody expects."""
    known = identity.c.issuer == claims.issuer, identity.c.subject == claims.subject
    found = conn.execute(select(identity.c.person).where(*known)).first()
    if found is None:
        if not rule.welcome(claims):
            raise _unexpected(claims)
        return _made(conn, claims, rule), True
    row = conn.execute(select(person).where(person.c.id == found.person)).first()
    if row is None or row.disabled is not None:
        raise _unexpected(claims)
    return row, False


def link(conn: Connection, issuer: str, subject: str, ident: str) -> None:
    """From now on this subject means this account alone. Args: subject: empty takes the link away. Errors: no_oidc, subject_taken."""
    if not issuer:
        hint = "Set FANLIGHT_OIDC_ISSUER first; docs/operations.md says how."
        raise Conflict("This server has no provider of identities.", code="no_oidc", hint=hint)
    here = identity.c.issuer == issuer
    if subject:
        held = conn.execute(select(identity.c.person).where(here, identity.c.subject == subject)).first()
        if held is not None and held.person not in (None, ident):
            raise Conflict("This subject is another account's.", code="subject_taken", given=subject)
        conn.execute(delete(identity).where(here, identity.c.subject == subject))
    conn.execute(delete(identity).where(here, identity.c.person == ident))
    if subject:
        conn.execute(insert(identity).values(issuer=issuer, subject=subject, person=ident, created=now(conn)))


def forsake(conn: Connection, ident: str) -> None:
    """Before an account is removed: whoever it was linked to is refused until somebody links them anew."""
    conn.execute(update(identity).where(identity.c.person == ident).values(person=None))


def subjects(conn: Connection, issuer: str, ident: str | None = None) -> dict[str, str]:
    """Per account its subject at the provider. Args: ident: of one account; None: of all."""
    wanted = select(identity.c.person, identity.c.subject).where(
        identity.c.issuer == issuer, identity.c.person.is_not(None)
    )
    if ident is not None:
        wanted = wanted.where(identity.c.person == ident)
    return {r.person: r.subject for r in conn.execute(wanted)} if issuer else {}


def _made(conn: Connection, claims: Claims, rule: Newcomers) -> Row[Any]:
    if conn.execute(select(workspace.c.id).where(workspace.c.id == rule.workspace)).first() is None:
        raise Forbidden(
            "New people cannot be let in: the workspace that they should belong to does not exist.",
            code="no_workspace",
            given=rule.workspace,
            hint="Whoever runs the server corrects FANLIGHT_OIDC_NEW.",
        )
    ident, t = new_id(), now(conn)
    row = {"id": ident, "name": _name(conn, claims), "password": passwords.NOBODY, "operator": False, "created": t}
    conn.execute(insert(person), row)
    conn.execute(insert(identity).values(issuer=claims.issuer, subject=claims.subject, person=ident, created=t))
    conn.execute(insert(member).values(workspace=rule.workspace, person=ident, role=rule.role, created=t))
    return conn.execute(select(person).where(person.c.id == ident)).one()


def _name(conn: Connection, claims: Claims) -> str:
    """A name that is free: the verified address, else what the provider calls them, else part of the id of nobody else."""
    wish = FIT.sub("-", (claims.email or claims.username).casefold()).lstrip("._@+-")[: LONGEST - 5] or "person"
    name, n = wish, 1
    while conn.execute(select(person.c.id).where(person.c.name == name)).first() is not None:
        n += 1
        name = f"{wish}-{n}" if n < 100 else f"person-{new_id().lower()}"
    return name


def _unexpected(claims: Claims) -> Forbidden:
    return Forbidden(
        "The provider knows you, but no account here is yours.",
        code="unknown_person",
        given=claims.subject,
        hint=f"Whoever runs the server can link one to you by your subject there: {claims.subject}",
    )
