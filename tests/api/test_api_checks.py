"""Measuring a map further over the wire: promised once, kept with the record, in shares and files."""

from __future__ import annotations

import html
import re
import time
from typing import Any

import pytest
from api_rig import Api, noise
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from fanlight.artifact import Artifact
from fanlight.quality import trust
from fanlight.store.tables import explanation, floor, job

ALL = ["stability", "randomisation", "agreement"]


def ask(api: Api, ident: str, measures: list[str] | None) -> Any:
    return api.call("POST", f"/explanations/{ident}/trust", json={"measures": measures})


def checked(api: Api, ident: str, measures: list[str]) -> dict[str, Any]:
    """The trust record once all of these are over."""
    assert ask(api, ident, measures).status_code in (200, 202)
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found: dict[str, Any] = api.call("GET", f"/explanations/{ident}/trust").json()
        if all(found["checks"][m]["state"] != "pending" for m in measures):
            return found
        time.sleep(0.05)
    raise AssertionError(f"{ident} was not checked in time: {found['checks']}")


def jobs(api: Api, ident: str) -> list[Any]:
    db = api.http.app.state.context.db
    return db.read(lambda c: c.execute(select(job).where(job.c.explanation == ident, job.c.kind == "check")).all())


@pytest.fixture
def record(api: Api) -> dict[str, Any]:
    return api.explain(input=api.upload(noise(1), "my cat.png")["id"])


def test_all_checks_are_made_and_kept_beside_the_faithfulness(api: Api, record: dict[str, Any]) -> None:
    first = ask(api, record["id"], ALL)
    assert first.status_code == 202 and all(first.json()["checks"][m]["state"] == "pending" for m in ALL)
    found = checked(api, record["id"], ALL)
    for name in ALL:
        check = found["checks"][name]
        assert check["state"] == "succeeded", check
        assert check["found"]["lo"] <= check["found"]["value"] <= check["found"]["hi"]
        assert set(check["floors"]) == {"random", "edges"} and check["verdict"] in ("good", "plain", "warn")
        assert check["seconds"] > 0 and check["forwards"] > 0 and check["seeds"] and check["versions"]["torch"]
    curves = found["checks"]["randomisation"]["curves"]
    assert Artifact.from_bytes(api.http.get(curves["url"] + "/raw").content).kind == "curves"
    assert api.trusted(record["id"])["faithfulness"] is not None, "and faithfulness is measured as ever"
    assert set(api.call("GET", f"/explanations/{record['id']}").json()["trust"]["checks"]) == set(ALL)


def test_asking_twice_measures_once(api: Api, record: dict[str, Any]) -> None:
    for _ in range(3):
        ask(api, record["id"], ["stability"])
    checked(api, record["id"], ["stability"])
    again = ask(api, record["id"], ["stability"])
    assert again.status_code == 200 and again.json()["checks"]["stability"]["state"] == "succeeded"
    assert len(jobs(api, record["id"])) == 1


def test_measuring_faithfulness_again_keeps_the_checks(api: Api, record: dict[str, Any]) -> None:
    before = checked(api, record["id"], ["agreement"])["checks"]
    api.trusted(record["id"])
    db = api.http.app.state.context.db
    row = db.read(lambda c: c.execute(select(explanation.c.trust).where(explanation.c.id == record["id"])).scalar())
    gone = {"state": "unavailable", "reason": "x", "checks": row["checks"]}
    db.write(lambda c: c.execute(update(explanation).where(explanation.c.id == record["id"]).values(trust=gone)))
    assert ask(api, record["id"], None).status_code == 202
    assert api.trusted(record["id"])["checks"] == before


def test_a_check_of_an_older_definition_is_made_again(api: Api, record: dict[str, Any]) -> None:
    checked(api, record["id"], ["agreement"])
    db = api.http.app.state.context.db

    def old(conn: Any) -> None:
        row = conn.execute(select(explanation.c.trust).where(explanation.c.id == record["id"])).scalar()
        row["checks"]["agreement"]["version"] = "0"
        conn.execute(update(explanation).where(explanation.c.id == record["id"]).values(trust=row))

    db.write(old)
    assert ask(api, record["id"], ["agreement"]).status_code == 202
    assert checked(api, record["id"], ["agreement"])["checks"]["agreement"]["version"] != "0"
    assert len(jobs(api, record["id"])) == 2


