"""From a prompt and what a text-to-image model said about its picture to an artifact `words`, and the picture drawn again after a change."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fanlight.artifact import Artifact
from fanlight.errors import InvalidField
from fanlight.explainers import base, rewording

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.text_to_image import Painter
    from fanlight_models.diffusion import Plan, Prompt, Readings, Word

MOST = 6
"""Words that are measured with all their pairs."""
FILLERS = frozenset(
    "a an the and or of in on at to by for from with as is are was it its this that into over under near".split()
)
NEUTRAL = "the"
STORED = 16_000_000
"""Numbers of `terms` that an artifact holds at most; above it neighbouring log-SNRs share a row."""
Arrays = dict[str, np.ndarray[Any, np.dtype[Any]]]


@dataclass(frozen=True)
class About:
    """What an artifact says beside its numbers. pair: which two of the plan's words are shown. drawn: how the picture was drawn, None where it
    was given; fitted: what was done to it then, in words."""

    prompt: Prompt
    pair: tuple[int, int]
    drawn: Mapping[str, Any] | None
    fitted: str
    attends: bool


def chosen(model: Painter, prompt: Prompt, asked: str, all_pairs: bool) -> tuple[list[Word], tuple[int, int]]:
    """The words that are measured, in order, and which two of them are shown. Errors: BadPrompt.

    Args: asked: two words of the prompt, separated by a comma, or nothing; all_pairs: other content words too."""
    from fanlight_models.diffusion import BadPrompt

    seen = len(prompt.text) - len(model.lost(prompt.text))
    content = [w for w in prompt.words if w.text.casefold() not in FILLERS and w.end <= seen]
    wanted = [part.strip() for part in asked.split(",") if part.strip()]
    if wanted and len(wanted) != 2:
        raise BadPrompt(f"Two words are compared, separated by a comma; “{asked}” names {len(wanted)}.")
    pair = []
    for text in wanted:
        name, _, which = text.partition("#")
        if which and not which.isdecimal():
            raise BadPrompt(f"“{text}” does not say which “{name}” in whole numbers, as {name}#2 does.")
        pair.append(prompt.find(name, int(which) if which else None))
    if not wanted:
        if len(content) < 2:
            raise BadPrompt(f"Two words are compared; “{prompt.text}” has {len(content)} that could be. Name two.")
        pair = content[:2]
    if pair[0] == pair[1]:
        raise BadPrompt(f"“{pair[0].text}” is named twice; name two different words.")
    # Words of the pair may be several in a row: what lies inside of them is not measured on its own.
    others = [w for w in content if all_pairs and all(w.end <= p.start or w.start >= p.end for p in pair)]
    words = sorted([*pair, *others[: MOST - 2]])
    return words, (words.index(pair[0]), words.index(pair[1]))


def neutral(model: Painter) -> str | None:
    """The word of the noise floor, where the model knows it."""
    from fanlight_models.diffusion import BadPrompt, Conditioning

    try:
        model.encode([Conditioning(NEUTRAL)])
    except BadPrompt:
        return None
    return NEUTRAL


def fitted(model: Painter, image: np.ndarray[Any, Any]) -> str:
    """What is done to a given picture before the model sees it, as a sentence; empty where nothing is."""
    height, width = image.shape[:2]
    rows, columns = model.size
    if (height, width) == (rows, columns):
        return ""
    x0, y0, x1, y1 = model.view(width, height)
    cut = (round(x1 - x0), round(y1 - y0))
    part = "" if cut == (width, height) else f"its middle {cut[0]} x {cut[1]} was "
    return f"Of the picture of {width} x {height} pixels {part or 'all was '}brought to the {columns} x {rows} that the model sees."


def sketch(model: Painter, latent: Tensor, asked: Plan, about: About) -> Artifact:
    """While the picture is drawn: what it is expected to be, and nothing about words yet."""
    grid = model.shape[1:]
    arrays = {
        "terms": np.zeros((0, 1, *grid), np.float32),
        "signed": np.zeros((0, 1)),
        "floor": np.zeros(grid, np.float32),
    }
    return _made(model, latent, asked, about, {**arrays, "alpha": np.zeros(1), "weight": np.ones(1)}, {"nodes": 0})


def common(readings: Readings, asked: Plan) -> Tensor:
    """The nodes, as whole pairs, that are done for all conditionings."""
    import torch

    done = torch.stack([readings.done[c.key] for c in asked.conditionings]).all(0)
    return torch.nonzero(done.view(-1, 2).all(1).repeat_interleave(2)).flatten()


def error(readings: Readings, asked: Plan, pair: tuple[int, int]) -> float:
    """The largest standard error of the three signed values of a pair as an artifact would state it now, in nats."""
    quad = asked.pairs[min(pair), max(pair)]
    rest = dict.fromkeys(asked.conditionings, 0.0)  # with them only nodes count that are done for all
    return max(
        readings.combination({**rest, quad.base: 1.0, fuller: -1.0}).total_error for fuller in (quad.a, quad.b, quad.ab)
    )


def artifact(model: Painter, x: Tensor, asked: Plan, readings: Readings, about: About) -> Artifact:
    """What is known so far, as it is stored: every contrast from the pairs of log-SNRs that are done for all conditionings."""
    import torch

    nodes = common(readings, asked)
    alphas = readings.alphas[nodes]
    share = readings.law.weight(alphas) / 2 * readings.shares(nodes).double()
    index: dict[Any, int] = {}
    terms: list[Tensor] = []
    signed: list[Tensor] = []

    def contrast(less: Any, more: Any) -> int:
        """Its number."""
        key = (less.key, more.key)
        if key not in index:
            index[key] = len(terms)
            one, other = (readings.predictions[k][nodes] for k in key)
            squares = ((one - other) ** 2).sum(2).mean(1).double() * share[:, None, None]  # (n, h, w)
            energy = (readings.energies[key[0]][nodes] - readings.energies[key[1]][nodes]).double().sum((1, 2)) * share
            terms.append(squares.view(-1, 2, *squares.shape[1:]).mean(1).float())
            signed.append(energy.view(-1, 2).mean(1))
        return index[key]

    singles = [contrast(*single) for single in asked.singles]
    pairs = [[*ij, *(contrast(q.base, c) for c in (q.a, q.b, q.ab))] for ij, q in sorted(asked.pairs.items())]
    floor = terms[contrast(*asked.floor)].mean(0).numpy() if asked.floor else np.zeros(x.shape[1:], np.float32)
    every, told = torch.stack(terms), torch.stack(signed)
    middle, weight = alphas.view(-1, 2).mean(1), 2 * share.view(-1, 2).mean(1)
    rows = max(2, STORED // (len(every) * every[0, 0].numel()))
    if every.shape[1] > rows:
        every, told = shared(every, rows), shared(told, rows)
        middle, weight = shared(middle[None], rows, scaled=False)[0], shared(weight[None], rows)[0]
    attention = np.zeros((0, *x.shape[1:]), np.float32)
    whole = base_of(about.prompt)
    if about.attends and whole.key in readings.attention:
        looks = [readings.attention_map(whole, model.tokens(whole, w.span)) for w in asked.words]
        attention = torch.stack(looks).float().numpy()
    arrays = {"terms": every.numpy(), "signed": told.numpy(), "alpha": middle.numpy(), "weight": weight.numpy()}
    said = {
        "singles": singles,
        "pairs": pairs,
        "nodes": len(nodes),
        "evaluations": len(asked.conditionings) * len(nodes) * readings.sampling.noises,
    }
    return _made(model, x, asked, about, {**arrays, "floor": floor, "attention": attention}, said)


def base_of(prompt: Prompt) -> Any:
    """The whole prompt as a conditioning."""
    from fanlight_models.diffusion import Conditioning

    return Conditioning(prompt.text)


def shared(values: Tensor, rows: int, scaled: bool = True) -> Tensor:
    """(M, P, ...) -> (M, rows, ...) from runs of neighbours: sums in equal measure, so that the mean over rows stays what it was; or means."""
    import torch

    runs = values.tensor_split(rows, 1)
    weight = rows / values.shape[1]
    return torch.stack([run.sum(1) * weight if scaled else run.mean(1) for run in runs], 1)


def _made(
    model: Painter, x: Tensor, asked: Plan, about: About, arrays: Arrays, said: Mapping[str, Any]
) -> Artifact:  # fmt: skip
    changed, difference = nothing()
    grid = model.shape[1:]
    return Artifact(
        "words",
        "words",
        {
            "attention": np.zeros((0, *grid), np.float32),
            **arrays,
            "picture": model.picture(x),
            "changed": changed,
            "difference": difference,
        },
        {
            "unit": "nat",
            "target": base.DRAWN.json(),
            "prompt": about.prompt.text,
            "cut": model.lost(about.prompt.text),
            "fitted": about.fitted,
            "tokens": [[w.start, w.end, w.text] for w in about.prompt.words],
            "words": [[w.start, w.end, w.text] for w in asked.words],
            "singles": [],
            "pairs": [],
            "pair": list(about.pair),
            "found_pair": list(about.pair),
            "rule": "min",
            "chances": None,
            "probabilities": None,
            "source": "",
            "band": None,
            "context": asked.context,
            "removal": asked.mode,
            "evaluations": 0,
            "drawn": None if about.drawn is None else dict(about.drawn),
            "floored": asked.floor is not None,
            "redrawn": None,
            "redrawn_as": "",
            "redrawn_words": [],
            "edits": [],
            **({"caveat": model.caveat} if model.caveat else {}),
            **said,
        },
    )


def nothing() -> tuple[Any, Any]:
    """No second picture, and no difference."""
    return np.zeros((0, 0, 3), np.uint8), np.zeros((0, 0), np.float32)


def edited(stored: Artifact, edits: list[dict[str, Any]]) -> tuple[Artifact, dict[str, Any] | None]:
    """The artifact with everything said in its metadata, and the redrawing that it still lacks."""
    arrays, meta = dict(stored.arrays), dict(stored.meta)
    values = {k: v for e in edits for k, v in e.items()}
    pair = values.get("set_words", meta["found_pair"])
    meta |= {
        "edits": edits,
        "pair": pair,
        **rewording.shown(values.get("set_rule", "min"), pair),
        "band": values.get("set_band"),
    }
    wanted = rewording.redrawn(edits)
    lacking = wanted if wanted != meta["redrawn"] else None
    if wanted is None or lacking is not None:
        arrays["changed"], arrays["difference"] = nothing()
        meta |= {"redrawn": None, "redrawn_as": "", "redrawn_words": []}
    return Artifact(stored.name, stored.kind, arrays, meta), lacking


def redraw(
    model: Painter, shown: Artifact, edit: Mapping[str, Any]
) -> Generator[base.Step, None, Artifact]:  # fmt: skip
    """The picture drawn again from the same noise, after one of `rewording.REDRAWN`: `changed` (H, W, 3) uint8, and `difference` (h, w): how far its
    pixels moved, mean over channels, 0 to 2, and over each place of the maps. Errors: bad_prompt."""
    import torch

    from fanlight_models.diffusion import BadPrompt, Prompt, generate

    meta = shown.meta
    tokens = rewording.touched(edit)
    try:
        asked = _asked(Prompt(meta["prompt"]), edit, meta["removal"])
        for step in generate.draw(model, [asked], generate.Drawing(**meta["drawn"])):
            yield base.Step(step.step / step.steps, "drawing the changed picture")
    except BadPrompt as e:
        raise InvalidField(str(e), code="bad_prompt", given=dict(edit)) from e
    after = model.picture(step.latents[0].float().cpu())
    before, now = (
        torch.from_numpy(p.astype(np.float32)).permute(2, 0, 1) / 127.5 for p in (shown.arrays["picture"], after)
    )
    moved = generate.to_grid(generate.difference(before, now), (model.shape[1], model.shape[2]))
    arrays = {**shown.arrays, "changed": after, "difference": moved.numpy()}
    told = {
        "redrawn": dict(edit),
        "redrawn_as": rewording.said(edit, meta["tokens"]),
        "redrawn_words": [n for n, w in enumerate(meta["words"]) if any(_within(w, meta["tokens"][t]) for t in tokens)],
    }
    return Artifact(shown.name, shown.kind, arrays, {**meta, **told})


def sensible(model: Painter, prompt: Prompt, edit: Mapping[str, Any], removal: str) -> None:
    """Errors: bad_prompt where the changed prompt cannot be drawn."""
    from fanlight_models.diffusion import BadPrompt, generate

    try:
        asked = _asked(prompt, edit, removal)
        model.encode([asked.whole, asked.less] if isinstance(asked, generate.Weighed) else [asked])
    except BadPrompt as e:
        raise InvalidField(str(e), code="bad_prompt", given=dict(edit)) from e


def _asked(prompt: Prompt, edit: Mapping[str, Any], removal: str) -> Any:
    """What is drawn instead of the prompt. Errors: BadPrompt."""
    from fanlight_models.diffusion import generate

    ((kind, value),) = edit.items()
    if kind == "reorder_words":
        return generate.reordered(prompt, value)
    words = [prompt.words[n] for n in rewording.touched(edit)]
    if kind == "drop_word":
        return generate.dropped(prompt, words[0], removal)
    if kind == "replace_word":
        return generate.replaced(prompt, words[0], value[1])
    if kind == "exchange_words":
        return generate.exchanged(prompt, *words)
    return generate.weighed(prompt, words[0], value[1], removal)


def _within(word: list[Any], token: list[Any]) -> bool:
    return bool(word[0] <= token[0] and token[1] <= word[1])
