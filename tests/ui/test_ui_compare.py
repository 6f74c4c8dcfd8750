"""The comparison's parts: the address, the scale in words, the matrix, and the tray of the gallery."""

from __future__ import annotations

from typing import Any

import pytest
from fake_records import explanation
from test_ui_frame import words

from fanlight import wire
from fanlight_ui import cards, compare


def record(n: int, unit: str = "logit", **changes: Any) -> wire.Explanation:
    meta = {"unit": unit, "signed": True, "box": [0, 0, 10, 10]}
    ref = wire.ArtifactRef(
        name="map", kind="image-map", digest=str(n) * 8, url=f"/api/v1/artifacts/{n}", unit=unit, meta=meta
    )
    return explanation(n).model_copy(update={"state": "succeeded", "artifacts": [ref], "input": "photo", **changes})


def told(r: wire.Explanation, end: float) -> dict[str, Any]:
    a = r.artifacts[0]
    legend = {
        "lo": -end,
        "hi": end,
        "unit": a.unit,
        "stops": ["#000000", "#FFFFFF"],
        "lo_label": "against",
        "hi_label": "for",
    }
    return {
        a.digest: {
            "kind": a.kind,
            "meta": a.meta,
            "legend": legend,
            "sentence": "The middle.",
            "table": {"columns": [], "rows": []},
        }
    }


def found(ends: tuple[float, ...] = (1.0, 2.0), units: tuple[str, ...] = ("logit", "logit"), **asked: Any) -> Any:
    records = [record(n, u) for n, u in enumerate(units)]
    n = len(records)
    matrix = [[1.0 if i == j else 0.25 for j in range(n)] for i in range(n)]
    known = wire.Comparison(
        explanations=[r.id for r in records],
        comparable=True,
        same_picture=True,
        grid=28,
        agreement=matrix,
        sentence="Map 1 and map 2 agree little (+0.25).",
    )
    said = [told(r, e) for r, e in zip(records, ends, strict=True)]
    return compare.Found(compare.Asked(tuple(r.id for r in records), **asked), records, said, known)


def test_the_address_holds_the_view_and_forgives_nonsense() -> None:
    asked = compare.Asked.of({"ids": "a, b,a,,c,d,e", "scale": "own", "opacity": "40"})
    assert asked == compare.Asked(("a", "b", "c", "d"), True, 40)
    assert asked.to(ids=["a"]) == "/compare?ids=a&scale=own&opacity=40"
    assert compare.Asked.of({"ids": "a", "opacity": "-3", "scale": "x"}) == compare.Asked(("a",))
    assert compare.Asked.of({"opacity": "999"}).opacity == 100


@pytest.mark.parametrize(
    ("given", "reach", "said"),
    [
        (found(), (2, 2), "on one scale"),
        (found(own=True), (1, 2), "own scale"),
        (found(units=("logit", "nats")), (1, 2), "normalised"),
        (found(ends=(1.0, 50.0)), (1, 50), "without colour"),
    ],
)
def test_the_scale_is_shared_where_numbers_mean_the_same_and_the_page_says_so(
    given: Any, reach: tuple[float, ...], said: str
) -> None:
    ends, sentence = compare.scales(given)
    assert tuple(s.reach for s in ends if s) == reach and said in sentence
    assert sentence in words(compare.page(given))


def test_the_matrix_has_numbers_words_and_what_they_mean() -> None:
    text = words(compare.agreement(found()))
    assert "+0.25" in text and "+1.00" in text and "agree little" in text and "no proof" in text
    pair = found()
    hole = pair.comparison.model_copy(update={"agreement": [[None, None], [None, 1.0]]})
    assert "none" in words(compare.agreement(compare.Found(pair.asked, pair.records, pair.told, hole)))


def test_alone_it_offers_others_of_the_picture() -> None:
    one, other = record(0), record(1)
    alone = compare.Found(compare.Asked((one.id,)), [one], candidates=[other])
    assert other.explainer_title in words(compare.page(alone))
    assert "Nothing else is stored" in words(compare.page(compare.Found(compare.Asked((one.id,)), [one])))


def test_only_finished_cards_can_be_chosen() -> None:
    assert cards.pick(record(0)) is not None
    assert cards.pick(record(0).model_copy(update={"state": "running"})) is None
