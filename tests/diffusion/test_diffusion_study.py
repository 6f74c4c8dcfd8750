"""Lists of words against each other, on a world where the answer is known."""

from __future__ import annotations

import csv
import io
import math

import pytest
import torch

from fanlight_models.diffusion import BadPrompt, Law, Sampling
from fanlight_models.diffusion.generate import Drawing
from fanlight_models.diffusion.study import Row, as_csv, prompt_of, study, table
from fanlight_models.worlds import scenes
from fanlight_models.worlds.scenes.bayes import Bayes

TEMPLATE = "a {b} {a} left of a red circle"


@pytest.mark.parametrize("template", ["a {a} is {b}, a {a}", "a {a}", "{b}", "nothing"])
def test_a_template_holds_both_words_once(template: str) -> None:
    with pytest.raises(BadPrompt, match="once each"):
        prompt_of(template, "x", "y")


@pytest.mark.parametrize("template", ["a {a} and {b}", "a {b} {a} b", "{b}{a}", "{a} {b}"])
@pytest.mark.parametrize(("first", "second"), [("nurse", "a"), ("a", "{a}"), ("teddy bear", "{b}")])
def test_words_are_where_the_prompt_has_them(template: str, first: str, second: str) -> None:
    prompt, one, other = prompt_of(template, first, second)
    assert prompt.text[slice(*one.span)] == first and prompt.text[slice(*other.span)] == second


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    model = Bayes(scenes.world("correlated"))
    how = {"drawing": Drawing(steps=20, guidance=1), "sampling": Sampling(100, 2, law=Law(-1, 2, -8, 7)), "chunk": 100}
    return list(study(model, ["cross", "circle"], ["blue", "green"], TEMPLATE, seeds=[0, 1, 2], **how))


def test_what_goes_together_in_the_world_is_redundant(rows: list[Row]) -> None:
    assert [(r.first, r.second, r.seed) for r in rows[:4]] == [
        ("cross", "blue", 0), ("cross", "blue", 1), ("cross", "blue", 2), ("cross", "green", 0),
    ]  # fmt: skip
    found = table(rows)
    assert found.firsts == ("cross", "circle") and found.seconds == ("blue", "green")
    assert found.normalised.max() == 1 and found.normalised.min() == 0 and (found.interval > 0).all()
    # Exact interaction: log of P(shape) P(colour) / P(both), for what a left object can be.
    share = {("cross", "blue"): 0.45, ("cross", "green"): 1 / 60, ("circle", "blue"): 0.125, ("circle", "green"): 0.125}
    for row in rows:
        colour = share["cross", row.second] + share["circle", row.second]
        exact = math.log(0.5 * colour / share[row.first, row.second])
        assert abs(row.interaction - exact) < 4 * row.interaction_error + 0.1
    assert found.mean[0, 0] < -0.3 and found.mean[0, 1] > 1
    # The min rule says the opposite: the pair that the world hardly knows looks more redundant.
    redundant = table(rows, "redundant").mean
    assert redundant[0, 1] > 2 * redundant[0, 0]


def test_rows_become_a_file(rows: list[Row]) -> None:
    read = list(csv.DictReader(io.StringIO(as_csv(rows))))
    assert len(read) == 12 and float(read[0]["redundant"]) == rows[0].redundant and read[5]["second"] == "green"


def test_studies_that_make_no_sense_are_refused(rows: list[Row]) -> None:
    model = Bayes(scenes.world())
    with pytest.raises(ValueError, match="1 to 10000 pictures, not 0"):
        next(study(model, [], ["red"]))
    with pytest.raises(ValueError, match="is no column. Columns: redundant"):
        table(rows, "seed")
    with pytest.raises(ValueError, match="at least one row"):
        table([])
    single = table(rows[:1])
    assert torch.isnan(single.interval).all() and single.normalised.item() == 0
