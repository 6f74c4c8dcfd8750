"""What a request for an explanation means: resolved, keyed, found or promised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from fanlight import wire
from fanlight.adapters.base import takes
from fanlight.engine.base import BULK, INTERACTIVE, Work
from fanlight.errors import Conflict, InvalidField, Unavailable, unknown
from fanlight.explainers.base import DRAWN, Explainer
from fanlight.explainers.registry import find as find_explainer
from fanlight.service import inputs
from fanlight.service.context import Context, Visitor
from fanlight.service.keys import NUMERICS, key
from fanlight.service.listing import count
from fanlight.service.shares import revoke_for
from fanlight.store import ledger
from fanlight.store.audit import note
from fanlight.store.database import now
from fanlight.store.news import announce
from fanlight.store.tables import dataset, explanation, job, prediction, reference, sample, tag

SECOND = 1_000_000

# What every request asks, built once: building a statement costs more than running it.
_MINE = explanation.c.workspace == bindparam("workspace")
_ONE = select(explanation).where(_MINE, explanation.c.id == bindparam("id"))
_SAME = select(explanation).where(_MINE, explanation.c.live, explanation.c.key == bindparam("key"))
# a recomputation of this record that is under way
_AGAIN = select(explanation).where(
    _MINE, explanation.c.live, explanation.c.recomputes == bindparam("recomputes"), explanation.c.state.in_(ledger.OPEN)
)
_ORIGIN = (
    select(sample.c.label, sample.c.dataset, sample.c.name)
    .join(dataset, (dataset.c.id == sample.c.dataset) & (dataset.c.workspace == sample.c.workspace))
    .where(sample.c.workspace == bindparam("workspace"), sample.c.input == bindparam("input"))
    .limit(1)
)
_TOP = select(prediction.c.top).where(
    prediction.c.workspace == bindparam("workspace"),
    prediction.c.model_digest == bindparam("model"),
    prediction.c.input == bindparam("input"),
)


@dataclass(frozen=True)
class Promise:
    """The answer to a request: a record, stored or promised, and the job that works on it."""

    id: str
    job: str | None
    state: wire.State
    fresh: bool = False
    """Promised by this very request."""


def submit(
    context: Context,
    visitor: Visitor,
    request: wire.ExplanationRequest,
    *,
    priority: int = INTERACTIVE,
    parent: str | None = None,
    edits: Sequence[Mapping[str, Any]] = (),
    note: str = "",
    recomputes: str | None = None,
    within: Callable[[Connection, Promise], None] | None = None,
) -> Promise:
    """Finds the explanation or promises it. When this returns, the promise is durable.

    Args:
        within: called in the transaction of the promise; what it writes stands or falls with it.

    Errors: unknown_model, unknown_explainer, unknown_input, unknown_target, invalid_params, not_available, too_busy.
    """
    model, explainer, params = fitting(context, request.model, request.explainer, request.params)
    drawn = takes(model["task"]) == "prompt"
    if drawn and request.target is not None:
        raise InvalidField(
            "A model that draws is explained on its picture; there is no class to choose.",
            code="invalid_target",
            given=request.target if isinstance(request.target, (int, str)) else request.target.model_dump(),
            hint="Leave the target out.",
        )
    target = DRAWN if drawn else context.models.target(request.model, request.target)
    size = (int(model["size"][0]), int(model["size"][1]))
    if target is not None and target.similar_to == request.input and not edits:
        raise InvalidField(
            "A picture is as similar to itself as can be, so there is nothing to explain.",
            code="same_picture",
            given=target.similar_to,
            hint="Compare with another picture.",
        )
    if target is not None and not target.of_class and not target.drawn and explainer.accepts != "image-classifier":
        raise InvalidField(
            f"{explainer.title} explains classes, not a concept or a similarity.",
            code="invalid_target",
            given=target.json(),
            hint="Name a class, or ask a method that explains pictures.",
        )
    cost = max(1, explainer.cost(explainer.Params(**params), size))
    settings = context.settings

    def act(conn: Connection) -> tuple[Promise, bool]:
        source = _fitting_input(conn, visitor, request.input, model)
        other = inputs.find(conn, visitor.workspace, target.similar_to) if target and target.similar_to else None
        known = _known_top(conn, visitor.workspace, model["digest"], request.input) if not edits else None
        resolved = target.json() if target is not None else ({"class": known[0]["index"]} if known else None)
        content = key(
            model=model["digest"],
            input=request.input,
            explainer=explainer.name,
            version=explainer.version,
            params=params,
            target=resolved,
            seed=request.seed,
            parent=parent,
            edits=edits,
        )
        if recomputes is None:
            found = conn.execute(_SAME, {"workspace": visitor.workspace, "key": content}).first()
        else:
            found = conn.execute(_AGAIN, {"workspace": visitor.workspace, "recomputes": recomputes}).first()
        if found is not None:
            if found.job and found.state in ledger.OPEN:
                ledger.watch(conn, found.job, visitor.principal)
            promise = Promise(found.id, found.job, found.state)
            if within is not None:
                within(conn, promise)
            return promise, False
        ident, name = ledger.new_id(), ledger.new_id()
        origin = conn.execute(_ORIGIN, {"workspace": visitor.workspace, "input": request.input}).first()
        row = {
            "id": ident,
            "workspace": visitor.workspace,
            "principal": visitor.principal,
            "key": content if recomputes is None else f"{content[:50]}:{ledger.new_id()[:12]}",
            "live": True,
            "state": "queued",
            "parent": parent,
            "edits": list(edits),
            "model": request.model,
            "model_digest": model["digest"],
            "input": request.input,
            "input_name": origin.name if origin else source.name,
            "dataset": origin.dataset if origin else None,
            "label": origin.label if origin else None,
            "explainer": explainer.name,
            "explainer_version": explainer.version,
            "family": explainer.family,
            "params": params,
            "seed": request.seed,
            "numerics": NUMERICS,
            "target": resolved,
            "target_name": context.models.target_name(request.model, resolved),
            "prediction": known or [],
            "artifacts": [],
            "summary": "",
            "trust": {"state": "pending"},
            "trust_class": "pending",
            "provenance": {},
            "title": "",
            "note": note,
            "recomputes": recomputes,
            "job": name,
            "created": now(conn),
        }
        conn.execute(insert(explanation), row)
        if priority < BULK:  # else the sweep says it for all of its pictures
            made = "recompute" if recomputes is not None else "edit" if edits else "create"
            visitor.did(conn, f"explanation.{made}", ident, explainer=explainer.name, model=request.model)
        work = Work(
            job="",
            attempt=0,
            kind="explain",
            model={k: model[k] for k in ("id", "digest", "source", "size")},
            input=source.blob if source.kind == "image" else source.original,
            explainer=explainer.name,
            version=explainer.version,
            params=params,
            target=resolved,
            seed=request.seed,
            numerics=NUMERICS,
            edits=tuple(e for e in edits if "set_target" not in e),
            reference=other.blob if other is not None else None,
            priority=priority,
            cost=cost,
        )
        ledger.enqueue(
            conn,
            {
                "id": name,
                "workspace": visitor.workspace,
                "principal": visitor.principal,
                "explanation": ident,
                "kind": "explain",
                "work": work.json(),
                "priority": priority,
                "cost": cost,
                # Nobody sits before bulk work: it may wait as long as it has to.
                "deadline": settings.job_deadline * SECOND if priority < BULK else None,
            },
            queue_limit=settings.queue_limit,
            principal_limit=settings.principal_limit,
            throughput=context.dispatcher.throughput,
        )
        count(conn, visitor.workspace, "explanations", 1)
        ledger.emit(
            conn,
            visitor.workspace,
            {"type": "job", "id": name, "explanation": ident, "kind": "explain", "state": "queued"},
        )
        promise = Promise(ident, name, "queued", fresh=True)
        if within is not None:
            within(conn, promise)
        return promise, True

    promise, fresh = context.db.write(act)
    if priority < BULK:
        context.foresight.models[visitor.workspace] = request.model
    if fresh:
        context.dispatcher.kick()
        context.bus.tick()
    return promise


def _fitting_input(conn: Connection, visitor: Visitor, ident: str, model: Mapping[str, Any]) -> Row[Any]:
    """The input, where it is of the kind that the model takes. Errors: unknown_input, wrong_kind."""
    source = inputs.find(conn, visitor.workspace, ident)
    wanted = takes(model["task"])
    if source.kind != wanted:
        said = {"image": "a picture", "prompt": "a prompt"}
        raise InvalidField(
            f"{model['name']} takes {said[wanted]}; this input is {said[source.kind]}.",
            code="wrong_kind",
            given=source.kind,
            allowed=wanted,
        )
    return source


def fitting(
    context: Context, model: str, explainer: str, params: Mapping[str, Any]
) -> tuple[dict[str, Any], type[Explainer], dict[str, Any]]:
    """The model, the explainer and its parameters with defaults filled, where they go together.

    Errors: starting, unknown_model, unknown_explainer, not_available, invalid_params.
    """
    if not context.models.ready.is_set():
        raise Unavailable("The models are still being loaded.", code="starting", hint="Try again in a few seconds.")
    known = context.models.find(model)
    method = find_explainer(explainer, context.explainers)
    fits = context.models.availability(model, explainer)
    if not fits.available:
        raise InvalidField(
            f"{method.title} is not available for {known['name']}. {fits.reason}",
            code="not_available",
            given=explainer,
            allowed=[a.name for a in context.models.shown(model, classes=False).explainers if a.available],
        )
    filled = _params(method, params)
    method.check(method.Params(**filled), (int(known["size"][0]), int(known["size"][1])))
    return known, method, filled


def _params(explainer: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with defaults filled, or a sentence that names the first that is wrong and its range."""
    try:
        return dict(explainer.Params(**given).model_dump(mode="json"))
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "params"
        schema = explainer.Params.model_json_schema()["properties"]
        if first["type"] == "extra_forbidden":
            message = f"{explainer.title} has no parameter “{field}”."
            allowed: Any = list(schema)
        else:
            message = f"{explainer.title}: {field}: {first['msg']}."
            limits = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum", "type")
            allowed = {k: v for k, v in schema.get(field, {}).items() if k in limits}
        raise InvalidField(
            message,
            code="invalid_params",
            given={field: first["input"]},
            allowed=allowed,
            hint="GET /api/v1/explainers lists parameters and ranges.",
        ) from None


