"""The page of words, its pure parts, and the workbench where a model takes a prompt; numbers are painted by scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dash.development.base_component import Component
from fake_records import explanation

from fanlight import wire
from fanlight.drawing.information import NAMES
from fanlight.explainers import rewording
from fanlight_ui import (
    cards,
    editing,
    record as records,
    subject,
    views,
    words as parts,
    words_change as changing,
    workbench,
)
from fanlight_ui.choice import Choice
from fanlight_ui.views import base, prediction

ASSETS = Path(parts.__file__).parent / "assets"
DETAIL: dict[str, Any] = {
    "prompt": "a red circle",
    "context": True,
    "nodes": 100,
    "drawn": {"seed": 11, "steps": 50, "guidance": 1.0},
}
TOLD = {"sentence": "“red” says +1.4 ± 0.2 nat.", "detail": DETAIL}
INFO = wire.ExplainerInfo(
    name="pid",
    title="PID",
    family="diffusion",
    version="1",
    summary="Words.",
    reading="Sums stand beside the maps.",
    misleads="It is of the model.",
    accepts="text-to-image",
    needs=[],
    params={},
    returns=["words"],
    cost=1,
    paper=wire.Citation(citation="Somebody, 2020", link="https://doi.org/10.0/0", bibtex=""),
    docs="",
    edits=dict(rewording.EDITS),
    asks=sorted(rewording.REDRAWN),
)
PAINTER = wire.Model(
    id="painter",
    name="Painter",
    task="text-to-image",
    takes="prompt",
    digest="d" * 64,
    size=(16, 16),
    capabilities=[],
    explainers=[wire.Availability(name="pid", available=True)],
    examples=["a red circle", "a blue cross"],
)


def drawn(**changes: Any) -> wire.Explanation:
    ref = wire.ArtifactRef(name="words", kind="words", digest="d" * 64, url="/api/v1/artifacts/d", meta={})
    kept = {"artifacts": [ref], "target": {"drawn": True}, "target_name": "the picture", "prediction": [], "title": ""}
    return explanation(0).model_copy(update={**kept, "input_name": "a red circle", "edits": [], **changes})


def shown(**changes: Any) -> parts.Shown:
    return parts.Shown(**{"record": drawn(), "told": TOLD, "info": INFO, "model": PAINTER, **changes})


def all_of(part: Any) -> Iterator[Component]:
    for p in part if isinstance(part, (list, tuple)) else [part]:
        if isinstance(p, Component):
            yield p
            yield from all_of(getattr(p, "children", None))


def text(part: Any) -> str:
    if isinstance(part, (list, tuple)):
        return "".join(text(p) for p in part)
    return text(getattr(part, "children", None)) if isinstance(part, Component) else "" if part is None else str(part)


def by_id(part: Any, id: str) -> Any:
    return next(c for c in all_of(part) if getattr(c, "id", None) == id)


def data(part: Any, name: str) -> list[str]:
    found = (c.to_plotly_json()["props"].get(f"data-{name}") for c in all_of(part))
    return [f for f in found if f is not None]


def test_every_map_of_the_result_has_its_place() -> None:
    assert sorted(parts.MAPS) == sorted(NAMES)
    assert [m for m in data(parts.maps(), "map")] == list(parts.MAPS)
    script = re.search(r"const MAPS = (\[.*?\]);", (ASSETS / "words_paint.js").read_text())
    assert script and json.loads(script[1]) == list(parts.MAPS)


def test_the_edits_are_those_of_the_method_in_its_order() -> None:
    assert parts.OWN == tuple(rewording.EDITS)
    order = re.search(r"const REDRAWN = (\[.*?\]);", (ASSETS / "words.js").read_text())
    assert order and json.loads(order[1]) == list(rewording.REDRAWN)
    assert editing.among([{"set_words": [0, 1]}, {"mask_region": [0, 0, 1, 1]}], parts.OWN) == [{"set_words": [0, 1]}]


def test_whatever_the_script_paints_is_on_the_page() -> None:
    page = [parts.head(shown()), parts.body(shown())]
    named = set(data(page, "wd"))
    wanted = set(re.findall(r'\bnode\("([a-z-]+)"', "".join(p.read_text() for p in sorted(ASSETS.glob("words*.js")))))
    assert wanted <= named, wanted - named
    ids = {getattr(c, "id", None) for c in all_of(page)}
    assert {"wd-undo", "wd-redo", "wd-save", "wd-draw", "wd-beside", "wd-back", "ex-share", "ex-export"} <= ids


def test_edits_come_from_the_address_where_they_can_be_read() -> None:
    def wanted(text: str | None, stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return editing.wanted(text, stored, parts.OWN)

    stored = [{"set_words": [0, 1]}]
    assert wanted(None, stored) == stored and wanted("[]", stored) == []
    assert wanted('[{"set_band": [-1, 2]}]', stored) == [{"set_band": [-1, 2]}]
    for nonsense in ("", "{", "7", '[{"mute_prototype": 1}]', '[{"set_rule": "min", "set_band": null}]', "[" * 100_000):
        assert wanted(nonsense, stored) == stored


def test_a_picture_that_was_given_is_not_drawn_again_and_the_page_says_so() -> None:
    given = shown(told={**TOLD, "detail": {**DETAIL, "drawn": None}})
    part = changing.change(given.detail, given.info)
    assert "was given, not drawn" in text(part) and not data(part, "way")
    assert "a picture of your own" in text(parts.head(given)) and "seed 11" in text(parts.head(shown()))


def test_those_ways_of_drawing_again_are_offered_that_the_method_knows() -> None:
    assert sorted(data(changing.change(DETAIL, INFO), "way")) == sorted(rewording.REDRAWN)
    fewer = INFO.model_copy(update={"edits": {"drop_word": "", "set_words": ""}})
    assert data(changing.change(DETAIL, fewer), "way") == ["drop_word"]
    assert "method of this record is gone" in text(changing.change(DETAIL, None))
    fields = re.search(r"const FIELDS = \{(.*?)\n  \};", (ASSETS / "words_change.js").read_text(), re.S)
    assert fields and re.findall(r"^    (\w+):", fields[1], re.M) == [name for name, *_ in changing.WAYS]


def test_without_its_model_a_record_is_shown_and_cannot_be_changed() -> None:
    gone = shown(model=None)
    assert "cannot be changed" in text(parts.prompt(gone)) and not parts.state(gone)["live"]
    assert parts.state(shown())["live"] and "cannot be changed" not in text(parts.prompt(shown()))


def test_the_page_says_how_it_is_read_and_how_it_misleads() -> None:
    said = text(parts.body(shown()))
    assert "Sums stand beside the maps." in said and "It is of the model." in said
    assert "of the model, not of the world" in said


def test_the_kind_has_its_view_and_its_page() -> None:
    assert views.PAGES["words"][0] == "words"
    ref = drawn().artifacts[0]
    part = views.show(ref, TOLD, base.Scene(input="i" * 64))
    drawing = next(c for c in all_of(part) if getattr(c, "role", None) == "img")
    assert "dark=true" in drawing.style["--dark"] and "dark" not in drawing.style["--light"]
    assert drawing.to_plotly_json()["props"]["aria-label"] == TOLD["sentence"]


def test_a_record_of_words_is_called_by_its_prompt_and_predicts_no_class() -> None:
    assert prediction.of(drawn()) is None and prediction.of(explanation(0)) is not None
    assert records.title(drawn()) == cards.name(drawn()) == "“a red circle”"
    assert records.title(drawn(title="Mine")) == "Mine" and workbench.title(drawn()) == "Which word put what where?"
    head = records.head(drawn())
    assert "Which word put what where?" in text(head) and by_id(head, "ex-change").hidden
    assert not by_id(records.head(explanation(0)), "ex-change").hidden
    subject_part = records.subject(records.Known(drawn(), {}))
    assert "rather than" not in text(subject_part) and "rather than" in text(
        records.subject(records.Known(explanation(0), {}))
    )


# --- the workbench


def page(**changes: Any) -> Component:
    return workbench.page(
        workbench.Facts(**{"choice": Choice(), "models": [PAINTER], "model": PAINTER, "infos": [INFO], **changes})
    )


def picture(**changes: Any) -> wire.Input:
    given = {"id": "i" * 64, "width": 20, "height": 10, "created": 0.0, "url": "/i", "thumbnail": "/t", **changes}
    return wire.Input(**given)


def test_a_model_that_draws_is_asked_in_words() -> None:
    shown = page()
    assert not by_id(shown, "wb-ask").hidden and by_id(shown, "wb-pick").hidden and by_id(shown, "wb-classes").hidden
    assert by_id(shown, "wb-source").value == "draw" and data(shown, "prompt") == PAINTER.examples
    assert by_id(shown, "wb-hint").hidden and not by_id(shown, "wb-drawn").hidden


def test_a_model_of_pictures_is_asked_as_before() -> None:
    net = PAINTER.model_copy(update={"takes": "image", "task": "image-classifier", "classes": ["a", "b"]})
    shown = page(model=net, chosen=picture())
    assert (
        by_id(shown, "wb-ask").hidden and not by_id(shown, "wb-pick").hidden and not by_id(shown, "wb-classes").hidden
    )
    assert not by_id(shown, "wb-picture").hidden and by_id(shown, "wb-drawn").hidden


def test_a_stored_prompt_is_taken_up_with_its_own_picture() -> None:
    prompt = picture(kind="prompt", text="a red circle", picture="p" * 64)
    shown = page(prompt=prompt, chosen=picture(id="p" * 64))
    assert by_id(shown, "wb-prompt").value == "a red circle" and by_id(shown, "wb-source").value == "own"
    assert not by_id(shown, "wb-pick").hidden and not by_id(shown, "wb-picture").hidden
    assert by_id(page(choice=Choice(prompt="half a")), "wb-prompt").value == "half a"


def test_words_that_are_not_stored_yet_stand_in_the_address() -> None:
    assert Choice.of({"prompt": "a b"}).prompt == "a b" and Choice(prompt="a b").query() == {"prompt": "a b"}


def test_a_prompt_may_be_as_long_as_the_server_takes() -> None:
    assert wire.Prompt(text="a" * subject.LONGEST).text
    with pytest.raises(ValueError):
        wire.Prompt(text="a" * (subject.LONGEST + 1))
