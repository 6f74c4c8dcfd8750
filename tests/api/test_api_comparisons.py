"""Comparisons over the wire: agreement, the difference as a map, and what cannot be compared."""

from __future__ import annotations

import numpy as np
from api_rig import Api, noise, png

from fanlight.artifact import Artifact


def stored(api: Api, record: dict) -> np.ndarray:
    return Artifact.from_bytes(api.http.get(record["artifacts"][0]["url"] + "/raw").content).arrays["value"]


def test_agreement_and_difference_of_two_targets(api: Api) -> None:
    photo = api.upload(noise(1))["id"]
    a, b = (api.explain(input=photo, explainer="integrated-gradients", target=t) for t in (0, 1))
    found = api.call("GET", f"/comparisons?ids={a['id']},{b['id']}").json()
    assert found["explanations"] == [a["id"], b["id"]] and found["comparable"] and found["same_picture"]
    matrix = np.array(found["agreement"], float)
    assert np.allclose(np.diag(matrix), 1) and matrix[0, 1] == matrix[1, 0] and -1 <= matrix[0, 1] < 1
    assert found["sentence"].startswith("Map 1 and map 2")
    base = f"/comparisons/{a['id']}/{b['id']}"
    raw = Artifact.from_bytes(api.call("GET", base + "/raw").content).arrays["value"]
    assert np.allclose(raw, stored(api, a) - stored(api, b), atol=1e-7)
    told = api.call("GET", base).json()
    assert told["legend"]["hi_label"] == "first higher" and "higher" in told["sentence"] and told["table"]["rows"]
    assert api.call("GET", base + "/render.png").content.startswith(b"\x89PNG")


def test_different_pictures_and_units_are_said(api: Api) -> None:
    one = api.explain(input=api.upload(noise(1))["id"], explainer="integrated-gradients")
    two = api.explain(input=api.upload(noise(2))["id"], explainer="saliency")
    found = api.call("GET", f"/comparisons?ids={one['id']},{two['id']}").json()
    assert not found["same_picture"] and not found["comparable"]
    assert "own scale" in api.call("GET", f"/comparisons/{one['id']}/{two['id']}").json()["meta"]["unit"]


def test_what_cannot_be_compared_is_a_sentence(api: Api) -> None:
    photo = api.upload(noise(1))["id"]
    made = [api.explain(input=photo, seed=s)["id"] for s in range(5)]
    assert api.call("GET", f"/comparisons?ids={made[0]}").status_code == 422
    assert api.call("GET", f"/comparisons?ids={made[0]},{made[0]}").status_code == 422
    assert api.call("GET", f"/comparisons?ids={','.join(made)}").status_code == 422
    failed = api.explain(input=api.upload(png((255, 0, 0)))["id"])["id"]
    answer = api.call("GET", f"/comparisons?ids={made[0]},{failed}")
    assert answer.status_code == 409 and "failed" in answer.json()["error"]["message"]
    api.call("DELETE", f"/explanations/{made[1]}")
    answer = api.call("GET", f"/comparisons?ids={made[0]},{made[1]}")
    assert answer.status_code == 404 and "deleted" in answer.json()["error"]["hint"]
