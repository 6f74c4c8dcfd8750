"""Small requests that would cost much: pictures, bodies, heads and parameters; each is refused soon, and memory stays where it was."""

from __future__ import annotations

import gzip
import io
import json
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pytest
from attacks_rig import Target, answered, clean, sentence
from PIL import Image

SOON = 10.0  # seconds; a refusal takes milliseconds on a quiet machine
ROOM = 600 * 2**20  # bytes above the start: two pictures of the largest size allowed are decoded at a time


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, depth: int = 1, colour: int = 0, *, rows: int | None = None, more: bytes = b""
) -> bytes:
    """A black picture of this size in a few kilobytes."""
    bits = depth * {0: 1, 2: 3, 6: 4}[colour]
    row = b"\0" + bytes((width * bits + 7) // 8)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(height if rows is None else rows)) + packer.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def ztxt(megabytes: int) -> bytes:
    return chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(megabytes * 2**20), 9))


def gif(frames: int) -> bytes:
    out = io.BytesIO()
    first, *rest = (Image.fromarray(np.full((64, 64), n % 255, np.uint8)) for n in range(frames))
    first.save(out, "GIF", save_all=True, append_images=rest)
    return out.getvalue()


GIF = b"GIF89a" + struct.pack("<HHBBB", 65535, 65535, 0x80, 0, 0) + bytes(6)
GIF += b"\x2c" + struct.pack("<HHHHB", 0, 0, 65535, 65535, 0) + b"\x02\x02\x4c\x01\0;"
BMP = b"BM" + struct.pack("<IHHI", 1000, 0, 0, 54)
BMP += struct.pack("<IiiHHIIiiII", 40, 46000, 46000, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(900)
LARGEST = 40_000_000  # pixels, the default of FANLIGHT_MAX_MEGAPIXELS
PICTURES: dict[str, Callable[[], bytes]] = {
    "9000 x 9000 in one bit": lambda: png(9000, 9000),
    "13000 x 13000 in one bit": lambda: png(13000, 13000),
    "60000 x 60000, claimed": lambda: png(60000, 60000, rows=1),
    "the longest side there is": lambda: png(2**31 - 1, 1, rows=0),
    "one row of a million": lambda: png(1_000_000, 1, 8, 2),
    "16 bits and alpha": lambda: png(7000, 7000, 16, 6, rows=3),
    "a gigabyte of text": lambda: png(8, 8, more=ztxt(256) * 4),
    "a profile of a gigabyte": lambda: png(8, 8, more=chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(2**28), 9))),
    "more data than rows": lambda: png(8, 8, rows=2_000_000),
    "less data than rows": lambda: png(4000, 4000, rows=1),
    "three hundred frames": lambda: gif(300),
    "a GIF of the largest screen": lambda: GIF,
    "a BMP of two gigapixels": lambda: BMP,
    "a vector picture": lambda: b'<svg xmlns="http://www.w3.org/2000/svg" width="99999" height="99999"/>',
    "entities within entities": lambda: b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><svg>&b;</svg>',
    "PostScript": lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 99999 99999\n{} loop\n",
}  # fmt: skip


@pytest.fixture
def bounded(target: Target) -> Iterator[None]:
    """Neither the server nor its worker grows by more than ROOM while the test runs, looked at afterwards and in between."""
    family = [psutil.Process(target.server.pid), *psutil.Process(target.server.pid).children(recursive=True)]
    before = sum(p.memory_info().rss for p in family)
    begun = time.monotonic()
    yield
    grown = sum(p.memory_info().rss for p in family) - before
    assert grown < ROOM, f"{grown / 2**20:.0f} MiB more"
    assert time.monotonic() - begun < 6 * SOON


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_that_would_grow_is_refused_before_it_does(target: Target, kind: str) -> None:
    blob = PICTURES[kind]()
    begun = time.monotonic()
    answer = target.upload(blob)
    assert time.monotonic() - begun < SOON
    if answer.status_code == 201:  # of an allowed size, with much beside it: its pixels alone are kept
        assert answer.json()["width"] * answer.json()["height"] <= LARGEST
        assert kind in ("one row of a million", "less data than rows", "a gigabyte of text", "a profile of a gigabyte",
                        "more data than rows", "three hundred frames"), kind  # fmt: skip
    else:
        assert answer.status_code in (400, 413, 415, 422), answer.text
        sentence(answer)