def recompute(context: Context, visitor: Visitor, ident: str) -> Promise:
    """Computes a finished explanation again under the same request; the new record says how its numbers compare and supersedes the old."""
    old = context.db.read(lambda c: _newest(c, visitor.workspace, ident))
    if old.state in ledger.OPEN:
        raise Conflict(
            "This explanation is still being computed.", code="not_finished", given=ident, hint="Wait for it first."
        )
    request = wire.ExplanationRequest(
        model=old.model,
        input=old.input,
        explainer=old.explainer,
        target=None if old.target == DRAWN.json() else old.target,
        params=old.params,
        seed=old.seed,
    )
    now_is = (context.models.find(old.model)["digest"], find_explainer(old.explainer, context.explainers).version)
    same = now_is == (old.model_digest, old.explainer_version)
    # What has no result, or whose model or method has changed since, is a request like any other.
    again = old.id if old.state == "succeeded" and same else None
    return submit(context, visitor, request, parent=old.parent, edits=old.edits, recomputes=again)


def _newest(conn: Connection, workspace: str, ident: str) -> Row[Any]:
    """The record that superseded this one, or the record itself."""
    row = find(conn, workspace, ident)
    while row.superseded_by is not None:
        row = find(conn, workspace, row.superseded_by)
    return row


def find(conn: Connection, workspace: str, ident: str) -> Row[Any]:
    row = conn.execute(_ONE, {"workspace": workspace, "id": ident}).first()
    if row is None:
        raise unknown("explanation", ident, [], hint="It may have been deleted. The gallery lists what there is.")
    return row


