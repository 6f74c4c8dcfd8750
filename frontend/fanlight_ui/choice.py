"""What the workbench is set to, as it stands in the address. Everything a refresh must not lose is here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanlight import wire

MOST = 4
"""Methods that fit side by side."""


@dataclass(frozen=True)
class Choice:
    """The state of the workbench.

    Args:
        dataset: whose samples are shown.
        target, minus: class indices; no target means the top prediction, `minus` asks for evidence for `target` rather than it.
        params: by explainer, only what differs from the defaults.
        results: ids of the explanations shown, in the order of `explainers`.
        prompt: words that are not stored yet, for a model that draws.
    """

    model: str | None = None
    input: str | None = None
    dataset: str | None = None
    explainers: tuple[str, ...] = ()
    target: int | None = None
    minus: int | None = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0
    results: tuple[str, ...] = ()
    prompt: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """From an address that a person may have written: what cannot be read is left out."""
        return cls(
            model=query.get("model") or None,
            input=query.get("input") or None,
            dataset=query.get("dataset") or None,
            prompt=query.get("prompt", "")[:2000],
            explainers=_names(query.get("explainers") or query.get("explainer", ""))[:MOST],
            target=_whole(query.get("target")),
            minus=_whole(query.get("minus")),
            params=_params(query.get("params", "")),
            seed=_whole(query.get("seed")) or 0,
            results=_names(query.get("results", ""))[:MOST],
        )

    def query(self) -> dict[str, str]:
        """As it stands in the address; what is at its default is left out. assets/workbench.js writes the same."""
        given = {
            "model": self.model,
            "input": self.input,
            "dataset": self.dataset,
            "prompt": self.prompt,
            "explainers": ",".join(self.explainers),
            "target": self.target,
            "minus": self.minus,
            "params": json.dumps(self.params, separators=(",", ":")) if self.params else "",
            "seed": self.seed or "",
            "results": ",".join(self.results),
        }
        return {k: str(v) for k, v in given.items() if v not in (None, "")}


def wire_target(target: int | None, minus: int | None) -> Any:
    """The target as the API takes it: omitted, a class, or the difference of two."""
    if target is None or minus is None or target == minus:
        return target
    return {"minus": [target, minus]}


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t.strip() for t in text.split(",") if t.strip()))


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 19 else None


def _params(text: str) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return {k: v for k, v in found.items() if isinstance(v, dict)} if isinstance(found, dict) else {}


def available(model: wire.Model) -> list[str]:
    return [a.name for a in model.explainers if a.available]


def asked_as(model: wire.Model, infos: Sequence[wire.ExplainerInfo]) -> set[str]:
    """Its own task, and those that it can be asked as: a bottleneck is an image classifier too."""
    fits = set(available(model))
    return {model.task} | {i.accepts for i in infos if i.name in fits}
