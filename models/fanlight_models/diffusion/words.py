"""Prompts, the words of them, and prompts with words taken out. Words go before the text is encoded, never after: a text encoder has
written every word into the embeddings of the words behind it and of the end of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MODES = ("delete", "underscore", "pad", "swap")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")


class BadPrompt(ValueError):
    """A prompt or a word that cannot be asked about; the message is a sentence."""


@dataclass(frozen=True, order=True)
class Conditioning:
    """What a model is given instead of a picture's prompt: a text, and which of its characters count as padding (mode `pad`)."""

    text: str
    padded: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> str:
        """Names it: equal keys, equal conditionings."""
        return self.text + "".join(f"\x00{a}-{b}" for a, b in self.padded)

    def marked(self) -> str:
        """The text with a “_” for what is padding."""
        text = self.text
        for start, end in sorted(self.padded, reverse=True):
            text = text[:start] + "_" + text[end:]
        return text


@dataclass(frozen=True, order=True)
class Word:
    """A word, or several that belong together, in a prompt: characters start..end, and which of the equal ones it is, from 1."""

    start: int
    end: int
    text: str
    occurrence: int = 1

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


@dataclass(frozen=True)
class Prompt:
    """A prompt as it was written."""

    text: str
    words: tuple[Word, ...] = field(init=False)

    def __post_init__(self) -> None:
        seen: dict[str, int] = {}
        found = []
        for match in _WORD.finditer(self.text):
            name = match.group().casefold()
            seen[name] = seen.get(name, 0) + 1
            found.append(Word(match.start(), match.end(), match.group(), seen[name]))
        object.__setattr__(self, "words", tuple(found))

    def find(self, text: str, occurrence: int | None = None) -> Word:
        """The word, or the words in a row, that `text` says, however it is capitalised.

        Args: occurrence: which of several equal ones, from 1. Errors: BadPrompt where it is not there, or is there more than once."""
        wanted = [m.group().casefold() for m in _WORD.finditer(text)]
        if not wanted:
            raise BadPrompt(f"“{text}” holds no word to look for.")
        if not self.words:
            raise BadPrompt(f"The prompt is empty, so that “{text}” is not in it; write a prompt first.")
        names, n = [w.text.casefold() for w in self.words], len(wanted)
        at = [i for i in range(len(names) - n + 1) if names[i : i + n] == wanted]
        if not at:
            raise BadPrompt(f"“{text}” is not in the prompt. Its words: {', '.join(w.text for w in self.words)}.")
        if occurrence is None and len(at) > 1:
            raise BadPrompt(f"“{text}” is {len(at)} times in the prompt; say which, from 1 to {len(at)}.")
        number = 1 if occurrence is None else occurrence
        if not 1 <= number <= len(at):
            raise BadPrompt(f"“{text}” is {len(at)} times in the prompt; there is no occurrence {number}.")
        first, last = self.words[at[number - 1]], self.words[at[number - 1] + n - 1]
        return Word(first.start, last.end, self.text[first.start : last.end], number)


def apart(words: Sequence[Word]) -> None:
    """Errors: BadPrompt where two words share characters."""
    ordered = sorted(words)
    for one, other in zip(ordered, ordered[1:], strict=False):
        if other.start < one.end:
            raise BadPrompt(
                f"“{one.text}” and “{other.text}” are the same place of the prompt; choose two that are apart."
            )


def without(
    prompt: Prompt, words: Sequence[Word], mode: str = "delete", swaps: Mapping[Word, str] | None = None
) -> Conditioning:
    """The prompt without some of its words.

    Args:
        mode: `delete` takes them out and closes the gap; `underscore` puts “_” in their place; `pad` keeps the text and makes their
            tokens padding, so that no other word changes its place; `swap` puts another word there.
        swaps: the other words, for mode `swap`.
    Errors: BadPrompt."""
    if mode not in MODES:
        raise BadPrompt(f"“{mode}” is no way to remove a word. Ways: {', '.join(MODES)}.")
    apart(words)
    if not words:
        return Conditioning(prompt.text)  # as it was written: places of words stay what they are
    if mode == "pad":
        return Conditioning(prompt.text, tuple(sorted(w.span for w in words)))
    text = prompt.text
    for word in sorted(words, reverse=True):
        if mode == "swap" and not (swaps or {}).get(word):
            raise BadPrompt(f"“{word.text}” shall be swapped, but it is not said for which word.")
        put = {"delete": "", "underscore": "_"}.get(mode) if mode != "swap" else (swaps or {})[word]
        text = text[: word.start] + str(put) + text[word.end :]
    return Conditioning(tidy(text) if mode == "delete" else text)


def alone(words: Sequence[Word], template: str = "{a} {b}") -> Conditioning:
    """A prompt of nothing but these words, in their order: none, one, or two by a template with {a} and {b}. Errors: BadPrompt."""
    apart(words)
    texts = [w.text for w in sorted(words)]
    if len(texts) < 2:
        return Conditioning("".join(texts))
    if "{a}" not in template or "{b}" not in template:
        raise BadPrompt(f"A template of two words holds {{a}} and {{b}}; “{template}” does not.")
    return Conditioning(template.replace("{a}", texts[0]).replace("{b}", texts[1]))


def tidy(text: str) -> str:
    """One space between words, none before a comma or at the ends."""
    return re.sub(r"\s+([,.;:!?])", r"\1", re.sub(r"\s+", " ", text)).strip(" ,;:") if text.strip() else ""
