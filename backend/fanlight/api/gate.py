"""The one gate before everything: API, pages, streams, metrics. Denied by default; what is public is listed here.

A visitor enters with `Authorization: Bearer TOKEN`, or once with `/?token=TOKEN` (or the form), which gives a cookie. The cookie holds a
random principal, signed with the token. The gate also takes the path prefix off, checks the Host header, refuses cross-site requests that
come with a cookie, cuts bodies off at their limit, and closes websockets.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

import orjson
import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fanlight.client import credentials
from fanlight.errors import BadRequest, FanlightError, Forbidden, NotFound, TooLarge, Unauthorized
from fanlight.service.context import Visitor

log = structlog.get_logger()

PUBLIC = ("/healthz", "/readyz", "/s/", "/favicon.ico", "/login")
SAFE = ("GET", "HEAD", "OPTIONS")
BODY = 2 * 2**20  # bytes of any request but an upload
UPLOADS = ("/api/v1/inputs",)
ENDLESS = ("/api/v1/events",)
PLAIN = "/:@!$&'()*+,;=~"  # what a path may hold as it is (RFC 3986, pchar)
WHERE = "The server prints it when it starts."
Keys = Callable[[str], Awaitable[Visitor]]
Answer = tuple[int, dict[str, str], bytes]
LOGIN = (Path(__file__).parent / "login.html").read_text("utf-8")
LOCAL = ("127.0.0.1", "localhost", "[::1]", "::1", "testserver")


@dataclass(frozen=True)
class Door:
    """Who may enter, and how.

    Args:
        token: the access token.
        prefix: path prefix of every address, "" or "/fanlight".
        hosts: accepted Host names; empty accepts any (a server bound to the network with a configured token).
        upload: most bytes of an upload.
        policy: gives the Content-Security-Policy of pages, once they exist.
    """

    token: str
    prefix: str = ""
    hosts: frozenset[str] = frozenset()
    upload: int = 64 * 2**20
    policy: Callable[[], str] = field(default=lambda: "default-src 'none'")

    @property
    def cookie(self) -> str:
        """One name per token, because cookies know no ports: two servers on one machine keep their visitors apart."""
        return "fanlight_" + hashlib.sha256(b"name" + self.token.encode()).hexdigest()[:8]

    def sign(self, principal: str) -> str:
        key = hashlib.sha256(b"session" + self.token.encode()).digest()
        return principal + "." + hmac.new(key, principal.encode(), "sha256").hexdigest()

    def verify(self, value: str) -> str | None:
        """The principal of a cookie, or None where it is not ours."""
        principal, _, _ = value.partition(".")
        return principal if principal and hmac.compare_digest(self.sign(principal).encode(), value.encode()) else None

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())


class Gate:
    """ASGI middleware. Args: app; door; keys: who holds an API key, or Unauthorized."""

    def __init__(self, app: ASGIApp, door: Door, keys: Keys | None = None):
        self.app, self.door, self.keys = app, door, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        try:
            path = self._path(scope, headers)
            answer = await self._enter(scope, path, headers)
            if answer is None and path == "/login":
                answer = await self._login(scope, receive, headers)
            if answer is None and path == "/favicon.ico":
                raise NotFound("There is no icon at this address; the pages name their own.", code="not_found")
        except FanlightError as e:
            answer = _refusal(e, headers, self.door.prefix)
        except Exception:  # whatever a stranger sends, the gate stays shut and answers
            log.warning("request refused: its head cannot be read", exc_info=True)
            error = BadRequest("The address or the headers of this request cannot be read.", code="bad_headers")
            answer = _refusal(error, headers, self.door.prefix)
        if scope["method"] == "HEAD":
            send = _bodiless(send)
        if answer is not None:
            await _send(answer, send)
            return
        # What can be read can be asked for its head, but for a stream, which would have no end.
        method = "GET" if scope["method"] == "HEAD" and path not in ENDLESS else scope["method"]
        forwarded = {k: headers[k] for k in ("authorization", "cookie", "host") if k in headers} | {
            "sec-fetch-site": "same-origin"
        }
        mark = credentials.set(forwarded)
        try:
            limit = self.door.upload + 2**20 if path in UPLOADS else BODY
            await self.app(
                {**scope, "method": method, "path": path, "raw_path": path.encode(), "root_path": ""},
                _limited(receive, limit),
                self._armoured(path, send),
            )
        finally:
            credentials.reset(mark)

    # --- the checks, in order

    def _path(self, scope: Scope, headers: Mapping[str, str]) -> str:
        name = _hostname(headers.get("host", ""))
        if self.door.hosts and name not in self.door.hosts:
            hint = "Set FANLIGHT_PUBLIC_URL or FANLIGHT_ALLOWED_HOSTS to the name that others use."
            raise BadRequest(
                f"This server does not answer to the name “{name}”.", code="unknown_host", given=name, hint=hint
            )
        path: str = scope["path"]
        prefix = self.door.prefix
        if prefix and (path == prefix or path.startswith(prefix + "/")):
            path = path[len(prefix) :] or "/"
        if "\\" in path or _controls(path) or any(part in (".", "..") for part in path.split("/")):
            raise BadRequest("This path is not normal.", code="bad_path", given=path)
        if b"%00" in scope["query_string"]:
            raise BadRequest("A query holds no NUL characters.", code="bad_query")
        return path

    async def _enter(self, scope: Scope, path: str, headers: Mapping[str, str]) -> Answer | None:
        """None lets the request pass, with the visitor in its state; else the answer."""
        public = path in PUBLIC or any(p.endswith("/") and path.startswith(p) for p in PUBLIC)
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if "token" in query and scope["method"] == "GET" and not public and not path.startswith("/api/"):
            if not self.door.knows(query["token"][0]):
                raise Unauthorized(
                    "This token is not the one of this server.",
                    code="wrong_token",
                    hint=WHERE,
                )
            rest = urlencode([(k, v) for k, vs in query.items() for v in vs if k != "token"])
            return self._welcome(scope, path, headers, rest)
        state = scope.setdefault("state", {})
        bearer = headers.get("authorization", "")
        if bearer[:7].lower() == "bearer ":
            if self.keys is not None and bearer[7:].strip().startswith("fl_"):
                if not path.startswith("/api/v1/") and path != "/metrics" and not public:
                    raise Forbidden(
                        "A key opens the API, not the pages.", code="scope", hint="Pages take the access token."
                    )
                state["visitor"] = await self.keys(bearer[7:].strip())
                return None
            if not self.door.knows(bearer[7:].strip()):
                raise Unauthorized(
                    "This token is not the one of this server.",
                    code="wrong_token",
                    hint=WHERE,
                )
            state["visitor"] = Visitor("token")
            return None
        principal = self.door.verify(_cookie(headers.get("cookie", ""), self.door.cookie))
        if principal is not None:
            if scope["method"] not in SAFE and not _same_site(headers):
                raise Forbidden(
                    "This request came from another site.", code="cross_site", hint="Open Fanlight's own page."
                )
            state["visitor"] = Visitor(principal, person=True)
            return None
        if public:
            return None
        raise Unauthorized(
            "This server needs its access token.",
            code="no_token",
            hint="Open the address that the server printed; in the shell set FANLIGHT_TOKEN or give --token; a program sends "
            "Authorization: Bearer TOKEN.",
        )

    async def _login(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Answer:
        """The form, and what it sends; who is in already goes on to the first page."""
        if scope["method"] in ("GET", "HEAD"):
            if "visitor" in scope["state"]:
                return 303, {"location": self.door.prefix + "/", "cache-control": "no-store"}, b""
            return _entrance(200, "This server needs its access token.", WHERE, self.door.prefix)
        if scope["method"] != "POST":
            refused = BadRequest(
                "This address does not take that method.", code="wrong_method", allowed=["GET", "POST"]
            )
            refused.status = 405
            raise refused
        form = await _form(receive)
        if not self.door.knows((form.get("token") or [""])[0].strip()):
            raise Unauthorized("This token is not the one of this server.", code="wrong_token", hint=WHERE)
        return self._welcome(scope, "/", headers)

    def _welcome(self, scope: Scope, path: str, headers: Mapping[str, str], query: str = "") -> Answer:
        """Off to `path` on this server, with a cookie; who already has one stays who they are."""
        principal = self.door.verify(_cookie(headers.get("cookie", ""), self.door.cookie)) or secrets.token_urlsafe(12)
        secure = "; Secure" if scope.get("scheme") == "https" or headers.get("x-forwarded-proto") == "https" else ""
        home = self.door.prefix + "/"
        cookie = f"{self.door.cookie}={self.door.sign(principal)}; Path={home}; HttpOnly; SameSite=Lax; Max-Age=31536000{secure}"
        local = quote("/" + path.lstrip("/"), safe=PLAIN)  # never //other.host
        return (
            303,
            {
                "location": self.door.prefix + local + ("?" + query if query else ""),
                "set-cookie": cookie,
                "cache-control": "no-store",
                "referrer-policy": "no-referrer",
            },
            b"",
        )

    def _armoured(self, path: str, send: Send) -> Send:
        policy = "default-src 'none'; frame-ancestors 'none'" if path.startswith("/api/") else self.door.policy()
        defaults = {
            b"x-content-type-options": b"nosniff",
            b"referrer-policy": b"same-origin",
            b"content-security-policy": policy.encode(),
        }

        async def wrapped(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {k.lower() for k, _ in message.get("headers", [])}
                message = {
                    **message,
                    "headers": [*message.get("headers", []), *((k, v) for k, v in defaults.items() if k not in given)],
                }
            await send(message)

        return wrapped


def _same_site(headers: Mapping[str, str]) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    try:
        return urlsplit(headers["origin"]).netloc == headers.get("host")
    except (KeyError, ValueError):  # none, or not an address
        return False


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        raise BadRequest("The Host header names no host.", code="unknown_host", given=host) from None


def _controls(text: str) -> bool:
    """Control characters, line and paragraph separators: browsers drop them from an address, so they can hide another host."""
    return any(unicodedata.category(ch) in ("Cc", "Zl", "Zp") for ch in text)


def _bodiless(send: Send) -> Send:
    async def wrapped(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return wrapped


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _limited(receive: Receive, limit: int) -> Receive:
    """Cuts a body off where it exceeds its limit, whatever its header says."""
    seen = 0

    async def wrapped() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(413, f"The request is larger than {limit // 2**20} MiB.")
        return message

    return wrapped


async def _form(receive: Receive) -> dict[str, list[str]]:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > 4096:
            raise TooLarge("A token is shorter than that.", code="too_large")
        if not message.get("more_body"):
            return parse_qs(body.decode("latin-1"))


def _refusal(error: FanlightError, headers: Mapping[str, str], prefix: str) -> Answer:
    if "text/html" in headers.get("accept", "") and error.status == 401:
        return _entrance(401, error.message, error.hint or "", prefix)
    return error.status, {"content-type": "application/json", "cache-control": "no-store"}, orjson.dumps(error.body())


def _entrance(status: int, message: str, hint: str, prefix: str) -> Answer:
    words = {"message": message, "hint": hint, "action": prefix + "/login"}
    page = LOGIN.format(**{k: escape(v, quote=True) for k, v in words.items()})
    style = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
    return (
        status,
        {"content-type": "text/html; charset=utf-8", "content-security-policy": style, "cache-control": "no-store"},
        page.encode(),
    )


async def _send(answer: Answer, send: Send) -> None:
    status, headers, body = answer
    raw = [
        (k.encode(), v.encode())
        for k, v in {**headers, "content-length": str(len(body)), "x-content-type-options": "nosniff"}.items()
    ]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def visitor(scope: Mapping[str, Any]) -> Visitor:
    """Who sent this request; set by the gate, without which nothing answers."""
    found: Visitor | None = scope.get("state", {}).get("visitor")
    if found is None:
        raise Unauthorized("This server needs its access token.", code="no_token")
    return found
