"""What would fail by its words alone is refused before it is promised: an unknown word, one that is not in the prompt, too long a prompt.

The compute worker is asked, because the model knows its words. It answers beside its work; where it does not in time, or cannot, the job is
promised as ever and fails in the same sentence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fanlight import wire
from fanlight.engine.base import Work
from fanlight.errors import FanlightError
from fanlight.explainers.base import Explainer
from fanlight.explainers.registry import find as find_explainer, registry
from fanlight.service import edits, inputs, studies
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find, fitting
from fanlight.service.keys import NUMERICS

WAIT = 2.0  # seconds
REFUSED = ("bad_prompt",)


class _Asked(NamedTuple):
    """Prompts with their parameters, of a method on a model, and the edits that are to be made."""

    model: str
    method: type[Explainer]
    prompts: Sequence[Mapping[str, Any]]
    edits: Sequence[Mapping[str, Any]] = ()


async def explanation(context: Context, visitor: Visitor, request: wire.ExplanationRequest) -> None:
    """Errors: bad_prompt."""
    if request.explainer not in _foreseeing(context):
        return

    def words() -> _Asked | None:
        _, method, params = fitting(context, request.model, request.explainer, request.params)
        prompt = {"text": _text(context, visitor, request.input), "params": params}
        return _Asked(request.model, method, [prompt])

    await _ask(context, words)


async def change(context: Context, visitor: Visitor, request: wire.InterventionRequest) -> None:
    """Errors: bad_prompt."""
    asks = {kind for method in _foreseeing(context).values() for kind in method.asks}
    if not any(kind in asks for edit in request.edits for kind in edit):
        return

    def words() -> _Asked | None:
        parent = context.db.read(lambda c: find(c, visitor.workspace, request.explanation))
        method = find_explainer(parent.explainer, context.explainers)
        if not method.foresees or not parent.artifacts:
            return None
        source = context.db.read(lambda c: inputs.find(c, visitor.workspace, parent.input))
        wanted = edits.parse(request.edits, source.width, source.height, method, parent.artifacts[0]["meta"])
        if not any(next(iter(e)) in method.asks for e in wanted.own):
            return None
        prompt = {"text": _text(context, visitor, parent.input), "params": parent.params}
        return _Asked(parent.model, method, [prompt], wanted.own)

    await _ask(context, words)


async def lists(context: Context, request: wire.SweepRequest) -> None:
    """Of lists of words every word once, not every pair of them. Errors: bad_prompt."""
    if request.source.words is None:
        return

    def words() -> _Asked | None:
        model, method, params = fitting(context, request.model, request.explainer, request.params)
        lists = request.source.words
        if lists is None or not method.foresees:
            return None
        studies.fitting(model, method, request.source)
        prompts = [{"text": text, "params": {**params, **named}} for text, named in studies.prompted(method, lists)]
        return _Asked(request.model, method, prompts)

    await _ask(context, words)


def _foreseeing(context: Context) -> dict[str, type[Explainer]]:
    """Methods that can tell; looked at first, so that other requests cost nothing more."""
    return {name: method for name, method in registry(context.explainers).items() if method.foresees}


async def _ask(context: Context, words: Callable[[], _Asked | None]) -> None:
    try:
        asked = await asyncio.to_thread(words)
        if asked is None:
            return
        known = context.models.find(asked.model)
        work = Work(
            job="", attempt=0, kind="foresee", model={k: known[k] for k in ("id", "digest", "source", "size")}, input="",
            explainer=asked.method.name, version=asked.method.version, params={}, target=None, seed=0, numerics=NUMERICS,
            edits=tuple(asked.edits), questions=tuple(asked.prompts),
        )  # fmt: skip
        await asyncio.wait_for(context.engine.edit(work), WAIT)
    except TimeoutError:
        return
    except FanlightError as e:
        if e.code in REFUSED:
            raise
        # Whatever else is wrong is said by what asks for the job, or by the job itself.


def _text(context: Context, visitor: Visitor, ident: str) -> str:
    """The words of a prompt; of a picture none. Errors: unknown_input."""
    row = context.db.read(lambda c: inputs.find(c, visitor.workspace, ident))
    return str(inputs.to_wire(context, row).text or "")
