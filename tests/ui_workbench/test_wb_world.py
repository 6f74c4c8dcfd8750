"""The score of a method on the field guide, beside its trust and where methods are chosen."""

from __future__ import annotations

from typing import Any

from wb_support import flat
from wire_methods import INFOS, SCORE
from wire_server import WireServer

from fanlight import wire
from fanlight_ui import record, workbench
from fanlight_ui.views import world

INFO, WITHOUT = INFOS[0], INFOS[1]


def made(version: str) -> wire.Explanation:
    server = WireServer()
    one = server.explain(wire.ExplanationRequest(model="net", input=server.sample, explainer="saliency"))
    return one.model_copy(
        update={"provenance": one.provenance.model_copy(update={"explainer_version": version}), "artifacts": []}
    )


def shown(one: wire.Explanation, info: wire.ExplainerInfo | None) -> str:
    return flat(record.body(record.Known(one, info=info)))


def test_the_page_of_an_explanation_says_the_score_with_a_bar_that_is_read_out() -> None:
    said = shown(made(INFO.version), INFO)
    assert (
        "0.83 to the truth" in said and "random 0.00" in said and "best possible 0.97" in said and "16 scenes" in said
    )
    assert '"role": "img"' in said and "Rank correlation 0.83 (0.71 to 0.90)" in said


def test_a_record_of_another_version_has_no_score() -> None:
    said = shown(made("0"), INFO)
    assert "0.83 to the truth" not in said and "best possible" not in said and "older version" in said


def test_a_method_of_a_third_party_or_one_that_is_gone_says_nothing() -> None:
    assert world.of(made("1"), None) is None and world.of(made("1"), WITHOUT) is None
    assert "best possible" not in shown(made("1"), WITHOUT)


def test_the_chooser_shows_it_with_the_method() -> None:
    def form(info: wire.ExplainerInfo) -> Any:
        return flat(workbench.forms([info], {}))

    assert "0.83 to the truth" in form(INFO) and "best possible 0.97" in form(INFO)
    assert "Field guide: 0.83, random 0.00, best possible 0.97." in form(INFO)
    reason = SCORE.model_copy(
        update={"state": "unavailable", "sentence": "Not measured: it does not fit.", "headline": None}
    )
    assert "it does not fit" in form(INFO.model_copy(update={"world": reason}))
    assert "best possible" not in form(WITHOUT)
