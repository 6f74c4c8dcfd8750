"""The one error shape: every exception that reaches the edge becomes a sentence. Nothing of a traceback leaves the server."""

from __future__ import annotations

from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from fanlight.errors import FanlightError, InvalidField, TooBusy, shorten

log = structlog.get_logger()


def install(app: FastAPI) -> None:
    app.add_exception_handler(FanlightError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


def respond(error: FanlightError) -> Response:
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, TooBusy) else None
    return JSONResponse(_plain(error.body()), error.status, headers)


async def _ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, FanlightError)
    return respond(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(p) for p in first["loc"] if p not in ("body", "query", "path"))
    said = str(first["msg"])
    allowed = {k: v for k, v in (first.get("ctx") or {}).items() if k != "error" and isinstance(v, (int, float, str))}
    message = f"{where}: {said}." if where else f"{said}."
    return respond(
        InvalidField(
            message, code="invalid_request", given=_plain(shorten(first.get("input"))), allowed=allowed or None
        )
    )


CODES = {404: "not_found", 405: "wrong_method", 413: "too_large"}
WORDS = {
    404: "There is nothing at this address.",
    405: "This address does not take that method.",
    400: "The body of the request cannot be read.",
}


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    shown = FanlightError(
        WORDS.get(error.status_code, str(error.detail)), code=CODES.get(error.status_code, "bad_request")
    )
    shown.status = error.status_code
    return respond(shown)


async def _unexpected(request: Request, error: Exception) -> Response:
    log.error("unexpected error", path=request.scope["path"], method=request.method, exc_info=error)
    return respond(FanlightError("Something went wrong in the server; it was written to its log.", code="internal"))


def _plain(value: Any) -> Any:
    """JSON-able whatever was given: NaN and foreign objects as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, dict):
        return {str(k)[:200]: _plain(v) for k, v in list(value.items())[:50]}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in list(value)[:50]]
    return shorten(str(value))
