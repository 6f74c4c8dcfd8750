"""Which pictures a sweep is about: of a data set or of a filtered gallery, all of them, the first or some at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import ColumnElement, Connection, Table, select

from fanlight import wire
from fanlight.errors import InvalidField
from fanlight.service import search, studies, views
from fanlight.service.context import Context, Visitor
from fanlight.service.shelf import absent
from fanlight.store.tables import dataset, explanation, sample, unreadable

T = TypeVar("T")
MOST = 20_000
"""Pictures of one sweep."""


def items(context: Context, visitor: Visitor, source: wire.SweepSource) -> list[dict[str, Any]]:
    """The pictures in order: name, label, input; then the files of the data set that are none: with a reason, without an input.
    Of lists of words: without an input, which is made when it is asked for.

    Errors: unknown_dataset, nothing_to_sweep, too_many_items, invalid_view, invalid_filter.
    """
    if source.words is not None:
        return studies.items(source.words)
    if source.gallery is not None:
        found = _explained(context, visitor, views.checked(source.gallery), source)
        broken: list[dict[str, Any]] = []
    else:
        found, broken = context.db.read(lambda c: _samples(context, c, visitor, source))
    if not found:
        raise InvalidField(
            "No picture fits, so there is nothing to sweep.",
            code="nothing_to_sweep",
            given=source.model_dump(exclude_defaults=True),
            hint="Take filters out.",
        )
    chosen = _chosen(found, source)
    if len(chosen) > MOST:
        raise InvalidField(
            f"A sweep has at most {MOST:,} pictures; these are {len(chosen):,}.",
            code="too_many_items",
            given=len(chosen),
            allowed=[1, MOST],
            hint="Take the first ones or a random sample, or narrow it by label.",
        )
    # Whoever chose some of the pictures did not choose files that are none.
    return [*chosen, *(broken if len(chosen) == len(found) else [])]


def _chosen(found: Sequence[T], source: wire.SweepSource) -> list[T]:
    wanted = source.first or source.sample
    if wanted is None:
        return list(found)
    if wanted > len(found):
        raise InvalidField(
            f"Only {len(found):,} {'picture fits' if len(found) == 1 else 'pictures fit'}.",
            code="too_many_items",
            given=wanted,
            allowed=[1, min(len(found), MOST)],
        )
    if source.first is not None:
        return list(found[:wanted])
    drawn = np.random.default_rng(source.sample_seed).choice(len(found), wanted, replace=False)
    return [found[i] for i in np.sort(drawn)]


def _samples(
    context: Context, conn: Connection, visitor: Visitor, source: wire.SweepSource
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    known = list(conn.execute(select(dataset.c.id).where(dataset.c.workspace == visitor.workspace)).scalars())
    if source.dataset not in known:
        raise absent(context, visitor, str(source.dataset), known)
    order = select(sample.c.name, sample.c.label, sample.c.input).where(*_inside(sample, visitor, source))
    found = [r._asdict() for r in conn.execute(order.order_by(sample.c.position))]
    bad = select(unreadable.c.name, unreadable.c.label, unreadable.c.reason).where(
        *_inside(unreadable, visitor, source)
    )
    return found, [{**r._asdict(), "input": None} for r in conn.execute(bad.order_by(unreadable.c.position))]


def _inside(of: Table, visitor: Visitor, source: wire.SweepSource) -> list[ColumnElement[bool]]:
    """As the samples of a data set are searched."""
    where = [of.c.workspace == visitor.workspace, of.c.dataset == source.dataset]
    for word in (source.q or "").split()[:8]:
        where.append(of.c.name.icontains(word, autoescape=True) | of.c.label.icontains(word, autoescape=True))
    if source.label:
        where.append(of.c.label == source.label)
    return where


def _explained(
    context: Context, visitor: Visitor, given: dict[str, str], source: wire.SweepSource
) -> list[dict[str, Any]]:
    """The pictures behind the explanations that a gallery shows, in its order; those of a changed picture do not count."""
    ids = search.ids(context, visitor, search.Query.of(given), MOST)
    if len(ids) > MOST and source.first is None:
        raise InvalidField(
            f"More than {MOST:,} explanations fit.",
            code="too_many_items",
            given=given,
            allowed=[1, MOST],
            hint="Take the first ones, or narrow it further.",
        )

    def act(conn: Connection) -> list[dict[str, Any]]:
        columns = (explanation.c.id, explanation.c.input, explanation.c.input_name, explanation.c.label)
        rows: dict[str, Any] = {}
        for part in range(0, len(ids), 500):
            inside = explanation.c.id.in_(ids[part : part + 500])
            rows |= {r.id: r for r in conn.execute(select(*columns, explanation.c.edits).where(inside))}
        found: dict[str, dict[str, Any]] = {}
        for r in (rows[i] for i in ids if i in rows):
            if not r.edits:
                found.setdefault(r.input, {"name": r.input_name, "label": r.label, "input": r.input})
        return list(found.values())

    return context.db.read(act)
