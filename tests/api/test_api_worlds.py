"""What is known of the field guide, through the API: the table, the concepts, what is where in a picture."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import numpy as np
import pytest
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient
from PIL import Image

from fanlight.app import create
from fanlight.drawing.parts import colour, overlay
from fanlight_models.worlds.fieldguide import PARTS, SPECIES, draw, split


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    given = settings(tmp_path_factory.mktemp("worlds"), field_guide=True, trust="request")
    with TestClient(create(given, token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        end = time.monotonic() + 60
        while "field-guide" not in [d["id"] for d in api.call("GET", "/datasets").json()]:
            assert time.monotonic() < end
            time.sleep(0.1)
        yield api


def test_the_table_and_its_concepts_are_those_of_the_world(api: Api) -> None:
    listed = {d["id"]: d["world"] for d in api.call("GET", "/datasets").json()}
    assert listed["field-guide"] and not listed["photographs"]
    world = api.call("GET", "/datasets/field-guide/world").json()
    assert [k["name"] for k in world["kinds"]] == list(SPECIES) and len(world["families"]) == 6
    assert sum(len(g["values"]) for g in world["groups"]) == 79 and world["parts"] == list(PARTS)
    harrier = next(k for k in world["kinds"] if k["name"] == "Slate harrier")
    assert harrier["family"] == "hawk" and harrier["typical"]["bill shape"] == "hooked"
    assert harrier["typical"]["crown"] == "white"


def test_it_says_how_groups_hang_together(api: Api) -> None:
    world = api.call("GET", "/datasets/field-guide/world").json()
    r = np.array(world["correlation"])
    assert r.shape == (19, 19) and np.allclose(r, r.T) and bool((np.diag(r) == 1).all())
    assert r.min() >= 0 and r.max() <= 1
    pairs = {(p["first"], p["second"]): p for p in world["pairs"]}
    # docs/data/field-guide.md has them over the whole test split; the world promises more than 0.2
    assert 0.35 < pairs["bill colour", "crown"]["remains"] < 0.65
    assert all(p["remains"] > 0.2 for p in pairs.values())
    names = [g["name"] for g in world["groups"]]
    for (first, second), p in pairs.items():
        assert p["overall"] == pytest.approx(r[names.index(first), names.index(second)])


def test_parts_are_drawn_where_they_are(api: Api) -> None:
    answer = api.call("GET", "/datasets/field-guide/samples/3/parts.png?size=192")
    assert answer.status_code == 200, answer.text
    shown = np.asarray(Image.open(io.BytesIO(answer.content)).convert("RGB")).astype(int)
    drawn = draw(split("test", 4)[3], 192)
    outside = ~drawn.masks.any(0)
    spread = shown.max(2) - shown.min(2)
    assert np.median(spread[outside]) < 3, "what is no bird is grey"
    wing = drawn.masks[PARTS.index("wing")]
    rgb = np.array([int(colour(PARTS.index("wing"))[i : i + 2], 16) for i in (1, 3, 5)])
    tinted = shown[wing].mean(0) - shown[wing].mean()
    assert np.corrcoef(tinted, rgb - rgb.mean())[0, 1] > 0.9


def test_a_part_that_cannot_be_seen_has_no_number() -> None:
    image, masks = np.full((40, 40, 3), 100, np.uint8), np.zeros((2, 40, 40), bool)
    masks[0, 5:20, 5:20] = True
    points = np.array([[12.0, 12.0], [np.nan, np.nan]])
    one = np.asarray(overlay(image, masks, points, 80))
    none = np.asarray(overlay(image, masks, np.full((2, 2), np.nan), 80))
    changed = np.argwhere((one != none).any(2))
    assert len(changed) and changed.min() > 10 and changed.max() < 40


def test_what_is_no_world_says_so(api: Api) -> None:
    for path, status, code in (
        ("photographs/world", 404, "no_world"),
        ("penguins/world", 404, "unknown_dataset"),
        ("photographs/samples/0/parts.png", 404, "no_world"),
        ("field-guide/samples/192/parts.png", 404, "unknown_sample"),
        ("field-guide/samples/0/parts.png?size=4000", 422, "invalid_size"),
    ):
        answer = api.call("GET", f"/datasets/{path}")
        assert answer.status_code == status and answer.json()["error"]["code"] == code, answer.text
