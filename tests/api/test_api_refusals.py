"""Bad input is a sentence: what was given, what is allowed, what to do. Never a traceback, never a 500, nothing lost."""

from __future__ import annotations

from typing import Any

import pytest
from api_rig import Api, noise, png


def sentence(answer: Any, *words: str, status: int | None = None) -> dict[str, Any]:
    assert 400 <= answer.status_code < 500, answer.text
    assert status is None or answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) <= {"code", "message", "given", "allowed", "hint"} and error["message"].strip().endswith(
        (".", "?")
    )
    said = " ".join(str(v) for v in error.values()).lower()
    assert all(w.lower() in said for w in words), error
    assert "traceback" not in said and "fanlight/" not in said
    return error


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"model": "tinny"}, ("no model", "tinny", "tiny")),
        ({"explainer": "saliencey"}, ("no explainer", "did you mean saliency")),
        ({"input": "f" * 64}, ("no input", "upload")),
        ({"target": 3}, ("3 classes",)),
        ({"target": -1}, ("3 classes",)),
        ({"target": "lefft"}, ("left",)),
        ({"target": {"minus": [1]}}, ()),
        ({"target": {"minus": [1, 1]}}, ("difference",)),
        ({"target": {"class": 99}}, ("3 classes",)),
        ({"target": True}, ()),
        ({"target": [0]}, ()),
        ({"params": {"window": 10**9}, "explainer": "occlusion"}, ("window", "maximum")),
        ({"params": {"windoww": 8}, "explainer": "occlusion"}, ("no parameter", "window")),
        ({"params": {"window": "NaN"}, "explainer": "occlusion"}, ("window",)),
        ({"params": {"window": None}, "explainer": "occlusion"}, ("window",)),
        ({"params": []}, ()),
        ({"seed": -1}, ()),
        ({"seed": 2**63}, ()),
        ({"seed": 1.5}, ()),
        ({"surplus": 1}, ()),
    ],
)
def test_a_request_that_cannot_be_met_says_why(api: Api, spec: dict[str, Any], words: tuple[str, ...]) -> None:
    photo = api.upload(noise(1))["id"]
    sentence(api.ask(input=photo, **spec) if "input" not in spec else api.ask(**spec), *words)
    assert api.call("GET", "/explanations").json()["total"] == 0


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"x"', b'{"model": NaN}', b"[" * 100_000, b"\xff\xfe", b'{"a":' * 5000]
)
def test_a_body_that_is_no_request_says_so(api: Api, body: bytes) -> None:
    for path in ("/explanations", "/shares", "/interventions", "/live"):
        sentence(api.call("POST", path, content=body, headers={"content-type": "application/json"}))


def test_an_upload_without_a_file_and_a_file_that_is_no_picture(api: Api) -> None:
    sentence(api.call("POST", "/inputs"))
    sentence(api.call("POST", "/inputs", data={"file": "text"}))
    sentence(api.call("POST", "/inputs", files={"file": ("x.png", b"this is text")}), status=415)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/explanations?sort=drop%20table", ("newest",)),
        ("/explanations?limit=0", ("200",)),
        ("/explanations?limit=-5", ()),
        ("/explanations?limit=x", ()),
        ("/explanations?cursor=zzz", ("cursor",)),
        ("/explanations?cursor=WzEsIjIiXQ", ("cursor",)),
        ("/explanations/nope", ("no explanation",)),
        ("/jobs/nope", ("no job",)),
        ("/jobs?state=odd", ("queued",)),
        ("/inputs/nope", ("no input",)),
        ("/models/nope", ("no model",)),
        ("/datasets/nope/samples", ("no dataset",)),
        ("/artifacts/nope", ("no artifact",)),
        ("/artifacts/" + "0" * 64 + "/raw", ("no artifact",)),
        ("/nope", ("nothing at this address",)),
        ("/explanations/nope/card.png", ()),
    ],
)
def test_what_is_not_there_says_so(api: Api, path: str, words: tuple[str, ...]) -> None:
    sentence(api.call("GET", path), *words)


def test_pictures_refuse_ranges_that_cannot_be_drawn(api: Api) -> None:
    photo = api.upload(noise(2))
    record = api.explain(input=photo["id"])
    url = record["artifacts"][0]["url"].removeprefix("/api/v1")
    for query in ("cmap=rainbow", "lo=nan", "lo=inf", "lo=1&hi=0", "size=100000", "size=0"):
        sentence(api.call("GET", f"{url}/render.png?{query}"))
    for query in ("box=1,2,3", "box=a,b,c,d", "box=0,0,9999,9999", "box=5,5,5,5", "box=nan,0,1,1", "size=-1"):
        sentence(api.call("GET", f"/inputs/{photo['id']}/image.png?{query}"))


