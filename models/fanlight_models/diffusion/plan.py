"""Which conditionings answer a question, no more of them than needed.

P is the prompt. In context, words are told apart by taking them out of P; without it, by what they say alone.

| question | conditionings |
|---|---|
| n words, in context | P, and P without each: n + 1 |
| n words, alone | nothing, and each: n + 1 |
| all pairs, either kind | 1 + n + n (n - 1) / 2; one pair: 4; of eight words: 37 |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from fanlight_models.diffusion.protocol import Denoiser
from fanlight_models.diffusion.words import BadPrompt, Conditioning, Prompt, Word, alone, apart, tidy, without

MOST_WORDS = 12


@dataclass(frozen=True)
class Quad:
    """The four conditionings of a pair: what is known anyway, that with one word, with the other, and with both."""

    base: Conditioning
    a: Conditioning
    b: Conditioning
    ab: Conditioning


@dataclass(frozen=True)
class Plan:
    """singles: of each word, what is known without and with it. pairs: (i, j) with i < j. floor: a contrast that should say nothing."""

    prompt: Prompt
    words: tuple[Word, ...]
    context: bool
    mode: str
    singles: tuple[tuple[Conditioning, Conditioning], ...]
    pairs: Mapping[tuple[int, int], Quad] = field(default_factory=dict)
    floor: tuple[Conditioning, Conditioning] | None = None

    @property
    def conditionings(self) -> tuple[Conditioning, ...]:
        """All that must be asked, each once, in lexicographic order."""
        every = {c for single in self.singles for c in single} | set(self.floor or ())
        every |= {c for quad in self.pairs.values() for c in (quad.base, quad.a, quad.b, quad.ab)}
        return tuple(sorted(every))

    def check(self, model: Denoiser) -> None:
        """Errors: BadPrompt where the text encoder never sees a chosen word."""
        lost = model.lost(self.prompt.text)
        seen = len(self.prompt.text) - len(lost)
        for word in self.words:
            if word.end > seen:
                raise BadPrompt(
                    f"The prompt is too long for this model, which never sees its end “{lost.strip()}”; “{word.text}” is there. Shorten the prompt."
                )


def plan(
    prompt: Prompt,
    words: Sequence[Word],
    *,
    context: bool,
    pairs: bool = True,
    mode: str = "delete",
    swaps: Mapping[Word, str] | None = None,
    template: str = "{a} {b}",
    neutral: str | None = None,
) -> Plan:
    """What to ask about 1 to 12 words of a prompt.

    Args:
        context: given the rest of the prompt (CMI, CPID), or each word alone (MI, PID).
        pairs: also every pair; without it single words only.
        mode, swaps: how words are removed (`words.without`), in context.
        template: of two words alone.
        neutral: a word that should say nothing, for the noise floor: P against P with it, or nothing against it.
    Errors: BadPrompt."""
    if not 1 <= len(words) <= MOST_WORDS:
        raise BadPrompt(f"One to {MOST_WORDS} words can be asked about together, not {len(words)}.")
    apart(words)
    chosen = tuple(sorted(words))
    n = len(chosen)

    def said(kept: set[int], given: set[int]) -> Conditioning:
        """`given`: the words in question; `kept`: those of them that stay."""
        if context:
            return without(prompt, [chosen[i] for i in sorted(given - kept)], mode, swaps)
        return alone([chosen[i] for i in sorted(kept)], template)

    whole = without(prompt, (), mode) if context else alone(())
    quads = {}
    if pairs:
        for i, j in combinations(range(n), 2):
            quads[i, j] = Quad(*(said(kept, {i, j}) for kept in (set(), {i}, {j}, {i, j})))
    return Plan(
        prompt,
        chosen,
        context,
        mode,
        tuple((said(set(), {i}), said({i}, {i})) for i in range(n)),
        quads,
        None if neutral is None else (whole, Conditioning(tidy(f"{whole.text} {neutral}"), whole.padded)),
    )
