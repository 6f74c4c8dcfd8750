"""The frame of the pages: imports, policy, theme, errors, compression."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import re
import subprocess
import sys
from typing import Any

import fake_api
import httpx
import pytest
from dash.development.base_component import Component
from ui_support import build

from fanlight.errors import InvalidField, NotFound, unknown
from fanlight_ui import errors, session, theme
from fanlight_ui.compression import Compression


def words(component: Any) -> str:
    """All the text in a component."""
    if isinstance(component, Component):
        return words(getattr(component, "children", None))
    if isinstance(component, (list, tuple)):
        return " ".join(filter(None, (words(c) for c in component)))
    return "" if component is None else str(component)


def test_importing_the_pages_brings_neither_torch_nor_sql() -> None:
    code = "import sys, fanlight_ui, fanlight_ui.app; print([m for m in ('torch', 'sqlalchemy') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_the_policy_names_every_inline_script_and_nothing_unsafe() -> None:
    from fanlight_ui.app import csp

    app, pages = build(fake_api.Store(0), "")
    policy = csp(pages)
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert "unsafe" not in scripts

    async def index() -> str:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
            return (await http.get("/")).text

    html = asyncio.run(index())
    inline = [
        s
        for kind, s in re.findall(r"<script(?![^>]*src=)([^>]*)>(.*?)</script>", html, re.S)
        if "application/json" not in kind
    ]
    assert len(inline) > 1
    for script in inline:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in scripts


def test_a_second_application_in_the_process_has_all_callbacks_of_its_own() -> None:
    first, second = (build(fake_api.Store(0), "")[1] for _ in range(2))
    assert set(first.callback_map) == set(second.callback_map)
    assert "running.children" in second.callback_map and "jobs.children" in second.callback_map


def test_no_websocket_and_no_tool_server_is_offered() -> None:
    app, pages = build(fake_api.Store(0), "")
    assert "websocket" not in pages._config()
    paths = [getattr(r, "path", "") for r in pages.server.routes]
    assert "/_dash-update-component" in paths
    assert not [p for p in paths if re.search(r"(^|[/_-])ws|mcp", p)]


def test_every_callback_is_asynchronous() -> None:
    import inspect

    _, pages = build(fake_api.Store(0), "")
    plain = [
        name
        for name, c in pages.callback_map.items()
        if "callback" in c and not inspect.iscoroutinefunction(c["callback"])
    ]
    assert plain == []


def luminance(colour: str) -> float:
    def channel(v: int) -> float:
        c = v / 255
        return c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4

    r, g, b = (channel(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("ink", "ground"),
    [
        *((ink, ground) for ink in ("ink", "ink-2", "accent", "bad-ink") for ground in ("paper", "card")),
        ("on-accent", "accent"),
        ("good-ink", "good-soft"),
        ("warn-ink", "warn-soft"),
        ("bad-ink", "bad-soft"),
        ("accent-ink", "accent-soft"),
        ("ink", "bad-soft"),
    ],
)
def test_text_has_contrast(ink: str, ground: str, scheme: int) -> None:
    assert contrast(theme.TOKENS[ink][scheme], theme.TOKENS[ground][scheme]) >= 4.5


def test_the_tokens_reach_the_page_once_for_each_scheme() -> None:
    css = theme.css()
    for name, (light, dark) in theme.TOKENS.items():
        assert css.count(f"--{name}:{light};") == 1 + (light == dark)
        assert css.count(f"--{name}:{dark};") >= 2


def test_links_get_the_prefix_once() -> None:
    session.connect(None, "/fanlight")  # type: ignore[arg-type]
    assert session.href("/e/a b", q="", x=1) == "/fanlight/e/a%20b?x=1"
    assert session.src("/api/v1/x") == session.src("/fanlight/api/v1/x") == "/fanlight/api/v1/x"
    session.connect(None, "")  # type: ignore[arg-type]
    assert session.href("/") == "/"


def test_an_error_of_the_server_is_shown_as_its_sentence() -> None:
    shown = words(errors.notice(NotFound("There is no model “x”.", allowed=["a", "b"], hint="Look under Models.")))
    assert "There is no model “x”." in shown and "a, b" in shown and "Look under Models." in shown


def test_a_page_says_what_a_person_can_do_and_nothing_of_the_api() -> None:
    hint = "And 3 more. GET /api/v1/models lists them."
    shown = words(errors.notice(unknown("model", "x", ["net"], hint=hint)))
    assert "/api/" not in shown and "And 3 more. The page Models" in shown
    bare = "Edit 1: the region must lie inside the picture and must not be empty."
    shown = words(errors.notice(InvalidField(bare, code="invalid_edit", allowed=[0, 0, 8, 8])))
    assert "Edit 1" not in shown and "The region must lie inside" in shown and "Draw the rectangle" in shown
    assert "Allowed" not in shown
    outside = "This part of the picture lies outside what the model sees: columns 3 to 8 and rows 0 to 5."
    hint = "Hiding it would change nothing. Choose a part that reaches into that box."
    assert errors.said(InvalidField(outside, code="outside_view", hint=hint)) == (outside, hint)


def test_an_unforeseen_error_of_a_page_shows_nothing_of_its_insides(caplog: pytest.LogCaptureFixture) -> None:
    @errors.page
    async def layout() -> Component:
        raise KeyError("secret")

    shown = words(asyncio.run(layout()))
    assert "secret" not in shown and "could not be put together" in shown
    assert "secret" in caplog.text


async def answers(app: Any, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
        return await http.get(path, headers={"accept-encoding": "identity", **headers})


def test_static_files_are_compressed_once_and_kept_for_good() -> None:
    app, pages = build(fake_api.Store(0), "")
    html = asyncio.run(answers(app, "/")).text
    script = next(s for s in re.findall(r'src="([^"]+)"', html) if "dash_renderer" in s)
    plain = asyncio.run(answers(app, script))
    packed = asyncio.run(answers(app, script, **{"accept-encoding": "gzip"}))
    assert packed.headers["content-encoding"] == "gzip" and "max-age=31536000" in packed.headers["cache-control"]
    assert packed.content == plain.content and int(packed.headers["content-length"]) < len(plain.content) / 2
    sheet = next(s for s in re.findall(r'href="([^"]+)"', html) if "app.css" in s)
    assert "immutable" in asyncio.run(answers(app, sheet)).headers["cache-control"]


def test_what_is_not_a_static_file_is_not_there() -> None:
    app, _ = build(fake_api.Store(0), "")
    for path in (
        "/_dash-component-suites/dash/%2e%2e/%2e%2e/x.py",
        "/_dash-component-suites/nope/x.js",
        "/assets/nope.js",
    ):
        answer = asyncio.run(answers(app, path))
        assert answer.status_code == 404 and answer.text == "not found"


def test_a_stream_passes_through_as_it_comes() -> None:
    sent: list[bytes] = []

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for i in range(3):
            await send({"type": "http.response.body", "body": b"x" * 5000, "more_body": i < 2})
            assert len(sent) == i + 1

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            sent.append(message["body"])

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/events",
        "query_string": b"",
        "headers": [(b"accept-encoding", b"gzip")],
    }
    asyncio.run(Compression(stream)(scope, None, send))
    assert b"".join(sent) == b"x" * 15000


def test_a_packed_file_is_what_it_was() -> None:
    middleware = Compression(None)
    scope = {"path": "/assets/a.js", "query_string": b"m=1"}
    assert gzip.decompress(asyncio.run(middleware.packed(scope, b"abc" * 1000))) == b"abc" * 1000
