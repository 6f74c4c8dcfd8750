"""Log lines carry the ids of request and job, and never a secret."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight import logs
from fanlight.app import create


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Where everything is logged to, from `debug` on."""
    old = logging.root.handlers[:]
    logging.root.handlers.clear()
    stream = io.StringIO()
    logs.configure("debug", [TOKEN], stream)
    yield stream
    structlog.reset_defaults()
    logging.root.handlers[:] = old


@pytest.fixture
def told(lines: io.StringIO, tmp_path: Path) -> Iterator[Api]:
    with TestClient(
        create(settings(tmp_path), token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}
    ) as http:
        yield Api(started(http))


def parsed(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


def test_request_and_job_are_found_by_their_ids(told: Api, lines: io.StringIO) -> None:
    answer = told.ask(input=told.upload(noise(1))["id"], wait=0)
    told.finished(answer.json()["id"])
    request = answer.headers["x-request-id"]
    mine = [line for line in parsed(lines) if line.get("request") == request]
    queued = next(line for line in mine if line["event"] == "job queued")
    assert next(line for line in mine if line["event"] == "request")["route"] == "/api/v1/explanations"
    ended = [line for line in parsed(lines) if line["event"] == "job ended" and line["job"] == queued["job"]]
    assert len(ended) == 1 and ended[0]["how"] == "done" and ended[0]["attempt"] == 1


def test_no_secret_appears_whatever_is_done_with_it(told: Api, lines: io.StringIO) -> None:
    record = told.explain(input=told.upload(noise(2))["id"])
    share = told.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    browser = TestClient(told.http.app, raise_server_exceptions=False)
    browser.get(f"/?token={TOKEN}", follow_redirects=False)
    (cookie,) = browser.cookies.values()
    browser.get("/api/v1/models")
    browser.get(f"/s/{share['token']}")
    browser.get(f"/?token={TOKEN}x")
    browser.get("/api/v1/models", headers={"Authorization": "Bearer wrong-but-secret"})
    browser.post("/login", data={"token": TOKEN})

    def broken(token: str) -> None:
        raise RuntimeError(f"cannot open /s/{token} with Bearer {TOKEN}")

    told.http.app.add_api_route("/s/{token}/broken", broken)  # type: ignore[attr-defined]
    told.http.app.router.routes.insert(0, told.http.app.router.routes.pop())  # type: ignore[attr-defined]
    assert browser.get(f"/s/{share['token']}/broken").status_code == 500
    text = lines.getvalue()
    assert "RuntimeError" in text and "unexpected error" in text
    assert [s for s in (TOKEN, share["token"], cookie, "wrong-but-secret") if s in text] == []


@pytest.mark.parametrize(
    ("written", "secret"),
    [
        ({"authorization": "Basic abc123"}, "abc123"),
        ({"password": "hunter22"}, "hunter22"),
        ({"problem": "connection to postgresql://fan:hunter22@db/x failed"}, "hunter22"),
        ({"problem": "key fl_abcd1234_0123456789abcdefghijABCDEFGHIJ refused"}, "0123456789abcdefghij"),
        ({"url": "http://h/?x=1&token=abcdef&y=2"}, "abcdef"),
        ({"problem": f"token {TOKEN}"}, TOKEN),
    ],
)
def test_what_looks_like_a_secret_is_hidden(lines: io.StringIO, written: dict[str, str], secret: str) -> None:
    structlog.get_logger().warning("something", **written)
    logging.getLogger("library").warning("said %s", written)
    text = lines.getvalue()
    assert text.count("something") == 1 and logs.HIDDEN in text and text.count("library") == 1
    assert secret not in parsed_first(text)
    if "authorization" not in written and "password" not in written:  # a library's sentence has no names of fields
        assert secret not in text


def parsed_first(text: str) -> str:
    return text.splitlines()[0]


def test_what_is_no_secret_stays(lines: io.StringIO) -> None:
    structlog.get_logger().info("job queued", job="AbCd1234EfGh5678", kind="explain", path="/s/short", tokens=12)
    line = json.loads(lines.getvalue())
    assert (line["job"], line["path"], line["tokens"]) == ("AbCd1234EfGh5678", "/s/short", 12)
