"""Interventions: a change to an explanation, kept as a new one whose parent is the old; replays to the same numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fanlight import wire
from fanlight.errors import Conflict, InvalidField
from fanlight.explainers.base import Target
from fanlight.explainers.registry import find as find_explainer
from fanlight.service import edits, inputs
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import Promise, find, submit


def intervene(context: Context, visitor: Visitor, request: wire.InterventionRequest) -> Promise:
    """Errors: unknown_explanation, invalid_edit, outside_view, not_finished, and those of `submit`."""
    parent = context.db.read(lambda c: find(c, visitor.workspace, request.explanation))
    if parent.state != "succeeded":
        raise Conflict(
            f"Only a finished explanation can be changed; this one is {parent.state}.",
            code="not_finished",
            given=parent.id,
        )
    method = find_explainer(parent.explainer, context.explainers)
    if not request.edits:
        known = {**edits.KNOWN, **method.edits}
        raise InvalidField("There is nothing to change.", code="invalid_edit", given=[], allowed=known)
    source = context.db.read(lambda c: inputs.find(c, visitor.workspace, parent.input))
    about = parent.artifacts[0]["meta"]
    wanted = edits.parse(request.edits, source.width, source.height, method, about)
    if source.kind == "prompt" and (wanted.pixels or wanted.target is not None):
        raise InvalidField(
            "Where a model draws, no part of the picture can be hidden, and there is no class to choose.",
            code="not_editable",
            given=list(request.edits),
            allowed=dict(method.edits),
        )
    _within_view(wanted.pixels, parent.artifacts)
    target = context.models.target(parent.model, wanted.target) or Target.of(parent.target)
    whole = [*wanted.pixels, *wanted.own, *([] if target.drawn else [{"set_target": target.json()}])]
    asked = wire.ExplanationRequest(
        model=parent.model,
        input=parent.input,
        explainer=parent.explainer,
        target=None if target.drawn else target.json(),
        params=parent.params,
        seed=parent.seed,
    )
    return submit(context, visitor, asked, parent=parent.id, edits=whole, note=request.note)


def _within_view(edits: Sequence[Mapping[str, Any]], artifacts: Sequence[Mapping[str, Any]]) -> None:
    """A part that the model never sees can be hidden without any effect: rather said than computed."""
    box = next((a["meta"]["box"] for a in artifacts if "box" in a["meta"]), None)
    if box is None:
        return
    left, top, right, bottom = (round(v) for v in box)
    for edit in edits:
        if "mask_region" in edit:
            x0, y0, x1, y1 = edit["mask_region"]
            if x1 <= left or x0 >= right or y1 <= top or y0 >= bottom:
                raise InvalidField(
                    f"This part of the picture lies outside what the model sees: columns {left} to {right} and rows {top} to {bottom}.",
                    code="outside_view",
                    given=edit["mask_region"],
                    allowed=[left, top, right, bottom],
                    hint="Hiding it would change nothing. Choose a part that reaches into that box.",
                )