def test_a_cancelled_check_is_as_if_never_asked_for(api: Api, record: dict[str, Any]) -> None:
    slow = api.explain(
        input=record["input"], explainer="kernel-shap", params={"samples": 4096, "patch": 8}, seed=3, wait=30
    )
    ident = slow["id"]
    name = ask(api, ident, ["randomisation"]).json()["checks"]["randomisation"]["job"]
    assert api.call("DELETE", f"/jobs/{name}").status_code == 200
    end = time.monotonic() + 60
    while "randomisation" in api.call("GET", f"/explanations/{ident}/trust").json()["checks"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert api.call("GET", f"/jobs/{name}").json()["state"] == "cancelled"


def test_what_can_be_measured_and_its_cost_are_told(api: Api, record: dict[str, Any]) -> None:
    offered = api.call("GET", f"/explanations/{record['id']}/trust/measures").json()
    assert [m["name"] for m in offered] == ALL
    assert all(m["available"] and m["passes"] > 0 and m["seconds"] >= 0 and m["title"] and m["about"] for m in offered)
    found = checked(api, record["id"], ALL)["checks"]
    for m in offered:
        # a backward pass counts in the forecast and not in what was asked, and a method may stop early
        assert 0 < found[m["name"]]["forwards"] <= 1.5 * m["passes"], m


def test_after_the_method_changed_the_map_cannot_be_checked(api: Api, record: dict[str, Any]) -> None:
    db = api.http.app.state.context.db
    older = update(explanation).where(explanation.c.id == record["id"]).values(explainer_version="0")
    db.write(lambda c: c.execute(older))
    refused = ask(api, record["id"], ["stability"])
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "method_changed"
    offered = api.call("GET", f"/explanations/{record['id']}/trust/measures").json()
    assert not any(m["available"] for m in offered) and "has changed since" in offered[0]["reason"]


@pytest.mark.parametrize(
    ("measures", "code"),
    [(["speed"], "unknown_measure"), (["stability", "insertion"], "measures_together"), ([], "measures_together")],
)
def test_measures_that_do_not_exist_or_go_together_are_refused(
    api: Api, record: dict[str, Any], measures: list[str], code: str
) -> None:
    refused = ask(api, record["id"], measures)
    assert refused.status_code == 422 and refused.json()["error"]["code"] == code
    assert set(ALL) < set(refused.json()["error"]["allowed"])


def test_deleting_the_record_stops_its_checks(api: Api, record: dict[str, Any]) -> None:
    slow = api.explain(
        input=record["input"], explainer="kernel-shap", params={"samples": 4096, "patch": 8}, seed=4, wait=30
    )
    ask(api, slow["id"], ["randomisation"])
    assert api.call("DELETE", f"/explanations/{slow['id']}").status_code == 200
    assert checked(api, record["id"], ["stability"])["checks"]["stability"]["state"] == "succeeded"


def test_a_check_of_the_similarity_to_another_picture(api: Api) -> None:
    other = api.upload(noise(30))["id"]
    one = api.explain(input=api.upload(noise(31))["id"], target={"similar_to": other})
    found = checked(api, one["id"], ALL)["checks"]
    assert [found[m]["state"] for m in ALL] == ["succeeded"] * 3, found


def test_edges_stand_beside_the_faithfulness_and_a_floor_of_an_older_definition_is_replaced(
    api: Api, record: dict[str, Any]
) -> None:
    assert set(api.trusted(record["id"])["edges"]) == {"insertion", "deletion", "faithfulness"}
    db = api.http.app.state.context.db

    def floors(conn: Any) -> list[Any]:
        return list(conn.execute(select(floor.c.record)).scalars())

    (kept,) = db.read(floors)
    assert kept["version"] == trust.FLOOR and len(kept["edges"]["insertion"]) == 1
    old = {k: v for k, v in kept.items() if k != "edges"} | {"version": 1}
    db.write(lambda c: c.execute(update(floor).values(record=old)))
    later = api.explain(input=record["input"], explainer="grad-cam")
    assert api.trusted(later["id"])["edges"] == api.trusted(record["id"])["edges"]
    assert db.read(floors) == [kept]


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.S)).split())


def test_shares_and_files_carry_the_checks(api: Api, record: dict[str, Any]) -> None:
    found = checked(api, record["id"], ALL)
    api.trusted(record["id"])
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    pages = [
        text(TestClient(api.http.app).get(f"/s/{share['token']}").text),
        text(api.call("GET", f"/explanations/{record['id']}/export.html").text),
    ]
    for page in pages:
        for title in ("Stability", "Untrained network", "Agreement"):
            assert title in page
        assert "edges alone" in page and f"{found['checks']['stability']['found']['value']:.2f}" in page.replace(
            "−", "-"
        )
    kept = api.call("GET", f"/explanations/{record['id']}/export.json").json()
    assert set(kept["checks"]) == set(ALL) and set(kept["explanation"]["trust"]["checks"]) == set(ALL)
    printed = api.call("GET", f"/explanations/{record['id']}/export.pdf")
    assert printed.status_code == 200 and printed.content.startswith(b"%PDF")
