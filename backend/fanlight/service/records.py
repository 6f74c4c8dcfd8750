"""From rows to the wire: the stored explanation, its job, its trust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select

from fanlight import wire
from fanlight.drawing.checks import WORDS
from fanlight.explainers.registry import registry
from fanlight.service.context import Context
from fanlight.store import ledger
from fanlight.store.tables import explanation, job, tag, watcher

_TAGS = select(tag).where(tag.c.explanation.in_(bindparam("ids", expanding=True))).order_by(tag.c.tag)


def explanation_wire(context: Context, row: Row[Any], tags: Sequence[str] = ()) -> wire.Explanation:
    explainers = registry(context.explainers)
    title = explainers[row.explainer].title if row.explainer in explainers else row.explainer
    return wire.Explanation(
        id=row.id,
        state=row.state,
        job=row.job,
        parent=row.parent,
        edits=row.edits,
        model=row.model,
        model_name=context.models.name_of(row.model),
        input=row.input,
        input_name=row.input_name,
        explainer=row.explainer,
        explainer_title=title,
        family=row.family,
        target=row.target,
        target_name=row.target_name,
        params=row.params,
        seed=row.seed,
        prediction=[wire.Prediction(**p) for p in row.prediction],
        artifacts=[artifact_wire(context, a) for a in row.artifacts],
        summary=row.summary,
        trust=trust_wire(context, row.trust),
        provenance=wire.Provenance(
            key=row.key.split(":")[0],
            model_digest=row.model_digest,
            input_digest=row.input,
            explainer_version=row.explainer_version,
            numerics=row.numerics,
            created=row.created / 1e6,
            **row.provenance,
        ),
        error=wire.ErrorBody(**_body(row.error)) if row.error else None,
        title=row.title,
        note=row.note,
        tags=list(tags),
        label=row.label,
        outcome=row.outcome,
        dataset=row.dataset,
        principal=row.principal,
        superseded_by=row.superseded_by,
        recomputes=row.recomputes,
        verified=row.verified,
        created=row.created / 1e6,
    )


def artifact_wire(context: Context, ref: Mapping[str, Any]) -> wire.ArtifactRef:
    url = f"{context.settings.root_path}/api/v1/artifacts/{ref['digest']}"
    return wire.ArtifactRef(
        name=ref["name"], kind=ref["kind"], digest=ref["digest"], url=url, unit=ref["unit"], meta=ref["meta"]
    )


def trust_wire(context: Context, record: Mapping[str, Any]) -> wire.Trust:
    def shown(of: Mapping[str, Any]) -> dict[str, Any]:
        return {**of, "curves": artifact_wire(context, of["curves"]) if of.get("curves") else None}

    checks = {name: shown(check) for name, check in (record.get("checks") or {}).items()}
    return wire.Trust.model_validate({**shown(record), "checks": checks})


def tags_of(conn: Connection, ids: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {i: [] for i in ids}
    for row in conn.execute(_TAGS, {"ids": list(ids)}):
        found[row.explanation].append(row.tag)
    return found


def job_wire(context: Context, conn: Connection, row: Row[Any], principal: str) -> wire.Job:
    """The job, with what the dispatcher knows of it beyond the last written row."""
    news = context.dispatcher.news(row.id)
    state = "running" if news and row.state == "queued" else row.state
    progress = news["progress"] if news else row.progress
    place = ledger.place(conn, row) if state == "queued" else None
    record = conn.execute(
        select(explanation.c.explainer, explanation.c.target_name, explanation.c.input_name).where(
            explanation.c.id == row.explanation
        )
    ).first()
    mine = (
        conn.execute(select(watcher.c.job).where(watcher.c.job == row.id, watcher.c.principal == principal)).first()
        is not None
    )
    title = ""
    if record is not None:
        explainers = registry(context.explainers)
        method = explainers[record.explainer].title if record.explainer in explainers else record.explainer
        title = f"{_before(row)}{method} · {record.input_name}"
    return wire.Job(
        id=row.id,
        explanation=row.explanation,
        kind=row.kind,
        state=state,
        progress=round(progress, 4),
        message=news["message"] if news else row.message,
        place=place,
        seconds_left=context.dispatcher.seconds_left(conn, row, progress) if state in ledger.OPEN else None,
        mine=mine or row.principal == principal,
        error=wire.ErrorBody(**_body(row.error)) if row.error else None,
        title=title,
        created=row.created / 1e6,
        started=row.started / 1e6 if row.started else None,
        finished=row.finished / 1e6 if row.finished else None,
    )


def _before(row: Row[Any]) -> str:
    """What is done to the method that a job's title names."""
    if row.kind == "check":
        return f"{WORDS[row.work['measure']].title} of "
    return "Trust of " if row.kind == "trust" else ""


def job_row(conn: Connection, workspace: str, name: str) -> Row[Any] | None:
    return conn.execute(select(job).where(job.c.workspace == workspace, job.c.id == name)).first()


def _body(error: Mapping[str, Any]) -> dict[str, Any]:
    return {k: error[k] for k in ("code", "message", "given", "allowed", "hint") if k in error}
