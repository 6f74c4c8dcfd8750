"""A provider that is slow, away, huge or somewhere else is a sentence, in time; and what the settings of a login may be."""

from __future__ import annotations

import io
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from api_rig import Api, started
from oidc_rig import HTML, begin, configured, linked, through
from people_rig import browser

from fanlight import logs
from fanlight.api import sso
from fanlight.errors import FanlightError
from fanlight.service.identities import newcomers
from fanlight.settings import Settings
from support.identities import CLIENT, SECRET, Provider


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def api(provider: Provider, tmp_path: Path) -> Iterator[Api]:
    with configured(provider, tmp_path) as http:
        yield Api(started(http))


def unusable(answer: httpx.Response) -> bool:
    return answer.status_code == 503 and "provider of the login cannot be used" in answer.text


def test_a_provider_that_is_away_is_a_sentence_and_other_ways_stay_open(api: Api, provider: Provider) -> None:
    provider.close()
    assert unusable(begin(browser(api)))
    assert "/login/oidc" in browser(api).get("/", headers=HTML).text
    assert api.call("GET", "/me").status_code == 200


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_a_slow_provider_is_given_up(api: Api, provider: Provider, path: str) -> None:
    linked(api, "ann")
    middleware = next(m for m in api.http.app.user_middleware if m.cls.__name__ == "Gate")  # type: ignore[attr-defined]
    middleware.kwargs["provider"].provider._total = 0.5
    provider.slow[path] = 2.0
    begun = time.monotonic()
    assert unusable(through(browser(api))) and time.monotonic() - begun < 1.9


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_a_huge_answer_is_cut_off(api: Api, provider: Provider, path: str) -> None:
    linked(api, "ann")
    provider.size[path] = 300 * 1024
    came = through(browser(api))
    assert unusable(came) and "256 KiB" in came.text
    provider.size[path] = 200 * 1024
    assert through(browser(api)).status_code == 303


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/keys", "/token"])
def test_no_redirect_is_followed(api: Api, provider: Provider, path: str) -> None:
    linked(api, "ann")
    provider.moved[path] = provider.issuer + "/elsewhere"
    came = through(browser(api))
    assert unusable(came) and "redirect" in came.text and "/elsewhere" not in provider.asked


@pytest.mark.parametrize(
    "about",
    [
        {"issuer": "https://id.example.org"},
        {"token_endpoint": "http://192.0.2.1/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": None},
        {"authorization_endpoint": ["x"]},
        {"token_endpoint": "http://127.0.0.1@192.0.2.1/token"},
    ],
)
def test_what_the_provider_says_of_itself_is_not_taken_as_it_is(
    api: Api, provider: Provider, about: dict[str, object]
) -> None:
    provider.about = about
    assert begin(browser(api)).status_code in (401, 503)
    assert provider.asked == ["/.well-known/openid-configuration"]


def test_the_issuer_in_the_answer_is_asked_for_where_it_is_promised(api: Api, provider: Provider) -> None:
    linked(api, "ann")
    provider.about = {"authorization_response_iss_parameter_supported": True}
    assert through(browser(api)).status_code == 401
    provider.also = {"iss": "https://id.example.org"}
    assert through(browser(api)).status_code == 401
    provider.also = {"iss": provider.issuer}
    assert through(browser(api)).status_code == 303


def test_neither_the_secret_nor_a_code_nor_a_state_is_logged(provider: Provider, tmp_path: Path) -> None:
    stream = io.StringIO()
    try:
        logs.configure("debug", [SECRET], stream)
        with configured(provider, tmp_path) as http:
            api = Api(started(http))
            linked(api, "ann")
            client = browser(api)
            assert through(client).status_code == 303
            provider.bend = lambda c: {**c, "nonce": SECRET}
            assert through(client).status_code == 401
            structlog.get_logger().info("x", address="/login/oidc/return?code=abcdefgh&state=ijklmnop", held=SECRET)
            logging.getLogger("httpx2").warning(
                "GET http://127.0.0.1/?code=abcdefgh fanlight_oidc_0123abcd=ijklmnop; x"
            )
        said = stream.getvalue()
    finally:
        logs.configure("info", [], sys.stderr)
    assert "ID token refused" in said
    assert [s for s in (SECRET, "abcdefgh", "ijklmnop") if s in said] == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"oidc_client_id": ""}, "FANLIGHT_OIDC_CLIENT_ID"),
        ({"oidc_issuer": ""}, "FANLIGHT_OIDC_ISSUER"),
        ({"public_url": None}, "FANLIGHT_PUBLIC_URL"),
        ({"public_url": "http://lab-machine:8321"}, "FANLIGHT_PUBLIC_URL"),
        ({"oidc_issuer": "http://id.example.org"}, "FANLIGHT_OIDC_ISSUER"),
        ({"oidc_issuer": "https://id.example.org/?x=1"}, "FANLIGHT_OIDC_ISSUER"),
        ({"oidc_new": "lab"}, "FANLIGHT_OIDC_NEW"),
        ({"oidc_new": "lab=king"}, "FANLIGHT_OIDC_NEW"),
        ({"oidc_domains": "example.org"}, "FANLIGHT_OIDC_NEW"),
        ({"oidc_new": "lab=viewer", "oidc_domains": "@example.org"}, "FANLIGHT_OIDC_DOMAINS"),
    ],
)
def test_settings_that_make_no_login_are_refused_at_the_start(changes: dict[str, object], named: str) -> None:
    given = {
        "oidc_issuer": "https://id.example.org",
        "oidc_client_id": CLIENT,
        "public_url": "https://fanlight.example.org",
    }
    settings = Settings(**{**given, **changes})  # type: ignore[arg-type]
    with pytest.raises(FanlightError, match=named):
        sso.configured(settings, "t")
        newcomers(settings)


def test_without_its_packages_the_server_refuses_to_start(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "authlib.integrations.httpx_client", None)
    with pytest.raises(FanlightError, match=r"fanlight\[oidc\]"), configured(provider, tmp_path):
        pass
    assert not (tmp_path / "data" / "fanlight.sqlite").exists(), "refused before anything is made"


def test_a_subject_is_one_accounts(api: Api) -> None:
    linked(api, "ann")
    taken = api.call("POST", "/people", json={"name": "bob", "subject": "s-1"})
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "subject_taken")
    assert api.call("POST", "/people", json={"name": "bob"}).status_code == 422
    assert api.call("POST", "/people", json={"name": "bob", "subject": "s-2"}).status_code == 201
    assert api.call("PATCH", "/people/bob", json={"subject": "s-1"}).status_code == 409
    client = browser(api)
    assert through(client).status_code == 303
    changed = api.call("PATCH", "/people/ann", json={"subject": ""}).json()
    assert changed["subject"] == "" and client.get("/api/v1/me").status_code == 401, "what it began ends with the link"
    assert through(client).status_code == 403
    assert api.call("PATCH", "/people/bob", json={"subject": "s-1"}).json()["subject"] == "s-1"