def patch(context: Context, visitor: Visitor, ident: str, changes: wire.ExplanationPatch) -> None:
    """Title, note and tags: what people say about a record. The record itself never changes."""
    given = changes.model_dump(exclude_none=True)

    def act(conn: Connection) -> None:
        find(conn, visitor.workspace, ident)
        if (tags := given.pop("tags", None)) is not None:
            conn.execute(delete(tag).where(tag.c.explanation == ident))
            for t in dict.fromkeys(tags):
                conn.execute(insert(tag).values(explanation=ident, tag=t, workspace=visitor.workspace))
        if given:
            conn.execute(update(explanation).where(explanation.c.id == ident).values(**given))
        changed = sorted(changes.model_dump(exclude_none=True))
        note(conn, visitor.workspace, visitor.principal, "explanation.change", ident, {"fields": changed})
        ledger.emit(conn, visitor.workspace, {"type": "changed", "explanation": ident})

    context.db.write(act)


def remove(context: Context, visitor: Visitor, ident: str) -> wire.Deleted:
    """Deletes a record; its live shares are revoked and named."""

    def act(conn: Connection) -> wire.Deleted:
        row = find(conn, visitor.workspace, ident)
        revoked = revoke_for(conn, visitor, ident)
        conn.execute(delete(reference).where(reference.c.owner == f"explanation:{ident}"))
        working = select(job.c.id).where(job.c.explanation == ident, job.c.state.in_(ledger.OPEN))
        stop.extend(conn.execute(working).scalars())
        conn.execute(delete(job).where(job.c.explanation == ident))
        announce(conn, stop=stop)
        note(conn, visitor.workspace, visitor.principal, "explanation.delete", ident, {"shares": revoked})
        conn.execute(delete(explanation).where(explanation.c.id == ident))
        # What it superseded stands again, and answers equal requests.
        back = {"superseded_by": None, "live": row.live, "key": row.key if row.live else explanation.c.key}
        for before in (
            conn.execute(select(explanation.c.id).where(explanation.c.superseded_by == ident)).scalars().all()
        ):
            conn.execute(update(explanation).where(explanation.c.id == before).values(back))
            ledger.emit(conn, visitor.workspace, {"type": "changed", "explanation": before})
        count(conn, visitor.workspace, "explanations", -1)
        ledger.emit(conn, visitor.workspace, {"type": "deleted", "explanation": ident})
        return wire.Deleted(id=ident, revoked_shares=revoked)

    stop: list[str] = []
    done = context.db.write(act)
    for name in stop:
        context.dispatcher.stop(name)
    context.bus.tick()
    return done


def _known_top(conn: Connection, workspace: str, model: str, ident: str) -> list[dict[str, Any]] | None:
    row = conn.execute(_TOP, {"workspace": workspace, "model": model, "input": ident}).first()
    return list(row.top) if row else None
