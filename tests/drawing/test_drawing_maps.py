"""Maps: scales, pixels, tables, sentences."""

from __future__ import annotations

import numpy as np
import pytest
from drawing_samples import image_map, regions
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from fanlight.artifact import KINDS
from fanlight.drawing import RENDERERS, colour, places, renderer
from fanlight.drawing.number import digits, percent, shares, signed
from fanlight.errors import InvalidField

MAP = renderer("image-map")
REGIONS = renderer("region-scores")
THIRDS = np.arange(9).reshape(3, 3).repeat(4, axis=0).repeat(5, axis=1)  # (12, 15): the nine places


def test_every_artifact_kind_has_a_renderer():
    assert set(RENDERERS) == set(KINDS) and all(r.kind == k for k, r in RENDERERS.items())


# --- scale


def test_a_signed_scale_is_symmetric_and_an_unsigned_one_starts_at_zero():
    a = MAP.legend(image_map([[-3, 1], [0, 2]], signed=True))
    b = MAP.legend(image_map([[3, 1], [0, 2]], signed=False))
    assert (a.lo, a.hi, a.cmap, a.lo_label) == (-a.hi, a.hi, "diverging", "against") and a.hi_label.startswith("for")
    assert (b.lo, b.cmap, b.lo_label) == (0, "sequential", "") and 2.9 < b.hi <= 3


def test_one_extreme_pixel_does_not_rule_the_scale_but_is_named():
    value = np.full((100, 100), 0.25)
    value[0, 0] = 900.0
    legend = MAP.legend(image_map(value, signed=True))
    assert legend.hi == 0.25 and legend.hi_label == "for (largest 900)"


def test_a_map_of_which_hardly_a_pixel_is_set_still_has_a_scale():
    value = np.zeros((100, 100))
    value[3, 3] = -2.0
    assert MAP.legend(image_map(value, signed=True)).hi == 2.0
    assert MAP.legend(image_map(value * 0, signed=True)).hi == 1.0


def test_the_callers_ends_are_kept_and_stay_symmetric_where_signed():
    legend = MAP.legend(image_map([[-3, 1]], signed=True), lo=-1, hi=4)
    assert (legend.lo, legend.hi, legend.hi_label) == (-4, 4, "for")
    legend = MAP.legend(image_map([[3, 1]], signed=False), lo=1, hi=2, cmap="grey")
    assert (legend.lo, legend.hi, legend.cmap, legend.hi_label) == (1, 2, "grey", "more (largest 3.00)")


@pytest.mark.parametrize("ends", [{"lo": 2.0, "hi": 1.0}, {"hi": 0.0}, {"lo": float("nan")}, {"hi": float("inf")}])
def test_impossible_ends_are_refused(ends):
    with pytest.raises(InvalidField):
        MAP.image(image_map([[3, 1]], signed=False), **ends)


# --- pixels


def test_a_small_map_is_drawn_pixel_by_pixel():
    image = MAP.image(image_map([[-1, 0, 1], [1, 0, -1]], signed=True), hi=1)
    table = colour.table("diverging")
    assert np.array_equal(np.asarray(image), table[[[0, 127, 254], [254, 127, 0]]])


def test_enlarging_interpolates_values_so_that_only_colours_of_the_scale_appear():
    image = MAP.image(image_map([[-1, 1], [1, -1]], signed=True), hi=1, size=64)
    assert image.size == (64, 64)
    scale = {tuple(c) for c in colour.table("diverging").tolist()}
    assert {tuple(c) for c in np.asarray(image).reshape(-1, 3).tolist()} <= scale


def test_the_longer_side_has_the_size_asked_for():
    assert MAP.image(image_map(np.ones((2, 3)), signed=False), size=30).size == (30, 20)
    assert REGIONS.image(regions(THIRDS, np.arange(9)), size=30).size == (30, 24)


def test_regions_are_flat_and_keep_sharp_edges():
    image = np.asarray(REGIONS.image(regions([[0, 1]], [-1, 1]), size=64))
    table = colour.table("diverging")
    assert (image[:, :32] == table[0]).all() and (image[:, 32:] == table[254]).all()


# --- tables and sentences


def test_the_table_of_a_map_has_the_places_most_important_first():
    value = np.zeros((12, 15))
    value[4:8, 5:10] = 3.0
    value[:4, :5] = 1.0
    value[8:, 10:] = -2.0
    table = MAP.table(image_map(value, signed=True))
    assert table.columns == (
        "region",
        "share of evidence for (%)",
        "share of evidence against (%)",
        "share of all (%)",
        "mean (logit)",
    )
    assert table.rows[:3] == (
        ("middle", 75.0, 0.0, 50.0, 3.0),
        ("lower right", 0.0, 100.0, 33.3, -2.0),
        ("upper left", 25.0, 0.0, 16.7, 1.0),
    )
    unsigned = MAP.table(image_map(np.abs(value), signed=False))
    assert unsigned.columns == ("region", "share (%)", "mean (logit)") and unsigned.rows[0] == ("middle", 50.0, 3.0)


