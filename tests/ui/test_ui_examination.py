"""The doctor on a model's page: what it says, in words."""

from __future__ import annotations

from typing import Any

from fake_records import NOW, examination

from fanlight.wire import Examination, Finding
from fanlight_ui.examination import content

TITLES = {"saliency": "Saliency", "occlusion": "Occlusion", "grad-cam": "Grad-CAM"}


def words(found: Examination) -> str:
    def text(node: Any) -> str:
        if isinstance(node, (list, tuple)):
            return " ".join(text(n) for n in node)
        return text(node.children) if hasattr(node, "children") else str(node or "")

    return " ".join(text(content(found, TITLES, now=NOW)).split())


def test_every_outcome_is_said_in_words_and_costs_are_ordered() -> None:
    said = words(examination("m"))
    assert "It can be explained." in said and "works, with a note" in said and "does not apply" in said
    assert "Look for batch statistics." in said
    assert said.index("Saliency 2 0.04 s 61.5 MiB") < said.index("Occlusion 785 31 s not told projected")
    assert said.index("Occlusion") < said.index("failed: it changed the model") and "lrp" not in said


def test_an_unsound_model_is_called_that() -> None:
    bad = Examination(
        state="done",
        model="m",
        seconds=60,
        finished=NOW,
        sound=False,
        checks=[Finding(name="load", outcome="bad", says="It ended.")],
    )
    assert words(bad).startswith("Something is wrong") and "does not work" in words(bad)


def test_what_is_awaited_and_how_long_is_said() -> None:
    running = words(Examination(state="running", model="m", seconds=60, since=NOW - 12))
    assert "Being examined for 12 s" in running and "60 s at most" in running
