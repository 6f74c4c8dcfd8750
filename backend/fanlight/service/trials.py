"""Trials: an intervention tried on every explanation of a sweep. Asked for, looked at, ended; `trials_run` computes them.

What was stored is answered from, as in a live edit: no model looks at a picture again. Nothing of it becomes a record of its own; the link of
an item opens its picture with the same edits made.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from fanlight import wire
from fanlight.errors import Conflict, InvalidField, TooBusy, unknown
from fanlight.explainers.base import Explainer
from fanlight.explainers.registry import find as find_explainer
from fanlight.service import search, sweeps, trials_figures
from fanlight.service.context import Context, Visitor
from fanlight.service.sweeps_export import cell
from fanlight.store import ledger
from fanlight.store.database import now
from fanlight.store.tables import explanation, sweep_item
from fanlight.store.tables_trials import trial, trial_item

SECOND = 1_000_000
MOST_OPEN = 5
"""Unfinished trials of one person."""
STATES: tuple[wire.TrialItemState, ...] = get_args(wire.TrialItemState)
MOVES: tuple[wire.Move, ...] = get_args(wire.Move)
COLUMNS = (
    "position", "name", "label", "explanation", "state", "before", "before_probability", "after", "after_probability", "move", "reason",
    "input",
)  # fmt: skip


def create(context: Context, visitor: Visitor, ident: str, request: wire.TrialRequest) -> wire.Trial:
    """Asks for a trial on what of a sweep is finished by now. When this returns, it survives whatever happens to the server.

    Errors: unknown_sweep, not_editable, invalid_edit, nothing_to_try, too_busy.
    """
    row = context.db.read(lambda c: sweeps.find(c, visitor, ident))
    method = find_explainer(row.explainer, context.explainers)
    found = context.db.read(lambda c: _fitting(c, ident, request.where))
    if not found:
        raise InvalidField(
            "No finished explanation of this sweep fits, so there is nothing to try it on.",
            code="nothing_to_try",
            given=request.where.model_dump(exclude_none=True),
            hint="Take filters out, or wait until something is finished.",
        )
    about = found[0].artifacts[0]["meta"]
    edits = canonical(method, request.edits, about)
    name = ledger.new_id()

    def act(conn: Connection) -> None:
        mine = trial.c.workspace == visitor.workspace, trial.c.principal == visitor.principal
        unfinished = select(func.count()).select_from(trial).where(*mine, trial.c.state == "running")
        if conn.execute(unfinished).scalar_one() >= MOST_OPEN:
            raise TooBusy(
                f"You have {MOST_OPEN} unfinished trials.",
                retry_after=20,
                allowed=MOST_OPEN,
                hint="Wait for one of them, or cancel one.",
            )
        t = now(conn)
        conn.execute(
            insert(trial).values(
                id=name,
                workspace=visitor.workspace,
                principal=visitor.principal,
                sweep=ident,
                edits=edits,
                about=words(method.told(edits, about), len(found), request.where),
                narrowed=request.where.model_dump(exclude_none=True),
                state="running",
                total=len(found),
                turn=t,
                spent=0,
                created=t,
            )
        )
        conn.execute(insert(trial_item), [_item(name, r) for r in found])
        visitor.did(conn, "trial.create", name, sweep=ident, items=len(found))

    context.db.write(act)
    context.trier.wake()
    return one(context, visitor, name)


def canonical(
    method: type[Explainer], edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Edits as they are stored; only those that mean the same for every picture. Errors: not_editable, invalid_edit."""
    known = {k: v for k, v in method.edits.items() if k in method.general}
    if not known:
        raise Conflict(
            f"What {method.title} returns cannot be changed for many pictures at once.",
            code="not_editable",
            given=method.name,
            hint="Methods by concepts and by prototypes can.",
        )
    for n, edit in enumerate(edits, 1):
        if len(edit) != 1 or next(iter(edit)) not in known:
            raise InvalidField(
                f"Edit {n} cannot be tried on a whole sweep.",
                code="invalid_edit",
                given=dict(edit),
                allowed=known,
                hint="Each edit is an object with one key.",
            )
    return method.canonical(edits, about)


