"""What a person changes of words and their maps, as edits: checked and brought into one form without torch and without the model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fanlight.errors import InvalidField

REDRAWN = {
    "drop_word": "n, from 0, of a word of the prompt: the picture is drawn again without it, from the same noise",
    "replace_word": "[n, text]: the picture is drawn again with another word there, from the same noise",
    "exchange_words": "[n, m]: the picture is drawn again with these two words in each other's place, from the same noise",
    "reorder_words": "[n, m, ...]: every word of the prompt once: the picture is drawn again with them in this order, from the same noise",
    "weigh_word": "[n, w]: the picture is drawn again with the word weighed by w, -10 to 10; 1 is as it was, 0 without it",
}
"""At most one of them: the last."""
EDITS = {
    "set_words": "[a, b]: numbers, from 0, of two of the measured words",
    "set_rule": '"min", "pointwise", ["pointwise", p, q] with the probabilities of both words, or ["pointwise", [p, ...], source] of all words',
    "set_band": "[lo, hi] of log-SNR: only what is said there counts; null: all",
    **REDRAWN,
}
RULES = ("min", "pointwise")
LONGEST = 100  # letters of a word that replaces another
WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
"""As `fanlight_models.diffusion.words` finds words; a test compares the two."""


def canonical(edits: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The last of each kind, in the order of `EDITS`. Args: about: metadata of an artifact `words`. Errors: invalid_edit."""
    last: dict[str, Any] = {}
    for n, edit in enumerate(edits, 1):
        ((kind, value),) = edit.items()
        try:
            made = _value(kind, value, about)
        except ValueError as e:
            raise InvalidField(f"Edit {n}: {e}", code="invalid_edit", given=dict(edit), allowed=EDITS[kind]) from None
        if kind in REDRAWN:
            last = {k: v for k, v in last.items() if k not in REDRAWN}
        last[kind] = made
    return [{kind: last[kind]} for kind in EDITS if kind in last]


