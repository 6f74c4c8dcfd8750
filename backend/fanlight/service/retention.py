"""Retention: what is deleted by age.

Events, which streams replay, after FANLIGHT_EVENT_DAYS; never the newest, which says where numbers go on, nor what the gallery's list has not seen.

Old explanations that nobody marked or shared, where FANLIGHT_RETENTION_DAYS asks for it. Off by default. Kept whatever their age: what has a tag, a
title or a note, what a live share shows, what belongs to a sweep, what was changed into another record, what is not over, and the worked examples.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Connection, delete, exists, func, select

from fanlight.errors import FanlightError, NotFound
from fanlight.service.context import SYSTEM, Visitor
from fanlight.service.explain import remove
from fanlight.service.listing import listed_up_to
from fanlight.store.database import now
from fanlight.store.ledger import OPEN
from fanlight.store.tables import event, explanation, share, share_item, sweep_item, tag

if TYPE_CHECKING:
    from fanlight.service.context import Context

log = structlog.get_logger()
DAY = 86_400_000_000
EACH = 3600.0  # seconds between two looks
AT_ONCE = 200  # deletions between two pauses, so that people's writes come through
EVENTS = 2000  # events that are deleted in one transaction


def due(conn: Connection, days: int, limit: int = AT_ONCE) -> list[tuple[str, str]]:
    """(workspace, id) of the oldest explanations that may go."""
    t = now(conn)
    child = explanation.alias()
    shown = select(share_item.c.explanation).join(share, share.c.id == share_item.c.share)
    shown = shown.where(share.c.revoked.is_(None), share.c.expires > t)
    wanted = (
        select(explanation.c.workspace, explanation.c.id)
        .where(
            explanation.c.created < t - days * DAY,
            explanation.c.state.not_in(OPEN),
            explanation.c.principal != SYSTEM.principal,
            explanation.c.title == "",
            explanation.c.note == "",
            ~exists().where(tag.c.explanation == explanation.c.id),
            ~exists().where(sweep_item.c.explanation == explanation.c.id),
            ~exists().where(child.c.parent == explanation.c.id),
            explanation.c.id.not_in(shown),
        )
        .order_by(explanation.c.created)
        .limit(limit)
    )
    return [(row.workspace, row.id) for row in conn.execute(wanted)]


def tidy(context: Context) -> int:
    """Deletes one portion; returns how many."""
    gone = 0
    for workspace, ident in context.db.read(lambda c: due(c, context.settings.retention_days)):
        try:
            remove(context, Visitor("retention", workspace), ident)
        except NotFound:  # somebody was quicker
            continue
        gone += 1
    if gone:
        log.info("old explanations deleted", count=gone, days=context.settings.retention_days)
    return gone


def prune(context: Context) -> int:
    """Deletes one portion of the oldest events; returns how many."""
    days = context.settings.event_days

    def act(conn: Connection) -> int:
        newest = conn.execute(select(func.max(event.c.id))).scalar() or 0
        last = min(newest - 1, listed_up_to(conn))
        oldest = select(event.c.id, event.c.created).where(event.c.id <= last).order_by(event.c.id).limit(EVENTS)
        before = now(conn) - days * DAY
        ids = [r.id for r in conn.execute(oldest) if r.created < before]
        if ids:
            conn.execute(delete(event).where(event.c.id.in_(ids)))
        return len(ids)

    gone = context.db.write(act)
    if gone:
        log.info("old events deleted", count=gone, days=days)
    return gone


async def keep(context: Context) -> None:
    """Looks now and then, for as long as the server runs."""
    while True:
        pause = EACH
        try:
            full = await asyncio.to_thread(prune, context) == EVENTS
            if context.settings.retention_days:
                full = await asyncio.to_thread(tidy, context) == AT_ONCE or full
            if full:
                pause = 1.0
        except FanlightError as e:
            log.warning("what is old is not deleted", problem=e.message)
        except Exception:
            log.exception("what is old could not be deleted")
        await asyncio.sleep(pause)