@pytest.mark.usefixtures("bounded")
def test_ten_bombs_at_once_are_ten_refusals(target: Target) -> None:
    from concurrent.futures import ThreadPoolExecutor

    blob = PICTURES["9000 x 9000 in one bit"]()
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: target.upload(blob), range(10)))
    assert {a.status_code for a in answers} <= {413, 415, 422, 429}


ZIPPED = gzip.compress(b'{"explanations": ["' + b"x" * 50_000_000 + b'"]}')


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "identity", "x-gzip", "compress"])
def test_no_body_is_unpacked(target: Target, coding: str) -> None:
    """A body is read as it comes; 50 MB in 50 kB stay 50 kB, and are no JSON."""
    answer = target.call(
        "POST", "/shares", content=ZIPPED, headers={"content-type": "application/json", "content-encoding": coding}
    )
    assert answer.status_code in (400, 415, 422), answer.text[:200]
    sentence(answer)


def parts(count: int, size: int = 10, name: str = "f") -> bytes:
    one = b'--x\r\nContent-Disposition: form-data; name="%s"; filename="a.png"\r\n\r\n%s\r\n'
    return b"".join(one % (f"{name}{n}".encode(), b"y" * size) for n in range(count)) + b"--x--\r\n"


FORMS: dict[str, Callable[[], bytes]] = {
    "a hundred thousand files": lambda: parts(100_000),
    "a thousand files of one name": lambda: parts(1000).replace(b"f1", b"file"),
    "a field without end": lambda: b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + b"y" * 20_000_000,
    "a head without end": lambda: b"--x\r\nContent-Disposition: form-data; name=" + b"y" * 5_000_000,
    "a million heads": lambda: b"--x\r\n" + b"A: b\r\n" * 1_000_000,
    "a million boundaries": lambda: b"--x\r\n" * 1_000_000,
    "nothing but line ends": lambda: b"\r\n" * 2_000_000,
}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", FORMS)
def test_a_form_of_many_parts_is_refused(target: Target, kind: str) -> None:
    begun = time.monotonic()
    answer = target.call(
        "POST", "/inputs", content=FORMS[kind](), headers={"content-type": "multipart/form-data; boundary=x"}
    )
    assert answer.status_code in (400, 413, 415, 422), (answer.status_code, answer.text[:200])
    sentence(answer)
    assert time.monotonic() - begun < SOON


