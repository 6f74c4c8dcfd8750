"""The page of prototypes: its skeleton, and what it says of the figures of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fanlight.drawing.prototypes import PARTS
from fanlight_ui import editing, prototypes as parts
from fanlight_ui.views import PAGES

ASSETS = Path(parts.__file__).parent / "assets"
QUALITY: dict[str, Any] = {
    "prototypes": 120,
    "movement_mean": 0.06,
    "movement_most": 0.31,
    "duplicates": 2,
    "dead": 0,
    "weak_self": 1,
    "largest_weight_elsewhere": 0,
    "consistency": 0.41,
    "stability": 0.83,
    "inside_sensitivity": 0.24,
    "activation_change": 61.7,
}


def test_figures_are_said_with_what_they_mean() -> None:
    said = " ".join(parts.measured(QUALITY))
    assert "41 % of its prototypes meet one and the same part" in said and "83 % keep to" in said
    assert "76 % of what would change a similarity lies outside of its boxes" in said and "took 62 % of it away" in said
    assert "moved by 0.06 on average" in said and "far" not in said
    assert "2 the same parts as another, 1 weaker" in said and "dead" not in said


def test_a_prototype_that_moved_far_and_an_attack_that_takes_all_are_said() -> None:
    said = " ".join(parts.measured({**QUALITY, "movement_mean": 0.68, "activation_change": 145.0}))
    assert "That is far" in said and "took all of it away" in said


def test_without_figures_it_says_so() -> None:
    assert parts.measured({}) == ["Nothing was measured of the prototypes of this model."]
    plain = {k: v for k, v in QUALITY.items() if k not in ("consistency", "stability", "inside_sensitivity")}
    assert len(parts.measured(plain)) == 2


def test_edits_come_from_the_address_where_they_can_be_read() -> None:
    def wanted(text: str | None, stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return editing.wanted(text, stored, parts.OWN)

    stored = [{"mute_prototype": 1}]
    assert wanted(None, stored) == stored
    assert wanted("[]", stored) == []
    assert wanted(json.dumps([{"gate_part": [0, 1]}]), stored) == [{"gate_part": [0, 1]}]
    for nonsense in ("", "{", "7", '[{"mask_region": [0, 0, 1, 1]}]', '[{"a": 1, "b": 2}]', "[" * 100_000):
        assert wanted(nonsense, stored) == stored


def test_a_record_keeps_what_is_not_about_prototypes() -> None:
    edits = [{"mask_region": [0, 0, 2, 2]}, {"mute_prototype": 3}, {"set_target": {"class": 1}}]
    assert editing.among(edits, parts.OWN) == [{"mute_prototype": 3}]


def test_the_kind_has_its_page_and_the_colours_of_parts_are_the_same_in_drawing_and_page() -> None:
    assert PAGES["prototypes"][0] == "prototypes"
    css = (ASSETS / "prototypes.css").read_text()
    for n, colour in enumerate(PARTS):
        assert f"--part-{n}: {colour.lower()};" in css


@pytest.mark.parametrize("colour", PARTS)
def test_white_figures_on_the_colours_of_parts_are_legible(colour: str) -> None:
    linear = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in linear)
    assert 1.05 / (0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05) >= 4.5
