"""Interventions: a change to an explanation, kept as a new one whose parent is the old; replays to the same numbers."""

from __future__ import annotations

from fanlight import wire
from fanlight.errors import Conflict, InvalidField
from fanlight.explainers.base import Target
from fanlight.service import edits, inputs
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import Promise, find, submit


def intervene(context: Context, visitor: Visitor, request: wire.InterventionRequest) -> Promise:
    """Errors: unknown_explanation, invalid_edit, not_finished, and those of `submit`."""
    parent = context.db.read(lambda c: find(c, visitor.workspace, request.explanation))
    if parent.state != "succeeded":
        raise Conflict(
            f"Only a finished explanation can be changed; this one is {parent.state}.",
            code="not_finished",
            given=parent.id,
        )
    if not request.edits:
        raise InvalidField("There is nothing to change.", code="invalid_edit", given=[], allowed=edits.KNOWN)
    source = context.db.read(lambda c: inputs.find(c, visitor.workspace, parent.input))
    pixels, wanted = edits.parse(request.edits, source.width, source.height)
    target = context.models.target(parent.model, wanted) or Target.of(parent.target)
    whole = [*pixels, {"set_target": target.json()}]
    asked = wire.ExplanationRequest(
        model=parent.model,
        input=parent.input,
        explainer=parent.explainer,
        target=target.json(),
        params=parent.params,
        seed=parent.seed,
    )
    return submit(context, visitor, asked, parent=parent.id, edits=whole, note=request.note)
