"""Live edits: answered from frozen artifacts, never stored, and of a session only the latest."""

from __future__ import annotations

import asyncio
import base64
import io
from collections import OrderedDict
from dataclasses import asdict
from typing import Any

import numpy as np

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.errors import Conflict, InvalidField
from fanlight.explainers.base import Target
from fanlight.service import edits, inputs
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find

SESSIONS = 1000
EDITABLE = "region-scores"


class Live:
    """Args: context."""

    def __init__(self, context: Context):
        self._context = context
        self._latest: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}

    async def answer(self, visitor: Visitor, request: wire.LiveRequest) -> wire.LivePanel:
        """The panel after the edits. Errors: superseded (a newer request of the session is here), not_editable, invalid_edit."""
        session = (visitor.principal, request.session)
        if request.seq < self._latest.get(session, -1):
            raise _superseded(request.seq)
        self._latest[session] = request.seq
        self._latest.move_to_end(session)
        while len(self._latest) > SESSIONS:
            old, _ = self._latest.popitem(last=False)
            self._turns.pop(old, None)
        async with self._turns.setdefault(session, asyncio.Lock()):
            if request.seq < self._latest.get(session, -1):
                raise _superseded(request.seq)
            return await asyncio.to_thread(self._panel, visitor, request)

    def _panel(self, visitor: Visitor, request: wire.LiveRequest) -> wire.LivePanel:
        context = self._context
        row = context.db.read(lambda c: find(c, visitor.workspace, request.explanation))
        refs = [a for a in row.artifacts if a["kind"] == EDITABLE]
        if not refs:
            raise InvalidField(
                "This explanation cannot be changed without asking the model.",
                code="not_editable",
                given=request.explanation,
                hint="Save the change instead: POST /api/v1/interventions computes it as a job.",
            )
        source = context.db.read(lambda c: inputs.find(c, visitor.workspace, row.input))
        pixels, wanted = edits.parse(request.edits, source.width, source.height)
        if pixels:
            raise InvalidField(
                "Hiding a part of the picture needs the model.",
                code="not_editable",
                hint="Save the change: POST /api/v1/interventions.",
            )
        was = Target.of(row.target)
        target = context.models.target(row.model, wanted) or was
        if target != was and (target.similar_to or was.similar_to):
            raise InvalidField(
                "Similarity to a picture needs the model.",
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


def _superseded(seq: int) -> Conflict:
    return Conflict("A newer change of this session has arrived.", code="superseded", given=seq)
