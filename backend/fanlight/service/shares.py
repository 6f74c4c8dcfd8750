"""Shares: revocable, expiring, read-only links to a frozen snapshot. The token is random, shown once and stored hashed."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from fanlight import wire
from fanlight.drawing.scene import Style
from fanlight.drawing.section import question
from fanlight.drawing.seen import Seen
from fanlight.errors import Conflict, Unavailable, unknown
from fanlight.explainers.registry import registry
from fanlight.quality import world
from fanlight.service.context import Context, Visitor
from fanlight.service.records import explanation_wire
from fanlight.store import ledger, sight
from fanlight.store.audit import note
from fanlight.store.database import now
from fanlight.store.tables import explanation, input_, reference, share, share_item

DAY = 86_400_000_000


def create(context: Context, visitor: Visitor, request: wire.ShareRequest) -> wire.NewShare:
    """Freezes finished explanations as they are now. Errors: unknown_explanation, not_finished, invalid_field (a view that cannot be drawn)."""
    Style.of(request.view)
    Seen.of(request.view)
    token = secrets.token_urlsafe(32)
    days = request.expires_in_days or context.settings.share_days

    def act(conn: Connection) -> Row[Any]:
        rows = [_finished(conn, visitor.workspace, i) for i in dict.fromkeys(request.explanations)]
        t = now(conn)
        ident = ledger.new_id()
        held = snapshot(context, conn, rows, view=request.view, expires=(t + days * DAY) / 1e6)
        conn.execute(
            insert(share).values(
                id=ident,
                workspace=visitor.workspace,
                principal=visitor.principal,
                token_hash=_hash(token),
                title=held["title"],
                snapshot=held,
                created=t,
                expires=t + days * DAY,
                views=0,
            )
        )
        for n, row in enumerate(rows):
            conn.execute(insert(share_item).values(share=ident, position=n, explanation=row.id))
        for d in {d for e in held["explanations"] for d in e["blobs"].values() if d}:
            conn.execute(insert(reference).values(digest=d, owner=f"share:{ident}", workspace=visitor.workspace))
        _note(conn, visitor, "share.create", ident, {"explanations": request.explanations, "days": days})
        return conn.execute(select(share).where(share.c.id == ident)).one()

    row = context.db.write(act)
    base = (
        context.settings.public_url
        or f"http://{context.settings.host}:{context.settings.port}{context.settings.root_path}"
    )
    seen = _wire(context.db.read(lambda c: _items(c, [row])), row)
    alone = context.settings.public_url is None and context.settings.loopback
    return wire.NewShare(**seen.model_dump(), url=f"{base.rstrip('/')}/s/{token}", token=token, loopback_only=alone)


def snapshot(
    context: Context, conn: Connection, rows: list[Row[Any]], *, view: Mapping[str, Any], expires: float | None
) -> dict[str, Any]:
    """What a share page shows, for ever: the records as they are now."""
    records = [frozen(context, conn, r) for r in rows]
    first = question(wire.Explanation.model_validate(records[0]))
    title = first + (f" and {len(rows) - 1} more" if len(rows) > 1 else "")
    return {"explanations": records, "view": dict(view), "title": title, "created": now(conn) / 1e6, "expires": expires}


def frozen(context: Context, conn: Connection, row: Row[Any]) -> dict[str, Any]:
    """A record with everything that the share page needs to draw it again, however the record changes later."""
    record = explanation_wire(context, row)
    explainers = registry(context.explainers)
    method = explainers.get(row.explainer)
    words: dict[str, Any] = {}
    if method is not None:
        paper = {"citation": method.paper.citation, "link": method.paper.link}
        words = {"reading": method.reading, "misleads": method.misleads, "paper": paper}
    source = conn.execute(
        select(input_.c.blob).where(input_.c.workspace == row.workspace, input_.c.id == row.input)
    ).scalar()
    scored = world.score(record.explainer, record.provenance.explainer_version, world.shipped())
    if scored is not None:
        words["world"] = scored.model_dump(mode="json")
    maps = [a for a in row.artifacts if a["kind"] == "image-map"] or row.artifacts
    curves = (row.trust or {}).get("curves")
    blobs = {
        "picture": source,
        "map": maps[0]["digest"] if maps else None,
        "curves": curves["digest"] if curves else None,
    }
    # Who made it, where and with what note is the workspace's business, not the reader's.
    hidden = {"principal", "note", "tags", "job", "parent", "dataset"}
    body = {k: v for k, v in record.model_dump(mode="json").items() if k not in hidden}
    return {**body, **words, "method_title": record.explainer_title, "edits": row.edits, "blobs": blobs}


def opened(context: Context, token: str, *, view: bool) -> Row[Any] | None:
    """The live share of a token, or None: unknown, expired and revoked are one and the same. `view` counts a visit."""

    def act(conn: Connection) -> Row[Any] | None:
        row = conn.execute(select(share).where(share.c.token_hash == _hash(token))).first()
        if row is None or row.revoked is not None or row.expires < now(conn):
            return None
        return row

    with sight.server():  # the link says of which workspace it is; nothing else of the request does
        row = context.db.read(act)
        if row is not None and view:
            _count(context, row)
    return row


def _count(context: Context, row: Row[Any]) -> None:
    """A visit; the page does not depend on it, so a full disk does not take it away."""
    with contextlib.suppress(Unavailable):
        context.db.write(lambda c: c.execute(update(share).where(share.c.id == row.id).values(views=share.c.views + 1)))


def listed(context: Context, visitor: Visitor, of: str | None = None) -> list[wire.Share]:
    """Shares of the workspace, the visitor's own first, then newest first; `of`: only live ones that show this explanation."""

    def act(conn: Connection) -> list[wire.Share]:
        wanted = select(share).where(share.c.workspace == visitor.workspace).order_by(share.c.created.desc()).limit(500)
        if of is not None:
            wanted = wanted.where(
                share.c.id.in_(select(share_item.c.share).where(share_item.c.explanation == of)),
                share.c.revoked.is_(None),
                share.c.expires > now(conn),
            )
        rows = list(conn.execute(wanted))
        items = _items(conn, rows)
        return sorted((_wire(items, r) for r in rows), key=lambda s: s.principal != visitor.principal)

    return context.db.read(act)


