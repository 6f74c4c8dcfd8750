"""What a person says: words, probabilities, unknown; contradictions; and what a soft answer means."""

from __future__ import annotations

import itertools

import pytest
import torch

from fanlight_models.concepts.answers import Answers, BadAnswer, branches, contradictions, named, probability
from fanlight_models.concepts.encoders import features
from fanlight_models.concepts.protocol import Reading
from fanlight_models.concepts.scbm import SCBM
from fanlight_models.concepts.strategies import Strategy

NAMES = ("crown::black", "crown::white", "bill::hooked", "bill::flat", "crest")


def model(concepts: int = 5) -> tuple[SCBM, Reading]:
    torch.manual_seed(0)
    made = SCBM(features(3), concepts, 3).double().eval()
    a = torch.randn(1, concepts, concepts, dtype=torch.float64)
    return made, Reading(
        torch.randn(1, concepts, dtype=torch.float64), torch.linalg.cholesky(a @ a.mT + 0.2 * torch.eye(concepts))
    )


def test_words_and_numbers() -> None:
    given = Answers.of([{0: "yes", 1: "no", 2: 0.3, 3: "unknown", 4: True}], 5)
    assert given.value[0, [0, 1, 2, 4]].tolist() == [1, 0, 0.3, 1]
    assert given.known[0].tolist() == [True, True, True, False, True]
    assert given.asked.all()


@pytest.mark.parametrize("answer", [-0.1, 1.5, float("nan"), "perhaps"])
def test_what_is_no_answer_is_refused(answer: float | str) -> None:
    with pytest.raises(BadAnswer, match="lies between 0 and 1|is no answer"):
        probability(answer)


def test_a_concept_that_does_not_exist_is_named() -> None:
    with pytest.raises(BadAnswer, match="“crown”.*Did you mean crown::black, crown::white"):
        named({"crown": "yes"}, NAMES)
    with pytest.raises(BadAnswer, match="no concept 7"):
        Answers.of([{7: 1}], 5)
    assert named({"crest": "no", "bill::flat": 0.25}, NAMES) == {4: "no", 3: 0.25}


def test_contradictions_are_said_in_sentences() -> None:
    groups = [[0, 1], [2, 3]]
    assert contradictions({0: "yes", 1: "yes"}, groups, NAMES) == ["crown::black and crown::white exclude each other."]
    assert "sum to 1.30" in contradictions({0: 0.9, 1: 0.4}, groups, NAMES)[0]
    assert "all were answered with no" in contradictions({2: "no", 3: "no"}, groups, NAMES)[0]
    assert contradictions({0: "yes", 1: "no", 2: "unknown", 4: "yes"}, groups, NAMES) == []


@pytest.mark.parametrize("strategy", ["percentile", "confidence-region", "hard"])
def test_a_soft_answer_is_the_mixture_of_yes_and_no(strategy: str) -> None:
    made, reading = model()
    chosen = Strategy(strategy)

    def ask(answers: dict[int, float | str]) -> torch.Tensor:
        found = made.intervene(reading, Answers.of([answers], 5), chosen)
        return torch.cat([found.concepts[0], found.classes[0]])

    mixed = 0.0
    for said in itertools.product((1, 0), repeat=2):
        weight = (0.7 if said[0] else 0.3) * (0.2 if said[1] else 0.8)
        mixed = mixed + weight * ask({1: said[0], 3: said[1], 4: "no"})
    found = ask({1: 0.7, 3: 0.2, 4: "no"})
    torch.testing.assert_close(found, mixed, rtol=0, atol=1e-12)
    assert found[1].item() == pytest.approx(0.7) and found[3].item() == pytest.approx(0.2)
    torch.testing.assert_close(ask({1: 1.0}), ask({1: "yes"}), rtol=0, atol=0)


def test_unknown_changes_nothing_but_that_it_is_not_asked_again() -> None:
    made, reading = model()
    given = Answers.of([{2: "unknown", 0: "yes"}], 5)
    with_, without = (made.intervene(reading, a) for a in (given, Answers.of([{0: "yes"}], 5)))
    assert torch.equal(with_.classes, without.classes) and torch.equal(with_.concepts, without.concepts)
    assert given.asked[0, 2] and not given.known[0, 2]


def test_many_soft_answers_are_drawn_and_said_to_be() -> None:
    answers = Answers.of([dict.fromkeys(range(7), 0.5), {0: 0.5}], 8)
    every = branches(answers)
    assert every.drawn and (every.row == 0).sum() == 64 and (every.row == 1).sum() == 2
    torch.testing.assert_close(every.mean(every.weight[:, None] * 0 + 1, 2)[:, 0], torch.ones(2, dtype=torch.float64))
    assert not branches(Answers.of([dict.fromkeys(range(6), 0.5)], 8)).drawn
