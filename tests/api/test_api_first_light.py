"""From upload to share over the wire, and what happens when somebody else does it too."""

from __future__ import annotations

from typing import Any

from api_rig import TOKEN, Api, noise, png
from fastapi.testclient import TestClient

from fanlight.artifact import Artifact


def test_upload_explain_find_again_share_open_revoke(api: Api) -> None:
    photo = api.upload(noise(1), "my cat.png")
    assert (photo["width"], photo["height"], photo["name"]) == (64, 48, "my cat.png")
    record = api.explain(input=photo["id"], explainer="integrated-gradients")
    assert record["state"] == "succeeded" and record["prediction"][0]["probability"] > 0
    assert record["target"] == {"class": record["prediction"][0]["index"]}
    artifact = record["artifacts"][0]
    stored = Artifact.from_bytes(api.http.get(artifact["url"] + "/raw").content)
    assert stored.arrays["value"].shape == (64, 64)
    assert api.http.get(artifact["url"] + "/render.png").headers["content-type"] == "image/png"
    assert api.http.get(artifact["url"]).json()["legend"]["unit"] == artifact["unit"]

    found = api.call("GET", "/explanations?q=cat").json()
    assert [e["id"] for e in found["items"]] == [record["id"]] and found["total"] == 1
    assert api.call("GET", "/explanations?q=nothing-of-the-kind").json()["items"] == []

    trust = api.trusted(record["id"])
    assert (
        trust["state"] == "succeeded"
        and trust["floor"]
        and trust["interval"]["faithfulness"]["lo"] < trust["faithfulness"]
    )

    share = api.call("POST", "/shares", json={"explanations": [record["id"]], "expires_in_days": 7}).json()
    stranger = TestClient(api.http.app)
    page = stranger.get("/s/" + share["token"])
    assert (
        page.status_code == 200
        and "noindex" in page.headers["x-robots-tag"]
        and record["prediction"][0]["name"] in page.text
    )
    for name in ("preview.png", "0/overlay.png", "0/picture.png", "0/curves.png", "0/curves-dark.png"):
        assert stranger.get(f"/s/{share['token']}/{name}").headers["content-type"] == "image/png", name
    assert stranger.get("/api/v1/explanations").status_code == 401

    assert api.call("DELETE", f"/shares/{share['id']}").json()["revoked"]
    dead, never = stranger.get("/s/" + share["token"]), stranger.get("/s/" + "A" * 43)
    assert dead.status_code == never.status_code == 404 and dead.content == never.content
    assert stranger.get(f"/s/{share['token']}/0/overlay.png").content == dead.content


def test_equal_requests_share_one_record_whether_the_target_is_named_or_not(api: Api) -> None:
    photo = api.upload(noise(2))
    first = api.explain(input=photo["id"])
    top = first["prediction"][0]
    for target in (None, top["index"], top["name"], top["name"].upper(), {"class": top["index"]}):
        assert api.explain(input=photo["id"], target=target)["id"] == first["id"]
    assert api.explain(input=photo["id"], target={"minus": [0, 1]})["id"] != first["id"]
    assert api.explain(input=photo["id"], seed=1)["id"] != first["id"]


def test_defaults_written_out_are_the_same_request(api: Api) -> None:
    photo = api.upload(noise(3))
    schema = {e["name"]: e for e in api.call("GET", "/explainers").json()}["occlusion"]["params"]["properties"]
    first = api.explain(input=photo["id"], explainer="occlusion")
    defaults = {k: v["default"] for k, v in schema.items()}
    assert api.explain(input=photo["id"], explainer="occlusion", params=defaults)["id"] == first["id"]


def test_the_same_picture_in_another_file_is_the_same_input(api: Api) -> None:
    import io

    from PIL import Image

    blob = noise(4)
    out = io.BytesIO()
    Image.open(io.BytesIO(blob)).save(out, "BMP")
    assert api.upload(blob, "a.png")["id"] == api.upload(out.getvalue(), "b.bmp")["id"]


def test_every_available_method_works_and_says_what_it_found(api: Api) -> None:
    photo = api.upload(noise(5))
    model = api.call("GET", "/models/tiny").json()
    assert sum(method["available"] for method in model["explainers"]) >= 15
    for method in model["explainers"]:
        if not method["available"]:
            refused = api.ask(input=photo["id"], explainer=method["name"])
            assert refused.status_code == 422 and method["reason"] in refused.json()["error"]["message"]
            continue
        record = api.explain(input=photo["id"], explainer=method["name"])
        assert record["state"] == "succeeded", (method, record["error"])
        assert record["summary"] and record["artifacts"] and record["provenance"]["versions"]["torch"]
        for picture in ("card.png", "overlay.png", "preview.png"):
            assert api.call("GET", f"/explanations/{record['id']}/{picture}").headers["content-type"] == "image/png"
        page = api.call("GET", f"/explanations/{record['id']}/export.html")
        assert "data:image/png;base64," in page.text and "http://" not in page.text.replace("http://www.w3.org", "")


def test_recomputing_gives_the_same_bytes_and_supersedes(api: Api) -> None:
    photo = api.upload(noise(6))
    first = api.explain(input=photo["id"], explainer="kernel-shap")
    again = api.finished(api.call("POST", f"/explanations/{first['id']}/recompute?wait=10").json()["id"])
    assert again["id"] != first["id"] and again["recomputes"] == first["id"]
    assert again["verified"] == {"equal": True, "largest_difference": 0.0}
    assert api.call("GET", f"/explanations/{first['id']}").json()["superseded_by"] == again["id"]
    assert [e["id"] for e in api.call("GET", "/explanations").json()["items"]] == [again["id"]]
    assert api.explain(input=photo["id"], explainer="kernel-shap")["id"] == again["id"]


