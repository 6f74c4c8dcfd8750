"""JSON as it comes in: strict UTF-8, numbers that are finite, text that can be stored, nesting that can be walked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

DEPTH = 32
NAMES = 1000  # fields of one object: each that nobody knows would cost an error of its own
WIDEST = 2**64  # integers beyond it fit no column and no other program's JSON


class StrictRoute(APIRoute):
    """Route whose JSON bodies are checked once, before any field is."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(_Strict(request.scope, request.receive))

        return strict


class _Strict(Request):
    async def json(self) -> Any:
        try:
            text = (await self.body()).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise HTTPException(400, "The body of the request is not UTF-8.") from None
        try:
            value = json.loads(text, parse_constant=_constant)
        except RecursionError:
            raise _refused(f"The body of the request is nested deeper than {DEPTH} levels.") from None
        except ValueError as e:  # no JSON, or a number of thousands of digits
            raise _refused(
                f"The body of the request is no JSON: {getattr(e, 'msg', 'a number is too long')}."
            ) from None
        _check(value, 0)
        return value


def _check(value: Any, depth: int) -> None:
    if depth > DEPTH:
        raise _refused(f"The body of the request is nested deeper than {DEPTH} levels.")
    if isinstance(value, str):
        if "\0" in value or not _whole(value):
            raise _refused("A text in the body holds a NUL character or half of a surrogate pair.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _refused("A number in the body is larger than any this server can store.")
    elif isinstance(value, int):
        if abs(value) > WIDEST:
            raise _refused("A number in the body is larger than any this server can store.")
    elif isinstance(value, list):
        for v in value:
            _check(v, depth + 1)
    elif isinstance(value, dict):
        if len(value) > NAMES:
            raise _refused(f"An object in the body has more than {NAMES:,} fields.")
        for k, v in value.items():
            _check(k, depth + 1)
            _check(v, depth + 1)


def _whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _constant(name: str) -> Any:
    raise _refused(f"JSON has no {name}; a number is finite.")


def _refused(sentence: str) -> HTTPException:
    return HTTPException(422, sentence)
