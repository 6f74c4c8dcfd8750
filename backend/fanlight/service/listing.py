"""What the gallery lists: one narrow row per shown explanation, and its words in a full-text index (FTS5 in SQLite, a tsvector in PostgreSQL).

Derived from the explanations, in batches: the feed of events names what has changed since the last look. So a computation does not pay for the
gallery, and a page looks first whether there is something to catch up on. Filters are words too, so that any combination of them is one
question to one index. `docs/decisions/0007`.
"""

from __future__ import annotations

import asyncio
import hashlib
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import structlog
from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    column,
    delete,
    insert,
    select,
    table,
    update,
)

from fanlight.errors import FanlightError, Unavailable
from fanlight.service.context import Context
from fanlight.store import sight
from fanlight.store.tables import counter, event, explanation, listing, sweep_item, tag

log = structlog.get_logger()

WORDS = table("listing_words", column("rowid"), column("listing_words"))  # of SQLite; made by migration 0003
SHOWN = ("succeeded", "queued", "running", "failed")
OPEN = ("queued", "running")
LOWEST = -9.0  # the rank of what has no faithfulness or probability
LONGEST = 64  # letters of a word that are told apart
BATCH = 500
PATIENCE = 0.3  # seconds that a page waits for what has just changed
PAUSE = 1.0  # seconds between two looks of a server that nobody asks
SHOWN_COUNT = "shown"
SEEN, EVERYBODY = "listed", ""  # the counter that holds the last event that was looked at


@lru_cache(4096)
def key(name: str, value: str) -> str:
    """A filter as one word that nobody types."""
    return "k" + hashlib.sha256(f"{name}={value}".encode()).hexdigest()[:20]