TEXTS: dict[str, Callable[[], bytes]] = {
    "a hundred thousand fields": lambda: json.dumps({f"k{n}": n for n in range(100_000)}).encode(),
    "one field a hundred thousand times": lambda: b"{" + b'"a": 1,' * 100_000 + b'"a": 2}',
    "a hundred thousand ids": lambda: json.dumps({"explanations": ["x"] * 100_000}).encode(),
    "a text of a megabyte": lambda: json.dumps({"explanations": ["x" * 1_000_000]}).encode(),
    "deep": lambda: b"[" * 900_000 + b"]" * 900_000,
    "deep and named": lambda: b'{"a":' * 300_000,
    "a number of a million digits": lambda: b'{"explanations": ' + b"9" * 1_000_000 + b"}",
    "an exponent": lambda: b'{"explanations": 1e999999999}',
    "spaces": lambda: b" " * 2_000_000,
    "half of an escape": lambda: b'{"explanations": ["\\u00',
    "a number of five thousand digits": lambda: b'{"kind": ' + b"9" * 5000 + b"}",
    "escapes": lambda: b'{"explanations": ["' + b"\\u0041" * 300_000 + b'"]}',
}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", TEXTS)
def test_a_body_of_much_json_is_refused_soon(target: Target, kind: str) -> None:
    body = TEXTS[kind]()
    for method, path in (
        ("POST", "/shares"),
        ("POST", "/explanations"),
        ("POST", "/interventions"),
        ("POST", "/views"),
    ):
        begun = time.monotonic()
        answer = target.call(method, path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (400, 413, 422), (path, answer.status_code, answer.text[:200])
        assert len(answer.content) < 20_000
        sentence(answer)
        assert time.monotonic() - begun < SOON


HEADS: dict[str, bytes] = {
    "ten thousand lines": b"x-a: b\r\n" * 10_000,
    "a line of a megabyte": b"x-a: " + b"b" * 1_000_000 + b"\r\n",
    "a cookie of ten thousand": b"cookie: " + b"a=b; " * 10_000 + b"\r\n",
    "a thousand tags": b"if-none-match: " + b'W/"x",' * 9_000 + b"\r\n",
    "ten thousand ranges": b"range: bytes=" + b"0-1," * 9_000 + b"0-1\r\n",
    "many languages": b"accept-language: " + b"en;q=0.1," * 5_000 + b"\r\n",
    "quotes without end": b'cookie: a="' + b'\\"' * 30_000 + b"\r\n",
    "a forged length": b"content-length: 99999999999999999999\r\n",
    "two lengths": b"content-length: 1\r\ncontent-length: 2\r\n",
    "length and chunks": b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
    "unknown coding": b"transfer-encoding: gzip\r\n",
    "a negative length": b"content-length: -1\r\n",
}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("kind", HEADS)
def test_a_head_that_costs_much_or_lies_is_answered_soon(target: Target, kind: str) -> None:
    enter = f"host: 127.0.0.1\r\nauthorization: Bearer {target.server.token}\r\nconnection: close\r\n".encode()
    for address in (b"/api/v1/models", f"/api/v1/artifacts/{target.artifact}/raw".encode(), b"/"):
        begun = time.monotonic()
        try:
            answer = target.raw(b"GET " + address + b" HTTP/1.1\r\n" + enter + HEADS[kind] + b"\r\n", wait=False)
        except (ConnectionResetError, BrokenPipeError):
            continue  # closed while it was still being sent
        assert answer.status < 500 and clean(answer.text) == [], (kind, answer.status, answer.text[:300])
        assert time.monotonic() - begun < SOON


@pytest.mark.usefixtures("bounded")
def test_an_address_of_a_megabyte_and_a_query_of_thousands(target: Target) -> None:
    for address in ("/" + "a" * 60_000, "/api/v1/models/" + "%41" * 15_000, "/api/v1/explanations?" + "q=a&" * 10_000,
                    "/api/v1/explanations?" + "&".join(f"k{n}=1" for n in range(5_000)), "/s/" + "a/" * 20_000,
                    "/api/v1/comparisons?ids=" + "x," * 20_000, "/api/v1/explanations?q=" + "a+" * 20_000):  # fmt: skip
        begun = time.monotonic()
        answer = target.line(address)
        assert answer.status < 500 and clean(answer.text) == [], (address[:40], answer.status)
        assert time.monotonic() - begun < SOON, address[:40]


# --- parameters


def refused_values(field: dict[str, Any]) -> list[Any]:
    """What is outside of a declared number, or no number."""
    kinds = [field, *field.get("anyOf", [])]
    numbers = [k for k in kinds if k.get("type") in ("integer", "number")]
    if not numbers:
        return []
    top = max((k.get("maximum", k.get("exclusiveMaximum", np.inf)) for k in numbers), default=np.inf)
    low = min((k.get("minimum", k.get("exclusiveMinimum", -np.inf)) for k in numbers), default=-np.inf)
    assert np.isfinite(top) and np.isfinite(low), f"a number without bounds: {field}"
    return [top * 2 + 1 if top > 0 else 1, 10**9, 10**18, 2**63, 1e308, low - 1, -(10**9), "1e9", "NaN", [], {}]


def test_every_number_of_every_method_is_bounded_and_beyond_it_refused(target: Target) -> None:
    """Steps of 10**9, masks of 10**7, windows of -1: nothing of it becomes a job."""
    before = target.call("GET", "/jobs").json()["total"]
    tried = 0
    for method in target.call("GET", "/explainers").json():
        for name, field in method["params"].get("properties", {}).items():
            for value in refused_values(field):
                body = {"model": "tiny", "explainer": method["name"], "input": target.picture, "params": {name: value}}
                answer = target.call("POST", "/explanations", json=body)
                assert 400 <= answer.status_code < 500, (method["name"], name, value, answer.text[:200])
                assert clean(answer.text) == []
                tried += 1
    assert tried > 200 and target.call("GET", "/jobs").json()["total"] == before


def test_the_dearest_request_that_is_allowed_can_be_cancelled_and_keeps_nobody_waiting(target: Target) -> None:
    """Every parameter at its largest: either it is too much to be taken on, or a job that another person overtakes."""
    jobs = []
    for method in target.call("GET", "/explainers").json():
        params = {}
        for name, field in method["params"].get("properties", {}).items():
            tops = [k["maximum"] for k in (field, *field.get("anyOf", [])) if "maximum" in k]
            params |= {name: max(tops)} if tops else {}
        body = {"model": "tiny", "explainer": method["name"], "input": target.picture, "params": params, "seed": 99}
        answer = target.call("POST", "/explanations", json=body)
        assert answer.status_code in (200, 202, 409, 422, 429), (method["name"], answer.text[:300])
        if answer.status_code == 202:
            jobs.append(answer.json()["job"])
    assert len(jobs) > 3
    begun = time.monotonic()
    assert target.explain(input=target.picture, explainer="saliency", seed=123)["state"] == "succeeded"
    assert time.monotonic() - begun < 2 * SOON
    for job in jobs:
        assert target.call("DELETE", f"/jobs/{job}").status_code in (200, 404, 409)
    end = time.monotonic() + 60
    while target.call("GET", "/jobs?state=queued,running").json()["total"]:
        assert time.monotonic() < end, "what was cancelled goes on"
        time.sleep(0.1)


@pytest.mark.parametrize("query", ["size=100000000", "size=-1", "size=1e9", "size=nan", "box=0,0,1e308,1e308", "box=" + "0," * 40,
                                   "limit=1000000000", "limit=-1", "wait=1e9", "wait=-1", "wait=nan", "wait=inf"])  # fmt: skip
def test_no_query_asks_for_more_than_a_page_or_a_picture(target: Target, query: str) -> None:
    for path in (f"/inputs/{target.picture}/image.png", f"/artifacts/{target.artifact}/render.png", "/explanations", "/jobs", "/audit"):  # fmt: skip
        begun = time.monotonic()
        assert 400 <= target.call("GET", f"{path}?{query}").status_code < 500, (path, query)
        assert time.monotonic() - begun < SOON
    if query.startswith("wait"):
        body = {"model": "tiny", "explainer": "saliency", "input": target.picture}
        assert target.call("POST", f"/explanations?{query}", json=body).status_code in (200, 202, 422)


def test_a_body_that_comes_byte_by_byte_or_not_at_all_holds_up_nobody(target: Target) -> None:
    """A hundred that began and do not go on (slowloris), beside which everybody else is served as before."""
    head = (
        f"POST /api/v1/shares HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {target.server.token}\r\n".encode()
    )
    opened = []
    try:
        for n in range(100):
            s = socket.create_connection(("127.0.0.1", target.server.port), timeout=20)
            opened.append(s)
            s.sendall(b"GET /" if n % 2 else head + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        for _ in range(5):
            begun = time.monotonic()
            assert target.http.get("/api/v1/models").status_code == 200
            assert time.monotonic() - begun < 2
        assert target.explain(input=target.picture, seed=7)["state"] == "succeeded"
        opened[0].shutdown(socket.SHUT_WR)
        assert answered(opened[0]).status in (0, 400, 422), "a body that ends early is no request"
    finally:
        for s in opened:
            s.close()
