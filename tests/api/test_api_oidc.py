"""Logging in through a provider: who gets in as whom, and that nothing but a genuine answer to this browser's own login does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from api_rig import Api, started
from oidc_rig import HTML, agreed, back, begin, configured, linked, through
from people_rig import browser, founded
from sqlalchemy import select

from fanlight.store.people import person, spent
from support.identities import CLIENT, SECRET, Provider, rsa, symmetric, unsigned


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def api(provider: Provider, tmp_path: Path) -> Iterator[Api]:
    with configured(provider, tmp_path) as http:
        yield Api(started(http))


def database(api: Api) -> Any:
    return api.http.app.state.context.db  # type: ignore[attr-defined]


def entry_of(api: Api) -> Any:
    """What asks the provider."""
    middleware = next(m for m in api.http.app.user_middleware if m.cls.__name__ == "Gate")  # type: ignore[attr-defined]
    return middleware.kwargs["provider"].provider


def inside(client: Any) -> bool:
    return bool(client.get("/api/v1/me").status_code == 200)


def test_a_linked_person_comes_back_as_themselves(api: Api, provider: Provider) -> None:
    linked(api, "ann")
    founded(api, "default", ann="editor")
    client = browser(api)
    page = client.get("/e/abc", headers=HTML)
    assert (
        page.status_code == 401
        and '<a class="button" href="/login/oidc?next=/e/abc">Log in with Example &lt;ID&gt;</a>' in page.text
    )
    gone = begin(client, "/e/abc?tab=1")
    asked = {k: v[0] for k, v in parse_qs(urlsplit(gone.headers["location"]).query).items()}
    assert gone.headers["location"].startswith(provider.issuer + "/authorize?")
    assert (asked["client_id"], asked["response_type"], asked["scope"]) == (CLIENT, "code", "openid email profile")
    assert (
        asked["redirect_uri"] == "http://127.0.0.1:8321/login/oidc/return" and asked["code_challenge_method"] == "S256"
    )
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    (memory,) = gone.headers.get_list("set-cookie")
    assert "HttpOnly" in memory and "SameSite=Lax" in memory and "Max-Age=600" in memory
    assert [v for v in (asked["state"], asked["nonce"], SECRET) if v in memory] == []
    came = back(client, agreed(gone.headers["location"]))
    assert came.status_code == 303 and came.headers["location"] == "/e/abc?tab=1"
    me = client.get("/api/v1/me").json()
    assert (me["name"], me["role"], me["operator"]) == ("ann", "editor", False)
    log = [e["action"] for e in api.call("GET", "/audit?action=person").json()["items"]]
    assert log == ["person.login", "person.create"]
    assert client.post("/logout", headers={"sec-fetch-site": "same-origin"}, follow_redirects=False).status_code == 303
    assert not inside(client)


def test_over_tls_the_cookie_is_bound_to_this_host(api: Api) -> None:
    gone = browser(api).get("/login/oidc", headers={"x-forwarded-proto": "https"}, follow_redirects=False)
    cookie = gone.headers["set-cookie"]
    assert cookie.startswith("__Host-fanlight_oidc_") and "; Secure" in cookie and "Path=/;" in cookie


def test_without_a_provider_there_is_no_button_and_no_way(tmp_path: Path, provider: Provider) -> None:
    with configured(provider, tmp_path, oidc_issuer="", oidc_client_id="", oidc_client_secret=None) as http:
        client = browser(Api(http))
        assert "oidc" not in client.get("/", headers=HTML).text
        for path in ("/login/oidc", "/login/oidc/return?code=x&state=y"):
            assert client.get(path, follow_redirects=False).status_code == 404
    assert provider.asked == []


BENT: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "nonce": lambda c: {**c, "nonce": c["nonce"][::-1]},
    "no nonce": lambda c: {k: v for k, v in c.items() if k != "nonce"},
    "nonce in a list": lambda c: {**c, "nonce": [c["nonce"]]},
    "audience": lambda c: {**c, "aud": "another-client"},
    "audience, although azp is ours": lambda c: {**c, "aud": "another-client", "azp": CLIENT},
    "no audience": lambda c: {k: v for k, v in c.items() if k != "aud"},
    "several audiences without azp": lambda c: {**c, "aud": [CLIENT, "another-client"]},
    "azp": lambda c: {**c, "azp": "another-client"},
    "issuer": lambda c: {**c, "iss": "https://id.example.org"},
    "issuer with a slash": lambda c: {**c, "iss": c["iss"] + "/"},
    "no issuer": lambda c: {k: v for k, v in c.items() if k != "iss"},
    "expired": lambda c: {**c, "exp": int(time.time()) - 120},
    "no end": lambda c: {k: v for k, v in c.items() if k != "exp"},
    "end as text": lambda c: {**c, "exp": "9999999999"},
    "from the future": lambda c: {**c, "iat": int(time.time()) + 3600, "nbf": int(time.time()) + 3600},
    "no subject": lambda c: {k: v for k, v in c.items() if k != "sub"},
    "empty subject": lambda c: {**c, "sub": ""},
    "long subject": lambda c: {**c, "sub": "s" * 256},
    "subject as a list": lambda c: {**c, "sub": ["s-1"]},
}


@pytest.mark.parametrize("what", BENT)
def test_a_token_with_a_wrong_claim_opens_nothing(api: Api, provider: Provider, what: str) -> None:
    linked(api, "ann")
    provider.bend = BENT[what]
    client = browser(api)
    came = through(client)
    assert came.status_code == 401 and "not valid" in came.text, what
    assert "set-cookie" not in came.headers and not inside(client)
    provider.bend = lambda c: c
    assert through(client).status_code == 303


def test_a_token_that_is_not_signed_by_the_providers_own_key_opens_nothing(api: Api, provider: Provider) -> None:
    linked(api, "ann")
    other = rsa()
    forged = Provider.signed
    public = provider.key.as_pem(private=False)
    signers: dict[str, Callable[[dict[str, Any]], str]] = {
        "none": unsigned,
        "the client's secret": symmetric(SECRET.encode()),
        "the public key as a secret": symmetric(public.replace(b"-----", b"")),
        "another key": lambda c: _by(other, c, provider.key.kid),
        "another key, which it brings along": lambda c: _by(
            other, c, provider.key.kid, jwk=other.as_dict(private=False)
        ),
        "a key that nobody knows": lambda c: _by(other, c, other.kid),
        "changed afterwards": lambda c: _swapped(forged(provider, c), forged(provider, {**c, "sub": "s-2"})),
        "no token": lambda c: "",
        "nonsense": lambda c: "a.b.c",
        "critical extension": lambda c: forged(provider, c, crit=["strange"], strange=1),
    }
    for what, sign in signers.items():
        provider.sign = sign
        client = browser(api)
        came = through(client)
        assert came.status_code == 401 and not inside(client), (what, came.text)
    provider.sign = None
    assert through(browser(api)).status_code == 303


def _by(key: Any, claims: dict[str, Any], kid: str, **header: Any) -> str:
    from joserfc import jwt

    return jwt.encode({"alg": "RS256", "kid": kid, **header}, claims, key)


def _swapped(genuine: str, other: str) -> str:
    head, _, signature = genuine.split(".")
    return ".".join([head, other.split(".")[1], signature])


def test_a_new_key_is_fetched_when_it_is_seen_and_not_more_than_once_a_minute(api: Api, provider: Provider) -> None:
    linked(api, "ann")
    asks, clock = entry_of(api), [time.time()]
    asks._clock = lambda: clock[0]
    assert through(browser(api)).status_code == 303
    provider.key = rsa()
    assert through(browser(api)).status_code == 401, "fetched a moment ago"
    clock[0] += 61
    before = provider.asked.count("/keys")
    assert through(browser(api)).status_code == 303 and provider.asked.count("/keys") == before + 1
    assert through(browser(api)).status_code == 303 and provider.asked.count("/keys") == before + 1
    assert provider.asked.count("/.well-known/openid-configuration") == 1, "kept for an hour"


def test_an_answer_begins_one_session_at_most(api: Api, provider: Provider) -> None:
    """Even where the provider would take its code twice."""
    linked(api, "ann")
    client = browser(api)
    path = agreed(begin(client).headers["location"])
    code, kept = parse_qs(urlsplit(path).query)["code"][0], dict(client.cookies)
    asked = provider.codes[code]
    assert back(client, path).status_code == 303
    provider.codes[code] = asked
    again = browser(api)
    again.cookies.update(kept)
    came = back(again, path)
    assert came.status_code == 401 and "used already" in came.text and not inside(again)
    assert len(database(api).read(lambda c: c.execute(select(spent)).all())) == 1


def test_an_answer_belongs_to_the_browser_that_asked(api: Api, provider: Provider) -> None:
    """Nobody is made to log in as somebody else, with an answer that the other got."""
    linked(api, "ann")
    mine, victim = browser(api), browser(api)
    path = agreed(begin(mine).headers["location"])
    begin(victim)
    for client in (victim, browser(api)):
        came = back(client, path)
        assert came.status_code == 401 and "not begun in this browser" in came.text and not inside(client)
    assert "/token" not in provider.asked
    name, value = next((k, v) for k, v in mine.cookies.items() if "oidc" in k)
    for forged in (value[:-1], "x" + value, value.replace(".", ".9", 1), "", "a.b.c.d", ".", "\x00"):
        client = browser(api)
        client.cookies.set(name, forged)
        assert back(client, path).status_code == 401
    assert back(mine, path).status_code == 303


@pytest.mark.parametrize(
    "query",
    ["", "?code=x", "?state=x", "?error=access_denied", "?code=x&code=y&state={state}", "?code=&state={state}", "?error=x&state={state}",
     "?code=x&state={state}&state={state}", "?code=bogus&state={state}", "?code=x&state={state}&iss=https://id.example.org"],
)  # fmt: skip
def test_an_answer_that_is_none_is_a_sentence(api: Api, query: str) -> None:
    client = browser(api)
    state = parse_qs(urlsplit(begin(client).headers["location"]).query)["state"][0]
    came = back(client, "/login/oidc/return" + query.format(state=state))
    assert came.status_code == 401 and "Start it again" in came.text and not inside(client)


def test_a_login_that_took_too_long_is_over(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    linked(api, "ann")
    client = browser(api)
    path = agreed(begin(client).headers["location"])
    middleware = next(m for m in api.http.app.user_middleware if m.cls.__name__ == "Gate")  # type: ignore[attr-defined]
    middleware.kwargs["provider"]._clock = lambda: time.time() + 601
    came = back(client, path)
    assert came.status_code == 401 and "too long" in came.text


@pytest.mark.parametrize(
    "to",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)", "/%0d%0aset-cookie:x", "/\r\nx",
     "http:evil.example", "/\t/evil.example", "evil.example", "", "/" + "x" * 2000, "/login", "//", "/\u2028/x"],
)  # fmt: skip
def test_it_leads_back_to_paths_of_this_server_alone(api: Api, to: str) -> None:
    linked(api, "ann")
    came = through(browser(api), to)
    assert came.status_code == 303
    landed = came.headers["location"]
    assert landed in ("/", "/%250d%250aset-cookie:x") and "evil" not in landed


def test_who_is_unknown_is_refused_and_told_what_to_ask_for(api: Api) -> None:
    client = browser(api)
    came = through(client)
    assert came.status_code == 403 and "no account here is yours" in came.text and "s-1" in came.text
    assert not inside(client) and "set-cookie" not in came.headers
    (entry,) = api.call("GET", "/audit?action=person").json()["items"]
    assert (entry["action"], entry["subject"], entry["detail"]["code"]) == ("person.refused", "s-1", "unknown_person")
    assert database(api).read(lambda c: c.execute(select(person)).all()) == []


def test_an_address_alone_is_nobodys_account(api: Api) -> None:
    """Whoever gets an address at the provider, or says that they have it, is not the person who has it here."""
    assert (
        api.call("POST", "/people", json={"name": "ann@example.org", "password": "seven quiet herons"}).status_code
        == 201
    )
    assert through(browser(api)).status_code == 403


def test_a_closed_and_a_removed_account_stay_shut(provider: Provider, tmp_path: Path) -> None:
    """Although newcomers are let in: who was sent away is none."""
    with configured(provider, tmp_path, oidc_new="default=viewer") as http:
        api = Api(started(http))
        client = browser(api)
        assert through(client).status_code == 303
        assert api.call("PATCH", "/people/ann@example.org", json={"disabled": True}).status_code == 200
        assert through(client).status_code == 403 and not inside(client)
        assert api.call("PATCH", "/people/ann@example.org", json={"disabled": False}).status_code == 200
        assert through(client).status_code == 303
        assert api.call("DELETE", "/people/ann@example.org").status_code == 200
        assert not inside(client) and through(client).status_code == 403
        linked(api, "ann")
        assert through(client).status_code == 303 and client.get("/api/v1/me").json()["name"] == "ann"


def test_newcomers_get_the_role_that_the_settings_say_and_a_name_of_their_own(
    provider: Provider, tmp_path: Path
) -> None:
    with configured(provider, tmp_path, oidc_new="default=viewer") as http:
        api = Api(started(http))
        assert (
            api.call("POST", "/people", json={"name": "ann@example.org", "password": "seven quiet herons"}).status_code
            == 201
        )
        client = browser(api)
        assert through(client).status_code == 303
        me = client.get("/api/v1/me").json()
        assert (me["name"], me["role"], me["operator"]) == ("ann@example.org-2", "viewer", False)
        refused = client.post("/login", data={"name": me["name"], "password": "x" * 20}, headers=HTML)
        assert refused.status_code == 401, "an account without a password has none that fits"
        provider.person = {
            "sub": "s-2",
            "email": "boss@example.org",
            "email_verified": False,
            "preferred_username": "Bo Ss/<b>",
        }
        other = browser(api)
        assert through(other).status_code == 303 and other.get("/api/v1/me").json()["name"] == "bo-ss-b-"
        assert through(other).status_code == 303, "the second time they are known"
        assert {p["subject"] for p in api.call("GET", "/people").json()} == {"", "s-1", "s-2"}


@pytest.mark.parametrize(
    ("person", "enters"),
    [
        ({"email": "ann@example.org", "email_verified": True}, True),
        ({"email": "ann@EXAMPLE.org", "email_verified": True}, True),
        ({"email": "ann@example.org", "email_verified": False}, False),
        ({"email": "ann@example.org", "email_verified": "true"}, False),
        ({"email": "ann@example.org"}, False),
        ({"email": "ann@evil.example", "email_verified": True}, False),
        ({"email": "example.org", "email_verified": True}, False),
        ({"email": "ann@example.org@evil.example", "email_verified": True}, False),
        ({"email": "ann@sub.example.org", "email_verified": True}, False),
        ({"email": ["ann@example.org"], "email_verified": True}, False),
        ({}, False),
    ],
)
def test_newcomers_of_a_domain_have_a_verified_address_in_it(
    provider: Provider, tmp_path: Path, person: dict[str, Any], enters: bool
) -> None:
    provider.person = {"sub": "s-9", **person}
    with configured(provider, tmp_path, oidc_new="default=viewer", oidc_domains="example.org") as http:
        client = browser(Api(started(http)))
        assert through(client).status_code == (303 if enters else 403) and inside(client) == enters
