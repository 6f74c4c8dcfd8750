"""The page on which concepts are corrected, its pure parts: names, controls, the log; numbers are painted by its script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from dash.development.base_component import Component
from fake_records import explanation

from fanlight import wire
from fanlight_ui import choice, concepts, views
from fanlight_ui.concepts import Shown

NAMES = ["crest::none", "crest::long", "bill shape::<hooked>", "spotted"]
META = {"concepts": NAMES, "exclusive": [[0, 1]], "box": [0, 0, 100, 50], "classes": ["finch", "heron"]}
TOLD = {
    "meta": META,
    "detail": {"p": [0.1, 0.9, 0.5, 0.2], "answers": []},
    "sentence": "Crest long speaks most for finch.",
}


def record(*answers: tuple[int, Any], **changes: Any) -> wire.Explanation:
    ref = wire.ArtifactRef(name="concepts", kind="concepts", digest="d" * 64, url="/api/v1/artifacts/d", meta=META)
    edits = [{"set_concept": {"concept": k, "value": v}} for k, v in answers]
    return explanation(0).model_copy(update={"artifacts": [ref], "edits": edits, "principal": "p" * 20, **changes})


def shown(of: wire.Explanation, *log: wire.Explanation) -> Shown:
    return Shown(of, of.artifacts[0], TOLD, [("saliency", "Saliency"), ("occlusion", "Occlusion")], log)


def all_of(part: Any) -> Iterator[Component]:
    for p in part if isinstance(part, (list, tuple)) else [part]:
        if isinstance(p, Component):
            yield p
            yield from all_of(getattr(p, "children", None))


def text(part: Any) -> str:
    if isinstance(part, (list, tuple)):
        return "".join(text(p) for p in part)
    return text(getattr(part, "children", None)) if isinstance(part, Component) else "" if part is None else str(part)


def having(part: Any, name: str) -> list[Component]:
    return [c for c in all_of(part) if name in (getattr(c, "className", None) or "").split()]


def test_every_concept_has_a_row_in_its_group() -> None:
    part = concepts.concepts(NAMES)
    assert [text(h) for h in having(part, "co-group")] == ["crest", "bill shape"]
    rows = having(part, "co-row")
    assert [r.to_plotly_json()["props"]["data-concept"] for r in rows] == ["0", "1", "2", "3"]
    assert concepts.grouped(NAMES) == [("crest", [0, 1]), ("bill shape", [2]), ("", [3])]


def test_a_row_can_be_used_by_name_and_by_keyboard() -> None:
    row = concepts.row(1, "crest::long")
    props = [c.to_plotly_json()["props"] for c in all_of(row)]
    assert {"aria-label": "Answer: crest long", "role": "radiogroup"}.items() <= next(
        p for p in props if p.get("role") == "radiogroup"
    ).items()
    slider = next(p for p in props if p.get("role") == "slider")
    assert slider["aria-label"] == "Probability of crest long" and slider["tabIndex"] == 0
    assert [p["data-answer"] for p in props if p.get("role") == "radio"] == ["", "no", "yes"]


def test_what_the_script_needs_is_on_the_page() -> None:
    hidden = {"mask_region": [0, 0, 10, 10]}
    of = record((1, "yes"))
    of = of.model_copy(update={"edits": [hidden, *of.edits]})
    held = json.loads(concepts.data(shown(of))["data-concepts"])
    assert held["record"] == of.id and held["names"] == NAMES and held["exclusive"] == [[0, 1]]
    assert held["pixels"] == [hidden], "they are sent along with every answer"
    assert held["detail"] == TOLD["detail"] and held["summary"] == TOLD["sentence"]


def test_the_log_says_who_answered_what_and_when() -> None:
    base = record()
    first = record((1, "yes"), (3, 0.25), id="first", created=base.created + 1, note="seen from behind")
    second = record((0, "unknown"), id="second", created=base.created + 2)
    log = concepts.log_of([second, base, first, first])
    assert [e.id for e in log] == ["first", "second"]
    part = concepts.history(shown(first, *log))
    said = text(part)
    assert "crest long yes; spotted 0.25 → " in said and "crest none unknown" in said
    assert "pppppppp…" in said and "UTC" in said and "“seen from behind”" in said
    alone = concepts.history(shown(base))
    assert "Saved answers" not in text(alone) and "many pictures" in text(alone)
    sweep = next(c.href for c in all_of(alone) if "/sweeps/new" in str(getattr(c, "href", "")))
    assert f"model={base.model}" in sweep and f"explainer={base.explainer}" in sweep


def test_the_record_leads_to_the_page_and_the_page_to_the_record() -> None:
    of = record()
    assert views.page(of.artifacts) == ("concepts", "Correct the concepts")
    links = [getattr(c, "href", "") for c in all_of(concepts.head(shown(of)))]
    assert f"/e/{of.id}" in links
    assert views.page(explanation(0).artifacts) is None


@pytest.mark.parametrize("methods", [[], [("saliency", "Saliency")]])
def test_maps_of_concepts_are_offered_where_there_are_methods(methods: list[tuple[str, str]]) -> None:
    of = record()
    part = concepts.picture(Shown(of, of.artifacts[0], TOLD, methods))
    ids = {getattr(c, "id", None) for c in all_of(part)}
    assert ("co-method" in ids) == bool(methods)


def test_a_bottleneck_offers_methods_for_pictures_too() -> None:
    def info(name: str, accepts: str) -> wire.ExplainerInfo:
        return wire.ExplainerInfo.model_construct(name=name, accepts=accepts)

    def model(task: str, *able: str) -> wire.Model:
        every = [wire.Availability(name=n, available=n in able) for n in ("scbm", "saliency", "lrp")]
        return wire.Model.model_construct(task=task, explainers=every)

    infos = [info("scbm", "concept-bottleneck"), info("saliency", "image-classifier"), info("lrp", "image-classifier")]
    assert choice.asked_as(model("concept-bottleneck", "scbm", "saliency"), infos) == {
        "concept-bottleneck",
        "image-classifier",
    }
    assert choice.asked_as(model("image-classifier", "saliency"), infos) == {"image-classifier"}
