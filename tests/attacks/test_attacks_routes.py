"""Who has no token finds nothing: every route there is, by every method, under every disguise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks_rig import Target, clean
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute, Mount, Route
from starlette.websockets import WebSocketDisconnect

from fanlight.api.gate import PUBLIC
from fanlight.app import create
from fanlight.settings import Settings

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "QUERY")
SHOWN = {"/login", "/logout"}
"""Public: they ask who comes."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """API and pages in one application, as `fanlight serve` makes it; nothing has been started."""
    quiet: dict[str, Any] = {"default_model": False, "examples": False, "field_guide": False}
    folder: Path = tmp_path_factory.mktemp("whole")
    app = create(Settings(data_dir=folder, scenes=False, **quiet), token="a-token-for-tests")
    yield app
    app.state.context.db.close()


def table(app: FastAPI) -> set[str]:
    """The path of every route, of routers inside of routers too, and of everything that the OpenAPI description names."""
    found = set(app.openapi()["paths"])

    def walk(routes: list[BaseRoute], before: str) -> None:
        for route in routes:
            inner = getattr(route, "original_router", None)
            if isinstance(route, Route | APIRoute):
                found.add(before + route.path)
            elif isinstance(route, Mount):
                found.update((before + route.path, before + route.path + "/x"))
            elif inner is not None:
                walk(inner.routes, before + getattr(route.include_context, "prefix", ""))
            else:
                raise AssertionError(f"a route of an unknown kind: {route!r}")

    walk(app.routes, "")
    return found


def filled(path: str) -> str:
    """An address of this route."""
    while "{" in path:
        before, _, rest = path.partition("{")
        path = before + "x" + rest.partition("}")[2]
    return path


def test_the_table_has_the_pages_the_stream_the_metrics_and_the_api(whole: FastAPI) -> None:
    found = table(whole)
    assert {"/", "/_dash-layout", "/_dash-update-component", "/assets/x", "/metrics", "/api/v1/events"} <= found
    assert {"/s/{token}", "/api/{rest:path}", "/api/v1/openapi.json", "/healthz", "/api/v1/people"} <= found
    assert len(found) > 70


@pytest.mark.parametrize("method", METHODS)
def test_every_route_is_closed_by_every_method(whole: FastAPI, method: str) -> None:
    stranger = TestClient(whole, raise_server_exceptions=False, follow_redirects=False)
    for path in sorted(table(whole)):
        address = filled(path)
        public = address in PUBLIC or address.startswith("/s/")
        for accept in ("application/json", "text/html"):
            answer = stranger.request(method, address, headers={"accept": accept})
            assert answer.status_code < 500 or address == "/readyz", (method, path)  # not started, so not ready
            assert (answer.status_code == 401) == (not public), (method, path, answer.status_code)
            assert clean(answer.text) == [] and "set-cookie" not in answer.headers, (method, path)
    # What is public answers, and with no more than that it is there.
    for path in sorted({p for p in table(whole) if filled(p) in PUBLIC} | SHOWN):
        wanted = (401,) if (method, path) == ("POST", "/login") else (200, 303, 404, 405, 503)
        assert stranger.request(method, filled(path)).status_code in wanted, (method, path)


def test_no_page_of_an_address_that_nobody_made_is_shown(whole: FastAPI) -> None:
    stranger = TestClient(whole, raise_server_exceptions=False, follow_redirects=False)
    for path in ("/e/x", "/gallery", "/settings", "/x/y/z", "/_dash-x", "/assets", "/admin", "/.env", "/.git/config"):
        assert stranger.get(path).status_code == 401, path


@pytest.mark.parametrize("path", ["/", "/api/v1/events", "/_dash-ws", "/ws", "/s/x", "/healthz", "/metrics", "/_mcp"])
def test_no_websocket_is_opened_anywhere(whole: FastAPI, path: str) -> None:
    with pytest.raises(WebSocketDisconnect), TestClient(whole).websocket_connect(path):
        pass


DISGUISED = """
/healthz/../api/v1/models
/healthz/%2e%2e/api/v1/models
/s/../api/v1/models
/s/%2e%2e/api/v1/models
/s/x/../../metrics
/s/..%2f..%2fmetrics
/s/..;/api/v1/models
/s/x;/../../api/v1/models
//api/v1/models
///metrics
/./api/v1/models
/API/V1/models
/Metrics
/api/v1/models/
/api/v1//models
/api/v1/models;.css
/api/v1/models%00.css
/api/v1/models%20
/api/v1/models%3f/s/x
/api/v1/models?/s/x
/api/v1/models#/s/x
/metrics?x=/healthz
/metrics/../healthz/../metrics
/login/../metrics
/login/../api/v1/models
/login%2f..%2fmetrics
/favicon.ico/../api/v1/models
/readyz%2f..%2fapi%2fv1%2fmodels
/%61pi/v1/models
/%2fapi/v1/models
/\\api\\v1\\models
/s/\\..\\..\\api\\v1\\models
/assets/../api/v1/models
*
http://127.0.0.1/api/v1/models
http://127.0.0.1/healthz/../api/v1/models
http://evil.example/healthz
"""
TRUSTED = ("x-original-url", "x-rewrite-url", "x-forwarded-prefix", "x-forwarded-uri", "x-http-method-override")
TRUSTED += ("x-forwarded-user", "x-remote-user", "remote-user", "x-forwarded-for", "x-real-ip", "forwarded")
TRUSTED += ("x-authenticated-user", "x-webauth-user", "fanlight-workspace", "sec-fetch-site", "x-fanlight-principal")


@pytest.mark.parametrize("address", DISGUISED.split())
def test_no_disguise_of_an_address_opens_it(target: Target, address: str) -> None:
    answer = target.line(address, enter=False)
    assert 300 <= answer.status < 500 or address in ("http://evil.example/healthz",), (address, answer.status)
    assert b'"explainers"' not in answer.body and b"fanlight_jobs" not in answer.body
    assert clean(answer.text) == []


@pytest.mark.parametrize("header", TRUSTED)
def test_no_header_that_a_proxy_might_send_opens_anything(target: Target, header: str) -> None:
    for value in ("/healthz", "GET", "admin", "127.0.0.1", "for=127.0.0.1;host=127.0.0.1", "default", "none", "token"):
        for address in ("/api/v1/models", "/metrics", "/", "/_dash-layout"):
            assert target.line(address, enter=False, **{header: value}).status == 401, (address, value)


def test_no_other_way_to_hand_over_the_token_counts(target: Target) -> None:
    """Only the header, and once the address of a page: an API that took it in the address would have it in every log."""
    token = target.server.token
    for address in (f"/api/v1/models?token={token}", f"/metrics/x?token={token}x", f"/api/v1/me?access_token={token}"):
        assert target.line(address, enter=False).status == 401, address
    for header in ("x-api-key", "x-token", "proxy-authorization", "token"):
        assert target.line("/api/v1/models", enter=False, **{header: f"Bearer {token}"}).status == 401, header
    body = json.dumps({"token": token}).encode()
    with target.browser() as http:
        assert http.post("/api/v1/explanations", content=body).status_code == 401
        assert http.get("/api/v1/models", headers={"cookie": f"token={token}"}).status_code == 401
        assert http.get("/api/v1/models", auth=("token", token)).status_code == 401
