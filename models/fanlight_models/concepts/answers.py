"""What a person says about concepts: yes, no, unknown, or how probable. Checked here, so that models need not.

- yes, no: the concept is there, or not. It enters the head as exactly 1 or 0.
- a probability q: the person believes in it that much. Jeffrey's rule: the outcome is q times that of yes plus 1 - q times that of no, several such
  answers independent of each other. The concept's own probability becomes exactly q; q of 1 and 0 are yes and no.
- unknown: the person cannot tell. The model's own belief stays, nothing is conditioned on, and the concept is not asked about again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Answer = float | int | bool | str
WORDS = {"yes": 1.0, "no": 0.0}
UNKNOWN = "unknown"
ENUMERATED = 6
"""Soft answers of one row whose 2^n combinations are all computed; of more, `DRAWN` combinations are drawn."""
DRAWN = 64


class BadAnswer(ValueError):
    """An answer that cannot be meant; the message is a sentence."""


@dataclass(frozen=True, eq=False)
class Answers:
    """Of B pictures. value (B, K): probability that was stated, read only where known (B, K). asked (B, K): known ones and unknown ones."""

    value: Tensor
    known: Tensor
    asked: Tensor

    @classmethod
    def none(cls, pictures: int, concepts: int) -> Answers:
        """Nothing was said."""
        no = torch.zeros(pictures, concepts, dtype=torch.bool)
        return cls(torch.zeros(pictures, concepts, dtype=torch.float64), no, no.clone())

    @classmethod
    def of(cls, rows: Sequence[Mapping[int, Answer]], concepts: int) -> Answers:
        """One mapping a picture, from the number of a concept to yes, no, unknown, True, False or a probability. Errors: BadAnswer."""
        made = cls.none(len(rows), concepts)
        for row, given in enumerate(rows):
            for concept, answer in given.items():
                if not 0 <= concept < concepts:
                    raise BadAnswer(f"There is no concept {concept}; they are 0 to {concepts - 1}.")
                made.asked[row, concept] = True
                if answer != UNKNOWN:
                    made.value[row, concept], made.known[row, concept] = probability(answer), True
        return made

    @classmethod
    def truth(cls, concepts: Tensor, known: Tensor) -> Answers:
        """The true concepts (B, K), said where known (B, K)."""
        return cls(concepts.double(), known, known)

    def with_(self, row_index: Tensor, value: Tensor) -> Answers:
        """Also the concept row_index (B,) of each picture with value (B,)."""
        rows = torch.arange(len(self.value))
        made = Answers(self.value.clone(), self.known.clone(), self.asked.clone())
        made.value[rows, row_index] = value.double()
        made.known[rows, row_index] = True
        made.asked[rows, row_index] = True
        return made


def probability(answer: Answer) -> float:
    """Errors: BadAnswer for a word that is none, or a number outside 0 to 1."""
    if isinstance(answer, str):
        if answer in WORDS:
            return WORDS[answer]
        raise BadAnswer(f"“{answer}” is no answer. Answers: yes, no, unknown, or a probability from 0 to 1.")
    number = float(answer)
    if not 0 <= number <= 1:  # also refuses NaN
        raise BadAnswer(f"A probability lies between 0 and 1, not {answer}.")
    return number


def named(given: Mapping[str, Answer], concepts: Sequence[str]) -> dict[int, Answer]:
    """Names of concepts -> their numbers. Errors: BadAnswer names a concept that does not exist."""
    place = {name: i for i, name in enumerate(concepts)}
    strange = [name for name in given if name not in place]
    if strange:
        near = [c for c in concepts if strange[0].lower() in c.lower() or c.lower() in strange[0].lower()][:3]
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise BadAnswer(f"No concept is called “{strange[0]}”.{hint}")
    for answer in given.values():
        if answer != UNKNOWN:
            probability(answer)
    return {place[name]: answer for name, answer in given.items()}


def contradictions(
    answers: Mapping[int, Answer], groups: Sequence[Sequence[int]], concepts: Sequence[str]
) -> list[str]:
    """Sentences for groups of exclusive concepts whose answers cannot all be true: two of them yes, or probabilities that sum to more than 1, or
    no for every one of them. The model computes them all the same; it knows no exclusive groups."""
    said = {c: probability(a) for c, a in answers.items() if a != UNKNOWN}
    out = []
    for group in groups:
        inside = [c for c in group if c in said]
        total = sum(said[c] for c in inside)
        yes = [concepts[c] for c in inside if said[c] == 1]
        if len(yes) > 1:
            out.append(f"{' and '.join(yes)} exclude each other.")
        elif total > 1 + 1e-9:
            out.append(
                f"The probabilities of {', '.join(concepts[c] for c in inside)} sum to {total:.2f}; they exclude each other."
            )
        elif len(inside) == len(group) > 1 and total == 0:
            out.append(f"One of {', '.join(concepts[c] for c in group)} is true; all were answered with no.")
    return out


@dataclass(frozen=True, eq=False)
class Branches:
    """Combinations of plain yes and no that answers stand for: R rows, of picture `row` (R,), with weight (R,) that sums to 1 in each picture.
    value (R, K) in {0, 1}, known (R, K). drawn: of some picture combinations were drawn instead of counted."""

    row: Tensor
    weight: Tensor
    value: Tensor
    known: Tensor
    drawn: bool

    def of(self, values: Tensor) -> Tensor:
        """(pictures, ...) -> (R, ...): of each row's picture. Not to be written to: of one picture nothing is copied."""
        return values.expand(len(self.row), *values.shape[1:]) if len(values) == 1 else values[self.row]

    def mean(self, values: Tensor, pictures: int) -> Tensor:
        """(R, ...) -> (pictures, ...): weighted sums of the rows of each picture."""
        if len(values) == pictures:
            return values
        shape = (-1, *[1] * (values.dim() - 1))
        out = values.new_zeros(pictures, *values.shape[1:])
        return out.index_add_(0, self.row, values * self.weight.reshape(shape).to(values.dtype))


def branches(answers: Answers, seed: int = 0) -> Branches:
    """All combinations of yes and no that a picture's answers stand for."""
    soft = answers.known & (answers.value > 0) & (answers.value < 1)
    if not bool(soft.any()):
        rows = torch.arange(len(answers.value))
        return Branches(rows, torch.ones(len(rows), dtype=torch.float64), answers.value.round(), answers.known, False)
    row, weight, value, drawn = [], [], [], False
    for picture in range(len(answers.value)):
        places = soft[picture].nonzero()[:, 0]
        stated = answers.value[picture, places]
        if len(places) <= ENUMERATED:
            said = torch.tensor(list(itertools.product((1.0, 0.0), repeat=len(places))), dtype=torch.float64)
            likely = torch.where(said > 0, stated, 1 - stated).prod(1)
        else:
            drawn = True
            chance = torch.Generator().manual_seed(seed)
            said = (torch.rand(DRAWN, len(places), generator=chance, dtype=torch.float64) < stated).double()
            likely = torch.full((DRAWN,), 1 / DRAWN, dtype=torch.float64)
        values = answers.value[picture].round().expand(len(said), -1).clone()
        values[:, places] = said
        row.append(torch.full((len(said),), picture))
        weight.append(likely)
        value.append(values)
    every = torch.cat(row)
    return Branches(every, torch.cat(weight), torch.cat(value), answers.known[every], drawn)
