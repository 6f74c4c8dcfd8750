"""Passwords: hashed slowly and with much memory, checked in the same time whether there is an account or not.

scrypt (RFC 7914) from the standard library, N = 2^15, r = 8, p = 3: 32 MiB and about a quarter of a second each, one of the settings that the OWASP
cheat sheet on storing passwords lists as equal in strength [recalled]. A hash names its method and settings, so that better ones can follow.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

from fanlight.errors import InvalidField

LOG_N, R, P = 15, 8, 3
MEMORY = 64 * 2**20  # bytes that one hash may take: 128 * r * N, and as much again for safety
SHORTEST, LONGEST = 12, 256
NOBODY = f"scrypt${LOG_N}${R}${P}${'A' * 22}==${'A' * 43}="
"""What a password is compared with where there is no account: no password has this hash."""


def hashed(password: str) -> str:
    """`scrypt$log2(N)$r$p$salt$hash`, the last two in base64."""
    salt = secrets.token_bytes(16)
    return f"scrypt${LOG_N}${R}${P}${_text(salt)}${_text(_scrypt(password, salt, LOG_N, R, P))}"


def matches(password: str, stored: str) -> bool:
    """Whether `stored` is of this password. Takes its time."""
    method, log_n, r, p, salt, known = stored.split("$")
    if method != "scrypt":
        raise ValueError(f"a password is stored by an unknown method: {method}")
    found = _scrypt(password, base64.b64decode(salt), int(log_n), int(r), int(p))
    return hmac.compare_digest(found, base64.b64decode(known))


def fit(password: str, name: str) -> str:
    """The password, where it may be one. Length counts, not signs: NIST SP 800-63B [recalled]. Errors: weak_password."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidField(
            f"A password has {SHORTEST} to {LONGEST} characters.",
            code="weak_password",
            allowed=[SHORTEST, LONGEST],
            hint="A few words that belong to nothing are a good one.",
        )
    if len(set(password)) < 5 or name.casefold() in password.casefold():
        raise InvalidField(
            "This password is guessed too easily: it repeats itself or holds the name.",
            code="weak_password",
            hint="A few words that belong to nothing are a good one.",
        )
    return password


def _scrypt(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=2**log_n, r=r, p=p, maxmem=MEMORY, dklen=32)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
