"""The one error shape: every exception that reaches the edge becomes a sentence. Nothing of a traceback leaves the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from fanlight.errors import BadRequest, FanlightError, InvalidField, TooBusy, shorten
from fanlight.service.edits import KNOWN

log = structlog.get_logger()


def install(app: FastAPI) -> None:
    app.add_exception_handler(FanlightError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def respond(error: FanlightError, headers: Mapping[str, str] | None = None) -> Response:
    if isinstance(error, TooBusy):
        headers = {**(headers or {}), "Retry-After": str(error.retry_after)}
    return JSONResponse(_plain(error.body()), error.status, headers)


async def _ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, FanlightError)
    return respond(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    given = _plain(shorten(first.get("input")))
    if first["loc"][:2] == ("body", "file"):
        return respond(InvalidField(UPLOAD, code="invalid_upload", given=given, hint=NAMED))
    if first["loc"][:2] == ("body", "target"):
        message = "This names no target."
        return respond(InvalidField(message, code="invalid_target", given=given, allowed=KNOWN["set_target"]))
    where = ".".join(str(p) for p in first["loc"] if p not in ("body", "query", "path"))
    said = str(first["msg"])
    allowed = {k: v for k, v in (first.get("ctx") or {}).items() if k != "error" and isinstance(v, (int, float, str))}
    message = f"{shorten(where)}: {said}." if where else f"{said}."
    return respond(InvalidField(message, code="invalid_request", given=given, allowed=allowed or None))


UPLOAD = "An upload is a file: multipart/form-data with the picture in the field `file`."
NAMED = "Give the file a name of at most 255 characters."
DEEPEST = 12  # levels of a value that an error repeats
LONGEST = 2000  # letters of a text in it
CODES = {404: "not_found", 405: "wrong_method", 413: "too_large", 422: "invalid_request"}
WORDS = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    400: "The body of the request cannot be read.",
}


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400 and request.headers.get("content-type", "").startswith("multipart/"):
        return respond(BadRequest(f"The upload cannot be read. {UPLOAD}", code="invalid_upload", hint=NAMED))
    shown = FanlightError(
        str(error.detail) if str(error.detail).endswith(".") else WORDS.get(error.status_code, str(error.detail)),
        code=CODES.get(error.status_code, "bad_request"),
    )
    shown.status = error.status_code
    return respond(shown, error.headers)


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected error", path=request.scope["path"], method=request.method, exc_info=error)
    return respond(FanlightError("Something went wrong in the server; it was written to its log.", code="internal"))


def _plain(value: Any, depth: int = 0) -> Any:
    """JSON-able whatever was given: NaN, foreign objects and huge integers as text, what is deep or long cut off. Never fails."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**64):
        return value
    if isinstance(value, str):
        return str(shorten(value, LONGEST)).encode(errors="replace").decode()
    if isinstance(value, int):
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, (dict, list, tuple)) and depth >= DEEPEST:
        return "…"
    if isinstance(value, dict):
        return {_plain(str(k)[:200]): _plain(v, depth + 1) for k, v in list(value.items())[:50]}
    if isinstance(value, (list, tuple)):
        return [_plain(v, depth + 1) for v in list(value)[:50]]
    return _plain(shorten(str(value)))
