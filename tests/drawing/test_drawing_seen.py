"""What a share says of a region and of a word alone, against sums by hand; what cannot be read is refused."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from test_drawing_words import SIDE, stored

from fanlight.drawing.information import Read
from fanlight.drawing.seen import Seen, inside, marked, sentences, unpacked
from fanlight.errors import InvalidField

MIDDLE = "4x4.5.2.2.2.5"


def test_a_region_is_read_as_the_page_writes_it() -> None:
    wanted = np.zeros((4, 4), bool)
    wanted[1:3, 1:3] = True
    assert np.array_equal(unpacked(MIDDLE), wanted)
    assert unpacked("3x2.0.6").all() and unpacked("3x2.0.6").shape == (2, 3)
    assert not unpacked("40x1.14").any(), "base 36"


@pytest.mark.parametrize(
    "text", ["", "4x4", "4x4.5", "4x4.5.12", "4x4.5.-2", "0x4.0", "9999x9999.zzzzz", 7, ["4x4.g"], "4x4.G"]
)
def test_what_is_no_region_is_refused(text: object) -> None:
    with pytest.raises(InvalidField, match="base 36"):
        Seen.of({"region": text})


@pytest.mark.parametrize("word", [-1, True, "0", 1.5])
def test_what_is_no_word_is_refused(word: object) -> None:
    with pytest.raises(InvalidField, match="number of a measured word"):
        Seen.of({"word": word})


def test_the_table_has_the_sums_inside_and_the_largest_error_they_can_have() -> None:
    made = stored(np.random.default_rng(0))
    read, region = Read(made), unpacked(MIDDLE)
    found = inside(made, Seen.of({"region": MIDDLE}))
    assert found is not None
    rows = {r[0]: r[1:] for r in found.rows}
    assert set(rows) == {"red", "cat", "both", "redundant", "unique: red", "unique: cat", "synergy"}
    red = read.map(made.meta["singles"][0])
    assert rows["red"][0] == pytest.approx(red[region].sum(), rel=1e-3)
    assert rows["red"][1] == pytest.approx(read.error(made.meta["singles"][0])[region].sum(), rel=1e-3)
    assert rows["red"][2] == f"{100 * red[region].sum() / red.sum():.0f} %"
    assert rows["both"][0] == pytest.approx(read.maps["both"][region].sum(), rel=1e-3)
    said = sentences(made, Seen.of({"region": MIDDLE, "word": 1}))
    assert "“cat” alone" in said and "4 of 16 places was marked: 25 % of the picture" in said


def test_a_region_of_another_grid_or_kind_shows_nothing() -> None:
    made = stored(np.random.default_rng(0))
    other = Seen.of({"region": "2x2.0.4", "word": 9})
    assert not other.fits(made) and inside(made, other) is None and sentences(made, other) == ""
    assert inside(made, Seen()) is None and Seen.of({"opacity": 0.5}) == Seen()


def test_the_picture_is_dimmed_outside_and_has_a_border() -> None:
    pixels = np.asarray(marked(Image.new("RGB", (80, 80), (200, 100, 0)), unpacked(MIDDLE)))
    assert tuple(pixels[40, 40]) == (200, 100, 0) and tuple(pixels[2, 40]) == (110, 55, 0)
    assert (pixels == 255).all(-1).any() and (pixels[:, SIDE * 5] == (20, 22, 26)).all(-1).any()
