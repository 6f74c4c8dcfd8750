"""A provider of identities as OpenID Connect describes it: where it sends people, what it answers for a code, and whether that answer is genuine.

OpenID Connect Core 1.0 (3.1.2 and 3.1.3), Discovery 1.0, PKCE with S256 (RFC 7636), the issuer in the answer (RFC 9207) [recalled]. Authlib speaks
to the endpoints, joserfc checks the signature. Which claims must be there and equal is said here: Authlib's own check of an ID token leaves the
audience out where `azp` names the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import importlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import structlog

from fanlight.errors import BadRequest, FanlightError, TooBusy, Unauthorized

log = structlog.get_logger()
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Asymmetric ones alone: with a shared secret, or with none, others could sign as well."""
PUBLIC_KEYS = ("RSA", "EC")
CLIENT = ("client_secret_basic", "client_secret_post")  # how the client says who it is
HOUR = 3600.0
PAUSE = 60.0  # seconds between two fetches of the keys because of one that is unknown
SKEW = 60  # seconds by which clocks may differ
TOTAL = 10.0  # seconds for all that is asked of the provider during one request
TOGETHER, WAITING = 8, 32  # requests that ask it at a time, and that wait for it
PARTS = ("authlib.integrations.httpx_client", "joserfc.jwt", "httpx2")
MISSING = "The packages for FANLIGHT_OIDC_ISSUER are not installed: install fanlight[oidc], or unset it."


@dataclass(frozen=True)
class Claims:
    """Whom the provider vouches for. `email` is empty unless it says that the address is verified."""

    issuer: str
    subject: str
    email: str = ""
    username: str = ""