def revoke(context: Context, visitor: Visitor, ident: str) -> wire.Share:
    """The link is dead from now on. Revoking twice is no error."""

    def act(conn: Connection) -> wire.Share:
        row = conn.execute(select(share).where(share.c.workspace == visitor.workspace, share.c.id == ident)).first()
        if row is None:
            raise unknown("share", ident, [])
        if row.revoked is None:
            conn.execute(update(share).where(share.c.id == ident).values(revoked=now(conn)))
            _note(conn, visitor, "share.revoke", ident, {})
        row = conn.execute(select(share).where(share.c.id == ident)).one()
        return _wire(_items(conn, [row]), row)

    return context.db.write(act)


def revoke_for(conn: Connection, visitor: Visitor, explanation_id: str) -> list[str]:
    """Revokes the live shares that show an explanation about to be deleted; returns their ids."""
    inside = select(share_item.c.share).where(share_item.c.explanation == explanation_id)
    t = now(conn)
    ids = [
        r.id
        for r in conn.execute(
            select(share.c.id).where(share.c.id.in_(inside), share.c.revoked.is_(None), share.c.expires > t)
        )
    ]
    if ids:
        conn.execute(update(share).where(share.c.id.in_(ids)).values(revoked=t))
        _note(conn, visitor, "share.revoke", explanation_id, {"because": "explanation deleted", "shares": ids})
    return ids


def _finished(conn: Connection, workspace: str, ident: str) -> Row[Any]:
    row = conn.execute(
        select(explanation).where(explanation.c.workspace == workspace, explanation.c.id == ident)
    ).first()
    if row is None:
        raise unknown("explanation", ident, [])
    if row.state != "succeeded":
        raise Conflict(
            f"Only a finished explanation can be shared; this one is {row.state}.", code="not_finished", given=ident
        )
    return row


def _items(conn: Connection, rows: list[Row[Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {r.id: [] for r in rows}
    for item in conn.execute(
        select(share_item).where(share_item.c.share.in_(list(found))).order_by(share_item.c.position)
    ):
        found[item.share].append(item.explanation)
    return found


def _wire(items: Mapping[str, list[str]], row: Row[Any]) -> wire.Share:
    return wire.Share(
        id=row.id,
        explanations=items[row.id],
        title=row.title,
        created=row.created / 1e6,
        expires=row.expires / 1e6,
        revoked=row.revoked / 1e6 if row.revoked else None,
        views=row.views,
        principal=row.principal,
    )


def _note(conn: Connection, visitor: Visitor, action: str, subject: str, detail: Mapping[str, Any]) -> None:
    note(conn, visitor.workspace, visitor.principal, action, subject, detail)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
