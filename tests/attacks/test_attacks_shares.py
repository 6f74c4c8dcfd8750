"""A link opens what it was made for and nothing else: it is not guessed, told on, written through, or open once it is over."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from attacks_rig import Target, clean, noise

PARTS = ("", "/preview.png", "/0/overlay.png", "/0/map.png", "/0/input.png", "?embed=1", "/1/overlay.png", "/0/x.png")


def link(target: Target, **more: Any) -> dict[str, Any]:
    record = target.explain(input=target.upload(noise(secrets.randbelow(2**31))).json()["id"])
    answer = target.call("POST", "/shares", json={"explanations": [record["id"]], **more})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def told(answer: httpx.Response) -> tuple[Any, ...]:
    """Everything of an answer that a stranger could tell apart."""
    return (
        answer.status_code,
        answer.content,
        {k: v for k, v in answer.headers.items() if k not in ("date", "x-request-id")},
    )


def test_guesses_of_every_kind_get_the_answer_of_a_link_that_is_over(target: Target, stranger: httpx.Client) -> None:
    made = link(target)
    assert len(made["token"]) >= 43, "256 bits"
    assert target.call("DELETE", f"/shares/{made['id']}").status_code == 200
    over = told(stranger.get(f"/s/{made['token']}"))
    assert over[0] == 404
    token = target.token
    guesses = [secrets.token_urlsafe(32) for _ in range(200)]
    guesses += [
        token[:-1],
        token + "x",
        token.swapcase(),
        token[::-1],
        token[1:],
        " " + token,
        token + "=",
        "%00" + token,
        token + "%20",
    ]
    guesses += [
        target.share,
        target.explanation,
        target.artifact,
        "*",
        "%",
        "_" * 43,
        "' OR 1=1 --",
        "0",
        "null",
        "undefined",
        token[:20] + "%",
    ]
    for guess in guesses:
        found = stranger.get(f"/s/{guess}")
        assert told(found) == over or found.status_code == 400, guess  # 400: no address at all
    assert stranger.get(f"/s/{token}").status_code == 200


def test_two_links_have_nothing_in_common(target: Target) -> None:
    tokens = [link_of(target) for _ in range(20)]
    for n, one in enumerate(tokens):
        for other in tokens[:n]:
            assert sum(a == b for a, b in zip(one, other, strict=True)) < 12


def link_of(target: Target) -> str:
    made = target.call("POST", "/shares", json={"explanations": [target.explanation]}).json()
    assert target.call("DELETE", f"/shares/{made['id']}").status_code == 200
    return str(made["token"])


@pytest.mark.parametrize("end", ["revoked", "the record deleted", "all shares of the record revoked again"])
def test_nothing_of_a_link_that_is_over_opens(target: Target, stranger: httpx.Client, end: str) -> None:
    made = link(target)
    seen = {part: stranger.get(f"/s/{made['token']}{part}") for part in PARTS}
    assert seen[""].status_code == 200 and seen["/0/overlay.png"].status_code == 200
    if end == "the record deleted":
        assert target.call("DELETE", f"/explanations/{made['explanations'][0]}").status_code == 200
    else:
        assert target.call("DELETE", f"/shares/{made['id']}").status_code == 200
    over = told(stranger.get("/s/" + "x" * 43))
    for part, before in seen.items():
        tags = {
            k: before.headers[v]
            for k, v in (("if-none-match", "etag"), ("if-modified-since", "last-modified"))
            if v in before.headers
        }
        for headers in ({}, tags, {"if-none-match": "*"}, {"range": "bytes=0-10"}, {"cache-control": "only-if-cached"}):
            assert told(stranger.get(f"/s/{made['token']}{part}", headers=headers)) == over, (part, headers)
        assert before.headers["cache-control"] == "no-store", "nobody on the way keeps a copy"
    assert target.call("GET", "/shares").status_code == 200


def test_a_link_says_nothing_of_itself_to_anybody_else(target: Target, stranger: httpx.Client) -> None:
    """Neither to pages that it leads to, nor to search engines, logs, metrics, the audit or lists."""
    made = link(target)
    page = stranger.get(f"/s/{made['token']}", headers={"referer": "http://evil.example/"})
    for part in PARTS[:3]:
        headers = stranger.get(f"/s/{made['token']}{part}").headers
        assert headers["referrer-policy"] == "no-referrer" and "noindex" in headers["x-robots-tag"], part
        assert "set-cookie" not in headers
    assert "http://" not in page.text.replace(target.server.url, "").replace("http://www.w3.org", "")
    assert target.server.token not in page.text and target.picture not in page.text
    lists = [
        target.call("GET", p).text
        for p in ("/shares", "/audit", "/explanations", f"/explanations/{target.explanation}", "/jobs")
    ]
    lists += [
        target.http.get("/metrics").text,
        target.server.log.read_text(),
        target.http.get("/api/v1/openapi.json").text,
    ]
    assert [text[:80] for text in lists if made["token"] in text] == []
    database = b"".join(p.read_bytes() for p in target.server.data.glob("fanlight.sqlite*"))
    assert made["token"].encode() not in database, "only its hash is stored"


def test_nothing_can_be_written_or_computed_through_a_link(target: Target, stranger: httpx.Client) -> None:
    made = link(target)
    before = target.call("GET", "/audit").json()["total"], target.call("GET", "/jobs").json()["total"]
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"):
        for part in PARTS:
            answer = stranger.request(
                method, f"/s/{made['token']}{part}", json={"explanation": made["explanations"][0]}
            )
            assert answer.status_code in (404, 405), (method, part, answer.status_code)
    for bearer in (made["token"], made["id"], f"fl_{made['id']}_{made['token']}"):
        for path in ("/api/v1/models", f"/api/v1/explanations/{made['explanations'][0]}", "/metrics", "/"):
            assert stranger.get(path, headers={"authorization": f"Bearer {bearer}"}).status_code in (401, 403)
            assert stranger.get(f"{path}?token={bearer}").status_code == 401
    with target.browser(headers={"referer": f"{target.server.url}/s/{made['token']}"}) as http:
        assert http.get(f"/api/v1/artifacts/{target.artifact}").status_code == 401
        assert http.post("/_dash-update-component", json={}).status_code == 401
    assert (target.call("GET", "/audit").json()["total"], target.call("GET", "/jobs").json()["total"]) == before


def test_a_link_shows_its_own_records_and_no_others(target: Target, stranger: httpx.Client) -> None:
    made, other = link(target), link(target)
    page = stranger.get(f"/s/{made['token']}").text
    assert other["explanations"][0] not in page
    for n in (
        "1",
        "-1",
        "0/../../" + other["token"] + "/0",
        "0x0",
        "²",
        other["explanations"][0],
        "99999999999999999999",
    ):
        assert target.line(quote(f"/s/{made['token']}/{n}/overlay.png"), enter=False).status in (400, 404), n
    for name in ("../../api/v1/models", "raw", "table.csv", "map.safetensors", "overlay.png.bak", other["token"]):
        assert target.line(f"/s/{made['token']}/0/{name}", enter=False).status in (400, 404), name


def test_what_changes_after_it_was_shared_does_not_show(target: Target, stranger: httpx.Client) -> None:
    made = link(target)
    before = stranger.get(f"/s/{made['token']}").text
    target.call("PATCH", f"/explanations/{made['explanations'][0]}", json={"title": "a secret", "note": "a secret"})
    assert "a secret" not in stranger.get(f"/s/{made['token']}").text and "a secret" not in before


def test_no_answer_shows_the_inside_of_the_server(target: Target, stranger: httpx.Client) -> None:
    """Whatever goes wrong on the way, from a stranger and from somebody who is in (stack traces, debug pages, tools of developers)."""
    for path in ("/docs", "/redoc", "/openapi.json", "/_mcp", "/mcp", "/_dash-devtools", "/debug", "/.well-known/x", "/.env"):  # fmt: skip
        for http in (stranger, target.http):
            for method in ("GET", "POST"):
                answer = http.request(method, path, headers={"accept": "application/json"})
                assert answer.status_code < 500 and clean(answer.text) == [], (path, method)
                assert "swagger" not in answer.text.lower() and "jsonrpc" not in answer.text
    for body in (b"{", b"\xff", b'{"output": 1}', b"[]", b'{"output": "x", "inputs": 5, "changedPropIds": {}}'):
        answer = target.http.post("/_dash-update-component", content=body, headers={"content-type": "application/json"})
        assert 400 <= answer.status_code < 500 and clean(answer.text) == [], answer.text[:300]
    assert target.http.get("/_reload-hash").status_code < 500
    assert "fanlight/" not in target.http.get("/_reload-hash").text
    for header in ("server", "x-powered-by", "x-debug", "x-aspnet-version"):
        assert header not in target.http.get("/api/v1/models").headers, header


def test_callbacks_that_name_other_outputs_than_theirs_are_refused(target: Target) -> None:
    """What a callback returns is put where the request says; a request that says it wrongly is a foreign call and no error of the server."""
    known = target.http.get("/_dash-dependencies").json()
    tried = 0
    for one in known:
        for outputs in ([], [{"id": "x", "property": "y"}] * 9, None, 5, [[]]):
            body = {"output": one["output"], "outputs": outputs, "changedPropIds": [], "inputs": [{**i, "value": "/"} for i in one["inputs"]],
                    "state": [{**s, "value": None} for s in one["state"]]}  # fmt: skip
            answer = target.http.post("/_dash-update-component", json=body)
            assert answer.status_code < 500 and clean(answer.text) == [], (one["output"], outputs, answer.text[:300])
            tried += 1
    assert tried > 50


@pytest.mark.parametrize(
    "text", ["a\r\nlevel=error event=forged", "\x1b[31mred", '{"event": "forged"}', "a\u2028b", "%0d%0aforged"]
)
def test_no_request_writes_a_line_of_its_own_into_the_log(target: Target, stranger: httpx.Client, text: str) -> None:
    before = target.server.log.stat().st_size
    quoted = httpx.QueryParams({"q": text})
    target.http.get(f"/api/v1/explanations?{quoted}")
    target.upload(noise(1), text)
    stranger.post("/login", data={"name": text, "password": "x"})
    target.line(
        "/" + str(quoted)[2:],
        user_agent="a\tb",
        x_request_id=text.encode("ascii", "ignore").decode().replace("\r\n", " "),
    )
    with target.server.log.open("rb") as log:
        log.seek(before)
        lines = log.read().decode().split("\n")
    assert [x for x in lines if x and not x.startswith("{")] == [] and not any(
        x.startswith(('{"event": "forged"', "level=")) for x in lines
    )
    assert "\x1b" not in "".join(lines)
