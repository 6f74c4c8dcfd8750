"""The typed client: the only door to a server for notebooks, the shell and the pages.

`Client` is synchronous, `AsyncClient` is its twin for the pages, over HTTP or in process (`httpx.ASGITransport`). What a verb sends and
how its answer is read is said once, in `calls`; the two clients only differ in how they wait.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import httpx
from pydantic import TypeAdapter, ValidationError

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.errors import FanlightError
from fanlight.notebook import Record

T = TypeVar("T")

credentials: ContextVar[Mapping[str, str]] = ContextVar("credentials", default={})  # noqa: B039 (never mutated)
"""Headers of the visitor whose request is being answered; the gate sets it, the pages' client forwards it."""


@dataclass(frozen=True)
class Call(Generic[T]):
    """One request and how its answer is read."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    params: Mapping[str, Any] | None = None
    json: Any = None
    files: Any = None


def _as(kind: Any) -> Callable[[httpx.Response], Any]:
    adapter = TypeAdapter(kind)
    return lambda response: adapter.validate_json(response.content)


def _given(**values: Any) -> dict[str, Any]:
    return {k: v for k, v in values.items() if v is not None}


def _outcome(response: httpx.Response) -> wire.Explanation | wire.Accepted:
    return (wire.Accepted if response.status_code == 202 else wire.Explanation).model_validate_json(response.content)


class calls:
    """What each verb sends. Paths are relative to /api/v1."""

    system = staticmethod(lambda: Call("GET", "/system", _as(wire.System)))
    models = staticmethod(lambda: Call("GET", "/models", _as(list[wire.Model])))
    model = staticmethod(lambda id: Call("GET", f"/models/{id}", _as(wire.Model)))
    examine = staticmethod(lambda id: Call("POST", f"/models/{id}/examination", _as(wire.Examination)))
    examined = staticmethod(lambda id: Call("GET", f"/models/{id}/examination", _as(wire.Examination)))
    explainers = staticmethod(lambda: Call("GET", "/explainers", _as(list[wire.ExplainerInfo])))
    datasets = staticmethod(lambda: Call("GET", "/datasets", _as(list[wire.Dataset])))
    input = staticmethod(lambda id: Call("GET", f"/inputs/{id}", _as(wire.Input)))
    explanation = staticmethod(lambda id: Call("GET", f"/explanations/{id}", _as(wire.Explanation)))
    delete = staticmethod(lambda id: Call("DELETE", f"/explanations/{id}", _as(wire.Deleted)))
    job = staticmethod(lambda id: Call("GET", f"/jobs/{id}", _as(wire.Job)))
    cancel = staticmethod(lambda id: Call("DELETE", f"/jobs/{id}", _as(wire.Job)))
    trust = staticmethod(lambda id: Call("GET", f"/explanations/{id}/trust", _as(wire.Trust)))
    measures = staticmethod(lambda id: Call("GET", f"/explanations/{id}/trust/measures", _as(list[wire.Measure])))
    recompute = staticmethod(lambda id: Call("POST", f"/explanations/{id}/recompute", _outcome, params={"wait": 2}))
    shares = staticmethod(lambda: Call("GET", "/shares", _as(list[wire.Share])))
    revoke = staticmethod(lambda id: Call("DELETE", f"/shares/{id}", _as(wire.Share)))
    artifact = staticmethod(
        lambda digest: Call("GET", f"/artifacts/{digest}/raw", lambda r: Artifact.from_bytes(r.content))
    )
    describe = staticmethod(lambda digest: Call("GET", f"/artifacts/{digest}", _as(dict[str, Any])))
    table = staticmethod(lambda digest: Call("GET", f"/artifacts/{digest}/table.csv", lambda r: r.text))

    @staticmethod
    def compare(ids: Sequence[str]) -> Call[wire.Comparison]:
        """Agreement of two to four finished explanations."""
        return Call("GET", "/comparisons", _as(wire.Comparison), params={"ids": ",".join(ids)})

    @staticmethod
    def difference(a: str, b: str) -> Call[dict[str, Any]]:
        """What the map of `a` minus `b` says."""
        return Call("GET", f"/comparisons/{a}/{b}", _as(dict[str, Any]))

    @staticmethod
    def samples(
        dataset: str, *, cursor: str | None = None, limit: int = 48, q: str | None = None, label: str | None = None
    ) -> Call[wire.Page[wire.Sample]]:
        return Call(
            "GET",
            f"/datasets/{dataset}/samples",
            _as(wire.Page[wire.Sample]),
            params=_given(cursor=cursor, limit=limit, q=q, label=label),
        )

    @staticmethod
    def upload(name: str, blob: bytes) -> Call[wire.Input]:
        return Call("POST", "/inputs", _as(wire.Input), files={"file": (name, blob)})

    @staticmethod
    def explain(
        model: str,
        input: str,
        explainer: str,
        *,
        target: Any = None,
        params: Mapping[str, Any] | None = None,
        seed: int = 0,
        wait: float = 2,
    ) -> Call[wire.Explanation | wire.Accepted]:
        body = _given(
            model=model, input=input, explainer=explainer, target=target, params=dict(params or {}), seed=seed
        )
        return Call("POST", "/explanations", _outcome, params={"wait": wait}, json=body)

    @staticmethod
    def explanations(**filters: Any) -> Call[wire.Page[wire.Explanation]]:
        """Filters: model, explainer, family, input, dataset, class, outcome, tag, trust, owner, q, sort, cursor, limit."""
        return Call("GET", "/explanations", _as(wire.Page[wire.Explanation]), params=_given(**filters))

    @staticmethod
    def jobs(*, state: str | None = None, cursor: str | None = None, limit: int = 100) -> Call[wire.Page[wire.Job]]:
        return Call("GET", "/jobs", _as(wire.Page[wire.Job]), params=_given(state=state, cursor=cursor, limit=limit))

    @staticmethod
    def measure_trust(id: str, measures: Sequence[str] | None = None) -> Call[wire.Trust]:
        """Insertion and deletion, or what is named: see `measures`, which says what each will cost."""
        return Call("POST", f"/explanations/{id}/trust", _as(wire.Trust), json=_given(measures=measures))

    @staticmethod
    def patch(id: str, **changes: Any) -> Call[wire.Explanation]:
        return Call("PATCH", f"/explanations/{id}", _as(wire.Explanation), json=_given(**changes))

    @staticmethod
    def intervene(
        explanation: str, edits: list[dict[str, Any]], note: str = "", wait: float = 2
    ) -> Call[wire.Explanation | wire.Accepted]:
        body = {"explanation": explanation, "edits": edits, "note": note}
        return Call("POST", "/interventions", _outcome, params={"wait": wait}, json=body)

    @staticmethod
    def live(session: str, explanation: str, edits: list[dict[str, Any]], seq: int) -> Call[wire.LivePanel]:
        return Call(
            "POST",
            "/live",
            _as(wire.LivePanel),
            json={"session": session, "explanation": explanation, "edits": edits, "seq": seq},
        )

    @staticmethod
    def share(
        explanations: list[str], *, view: Mapping[str, Any] | None = None, expires_in_days: int | None = None
    ) -> Call[wire.NewShare]:
        body = _given(explanations=explanations, view=dict(view or {}), expires_in_days=expires_in_days)
        return Call("POST", "/shares", _as(wire.NewShare), json=body)

    # --- sweeps and saved views

    sweep = staticmethod(lambda id: Call("GET", f"/sweeps/{id}", _as(wire.Sweep)))
    pause_sweep = staticmethod(lambda id: Call("POST", f"/sweeps/{id}/pause", _as(wire.Sweep)))
    resume_sweep = staticmethod(lambda id: Call("POST", f"/sweeps/{id}/resume", _as(wire.Sweep)))
    cancel_sweep = staticmethod(lambda id: Call("POST", f"/sweeps/{id}/cancel", _as(wire.Sweep)))
    delete_sweep = staticmethod(lambda id: Call("DELETE", f"/sweeps/{id}", _as(wire.Deleted)))
    views = staticmethod(lambda: Call("GET", "/views", _as(list[wire.SavedView])))
    delete_view = staticmethod(lambda id: Call("DELETE", f"/views/{id}", _as(wire.SavedView)))
    restore_view = staticmethod(lambda id: Call("POST", f"/views/{id}/restore", _as(wire.SavedView)))

    @staticmethod
    def start_sweep(
        model: str,
        explainer: str,
        dataset: str | None = None,
        *,
        gallery: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Call[wire.Sweep]:
        """Over a data set or a filtered gallery. Options: label, q, first, sample, sample_seed; rule, target, params, seed, name."""
        part = {k: options.pop(k) for k in ("label", "q", "first", "sample", "sample_seed") if k in options}
        source = _given(dataset=dataset, gallery=gallery, **part)
        body = _given(model=model, explainer=explainer, source=source, **options)
        return Call("POST", "/sweeps", _as(wire.Sweep), json=body)

    @staticmethod
    def sweeps(*, cursor: str | None = None, limit: int = 24) -> Call[wire.Page[wire.Sweep]]:
        return Call("GET", "/sweeps", _as(wire.Page[wire.Sweep]), params=_given(cursor=cursor, limit=limit))

    @staticmethod
    def sweep_items(
        id: str, *, state: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Call[wire.Page[wire.SweepItem]]:
        params = _given(state=state, cursor=cursor, limit=limit)
        return Call("GET", f"/sweeps/{id}/items", _as(wire.Page[wire.SweepItem]), params=params)

    @staticmethod
    def sweep_summary(id: str, wait: float = 0) -> Call[wire.SweepSummary]:
        return Call("GET", f"/sweeps/{id}/summary", _as(wire.SweepSummary), params={"wait": wait})

    @staticmethod
    def save_view(name: str, query: Mapping[str, str]) -> Call[wire.SavedView]:
        return Call("POST", "/views", _as(wire.SavedView), json={"name": name, "query": query})

    @staticmethod
    def patch_view(id: str, **changes: Any) -> Call[wire.SavedView]:
        return Call("PATCH", f"/views/{id}", _as(wire.SavedView), json=_given(**changes))


def failure(response: httpx.Response) -> FanlightError:
    """The server's error as an exception with the same code and sentences."""
    try:
        body = wire.Error.model_validate_json(response.content).error
        error = FanlightError(body.message, code=body.code, given=body.given, allowed=body.allowed, hint=body.hint)
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
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = 60):
        url = (url or os.environ.get("FANLIGHT_URL") or "http://127.0.0.1:8321").rstrip("/")
        token = token or os.environ.get("FANLIGHT_TOKEN")
        self.url = url
        self._http = httpx.Client(base_url=url + "/api/v1", headers=_headers(token, None), timeout=timeout)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Sends one of `calls`; raises FanlightError where the server refuses."""
        try:
            response = self._http.request(call.method, call.path, params=call.params, json=call.json, files=call.files)
        except httpx.TransportError as e:
            raise FanlightError(
                f"No Fanlight server answers at {self.url} ({e}).", code="no_server", hint=NOWHERE
            ) from e
        return cast(T, self._shown(_read(call, response)))

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
        headers: default: those of the visitor being answered (`credentials`).
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
