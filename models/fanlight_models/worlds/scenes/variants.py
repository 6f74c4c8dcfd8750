"""Which words go with which pictures: a world is a finite table of prompts with what they show and how likely each is.

| world | prompt | what is planted |
|---|---|---|
| plain | a red circle left of a blue cross | four independent words |
| synonym | a red circle ball left of ... | two names of one shape: redundant |
| homonym | a red bat at night left of a blue circle | what “bat” is depends on its partner: synergy |
| correlated | a blue cross left of ... | 90 % of the left crosses are blue: the shape says something about the colour |
| xor | a red dry warm thing left of ... | the shape is the parity of two words that say nothing alone |
| all | any of them, each as likely | |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

COLOURS = ("red", "green", "blue", "yellow")
SHAPES = ("circle", "cross")
IGNORED = ("the", "and")
"""Words that say nothing in any world: for the noise floor and between two words."""
NAMES = {"circle": "ball", "cross": "plus"}
LIKELY = 0.9  # of a left cross to be blue in the correlated world


@dataclass(frozen=True)
class Row:
    """One kind of picture: its prompt, the class of the left and of the right object (4 colours x 2 shapes: 2 colour + shape), probability."""

    prompt: tuple[str, ...]
    left: int
    right: int
    weight: float

    @property
    def text(self) -> str:
        return " ".join(self.prompt)


@dataclass(frozen=True)
class World:
    name: str
    rows: tuple[Row, ...]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """All words of all prompts, in alphabetical order."""
        return tuple(sorted({w for row in self.rows for w in row.prompt}))

    def ways(self, words: tuple[str, ...]) -> tuple[int, ...]:
        """In how many ways a text arises from each row's prompt by leaving words out; “_” stands for any one word.

        With every word equally likely to be left out, P(row | text) is in proportion to weight times ways: this is what makes a shortened prompt
        mean something exact."""
        return tuple(_ways(words, row.prompt) for row in self.rows)


def _ways(words: tuple[str, ...], prompt: tuple[str, ...]) -> int:
    """Number of ways `words` is a subsequence of `prompt`."""
    count = [1] + [0] * len(words)
    for word in prompt:
        for i in range(len(words), 0, -1):
            if words[i - 1] in (word, "_"):
                count[i] += count[i - 1]
    return count[-1]


def _class(colour: str, shape: str) -> int:
    return 2 * COLOURS.index(colour) + SHAPES.index(shape)


def _prompt(left: str, right: str) -> tuple[str, ...]:
    return tuple(f"a {left} left of a {right}".split())


def _plain() -> list[Row]:
    return [
        Row(_prompt(f"{c} {s}", f"{d} {t}"), _class(c, s), _class(d, t), 1 / 64)
        for c, s, d, t in product(COLOURS, SHAPES, COLOURS, SHAPES)
    ]


def _synonym() -> list[Row]:
    return [
        Row(_prompt(f"{c} {s} {NAMES[s]}", f"{d} {t}"), _class(c, s), _class(d, t), 1 / 64)
        for c, s, d, t in product(COLOURS, SHAPES, COLOURS, SHAPES)
    ]


def _homonym() -> list[Row]:
    """An owl is a circle, a racket a cross; a bat is the circle at night and the cross in a game. Neither word shows in anything but that shape."""
    rows = []
    nouns = product(COLOURS, ("owl", "racket", "bat"), ("night", "game"), COLOURS, SHAPES)
    for c, noun, scene, d, t in nouns:
        round_ = noun == "owl" or (noun == "bat" and scene == "night")
        shape = "circle" if round_ else "cross"
        rows.append(Row(_prompt(f"{c} {noun} at {scene}", f"{d} {t}"), _class(c, shape), _class(d, t), 1 / 192))
    return rows


def _correlated() -> list[Row]:
    rows = []
    for c, s, d, t in product(COLOURS, SHAPES, COLOURS, SHAPES):
        chance = 1 / 4 if s == "circle" else LIKELY if c == "blue" else (1 - LIKELY) / 3
        rows.append(Row(_prompt(f"{c} {s}", f"{d} {t}"), _class(c, s), _class(d, t), chance / 16))
    return rows


def _xor() -> list[Row]:
    rows = []
    for c, a, b, d, t in product(COLOURS, ("dry", "wet"), ("warm", "cold"), COLOURS, SHAPES):
        shape = SHAPES[(a == "wet") ^ (b == "cold")]
        rows.append(Row(_prompt(f"{c} {a} {b} thing", f"{d} {t}"), _class(c, shape), _class(d, t), 1 / 128))
    return rows


_MAKE: dict[str, Callable[[], list[Row]]] = {
    "plain": _plain, "synonym": _synonym, "homonym": _homonym, "correlated": _correlated, "xor": _xor,
}  # fmt: skip
WORLDS = (*_MAKE, "all")


@lru_cache
def world(name: str = "plain") -> World:
    """Errors: ValueError for a name that is none of `WORLDS`."""
    if name == "all":
        every = [row for make in _MAKE.values() for row in make()]
        return World(name, tuple(Row(r.prompt, r.left, r.right, r.weight / len(_MAKE)) for r in every))
    if name not in _MAKE:
        raise ValueError(f"There is no world “{name}”. Worlds: {', '.join(WORLDS)}.")
    return World(name, tuple(_MAKE[name]()))
