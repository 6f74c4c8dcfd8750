"""What clients were promised and shown, and a check of a server against it."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from fanlight.artifact import Artifact, canonical, digest

PROMISED = ("lost", "failed", "doubled", "changed", "partial", "refused")
"""What must not happen: a 202 without a record; a job that ended otherwise than well; two records or two results for one request; a result
that is another than before; an artifact that is incomplete; an answer that is none."""
OVER = ("succeeded", "failed", "cancelled", "expired")
OPEN_AT_ONCE = 24


@dataclass
class History:
    """Shared by the clients; what they learn before a crash must hold after it."""

    accepted: dict[str, bytes] = field(default_factory=dict)
    """Record id -> the request that was promised, canonical."""
    answers: dict[bytes, str] = field(default_factory=dict)
    """The other way round: there is one record per request."""
    results: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Record id -> digests of its artifacts, from the first answer that had them."""
    problems: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def problem(self, kind: str, remark: str) -> None:
        self.problems[kind] += 1
        self.remarks.append(f"{kind}: {remark}"[:300])

    def promise(self, ident: str, request: Mapping[str, Any]) -> None:
        content = canonical(request)
        with self.lock:
            known = self.answers.setdefault(content, ident)
            if known != ident:
                self.problem("doubled", f"{known} and {ident} answer the same request")
            self.accepted[ident] = content

    def see(self, record: Mapping[str, Any]) -> None:
        """An answer that shows a record. A finished one never changes."""
        found = tuple(a["digest"] for a in record["artifacts"])
        with self.lock:
            if record["state"] == "succeeded":
                before = self.results.setdefault(record["id"], found)
                if before != found:
                    self.problem("changed", f"{record['id']} had {before}, has {found}")
            elif record["id"] in self.results:
                self.problem("changed", f"{record['id']} had succeeded and is {record['state']}")
            elif record["state"] in OVER:
                self.problem("failed", f"{record['id']} {record['state']}: {record['error']}")

    @property
    def unfinished(self) -> list[str]:
        with self.lock:
            return [i for i in self.accepted if i not in self.results]


def load(http: httpx.Client, history: History, draw: Callable[[random.Random], dict[str, Any]], seed: int) -> None:
    """A client: asks, asks the same again, reads; until the server is gone. Args: draw: makes a request."""
    rng = random.Random(seed)
    asked: list[dict[str, Any]] = []
    try:
        while True:
            time.sleep(rng.uniform(0, 0.05))
            if len(history.unfinished) > OPEN_AT_ONCE:
                for ident in rng.sample(history.unfinished, 3):
                    _read(http, history, ident)
                continue
            again = asked and rng.random() < 0.2
            request = rng.choice(asked) if again else draw(rng)
            asked.append(request)
            _ask(http, history, request)
    except httpx.TransportError:
        return


def settle(http: httpx.Client, history: History, idents: list[str], patience: float) -> None:
    """Waits for what was promised and reads all of it: records, artifacts, and the answer to the same request."""
    end = time.monotonic() + patience
    for ident in idents:
        while (record := _read(http, history, ident)) is not None and record["state"] not in OVER:
            if time.monotonic() > end:
                history.problem("lost", f"{ident} is still {record['state']} after {patience:g} s")
                return
            time.sleep(0.05)
        if record is None or record["state"] != "succeeded":
            continue
        for artifact in record["artifacts"]:
            _whole(http, history, ident, artifact["digest"])
        request = httpx.Response(200, content=history.accepted[ident]).json()
        if _ask(http, history, request) != ident:
            history.problem("doubled", f"asked again, {ident} is not found")


def _ask(http: httpx.Client, history: History, request: Mapping[str, Any]) -> str:
    answer = http.post("/explanations", json=request)
    if answer.status_code not in (200, 202):
        history.problem("refused", f"{answer.status_code} {answer.text}")
        return ""
    body = answer.json()
    history.promise(body["id"], request)
    if answer.status_code == 200:
        history.see(body)
    return str(body["id"])


def _read(http: httpx.Client, history: History, ident: str) -> dict[str, Any] | None:
    answer = http.get(f"/explanations/{ident}")
    if answer.status_code != 200:
        history.problem("lost", f"{ident}: {answer.status_code} {answer.text}")
        return None
    history.see(answer.json())
    return dict(answer.json())


def _whole(http: httpx.Client, history: History, ident: str, name: str) -> None:
    blob = http.get(f"/artifacts/{name}/raw")
    try:
        if blob.status_code != 200 or digest(blob.content) != name:
            raise ValueError(f"{blob.status_code} {blob.text[:100]}")
        Artifact.from_bytes(blob.content).check()
    except ValueError as e:
        history.problem("partial", f"artifact {name} of {ident}: {e}")