def redrawn(edits: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The one that asks for another picture."""
    return next((dict(e) for e in edits if next(iter(e)) in REDRAWN), None)


def touched(edit: Mapping[str, Any]) -> list[int]:
    """Numbers of the words of the prompt that a redrawing changes; of another order those that are no longer where they were."""
    ((kind, value),) = edit.items()
    if kind == "reorder_words":
        return [n for place, n in enumerate(value) if n != place]
    return [value] if kind == "drop_word" else list(value) if kind == "exchange_words" else [value[0]]


def said(edit: Mapping[str, Any], tokens: Sequence[Sequence[Any]]) -> str:
    """A redrawing in words. Args: tokens: start, end and text of every word of the prompt."""
    ((kind, value),) = edit.items()
    if kind == "reorder_words":
        return f"in the order “{' '.join(tokens[n][2] for n in value)}”"
    words = [f"“{tokens[n][2]}”" for n in touched(edit)]
    if kind == "drop_word":
        return f"without {words[0]}"
    if kind == "replace_word":
        return f"“{value[1]}” for {words[0]}"
    return f"{words[0]} and {words[1]} exchanged" if kind == "exchange_words" else f"{words[0]} weighed by {value[1]:g}"


def of_pair(template: str, first: str, second: str) -> tuple[str, str]:
    """A prompt of two words, and how the parameter `words` names them there: of a repeated word which. Errors: invalid_words."""
    if template.count("{a}") != 1 or template.count("{b}") != 1:
        raise _unfit(f"A template holds {{a}} and {{b}} once each; “{template}” does not.", template)
    given = {"{a}": " ".join(first.split()), "{b}": " ".join(second.split())}
    for word in given.values():
        if not WORD.search(word) or "," in word or "#" in word:
            raise _unfit(f"“{word}” is no word to compare: letters or digits, neither a comma nor #.", word)
    text, at = "", {}
    for part in re.split(r"(\{a\}|\{b\})", template):
        at[part] = len(text)
        text += given.get(part, part)
    tokens = [(m.start(), m.group().casefold()) for m in WORD.finditer(text)]
    named = []
    for part, word in given.items():
        wanted = [m.group().casefold() for m in WORD.finditer(word)]
        starts = [
            tokens[i][0]
            for i in range(len(tokens) - len(wanted) + 1)
            if [t for _, t in tokens[i : i + len(wanted)]] == wanted
        ]
        begin = next((s for s in starts if at[part] <= s < at[part] + len(word)), None)
        if begin is None:
            raise _unfit(f"In “{text}”, “{word}” is only a part of another word; put a space beside {part}.", template)
        named.append(f"{word}#{starts.index(begin) + 1}" if len(starts) > 1 else word)
    return " ".join(text.split()), ", ".join(named)


def _unfit(message: str, given: str) -> InvalidField:
    return InvalidField(message, code="invalid_words", given=given, hint="For example: a photo of a {a} {b}")


def _value(kind: str, value: Any, about: Mapping[str, Any]) -> Any:
    """In its one form. Errors: ValueError with a sentence."""
    if kind == "set_words":
        pair = [_number(v, len(about["words"])) for v in _several(value, 2)]
        if sorted(pair) not in [p[:2] for p in about["pairs"]]:
            raise ValueError("these two words were not measured together.")
        return pair
    if kind == "set_rule":
        return _rule(value, len(about["words"]))
    if kind == "set_band":
        if value is None:
            return None
        lo, hi = _several(value, 2)
        if not (_finite(lo) and _finite(hi) and lo < hi):
            raise ValueError("a band of log-SNR is two numbers, the lower first.")
        return [float(lo), float(hi)]
    if about["drawn"] is None:
        raise ValueError("this picture was given, not drawn, so it cannot be drawn again with other words.")
    words = len(about["tokens"])
    if kind == "drop_word":
        return _number(value, words)
    if kind == "reorder_words":
        return _order(value, words)
    first, second = _several(value, 2)
    if kind == "exchange_words":
        pair = sorted((_number(first, words), _number(second, words)))
        if pair[0] == pair[1]:
            raise ValueError("two different words change places.")
        return pair
    if kind == "weigh_word":
        if not (_finite(second) and -10 <= second <= 10):
            raise ValueError("a word is weighed by -10 to 10.")
        return [_number(first, words), float(second)]
    text = " ".join(second.split()) if isinstance(second, str) else ""
    if not 0 < len(text) <= LONGEST:
        raise ValueError(f"a word is replaced by one to {LONGEST} letters.")
    return [_number(first, words), text]


def _order(value: Any, count: int) -> list[int]:
    order = [_number(n, count) for n in value] if isinstance(value, (list, tuple)) else []
    if sorted(order) != list(range(count)):
        raise ValueError(f"an order names each of the {count} words once, from 0.")
    if order == sorted(order):
        raise ValueError("this is the order that the words have already.")
    return order


def _rule(value: Any, words: int) -> Any:
    """`min`, `pointwise` (equal probabilities), [pointwise, p, q] of the shown pair, or [pointwise, [p, ...], source] of all measured words."""
    if isinstance(value, str) and value in RULES:
        return value
    several = list(value) if isinstance(value, (list, tuple)) else []
    if len(several) in (2, 3) and isinstance(several[1], (list, tuple)):
        source = " ".join(several[2].split()) if len(several) == 3 and isinstance(several[2], str) else ""
        if len(source) > LONGEST or (len(several) == 3 and not source):
            raise ValueError(f"where probabilities come from is said in one to {LONGEST} letters.")
        if len(several[1]) != words:
            raise ValueError(f"{words} words were measured, so that as many probabilities are given, in their order.")
        return ["pointwise", _chances(several[0], several[1]), *([source] if source else [])]
    named, *chances = _several(value, 3)
    return [named, *_chances(named, chances)]


def _chances(named: Any, given: Sequence[Any]) -> list[float]:
    if named != "pointwise" or not all(_finite(p) and 0 < p <= 1 for p in given):
        raise ValueError("probabilities of words lie above 0 and up to 1, and belong to the rule pointwise.")
    return [float(p) for p in given]


def shown(rule: Any, pair: Sequence[int]) -> dict[str, Any]:
    """A canonical rule as metadata: its name, the probabilities of the shown pair (None: equal), those of all words, and where they come from."""
    if isinstance(rule, str):
        return {"rule": rule, "chances": None, "probabilities": None, "source": ""}
    if isinstance(rule[1], list):
        every = rule[1]
        source = rule[2] if len(rule) == 3 else ""
        return {"rule": rule[0], "chances": [every[n] for n in pair], "probabilities": every, "source": source}
    return {"rule": rule[0], "chances": rule[1:], "probabilities": None, "source": ""}


def _number(given: Any, count: int) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < count:
        raise ValueError(f"a word is a number from 0 to {count - 1}.")
    return given


def _several(value: Any, count: int) -> list[Any]:
    if not isinstance(value, (list, tuple)) or len(value) != count:
        raise ValueError(f"a list of {count} is expected.")
    return list(value)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
