"""Studies: a sweep over two lists of words. Its items are prompts, made when their turn comes; `studies_table` has its result.

Everything else is as of other sweeps: stored explanations, a window of jobs, pause, resume, cancel, no loss in a crash.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fanlight import wire
from fanlight.adapters.base import takes
from fanlight.errors import InvalidField
from fanlight.explainers.base import Explainer
from fanlight.explainers.registry import find as find_explainer
from fanlight.service import prompts
from fanlight.service.context import Context, Visitor

MOST = 10_000
"""Pictures of one study."""


@dataclass(frozen=True)
class Asked:
    """What an item asks for: the input, parameters and seed of its explanation."""

    input: str
    params: Mapping[str, Any]
    seed: int


def fitting(model: Mapping[str, Any], explainer: type[Explainer], source: wire.SweepSource) -> None:
    """Errors: not_available where lists of words, or a data set, do not go with the model and the method; too_many_items; invalid_words."""
    lists = source.words
    if lists is None:
        if source.dataset is not None and takes(model["task"]) == "prompt":
            raise InvalidField(
                f"{model['name']} draws from words, so that it cannot be asked about a data set of pictures.",
                code="not_available",
                given=source.dataset,
                hint="Give lists of words: source.words.",
            )
        return
    if not explainer.pairs:
        raise InvalidField(
            f"{explainer.title} does not compare two words of a prompt, so it cannot go through lists of words.",
            code="not_available",
            given=explainer.name,
            hint="GET /api/v1/explainers lists methods that can as `pairs`.",
        )
    if lists.count > MOST:
        raise InvalidField(
            f"A study has at most {MOST:,} pictures; {len(lists.first)} times {len(lists.second)} words and {len(lists.seeds)} "
            f"{'seed' if len(lists.seeds) == 1 else 'seeds'} are {lists.count:,}.",
            code="too_many_items",
            given=lists.count,
            allowed=[1, MOST],
            hint="Shorten a list, or take fewer seeds.",
        )
    list(prompted(explainer, lists))


def prompted(explainer: type[Explainer], lists: wire.WordLists) -> Iterator[tuple[str, dict[str, Any]]]:
    """Prompts and parameters in which every word of both lists stands once or more. Errors: invalid_words."""
    for first in lists.first:
        yield explainer.pair(lists.template, first, lists.second[0])
    for second in lists.second[1:]:
        yield explainer.pair(lists.template, lists.first[0], second)


def items(lists: wire.WordLists) -> list[dict[str, Any]]:
    """As of `sweeps_source.items`."""
    names = (lists.at(n) for n in range(lists.count))
    return [{"name": f"{a}, {b}, seed {seed}", "label": None, "input": None} for a, b, seed in names]


def about(lists: wire.WordLists) -> str:
    """What was asked, in a sentence."""
    many = f"{len(lists.seeds)} seeds" if len(lists.seeds) > 1 else f"seed {lists.seeds[0]}"
    return (
        f"{lists.count:,} pictures of “{lists.template}”: {len(lists.first)} times {len(lists.second)} words, {many}."
    )


def asked(context: Context, visitor: Visitor, request: wire.SweepRequest, explainer: str, position: int) -> Asked:
    """The prompt of an item, registered, and the parameters that name its two words. Errors: those of `prompts.register`, invalid_words."""
    assert request.source.words is not None
    first, second, seed = request.source.words.at(position)
    method = find_explainer(explainer, context.explainers)
    text, named = method.pair(request.source.words.template, first, second)
    made = prompts.register(context, visitor, wire.Prompt(text=text))
    return Asked(made.id, {**request.params, **named}, seed)
