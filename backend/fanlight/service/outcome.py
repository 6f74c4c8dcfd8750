"""What a finished computation changes: the record, its references, its trust job. Called inside the transaction that settles the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, insert, select, update

from fanlight.artifact import Artifact, canonical, digest
from fanlight.engine.base import BULK, BULK_TRUST, TRUST, Work
from fanlight.errors import ComputeFailed, NotFound
from fanlight.quality import trust as faithfulness
from fanlight.service.keys import key
from fanlight.store import ledger
from fanlight.store.database import now
from fanlight.store.tables import explanation, floor, input_, prediction, reference

if TYPE_CHECKING:
    from fanlight.service.context import Context

# What every result asks, built once: building a statement costs more than running it.
_ONE = select(explanation).where(explanation.c.id == bindparam("id"))
_CHANGE = update(explanation).where(explanation.c.id == bindparam("of"))
_PREDICTED = select(prediction.c.input).where(
    *(prediction.c[name] == bindparam(name) for name in ("workspace", "model_digest", "input"))
)
_REFERRED = select(reference.c.digest).where(*(reference.c[name] == bindparam(name) for name in ("digest", "owner")))
MEASURABLE = "image-map"
TRUST_COST = (
    660  # 28 steps, two directions, of one order, of ten random ones and of the edges, give or take the shared ends
)


def predicted(context: Context, conn: Connection, row: Row[Any], data: Mapping[str, Any]) -> None:
    """The prediction is known before the explanation: an omitted target gets its class, and the key that goes with it."""
    wanted = select(explanation).where(explanation.c.id == row.explanation, explanation.c.target.is_(None))
    record = conn.execute(wanted).first()
    if record is not None:
        _resolve(context, conn, record, data["target"], data["prediction"])
        _remember(context, conn, record, data["prediction"])


def _resolve(
    context: Context, conn: Connection, record: Row[Any], target: Mapping[str, Any], top: Sequence[Mapping[str, Any]]
) -> None:
    """Gives a record that asked for the top prediction its class."""
    values: dict[str, Any] = {
        "target": dict(target),
        "target_name": context.models.target_name(record.model, target),
        "prediction": list(top),
    }
    if record.recomputes is None:
        content = key(
            model=record.model_digest,
            input=record.input,
            explainer=record.explainer,
            version=record.explainer_version,
            params=record.params,
            target=target,
            seed=record.seed,
            parent=record.parent,
            edits=record.edits,
        )
        taken = conn.execute(
            select(explanation.c.id).where(
                explanation.c.workspace == record.workspace, explanation.c.key == content, explanation.c.live
            )
        ).first()
        if taken is None:  # else somebody asked for this very class meanwhile: both records stand
            values["key"] = content
    conn.execute(update(explanation).where(explanation.c.id == record.id).values(**values))


def finished(context: Context, conn: Connection, row: Row[Any], data: Mapping[str, Any]) -> None:
    """Writes down the result of `row`, a settled job."""
    record = conn.execute(_ONE, {"id": row.explanation}).first()
    if record is None:
        return
    if row.kind == "trust":
        _trusted(conn, record, data)
    elif row.kind == "check":
        _checked(conn, record, row, data)
    else:
        _explained(context, conn, record, data, bulk=row.priority >= BULK)


def verified(context: Context, row: Row[Any], data: Mapping[str, Any]) -> dict[str, Any] | None:
    """For a recomputation: its arrays against those of the record it computed again; None where those cannot be read any more.

    Reads blobs, so it runs before the transaction.
    """

    def known(conn: Connection) -> Sequence[Mapping[str, Any]] | None:
        wanted = select(explanation.c.recomputes).where(explanation.c.id == row.explanation)
        old = conn.execute(wanted).scalar()
        if old is None:
            return None
        return conn.execute(select(explanation.c.artifacts).where(explanation.c.id == old)).scalar() or []

    before = context.db.read(known)
    if not before:
        return None
    after = {a["name"]: a["digest"] for a in data["artifacts"]}
    if all(after.get(a["name"]) == a["digest"] for a in before):
        return {"equal": True, "largest_difference": 0.0}
    if {a["name"] for a in before} != set(after):
        return {"equal": False, "largest_difference": 1.0}
    largest = 0.0
    for a in before:
        try:
            one = Artifact.from_bytes(context.blobs.get(a["digest"])).arrays
        except (NotFound, ComputeFailed):  # gone or damaged: perhaps the very reason to compute it again
            return None
        two = Artifact.from_bytes(context.blobs.get(after[a["name"]])).arrays
        for name, x in one.items():
            y = two.get(name)
            if y is None or x.shape != y.shape:
                return {"equal": False, "largest_difference": 1.0}
            if not x.size:
                continue
            scale = float(np.abs(x).max()) or 1.0
            largest = max(largest, float(np.abs(x.astype(np.float64) - y).max()) / scale)
    return {"equal": False, "largest_difference": largest}


def _explained(context: Context, conn: Connection, record: Row[Any], data: Mapping[str, Any], *, bulk: bool) -> None:
    top = data["prediction"][0] if data["prediction"] else {"name": None, "probability": None}
    _remember(context, conn, record, data["prediction"])
    values: dict[str, Any] = {
        "state": "succeeded",
        "target": data["target"],
        "target_name": context.models.target_name(record.model, data["target"]),
        "prediction": data["prediction"],
        "top_class": top["name"],
        "top_probability": top["probability"],
        "outcome": None
        if record.label is None or top["name"] is None
        else ("right" if _same(record.label, top["name"]) else "wrong"),
        "artifacts": data["artifacts"],
        "summary": data["summary"],
        "provenance": data["provenance"],
        "verified": data.get("verified"),
        "finished": now(conn),
    }
    if record.recomputes is not None:
        old = conn.execute(select(explanation).where(explanation.c.id == record.recomputes)).first()
        if old is not None and old.live:
            conn.execute(
                update(explanation)
                .where(explanation.c.id == old.id)
                .values(live=False, superseded_by=record.id, key=f"{old.key[:50]}:{record.id[:12]}")
            )
            values["key"] = old.key
    for a in data["artifacts"]:
        _refer(conn, record, a["digest"])
    measurable = any(a["kind"] == MEASURABLE for a in data["artifacts"])
    if not measurable:
        values |= {
            "trust": {"state": "unavailable", "reason": "This kind of result has no measure of faithfulness."},
            "trust_class": "unavailable",
        }
    elif context.settings.trust == "request":
        values |= {
            "trust": {"state": "unavailable", "reason": "Not measured yet; ask for it."},
            "trust_class": "unavailable",
        }
    conn.execute(_CHANGE, {"of": record.id, **values})
    if measurable and context.settings.trust == "auto":
        measure(context, conn, record.id, priority=BULK_TRUST if bulk else TRUST)


def measure(context: Context, conn: Connection, ident: str, *, priority: int = TRUST) -> str:
    """Promises the trust record of a stored explanation, at the lowest priority; returns the job."""
    record = conn.execute(select(explanation).where(explanation.c.id == ident)).one()
    known = faithfulness.usable(
        conn.execute(
            select(floor.c.record).where(floor.c.workspace == record.workspace, floor.c.key == _floor_key(record))
        ).scalar()
    )
    cost = TRUST_COST if known is None else TRUST_COST // 10
    _write(conn, record, {"state": "pending"})
    return promised(context, conn, record, kind="trust", cost=cost, floor=known, priority=priority)


def promised(
    context: Context, conn: Connection, record: Row[Any], *, principal: str = "", priority: int = TRUST, **fields: Any
) -> str:
    """Puts a measurement of `record` into the queue, at the lowest priority; returns the job. Args: fields: of `Work`."""
    pixels = select(input_.c.blob).where(input_.c.workspace == record.workspace)
    model = context.models.find(record.model)
    work = Work(
        job="",
        attempt=0,
        model={k: model[k] for k in ("id", "digest", "source", "size")},
        input=conn.execute(pixels.where(input_.c.id == record.input)).scalar_one(),
        explainer=record.explainer,
        version=record.explainer_version,
        params=record.params,
        target=record.target,
        seed=record.seed,
        numerics=record.numerics,
        edits=tuple(e for e in record.edits if "set_target" not in e),
        artifacts={a["name"]: a["digest"] for a in record.artifacts},
        reference=conn.execute(pixels.where(input_.c.id == (record.target or {}).get("similar_to"))).scalar(),
        priority=priority,
        **fields,
    )
    row = {
        "workspace": record.workspace,
        "principal": principal or record.principal,
        "explanation": record.id,
        "kind": work.kind,
        "work": work.json(),
        "priority": priority,
        "cost": work.cost,
        "deadline": None,
    }
    return ledger.enqueue(conn, row, queue_limit=2**62, principal_limit=2**62, throughput=1.0)


def _trusted(conn: Connection, record: Row[Any], data: Mapping[str, Any]) -> None:
    trust = dict(data["trust"])
    if trust.get("curves"):
        _refer(conn, record, trust["curves"]["digest"])
    if data.get("floor") is not None:
        _keep_floor(conn, record, dict(data["floor"]))
    trust["seconds"] = data["provenance"]["seconds"]
    word = "unavailable" if trust["state"] != "succeeded" else "above" if trust["above_floor"] else "below"
    _write(conn, record, trust, trust_class=word, faithfulness=trust.get("faithfulness"))
    _tell(conn, record, trust["state"])


def _checked(conn: Connection, record: Row[Any], row: Row[Any], data: Mapping[str, Any]) -> None:
    """Of further measurements the one that `row`, a settled job, made."""
    made, about = dict(data["check"]), data["provenance"]
    if made.get("curves"):
        _refer(conn, record, made["curves"]["digest"])
    made |= {k: about[k] for k in ("seconds", "forwards", "versions", "device")} | {"job": row.id}
    note(conn, record, data["measure"], made)
    _tell(conn, record, f"{data['measure']} {made['state']}")


def unmeasured(conn: Connection, row: Row[Any], state: str, error: Mapping[str, Any] | None) -> None:
    """A job of trust that ended without a result."""
    record = conn.execute(_ONE, {"id": row.explanation}).first()
    if record is None:
        return
    failed = {"state": "failed", "reason": error["message"] if error else "The measurement was cancelled."}
    if row.kind == "trust":
        _write(conn, record, failed)
    else:  # one that was cancelled is as if it had never been asked for
        name = row.work["measure"]
        note(conn, record, name, None if state == "cancelled" else {**failed, "job": row.id})
        _tell(conn, record, f"{name} {state}")


def note(conn: Connection, record: Row[Any], name: str, check: Mapping[str, Any] | None) -> None:
    """Writes down one of the further measurements, or takes it away; the rest of the trust record stays."""
    trust = dict(_locked(conn, record))
    others = {k: v for k, v in (trust.get("checks") or {}).items() if k != name}
    trust["checks"] = others if check is None else {**others, name: dict(check)}
    conn.execute(update(explanation).where(explanation.c.id == record.id).values(trust=trust))


def _write(conn: Connection, record: Row[Any], trust: Mapping[str, Any], **columns: Any) -> None:
    """The trust record anew; the further measurements are kept."""
    checks = _locked(conn, record).get("checks")
    word = {"pending": "pending", "failed": "unavailable"}.get(trust["state"])
    values = {"trust": {**trust, **({"checks": checks} if checks else {})}, **({"trust_class": word} if word else {})}
    conn.execute(update(explanation).where(explanation.c.id == record.id).values(**{**values, **columns}))


def _locked(conn: Connection, record: Row[Any]) -> Mapping[str, Any]:
    """The trust record as it is now, until the transaction ends: several measurements may come at once."""
    wanted = select(explanation.c.trust).where(explanation.c.id == record.id).with_for_update()
    return conn.execute(wanted).scalar() or {}


def _tell(conn: Connection, record: Row[Any], state: str) -> None:
    ledger.emit(conn, record.workspace, {"type": "trust", "explanation": record.id, "state": state})


def _keep_floor(conn: Connection, record: Row[Any], found: Mapping[str, Any]) -> None:
    """One that is already kept stays, unless it is of an older definition."""
    where = floor.c.workspace == record.workspace, floor.c.key == _floor_key(record)
    known = conn.execute(select(floor.c.record).where(*where)).scalar()
    values = {"record": dict(found), "created": now(conn)}
    if known is None:
        conn.execute(insert(floor).values(workspace=record.workspace, key=_floor_key(record), **values))
    elif faithfulness.usable(known) is None:
        conn.execute(update(floor).where(*where).values(**values))


def _remember(context: Context, conn: Connection, record: Row[Any], top: Sequence[Mapping[str, Any]]) -> None:
    if top and not record.edits:
        remember(context, conn, record.workspace, record.model_digest, record.input, top)


def remember(
    context: Context, conn: Connection, workspace: str, model: str, source: str, top: Sequence[Mapping[str, Any]]
) -> None:
    """From now on an omitted target of this model and input is resolved at once, and so are those that wait: who asks again finds them."""
    row = {"workspace": workspace, "model_digest": model, "input": source}
    if conn.execute(_PREDICTED, row).first() is not None:
        return
    conn.execute(insert(prediction), {**row, "top": list(top), "created": now(conn)})
    waiting = select(explanation).where(
        explanation.c.workspace == workspace,
        explanation.c.model_digest == model,
        explanation.c.input == source,
        explanation.c.target.is_(None),
        explanation.c.live,
    )
    for other in conn.execute(waiting).all():
        if not other.edits:
            _resolve(context, conn, other, {"class": top[0]["index"]}, top)


def _refer(conn: Connection, record: Row[Any], blob: str) -> None:
    owner = f"explanation:{record.id}"
    row = {"digest": blob, "owner": owner}
    if conn.execute(_REFERRED, row).first() is None:
        conn.execute(insert(reference), {**row, "workspace": record.workspace})


def _floor_key(record: Row[Any]) -> str:
    return digest(canonical([record.model_digest, record.input, record.edits, record.target]))


def _same(label: str, name: str) -> bool:
    """A folder's label and a model's class name, apart from case, spaces and underscores."""
    return (
        label.replace("_", " ").replace("-", " ").casefold().strip()
        == name.replace("_", " ").replace("-", " ").casefold().strip()
    )
