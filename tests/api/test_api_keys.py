"""API keys: shown once, stored hashed, closed unless a scope opens it; and the log of who did what."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise
from fastapi import Depends
from fastapi.testclient import TestClient
from sqlalchemy import update

from fanlight.api.access import scoped
from fanlight.service.context import DECLARED, SCOPES
from fanlight.store.tables import api_key

OPEN = {"/healthz", "/readyz", "/s/{token}", "/s/{token}/preview.png", "/s/{token}/{n}/{name}"}
Opened = Callable[..., Api]


def operations(api: Api) -> list[tuple[str, str, list[str]]]:
    """(method, path, scopes) of every operation that is not public."""
    paths = api.http.app.openapi()["paths"]  # type: ignore[attr-defined]
    return [
        (method, path, [s for need in operation.get("security", []) for s in need.get("token", [])])
        for path, some in paths.items()
        for method, operation in some.items()
        if path not in OPEN
    ]


@pytest.fixture
def opened(api: Api) -> Opened:
    """`opened("read", "share")`: the server as the holder of such a key sees it; `.key` is what was answered."""

    def make(*scopes: str, **body: Any) -> Api:
        answer = api.call("POST", "/keys", json={"name": "a program", "scopes": list(scopes), **body})
        assert answer.status_code == 201, answer.text
        made = Api(TestClient(api.http.app, headers={"Authorization": f"Bearer {answer.json()['key']}"}))
        made.key = answer.json()  # type: ignore[attr-defined]
        return made

    return make


def test_every_operation_declares_exactly_one_scope(api: Api) -> None:
    found = operations(api)
    assert len(found) > 50
    assert [(m, p, s) for m, p, s in found if len(s) != 1 or s[0] not in DECLARED] == []


def test_reading_declares_reading_and_changing_does_not(api: Api) -> None:
    for method, path, (scope,) in operations(api):
        if method != "get":
            assert scope != "read", (method, path)
    admin = {path for _, path, (scope,) in operations(api) if scope == "admin"}
    members = {f"/api/v1/workspaces/{{id}}{rest}" for rest in ("", "/members", "/members/{person}")}
    derived = {"/api/v1/derivations/{id}", "/api/v1/models/{id}/derivations"}
    assert admin == {"/api/v1/keys", "/api/v1/keys/{id}", "/api/v1/audit"} | members | derived
    assert {path for _, path, (scope,) in operations(api) if scope == "self"} == {
        "/api/v1/me",
        "/api/v1/me/workspace",
        "/api/v1/me/password",
        "/api/v1/me/workspaces/{id}",
    }


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_opens_what_its_scope_says_and_nothing_else(api: Api, opened: Opened, scope: str) -> None:
    key = opened(scope)
    for method, path, (needed,) in operations(api):
        if path.endswith("/events"):
            continue  # a stream does not end; it is behind the same dependency
        answer = key.http.request(method, path.replace("{n}", "0").replace("{", "").replace("}", ""))
        closed = answer.status_code == 403 and answer.json()["error"]["code"] == "scope"
        opens = needed == "self" or (needed in SCOPES and scope in (needed, "admin"))
        assert closed == (not opens), (method, path, answer.status_code)
        assert answer.status_code != 401 and answer.status_code < 500


def test_an_operation_without_a_scope_is_closed_to_everybody(api: Api) -> None:
    app = api.http.app
    app.add_api_route("/api/v1/forgotten", lambda: {"secret": 1}, dependencies=[Depends(scoped)])  # type: ignore[attr-defined]
    app.router.routes.insert(0, app.router.routes.pop())  # type: ignore[attr-defined]
    answer = api.call("GET", "/forgotten")
    assert answer.status_code == 403 and "declares no scope" in answer.json()["error"]["message"]


def test_a_program_explains_and_reads_with_its_key_and_is_named(api: Api, opened: Opened) -> None:
    key = opened("read", "explain")
    record = key.explain(input=key.upload(noise(1))["id"])
    assert record["state"] == "succeeded" and record["principal"] == f"key:{key.key['id']}"  # type: ignore[attr-defined]
    refused = key.call("POST", "/shares", json={"explanations": [record["id"]]})
    assert refused.status_code == 403 and "share" in refused.json()["error"]["message"]


def test_a_key_opens_no_page(api: Api, opened: Opened) -> None:
    key = opened("admin")
    for path in ("/", "/settings", "/_dash-layout"):
        assert key.http.get(path).status_code == 403
    assert key.http.post("/_dash-update-component", json={}).status_code == 403
    assert key.http.get("/metrics").status_code == 200
    assert key.http.get("/?token=" + key.key["key"], follow_redirects=False).status_code == 401  # type: ignore[attr-defined]


def test_a_revoked_and_an_expired_key_open_nothing_at_once(api: Api, opened: Opened) -> None:
    key, late = opened("read"), opened("read", expires_in_days=1)
    assert key.call("GET", "/models").status_code == late.call("GET", "/models").status_code == 200
    for _ in range(2):
        assert api.call("DELETE", f"/keys/{key.key['id']}").status_code == 200  # type: ignore[attr-defined]
    api.http.app.state.context.db.write(  # type: ignore[attr-defined]
        lambda c: c.execute(update(api_key).where(api_key.c.id == late.key["id"]).values(expires=1))  # type: ignore[attr-defined]
    )
    answers = [k.call("GET", "/models") for k in (key, late)]
    assert [a.status_code for a in answers] == [401, 401]
    unknown = TestClient(api.http.app).get(
        "/api/v1/models", headers={"Authorization": f"Bearer fl_{'x' * 16}_{'y' * 43}"}
    )
    assert {a.text for a in answers} == {unknown.text}, "which of the three it is, is nobody's business"


@pytest.mark.parametrize(
    "cut", [lambda k: k[:-1], lambda k: k + "x", lambda k: k.upper(), lambda k: "fl_", lambda k: k[:20]]
)
def test_what_is_nearly_a_key_is_none(api: Api, opened: Opened, cut: Callable[[str], str]) -> None:
    given = cut(opened("read").key["key"])  # type: ignore[attr-defined]
    assert (
        TestClient(api.http.app).get("/api/v1/models", headers={"Authorization": f"Bearer {given}"}).status_code == 401
    )


def test_only_a_hash_is_stored_and_the_key_is_shown_once(api: Api, opened: Opened, tmp_path: Path) -> None:
    key = opened("read").key  # type: ignore[attr-defined]
    secret = key["key"].rsplit("_", 1)[1] if key["key"].count("_") == 2 else key["key"][20:]
    with closing(sqlite3.connect(tmp_path / "data" / "fanlight.sqlite")) as db:
        dump = "\n".join(db.iterdump())
    assert key["id"] in dump and secret not in dump
    assert secret not in api.call("GET", "/keys").text and secret not in api.call("GET", "/audit").text


def test_a_key_hands_on_no_more_than_it_has_and_use_is_noted(api: Api, opened: Opened) -> None:
    reader = opened("read")
    assert reader.call("POST", "/keys", json={"name": "x", "scopes": ["admin"]}).status_code == 403
    assert reader.call("GET", "/models").status_code == 200
    (shown,) = [k for k in api.call("GET", "/keys").json() if k["id"] == reader.key["id"]]  # type: ignore[attr-defined]
    assert shown["used"] is not None and shown["scopes"] == ["read"] and "key" not in shown


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"scopes": ["read"], "name": ""},
        {"scopes": ["read"], "expires_in_days": 0},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(api: Api, body: dict[str, Any]) -> None:
    assert api.call("POST", "/keys", json={"name": "x", **body}).status_code == 422


def test_the_log_says_who_did_what_to_which_record(api: Api, opened: Opened) -> None:
    key = opened("read", "explain", "share")
    ident = key.key["id"]  # type: ignore[attr-defined]
    photo = key.upload(noise(2))["id"]
    record = key.explain(input=photo)
    share = key.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    key.call("PATCH", f"/explanations/{record['id']}", json={"note": "private words"})
    key.call("DELETE", f"/shares/{share['id']}")
    key.call("DELETE", f"/explanations/{record['id']}")
    api.call("DELETE", f"/keys/{ident}")
    found = api.call("GET", "/audit").json()
    did = [(e["principal"], e["action"], e["subject"]) for e in found["items"]][::-1]
    assert did == [
        ("token", "key.create", ident),
        (f"key:{ident}", "input.create", photo),
        (f"key:{ident}", "explanation.create", record["id"]),
        (f"key:{ident}", "share.create", share["id"]),
        (f"key:{ident}", "explanation.change", record["id"]),
        (f"key:{ident}", "share.revoke", share["id"]),
        (f"key:{ident}", "explanation.delete", record["id"]),
        ("token", "key.revoke", ident),
    ]
    assert all(0 < e["time"] for e in found["items"]) and found["total"] == 8
    text = api.call("GET", "/audit").text
    assert [s for s in (share["token"], "private words", TOKEN) if s in text] == []


def test_the_log_is_paged_and_filtered(api: Api, opened: Opened) -> None:
    idents = [opened("read").key["id"] for _ in range(5)]  # type: ignore[attr-defined]
    first = api.call("GET", "/audit?limit=3").json()
    rest = api.call("GET", f"/audit?limit=3&cursor={first['next_cursor']}").json()
    assert [e["subject"] for e in first["items"] + rest["items"]] == idents[::-1] and rest["next_cursor"] is None
    assert [e["subject"] for e in api.call("GET", f"/audit?subject={idents[2]}").json()["items"]] == [idents[2]]
    assert api.call("GET", "/audit?action=share").json()["items"] == []
    assert len(api.call("GET", "/audit?action=key").json()["items"]) == 5
    assert api.call("GET", "/audit?action=%25").json()["items"] == []
    assert api.call("GET", "/audit?cursor=x").status_code == 422
