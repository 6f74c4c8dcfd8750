"""The benchmark of concepts: its model is a model, its changes are answers, its figures are declared."""

from __future__ import annotations

from pathlib import Path

import torch

from fanlight.adapters import bundle as bundles
from fanlight.bench import concepts
from fanlight.explainers.answers import canonical
from fanlight_models.concepts import Answers


def test_the_large_model_is_a_bottleneck_whose_concepts_hang_together(tmp_path: Path) -> None:
    model = bundles.load(concepts.write(tmp_path / "large"))
    assert model.task == "concept-bottleneck" and len(model.concepts) == 112 and len(model.classes) == 200
    reading = model.read(torch.zeros(1, 3, *model.size))
    now, after = (model.model.intervene(reading, Answers.of([said], 112)) for said in ({}, {3: "yes"}))
    moved = (after.concepts - now.concepts)[0].abs()
    assert now.samples == 100 and int((moved > 0.01).sum()) > 20


def test_every_change_is_one_to_seven_answers_on_different_concepts() -> None:
    about = {"concepts": [f"concept {k}" for k in range(concepts.CONCEPTS)], "exclusive": []}
    lists = [concepts._change(n) for n in range(50)]
    assert {len(edits) for edits in lists} == set(range(1, 8))
    assert all(len(canonical(edits, about)) == len(edits) for edits in lists)
    assert all(a != b for a, b in zip(lists, lists[1:], strict=False))


def test_every_figure_is_declared_with_its_target() -> None:
    targets = {name: f.at_most for name, f in concepts.FIGURES.items() if f.at_most is not None}
    assert targets == {"answer_p95": 20, "question_p95": 100, "crowd_p95": 250, "paint_p95": 100}
