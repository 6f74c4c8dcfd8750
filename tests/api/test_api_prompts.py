"""Prompts as inputs: the same words are the same input, they stand as a card, and only a model that draws takes them."""

from __future__ import annotations

import io
from typing import Any

import pytest
from api_rig import noise
from PIL import Image


def prompt(api: Any, value: Any, status: int = 201) -> Any:
    answer = api.call("POST", "/inputs", json={"kind": "prompt", "value": value})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_the_same_words_are_the_same_input(api: Any) -> None:
    first = prompt(api, "a red  disc ")
    again = prompt(api, {"text": "a red disc"})
    assert first["id"] == again["id"] and first["kind"] == "prompt" and first["text"] == "a red disc"
    assert prompt(api, "a blue disc")["id"] != first["id"]
    found = api.call("GET", f"/inputs/{first['id']}").json()
    assert found["text"] == "a red disc" and found["picture"] is None


def test_it_stands_as_a_card_with_its_words(api: Any) -> None:
    made = prompt(api, "an owl " * 30)
    for way in ("thumbnail.png", "image.png"):
        picture = Image.open(io.BytesIO(api.call("GET", f"/inputs/{made['id']}/{way}").content)).convert("L")
        dark = sum(picture.histogram()[:128])
        assert 200 < dark < 0.5 * picture.width * picture.height, "there is text on it"


def test_a_prompt_may_have_a_picture_of_its_own(api: Any) -> None:
    picture = api.upload(noise(5))
    made = prompt(api, {"text": "a bird", "picture": picture["id"]})
    assert made["picture"] == picture["id"] and (made["width"], made["height"]) == (picture["width"], picture["height"])
    assert made["id"] != prompt(api, "a bird")["id"]
    one, two = (api.call("GET", f"/inputs/{i}/image.png?size=64").content for i in (made["id"], picture["id"]))
    assert one == two


def test_what_is_no_prompt_is_refused_in_a_sentence(api: Any) -> None:
    own = prompt(api, "a bird")["id"]
    cases: list[tuple[Any, int, str]] = [
        ("   ", 422, "empty_prompt"),
        ({"text": "a bird", "picture": "0" * 64}, 404, "unknown_input"),
        ({"text": "a bird", "picture": own}, 422, "wrong_kind"),
        ("x" * 2001, 422, ""),
        ({"text": "a", "more": 1}, 422, ""),
        (3, 422, ""),
    ]
    for value, status, code in cases:
        error = prompt(api, value, status)["error"]
        assert error["message"] and (not code or error["code"] == code), (value, error)
    assert "at most 2000 characters" in prompt(api, "x" * 2001, 422)["error"]["message"]
    assert "NUL" in prompt(api, "a \0 bird", 422)["error"]["message"]
    for body in ({"kind": "video", "value": "x"}, {"value": "x"}, [], "prompt"):
        assert api.call("POST", "/inputs", json=body).status_code == 422
    assert (
        api.call("POST", "/inputs", content=b"x" * 100_000, headers={"content-type": "application/json"}).status_code
        == 413
    )
    assert api.call("POST", "/inputs").json()["error"]["code"] == "no_file"


@pytest.mark.parametrize("explainer", ["saliency", "occlusion"])
def test_an_image_classifier_takes_no_prompt(api: Any, explainer: str) -> None:
    answer = api.ask(input=prompt(api, "a red disc")["id"], explainer=explainer)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "wrong_kind"
    assert "takes a picture" in answer.json()["error"]["message"]


def test_every_body_is_read_as_strictly_as_a_prompt(api: Any) -> None:
    paths = api.http.app.openapi()["paths"]
    asked = [
        (method, path)
        for path, some in paths.items()
        for method, operation in some.items()
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    ]
    assert len(asked) > 10
    for method, path in asked:
        answer = api.http.request(method, path.replace("{", "").replace("}", ""), json={"kind": "\0"})
        assert answer.status_code == 422 and "NUL" in answer.json()["error"]["message"], (method, path, answer.text)
