"""DiffusionPID: what two words of a prompt say about each place of a picture, redundantly, each alone, and only together."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from fanlight.artifact import Artifact
from fanlight.errors import ComputeFailed, InvalidField
from fanlight.explainers import base, contrasts, rewording

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.text_to_image import Painter
    from fanlight_models.diffusion import Plan, Prompt, Readings

FEWEST = 16
"""Log-SNRs before anything is shown or an error believed: from fewer it may be small by chance."""


def _written(value: Any) -> Any:
    """A choice between numbers may come as a number, as from the shell."""
    return str(value) if type(value) is int else value


class DiffusionPID(base.Explainer):
    """Dewan et al., DiffusionPID: Interpreting Diffusion via Partial Information Decomposition (NeurIPS 2024), as reconstructed in docs/diffusion.md:
    not verified against the paper. Estimators of Kong et al., Interpretable Diffusion via Information Decomposition (ICLR 2024)."""

    name = "diffusion-pid"
    title = "DiffusionPID"
    family = "diffusion"
    summary = "What two words of a prompt say about each place of the picture: redundantly, each alone, only together."
    reading = (
        "Maps are in nats per latent pixel, all on one scale; their sums are beside them. Redundant is what either word says, unique what one says "
        "and the other does not, synergy what only both together say. "
        "The signed value of the picture tells whether the word helps or is contradicted; the maps cannot tell that."
    )
    misleads = (
        "The maps are of the model, not of the world: a network that predicts badly shows large values everywhere. "
        "Only contrasts whose fuller side is the whole prompt are calibrated; "
        "single words of a pair are measured on a picture that the other word made too. "
        "With guidance above 1 the picture is no sample of the prompt, and its values are inflated."
    )
    paper = base.Paper(
        "Dewan, Zawar, Saxena, Chang, Luo & Bisk: DiffusionPID: Interpreting Diffusion via Partial Information Decomposition. NeurIPS 2024",
        "https://arxiv.org/abs/2406.05191",
        "@inproceedings{dewan2024diffusionpid, title={DiffusionPID: Interpreting Diffusion via Partial Information Decomposition}, "
        "author={Dewan, Shaurya and Zawar, Rushikesh and Saxena, Prakanshul and Chang, Yingshan and Luo, Andrew and Bisk, Yonatan}, "
        "booktitle={NeurIPS}, year={2024}}",
    )
    accepts = "text-to-image"
    returns = ("words",)
    version = "1"
    edits = rewording.EDITS
    asks = frozenset(rewording.REDRAWN)
    pairs = True
    foresees = True

    class Params(base.Params):
        words: str = Field(
            "",
            max_length=200,
            description="Two words of the prompt, separated by a comma; of a repeated word say which: cross#2. Empty: the first two content words.",
        )
        context: bool = Field(
            True,
            description="Given the rest of the prompt (CPID): the words are taken out of it. Off: each word alone against nothing (PID).",
        )
        nodes: Annotated[Literal["32", "100", "256"], BeforeValidator(_written)] = Field(
            "100", description="Log-SNRs that the model is asked at: fast, usual, fine."
        )
        removal: Literal["delete", "underscore", "pad"] = Field(
            "delete",
            description="How a word is taken out: its place closed, “_” put there, or its tokens made padding.",
        )
        all_pairs: bool = Field(True, description="Measure every pair of up to six content words, not only this one.")
        stop_at: float = Field(
            0.0,
            ge=0,
            le=10,
            description="Stop when the signed values are known to this standard error, in nats; 0: never.",
        )
        steps: int = Field(50, ge=4, le=200, description="Steps in which the picture is drawn.")
        guidance: float = Field(
            0.0,
            ge=0,
            le=20,
            description="How strongly the picture is drawn towards the prompt; 0: as is usual for the model. At 1, the model itself, "
            "signed values are calibrated; above it they are inflated.",
        )

    @classmethod
    def cost(cls, params: Params, size: tuple[int, int]) -> int:  # noqa: ARG003 (latents have the size they have)
        return params.steps * (1 if params.guidance == 1 else 2) + int(params.nodes) * (17 if params.all_pairs else 5)

    @classmethod
    def pair(cls, template: str, first: str, second: str) -> tuple[str, dict[str, Any]]:
        text, words = rewording.of_pair(template, first, second)
        return text, {"words": words, "all_pairs": False}

    @classmethod
    def canonical(cls, edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
        return rewording.canonical(edits, about)

    def run(self, model: Painter, items: Sequence[base.Drawing], params: Params, ctx: base.Context) -> base.Run:  # type: ignore[override] # of a model that draws
        from fanlight_models.diffusion import NotFinite

        found = []
        for n, item in enumerate(items):
            run = _explained(model, item, params, ctx)
            try:
                found.append([(yield from _within(run, n / len(items), (n + 1) / len(items)))])
            except NotFinite as e:
                raise ComputeFailed(str(e), code="not_finite", hint="Check the model's weights.") from e
        return found

    def foresee(self, model: Painter, text: str, params: Params, edits: Sequence[Mapping[str, Any]] = ()) -> None:
        prompt, _, _ = _asked(model, text, params)
        redrawing = rewording.redrawn(edits)
        if redrawing is not None:
            contrasts.sensible(model, prompt, redrawing, params.removal)

    def edit(
        self, model: Painter, artifacts: Sequence[Artifact], edits: Sequence[Mapping[str, Any]], params: Params
    ) -> base.Edited:
        del model, params
        shown, lacking = contrasts.edited(artifacts[0], [dict(e) for e in edits])
        if lacking is not None:
            raise InvalidField(
                "To draw the picture again the model must be asked.",
                code="not_editable",
                given=lacking,
                hint="Save the change: POST /api/v1/interventions.",
            )
        return base.Edited([shown], [])

    def ask(
        self, model: Painter, artifacts: Sequence[Artifact], edits: Sequence[Mapping[str, Any]], params: Params
    ) -> Generator[base.Step, None, base.Edited]:
        del params
        shown, lacking = contrasts.edited(artifacts[0], [dict(e) for e in edits])
        if lacking is not None:
            shown = yield from contrasts.redraw(model, shown, lacking)
        return base.Edited([shown], [])


def _explained(
    model: Painter, item: base.Drawing, params: DiffusionPID.Params, ctx: base.Context
) -> Generator[base.Step, None, Artifact]:
    prompt, asked, pair = _asked(model, item.text, params)
    guidance = params.guidance or model.guidance
    how = {"seed": item.seed, "steps": params.steps, "guidance": guidance} if item.image is None else None
    fitted = "" if item.image is None else contrasts.fitted(model, item.image)
    attends = model.attends and contrasts.base_of(prompt) in asked.conditionings
    about = contrasts.About(prompt, pair, how, fitted, attends)
    begun = 0.0
    if item.image is None:
        begun = 0.2
        x = yield from _within(_drawn(model, asked, about, ctx), 0.0, begun)
    else:
        x = model.latent(item.image)
    readings = yield from _within(_measured(model, x, asked, about, item, params, ctx), begun, 1.0)
    return contrasts.artifact(model, x, asked, readings, about)


def _asked(model: Painter, text: str, params: DiffusionPID.Params) -> tuple[Prompt, Plan, tuple[int, int]]:
    """The prompt, what is to be asked about it, and the two words that are shown. Errors: bad_prompt."""
    from fanlight_models.diffusion import BadPrompt, Prompt, plan

    prompt = Prompt(text)
    try:
        words, pair = contrasts.chosen(model, prompt, params.words, params.all_pairs)
        asked = plan(prompt, words, context=params.context, mode=params.removal, neutral=contrasts.neutral(model))
        asked.check(model)
        model.encode(asked.conditionings)
    except BadPrompt as e:
        hint = "Of a repeated word say which, as cross#2." if "say which" in str(e) else None
        raise InvalidField(str(e), code="bad_prompt", given=text, hint=hint) from e
    return prompt, asked, pair


def _drawn(
    model: Painter, asked: Plan, about: contrasts.About, ctx: base.Context
) -> Generator[base.Step, None, Tensor]:
    """The latent of the picture, drawn or remembered."""
    from fanlight_models.diffusion import generate

    assert about.drawn is not None
    key = ("drawn", model.digest, about.prompt.text, *about.drawn.values())
    known: Tensor | None = ctx.recall(key)
    if known is not None:
        return known
    for step in generate.draw(model, [contrasts.base_of(about.prompt)], generate.Drawing(**about.drawn)):
        so_far = step.latents[0].float().cpu()
        yield base.Step(
            step.step / step.steps,
            "drawing the picture",
            functools.partial(contrasts.sketch, model, so_far, asked, about),
        )
    ctx.remember(key, so_far)
    return so_far


def _measured(
    model: Painter, x: Tensor, asked: Plan, about: contrasts.About, item: base.Drawing, params: DiffusionPID.Params,
    ctx: base.Context,
) -> Generator[base.Step, None, Readings]:  # fmt: skip
    """What the model says about the picture. Answers about the same picture are remembered, so that other words of it, or the same in another
    contrast, ask only for what is missing. With a target error nothing is: how much is known would hang on what was asked before."""
    from fanlight_models.diffusion import Sampling, measure, start

    whole = contrasts.base_of(about.prompt) if about.attends else None
    drawn = tuple((about.drawn or {}).values())
    key = ("readings", model.digest, item.key, item.seed, drawn, params.nodes, ctx.chunk, whole)
    kept: Readings | None = ctx.recall(key) if params.stop_at == 0 else None
    readings = start(model, Sampling(nodes=int(params.nodes), seed=item.seed)) if kept is None else _copied(kept)
    known, error = 0, math.inf
    for told in measure(model, x, asked.conditionings, readings, attend=whole, chunk=ctx.chunk):
        count = len(contrasts.common(readings, asked))
        if count > known and count >= FEWEST:
            error = contrasts.error(readings, asked, about.pair)
        known, so_far = count, f"{told.done:,} of {told.of:,} evaluations"
        yield base.Step(
            told.done / max(told.of, 1),
            so_far if error == math.inf else f"{so_far}; known to ± {error:.2g} nat",
            functools.partial(contrasts.artifact, model, x, asked, readings, about) if count >= FEWEST else None,
        )
        if params.stop_at and error <= params.stop_at:
            break
    if params.stop_at == 0:
        ctx.remember(key, readings)
    return readings


def _copied(kept: Readings) -> Readings:
    """The same answers, to which others can be added without a second run that uses them seeing any of it."""
    return dataclasses.replace(
        kept,
        energies=dict(kept.energies),
        predictions=dict(kept.predictions),
        done=dict(kept.done),
        attention=dict(kept.attention),
        attended=dict(kept.attended),
    )


def _within(run: Generator[base.Step, None, Any], lo: float, hi: float) -> Generator[base.Step, None, Any]:
    """The steps of a part of the work."""
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            return end.value
        yield dataclasses.replace(step, done=lo + (hi - lo) * step.done)
