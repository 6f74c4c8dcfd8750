"""Sweeps: one method on one model over many pictures, as bulk work. Asked for, looked at, paused, ended; `sweeps_run` keeps them going.

An item goes waiting -> submitted -> measuring -> succeeded; or it is failed, skipped (no picture, no label) or cancelled. It is submitted
in the transaction that promises its explanation, so whatever dies, an item is either still waiting or has its explanation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from sqlalchemy import Connection, Row, case, delete, func, insert, select, update

from fanlight import wire
from fanlight.errors import Conflict, FanlightError, TooBusy, unknown
from fanlight.explainers.registry import registry
from fanlight.service import search, studies, sweeps_source
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import fitting
from fanlight.store import ledger
from fanlight.store.database import now
from fanlight.store.tables import explanation, sweep, sweep_item

SECOND = 1_000_000
MOST_OPEN = 20
"""Unfinished sweeps of one person."""
ACTIVE = ("running", "paused")
OPEN = ("submitted", "measuring")
AHEAD = ("waiting", *OPEN)
STATES: tuple[wire.ItemState, ...] = get_args(wire.ItemState)


def create(context: Context, visitor: Visitor, request: wire.SweepRequest) -> wire.Sweep:
    """Asks for a sweep. When this returns, it survives whatever happens to the server.

    Errors: those of `explain.submit` that do not depend on a picture, those of `sweeps_source.items`, too_busy.
    """
    model, explainer, params = fitting(context, request.model, request.explainer, request.params)
    context.models.target(request.model, request.target)
    studies.fitting(model, explainer, request.source)
    items = sweeps_source.items(context, visitor, request.source)
    ident = ledger.new_id()

    def act(conn: Connection) -> None:
        mine = sweep.c.workspace == visitor.workspace, sweep.c.principal == visitor.principal
        unfinished = select(func.count()).select_from(sweep).where(*mine, sweep.c.state.in_(ACTIVE))
        if conn.execute(unfinished).scalar_one() >= MOST_OPEN:
            raise TooBusy(
                f"You have {MOST_OPEN} unfinished sweeps.",
                retry_after=60,
                allowed=MOST_OPEN,
                hint="Wait for one of them, or cancel one.",
            )
        t = now(conn)
        conn.execute(
            insert(sweep).values(
                id=ident,
                workspace=visitor.workspace,
                principal=visitor.principal,
                name=request.name or _called(context, request, explainer.title),
                spec={**request.model_dump(mode="json", by_alias=True), "params": params},
                model=request.model,
                model_digest=model["digest"],
                explainer=explainer.name,
                dataset=request.source.dataset,
                state="running",
                total=len(items),
                spent=0,
                since=t,
                created=t,
            )
        )
        conn.execute(insert(sweep_item), [_row(ident, n, item, t) for n, item in enumerate(items)])
        visitor.did(conn, "sweep.create", ident, explainer=explainer.name, model=request.model, items=len(items))
        _tell(conn, visitor.workspace, ident, "running")

    context.db.write(act)
    context.sweeper.wake()
    return one(context, visitor, ident)


def _row(ident: str, position: int, item: Mapping[str, Any], t: int) -> dict[str, Any]:
    reason = item.get("reason")
    return {
        "sweep": ident,
        "position": position,
        "name": item["name"],
        "label": item["label"],
        "input": item["input"],
        "state": "waiting" if reason is None else "skipped",
        "reused": False,
        "reason": reason,
        "finished": None if reason is None else t,
    }


def _called(context: Context, request: wire.SweepRequest, method: str) -> str:
    """A name where none was given."""
    over = request.source.dataset or ("lists of words" if request.source.words else "a gallery")
    return f"{method} of {context.models.name_of(request.model)} over {over}"[:200]


def listed(context: Context, visitor: Visitor, *, cursor: str | None, limit: int) -> wire.Page[wire.Sweep]:
    """Newest first."""
    before = search.position(cursor) if cursor else None

    def act(conn: Connection) -> wire.Page[wire.Sweep]:
        where = [sweep.c.workspace == visitor.workspace]
        total = search.counted(conn, select(sweep.c.id).where(*where))
        if before is not None:
            where.append(sweep.c.created < before)
        rows = list(conn.execute(select(sweep).where(*where).order_by(sweep.c.created.desc()).limit(limit + 1)))
        return wire.Page[wire.Sweep](
            items=[_wire(context, conn, r, visitor) for r in rows[:limit]],
            next_cursor=str(rows[limit - 1].created) if len(rows) > limit else None,
            total=min(total, search.EXACT),
            total_is_floor=total > search.EXACT,
        )

    return context.db.read(act)


def one(context: Context, visitor: Visitor, ident: str) -> wire.Sweep:
    return context.db.read(lambda c: _wire(context, c, find(c, visitor, ident), visitor))


def items(
    context: Context, visitor: Visitor, ident: str, *, states: str, cursor: str | None, limit: int
) -> wire.Page[wire.SweepItem]:
    """The pictures of a sweep in its order, with what came of them."""
    wanted = [s for s in states.split(",") if s]
    if bad := sorted(set(wanted) - set(STATES)):
        raise search.no_state(bad, STATES)
    after = search.position(cursor) if cursor else -1

    def act(conn: Connection) -> wire.Page[wire.SweepItem]:
        find(conn, visitor, ident)
        where = [sweep_item.c.sweep == ident]
        if wanted:
            where.append(sweep_item.c.state.in_(wanted))
        total = int(conn.execute(select(func.count()).select_from(sweep_item).where(*where)).scalar_one())
        rows = list(conn.execute(results().where(*where, sweep_item.c.position > after).limit(limit + 1)))
        return wire.Page[wire.SweepItem](
            items=[item_wire(r) for r in rows[:limit]],
            next_cursor=str(rows[limit - 1].position) if len(rows) > limit else None,
            total=total,
        )

    return context.db.read(act)


def results() -> Any:
    """Items in order with what their explanations say; `there` is None where the explanation is gone."""
    e = explanation.c
    return (
        select(
            sweep_item, e.id.label("there"), e.top_class, e.top_probability, e.faithfulness, e.trust_class, e.artifacts
        )
        .outerjoin(explanation, e.id == sweep_item.c.explanation)
        .order_by(sweep_item.c.position)
    )


def item_wire(row: Row[Any], cluster: int | None = None) -> wire.SweepItem:
    done = row.state in ("measuring", "succeeded") and row.there is not None
    return wire.SweepItem(
        position=row.position,
        name=row.name,
        label=row.label,
        input=row.input,
        state=row.state,
        explanation=row.there,
        reused=row.reused,
        reason=row.reason,
        predicted=row.top_class if done else None,
        probability=row.top_probability if done else None,
        faithfulness=row.faithfulness if done else None,
        above_floor={"above": True, "below": False}.get(row.trust_class) if done else None,
        outcome=outcome(row.label, row.top_class) if done else None,
        cluster=cluster,
    )


def outcome(label: str | None, predicted: str | None) -> Any:
    """right or wrong, where there is a label; the label of the item counts, because a picture may stand in several data sets."""
    if label is None or predicted is None:
        return None
    return "right" if plain(label) == plain(predicted) else "wrong"


def plain(name: str) -> str:
    """A folder's label and a model's class name, apart from case, underscores and hyphens."""
    return name.replace("_", " ").replace("-", " ").casefold().strip()


def pause(context: Context, visitor: Visitor, ident: str) -> wire.Sweep:
    """What is being computed is finished; nothing further begins."""
    return _turn(context, visitor, ident, "running", "paused")


def resume(context: Context, visitor: Visitor, ident: str) -> wire.Sweep:
    return _turn(context, visitor, ident, "paused", "running")


def _turn(context: Context, visitor: Visitor, ident: str, before: str, after: str) -> wire.Sweep:
    def act(conn: Connection) -> None:
        row = visitor.own(find(conn, visitor, ident), "sweep")
        if row.state == after:
            return
        if row.state != before:
            raise _over(row)
        t = now(conn)
        clock = (
            {"since": t} if after == "running" else {"spent": row.spent + max(0, t - (row.since or t)), "since": None}
        )
        conn.execute(update(sweep).where(sweep.c.id == ident).values(state=after, problem=None, **clock))
        visitor.did(conn, "sweep.resume" if after == "running" else "sweep.pause", ident)
        _tell(conn, visitor.workspace, ident, after)

    context.db.write(act)
    context.sweeper.wake()
    return one(context, visitor, ident)


def cancel(context: Context, visitor: Visitor, ident: str) -> wire.Sweep:
    """Ends it. What is finished stays; jobs that nobody else waits for stop."""
    stop: list[str] = []

    def act(conn: Connection) -> None:
        row = visitor.own(find(conn, visitor, ident), "sweep")
        if row.state == "cancelled":
            return
        if row.state not in ACTIVE:
            raise _over(row)
        t = now(conn)
        mine = sweep_item.c.sweep == ident
        jobs = select(explanation.c.job).join(sweep_item, sweep_item.c.explanation == explanation.c.id)
        for name in conn.execute(jobs.where(mine, sweep_item.c.state == "submitted")).scalars().all():
            try:
                if ledger.cancel(conn, visitor.workspace, name, visitor.principal):
                    stop.append(name)
            except FanlightError:  # over already, or asked for by somebody else, who still waits
                continue
        there = (
            select(explanation.c.id)
            .where(explanation.c.id == sweep_item.c.explanation, explanation.c.state == "succeeded")
            .exists()
        )
        conn.execute(
            update(sweep_item)
            .where(mine, sweep_item.c.state.in_(AHEAD))
            .values(
                state=case((there, "succeeded"), else_="cancelled"),
                reason=case((there, None), else_=CANCELLED),
                finished=t,
            )
        )
        spent = row.spent + (max(0, t - row.since) if row.since else 0)
        over = {"state": "cancelled", "finished": t, "spent": spent, "since": None, "problem": None}
        conn.execute(update(sweep).where(sweep.c.id == ident).values(**over))
        visitor.did(conn, "sweep.cancel", ident)
        _tell(conn, visitor.workspace, ident, "cancelled")

    context.db.write(act)
    for name in stop:
        context.dispatcher.stop(name)
    return one(context, visitor, ident)


CANCELLED = "The sweep was cancelled before."


def remove(context: Context, visitor: Visitor, ident: str) -> wire.Deleted:
    """Forgets a sweep that is over; its explanations stay."""

    def act(conn: Connection) -> wire.Deleted:
        row = visitor.own(find(conn, visitor, ident), "sweep")
        if row.state in ACTIVE:
            raise Conflict(f"This sweep is {row.state}.", code="not_finished", given=ident, hint="Cancel it first.")
        conn.execute(delete(sweep_item).where(sweep_item.c.sweep == ident))
        conn.execute(delete(sweep).where(sweep.c.id == ident))
        visitor.did(conn, "sweep.delete", ident, name=row.name)
        return wire.Deleted(id=ident)

    return context.db.write(act)


def find(conn: Connection, visitor: Visitor, ident: str) -> Row[Any]:
    row = conn.execute(select(sweep).where(sweep.c.workspace == visitor.workspace, sweep.c.id == ident)).first()
    if row is None:
        raise unknown("sweep", ident, [], hint="It may have been deleted. GET /api/v1/sweeps lists them.")
    return row


def _over(row: Row[Any]) -> Conflict:
    return Conflict(f"This sweep is over: {row.state}.", code="sweep_over", given=row.id)


def _tell(conn: Connection, workspace: str, ident: str, state: str) -> None:
    ledger.emit(conn, workspace, {"type": "sweep", "id": ident, "state": state})


def close(conn: Connection, row: Row[Any]) -> None:
    """Nothing is left to do."""
    t = now(conn)
    spent = row.spent + (max(0, t - row.since) if row.since else 0)
    over = {"state": "done", "finished": t, "spent": spent, "since": None}
    if conn.execute(update(sweep).where(sweep.c.id == row.id, sweep.c.state.in_(ACTIVE)).values(**over)).rowcount:
        _tell(conn, row.workspace, row.id, "done")


def halt(conn: Connection, row: Row[Any], problem: str) -> None:
    """Paused by the server itself, which says why."""
    t = now(conn)
    spent = row.spent + (max(0, t - row.since) if row.since else 0)
    values = {"state": "paused", "problem": problem, "spent": spent, "since": None}
    if conn.execute(update(sweep).where(sweep.c.id == row.id, sweep.c.state == "running").values(**values)).rowcount:
        _tell(conn, row.workspace, row.id, "paused")


def _wire(context: Context, conn: Connection, row: Row[Any], visitor: Visitor) -> wire.Sweep:
    mine = sweep_item.c.sweep == row.id
    found = conn.execute(
        select(
            sweep_item.c.state, func.count().label("n"), func.sum(case((sweep_item.c.reused, 1), else_=0)).label("old")
        )
        .where(mine)
        .group_by(sweep_item.c.state)
    ).all()
    counts: dict[wire.ItemState, int] = {s: 0 for s in STATES} | {r.state: r.n for r in found}
    left = sum(r.n for r in found if r.state in AHEAD)
    worked = counts["succeeded"] + counts["failed"]
    seconds = (row.spent + (max(0, now(conn) - row.since) if row.since else 0)) / SECOND
    rate = worked / seconds if row.state == "running" and worked and seconds > 0 else None
    request = wire.SweepRequest.model_validate(row.spec)
    explainers = registry(context.explainers)
    return wire.Sweep(
        id=row.id,
        name=row.name,
        model=row.model,
        model_name=context.models.name_of(row.model),
        explainer=row.explainer,
        explainer_title=explainers[row.explainer].title if row.explainer in explainers else row.explainer,
        dataset=row.dataset,
        request=request,
        about=about(context, request, counts),
        state=row.state,
        problem=row.problem,
        total=row.total,
        counts=counts,
        reused=sum(int(r.old or 0) for r in found if r.state not in AHEAD),
        progress=round((row.total - left) / row.total, 4),
        rate=rate,
        seconds_left=left / rate if rate else None,
        seconds=seconds,
        mine=row.principal == visitor.principal,
        created=row.created / SECOND,
        finished=row.finished / SECOND if row.finished else None,
    )


def about(context: Context, request: wire.SweepRequest, counts: Mapping[Any, int]) -> str:
    """What was asked, in a sentence."""
    source, n = request.source, sum(counts.values())
    if source.words is not None:
        return studies.about(source.words)
    which = f"{n:,} pictures"
    if source.first is not None:
        which = f"the first {n:,} pictures"
    elif source.sample is not None:
        which = f"{n:,} pictures drawn at random (seed {source.sample_seed})"
    if source.gallery is not None:
        narrowed = ", ".join(f"{k} {v}" for k, v in source.gallery.items() if k not in ("sort", "view"))
        which += " of the gallery" + (f" with {narrowed}" if narrowed else "")
    else:
        which += f" of {source.dataset}"
        if source.label:
            which += f" labelled {source.label}"
        if source.q:
            which += f" that match “{source.q}”"
    target = {"predicted": "the class that the model predicts", "label": "the class of its label"}.get(request.rule)
    if target is None:
        try:
            resolved = context.models.target(request.model, request.target)
            target = context.models.target_name(request.model, resolved.json() if resolved else None)
        except FanlightError:  # the model is gone
            target = str(request.target)
    return f"{which[0].upper()}{which[1:]}; explained of each: {target}."
