"""What a page needs of its surroundings: the client to ask, and the path prefix for its links."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import quote, urlencode

from dash import set_props

from fanlight.client import AsyncClient, Call

T = TypeVar("T")


class _Session:
    client: AsyncClient | None = None
    prefix: str = ""


def connect(client: AsyncClient, prefix: str) -> None:
    """Called once by `create_pages`. The client forwards the credentials of the visitor being answered, so it is shared by all."""
    _Session.client, _Session.prefix = client, prefix


async def ask(call: Call[T]) -> T:
    """Sends one of `fanlight.client.calls` on behalf of the visitor; raises FanlightError where the server refuses."""
    if _Session.client is None:
        raise RuntimeError("create_pages has not been called")
    return await _Session.client.send(call)


def href(path: str, **query: object) -> str:
    """A link below the prefix; queries that are None or empty are left out."""
    given = {k: v for k, v in query.items() if v not in (None, "")}
    return _Session.prefix + quote(path, safe="/:") + ("?" + urlencode(given) if given else "")


def src(url: str) -> str:
    """The address of something the API named: absolute paths get the prefix, unless they have it."""
    prefix = _Session.prefix
    return url if not url.startswith("/") or (prefix and url.startswith(prefix + "/")) else prefix + url


def go(path: str, **query: object) -> None:
    """Within a callback: shows another page, without loading the document again."""
    set_props("_pages_location", {"href": href(path, **query)})
