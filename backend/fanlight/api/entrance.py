"""The door as a person sees it: the page that asks for a name or the token, what it sends, the cookies that follow, and the way out.

The access token gives a cookie that is signed with it and needs no row. A name and a password give a session: a random secret, stored as its hash.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import orjson
from starlette.types import Receive, Scope

from fanlight.api.sso import BEGIN, MINUTES, PATHS, PLAIN, SingleSignOn, own
from fanlight.errors import BadRequest, FanlightError, Forbidden, NotFound, TooBusy, TooLarge, Unauthorized
from fanlight.service.context import Visitor
from fanlight.service.provider import Claims

if TYPE_CHECKING:
    from fanlight.api.gate import Door

Answer = tuple[int, dict[str, str | list[str]], bytes]
WORKSPACE = "fanlight-workspace"  # the header that names the workspace which a request is about
WHERE = "The server prints it when it starts."
NEEDS = "This server needs its access token."
PAGE = (Path(__file__).parent / "login.html").read_text("utf-8")
STYLE = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'"
YEAR = 31_536_000
FORM = 8192  # bytes

PERSON = """<form method="post" action="{action}">
<label for="name">Name</label>
<input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="64" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" maxlength="1024" required>
<button>Log in</button>
</form>
<details>
<summary>Enter with the access token</summary>
{token}
</details>"""

TOKEN = """<form method="post" action="{action}">
<label for="token">Access token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required{focus}>
<button>Open</button>
</form>"""


PROVIDER = """<p><a class="button" href="{address}">Log in with {label}</a></p>"""


class Doorman(Protocol):
    """Whom the gate asks: `service.entry.Entry`, or for pages alone `api.remote.Remote`."""

    days: int
    """That a session lasts."""

    async def key(self, given: str) -> Visitor: ...
    async def session(self, secret: str, wanted: str = "") -> Visitor | None: ...
    async def elsewhere(self, wanted: str) -> str: ...
    async def peopled(self) -> bool: ...
    async def login(self, name: str, password: str, address: str, old: str = "") -> str: ...
    async def vouched(self, claims: Claims, used: str, until: int, old: str = "") -> str: ...
    async def logout(self, secret: str) -> None: ...


class Entrance:
    """Args: door; doorman: None where there are no accounts to ask for; provider: that people may log in through."""

    def __init__(self, door: Door, doorman: Doorman | None, provider: SingleSignOn | None = None):
        self.door, self.doorman, self.provider = door, doorman, provider

    async def answer(self, scope: Scope, receive: Receive, headers: Mapping[str, str], path: str) -> Answer:
        """Of /login and /logout. Who is in already goes on to the first page."""
        if path in PATHS:
            return await self._through(scope, headers, path)
        if path == "/login" and scope["method"] in ("GET", "HEAD"):
            if "visitor" in scope["state"]:
                return 303, {"location": self.door.prefix + "/", "cache-control": "no-store"}, b""
            return await self.page(200, "", "")
        if scope["method"] != "POST":
            raise _wrong_method(["POST"] if path == "/logout" else ["GET", "POST"])
        if ("sec-fetch-site" in headers or "origin" in headers) and not same_site(headers):
            raise Forbidden("This request came from another site.", code="cross_site", hint="Open Fanlight's own page.")
        return await self._leave(scope, headers) if path == "/logout" else await self._login(scope, receive, headers)

    async def _login(self, scope: Scope, receive: Receive, headers: Mapping[str, str]) -> Answer:
        form = {k: v[0] for k, v in (await _form(receive)).items()}
        if self.doorman is not None and "name" in form:
            address = scope["client"][0] if scope.get("client") else ""
            old = self.secret(scope, headers)
            secret = await self.doorman.login(form["name"], form.get("password", ""), address, old)
            return 303, _moved(self.door.prefix + "/", self._begun(scope, headers, secret)), b""
        if not self.door.knows(form.get("token", "").strip()):
            raise Unauthorized("This token is not the one of this server.", code="wrong_token", hint=WHERE)
        return self.welcome(scope, "/", headers)

    async def _through(self, scope: Scope, headers: Mapping[str, str], path: str) -> Answer:
        """Off to the provider, by a link, because a form may lead nowhere else; and back, with a session."""
        if self.provider is None or self.doorman is None:
            raise NotFound("This server has no provider of identities.", code="not_found")
        if scope["method"] != "GET":
            raise _wrong_method(["GET"])
        name = self.door.going(secure(scope, headers))
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if path == BEGIN:
            to, memory = await self.provider.begin(query.get("next", ["/"])[0])
            return 303, _moved(to, [self._set(name, scope, headers, memory, 60 * MINUTES)]), b""
        came = await self.provider.finish(cookie(headers.get("cookie", ""), name), query)
        secret = await self.doorman.vouched(came.claims, came.used, came.until, self.secret(scope, headers))
        begun = self._begun(scope, headers, secret)
        return 303, _moved(self.door.prefix + came.to, [*begun, self._set(name, scope, headers, "", 0)]), b""

    def _begun(self, scope: Scope, headers: Mapping[str, str], secret: str) -> list[str]:
        """The cookies of a new session. Who enters with a name is that person alone: what the token would open ends."""
        days = self.doorman.days if self.doorman is not None else 0
        return [self._session(scope, headers, secret, days * 86_400), self._cookie(scope, headers, "", 0)]

    async def _leave(self, scope: Scope, headers: Mapping[str, str]) -> Answer:
        secret = self.secret(scope, headers)
        if secret and self.doorman is not None:
            await self.doorman.logout(secret)
        cookies = [self._session(scope, headers, "", 0), self._cookie(scope, headers, "", 0)]
        return 303, _moved(self.door.prefix + "/login", cookies), b""

    def welcome(self, scope: Scope, path: str, headers: Mapping[str, str], query: str = "") -> Answer:
        """Off to `path` on this server, with a cookie; who already has one stays who they are."""
        known = self.door.verify(cookie(headers.get("cookie", ""), self.door.cookie))
        signed = self.door.sign(known or secrets.token_urlsafe(12))
        local = quote("/" + path.lstrip("/"), safe=PLAIN)  # never //other.host
        to = self.door.prefix + local + ("?" + query if query else "")
        return 303, _moved(to, [self._cookie(scope, headers, signed, YEAR)]), b""

    def secret(self, scope: Scope, headers: Mapping[str, str]) -> str:
        """Of the session that the request carries."""
        return cookie(headers.get("cookie", ""), self.door.session(secure(scope, headers)))

    def _session(self, scope: Scope, headers: Mapping[str, str], value: str, seconds: int) -> str:
        return self._set(self.door.session(secure(scope, headers)), scope, headers, value, seconds)

    def _cookie(self, scope: Scope, headers: Mapping[str, str], value: str, seconds: int) -> str:
        return self._set(self.door.cookie, scope, headers, value, seconds)

    def _set(self, name: str, scope: Scope, headers: Mapping[str, str], value: str, seconds: int) -> str:
        flags = f"Path={self.door.prefix}/; HttpOnly; SameSite=Lax; Max-Age={seconds}"
        return f"{name}={value}; {flags}" + ("; Secure" if secure(scope, headers) else "")

    async def refusal(self, error: FanlightError, headers: Mapping[str, str], path: str) -> Answer:
        """JSON, or for a browser at a closed door the page."""
        if "text/html" in headers.get("accept", "") and (error.status == 401 or path in ("/login", *PATHS)):
            status, shown, body = await self.page(error.status, error.message, error.hint or "", path)
        else:
            status, shown = error.status, {"content-type": "application/json", "cache-control": "no-store"}
            body = orjson.dumps(error.body())
        if isinstance(error, TooBusy):
            shown["retry-after"] = str(error.retry_after)
        return status, shown, body

    async def page(self, status: int, message: str, hint: str, path: str = "/") -> Answer:
        """The page that asks; for a name only where there are accounts. Args: path: where to go on, once in."""
        people = False
        if self.doorman is not None:
            try:
                people = await self.doorman.peopled()
            except FanlightError:  # the database is away: the token still opens
                people = False
        action = escape(self.door.prefix + "/login", quote=True)
        token = TOKEN.format(action=action, focus="" if people else " autofocus")
        forms = PERSON.format(action=action, token=token) if people else token
        if self.provider is not None:
            on = self.door.prefix + BEGIN + "?next=" + quote(own(path), safe="/")
            forms = PROVIDER.format(address=escape(on, quote=True), label=escape(self.provider.label)) + forms
        if not message:
            message, hint = ("Log in to this server.", "") if people or self.provider else (NEEDS, WHERE)
        body = PAGE.format(message=escape(message), hint=escape(hint), forms=forms)
        kind = {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": STYLE,
            "cache-control": "no-store",
        }
        return status, {**kind}, body.encode()


def secure(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Whether the browser speaks TLS, to us or to a proxy that says so."""
    return scope.get("scheme") == "https" or headers.get("x-forwarded-proto") == "https"


def same_site(headers: Mapping[str, str]) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    try:
        return urlsplit(headers["origin"]).netloc == headers.get("host")
    except (KeyError, ValueError):  # none, or not an address
        return False


def cookie(header: str, name: str) -> str:
    """The value of a cookie, the last where there are several, "" without it. Ours hold no quotes; the parser of the standard library takes
    quadratic time over them (CVE-2024-7592)."""
    found = ""
    for part in header.split(";"):
        key, _, value = part.partition("=")
        if key.strip() == name:
            found = value.strip()
    return found


def _wrong_method(allowed: list[str]) -> BadRequest:
    refused = BadRequest("This address does not take that method.", code="wrong_method", allowed=allowed)
    refused.status = 405
    return refused


def _moved(to: str, cookies: list[str]) -> dict[str, str | list[str]]:
    return {"location": to, "set-cookie": cookies, "cache-control": "no-store", "referrer-policy": "no-referrer"}


async def _form(receive: Receive) -> dict[str, list[str]]:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > FORM:
            raise TooLarge("A token or a password is shorter than that.", code="too_large")
        if not message.get("more_body"):
            return parse_qs(body.decode("latin-1"), keep_blank_values=True)
