"""The one gate before everything: API, pages, streams, metrics. Denied by default; what is public is listed here.

A visitor enters with `Authorization: Bearer TOKEN`, or once with `/?token=TOKEN` (or the form), which gives a cookie that holds a random principal,
signed with the token; or with the session of an account. The gate also takes the path prefix off, checks the Host header, refuses cross-site
requests that come with a cookie, cuts bodies off at their limit, and closes websockets.
"""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import structlog
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fanlight.api import sso
from fanlight.api.entrance import WHERE, WORKSPACE, Answer, Doorman, Entrance, cookie, same_site, secure
from fanlight.client import credentials
from fanlight.errors import BadRequest, FanlightError, Forbidden, NotFound, Unauthorized
from fanlight.service.context import Visitor
from fanlight.service.entry import no_workspace
from fanlight.store import sight

log = structlog.get_logger()

PUBLIC = ("/healthz", "/readyz", "/s/", "/favicon.ico", "/login", *sso.PATHS, "/logout")
SAFE = ("GET", "HEAD", "OPTIONS")
BODY = 2 * 2**20  # bytes of any request but an upload
COOKIES = 8 * 2**10  # letters of all cookies of a request; parsers further in take quadratic time over some
UPLOADS = ("/api/v1/inputs",)
ENDLESS = ("/api/v1/events",)
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

    def session(self, secure: bool) -> str:
        """Name of the cookie of an account. Over TLS its prefix keeps other hosts of the domain from setting it; below a path `__Host-` cannot be
        had, because it asks for the path /."""
        return self._bound("fanlight_session_", secure)

    def going(self, secure: bool) -> str:
        """Name of the cookie of a browser that has gone to the provider."""
        return self._bound("fanlight_oidc_", secure)

    def _bound(self, kind: str, secure: bool) -> str:
        name = kind + self.cookie.removeprefix("fanlight_")
        return (("__Secure-" if self.prefix else "__Host-") if secure else "") + name

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
    """ASGI middleware. Args: app; door; doorman: who holds a key or a session, without it only the token opens; provider: that people may log in
    through."""

    def __init__(
        self, app: ASGIApp, door: Door, doorman: Doorman | None = None, provider: sso.SingleSignOn | None = None
    ):
        self.app, self.door, self.doorman = app, door, doorman
        self.entrance = Entrance(door, doorman, provider)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        path = ""
        try:
            path = self._path(scope, headers)
            with sight.door():
                answer = await self._enter(scope, path, headers)
                if answer is None and path in ("/login", *sso.PATHS, "/logout"):
                    answer = await self.entrance.answer(scope, receive, headers, path)
            if answer is None and path == "/favicon.ico":
                raise NotFound("There is no icon at this address; the pages name their own.", code="not_found")
        except FanlightError as e:
            answer = await self.entrance.refusal(e, headers, path)
        except Exception:  # whatever a stranger sends, the gate stays shut and answers
            log.warning("request refused: its head cannot be read", exc_info=True)
            error = BadRequest("The address or the headers of this request cannot be read.", code="bad_headers")
            answer = await self.entrance.refusal(error, headers, path)
        if scope["method"] == "HEAD":
            send = _bodiless(send)
        if answer is not None:
            await _send(answer, send)
            return
        # What can be read can be asked for its head, but for a stream, which would have no end.
        method = "GET" if scope["method"] == "HEAD" and path not in ENDLESS else scope["method"]
        kept = ("authorization", "cookie", "host", WORKSPACE)
        forwarded = {k: headers[k] for k in kept if k in headers} | {"sec-fetch-site": "same-origin"}
        forwarded |= {"x-forwarded-proto": "https"} if secure(scope, headers) else {}
        mark = credentials.set(forwarded)
        who: Visitor | None = None if _public(path) else scope["state"].get("visitor")
        person = who.principal.removeprefix("person:") if who is not None and who.name else ""
        try:
            limit = self.door.upload + 2**20 if path in UPLOADS else BODY
            with sight.visitor("" if who is None else who.workspace, person):
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
        path = without(self.door.prefix, scope["path"])
        if "\\" in path or _controls(path) or any(part in (".", "..") for part in path.split("/")):
            raise BadRequest("This path is not normal.", code="bad_path", given=path)
        if len(headers.get("cookie", "")) > COOKIES:
            raise BadRequest(
                f"The cookies of this address are longer than {COOKIES // 2**10} KiB.",
                code="bad_headers",
                hint="Delete them.",
            )
        if b"%00" in scope["query_string"]:
            raise BadRequest("A query holds no NUL characters.", code="bad_query")
        return path

    async def _enter(self, scope: Scope, path: str, headers: Mapping[str, str]) -> Answer | None:
        """None lets the request pass, with the visitor in its state; else the answer."""
        public = _public(path)
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if "token" in query and scope["method"] == "GET" and not public and not path.startswith("/api/"):
            if not self.door.knows(query["token"][0]):
                raise Unauthorized(
                    "This token is not the one of this server.",
                    code="wrong_token",
                    hint=WHERE,
                )
            rest = urlencode([(k, v) for k, vs in query.items() for v in vs if k != "token"])
            return self.entrance.welcome(scope, path, headers, rest)
        state = scope.setdefault("state", {})
        who = await self._bearer(path, headers, public) or await self._cookies(scope, headers)
        if who is not None:
            state["visitor"] = who
        elif not public:
            raise Unauthorized(
                "This server needs its access token.",
                code="no_token",
                hint="Open the address that the server printed; in the shell set FANLIGHT_TOKEN or give --token; a program sends "
                "Authorization: Bearer TOKEN.",
            )
        return None

    async def _bearer(self, path: str, headers: Mapping[str, str], public: bool) -> Visitor | None:
        """Who sends the access token or a key. Errors: wrong_token, scope, unknown_workspace."""
        bearer, wanted = headers.get("authorization", ""), headers.get(WORKSPACE, "")
        if bearer[:7].lower() != "bearer ":
            return None
        given = bearer[7:].strip()
        if self.doorman is not None and given.startswith("fl_"):
            if not path.startswith("/api/v1/") and path != "/metrics" and not public:
                raise Forbidden(
                    "A key opens the API, not the pages.", code="scope", hint="Pages take the access token."
                )
            who = await self.doorman.key(given)
            if wanted and wanted != who.workspace:
                raise no_workspace(wanted)
            return who
        if not self.door.knows(given):
            raise Unauthorized("This token is not the one of this server.", code="wrong_token", hint=WHERE)
        if wanted and self.doorman is not None:
            return Visitor("token", await self.doorman.elsewhere(wanted), operator=True)
        return Visitor("token", operator=True)

    async def _cookies(self, scope: Scope, headers: Mapping[str, str]) -> Visitor | None:
        """Whose browser it is: that of an account, or of somebody who knows the token. Errors: cross_site, unknown_workspace."""
        secret, who = self.entrance.secret(scope, headers), None
        if secret and self.doorman is not None:
            who = await self.doorman.session(secret, headers.get(WORKSPACE, ""))
        if who is None:
            principal = self.door.verify(cookie(headers.get("cookie", ""), self.door.cookie))
            who = None if principal is None else Visitor(principal, person=True, operator=True)
        if who is not None and scope["method"] not in SAFE and not same_site(headers):
            raise Forbidden("This request came from another site.", code="cross_site", hint="Open Fanlight's own page.")
        return who

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


def without(prefix: str, path: str) -> str:
    """The path below the prefix under which this server is reached."""
    return (path[len(prefix) :] or "/") if prefix and (path == prefix or path.startswith(prefix + "/")) else path


def _public(path: str) -> bool:
    return path in PUBLIC or any(p.endswith("/") and path.startswith(p) for p in PUBLIC)


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


async def _send(answer: Answer, send: Send) -> None:
    status, headers, body = answer
    whole = {**headers, "content-length": str(len(body)), "x-content-type-options": "nosniff"}
    raw = [(k.encode(), v.encode()) for k, some in whole.items() for v in ([some] if isinstance(some, str) else some)]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def visitor(scope: Mapping[str, Any]) -> Visitor:
    """Who sent this request; set by the gate, without which nothing answers."""
    found: Visitor | None = scope.get("state", {}).get("visitor")
    if found is None:
        raise Unauthorized("This server needs its access token.", code="no_token")
    return found
