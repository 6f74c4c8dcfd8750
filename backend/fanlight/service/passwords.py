"""Passwords: hashed slowly and with much memory, checked in the same time whether there is an account or not.

argon2id by pwdlib with the second recommended setting of RFC 9106 (section 4) [recalled]: 64 MiB, 3 passes, 4 lanes. The OWASP cheat sheet on
storing passwords asks for 19 MiB, 2 passes and 1 lane at least [recalled]. A hash names its method and settings, so that better ones can follow.
"""

from __future__ import annotations

from pwdlib.hashers.argon2 import Argon2Hasher

from fanlight.errors import InvalidField

MEMORY, PASSES, LANES = 65_536, 3, 4  # KiB of one hash, times over it, threads
HASHER = Argon2Hasher(time_cost=PASSES, memory_cost=MEMORY, parallelism=LANES, hash_len=32, salt_len=16)
SHORTEST, LONGEST = 12, 256
NOBODY = f"$argon2id$v=19$m={MEMORY},t={PASSES},p={LANES}${'A' * 22}${'A' * 43}"
"""What a password is compared with where there is no account or none of its own: no password has this hash."""


def hashed(password: str) -> str:
    """`$argon2id$v=19$m=...,t=...,p=...$salt$hash`, the last two in base64."""
    return HASHER.hash(password)


def matches(password: str, stored: str) -> bool:
    """Whether `stored` is of this password. Takes its time; a hash of another method is of none."""
    known = HASHER.identify(stored)
    return HASHER.verify(password, stored if known else NOBODY) and known


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