def tokens(said: str) -> list[str]:
    """Words as they are searched: runs of letters and digits, without case and accents."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", said.casefold()) if not unicodedata.combining(c))
    return [word[:LONGEST] for word in "".join(c if c.isalnum() else " " for c in plain).split()]


def behind(conn: Connection) -> bool:
    newest = conn.execute(select(event.c.id).order_by(event.c.id.desc()).limit(1)).scalar() or 0
    return newest > listed_up_to(conn)


def refresh(context: Context) -> None:
    """Lists what has changed up to now. Cheap where nothing has; where the database cannot be written to, reading goes on with what is listed."""
    try:
        with sight.upkeep():
            while context.db.read(behind):
                if not context.db.offer(lambda c: catch_up(context, c), PATIENCE):
                    return
    except Unavailable as e:
        log.warning("gallery not brought up to date", problem=e.message)


async def keep(context: Context) -> None:
    """Catches up now and then, for as long as the server runs."""
    while True:
        await asyncio.sleep(PAUSE)
        try:
            await asyncio.to_thread(refresh, context)
        except FanlightError as e:
            log.warning("gallery not brought up to date", problem=e.message)
        except Exception:
            log.exception("gallery could not be brought up to date")


def catch_up(context: Context, conn: Connection) -> None:
    """Lists what the next BATCH events name."""
    seen = listed_up_to(conn)
    rows = list(
        conn.execute(select(event.c.id, event.c.data).where(event.c.id > seen).order_by(event.c.id).limit(BATCH))
    )
    if not rows:
        return
    named = dict.fromkeys(str(r.data["explanation"]) for r in rows if r.data.get("explanation"))
    put(context, conn, list(named))
    here = counter.c.workspace == EVERYBODY, counter.c.name == SEEN
    if not conn.execute(update(counter).where(*here).values(value=rows[-1].id)).rowcount:
        conn.execute(insert(counter).values(workspace=EVERYBODY, name=SEEN, value=rows[-1].id))


def put(context: Context, conn: Connection, ids: Sequence[str]) -> None:
    """Writes the rows of these explanations anew; those that are gone or superseded leave the list."""
    found = list(conn.execute(select(explanation).where(explanation.c.id.in_(ids))))
    # What a recomputation has superseded leaves with the arrival of its successor.
    replaced = [r.recomputes for r in found if r.recomputes is not None and r.state == "succeeded"]
    records = {r.id: r for r in found if r.superseded_by is None}
    tags: dict[str, list[str]] = {i: [] for i in records}
    for row in conn.execute(select(tag).where(tag.c.explanation.in_(records))):
        tags[row.explanation].append(row.tag)
    sweeps: dict[str, list[str]] = {i: [] for i in records}
    for item in conn.execute(
        select(sweep_item.c.explanation, sweep_item.c.sweep).where(sweep_item.c.explanation.in_(records))
    ):
        sweeps[item.explanation].append(item.sweep)
    made = {i: _row(context, r, tags[i], sweeps[i]) for i, r in records.items()}
    touched = listing.c.explanation.in_([*ids, *replaced])
    before = {
        r.explanation: r
        for r in conn.execute(select(listing.c.explanation, listing.c.workspace, listing.c.shown).where(touched))
    }
    if gone := set(before) - set(made):
        conn.execute(delete(listing).where(listing.c.explanation.in_(gone)))
    if fresh := [made[i] for i in ids if i in made and i not in before]:
        conn.execute(insert(listing), fresh)
    if changed := [{**r, "at": i} for i, r in made.items() if i in before]:
        conn.execute(update(listing).where(listing.c.explanation == bindparam("at")), changed)
    change: Counter[str] = Counter()
    for r in made.values():
        change[r["workspace"]] += r["shown"]
    for old in before.values():
        change[old.workspace] -= old.shown
    for workspace, n in change.items():
        if n:
            count(conn, workspace, SHOWN_COUNT, n)


def count(conn: Connection, workspace: str, name: str, change: int) -> None:
    """A count that is kept, not counted."""
    here = counter.c.workspace == workspace, counter.c.name == name
    if not conn.execute(update(counter).where(*here).values(value=counter.c.value + change)).rowcount:
        conn.execute(insert(counter).values(workspace=workspace, name=name, value=change))


def listed_up_to(conn: Connection) -> int:
    here = counter.c.workspace == EVERYBODY, counter.c.name == SEEN
    return int(conn.execute(select(counter.c.value).where(*here)).scalar() or 0)


def _row(context: Context, record: Row[Any], tags: Collection[str], sweeps: Collection[str]) -> dict[str, Any]:
    return row(dict(record._mapping), tags, context.models.name_of(record.model), sweeps)


def row(
    record: Mapping[str, Any], tags: Collection[str], model_name: str, sweeps: Collection[str] = ()
) -> dict[str, Any]:
    """A row of `listing`. Args: record: of `explanation`; model_name: for people; sweeps: that it is part of."""
    columns = {
        "family": record["family"],
        "explainer": record["explainer"],
        "model": record["model"],
        "class": record["top_class"],
        "outcome": record["outcome"],
        "trust": record["trust_class"],
        "dataset": record["dataset"],
    }
    said = ("title", "note", "target_name", "top_class", "explainer", "model", "input_name", "label", "dataset", "id")
    typed = [t for part in (*(record[name] for name in said), model_name, *tags) if part for t in tokens(str(part))]
    state = record["state"]
    equal = columns | {name: record[name] for name in ("workspace", "input", "parent", "principal")}
    equal |= {"state": "open" if state in OPEN else state, "shown": "yes" if state in SHOWN else None}
    keys = [key(name, str(value)) for name, value in equal.items() if value is not None]
    return {
        "explanation": record["id"],
        "workspace": record["workspace"],
        "shown": state in SHOWN,
        **columns,
        "faithfulness": LOWEST if record["faithfulness"] is None else record["faithfulness"],
        "probability": LOWEST if record["top_probability"] is None else record["top_probability"],
        "tags": "\n".join(sorted(tags)) or None,
        "words": list(
            dict.fromkeys([*typed, *keys, *(key("tag", t) for t in tags), *(key("sweep", s) for s in sweeps)])
        ),
    }
