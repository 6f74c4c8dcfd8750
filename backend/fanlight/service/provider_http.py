"""How a provider is asked: encrypted, whole answers of bounded size, from where they were asked for. Imported only where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx2

from fanlight.errors import Unavailable

MOST = 256 * 1024  # bytes of an answer
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class Guarded(httpx2.AsyncBaseTransport):
    """Refuses plain HTTP but to loopback, answers that are larger than MOST, compressed, or elsewhere. Errors: provider_unavailable."""

    def __init__(self) -> None:
        self._inner = httpx2.AsyncHTTPTransport(retries=0)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not fit(str(request.url)):
            raise unavailable("it names an address that is not https")
        request.headers["accept-encoding"] = "identity"
        answer = await self._inner.handle_async_request(request)
        if answer.headers.get("content-encoding", "identity").lower() != "identity":
            await answer.aclose()
            raise unavailable("it answers compressed although it was asked not to")
        if answer.is_redirect:
            await answer.aclose()
            raise unavailable("it answers with a redirect")
        assert isinstance(answer.stream, httpx2.AsyncByteStream)
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=_Cut(answer.stream))

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Cut(httpx2.AsyncByteStream):
    """A body that may not be longer than MOST, whatever its header says."""

    def __init__(self, stream: httpx2.AsyncByteStream):
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for part in self._stream:
            seen += len(part)
            if seen > MOST:
                raise unavailable(f"it answers with more than {MOST // 1024} KiB")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


def fit(address: str) -> bool:
    """Whether something may be asked there: by https, or on this machine."""
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))


def unavailable(why: str) -> Unavailable:
    return Unavailable(
        f"The provider of the login cannot be used: {why}.",
        code="provider_unavailable",
        hint="Try again in a moment, or log in another way.",
    )
