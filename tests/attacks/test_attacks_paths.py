"""No address, id or file name leads to a file, and no text makes the server ask another host."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from attacks_rig import SECRETS, Raw, Target, clean, noise

UP = "../" * 12
TRAVERSALS = (
    f"{UP}etc/passwd",
    f"{quote(UP, safe='')}etc%2fpasswd",
    "%2e%2e%2f" * 12 + "etc/passwd",
    "%252e%252e%252f" * 12 + "etc%252fpasswd",  # twice encoded: CVE-2024-1560
    "..%c0%af" * 12 + "etc/passwd",
    "..\\" * 12 + "etc\\passwd",  # CVE-2023-2780
    "%5c..%5c..%5c..%5cetc%5cpasswd",
    "/etc/passwd",  # absolute: CVE-2023-3765
    "%2fetc%2fpasswd",
    "file:///etc/passwd",
    "file:%2f%2f%2fetc%2fpasswd",
    f"x#/{UP}etc/passwd",  # CVE-2024-2928
    f"x%23/{UP}etc/passwd",
    "C:%5cwindows%5cwin.ini",  # CVE-2026-28414
    "%5c%5chost%5cshare",
    "....//....//....//etc/passwd",
    "..;/..;/etc/passwd",
    "../data-other/token",  # a neighbour whose name begins alike: CVE-2026-35397
    "../token",
    "../../data/token",
    "../fanlight.sqlite",
    "%00",
    "x%00.png",
    ".",
    "..",
    "~root",
    "$HOME",
    "CON",
)
PAGES = ("/assets/", "/_dash-component-suites/dash/", "/_dash-component-suites/", "/s/", "/e/", "/", "/_favicon.ico/")


def inside(answer: Raw, target: Target) -> list[bytes]:
    """What of the machine's files an answer shows."""
    held = (*SECRETS, target.server.token.encode(), str(target.server.data).encode())
    return [s for s in held if s in answer.body]


def test_no_parameter_of_any_address_leads_to_a_file(target: Target) -> None:
    tried = 0
    for method, path, _ in target.operations():
        if "{" not in path:
            continue
        start = path[: path.index("{")]
        rest = path[path.index("}") + 1 :].replace("{", "").replace("}", "")
        for traversal in TRAVERSALS:
            answer = target.line(start + traversal + rest, method)
            assert 300 <= answer.status < 500, (method, start + traversal + rest, answer.status, answer.text[:300])
            assert inside(answer, target) == [] and clean(answer.text) == [], (method, path, traversal)
            tried += 1
    assert tried > 1500


@pytest.mark.parametrize("before", PAGES)
def test_no_address_of_a_page_or_its_files_leads_to_a_file(target: Target, before: str) -> None:
    for traversal in TRAVERSALS:
        answer = target.line(before + traversal)
        assert 200 <= answer.status < 500, (traversal, answer.status)
        assert inside(answer, target) == [] and clean(answer.text) == [], traversal
        if answer.status == 200:  # an address within the application, each of which is the same empty page
            assert answer.body.lstrip().startswith(b"<!DOCTYPE html>"), answer.body[:80]


NAMES = ("/etc/passwd", f"{UP}etc/passwd", "file:///etc/passwd", "..", "../../x", "C:\\windows\\win.ini", "a/../../b")


@pytest.mark.parametrize("name", NAMES)
def test_no_id_in_a_body_leads_to_a_file(target: Target, name: str) -> None:
    asks: list[tuple[str, str, Any]] = [
        ("POST", "/explanations", {"model": name, "explainer": "saliency", "input": target.picture}),
        ("POST", "/explanations", {"model": "tiny", "explainer": name, "input": target.picture}),
        ("POST", "/explanations", {"model": "tiny", "explainer": "saliency", "input": name}),
        ("POST", "/sweeps", {"model": "tiny", "explainer": "saliency", "source": {"dataset": name}}),
        ("POST", "/sweeps", {"model": name, "explainer": "saliency", "source": {"dataset": "photographs"}}),
        ("POST", "/interventions", {"explanation": name, "edits": [{"mask_region": [0, 0, 8, 8]}]}),
        ("POST", "/shares", {"explanations": [name]}),
        ("POST", "/models/tiny/derivations", {"change": {"remove": [1]}, "dataset": name}),
        ("POST", "/inputs", {"kind": "prompt", "value": {"text": "a disc", "picture": name}}),
        ("POST", "/workspaces", {"id": name, "name": "x"}),
    ]
    for method, path, body in asks:
        answer = target.call(method, path, json=body)
        assert 400 <= answer.status_code < 500, (path, answer.status_code, answer.text[:300])
        assert clean(answer.text) == [] and "root:" not in answer.text


