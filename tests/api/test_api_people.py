"""Accounts and sessions: who gets in by name, what nobody learns at the door, and how every way in ends."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from api_rig import TOKEN, Api
from fastapi.testclient import TestClient
from people_rig import FETCH, PASSWORD, account, browser, entered, founded, login
from sqlalchemy import select, update

from fanlight.service import entry, passwords
from fanlight.service.throttle import Throttle
from fanlight.store.people import person, session

OTHER = "nine loud sparrows"


def wrong(answer: Any) -> bool:
    return answer.status_code == 401 and "do not go together" in answer.text


def database(api: Api) -> Any:
    return api.http.app.state.context.db  # type: ignore[attr-defined]


def test_without_accounts_the_door_asks_for_the_token_alone(api: Api) -> None:
    page = browser(api).get("/", headers={"accept": "text/html"})
    assert page.status_code == 401 and 'name="token"' in page.text and 'name="password"' not in page.text
    account(api, "ann")
    page = browser(api).get("/", headers={"accept": "text/html"}).text
    assert 'name="password"' in page and 'name="token"' in page


def test_a_person_logs_in_by_name_and_is_themselves(api: Api) -> None:
    founded(api, "default", ann="editor")
    ann = entered(api, " Ann ")
    me = ann.call("GET", "/me").json()
    assert (me["name"], me["workspace"], me["role"], me["operator"]) == ("ann", "default", "editor", False)
    assert me["scopes"] == ["explain", "read", "share"] and me["principal"].startswith("person:")
    assert api.call("GET", "/me").json() == {
        "principal": "token", "name": "", "workspace": "default", "workspace_name": "Default", "role": None,
        "scopes": ["admin", "explain", "read", "share"], "operator": True, "workspaces": [],
    }  # fmt: skip


def test_the_cookie_is_closed_to_scripts_and_other_sites_and_holds_nothing(api: Api) -> None:
    ident = account(api, "ann")["id"]
    plain = login(browser(api), "ann").headers.get_list("set-cookie")[0]
    assert plain.startswith("fanlight_session_") and "Secure" not in plain
    tls = login(browser(api), "ann", **{"x-forwarded-proto": "https"}).headers.get_list("set-cookie")[0]
    assert tls.startswith("__Host-fanlight_session_") and "; Secure" in tls and "Path=/;" in tls and "Domain" not in tls
    for cookie in (plain, tls):
        assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Max-Age=1209600" in cookie
        assert ident not in cookie and "ann" not in cookie.split("fanlight_session_")[1]


def test_over_tls_a_cookie_without_the_prefix_is_none(api: Api) -> None:
    """Another host of the domain can set such a cookie, but not one that begins with __Host-."""
    founded(api, "default", ann="viewer")
    client = entered(api, "ann").http
    assert client.get("/api/v1/me").status_code == 200
    assert client.get("/api/v1/me", headers={"x-forwarded-proto": "https"}).status_code == 401


def test_each_login_has_a_secret_of_its_own_and_ends_the_one_before(api: Api) -> None:
    founded(api, "default", ann="viewer")
    client = browser(api)
    login(client, "ann")
    first = dict(client.cookies)
    login(client, "ann")
    assert dict(client.cookies) != first
    old = TestClient(api.http.app, cookies=first)
    assert old.get("/api/v1/me").status_code == 401 and client.get("/api/v1/me").status_code == 200


def test_a_session_that_somebody_else_chose_is_none(api: Api) -> None:
    account(api, "ann")
    answer = login(browser(api), "ann")
    cookie = answer.headers.get_list("set-cookie")[0].split("=")[0]
    planted = TestClient(api.http.app, headers=FETCH, cookies={cookie: "x" * 43})
    assert planted.get("/api/v1/me").status_code == 401
    given = login(planted, "ann").headers.get_list("set-cookie")[0]
    assert given.startswith(cookie + "=") and "x" * 43 not in given
    assert TestClient(api.http.app, cookies={cookie: "x" * 43}).get("/api/v1/me").status_code == 401


def test_only_hashes_are_stored(api: Api, tmp_path: Path) -> None:
    founded(api, "default", ann="viewer")
    client = entered(api, "ann").http
    with closing(sqlite3.connect(tmp_path / "data" / "fanlight.sqlite")) as db:
        dump = "\n".join(db.iterdump())
    assert PASSWORD not in dump and "$argon2id$v=19$m=65536,t=3,p=4$" in dump
    assert [v for v in client.cookies.values() if v in dump] == []


def test_who_is_unknown_closed_or_wrong_gets_one_and_the_same_answer(api: Api) -> None:
    account(api, "ann")
    account(api, "bob")
    assert api.call("PATCH", "/people/bob", json={"disabled": True}).status_code == 200
    answers = [login(browser(api), *given) for given in (("ann", "x" * 20), ("bob",), ("nobody",), ("", ""))]
    assert all(wrong(a) for a in answers) and len({a.text for a in answers}) == 1
    assert [a for a in answers if "set-cookie" in a.headers] == []


def test_a_name_that_is_not_there_takes_as_long_as_one_that_is(api: Api) -> None:
    account(api, "ann")

    def taken(name: str) -> float:
        begun = time.perf_counter()
        login(browser(api), name, "a wrong password")
        return time.perf_counter() - begun

    times = [(taken("ann"), taken("nobody")) for _ in range(5)]
    there, missing = (median(t) for t in zip(*times, strict=True))
    assert missing > 0.05, "hashing was skipped"
    assert 0.5 < there / missing < 2


def test_who_fails_too_often_waits_and_does_not_keep_others_out(api: Api) -> None:
    founded(api, "default", ann="viewer")
    account(api, "bob")
    for _ in range(entry.OF_ONE):
        assert wrong(login(browser(api), "ann", "a wrong password"))
    for password in ("a wrong password", PASSWORD):
        refused = login(browser(api), "ann", password)
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) <= entry.WINDOW + 1
    missing = [login(browser(api), "nobody", "a wrong password").status_code for _ in range(entry.OF_ONE + 1)]
    assert missing[-1] == 429, "the limit would tell which names there are"
    assert login(browser(api), "bob").status_code == 303


def test_the_memory_of_failures_is_bounded_and_forgets() -> None:
    t = [0.0]
    throttle = Throttle(2, 10.0, lambda: t[0])
    for key in range(20_000):
        throttle.fail(key)
    assert len(throttle._failed) <= 10_000
    throttle.fail(19_999)
    assert throttle.wait(19_999) == 10.0 and throttle.wait(1) == 0.0
    t[0] = 10.0
    assert throttle.wait(19_999) == 0.0


@pytest.mark.parametrize(
    "headers", [{"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.example"}]
)
def test_no_other_site_logs_a_browser_in_or_out(api: Api, headers: dict[str, str]) -> None:
    founded(api, "default", ann="viewer")
    assert login(TestClient(api.http.app), "ann", **headers).status_code == 403
    inside = entered(api, "ann").http
    del inside.headers["sec-fetch-site"]
    assert inside.post("/logout", headers=headers).status_code == 403
    assert inside.get("/api/v1/me").status_code == 200


@pytest.mark.parametrize("query", ["?next=//evil.example", "?next=https://evil.example", "?next=/\\evil.example"])
def test_logging_in_leads_nowhere_else(api: Api, query: str) -> None:
    account(api, "ann")
    answer = browser(api).post("/login" + query, data={"name": "ann", "password": PASSWORD}, follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/"


def test_logging_out_ends_the_session_on_the_server(api: Api) -> None:
    founded(api, "default", ann="viewer")
    client = entered(api, "ann").http
    kept = TestClient(api.http.app, headers=FETCH, cookies=dict(client.cookies))
    answer = client.post("/logout", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/login"
    assert all("Max-Age=0" in c for c in answer.headers.get_list("set-cookie"))
    assert kept.get("/api/v1/me").status_code == 401
    assert client.get("/logout").status_code == 405
    assert browser(api).post("/logout", follow_redirects=False).status_code == 303


def test_who_logs_in_by_name_lays_the_token_down(api: Api) -> None:
    founded(api, "default", ann="viewer")
    client = browser(api)
    client.get("/?token=" + TOKEN)
    assert client.get("/api/v1/me").json()["operator"] is True
    login(client, "ann")
    assert client.get("/api/v1/me").json()["operator"] is False
    client.post("/logout")
    assert client.get("/api/v1/me").status_code == 401


def test_a_session_ends_with_its_time(api: Api) -> None:
    founded(api, "default", ann="viewer")
    ann = entered(api, "ann")
    database(api).write(lambda c: c.execute(update(session).values(expires=1)))
    assert ann.call("GET", "/me").status_code == 401
    entered(api, "ann")
    left = database(api).read(lambda c: c.execute(select(session.c.expires)).scalars().all())
    assert len(left) == 1 and left[0] > 1, "what is over is cleared away"


@pytest.mark.parametrize("end", ["disabled", "password", "removed"])
def test_what_is_taken_away_is_gone_at_once(api: Api, end: str) -> None:
    founded(api, "default", ann="owner")
    ann = entered(api, "ann")
    made = ann.call("POST", "/keys", json={"name": "mine", "scopes": ["read"]})
    assert made.status_code == 201
    key = TestClient(api.http.app, headers={"Authorization": f"Bearer {made.json()['key']}"})
    assert key.get("/api/v1/models").status_code == 200
    if end == "removed":
        assert api.call("DELETE", "/people/ann").json()["name"] == "ann"
    else:
        assert api.call("PATCH", "/people/ann", json={end: OTHER if end == "password" else True}).status_code == 200
    assert ann.call("GET", "/me").status_code == 401
    assert key.get("/api/v1/models").status_code == (200 if end == "password" else 401)
    assert wrong(login(browser(api), "ann"))
    if end == "password":
        assert login(browser(api), "ann", OTHER).status_code == 303
    if end == "disabled":
        assert api.call("PATCH", "/people/ann", json={"disabled": False}).status_code == 200
        assert login(browser(api), "ann").status_code == 303


def test_a_person_changes_their_password_with_the_old_one(api: Api) -> None:
    founded(api, "default", ann="viewer")
    ann, elsewhere = entered(api, "ann"), entered(api, "ann")
    assert ann.call("PUT", "/me/password", json={"old": "something else", "new": OTHER}).status_code == 403
    assert ann.call("PUT", "/me/password", json={"old": PASSWORD, "new": "short"}).status_code == 422
    assert ann.call("PUT", "/me/password", json={"old": PASSWORD, "new": OTHER}).status_code == 200
    assert ann.call("GET", "/me").status_code == 200 and elsewhere.call("GET", "/me").status_code == 401
    assert wrong(login(browser(api), "ann")) and login(browser(api), "ann", OTHER).status_code == 303
    assert api.call("PUT", "/me/password", json={"old": "x", "new": OTHER}).status_code == 409


@pytest.mark.parametrize("password", ["short", "a" * 20, "x" * 300, "annann annann", "Ann and the others"])
def test_a_password_that_is_guessed_is_refused(api: Api, password: str) -> None:
    answer = api.call("POST", "/people", json={"name": "ann", "password": password})
    assert answer.status_code == 422 and password not in answer.text


@pytest.mark.parametrize("name", ["", "a b", "<b>x</b>", "../x", "x" * 65, "a\nb", "-x", "Åsa"])
def test_a_name_is_plain(api: Api, name: str) -> None:
    assert api.call("POST", "/people", json={"name": name, "password": PASSWORD}).status_code == 422


def test_a_name_is_given_once_and_an_operator_cannot_shut_themselves_out(api: Api) -> None:
    account(api, "root", operator=True)
    assert api.call("POST", "/people", json={"name": "ROOT", "password": PASSWORD}).status_code == 409
    root = entered(api, "root")
    assert root.call("GET", "/people").status_code == 200
    for method, body in (("PATCH", {"disabled": True}), ("PATCH", {"operator": False}), ("DELETE", None)):
        assert root.call(method, "/people/root", json=body).status_code == 409
    assert root.call("GET", "/models").status_code == 403, "an operator is in no workspace by that alone"
    assert api.call("PATCH", "/people/root", json={"operator": False}).status_code == 200
    assert root.call("GET", "/people").status_code == 403


def test_an_account_without_a_workspace_is_told_so(api: Api) -> None:
    account(api, "ann")
    refused = entered(api, "ann").call("GET", "/models")
    assert refused.status_code == 403 and refused.json()["error"]["code"] == "no_workspace"


def test_everything_about_people_is_in_the_log_and_no_password_is(api: Api) -> None:
    ident = account(api, "ann")["id"]
    login(browser(api), "ann", "a wrong password")
    entered(api, "ann").http.post("/logout")
    api.call("PATCH", "/people/ann", json={"password": OTHER})
    api.call("DELETE", "/people/ann")
    found = api.call("GET", "/audit").json()["items"]
    did = [(e["principal"], e["action"], e["subject"]) for e in found][::-1]
    mine = f"person:{ident}"
    assert did == [
        ("token", "person.create", ident),
        (mine, "person.refused", ident),
        (mine, "person.login", ident),
        (mine, "person.logout", ident),
        ("token", "person.change", ident),
        ("token", "person.remove", ident),
    ]
    text = api.call("GET", "/audit").text
    assert [p for p in (PASSWORD, OTHER, "a wrong password") if p in text] == []


def test_a_hash_names_its_method_and_no_two_are_equal() -> None:
    one, two = passwords.hashed(PASSWORD), passwords.hashed(PASSWORD)
    assert one != two and passwords.matches(PASSWORD, one) and not passwords.matches(PASSWORD + "x", two)
    assert not passwords.matches("", passwords.NOBODY)


@pytest.mark.parametrize("stored", ["", "x", "scrypt$15$8$3$AA==$AA=="])
def test_a_hash_of_another_method_is_of_no_password_and_tells_so_as_slowly(stored: str) -> None:
    begun = time.perf_counter()
    assert not passwords.matches("x", stored)
    assert time.perf_counter() - begun > 0.02


def test_an_account_that_was_closed_while_its_password_was_compared_does_not_enter(api: Api) -> None:
    ident = account(api, "ann")["id"]
    row = database(api).read(lambda c: c.execute(select(person).where(person.c.id == ident)).one())
    api.call("PATCH", "/people/ann", json={"disabled": True})
    with pytest.raises(Exception, match="do not go together"):
        database(api).write(lambda c: api.http.app.state.entry._begin(c, row, "x" * 43, ""))  # type: ignore[attr-defined]