def words(edits: str, count: int, where: wire.TrialWhere) -> str:
    """What is tried on what, a sentence."""
    which = f"{count:,} {'picture' if count == 1 else 'pictures'}"
    if where.label is not None:
        which += f" labelled {where.label}"
    if where.predicted is not None:
        which += f" predicted as {where.predicted}"
    if where.outcome is not None:
        which += f" that the model has {where.outcome}"
    if where.q:
        which += f" that match “{where.q}”"
    return f"{edits[0].upper()}{edits[1:]}; tried on {which}."


def _fitting(conn: Connection, ident: str, where: wire.TrialWhere) -> list[Row[Any]]:
    """The finished items of a sweep that fit. Labels and classes are compared as sweeps compare them."""
    done = sweep_item.c.state.in_(("measuring", "succeeded"))
    query = sweeps.results().where(sweep_item.c.sweep == ident, done, explanation.c.id.is_not(None))
    terms = [t.casefold() for t in (where.q or "").split()[:8]]

    def fits(r: Row[Any]) -> bool:
        text = f"{r.name} {r.label or ''}".casefold()
        return (
            bool(r.artifacts)
            and (where.label is None or (r.label is not None and sweeps.plain(r.label) == sweeps.plain(where.label)))
            and (
                where.predicted is None
                or (r.top_class is not None and sweeps.plain(r.top_class) == sweeps.plain(where.predicted))
            )
            and (where.outcome is None or sweeps.outcome(r.label, r.top_class) == where.outcome)
            and all(t in text for t in terms)
        )

    return [r for r in conn.execute(query) if fits(r)]


def _item(name: str, r: Row[Any]) -> dict[str, Any]:
    return {
        "trial": name,
        "position": r.position,
        "name": r.name,
        "label": r.label,
        "input": r.input,
        "explanation": r.there,
        "state": "waiting",
    }


# --- looking at them


def of_sweep(context: Context, visitor: Visitor, ident: str) -> list[wire.Trial]:
    """Those of a sweep, newest first, a hundred at most."""

    def act(conn: Connection) -> list[wire.Trial]:
        sweeps.find(conn, visitor, ident)
        order = select(trial).where(trial.c.sweep == ident).order_by(trial.c.created.desc()).limit(100)
        return [_wire(conn, r, visitor) for r in conn.execute(order).all()]

    return context.db.read(act)


def one(context: Context, visitor: Visitor, name: str) -> wire.Trial:
    return context.db.read(lambda c: _wire(c, find(c, visitor, name), visitor))


def summary(context: Context, visitor: Visitor, name: str) -> wire.TrialSummary:
    """Accuracy before and after, and who gained and lost, of what is finished."""

    def act(conn: Connection) -> wire.TrialSummary:
        row = find(conn, visitor, name)
        done = select(trial_item).where(trial_item.c.trial == name, trial_item.c.state == "done")
        found = conn.execute(done.order_by(trial_item.c.position)).all()
        return trials_figures.summary(row.id, found, row.total, complete=row.state == "done")

    return context.db.read(act)


def items(
    context: Context, visitor: Visitor, name: str, *, move: str, state: str, cursor: str | None, limit: int
) -> wire.Page[wire.TrialItem]:
    """In the order of the sweep. Args: move, state: several with commas; empty for all."""
    wanted = {}
    for column, given, known in ((trial_item.c.move, move, MOVES), (trial_item.c.state, state, STATES)):
        chosen = [v for v in given.split(",") if v]
        if bad := sorted(set(chosen) - set(known)):
            raise search.no_state(bad, known)
        if chosen:
            wanted[column] = chosen
    after = search.position(cursor) if cursor else -1

    def act(conn: Connection) -> wire.Page[wire.TrialItem]:
        find(conn, visitor, name)
        where = [trial_item.c.trial == name, *(c.in_(v) for c, v in wanted.items())]
        total = int(conn.execute(select(func.count()).select_from(trial_item).where(*where)).scalar_one())
        order = select(trial_item).where(*where, trial_item.c.position > after).order_by(trial_item.c.position)
        rows = list(conn.execute(order.limit(limit + 1)))
        return wire.Page[wire.TrialItem](
            items=[_item_wire(r) for r in rows[:limit]],
            next_cursor=str(rows[limit - 1].position) if len(rows) > limit else None,
            total=total,
        )

    return context.db.read(act)


