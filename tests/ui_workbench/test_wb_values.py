"""Predictions that are values, on the pages."""

from __future__ import annotations

from wb_support import flat

from fanlight import wire
from fanlight_ui import cards, table
from fanlight_ui.views import prediction

AGE = wire.Prediction(index=0, name="age", probability=None, logit=31.462, unit="years")


def test_a_value_has_its_unit_and_no_bar() -> None:
    said = flat(prediction.bars([AGE], explained=0, before=[AGE.model_copy(update={"logit": 30.0})]))
    assert "31.5 years" in said and "was 30.0 years" in said and "%" not in said
    assert '"level"' not in said and '"before"' not in said


def test_cards_and_the_table_say_the_value() -> None:
    record = wire.Explanation.model_construct(target={"class": 0}, prediction=[AGE])
    assert cards.probability(record) == "31.5 years"
    assert table.output(AGE) == "31.5 years"
