"""A question of the gallery to the list's indices, in the language of each database. `docs/decisions/0007`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, cast, column, exists, func, literal, select, table
from sqlalchemy.dialects.postgresql import TSQUERY

from fanlight.service.listing import SHOWN_COUNT, key
from fanlight.store.tables import counter, listing

WORDS = table("listing_words", column("rowid"), column("listing_words"))  # of SQLite; made by migration 0003
TERMS = table("listing_words_terms", column("term"))  # its vocabulary; made by migration 0013
MANY = 32  # words with one beginning that are named one by one
INDEXED = 3  # letters: beginnings up to here have an index of their own
FACETS = "INDEXED BY ix_listing_words_facets"  # of SQLite: workspace, n and all that is counted; made by migration 0013


@dataclass(frozen=True)
class Match:
    """A question to the index: all of the keys, one of each set in `any_of`, and each beginning of a word.

    Args: equal: those filters that are also columns of `listing`.

    Words are letters and digits alone (`key`, `tokens`), so that neither language of questions can be broken out of.
    """

    keys: tuple[str, ...]
    any_of: tuple[tuple[str, ...], ...] = ()
    beginnings: tuple[str, ...] = ()
    equal: tuple[tuple[str, Any], ...] = ()

    def newest(self, conn: Connection, *columns: ColumnElement[Any]) -> Select[Any]:
        """Columns of `listing`, the newest rows first. The index itself is read in that order, no further than the caller's limit."""
        if conn.dialect.name != "sqlite":
            return select(*columns).where(self._found()).order_by(listing.c.n.desc())
        columns_say = and_(*(listing.c[name] == value for name, value in self.equal if name in ("workspace", "shown")))
        if not (self.keys or self.any_of or self.beginnings):
            found = select(*columns).order_by(listing.c.n.desc())
        else:
            joined = WORDS.join(listing, listing.c.n == WORDS.c.rowid)
            found = select(*columns).select_from(joined).where(self._asked()).order_by(WORDS.c.rowid.desc())
        return found.where(columns_say).with_hint(listing, FACETS, "sqlite")

    def without(self, name: str, value: str) -> Match:
        """As if this filter were not set."""
        return dataclasses.replace(self, keys=tuple(k for k in self.keys if k != key(name, value)))

    def condition(self, conn: Connection) -> ColumnElement[bool]:
        """On a row of `listing` that is already at hand: by its columns, and through the index only for what they do not say."""
        by_columns = [listing.c[name] == value for name, value in self.equal]
        said = {key(name, "yes" if name == "shown" else value) for name, value in self.equal}
        if said >= set(self.keys) and not self.any_of and not self.beginnings:
            return and_(*by_columns)
        if conn.dialect.name == "sqlite":
            return and_(*by_columns, exists().select_from(WORDS).where(WORDS.c.rowid == listing.c.n, self._asked()))
        return and_(*by_columns, self._found())

    def _found(self) -> ColumnElement[bool]:
        parts = [f"'{w}'" for w in self.keys] + [f"'{w}':*" for w in self.beginnings]
        parts += ["(" + " | ".join(f"'{w}'" for w in some) + ")" for some in self.any_of]
        return listing.c.words.bool_op("@@")(cast(literal(" & ".join(parts)), TSQUERY))

    def _asked(self) -> ColumnElement[bool]:
        parts = [f'"{w}"' for w in self.keys] + [f'"{w}"*' for w in self.beginnings]
        parts += ["(" + " OR ".join(f'"{w}"' for w in some) + ")" for some in self.any_of]
        return WORDS.c.listing_words.bool_op("MATCH")(" AND ".join(parts))


def prepared(conn: Connection, match: Match) -> Match:
    """The same question, as SQLite answers it soonest.

    A beginning of a word is gathered whole before the first row comes out of it, whole words are read as far as one wants. And where most of
    the list is shown and of this workspace, the columns say so sooner than the index does.
    """
    if conn.dialect.name != "sqlite":
        return match
    terms: list[tuple[str, ...]] = []
    beginnings: list[str] = []
    for word in match.beginnings:
        found = _terms(conn, word) if len(word) > INDEXED else []
        if 0 < len(found) <= MANY:
            terms.append(tuple(found))
        else:
            beginnings.append(word)
    said = dict(match.equal)
    keys = match.keys
    if said.get("shown") and _mostly(conn, said["workspace"]):
        idle = key("workspace", said["workspace"]), key("shown", "yes")
        keys = tuple(k for k in keys if k not in idle)
    return dataclasses.replace(match, keys=keys, beginnings=tuple(beginnings), any_of=(*match.any_of, *terms))


def _terms(conn: Connection, beginning: str) -> list[str]:
    """At most MANY and one more words of the list."""
    term = TERMS.c.term
    inside = select(term).where(term >= beginning, term < beginning + chr(0x10FFFF)).limit(MANY + 1)
    return list(conn.execute(inside).scalars())


def kept(conn: Connection, workspace: str) -> int:
    """How many are shown in all: a count that is kept, not counted."""
    here = counter.c.workspace == workspace, counter.c.name == SHOWN_COUNT
    return int(conn.execute(select(counter.c.value).where(*here)).scalar() or 0)


def _mostly(conn: Connection, workspace: str) -> bool:
    """Whether at least half of the list is shown and of this workspace."""
    return 2 * kept(conn, workspace) >= (conn.execute(select(func.max(listing.c.n))).scalar() or 0)