class Provider:
    """Args: issuer, client, secret, scopes: as registered there; back: the address that people come back to; clock: seconds; total: as TOTAL.

    Errors: no_oidc where the extra is missing; of all that asks it provider_unavailable, provider_refused, too_busy.
    """

    def __init__(
        self, issuer: str, client: str, secret: str, scopes: str, back: str, *,
        clock: Callable[[], float] = time.time, total: float = TOTAL,
    ):  # fmt: skip
        self.issuer, self._client, self._secret, self._scopes, self._back = issuer, client, secret, scopes, back
        self._clock, self._total = clock, total
        self._found: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, Any] | None = None
        self._fetching = asyncio.Lock()
        self._turn = asyncio.Semaphore(TOGETHER)
        self._waiting = 0
        for part in PARTS:
            try:
                importlib.import_module(part)
            except ImportError:
                raise BadRequest(MISSING, code="no_oidc") from None

    async def address(self, state: str, nonce: str, verifier: str) -> str:
        """Where a browser is sent to log in."""
        async with self._asking():
            about = await self._discovered()
            async with self._http(about) as http:
                to, _ = http.create_authorization_url(
                    about["authorization_endpoint"], state=state, nonce=nonce, code_verifier=verifier
                )
        return str(to)

    async def claims(self, code: str, nonce: str, verifier: str, sent_by: str = "") -> Claims:
        """Whom a code stands for. Args: nonce, verifier: of the same login; sent_by: `iss` of the answer, empty where there was none."""
        async with self._asking():
            about = await self._discovered()
            if (sent_by or about.get("authorization_response_iss_parameter_supported") is True) and not _same(
                sent_by, self.issuer
            ):
                raise refused("the answer is of another issuer")
            found = await self._verified(about, await self._exchanged(about, code, verifier), nonce)
        mail = found.get("email") if found.get("email_verified") is True else ""
        name = found.get("preferred_username")
        return Claims(
            self.issuer, found["sub"], mail if isinstance(mail, str) else "", name if isinstance(name, str) else ""
        )

    @contextlib.asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """One of a few at a time, in a bounded time; what goes wrong on the way is a sentence."""
        from fanlight.service.provider_http import unavailable

        if self._waiting >= WAITING:
            raise TooBusy("Too many people are logging in.", retry_after=5, hint="Try again in a moment.")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._total), self._turn:
                yield
        except FanlightError:
            raise
        except TimeoutError:
            log.warning("provider does not answer", issuer=self.issuer)
            raise unavailable("it does not answer in time") from None
        except Exception as e:  # of three libraries and whatever a stranger sends
            log.warning("provider failed", issuer=self.issuer, problem=type(e).__name__)
            raise unavailable("it cannot be reached, or does not answer as it should") from e
        finally:
            self._waiting -= 1

    def _http(self, about: Mapping[str, Any]) -> Any:
        """A client for one request; it follows no redirects and reads no environment."""
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        from fanlight.service.provider_http import Guarded

        offered = about.get("token_endpoint_auth_methods_supported") or CLIENT
        method = next((m for m in CLIENT if m in offered), CLIENT[0]) if self._secret else "none"
        return AsyncOAuth2Client(
            self._client, self._secret or None, token_endpoint_auth_method=method, scope=self._scopes, redirect_uri=self._back,
            code_challenge_method="S256", transport=Guarded(), trust_env=False, follow_redirects=False, timeout=self._total,
        )  # fmt: skip

    async def _discovered(self) -> dict[str, Any]:
        """What the provider says of itself, kept for an hour."""
        async with self._fetching:
            if self._found is None or self._clock() - self._found[0] > HOUR:
                about = await self._json(self.issuer.rstrip("/") + "/.well-known/openid-configuration")
                if not _same(about.get("issuer"), self.issuer):
                    raise refused("its configuration is of another issuer")
                for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                    self._endpoint(about.get(name), name)
                self._found = self._clock(), about
            return self._found[1]

    def _endpoint(self, address: object, name: str) -> None:
        from fanlight.service.provider_http import fit, unavailable

        if not isinstance(address, str) or not fit(address):
            raise unavailable(f"its {name} is no https address")
        if urlsplit(self.issuer).scheme == "https" and urlsplit(address).scheme != "https":
            raise unavailable(f"its {name} is no https address")

    async def _json(self, address: str) -> dict[str, Any]:
        async with self._http({}) as http:
            answer = await http.request("GET", address, withhold_token=True, headers={"accept": "application/json"})
            answer.raise_for_status()
            found = answer.json()
        if not isinstance(found, dict):
            raise ValueError("no object")
        return found

    async def _exchanged(self, about: Mapping[str, Any], code: str, verifier: str) -> str:
        """The ID token for a code."""
        from authlib.integrations.base_client import OAuthError

        async with self._http(about) as http:
            try:
                token = await http.fetch_token(
                    about["token_endpoint"], grant_type="authorization_code", code=code, code_verifier=verifier
                )
            except OAuthError as e:
                log.warning("provider refused a code", issuer=self.issuer, problem=str(e.error)[:100])
                raise refused("it does not accept this login, which may be too old") from None
        found = token.get("id_token")
        if not isinstance(found, str):
            raise refused("it sent no ID token")
        return found

    async def _verified(self, about: Mapping[str, Any], token: str, nonce: str) -> dict[str, Any]:
        """The claims of a token that this provider signed, for us, for this login, just now."""
        from joserfc.errors import InvalidKeyIdError, JoseError
        from joserfc.jws import JWSRegistry
        from joserfc.jwt import JWTClaimsRegistry, decode

        registry = JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
        registry.max_payload_length = 64 * 1024
        try:
            try:
                found = decode(token, await self._signers(about, HOUR), registry=registry).claims
            except InvalidKeyIdError:  # the provider may have a new key
                found = decode(token, await self._signers(about, PAUSE), registry=registry).claims
            JWTClaimsRegistry(
                now=lambda: int(self._clock()),
                leeway=SKEW,
                iss={"essential": True, "value": self.issuer},
                aud={"essential": True, "value": self._client},
                sub={"essential": True},
                exp={"essential": True},
                iat={"essential": True},
                nonce={"essential": True},
            ).validate(found)
        except (JoseError, ValueError, TypeError, RecursionError) as e:
            log.warning("ID token refused", issuer=self.issuer, problem=getattr(e, "error", type(e).__name__))
            raise refused("its ID token is not valid") from None
        meant = found["aud"] if isinstance(found["aud"], list) else [found["aud"]]
        party = found.get("azp", self._client if len(meant) == 1 else None)
        if not _same(found["nonce"], nonce) or not _same(party, self._client) or not 0 < len(found["sub"]) <= 255:
            log.warning("ID token refused", issuer=self.issuer, problem="nonce, azp or sub")
            raise refused("its ID token is not valid")
        return found

    async def _signers(self, about: Mapping[str, Any], age: float) -> Any:
        """The provider's keys, fetched again where they are older than `age` seconds."""
        from joserfc.jwk import KeySet

        async with self._fetching:
            if self._keys is None or self._clock() - self._keys[0] > age:
                given = (await self._json(about["jwks_uri"])).get("keys")
                public = [k for k in given or () if isinstance(k, dict) and k.get("kty") in PUBLIC_KEYS]
                self._keys = self._clock(), KeySet.import_key_set({"keys": public})
            return self._keys[1]


def _same(given: object, expected: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode(), expected.encode())


def refused(why: str) -> Unauthorized:
    return Unauthorized(
        f"The login through the provider failed: {why}.", code="provider_refused", hint="Start it again from here."
    )
