"""The share page says what the method scores where the truth is known, as it was when the page was frozen."""

from __future__ import annotations

from drawing_samples import frozen
from test_drawing_page import Reader, shared, words

from fanlight import wire
from fanlight.drawing.world import bar

RANKING = wire.Measurement(value=0.83, lo=0.71, hi=0.9, floor=0.0, ceiling=1.0, unit="rank correlation")
SCORE = wire.WorldScore(
    state="measured", world="field-guide", sentence="It ranks well.", detail="16 scenes.", headline=RANKING, model="m", model_digest="d",
)  # fmt: skip


def with_world(score: wire.WorldScore) -> dict:
    return {**frozen(), "world": score.model_dump(mode="json")}


def test_a_bar_has_its_value_and_interval_in_percent_and_in_words():
    drawn = bar(RANKING)
    assert (drawn.at, drawn.start, drawn.width) == (83, 71, 19)
    assert drawn.text == "Rank correlation 0.83 (0.71 to 0.90), between random, 0.00, and the best possible, 1.00."
    falling = bar(wire.Measurement(value=0.2, lo=0.1, hi=0.3, floor=0.5, ceiling=0.1, unit="share"))
    assert (falling.at, falling.start, falling.width) == (75, 50, 50)


def test_the_share_page_shows_the_score_with_its_bar(edges):
    html = shared([with_world(SCORE)], [edges])
    assert "It ranks well. random 0.00 best possible 1.00 16 scenes." in words(html)
    labels = [a.get("aria-label") for a in Reader(html).all("svg")]
    assert bar(RANKING).text in labels
    widths = {a.get("width") for a in Reader(html).all("rect")}
    assert {"83.0%", "19.0%"} <= widths


def test_a_score_of_another_version_has_words_and_no_bar(edges):
    html = shared([with_world(SCORE.model_copy(update={"state": "outdated", "headline": None}))], [edges])
    assert "It ranks well." in words(html) and "best possible" not in words(html)


def test_a_page_frozen_without_a_score_says_nothing_of_it(edges):
    assert 'class="world"' not in shared([frozen()], [edges])
