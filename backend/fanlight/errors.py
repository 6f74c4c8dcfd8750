"""Errors are sentences: what was given, what is allowed, what to do. One shape on the wire, in the shell and on the page.

FanlightError
├── BadRequest            400  what was sent cannot be understood
│   ├── InvalidField      422  a field is out of its range or of the wrong kind
│   ├── UnreadableInput   415  the file is not a picture that can be decoded
│   └── TooLarge          413  the input exceeds a stated limit
├── Unauthorized          401  no token, or a wrong one
├── Forbidden             403  known, but not allowed (cross-site request, somebody else's job)
├── NotFound              404  no such model, explainer, explanation, ...
├── Conflict              409  the record is not in a state that allows this
├── TooBusy               429  the queue is full; carries retry_after in seconds
├── Unavailable           503  not ready, disk full, engine down
└── ComputeFailed         a job that failed: the model raised, returned NaN, ran out of memory, took too long
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class FanlightError(Exception):
    """Base of every error that a person may read.

    Args:
        message: one or two sentences.
        code: stable machine-readable name, snake_case.
        given: what was sent, JSON-able, shortened if long.
        allowed: what would have been accepted, JSON-able.
        hint: what to do next, a sentence.
    """

    status = 500
    code = "error"

    def __init__(
        self, message: str, *, code: str | None = None, given: Any = None, allowed: Any = None, hint: str | None = None
    ):
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.given = shorten(given)
        self.allowed = allowed
        self.hint = hint

    def body(self) -> dict[str, Any]:
        """The one error shape of the wire contract."""
        fields = {
            "code": self.code,
            "message": self.message,
            "given": self.given,
            "allowed": self.allowed,
            "hint": self.hint,
        }
        return {"error": {k: v for k, v in fields.items() if v is not None}}


class BadRequest(FanlightError):
    status, code = 400, "bad_request"


class InvalidField(BadRequest):
    status, code = 422, "invalid_field"


class UnreadableInput(BadRequest):
    status, code = 415, "unreadable_input"


class TooLarge(BadRequest):
    status, code = 413, "too_large"


class Unauthorized(FanlightError):
    status, code = 401, "unauthorized"


class Forbidden(FanlightError):
    status, code = 403, "forbidden"


class NotFound(FanlightError):
    status, code = 404, "not_found"


class Conflict(FanlightError):
    status, code = 409, "conflict"


class TooBusy(FanlightError):
    status, code = 429, "too_busy"

    def __init__(self, message: str, *, retry_after: int, **kw: Any):
        super().__init__(message, **kw)
        self.retry_after = retry_after


class Unavailable(FanlightError):
    status, code = 503, "unavailable"


class ComputeFailed(FanlightError):
    """A computation ended without a result. Codes: model_failed, not_finite, out_of_memory, deadline, worker_crashed, input_gone, ..."""

    status, code = 500, "compute_failed"


def unknown(kind: str, given: str, allowed: Sequence[str], *, hint: str | None = None) -> NotFound:
    """The 404 for a name: says what exists, nearest first, never more than twelve names."""
    import difflib

    near = difflib.get_close_matches(given, allowed, n=3, cutoff=0.5)
    shown = list(dict.fromkeys([*near, *allowed]))[:12]
    if len(shown) < len(set(allowed)):
        hint = f"And {len(set(allowed)) - len(shown)} more. {hint or ''}".strip()
    words = kind.replace("_", " ")
    did = f" Did you mean {' or '.join(near)}?" if near else ""
    return NotFound(
        f"There is no {words} named “{shorten(given)}”.{did}",
        code=f"unknown_{kind}",
        given=given,
        allowed=shown or None,
        hint=hint,
    )


def shorten(value: Any, limit: int = 200) -> Any:
    """`value`, with a long string cut so that an error never repeats a whole upload."""
    if isinstance(value, str) and len(value) > limit:
        return value[:limit] + f"… ({len(value)} characters)"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, (list, tuple)) and len(value) > 20:
        return [shorten(v, 60) for v in value[:20]] + ["…"]
    return value
