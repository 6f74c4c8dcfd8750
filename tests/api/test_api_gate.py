"""Nobody gets in who should not: every route, every door, every trick of the address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi import FastAPI
from fastapi.dependencies import utils
from fastapi.testclient import TestClient

from fanlight.api.gate import PUBLIC
from fanlight.app import create, serve
from fanlight.settings import Settings

FETCH = {"sec-fetch-site": "same-origin"}


def walk(app: FastAPI) -> list[tuple[str, str]]:
    """(method, path) of every operation of the API, with parameters filled."""
    paths = app.openapi()["paths"]
    return [
        (m.upper(), p.replace("{n}", "0").replace("{", "").replace("}", "")) for p, ops in paths.items() for m in ops
    ]


@pytest.fixture
def person(api: Api) -> TestClient:
    """Somebody with a browser and a cookie."""
    browser = TestClient(api.http.app)
    assert browser.get("/?token=" + TOKEN, follow_redirects=False).status_code == 303
    return browser


def test_every_route_is_closed_to_strangers_but_the_listed_ones(api: Api) -> None:
    stranger = TestClient(api.http.app)
    routes = walk(api.http.app)  # type: ignore[arg-type]
    assert len(routes) > 30
    for method, path in [
        *routes,
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/api/v1/openapi.json"),
        ("GET", "/api/nope"),
        ("POST", "/_dash-update-component"),
    ]:
        answer = stranger.request(method, path)
        public = path in PUBLIC or path.startswith("/s/")
        assert (answer.status_code != 401) == public, (method, path, answer.status_code)


def test_a_websocket_is_closed(api: Api) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), api.http.websocket_connect("/_dash-ws"):
        pass


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", "Basic abc", "bearer", "Bearer " + TOKEN[:-1], "Bearer " + TOKEN + "x"]
)
def test_a_wrong_token_is_refused(api: Api, header: str) -> None:
    answer = TestClient(api.http.app).get("/api/v1/models", headers={"Authorization": header})
    assert answer.status_code == 401 and answer.json()["error"]["message"]


def test_the_token_in_the_address_becomes_a_cookie_and_leaves_the_address(api: Api) -> None:
    browser = TestClient(api.http.app)
    answer = browser.get(f"/e/abc?x=1&token={TOKEN}", follow_redirects=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/e/abc?x=1"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and TOKEN not in cookie
    assert browser.get("/api/v1/models").status_code == 200
    assert browser.get("/?token=wrong", follow_redirects=False).status_code == 401


@pytest.mark.parametrize("path", ["//evil.example/x", "/\\evil.example", "///evil.example"])
def test_entering_never_leads_to_another_host(api: Api, path: str) -> None:
    answer = TestClient(api.http.app, base_url="http://testserver").get(
        f"http://testserver{path}?token={TOKEN}", follow_redirects=False
    )
    assert not answer.headers.get("location", "/").startswith(("//", "http", "/\\"))


def test_a_forged_or_cut_cookie_is_no_cookie(api: Api, person: TestClient) -> None:
    ((name, value),) = person.cookies.items()
    for forged in ("admin." + value.split(".")[1], value[:-1], value + "0", "", "x", value.split(".")[0]):
        browser = TestClient(api.http.app, cookies={name: forged})
        assert browser.get("/api/v1/models").status_code == 401, forged


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_cross_site_request_with_a_cookie_is_refused(person: TestClient, method: str) -> None:
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {},
    ):
        answer = person.request(method, "/api/v1/shares/x", headers=headers)
        assert answer.status_code == 403 and answer.json()["error"]["code"] == "cross_site", headers
    for headers in (FETCH, {"origin": "http://testserver"}):
        assert person.request(method, "/api/v1/shares/x", headers=headers).status_code in (404, 405)


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8321", ""])
def test_a_foreign_host_name_is_refused(api: Api, host: str) -> None:
    assert api.http.get("/healthz", headers={"host": host}).status_code == 400


NO_FILES = """
/api/v1/artifacts/..%2f..%2fetc%2fpasswd
/api/v1/artifacts/%2e%2e/%2e%2e/etc/passwd
/api/v1/inputs/..%5c..%5cx
/api/v1/inputs/%00
/s/..%2f..%2fetc%2fpasswd
/s/%2e%2e%2f/0/overlay.png
/api/v1/artifacts//etc/passwd
/assets/..%2f..%2fpyproject.toml
/api/v1/datasets/..%2f/samples
"""


@pytest.mark.parametrize("path", NO_FILES.split())
def test_no_address_leads_to_a_file(api: Api, path: str) -> None:
    answer = api.http.get(path)
    assert 400 <= answer.status_code < 500 and b"root:" not in answer.content and b"[project]" not in answer.content


def test_a_body_is_cut_off_at_its_limit_whatever_its_header_says(api: Api) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(400):
            yield b"x" * 2**16

    answer = api.call("POST", "/explanations", content=endless(), headers={"content-type": "application/json"})
    assert answer.status_code == 413 and answer.json()["error"]["message"]


def test_answers_carry_their_armour(api: Api) -> None:
    headers = api.call("GET", "/models").headers
    assert (
        headers["x-content-type-options"] == "nosniff"
        and "frame-ancestors 'none'" in headers["content-security-policy"]
    )


def test_an_artifact_is_readable_only_through_a_record(api: Api) -> None:
    record = api.explain(input=api.upload(noise(1))["id"])
    url = record["artifacts"][0]["url"]
    assert api.http.get(url).status_code == 200
    api.call("DELETE", f"/explanations/{record['id']}")
    assert api.http.get(url).status_code == 404


def test_binding_to_the_network_without_a_token_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(Settings(host="0.0.0.0", data_dir=tmp_path), browser=False) == 4
    assert "FANLIGHT_TOKEN" in capsys.readouterr().err
    assert not (tmp_path / "fanlight.sqlite").exists()


def test_a_second_server_on_the_same_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fanlight.app import _lock

    with _lock(Settings(data_dir=tmp_path)):  # type: ignore[union-attr]
        assert serve(Settings(data_dir=tmp_path, port=0), browser=False) == 1
    assert "Another Fanlight server" in capsys.readouterr().err


@pytest.mark.parametrize("through", ["/fanlight", ""], ids=["proxy keeps the prefix", "proxy takes it off"])
def test_everything_works_behind_a_path_prefix(tmp_path: Path, through: str) -> None:
    app = create(
        settings(tmp_path, root_path="fanlight/", public_url="http://testserver/fanlight"), token=TOKEN, pages=False
    )
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        started(http)
        post = http.post(through + "/api/v1/inputs", files={"file": ("a.png", noise(2))})
        assert post.json()["thumbnail"].startswith("/fanlight/api/v1/inputs/")
        assert http.get(post.json()["thumbnail"]).status_code == 200
        body = {"model": "tiny", "input": post.json()["id"], "explainer": "saliency"}
        record = http.post(through + "/api/v1/explanations?wait=20", json=body).json()
        assert record["artifacts"][0]["url"].startswith("/fanlight/api/v1/artifacts/")
        share = http.post(through + "/api/v1/shares", json={"explanations": [record["id"]]}).json()
        assert share["url"] == f"http://testserver/fanlight/s/{share['token']}" and not share["loopback_only"]
        page = TestClient(app).get(f"{through}/s/{share['token']}").text
        assert f'src="/fanlight/s/{share["token"]}/0/overlay.png"' in page
        assert f'content="http://testserver/fanlight/s/{share["token"]}/preview.png"' in page
        entered = TestClient(app).get(f"{through}/?token={TOKEN}", follow_redirects=False)
        assert entered.headers["location"] == "/fanlight/" and "Path=/fanlight/" in entered.headers["set-cookie"]


def test_nothing_that_every_request_needs_takes_a_thread(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: set[str] = set()
    really = utils.run_in_threadpool

    async def noted(call: Any, *given: Any, **named: Any) -> Any:
        taken.add(call.__qualname__)
        return await really(call, *given, **named)

    monkeypatch.setattr(utils, "run_in_threadpool", noted)
    asked = [(m, p) for m, p in walk(api.http.app) if p != "/api/v1/events"]  # type: ignore[arg-type]
    for method, path in asked:
        assert api.call(method, path.removeprefix("/api/v1")).status_code != 401
    assert len(asked) > 30 and not taken, "a plain function is taken to a thread, which costs more than these do"
