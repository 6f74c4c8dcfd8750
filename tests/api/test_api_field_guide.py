"""The field guide is a data set of every new installation, drawn after everything else."""

from __future__ import annotations

import io
import subprocess
import sys
import time

import numpy as np
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient
from PIL import Image

from fanlight.app import create
from fanlight.service import field_guide
from fanlight_models.worlds.fieldguide import SPECIES, draw, split


def opened(folder) -> TestClient:
    return TestClient(
        create(settings(folder, field_guide=True), token=TOKEN, pages=False),
        headers={"Authorization": f"Bearer {TOKEN}"},
    )


def offered(api: Api) -> dict | None:
    return next((d for d in api.call("GET", "/datasets").json() if d["id"] == "field-guide"), None)


def test_the_field_guide_is_offered_after_the_start_in_seconds(tmp_path):
    with opened(tmp_path) as http:
        api = Api(started(http))
        end = time.monotonic() + 90
        while (found := offered(api)) is None:
            assert time.monotonic() < end
            time.sleep(0.1)
        assert (found["count"], found["unreadable"], found["version"]) == (field_guide.COUNT, 0, 1)
        facets = api.call("GET", "/datasets/field-guide/samples").json()["facets"]["label"]
        assert {f["value"] for f in facets} == set(SPECIES)


def test_its_samples_are_the_scenes_of_the_test_split_pixel_for_pixel(api):
    field_guide.register(api.http.app.state.context, 12)
    samples = api.call("GET", "/datasets/field-guide/samples?limit=50").json()["items"]
    for sample, scene in zip(samples, split("test", 12), strict=True):
        assert sample["label"] == scene.name
        assert sample["width"] == sample["height"] == field_guide.SIZE
        blob = api.call("GET", f"/inputs/{sample['input']}/image.png?size={field_guide.SIZE}").content
        assert (np.asarray(Image.open(io.BytesIO(blob)).convert("RGB")) == draw(scene, field_guide.SIZE).image).all()


def test_it_is_drawn_once_per_data_folder(api):
    context = api.http.app.state.context
    assert field_guide.register(context, 3).count == 3
    first = offered(api)
    assert field_guide.register(context, 3) is None
    assert offered(api) == first


def test_a_server_that_ends_meanwhile_does_not_wait_for_it(tmp_path):
    started_at = time.monotonic()
    with opened(tmp_path) as http:
        started(http)
    assert time.monotonic() - started_at < 5
    with opened(tmp_path) as http:  # and the next start finds a data folder without it, and whole
        api = Api(started(http))
        assert api.call("GET", "/datasets").status_code == 200


def test_it_can_be_left_out(api):
    assert "field-guide" not in [d["id"] for d in api.call("GET", "/datasets").json()]


def test_drawing_it_brings_no_torch():
    code = "import sys; from fanlight.service import field_guide as f; f.source(1).files[0][2].read_bytes(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