def test_places_and_their_names_agree():
    for i, name in enumerate(places.NAMES):
        y, x = np.argwhere(THIRDS == i).mean(axis=0)
        assert places.name((y + 0.5) / 12, (x + 0.5) / 15) == name
        assert (THIRDS[places.cells((12, 15))[i]] == i).all()


@given(arrays(np.float32, st.tuples(st.integers(1, 20), st.integers(1, 20)), elements=st.floats(-1e6, 1e6, width=32)))
@settings(max_examples=60, deadline=None)
def test_shares_add_up_to_one_hundred_for_any_map(value):
    table = MAP.table(image_map(value, signed=True))
    for column, part in ((1, np.maximum(value, 0)), (2, np.maximum(-value, 0)), (3, value)):
        total = round(sum(row[column] for row in table.rows), 6)
        assert total == (100 if part.any() else 0)
    assert MAP.sentence(image_map(value, signed=True)).endswith(".")


@pytest.mark.parametrize(
    ("cells", "sentence"),
    [
        ({4: 3, 0: 2, 8: 1}, "The middle carries 50 % of the evidence for koala."),
        ({4: 2, 0: 2, 8: 1, 2: 1}, "The middle and the upper left carry 67 % of the evidence for koala."),
        ({4: 3, 8: -1}, "The middle carries 100 % of the evidence for koala; 25 % of all evidence speaks against it, most of it in the lower right."),
        ({4: 3, 1: -1}, "The middle carries 100 % of the evidence for koala; 25 % of all evidence speaks against it, most of it at the top."),
        ({4: 19, 8: -1}, "The middle carries 100 % of the evidence for koala."),
        ({4: -1}, "Nothing speaks for koala. The middle carries 100 % of the evidence against it."),
        ({}, "The map is 0 everywhere: this method finds nothing that speaks for or against koala."),
        (dict.fromkeys(range(9), 1), "The evidence for koala is spread over the picture; no ninth of it carries more than 11 %."),
        (dict(enumerate([14, 13, 13, *[10] * 6])), "The evidence for koala is spread over the picture; no ninth of it carries more than 14 %."),
    ],
)  # fmt: skip
def test_the_sentence_says_what_a_person_would_say(cells, sentence):
    value = np.array([cells.get(i, 0) for i in range(9)], float)
    target = "koala, koala bear, Phascolarctos cinereus"
    said = MAP.sentence(image_map(value[THIRDS], signed=True), target=target)
    if len(cells) == 4:  # two places of equal weight come in reading order
        sentence = "The upper left and the middle carry 67 % of the evidence for koala."
    assert said == sentence
    assert REGIONS.sentence(regions(THIRDS, value), target=target) == said


def test_the_sentence_of_an_unsigned_map_claims_no_direction():
    value = (np.arange(9) == 5).astype(float)
    assert (
        MAP.sentence(image_map(value[THIRDS], signed=False), target="koala")
        == "The right carries 100 % of the importance for koala."
    )
    assert MAP.sentence(image_map(value[THIRDS], signed=False)) == "The right carries 100 % of the importance."


def test_a_difference_of_two_classes_is_named_by_both():
    assert places.short("tabby, tabby cat rather than lynx, catamount") == "tabby rather than lynx"


def test_the_evidence_of_a_region_does_not_grow_with_its_area():
    label = np.zeros((9, 9), int)
    label[0, 0] = 1  # one pixel
    artifact = regions(label, [0.0, 5.0])
    assert REGIONS.sentence(artifact) == "The upper left carries 100 % of the evidence."


def test_the_table_of_regions_names_place_value_and_class():
    table = REGIONS.table(regions(THIRDS, [0, 0, 0, 0, 2, 0, 0, 0, -6]), classes=["koala", "wombat"])
    assert table.columns == ("region", "place", "value (logit)", "share of all (%)", "speaks most for")
    assert table.rows[:2] == ((8, "lower right", -6.0, 75.0, "wombat"), (4, "middle", 2.0, 25.0, "koala"))
    assert round(sum(row[3] for row in table.rows), 6) == 100


# --- numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.0312, "0.0312"), (-12.36, "−12.4"), (1234.0, "1,230"), (3.14159e-7, "3.14e-7"), (0.9996, "1.00"), (float("inf"), "inf")],
)  # fmt: skip
def test_numbers_have_three_significant_digits(value, text):
    assert digits(value).replace("e−", "e-") == text


def test_signs_and_percent():
    assert (signed(0.5), signed(-0.5), signed(0.0)) == ("+0.500", "−0.500", "0")
    assert [percent(p) for p in (0, 0.004, 0.5, 0.996, 1)] == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %"]
    assert percent(0.952, 1) == "95.2 %"


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=30))
def test_rounded_shares_add_up(values):
    got = shares(values)
    assert round(sum(got), 6) == (100 if sum(values) > 0 else 0)
    if sum(values) > 0:
        assert all(abs(g - v / sum(values) * 100) <= 0.1 + 1e-9 for g, v in zip(got, values, strict=True))
