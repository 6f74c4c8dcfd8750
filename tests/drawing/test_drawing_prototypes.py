"""Drawings of prototypes: from the artifact alone, numbers that add up, words that say what was changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fanlight.adapters import bundle as bundles
from fanlight.artifact import Artifact
from fanlight.drawing import renderer, scene
from fanlight.explainers.prototypes.protovit import ProtoViT
from support.explaining import explained, item, photo
from support.prototypes import write

DRAW = renderer("prototypes")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Artifact]:
    model = bundles.load(write(tmp_path_factory.mktemp("drawn") / "small"))
    return model, Artifact.from_bytes(explained(ProtoViT, model, item(model))[0].to_bytes())


def changed(made: tuple[Any, Artifact], *edits: dict[str, Any]) -> Artifact:
    model, artifact = made
    canonical = ProtoViT.canonical(edits, artifact.meta)
    return ProtoViT().edit(model, [artifact], canonical, ProtoViT.Params()).artifacts[0]


def test_the_table_adds_up_to_the_logit(made: tuple[Any, Artifact]) -> None:
    table = DRAW.table(made[1])
    points = [row[4] for row in table.rows]
    assert table.rows[-1][0] == "all" and table.rows[-2][0] == "the other 0"
    assert sum(points[:-1]) == pytest.approx(points[-1], abs=2e-3)
    assert all(row[6].startswith("training picture") for row in table.rows[:-2])


@pytest.mark.parametrize("size", [64, 320, 640])
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_drawn_at_any_size_in_the_proportions_of_the_picture(
    made: tuple[Any, Artifact], size: int, dark: bool
) -> None:
    drawn = DRAW.image(made[1], size=size, dark=dark)
    assert drawn.size == (size, size)
    pixels = np.asarray(drawn).reshape(-1, 3)
    assert (pixels == ([28, 31, 37] if dark else [255, 255, 255])).all(1).any()
    assert len(np.unique(pixels, axis=0)) > 50


def test_boxes_are_where_the_tokens_are(made: tuple[Any, Artifact]) -> None:
    artifact = made[1]
    for row in DRAW.detail(artifact)["rows"]:
        for part in row["parts"]:
            token = int(artifact.arrays["idx"][row["prototype"], part["k"]])
            x0, y0, x1, y1 = part["cell"]
            assert (round(8 * y0), round(8 * x0)) == divmod(token, 8)
            assert (x1 - x0, y1 - y0) == pytest.approx((1 / 8, 1 / 8))
            assert part["source"] is None or part["state"] == "open"


def test_a_muted_prototype_is_not_among_the_rows_of_the_drawing(made: tuple[Any, Artifact]) -> None:
    first = DRAW.detail(made[1])["rows"][0]["prototype"]
    one, two = (np.asarray(DRAW.image(a)) for a in (made[1], changed(made, {"mute_prototype": first})))
    assert not np.array_equal(one, two)


def test_the_sentence_says_what_was_changed(made: tuple[Any, Artifact]) -> None:
    assert "points" in DRAW.sentence(made[1], target="ant") and not DRAW.sentence(made[1]).startswith("With")
    said = DRAW.sentence(
        changed(
            made, {"mute_prototype": 1}, {"mute_prototype": 5}, {"gate_part": [0, 2]}, {"exclude_region": [0, 0, 4, 4]}
        )
    )
    assert said.startswith("With prototypes 1 and 5 muted, part 3 of prototype 0 left out and 1 place excluded: ")


def test_only_what_is_shown_travels(made: tuple[Any, Artifact]) -> None:
    model, artifact = made
    few = explained(ProtoViT, model, item(model), rows=2)[0]
    detail = DRAW.detail(few)
    assert len(detail["rows"]) == len(detail["pictures"]) == 2 and detail["rest"]["count"] == 4
    whole = DRAW.detail(artifact)
    assert detail["total"] == whole["total"]
    assert sum(r["points"] for r in detail["rows"]) + detail["rest"]["points"] == pytest.approx(
        whole["total"], abs=1e-9
    )


def test_beside_the_picture_it_has_no_scale_and_fits(made: tuple[Any, Artifact]) -> None:
    pair = scene.beside(photo(0, 64), made[1], size=200)
    assert pair.size == (2 * 200 + scene.GAP, 200)
    assert scene.overlay(photo(0, 64), made[1], size=300).size == (300, 300)