def test_interventions_and_live_edits_refuse_what_means_nothing(api: Api) -> None:
    photo = api.upload(noise(3))
    record = api.explain(input=photo["id"])
    for edits in ([], [{}], [{"mask_region": [0, 0, 9999, 9999]}], [{"mask_region": [1, 1, 1, 1]}], [{"mask_region": "all"}], [{"unknown": 1}],
                  [{"set_target": 99}], [{"mask_region": [0, 0, 5, 5], "set_target": 1}], [{"mask_region": [float(2**70), 0, 1, 1]}]):  # fmt: skip
        sentence(api.call("POST", "/interventions", json={"explanation": record["id"], "edits": edits}))
    answer = api.call(
        "POST", "/live", json={"session": "s", "explanation": record["id"], "edits": [{"set_target": 1}], "seq": 1}
    )
    sentence(answer, "without asking the model", "interventions")


def test_shares_refuse_what_cannot_be_shared(api: Api) -> None:
    record = api.explain(input=api.upload(noise(4))["id"])
    failed = api.explain(input=api.upload(png((255, 0, 0)))["id"])
    assert failed["state"] == "failed"
    one = [record["id"]]
    for body in (
        {"explanations": []},
        {"explanations": ["nope"]},
        {"explanations": [failed["id"]]},
        {"explanations": one, "expires_in_days": 0},
        {"explanations": one, "expires_in_days": 10**9},
        {"explanations": one * 17},
        {"explanations": one, "view": {"opacity": 7}},
    ):
        sentence(api.call("POST", "/shares", json=body))
    sentence(api.call("DELETE", "/shares/nope"))


def test_notes_and_tags_have_limits_and_are_never_markup(api: Api) -> None:
    record = api.explain(input=api.upload(noise(5), "<img src=x onerror=alert(1)>.png")["id"])
    for body in ({"title": "x" * 201}, {"tags": ["y" * 51]}, {"tags": [""]}, {"tags": ["t"] * 33}, {"unknown": 1}):
        sentence(api.call("PATCH", f"/explanations/{record['id']}", json=body))
    api.call("PATCH", f"/explanations/{record['id']}", json={"title": "<script>alert(1)</script>"})
    page = api.call("GET", f"/explanations/{record['id']}/export.html").text
    assert "<img src=x" not in page and "<script>alert" not in page


def test_a_full_queue_answers_429_with_when_to_come_back(tmp_path: Any) -> None:
    from api_rig import TOKEN, settings, started
    from fastapi.testclient import TestClient

    from fanlight.app import create

    app = create(settings(tmp_path, principal_limit=2), token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        photo = api.upload(noise(6))["id"]
        answers = [
            api.ask(wait=0, input=photo, explainer="kernel-shap", params={"samples": 4096, "patch": 8}, seed=n)
            for n in range(4)
        ]
        refused = [a for a in answers if a.status_code == 429]
        assert refused and all(1 <= int(a.headers["retry-after"]) <= 60 for a in refused)
        sentence(refused[0], "unfinished", status=429)


def test_hiding_what_the_model_never_sees_is_refused_with_the_box_that_it_sees(api: Api) -> None:
    record = api.explain(input=api.upload(noise(8, (200, 64)))["id"])  # the model sees a square in the middle
    x0, y0, x1, y1 = (round(v) for v in record["artifacts"][0]["meta"]["box"])
    assert x0 > 20
    body = {"explanation": record["id"], "edits": [{"mask_region": [0, 0, x0, 20]}]}
    error = sentence(api.call("POST", "/interventions", json=body), "outside", status=422)
    assert error["code"] == "outside_view" and error["allowed"] == [x0, y0, x1, y1]
    body["edits"] = [{"mask_region": [0, 0, x0 + 8, 20]}]
    assert api.call("POST", "/interventions", json=body).status_code in (201, 202)


def test_a_picture_is_not_compared_with_itself(api: Api) -> None:
    picture = api.upload(noise(9))["id"]
    error = sentence(api.ask(input=picture, target={"similar_to": picture}), "itself", status=422)
    assert error["code"] == "same_picture"
