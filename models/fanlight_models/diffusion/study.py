"""Lists of words against each other: occupations and attributes, say. A picture is drawn for every pair and seed, the pair is measured on it, and
what the two words say redundantly is compared over the whole table.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields

import torch
from torch import Tensor

from fanlight_models.diffusion import generate
from fanlight_models.diffusion.atoms import Probabilities, decompose, surprisals
from fanlight_models.diffusion.channel import Sampling
from fanlight_models.diffusion.measure import CHUNK, finished
from fanlight_models.diffusion.plan import plan
from fanlight_models.diffusion.protocol import Denoiser
from fanlight_models.diffusion.words import BadPrompt, Conditioning, Prompt, Word

MOST = 10_000  # pictures
SURE = 1.96  # standard errors of a 95 % interval


@dataclass(frozen=True)
class Row:
    """One picture. Atoms are sums of maps, nats; first_total, second_total, both_total and interaction (both less the sum of the two: below 0 where
    they repeat each other) are signed totals, the last with its standard error."""

    first: str
    second: str
    seed: int
    redundant: float
    unique_first: float
    unique_second: float
    synergy: float
    first_total: float
    second_total: float
    both_total: float
    interaction: float
    interaction_error: float


@dataclass(frozen=True, eq=False)
class Table:
    """Of one column of rows, firsts x seconds: mean over seeds, half the width of its 95 % interval (NaN for one seed), and the mean brought to 0..1
    over the whole table, as the published tables are [SECONDARY]."""

    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    mean: Tensor
    interval: Tensor
    normalised: Tensor


def prompt_of(template: str, first: str, second: str) -> tuple[Prompt, Word, Word]:
    """A prompt with its two words. Errors: BadPrompt where the template does not hold {a} and {b} once each."""
    if template.count("{a}") != 1 or template.count("{b}") != 1:
        raise BadPrompt(f"A template holds {{a}} and {{b}} once each; “{template}” does not.")
    text, at = "", {}
    for part in re.split(r"(\{a\}|\{b\})", template):
        word = {"{a}": first, "{b}": second}.get(part)
        if word is not None:
            at[part] = Word(len(text), len(text) + len(word), word)
        text += part if word is None else word
    return Prompt(text), at["{a}"], at["{b}"]


def study(
    model: Denoiser,
    firsts: Sequence[str],
    seconds: Sequence[str],
    template: str = "a {a} {b}",
    *,
    seeds: Sequence[int] = (0,),
    drawing: generate.Drawing | None = None,
    sampling: Sampling | None = None,
    context: bool = True,
    rule: str = "min",
    probabilities: Probabilities = "uniform",
    chunk: int = CHUNK,
) -> Iterator[Row]:
    """One row per pair and seed as soon as it is known. The same seed gives the same noise for all pairs, so that pairs differ by words.

    Errors: ValueError for empty lists or more than 10,000 pictures; BadPrompt."""
    count = len(firsts) * len(seconds) * len(seeds)
    if not 1 <= count <= MOST:
        raise ValueError(f"A study has 1 to {MOST} pictures, not {count}: that is firsts times seconds times seeds.")
    how, asked = drawing or generate.Drawing(), sampling or Sampling()
    for first in firsts:
        for second in seconds:
            prompt, one, other = prompt_of(template, first, second)
            question = plan(prompt, [one, other], context=context)
            question.check(model)
            swapped = other < one  # a plan has its words in their order
            h = surprisals([w.text for w in question.words], probabilities)
            for seed in seeds:
                drawn = generate.Drawing(seed, how.steps, how.guidance, how.span)
                x = generate.finished(model, [Conditioning(prompt.text)], drawn)[0].cpu()
                readings = finished(model, x, question.conditionings, asked, chunk=chunk)
                found = decompose(readings, question.pairs[0, 1], rule=rule, surprisal=(h[0], h[1]))
                u, totals = [float(found.localised.unique_a), float(found.localised.unique_b)], list(found.signed[:2])
                if swapped:
                    u.reverse()
                    totals.reverse()
                yield Row(
                    first, second, seed, float(found.localised.redundant), u[0], u[1], float(found.localised.synergy),
                    totals[0].total, totals[1].total, found.signed[2].total, found.interaction.total, found.interaction.total_error,
                )  # fmt: skip


def table(rows: Sequence[Row], column: str = "interaction") -> Table:
    """A column over all pairs. For the question which words go together take `interaction`: localised redundancy is *larger* for a pair that the
    model finds unlikely, because an unlikely word moves the prediction more wherever it is added.

    Errors: ValueError for an unknown column or without rows."""
    numbers = [f.name for f in fields(Row) if f.name not in ("first", "second", "seed")]
    if column not in numbers:
        raise ValueError(f"“{column}” is no column. Columns: {', '.join(numbers)}.")
    if not rows:
        raise ValueError("A table needs at least one row.")
    firsts, seconds = (tuple(dict.fromkeys(getattr(r, name) for r in rows)) for name in ("first", "second"))
    mean = torch.full((len(firsts), len(seconds)), torch.nan, dtype=torch.float64)
    interval = mean.clone()
    for i, first in enumerate(firsts):
        for j, second in enumerate(seconds):
            values = torch.tensor([getattr(r, column) for r in rows if (r.first, r.second) == (first, second)])
            if len(values):
                mean[i, j] = values.double().mean()
            if len(values) > 1:
                interval[i, j] = SURE * float(values.double().std()) / math.sqrt(len(values))
    known = mean[~mean.isnan()]
    span = known.max() - known.min()
    return Table(firsts, seconds, mean, interval, (mean - known.min()) / span if span > 0 else torch.zeros_like(mean))


def as_csv(rows: Sequence[Row]) -> str:
    """All rows, with a head."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(r) for r in rows)
    return out.getvalue()
