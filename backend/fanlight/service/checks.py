"""Measuring a stored map further: what can be measured and what it will cost, and the promise to do it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from fanlight import wire
from fanlight.drawing.checks import WORDS
from fanlight.errors import Conflict, InvalidField, NotFound
from fanlight.explainers.registry import registry
from fanlight.quality.checks import MEASURES
from fanlight.service import outcome
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find
from fanlight.store import ledger
from fanlight.store.tables import job

OVER = ("succeeded", "unavailable")


def split(given: Sequence[str] | None) -> tuple[bool, list[str]]:
    """What is asked for: faithfulness or not, and which of the further measures.

    Errors: unknown_measure, measures_together.
    """
    names = list(dict.fromkeys(given if given is not None else wire.MEASURES))
    unknown = [n for n in names if n not in (*wire.MEASURES, *MEASURES)]
    if unknown:
        raise InvalidField(
            "There is no such measure.",
            code="unknown_measure",
            given=unknown,
            allowed=[*wire.MEASURES, *MEASURES],
        )
    pair = [n for n in names if n in wire.MEASURES]
    if not names or (pair and set(pair) != set(wire.MEASURES)):
        raise InvalidField(
            "Insertion and deletion are always measured together."
            if names
            else "No measure is named; insertion and deletion go together.",
            code="measures_together",
            given=pair,
            allowed=[*wire.MEASURES, *MEASURES],
            hint="Name both of them, or leave `measures` out.",
        )
    return bool(pair), [n for n in names if n in MEASURES]


def ask(context: Context, visitor: Visitor, ident: str, given: Sequence[str] | None) -> bool:
    """Promises what is asked for and not there yet; returns whether anything is still to come.

    Errors: unknown_explanation, unknown_measure, measures_together, not_finished, not_measurable, method_changed.
    """
    faithful, names = split(given)

    def act(conn: Connection) -> bool:
        record = find(conn, visitor.workspace, ident)
        _ready(context, record, bool(names))
        known, waiting = (record.trust or {}).get("checks") or {}, False
        if faithful and record.trust["state"] != "succeeded":
            waiting = True
            if not _open(conn, ident, "trust"):
                outcome.measure(context, conn, ident)
                visitor.did(conn, "explanation.measure", ident, measure="faithfulness")
        busy = {row.work["measure"]: row for row in _open(conn, ident, "check")}
        for name in names:
            check = known.get(name)
            if check and check["state"] in OVER and check.get("version") == MEASURES[name].version:
                continue
            waiting = True
            if name in busy:
                ledger.watch(conn, busy[name].id, visitor.principal)
                continue
            made = outcome.promised(
                context, conn, record, principal=visitor.principal, kind="check", measure=name,
                cost=max(1, _passes(context, record, name)),
            )  # fmt: skip
            outcome.note(conn, record, name, {"state": "pending", "job": made})
            visitor.did(conn, "explanation.measure", ident, measure=name)
        return waiting

    waiting: bool = context.db.write(act)
    context.dispatcher.kick()
    context.bus.tick()
    return waiting


def offered(context: Context, visitor: Visitor, ident: str) -> list[wire.Measure]:
    """The further measures of a record with what each will cost, in the order of their declaration."""
    record = context.db.read(lambda conn: find(conn, visitor.workspace, ident))
    try:
        _ready(context, record, True)
        reason = None
    except (Conflict, InvalidField, NotFound) as e:
        reason = e.message
    found = []
    for name in MEASURES:
        passes = None if reason else max(1, _passes(context, record, name))
        found.append(
            wire.Measure(
                name=name,
                title=WORDS[name].title,
                about=WORDS[name].about,
                available=reason is None,
                reason=reason,
                passes=passes,
                seconds=None if passes is None else round(passes / max(context.dispatcher.throughput, 0.1), 1),
            )
        )
    return found


def _ready(context: Context, record: Row[Any], further: bool) -> None:
    if record.state != "succeeded":
        raise Conflict(
            f"Only a finished explanation can be measured; this one is {record.state}.",
            code="not_finished",
            given=record.id,
        )
    if not any(a["kind"] == outcome.MEASURABLE for a in record.artifacts):
        raise InvalidField(
            "This kind of result has no measure of faithfulness.",
            code="not_measurable",
            given=[a["kind"] for a in record.artifacts],
        )
    if not further:
        return
    method = registry(context.explainers).get(record.explainer)
    digest = context.models.find(record.model)["digest"]
    if method is None or method.version != record.explainer_version or digest != record.model_digest:
        raise Conflict(
            "The model or the method has changed since this was computed, so that the map cannot be made again.",
            code="method_changed",
            given=record.id,
            hint="Recompute the explanation, and check the new one.",
        )


def _passes(context: Context, record: Row[Any], name: str) -> int:
    """Forward passes, estimated."""
    model = context.models.find(record.model)
    size = (int(model["size"][0]), int(model["size"][1]))
    method = registry(context.explainers)[record.explainer]
    own = method.cost(method.Params(**record.params), size)
    return MEASURES[name].passes(own, method.name, model["capabilities"], size)


def _open(conn: Connection, ident: str, kind: str) -> list[Row[Any]]:
    wanted = select(job.c.id, job.c.work).where(job.c.explanation == ident, job.c.kind == kind)
    return list(conn.execute(wanted.where(job.c.state.in_(ledger.OPEN))))
