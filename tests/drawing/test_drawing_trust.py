"""Trust in rows: numbers beside their floors, places on a scale, and what they mean in words."""

from __future__ import annotations

from typing import Any

import pytest
from drawing_samples import TRUST, frozen, image_map

from fanlight import wire
from fanlight.drawing import checks, report, trust
from fanlight.drawing.section import section
from fanlight.quality.checks import MEASURES

EDGES = {"faithfulness": 0.12, "insertion": 0.2, "deletion": 0.04}
PARAMETERS: dict[str, dict[str, Any]] = {
    "stability": {"draws": 8, "sigma": 0.02},
    "randomisation": {"layers": 12, "draws": [4, 4, 4, 4]},
    "agreement": {},
}
MORE = {
    "stability": ("relative change", "relative change of edges"),
    "randomisation": ("top layer alone", "by single pixels"),
    "agreement": ("Occlusion", "Saliency"),
}


def reading(value: float, reach: float = 0.0) -> wire.Reading:
    return wire.Reading(value=value, lo=value - reach, hi=value + reach)


def check(name: str, value: float = 0.4, verdict: Any = "plain", random: float = 0.0, edges: float = 0.9) -> wire.Check:
    return wire.Check(
        state="succeeded",
        found=reading(value, 0.05),
        floors={"random": reading(random, 0.02), "edges": reading(edges)},
        verdict=verdict,
        more={part: reading(0.25) for part in MORE[name]},
        parameters=PARAMETERS[name],
    )


def with_checks(**given: wire.Check) -> wire.Trust:
    return TRUST.model_copy(update={"checks": given, "edges": EDGES})


def test_there_are_words_for_every_check_and_no_other() -> None:
    assert list(checks.WORDS) == list(MEASURES)


def test_edges_stand_beside_the_faithfulness() -> None:
    known = TRUST.model_copy(update={"edges": EDGES})
    assert trust.badge(known).text == "faithfulness +0.52 above random (+0.48 to +0.56); edges alone get +0.12"
    first = trust.rows(known)[0]
    assert (first.value, first.floors) == ("+0.52 (+0.48 to +0.56)", "random 0.00, edges +0.12")
    assert trust.rows(TRUST)[0].floors == "random 0.00", "an older record has no edges"


def test_a_map_that_is_no_better_than_edges_is_told_so() -> None:
    alike = TRUST.model_copy(update={"edges": {**EDGES, "faithfulness": 0.5}})
    assert "does about as well" in trust.badge(alike).meaning
    assert "does about as well" not in trust.badge(TRUST.model_copy(update={"edges": EDGES})).meaning


def test_rows_come_in_the_order_of_the_checks_and_say_what_they_mean() -> None:
    given = {name: check(name, verdict="warn") for name in reversed(list(MEASURES))}
    found = trust.rows(with_checks(**given))
    assert [r.name for r in found] == ["faithfulness", "insertion", "deletion", "completeness", *MEASURES]
    assert found[-1].tone == "quiet", "that others see it otherwise is no reason not to read it"
    shows = found[-2]
    assert shows.tone == "warn" and "it shows the picture, not the model" in shows.sentence
    assert shows.value == "0.40 (0.35 to 0.45)" and shows.floors == "random 0.00, edges 0.90"
    assert shows.detail == "all 12 layers drawn anew, 4 times; top layer alone 0.25, by single pixels 0.25"
    assert "8 draws of noise of 2 % of the range; relative change 0.25" in found[-3].detail
    assert found[-1].detail == "Occlusion 0.25, Saliency 0.25"
    assert shows.line.startswith("Untrained network 0.40 (0.35 to 0.45), random 0.00, edges 0.90. It looks the same")


@pytest.mark.parametrize("value", [-0.3, 0.0, 0.4, 1.0])
def test_all_places_are_on_the_scale(value: float) -> None:
    for row in trust.rows(with_checks(stability=check("stability", value))):
        if row.gauge is None:
            continue
        drawn = row.gauge
        assert 0 <= drawn.start <= drawn.at + 1e-9 and drawn.at <= drawn.start + drawn.width + 0.02 <= 100.04
        assert [m.name for m in drawn.marks] == ["random", "edges"] and all(0 <= m.at <= 100 for m in drawn.marks)
        assert row.value in drawn.text and "random" in drawn.text


def test_a_place_is_in_proportion() -> None:
    (row,) = [r for r in trust.rows(with_checks(stability=check("stability", 0.4))) if r.name == "stability"]
    assert row.gauge is not None and (row.gauge.lo, row.gauge.hi) == ("0.00", "1.00")
    assert (row.gauge.at, row.gauge.start, row.gauge.width) == (40, 35, 10)
    assert {m.name: m.at for m in row.gauge.marks} == {"random": 0, "edges": 90}
    (low,) = [r for r in trust.rows(with_checks(stability=check("stability", -0.3))) if r.name == "stability"]
    assert (
        low.gauge is not None and low.gauge.lo == "−0.50" and low.gauge.at == pytest.approx(100 * 0.2 / 1.5, abs=0.01)
    )


@pytest.mark.parametrize(
    ("state", "said"), [("pending", "Being measured"), ("failed", "Out of memory."), ("unavailable", "Out of memory.")]
)
def test_what_was_not_measured_says_why(state: Any, said: str) -> None:
    reason = None if state == "pending" else "Out of memory"
    (row,) = trust.rows(wire.Trust(state="pending", checks={"agreement": wire.Check(state=state, reason=reason)}))
    assert said in row.sentence and row.gauge is None and row.value == "" and row.line == f"Agreement. {row.sentence}"


def test_the_report_prints_edges_checks_and_the_score_on_the_field_guide() -> None:
    given = with_checks(stability=check("stability"), agreement=wire.Check(state="pending"))
    snapshot = frozen(trust=given)
    snapshot["world"] = wire.WorldScore(
        state="measured", world="field-guide", sentence="It ranks parts well.", detail="Mean of 12 scenes.", model="m", model_digest="d"
    ).model_dump(mode="json")  # fmt: skip
    drawn = image_map([[0, 1], [2, 3]], signed=False)
    said = [words for words, _ in report.trusted(section(snapshot, drawn, {}, lambda _name: None))]
    assert "On the same picture: random 0.00, edges +0.12." in said
    assert any(words.startswith("Stability 0.40") for words in said) and not any("Agreement" in w for w in said)
    assert said[-2:] == ["It ranks parts well.", "Mean of 12 scenes."]
