"""The typed client: the only door to a server for notebooks, the shell and the pages.

`Client` is synchronous, `AsyncClient` is its twin for the pages, over HTTP or in process (`httpx.ASGITransport`). What a verb sends and
how its answer is read is said once, in `calls`; the two clients only differ in how they wait.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
from pydantic import ValidationError

from fanlight import wire
from fanlight.calls import Call as Call, calls as calls
from fanlight.errors import FanlightError, TooBusy
from fanlight.notebook import Record
from fanlight.patience import Patience, retry_after

T = TypeVar("T")

credentials: ContextVar[Mapping[str, str]] = ContextVar("credentials", default={})  # noqa: B039 (never mutated)
"""Headers of the visitor whose request is being answered; the gate sets it, the pages' client forwards it."""


def failure(response: httpx.Response) -> FanlightError:
    """The server's error as an exception with the same code and sentences."""
    try:
        body = wire.Error.model_validate_json(response.content).error
        said: dict[str, Any] = {"code": body.code, "given": body.given, "allowed": body.allowed, "hint": body.hint}
        after = retry_after(response) if response.status_code == TooBusy.status else None
        error = (
            FanlightError(body.message, **said)
            if after is None
            else TooBusy(body.message, retry_after=math.ceil(after), **said)
        )
    except ValueError:
        error = FanlightError(
            f"The server answered {response.status_code} and not in the shape of an error.", code="bad_answer"
        )
    error.status = response.status_code
    return error


def _read(call: Call[T], response: httpx.Response) -> T:
    """The answer, or the server's error; an answer of something that is not Fanlight is an error too."""
    if response.is_error:
        raise failure(response)
    try:
        return call.read(response)
    except ValidationError as e:
        raise FanlightError(
            f"What {call.method} {call.path} answered is not what this version of Fanlight reads.",
            code="bad_answer",
            hint="The address may belong to another program, or its server to another version of Fanlight.",
        ) from e


