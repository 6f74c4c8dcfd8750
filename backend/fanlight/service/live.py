"""Live edits: answered from frozen artifacts, never stored, and of a session only the latest."""

from __future__ import annotations

import asyncio
import base64
import io
from dataclasses import asdict
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.engine.base import Work
from fanlight.errors import InvalidField
from fanlight.explainers.base import Explainer, Target
from fanlight.explainers.registry import find as find_explainer
from fanlight.images import of_picture
from fanlight.service import edits, inputs
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find
from fanlight.service.live_turns import LiveTurns

EDITABLE = "region-scores"
AHEAD = 2  # that are read and checked while the engine computes others


class Live:
    """Args: context."""

    def __init__(self, context: Context):
        self._context = context
        self._turns = LiveTurns(context.engine.live + AHEAD)

    async def answer(self, visitor: Visitor, request: wire.LiveRequest) -> wire.LivePanel:
        """The panel after the edits. Errors: superseded (a newer request of the session is here), not_editable, invalid_edit."""
        session = (visitor.workspace, visitor.principal, request.session)
        async with self._turns.turn(session, request.seq, patient=request.suggest):
            row, source = await self._context.db.aread(lambda c: self._found(c, visitor, request.explanation))
            method = find_explainer(row.explainer, self._context.explainers)
            if method.edits and row.artifacts:
                return await self._edited(row, source, method, request)
            return await asyncio.to_thread(self._panel, row, source, request)

    def _found(self, conn: Connection, visitor: Visitor, ident: str) -> tuple[Row[Any], Row[Any]]:
        """The record and its picture."""
        row = find(conn, visitor.workspace, ident)
        return row, inputs.find(conn, visitor.workspace, row.input)

    async def _edited(
        self, row: Row[Any], source: Row[Any], method: type[Explainer], request: wire.LiveRequest
    ) -> wire.LivePanel:
        """Of what a method changes itself: the engine computes it from the stored artifacts."""
        context = self._context
        wanted = edits.parse(request.edits, source.width, source.height, method, row.artifacts[0]["meta"])
        if wanted.pixels != [e for e in row.edits if of_picture(e)] or wanted.target is not None:
            raise InvalidField(
                "Hiding a part of the picture, or explaining another class, needs the model.",
                code="not_editable",
                hint="Save the change: POST /api/v1/interventions.",
            )
        new = [e for e in wanted.own if next(iter(e)) in method.asks and e not in row.edits]
        if new:
            raise InvalidField(
                "This change asks the model again, so it is not live.",
                code="not_editable",
                given=new,
                hint="Save the change: POST /api/v1/interventions.",
            )
        model = context.models.find(row.model)
        work = Work(
            job="",
            attempt=0,
            kind="suggest" if request.suggest else "edit",
            model={"id": row.model, "digest": row.model_digest, "source": model["source"], "size": model["size"]},
            input="",
            explainer=row.explainer,
            version=row.explainer_version,
            params=row.params,
            target=row.target,
            seed=row.seed,
            numerics=row.numerics,
            edits=tuple(wanted.own),
            artifacts={a["name"]: a["digest"] for a in row.artifacts},
        )
        found = await context.engine.edit(work)
        named = {"seq": request.seq, "target": row.target, "target_name": row.target_name}
        if request.suggest:
            return wire.LivePanel(**named, suggestion=dict(found))
        shown = found["artifact"]
        return wire.LivePanel(
            **named, summary=shown["sentence"], detail=shown["detail"], prediction=found["prediction"]
        )

    def _panel(self, row: Row[Any], source: Row[Any], request: wire.LiveRequest) -> wire.LivePanel:
        """Of stored regions for another class: nothing has to be computed."""
        context = self._context
        refs = [a for a in row.artifacts if a["kind"] == EDITABLE]
        if not refs:
            raise InvalidField(
                "This explanation cannot be changed without asking the model.",
                code="not_editable",
                given=request.explanation,
                hint="Save the change instead: POST /api/v1/interventions computes it as a job.",
            )
        wanted = edits.parse(request.edits, source.width, source.height)
        if wanted.pixels:
            raise InvalidField(
                "Hiding a part of the picture needs the model.",
                code="not_editable",
                hint="Save the change: POST /api/v1/interventions.",
            )
        was = Target.of(row.target)
        target = context.models.target(row.model, wanted.target) or was
        if target != was and not (target.of_class and was.of_class):
            raise InvalidField(
                "Similarity to a picture, or a concept, needs the model.",
                code="not_editable",
                hint="Save the change: POST /api/v1/interventions.",
            )
        stored = Artifact.from_bytes(context.blobs.get(refs[0]["digest"]))
        shown = retarget(stored, target)
        name = context.models.target_name(row.model, target.json())
        draw = renderer(shown.kind)
        out = io.BytesIO()
        draw.image(shown).save(out, "PNG", compress_level=1)
        return wire.LivePanel(
            seq=request.seq,
            target=target.json(),
            target_name=name,
            summary=draw.sentence(shown, target=name),
            image="data:image/png;base64," + base64.b64encode(out.getvalue()).decode(),
            legend=asdict(draw.legend(shown)),
        )


def retarget(stored: Artifact, target: Target) -> Artifact:
    """The same scores for another target: column(s) of `all` (R, C)."""
    every = stored.arrays["all"]
    value = every[:, target.index] if target.minus is None else every[:, target.index] - every[:, target.minus]
    meta: dict[str, Any] = {**stored.meta, "target": target.json()}
    return Artifact(stored.name, stored.kind, {**stored.arrays, "value": np.ascontiguousarray(value)}, meta)
