"""A provider of identities (OpenID Connect) on loopback, with a real RSA key, that can be made to misbehave."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.registry import HeaderParameter

CLIENT, SECRET = "fanlight-client", "a secret of the client: 4711/+%"
SAME = lambda claims: claims  # noqa: E731


def rsa() -> RSAKey:
    return RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256", "kid": secrets.token_hex(4)})


@dataclass
class Provider:
    """`person` is who logs in there now; `bend` changes the claims, `sign` the token; `also` is added to what comes back with the code."""

    person: dict[str, Any] = field(
        default_factory=lambda: {"sub": "s-1", "email": "Ann@example.org", "email_verified": True}
    )
    bend: Callable[[dict[str, Any]], dict[str, Any]] = SAME
    sign: Callable[[dict[str, Any]], str] | None = None
    about: dict[str, Any] = field(default_factory=dict)
    also: dict[str, str] = field(default_factory=dict)
    size: dict[str, int] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.key = rsa()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.answer(self)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, http: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(http.path)
        query = {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        body = http.rfile.read(int(http.headers.get("content-length", 0))).decode()
        self.asked.append(parts.path)
        status, headers, given = 200, {"content-type": "application/json"}, b""
        if parts.path in self.moved:
            status, headers = 302, {"location": self.moved[parts.path]}
        elif parts.path == "/.well-known/openid-configuration":
            given = json.dumps(self.configuration()).encode()
        elif parts.path == "/keys":
            given = json.dumps({"keys": [{"kty": "new kind"}, self.key.as_dict(private=False)]}).encode()
        elif parts.path == "/authorize":
            status, headers = 302, {"location": self.permit(query)}
        elif parts.path == "/token":
            status, given = self.token(http, {k: v[0] for k, v in parse_qs(body).items()})
        else:
            status = 404
        time.sleep(self.slow.get(parts.path, 0))
        given += b" " * max(0, self.size.get(parts.path, 0) - len(given))
        try:
            http.send_response(status)
            for name, value in {**headers, "content-length": str(len(given))}.items():
                http.send_header(name, value)
            http.end_headers()
            http.wfile.write(given)
        except OSError:  # who asked has gone
            pass

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": self.issuer + "/authorize",
            "token_endpoint": self.issuer + "/token",
            "jwks_uri": self.issuer + "/keys",
            **self.about,
        }

    def permit(self, query: dict[str, str]) -> str:
        """The person agrees: back with a code."""
        assert query["response_type"] == "code" and query["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return query["redirect_uri"] + "?" + urlencode({"code": code, "state": query["state"], **self.also})

    def token(self, http: BaseHTTPRequestHandler, form: dict[str, str]) -> tuple[int, bytes]:
        asked = self.codes.pop(form.get("code", ""), None)
        scheme, _, told = http.headers.get("authorization", "").partition(" ")
        known = scheme == "Basic" and base64.b64decode(told).decode() == f"{CLIENT}:{SECRET}"
        verified = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(verified).decode().rstrip("=")
        fits = asked is not None and asked["code_challenge"] == challenge
        if asked is None or not known or not fits or form.get("redirect_uri") != asked["redirect_uri"]:
            return 400, json.dumps({"error": "invalid_grant"}).encode()
        t = int(time.time())
        claims = {"iss": self.issuer, "aud": asked["client_id"], "nonce": asked["nonce"], "iat": t, "exp": t + 300}
        claims = self.bend({**claims, **self.person})
        token = (self.sign or self.signed)(claims)
        return 200, json.dumps({"access_token": "x", "token_type": "Bearer", "id_token": token}).encode()

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        registry = JWSRegistry({"strange": HeaderParameter("of no standard", "int")}, ["RS256"])
        return jwt.encode({"alg": "RS256", "kid": self.key.kid, **header}, claims, self.key, registry=registry)


def unsigned(claims: dict[str, Any]) -> str:
    """alg none."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    return ".".join(base64.urlsafe_b64encode(json.dumps(p).encode()).decode().rstrip("=") for p in parts) + "."


def symmetric(secret: bytes) -> Callable[[dict[str, Any]], str]:
    """HS256, with the client's secret or, as in the well-known confusion, with the public key."""
    registry = JWSRegistry(algorithms=["HS256"])
    return lambda claims: jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(secret), registry=registry)