def _headers(token: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    return {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}


NOWHERE = "Start one: fanlight serve. Where it is elsewhere, FANLIGHT_URL or --url names its address."


class Client:
    """A server as a Python object.

    >>> fan = Client("http://127.0.0.1:8321", token="...")
    >>> photo = fan.upload("koala.jpg")
    >>> record = fan.explain(model="efficientnet-lite0", input=photo.id, explainer="occlusion")
    >>> record.artifacts[0].name, fan.artifact(record.artifacts[0].digest).arrays["value"].shape

    Args:
        url: of the server, with its path prefix if it has one. Default: FANLIGHT_URL, else http://127.0.0.1:8321.
        token: access token. Default: FANLIGHT_TOKEN.
        timeout: seconds that one request may take.
        patience: seconds that one request waits in all where the server has too much to do (429), as long each time as it says, and five times
            at most; then its sentence is raised. 0: at once.
        transport: stands in for the network.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 60,
        patience: float = 30,
        transport: httpx.BaseTransport | None = None,
    ):
        url = (url or os.environ.get("FANLIGHT_URL") or "http://127.0.0.1:8321").rstrip("/")
        token = token or os.environ.get("FANLIGHT_TOKEN")
        self.url = url
        self.patience = patience
        self._http = httpx.Client(
            base_url=url + "/api/v1", headers=_headers(token, None), timeout=timeout, transport=transport
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Sends one of `calls`, again where the server says that it is too busy; raises FanlightError where it refuses."""
        patience = Patience(self.patience)
        response = self._once(call)
        while (wait := patience.wait(response)) is not None:
            time.sleep(wait)
            response = self._once(call)
        return cast(T, self._shown(_read(call, response)))

    def _once(self, call: Call[Any]) -> httpx.Response:
        try:
            return self._http.request(call.method, call.path, params=call.params, json=call.json, files=call.files)
        except httpx.TransportError as e:
            raise FanlightError(
                f"No Fanlight server answers at {self.url} ({e}).", code="no_server", hint=NOWHERE
            ) from e

    def _shown(self, answer: Any) -> Any:
        """Explanations draw themselves in a notebook; whatever else was answered is as it is."""
        if isinstance(answer, wire.Explanation):
            return Record.of(answer, lambda path: self.send(Call("GET", path, lambda r: r.content)))
        if isinstance(answer, wire.Page) and answer.items and isinstance(answer.items[0], wire.Explanation):
            return answer.model_copy(update={"items": [self._shown(e) for e in answer.items]})
        return answer

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        """Each verb of `calls` is a method: `client.models()`, `client.share([id])`, ..."""
        make = None if verb.startswith("_") else getattr(calls, verb, None)
        if make is None:
            raise AttributeError(verb)
        return lambda *a, **k: self.send(make(*a, **k))

    def upload(self, file: str | Path | bytes, name: str | None = None) -> wire.Input:
        """A picture from a path or from bytes."""
        if isinstance(file, bytes):
            return self.send(calls.upload(name or "upload", file))
        path = Path(file)
        return self.send(calls.upload(name or path.name, path.read_bytes()))

    def explain(
        self, model: str, input: str, explainer: str, *, timeout: float = 600, **options: Any
    ) -> wire.Explanation:
        """The finished explanation; waits for it, and raises FanlightError where the job fails."""
        for record in self.watch(model, input, explainer, timeout=timeout, **options):
            if isinstance(record, wire.Explanation):
                return record
        raise AssertionError("watch ends with an explanation")

    def watch(
        self, model: str, input: str, explainer: str, *, timeout: float = 600, **options: Any
    ) -> Iterator[wire.Job | wire.Explanation]:
        """Like `explain`, yielding the job while it is worked on and the explanation at the end."""
        answer = self.send(calls.explain(model, input, explainer, **options))
        end = time.monotonic() + timeout
        while isinstance(answer, wire.Accepted):
            job = self.send(calls.job(answer.job))
            if job.state in wire.TERMINAL:
                answer = self.send(calls.explanation(answer.id))
                break
            if time.monotonic() > end:
                raise FanlightError(
                    f"Not finished after {timeout:g} s; it goes on: job {job.id}.",
                    code="timeout",
                    hint="GET /api/v1/jobs/{id}",
                )
            yield job
            time.sleep(0.1)
        if answer.error is not None:
            raise FanlightError(
                answer.error.message, code=answer.error.code, given=answer.error.given, hint=answer.error.hint
            )
        yield answer

    def check(self, id: str, measures: Sequence[str] | None = None, *, timeout: float = 600) -> wire.Explanation:
        """The explanation with its map measured further: what `measures` names, else everything that can be; waits for it.

        >>> fan.check(record.id).trust.checks["stability"].found.value
        """
        names = [m.name for m in self.send(calls.measures(id)) if m.available] if measures is None else list(measures)
        if names:
            self.send(calls.measure_trust(id, names))
        end = time.monotonic() + timeout
        while True:
            record: wire.Explanation = self.send(calls.explanation(id))
            open_ = [c for n, c in record.trust.checks.items() if n in names and c.state == "pending"]
            if not open_:
                return record
            if time.monotonic() > end:
                raise FanlightError(
                    f"Not measured after {timeout:g} s; it goes on: job {open_[0].job}.",
                    code="timeout",
                    hint="GET /api/v1/jobs/{id}",
                )
            time.sleep(0.2)


class AsyncClient:
    """The same verbs, awaited: `await client.send(calls.models())`.

    Args:
        url: of the server; any in process.
        transport: `httpx.ASGITransport(app)` in process.
        token: access token. Default: what the visitor being answered sent (`credentials`).

    A server that is too busy (429) is not asked again, as `Client` does: a page shows at once what it says.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1",
        *,
        transport: httpx.AsyncBaseTransport | None = None,
        token: str | None = None,
    ):
        self._http = httpx.AsyncClient(
            base_url=url.rstrip("/") + "/api/v1", transport=transport, headers=_headers(token, None), timeout=60
        )

    async def send(self, call: Call[T]) -> T:
        response = await self._http.request(
            call.method,
            call.path,
            params=call.params,
            json=call.json,
            files=call.files,
            headers=dict(credentials.get()),
        )
        return _read(call, response)

    async def close(self) -> None:
        await self._http.aclose()
