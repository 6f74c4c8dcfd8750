"""Logging in through a provider, as a browser sees it: off to the provider, and back with a code.

What has to be remembered meanwhile is in a cookie of ten minutes that is signed with the server's token, so that any server can finish what another
began. State, nonce and PKCE verifier are derived from it; the provider sees the first two, and nobody can make them without the token. An answer
belongs to the browser that has the cookie, and begins one session at most.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from fanlight.errors import BadRequest, Unauthorized
from fanlight.service.provider import Claims, Provider, refused
from fanlight.settings import Settings

BEGIN, BACK = "/login/oidc", "/login/oidc/return"
PATHS = (BEGIN, BACK)
MINUTES = 10
LONGEST = 1000  # letters of a path to go on to, and of what the provider sends
PLAIN = "/:@!$&'()*+,;=~"  # what a path may hold as it is (RFC 3986, pchar)


@dataclass(frozen=True)
class Arrival:
    """Args: claims: who comes; used: hash of the answer's state; until: microseconds after which it is too old; to: a path of this server."""

    claims: Claims
    used: str
    until: int
    to: str


class SingleSignOn:
    """Args: provider; label: what the page calls it; token: of the server; clock: seconds."""

    def __init__(self, provider: Provider, label: str, token: str, clock: Callable[[], float] = time.time):
        self.provider, self.label = provider, label
        self._key = hashlib.sha256(b"oidc" + token.encode()).digest()
        self._clock = clock

    async def begin(self, to: str) -> tuple[str, str]:
        """The provider's address, and the value of the cookie. Args: to: where to go on afterwards."""
        until = str(int(self._clock()) + 60 * MINUTES)
        memory = ".".join([secrets.token_urlsafe(32), until, _packed(own(to).encode())])
        there = await self.provider.address(*(self._derived(w, memory) for w in ("state", "nonce", "verifier")))
        return there, memory + "." + self._derived("cookie", memory)

    async def finish(self, value: str, answer: Mapping[str, list[str]]) -> Arrival:
        """Who comes back. Args: value: of the cookie; answer: the query. Errors: login_expired, provider_refused, provider_unavailable."""
        memory, _, signature = value.rpartition(".")
        parts = memory.split(".")
        if len(parts) != 3 or not hmac.compare_digest(signature.encode(), self._derived("cookie", memory).encode()):
            raise _over("was not begun in this browser")
        if int(parts[1]) <= self._clock():
            raise _over("has taken too long")
        given = {k: v[0] if len(v) == 1 and len(v[0]) <= 4 * LONGEST else "" for k, v in answer.items()}
        state = self._derived("state", memory)
        if not hmac.compare_digest(given.get("state", "").encode(), state.encode()):
            raise _over("was not begun in this browser")
        if "error" in given or not given.get("code"):
            raise refused("the provider did not let you in")
        claims = await self.provider.claims(
            given["code"], self._derived("nonce", memory), self._derived("verifier", memory), given.get("iss", "")
        )
        used = hashlib.sha256(state.encode()).hexdigest()
        return Arrival(
            claims, used, (int(parts[1]) + 60) * 1_000_000, base64.urlsafe_b64decode(parts[2] + "==").decode()
        )

    def _derived(self, what: str, memory: str) -> str:
        """43 letters, as long as a verifier has to be at least."""
        return _packed(hmac.digest(self._key, f"{what} {memory}".encode(), "sha256"))


def configured(settings: Settings, token: str) -> SingleSignOn | None:
    """As the settings say, or None where they say nothing. Errors: bad_request, no_oidc, sentences for who starts the server."""
    given = {k: getattr(settings, f"oidc_{k}") for k in ("issuer", "client_id", "client_secret", "new", "domains")}
    if not any(given.values()):
        return None
    for name in ("issuer", "client_id"):
        if not given[name]:
            raise BadRequest(f"FANLIGHT_OIDC_* needs FANLIGHT_OIDC_{name.upper()} too.", code="no_oidc")
    if settings.public_url is None:
        raise BadRequest("FANLIGHT_OIDC_ISSUER needs FANLIGHT_PUBLIC_URL too, to which the provider sends people back.")
    back = settings.public_url.rstrip("/") + BACK
    for name, address in (("OIDC_ISSUER", settings.oidc_issuer), ("PUBLIC_URL", back)):
        parts = urlsplit(address)
        local = parts.hostname in ("127.0.0.1", "::1", "localhost")
        if parts.scheme != "https" and not (parts.scheme == "http" and local) or parts.query or parts.fragment:
            raise BadRequest(f"FANLIGHT_{name} must be an https address for logins through a provider.", given=address)
    secret = settings.oidc_client_secret or ""
    provider = Provider(settings.oidc_issuer, settings.oidc_client_id, secret, settings.oidc_scopes, back)
    return SingleSignOn(provider, settings.oidc_label, token)


def own(path: str) -> str:
    """The path, where it is one of this server; else that of the first page."""
    try:
        parts = urlsplit(path)
    except ValueError:
        return "/"
    strange = parts.scheme or parts.netloc or not path.startswith("/") or path.startswith("//") or len(path) > LONGEST
    if strange or "\\" in path or not path.isprintable() or parts.path.startswith(("/login", "/logout")):
        return "/"
    query = "?" + quote(parts.query, safe=PLAIN + "?%") if parts.query else ""
    return quote("/" + parts.path.lstrip("/"), safe=PLAIN) + query


def _packed(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _over(why: str) -> Unauthorized:
    return Unauthorized(f"This login {why}.", code="login_expired", hint="Start it again from here.")