def test_hiding_a_part_makes_a_child_that_replays_to_the_same_numbers(api: Api) -> None:
    photo = api.upload(noise(7))
    parent = api.explain(input=photo["id"])
    body = {"explanation": parent["id"], "edits": [{"mask_region": [0, 0, 32, 48]}], "note": "without the left half"}
    child = api.finished(api.call("POST", "/interventions?wait=10", json=body).json()["id"])
    assert child["state"] == "succeeded" and child["parent"] == parent["id"] and child["target"] == parent["target"]
    logits = [{p["index"]: p["logit"] for p in r["prediction"]} for r in (parent, child)]
    assert logits[0] != logits[1]
    assert api.call("POST", "/interventions?wait=10", json=body).json()["id"] == child["id"]


def test_live_edits_are_answered_from_what_is_stored_and_only_the_latest(api: Api) -> None:
    photo = api.upload(noise(8))
    record = api.explain(input=photo["id"], explainer="kernel-shap", target=0)

    def live(seq: int, target: Any) -> Any:
        body = {"session": "s", "explanation": record["id"], "edits": [{"set_target": target}], "seq": seq}
        return api.call("POST", "/live", json=body)

    panel = live(5, "right").json()
    assert panel["seq"] == 5 and panel["target"] == {"class": 1} and panel["image"].startswith("data:image/png;base64,")
    assert live(4, 2).status_code == 409 and live(4, 2).json()["error"]["code"] == "superseded"
    saved = api.explain(input=photo["id"], explainer="kernel-shap", target=1)
    table = [api.http.get(a["url"]).json() for a in saved["artifacts"] if a["kind"] == "region-scores"][0]
    assert panel["summary"] == table["sentence"] and panel["legend"]["hi"] == table["legend"]["hi"]


def test_deleting_names_and_revokes_the_shares(api: Api) -> None:
    photo = api.upload(noise(9))
    record = api.explain(input=photo["id"])
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    assert api.call("DELETE", f"/explanations/{record['id']}").json() == {
        "id": record["id"],
        "revoked_shares": [share["id"]],
    }
    assert TestClient(api.http.app).get("/s/" + share["token"]).status_code == 404
    assert api.call("GET", f"/explanations/{record['id']}").status_code == 404
    assert api.explain(input=photo["id"])["id"] != record["id"]


def test_tags_notes_and_titles_are_found(api: Api) -> None:
    record = api.explain(input=api.upload(noise(10))["id"])
    changed = api.call(
        "PATCH",
        f"/explanations/{record['id']}",
        json={"tags": ["odd", "odd", "to check"], "note": "Look again", "title": "Strange"},
    )
    assert changed.json()["tags"] == ["odd", "to check"]
    for query in ("q=strange", "q=look+again", "tag=odd", "q=odd"):
        assert api.call("GET", f"/explanations?{query}").json()["total"] == 1, query
    assert {"value": "odd", "label": "odd", "count": 1} in api.call("GET", "/explanations").json()["facets"]["tag"]


def test_pages_of_the_gallery_follow_each_other_without_gaps(api: Api) -> None:
    photo = api.upload(noise(11))["id"]
    made = [api.explain(input=photo, explainer="random", seed=n)["id"] for n in range(7)]
    seen: list[str] = []
    cursor = ""
    while True:
        page = api.call("GET", f"/explanations?limit=3{cursor}").json()
        seen += [e["id"] for e in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == made[::-1] and page["total"] == 7


def test_two_people_share_a_computation_but_not_the_right_to_cancel_it(api: Api) -> None:
    app = api.http.app
    one, two = TestClient(app), TestClient(app)
    for person in (one, two):
        assert person.get("/?token=" + TOKEN, follow_redirects=False).status_code == 303
        person.headers["sec-fetch-site"] = "same-origin"
    photo = api.upload(noise(12))["id"]
    long = {"model": "tiny", "input": photo, "explainer": "kernel-shap", "params": {"samples": 4096, "patch": 8}}
    a = one.post("/api/v1/explanations", json=long).json()
    other = {**long, "seed": 1}
    b = two.post("/api/v1/explanations", json=other).json()
    refused = one.delete(f"/api/v1/jobs/{b['job']}")
    assert refused.status_code == 403 and refused.json()["error"]["code"] == "not_yours"
    assert two.post("/api/v1/explanations", json=long).json()["id"] == a["id"]
    one.delete(f"/api/v1/jobs/{a['job']}")
    assert api.finished(a["id"])["state"] == "succeeded", "the second person still waits for it"


def test_a_model_that_misbehaves_gives_a_failed_job_with_a_sentence(api: Api) -> None:
    for colour, code, word in (
        ((255, 0, 0), "model_failed", "cannot see red"),
        ((0, 255, 0), "not_finite", "not finite"),
        ((0, 0, 255), None, "training mode"),
    ):
        record = api.explain(input=api.upload(png(colour))["id"])
        assert record["state"] == "failed" and word in record["error"]["message"], record["error"]
        assert code is None or record["error"]["code"] == code
    assert api.explain(input=api.upload(noise(13))["id"])["state"] == "succeeded", "the model works afterwards"