def export(context: Context, visitor: Visitor, name: str) -> bytes:
    """Every item as CSV."""

    def act(conn: Connection) -> list[Row[Any]]:
        find(conn, visitor, name)
        every = select(trial_item).where(trial_item.c.trial == name)
        return list(conn.execute(every.order_by(trial_item.c.position)))

    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(COLUMNS)
    for r in context.db.read(act):
        write.writerow([cell(getattr(r, c)) for c in COLUMNS])
    return out.getvalue().encode()


# --- ending them


def cancel(context: Context, visitor: Visitor, name: str) -> wire.Trial:
    """Ends it; what is finished stays."""

    def act(conn: Connection) -> None:
        row = visitor.own(find(conn, visitor, name), "trial")
        if row.state == "cancelled":
            return
        if row.state != "running":
            raise Conflict(f"This trial is over: {row.state}.", code="trial_over", given=name)
        end(conn, name, "cancelled")
        visitor.did(conn, "trial.cancel", name)

    context.db.write(act)
    return one(context, visitor, name)


def end(conn: Connection, name: str, state: str, problem: str | None = None) -> None:
    """Nothing further is computed; what was waiting is `cancelled`."""
    running = (trial.c.id == name, trial.c.state == "running")
    over = {"state": state, "problem": problem, "finished": now(conn), "owner": None, "lease_until": None}
    if conn.execute(update(trial).where(*running).values(**over)).rowcount:
        left = (trial_item.c.trial == name, trial_item.c.state == "waiting")
        conn.execute(update(trial_item).where(*left).values(state="cancelled"))


def remove(context: Context, visitor: Visitor, name: str) -> wire.Deleted:
    """Forgets a trial that is over; the explanations stay."""

    def act(conn: Connection) -> wire.Deleted:
        row = visitor.own(find(conn, visitor, name), "trial")
        if row.state == "running":
            raise Conflict("This trial is running.", code="not_finished", given=name, hint="Cancel it first.")
        conn.execute(delete(trial_item).where(trial_item.c.trial == name))
        conn.execute(delete(trial).where(trial.c.id == name))
        visitor.did(conn, "trial.delete", name, sweep=row.sweep)
        return wire.Deleted(id=name)

    return context.db.write(act)


def find(conn: Connection, visitor: Visitor, name: str) -> Row[Any]:
    row = conn.execute(select(trial).where(trial.c.workspace == visitor.workspace, trial.c.id == name)).first()
    if row is None:
        raise unknown("trial", name, [], hint="It may have been deleted. GET /api/v1/sweeps/{id}/trials lists them.")
    return row


def _wire(conn: Connection, row: Row[Any], visitor: Visitor) -> wire.Trial:
    of = select(trial_item.c.state, func.count().label("n")).where(trial_item.c.trial == row.id)
    counts: dict[wire.TrialItemState, int] = {s: 0 for s in STATES}
    counts |= {r.state: r.n for r in conn.execute(of.group_by(trial_item.c.state))}
    left, seconds = counts["waiting"], row.spent / SECOND
    worked = counts["done"] + counts["failed"]
    return wire.Trial(
        id=row.id,
        sweep=row.sweep,
        edits=row.edits,
        about=row.about,
        where=wire.TrialWhere.model_validate(row.narrowed),
        state=row.state,
        problem=row.problem,
        total=row.total,
        counts=counts,
        progress=round((row.total - left) / row.total, 4),
        seconds_left=left * seconds / worked if row.state == "running" and worked else None,
        seconds=seconds,
        mine=row.principal == visitor.principal,
        created=row.created / SECOND,
        finished=row.finished / SECOND if row.finished else None,
    )


def _item_wire(r: Row[Any]) -> wire.TrialItem:
    return wire.TrialItem(**{k: getattr(r, k) for k in wire.TrialItem.model_fields})
