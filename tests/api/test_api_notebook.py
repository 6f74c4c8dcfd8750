"""A record of the client in a notebook: its picture inline, its numbers, and nothing that a name could run."""

from __future__ import annotations

import base64
import io

import pytest
from api_rig import TOKEN, Api, noise
from PIL import Image

from fanlight import wire
from fanlight.client import Client, calls


@pytest.fixture
def fan(api: Api) -> Client:
    client = Client("http://testserver", TOKEN)
    api.http.base_url = "http://testserver/api/v1/"
    client._http = api.http  # the server of this process instead of one on a port
    return client


def test_a_record_draws_itself_with_picture_and_numbers(fan: Client) -> None:
    photo = fan.upload(noise(1), "<b>my cat.png")
    record = fan.explain("tiny", photo.id, "integrated-gradients")
    shown = record._repr_html_()  # type: ignore[attr-defined]
    blob = base64.b64decode(shown.partition("base64,")[2].partition('"')[0])
    assert max(Image.open(io.BytesIO(blob)).size) == 384
    assert record.id in shown and "&lt;b&gt;my cat" in shown and "<b>my cat" not in shown
    assert f"{100 * record.prediction[0].probability:.1f} %" in shown
    assert "<script" not in shown and "http" not in shown.replace("image/png", "")
    listed = fan.explanations().items[0]
    assert listed == record and listed._repr_html_().startswith("<div")
    plain = wire.Explanation.model_validate(record.model_dump())
    assert record == plain and plain == record and record.model_dump_json() == plain.model_dump_json()


def test_a_deleted_record_still_shows_its_numbers(fan: Client) -> None:
    record = fan.explain("tiny", fan.upload(noise(2), "a.png").id, "saliency")
    fan.send(calls.delete(record.id))
    assert record.id in record._repr_html_() and "<img" not in record._repr_html_()  # type: ignore[attr-defined]
