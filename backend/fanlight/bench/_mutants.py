"""Requests that nobody would send: valid ones with something exchanged, and bytes that are nearly a request."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.0, 1e308, -1e308, 5e-324, "", " ", "x", "0", "-1", "null",
    "x" * 300, "x" * 70_000, "\u202e", "é", "𝔘", "\u0000", "\ud800", "'", '"', "<script>alert(1)</script>", "../../etc/passwd", "%00", "{{7*7}}",
    "{0}", "' OR 1=1 --", [], [[]], {}, [None], [0] * 3000, {"a": {"a": {"a": {"a": 1}}}}, {"": 1}, "NaN", "Infinity", "1e999",
)  # fmt: skip
LINES = (
    "x-a: b", "host: evil.example", "content-length: 5", "content-length: -1", "transfer-encoding: chunked", "transfer-encoding: x",
    "expect: 100-continue", "range: bytes=0-", "range: bytes=9-1,-", "if-none-match: *", "accept: text/html", "accept-encoding: gzip",
    "content-type: text/plain", "content-type: multipart/form-data", "content-type: application/json; charset=utf-16", "cookie: a=b; =; ;",
    "origin: null", "x-forwarded-proto: https", "connection: upgrade\r\nupgrade: websocket", "upgrade: h2c", "authorization: Bearer",
    "authorization: Basic \xff", "fanlight-workspace: nowhere", "last-event-id: -1", "x-request-id: a\tb", ": nothing", "no colon",
    " folded: line", "sec-fetch-site: cross-site",
)  # fmt: skip
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "X" * 300, "G\x00T")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself first."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for k, v in inner for p in places(v, (*path, k)))]


def mutated(value: Any, rng: random.Random) -> Any:
    """A copy with one to three places exchanged for something hostile, gone, or twice there."""
    made = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        *above, last = rng.choice(places(made)) or (None,)
        if last is None:
            made = rng.choice(HOSTILE) if rng.random() < 0.2 else made
            continue
        at = made
        for step in above:
            at = at[step]
        act = rng.random()
        if act < 0.7:
            at[last] = copy.deepcopy(rng.choice(HOSTILE))
        elif act < 0.85:
            del at[last]
        elif isinstance(at, dict):
            at[str(rng.choice(HOSTILE))[:40]] = at[last]
        else:
            at.append(at[last])
    return made


def text(value: Any, rng: random.Random) -> bytes:
    """The value as JSON, sometimes cut, doubled or with a byte exchanged."""
    said = bytearray(json.dumps(value).encode())
    act = rng.random()
    if act < 0.1 and said:
        said = said[: rng.randrange(len(said))]
    elif act < 0.2 and said:
        said[rng.randrange(len(said))] = rng.randrange(256)
    elif act < 0.23:
        said = said * 2
    return bytes(said)


def address(path: str, known: Sequence[str], rng: random.Random) -> str:
    """The path of an operation with its parameters filled: by what is there, or by something hostile."""
    while "{" in path:
        before, _, rest = path.partition("{")
        value = rng.choice(known) if rng.random() < 0.7 else str(rng.choice(HOSTILE))[:200]
        path = before + quote(value, safe="", errors="surrogatepass") + rest.partition("}")[2]
    return path


def head(path: str, settings: Mapping[str, str], rng: random.Random) -> bytes:
    """The bytes of a request that is nearly one."""
    lines = [f"{k}: {v}" for k, v in settings.items() if rng.random() < 0.95]
    lines += rng.sample(LINES, rng.randint(0, 4))
    rng.shuffle(lines)
    version = rng.choice(("HTTP/1.1",) * 8 + ("HTTP/1.0", "HTTP/2.0", "HTTP/9", ""))
    said = f"{rng.choice(METHODS)} {path} {version}\r\n" + "".join(f"{line}\r\n" for line in lines) + "\r\n"
    raw = bytearray(said.encode("latin-1", "replace"))
    if rng.random() < 0.3:
        for _ in range(rng.randint(1, 5)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
    return bytes(raw) + rng.randbytes(rng.choice((0, 0, 0, 5, 300)))
