"""The pure parts of the two pages: address, panels, views, snippets."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from wb_support import flat
from wire_server import WireServer

from fanlight import wire
from fanlight.artifact import KINDS
from fanlight_ui import changes, choice, forecast, panels, record, session, snippets, views, workbench
from fanlight_ui.choice import Choice, wire_target
from fanlight_ui.panels import Scale, common
from fanlight_ui.views import base, numbers, prediction, trust


@pytest.fixture(autouse=True)
def no_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session._Session, "prefix", "")


def made(explainer: str = "saliency", **changed: Any) -> wire.Explanation:
    server = WireServer()
    return server.explain(wire.ExplanationRequest(model="net", input=server.sample, explainer=explainer)).model_copy(
        update=changed
    )


# --- address


def test_an_address_holds_the_whole_state() -> None:
    whole = Choice(
        "net", "abc", "waves", ("saliency", "occlusion"), 3, 5, {"occlusion": {"window": 16}}, 7, ("e1", "e2")
    )
    assert Choice.of(whole.query()) == whole
    assert Choice.of({}) == Choice() and Choice().query() == {}


@pytest.mark.parametrize(
    "query",
    [{"target": "x"}, {"target": "-1"}, {"params": "{"}, {"params": "[1]"}, {"seed": "9" * 30}, {"explainers": ",,"}],
)
def test_what_cannot_be_read_in_an_address_is_left_out(query: dict[str, str]) -> None:
    assert Choice.of(query) == Choice()


def test_no_more_methods_are_taken_than_fit() -> None:
    assert len(Choice.of({"explainers": "a,b,c,d,e,f,a"}).explainers) == choice.MOST


def test_a_target_is_omitted_a_class_or_a_difference() -> None:
    assert wire_target(None, None) is None and wire_target(None, 4) is None
    assert wire_target(3, None) == 3 and wire_target(3, 3) == 3
    assert wire_target(3, 4) == {"minus": [3, 4]}


# --- scales


def test_maps_of_one_unit_and_sign_share_the_widest_scale() -> None:
    a, b, c = Scale(-1, 1, "logit"), Scale(-2, 2, "logit"), Scale(0, 3, "logit")
    assert common([a, None, b, c]) == [Scale(-2, 2, "logit"), None, Scale(-2, 2, "logit"), c]


def test_a_map_that_would_drown_on_the_shared_scale_lets_each_keep_its_own() -> None:
    small, large = Scale(-0.01, 0.01, "logit"), Scale(-1, 1, "logit")
    assert common([small, large]) == [small, large]


def test_rescaling_changes_the_address_of_the_drawing_and_its_legend() -> None:
    server = WireServer()
    asked = wire.ExplanationRequest(model="net", input=server.sample, explainer="saliency")
    shown = []
    for hi in (0.1, 0.2):
        one = server.explain(asked)
        legend = {"lo": -hi, "hi": hi, "unit": "logit", "stops": ["#000", "#fff"]}
        shown.append({"legend": legend, "artifact": one.artifacts[0].model_dump(mode="json")})
    own, _ = workbench.rescaled(shown, [0, 1], shared=False)
    urls, legends = workbench.rescaled(shown, [0, 1], shared=True)
    assert "lo=" not in own[0] + own[1]
    assert "lo=-0.2&hi=0.2" in urls[0] and "lo=" not in urls[1]
    assert "0.20" in flat(legends[0])


# --- panels


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": "queued", "place": 3}, "3 before it in the queue"),
        ({"state": "queued", "place": 0}, "Next in the queue"),
        ({"state": "running", "progress": 0.42, "seconds_left": 12.3}, "Running · 42 % · about 12\u202fs left"),
    ],
)
def test_a_waiting_job_says_what_is_waited_for_and_how_long(changed: dict[str, Any], said: str) -> None:
    job = wire.Job(**{"id": "j", "explanation": "e", "created": 0, "mine": True, **changed})
    assert panels.progress_words(job) == said
    assert "Cancel" in flat(panels.waiting(job, 0))
    assert "Cancel" not in flat(panels.waiting(job.model_copy(update={"mine": False}), 0))


def test_an_explanation_that_failed_says_why_and_what_to_do() -> None:
    said = flat(panels.ended(made("broken")))
    assert "returned NaN" in said and "fanlight doctor" in said and "/explain?" in said


def test_cancelled_and_expired_say_that_nothing_was_stored_or_that_it_was_given_up() -> None:
    assert "cancelled" in flat(panels.ended(made(state="cancelled")))
    assert "given up" in flat(panels.ended(made(state="expired")))


# --- views


def test_every_artifact_kind_has_a_view() -> None:
    assert set(views.VIEWS) == set(KINDS)


def test_a_map_lies_over_its_own_part_of_the_picture_with_scale_and_words() -> None:
    one = made()
    told = {
        "meta": one.artifacts[0].meta,
        "sentence": "The middle.",
        "legend": {
            "lo": -0.08,
            "hi": 0.08,
            "unit": "logit",
            "stops": ["#2B6CB0", "#B2432F"],
            "lo_label": "against",
            "hi_label": "for",
        },
    }
    said = flat(views.show(one.artifacts[0], told, base.Scene.of(one, slot=2)))
    assert f"/api/v1/inputs/{one.input}/image.jpg?box=0%2C0%2C224%2C224&size=512" in said
    assert f"{one.artifacts[0].url}/render.png" in said and f"{one.artifacts[0].url}/raw" in said
    assert (
        "The middle. Arrow keys" in said and "against \u22120.080" in said and "+0.080 for" in said and "logit" in said
    )


def test_a_hidden_region_is_marked_within_the_shown_part() -> None:
    style = base.hidden([10, 20, 30, 60], [10, 20, 110, 220]).style
    assert style == {"left": "0.000%", "top": "0.000%", "width": "20.000%", "height": "20.000%"}


def test_the_mark_of_a_hidden_region_ends_with_the_shown_part() -> None:
    style = base.hidden([0, 0, 300, 400], [38, 0, 262, 224]).style
    assert style == {"left": "0.000%", "top": "0.000%", "width": "100.000%", "height": "100.000%"}
    assert base.hidden([0, 0, 38, 224], [38, 0, 262, 224]) is None


def test_a_table_keeps_text_as_text() -> None:
    told = {"table": {"columns": ["region", "share"], "rows": [["<b>x</b>", 0.12345], [True, None]]}}
    said = base.table(told)
    cells = [[td.children for td in tr.children] for tr in said.children[1].children.children[1].children]
    assert cells == [["<b>x</b>", "0.123"], ["yes", ""]]
    assert base.table({}) is None


MEASURED = {
    "insertion": 0.5,
    "deletion": 0.4,
    "faithfulness": 0.45,
    "interval": {"faithfulness": {"lo": 0.4, "hi": 0.5}},
}


def test_a_map_above_the_floor_is_told_with_its_interval() -> None:
    good = wire.Trust(state="succeeded", above_floor=True, completeness_error=0.003, **MEASURED)
    assert "faithfulness +0.45" in flat(trust.badge(good)) and "trust good" in flat(trust.badge(good))
    said = flat(trust.strip(good))
    assert "+0.40 to +0.50" in said and "Insertion" in said and "Completeness" in said and "0.3 %" in said


def test_a_map_that_is_not_above_the_floor_says_do_not_read_it() -> None:
    low = wire.Trust(state="succeeded", above_floor=False, **MEASURED)
    assert trust.words(low) == "Not above the random floor here: do not read it."
    said = flat(trust.badge(low))
    assert "trust low" in said and "not above chance, +0.45" in said and "faithfulness" not in said


def test_trust_that_is_missing_says_why() -> None:
    assert "being measured" in trust.words(wire.Trust(state="pending"))
    assert (
        trust.words(wire.Trust(state="unavailable", reason="The answer hardly depends on the picture."))
        == "The answer hardly depends on the picture."
    )
    assert "failed" in trust.words(wire.Trust(state="failed", reason="out of memory"))


def test_bars_show_numbers_and_what_was_before() -> None:
    now, before = made().prediction, [made().prediction[0].model_copy(update={"probability": 0.5})]
    said = flat(prediction.bars(now, explained=0, before=before))
    assert "95.2 %" in said and "was 50.0 %" in said and '"explained"' in said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.42, "0.4\u202fs"), (12.3, "12\u202fs"), (200, "3\u202fmin"), (9000, "2.5\u202fh"), (0, "0.01\u202fs")],
)
def test_durations_are_said_as_a_person_says_them(value: float, said: str) -> None:
    assert numbers.seconds(value) == said


def test_a_forecast_says_passes_and_measured_seconds() -> None:
    assert forecast.words(514, 85.0) == "≈ 514 forward passes, about 6\u202fs here"
    assert forecast.words(514) == "≈ 514 forward passes"
    assert forecast.words(0) == "does not ask the model"


# --- doing something


def test_a_rectangle_needs_four_corners_and_an_area() -> None:
    assert changes.region([30, 5, 10, 25]) == [10, 5, 30, 25]
    assert (
        changes.region([1, 2, 3, None]) is None
        and changes.region([1, 2, 1, 9]) is None
        and changes.region([1, 2, "", 4]) is None
    )


def test_the_corners_say_which_pixels_of_the_whole_picture_the_model_sees() -> None:
    one = made()
    box = {**one.artifacts[0].meta, "box": [37.6, 0, 262.4, 224]}
    said = flat(changes.hide(one.model_copy(update={"artifacts": [one.artifacts[0].model_copy(update={"meta": box})]})))
    assert '"description": "38 to 262 px"' in said and '"description": "0 to 224 px"' in said
    assert '"min": 38' in said and '"max": 262' in said and '"placeholder": "262 px"' in said
    assert "columns 38 to 262 and rows 0 to 224" in said


def test_a_loopback_link_warns_that_nobody_else_can_open_it() -> None:
    share = wire.NewShare(
        id="s", explanations=["e"], created=0, expires=86400, url="http://127.0.0.1/s/t", token="t", loopback_only=True
    )
    assert "Only you can open it" in flat(changes.shared(share))
    assert "Only you" not in flat(changes.shared(share.model_copy(update={"loopback_only": False})))


def test_deleting_names_the_links_that_it_revokes() -> None:
    alive = wire.Share(id="a", explanations=["e"], created=0, expires=1e10)
    gone = [alive.model_copy(update=u) for u in ({"revoked": 1.0}, {"expires": 1.0}, {"explanations": ["other"]})]
    assert "No live link" in flat(changes.delete_says(gone, "e", 100))
    assert "this link to it will be revoked" in flat(changes.delete_says([alive, *gone], "e", 100))


def test_a_recomputation_is_told_as_equal_or_by_its_largest_difference() -> None:
    assert (
        changes.verdict(made(verified=wire.Verified(equal=True, largest_difference=0)))
        == "Recomputed and equal, bit for bit."
    )
    assert "0.0010" in changes.verdict(made(verified=wire.Verified(equal=False, largest_difference=0.001)))
    assert "stored numbers stand" in changes.verdict(made(state="failed"))


def test_the_python_snippet_is_python_and_the_curl_one_survives_the_shell() -> None:
    one = made(params={"note": "it's"})
    compile(snippets.python(one), "snippet", "exec")
    words = shlex.split(snippets.curl(one).replace("\\\n", " "))
    assert json.loads(words[words.index("-d") + 1])["params"] == {"note": "it's"}
    changed = made(parent="p", edits=[{"mask_region": [0, 0, 5, 5]}])
    compile(snippets.python(changed), "snippet", "exec")
    assert "interventions" in snippets.curl(changed)


def test_a_live_panel_takes_no_foreign_picture() -> None:
    panel = wire.LivePanel(seq=1, image="http://elsewhere/x.png", legend={})
    with pytest.raises(ValueError, match="data address"):
        record.live_panel(panel, "/under.png")
