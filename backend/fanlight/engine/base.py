"""The seam between the service and whatever computes. Nothing but JSON-able data and digests crosses it.

No tensors, pickles or callables: work goes in as `Work`, comes out as `Event`s, arrays go through the artifact store by digest. So the same
compute core serves a call in a test, a thread, a child process, and later a replica on another machine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol

Priority = Literal[0, 1, 2, 3, 4]
LIVE, INTERACTIVE, BULK, TRUST, BULK_TRUST = 0, 1, 2, 3, 4


@dataclass(frozen=True)
class Work:
    """One piece of work. Every field is JSON-able.

    Args:
        job, attempt: which attempt of which job this is; a result is accepted only from the current attempt.
        kind: "explain" makes the artifacts of an explanation; "trust" measures one that is stored, "check" measures it further;
            "predict" ends with the prediction. "edit", "suggest", "foresee" and "chances" are not submitted but asked, with `Engine.edit`.
        model: {"id", "digest", "source": {...}}: enough for a loader to find it and to refuse it if its digest differs.
        input: digest of the blob that holds the canonical pixels.
        explainer, version, params: the method, its version, parameters with defaults filled.
        target: canonical {"class": i}, {"minus": [a, b]}, {"similar_to": input} or {"concept": k}; None means the top prediction.
        reference: for {"similar_to": ...}: digest of the blob that holds that picture's canonical pixels.
        edits: those of the picture are applied to it, in order, before anything else; the explainer's own to its result.
        artifacts: for "trust", "check", "edit" and "suggest": digests of the stored artifacts by name.
        questions: for "foresee": prompts, {text, params}; for "chances": {text, spans}, words by where they begin and end.
        measure: for "check": which of them, a name of `quality.checks`.
        floor: for "trust": the cached floor of (model, input, target), if known.
        priority: 0 live, 1 interactive, 2 bulk, 3 trust, 4 the trust of bulk work.
        deadline: seconds from now after which it is not worth finishing; None for no limit.
        cost: forward passes, estimated.
    """

    job: str
    attempt: int
    kind: Literal["explain", "trust", "check", "predict", "edit", "suggest", "foresee", "chances"]
    model: Mapping[str, Any]
    input: str
    explainer: str
    version: str
    params: Mapping[str, Any]
    target: Mapping[str, Any] | None
    seed: int
    numerics: str
    edits: tuple[Mapping[str, Any], ...] = ()
    artifacts: Mapping[str, str] = field(default_factory=dict)
    floor: Mapping[str, Any] | None = None
    questions: tuple[Mapping[str, Any], ...] = ()
    measure: str = ""
    reference: str | None = None
    priority: int = INTERACTIVE
    deadline: float | None = None
    cost: int = 1

    def json(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Work:
        return cls(**{**value, **{name: tuple(value.get(name, ())) for name in ("edits", "questions")}})


@dataclass(frozen=True)
class Event:
    """What the engine says of a job, in order; the last is one of done, failed, cancelled.

    Kinds and their data: started {} · progress {done, message, preview?} · predicted {prediction, target} · done {artifacts, prediction, target,
    provenance, trust, floor, check} · failed {code, message, hint, retryable} · cancelled {}.
    """

    job: str
    kind: Literal["started", "progress", "predicted", "done", "failed", "cancelled"]
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def last(self) -> bool:
        return self.kind in ("done", "failed", "cancelled")


class Handle(Protocol):
    """A submitted piece of work."""

    def events(self) -> AsyncIterator[Event]:
        """Its events, once, in order, ending after the last one."""
        ...

    async def cancel(self) -> None:
        """Asks to stop at the next step; the last event tells whether it came in time."""
        ...


@dataclass(frozen=True)
class Health:
    """How the engine is: ready for work, on which device, how much is waiting, what it measured of itself."""

    ready: bool
    device: str
    queued: int
    running: int
    detail: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """Runs work. Implementations: inline, local (thread or child process), ray."""

    @property
    def live(self) -> int:
        """How many live edits it computes side by side; more that are asked wait in it, in the order in which they came."""
        ...

    async def start(self) -> None: ...

    async def submit(self, work: Work) -> Handle: ...

    async def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads the model of `source` once and says what it is: name, task, digest, size, classes, capabilities, card, ..."""
        ...

    async def edit(self, work: Work) -> Mapping[str, Any]:
        """Answers a live edit at once, beside whatever runs: from stored artifacts and the head of the model, without a queue.

        "edit" -> {"artifact": {name, kind, meta, sentence, detail}, "prediction"}; "suggest" -> what the explainer suggests;
        "foresee" -> {} where a job would not fail by its words, else the error; "chances" -> {"probabilities", "name"} of words in their prompt.
        """
        ...

    async def health(self) -> Health: ...

    async def drain(self) -> None:
        """Stops taking work and waits for what runs."""
        ...

    async def close(self) -> None: ...
