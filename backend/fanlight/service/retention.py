"""Retention: old explanations that nobody marked or shared are deleted, where FANLIGHT_RETENTION_DAYS asks for it. Off by default.

Kept whatever their age: what has a tag, a title or a note, what a live share shows, what belongs to a sweep, what was changed into another
record, what is not over, and the worked examples.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog
from sqlalchemy import Connection, exists, select

from fanlight.errors import FanlightError, NotFound
from fanlight.service.context import SYSTEM, Visitor
from fanlight.service.explain import remove
from fanlight.store.database import now
from fanlight.store.ledger import OPEN
from fanlight.store.tables import explanation, share, share_item, sweep_item, tag

if TYPE_CHECKING:
    from fanlight.service.context import Context

log = structlog.get_logger()
DAY = 86_400_000_000
EACH = 3600.0  # seconds between two looks
AT_ONCE = 200  # deletions between two pauses, so that people's writes come through


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


async def keep(context: Context) -> None:
    """Looks now and then, for as long as the server runs."""
    if context.settings.retention_days == 0:
        return
    while True:
        pause = EACH
        try:
            if await asyncio.to_thread(tidy, context) == AT_ONCE:
                pause = 1.0
        except FanlightError as e:
            log.warning("old explanations not deleted", problem=e.message)
        except Exception:
            log.exception("old explanations could not be deleted")
        await asyncio.sleep(pause)