@pytest.mark.parametrize("name", [*NAMES, "x" * 300, "a\nb", 'a"; filename="b.html', "<b>.png", ".", "\x00.png"])
def test_the_name_of_an_upload_is_a_word_and_no_place(target: Target, name: str) -> None:
    before = files(target)
    answer = target.upload(noise(zlib.crc32(name.encode())), name)
    assert answer.status_code in (201, 400), answer.text
    if answer.status_code == 201:
        shown = target.call("GET", f"/inputs/{answer.json()['id']}").json()["name"]
        assert "/" not in shown and "\\" not in shown and "\n" not in shown and len(shown) <= 200, shown
    assert {p.parent.parent.parent.name for p in files(target) - before} <= {"artifacts"}


def files(target: Target) -> set[Path]:
    """Everything that the server has written, but for the database."""
    return {p for p in target.server.data.rglob("*") if p.is_file() and "sqlite" not in p.name}


def test_files_that_are_offered_have_a_name_of_the_servers_own(target: Target) -> None:
    """A title, a note or a label is never part of a name under which something is saved."""
    title = '../../x"; filename="evil.html\r\nset-cookie: a=b'
    target.call("PATCH", f"/explanations/{target.explanation}", json={"title": title.replace("\r\n", " ")})
    for form in ("html", "pdf", "svg", "png", "csv", "safetensors", "json", "bib"):
        answer = target.call("GET", f"/explanations/{target.explanation}/export.{form}")
        assert answer.status_code == 200, (form, answer.text[:200])
        offered = answer.headers["content-disposition"]
        assert offered.startswith("attachment; filename=") and ".." not in offered and "evil" not in offered, offered
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """Something on this machine that nobody has a reason to ask, and what it was asked."""
    heard: list[bytes] = []
    door = socket.create_server(("127.0.0.1", 0))
    door.settimeout(0.1)
    over = threading.Event()

    def wait() -> None:
        while not over.is_set():
            try:
                with door.accept()[0] as s:
                    heard.append(s.recv(200))
            except TimeoutError:
                continue

    thread = threading.Thread(target=wait)
    thread.start()
    yield f"http://127.0.0.1:{door.getsockname()[1]}/x", heard
    over.set()
    thread.join()
    door.close()


def test_no_address_in_any_field_is_asked(
    target: Target, stranger: httpx.Client, listener: tuple[str, list[bytes]]
) -> None:
    """There is no input by address; a field that takes text takes it as text (server-side request forgery)."""
    url, heard = listener
    schema = target.http.get("/api/v1/openapi.json").json()
    tried = 0
    for method, path, operation in target.operations():
        address = path
        for name in ("{id}", "{digest}", "{token}", "{n}", "{name}", "{a}", "{b}", "{form}", "{person}", "{dataset}"):
            address = address.replace(name, quote(url, safe=""))
        query = {p["name"]: url for p in operation.get("parameters", []) if p["in"] == "query"}
        body = _filled(operation.get("requestBody", {}), schema, url)
        target.http.request(method, address, params=query, json=body, timeout=30) if "events" not in path else None
        tried += 1
    target.call("PATCH", f"/explanations/{target.explanation}", json={"note": url, "title": url, "tags": [url[:40]]})
    target.upload(f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{url}"/></svg>'.encode(), "x.svg")
    target.upload(url.encode(), url)
    target.call("GET", f"/explanations/{target.explanation}/export.pdf")
    stranger.get(f"/s/{target.token}")
    assert tried > 80 and heard == []


def _filled(body: dict[str, Any], schema: dict[str, Any], text: str) -> Any:
    """A body with `text` in every field that may be text; None where there is none."""
    found = body.get("content", {}).get("application/json", {}).get("schema")
    return None if found is None else _value(found, schema, text, 0)


def _value(part: dict[str, Any], schema: dict[str, Any], text: str, depth: int) -> Any:
    if "$ref" in part:
        part = schema["components"]["schemas"][part["$ref"].rsplit("/", 1)[1]]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in part:
            texts = [p for p in part[choice] if p.get("type") == "string"]
            return _value((texts or part[choice])[0], schema, text, depth)
    if "const" in part:
        return part["const"]
    if part.get("type") == "object":
        given = part.get("properties", {})
        return {k: _value(v, schema, text, depth + 1) for k, v in given.items()} if depth < 6 else {}
    if part.get("type") == "array":
        return [_value(part.get("items", {}), schema, text, depth + 1)] if depth < 6 else []
    if part.get("type") in ("integer", "number"):
        return part.get("minimum", 1)
    return False if part.get("type") == "boolean" else text


def test_the_filled_bodies_are_those_of_the_schema(target: Target) -> None:
    schema = target.http.get("/api/v1/openapi.json").json()
    bodies = [(p, _filled(o.get("requestBody", {}), schema, "TEXT")) for _, p, o in target.operations()]
    with_text = {path for path, body in bodies if "TEXT" in json.dumps(body)}
    assert {"/api/v1/explanations", "/api/v1/shares", "/api/v1/views", "/api/v1/people"} <= with_text
