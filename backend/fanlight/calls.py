"""What each verb of the client sends and how its answer is read. Plain data: the clients only differ in how they wait."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx
from pydantic import TypeAdapter

from fanlight import wire
from fanlight.artifact import Artifact

T = TypeVar("T")


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
    datasets_reading = staticmethod(lambda: Call("GET", "/datasets/reading", _as(list[wire.DatasetReading])))
    datasets = staticmethod(lambda: Call("GET", "/datasets", _as(list[wire.Dataset])))
    world = staticmethod(lambda id: Call("GET", f"/datasets/{id}/world", _as(wire.World)))
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
    def compare(ids: Sequence[str], map: str | None = None) -> Call[wire.Comparison]:
        """Agreement of two to four finished explanations. Args: map: which of several that a result has."""
        return Call("GET", "/comparisons", _as(wire.Comparison), params=_given(ids=",".join(ids), map=map))

    @staticmethod
    def difference(a: str, b: str, map: str | None = None) -> Call[dict[str, Any]]:
        """What the map of `a` minus `b` says."""
        return Call("GET", f"/comparisons/{a}/{b}", _as(dict[str, Any]), params=_given(map=map))

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
    def probabilities(explanation: str, source: str, table: Mapping[str, float] | None = None) -> Call[wire.Chances]:
        """Of the measured words of a result. Args: source: uniform, table, counts, masked."""
        body = _given(source=source, table=dict(table) if table is not None else None)
        return Call("POST", f"/explanations/{explanation}/probabilities", _as(wire.Chances), json=body)

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
    def start_study(
        model: str,
        explainer: str,
        first: Sequence[str],
        second: Sequence[str],
        *,
        template: str | None = None,
        seeds: Sequence[int] = (0,),
        **options: Any,
    ) -> Call[wire.Sweep]:
        """Two lists of words against each other, as a sweep. Options: params, name."""
        lists = _given(template=template, first=list(first), second=list(second), seeds=list(seeds))
        body = _given(model=model, explainer=explainer, source={"words": lists}, **options)
        return Call("POST", "/sweeps", _as(wire.Sweep), json=body)

    @staticmethod
    def study(id: str, *, column: str | None = None, rule: str | None = None) -> Call[wire.Study]:
        return Call("GET", f"/sweeps/{id}/study", _as(wire.Study), params=_given(column=column, rule=rule))

    @staticmethod
    def study_csv(id: str, *, rule: str | None = None) -> Call[bytes]:
        return Call("GET", f"/sweeps/{id}/study.csv", lambda r: r.content, params=_given(rule=rule))

    trials = staticmethod(lambda sweep: Call("GET", f"/sweeps/{sweep}/trials", _as(list[wire.Trial])))
    trial = staticmethod(lambda id: Call("GET", f"/trials/{id}", _as(wire.Trial)))
    trial_summary = staticmethod(lambda id: Call("GET", f"/trials/{id}/summary", _as(wire.TrialSummary)))
    cancel_trial = staticmethod(lambda id: Call("POST", f"/trials/{id}/cancel", _as(wire.Trial)))
    delete_trial = staticmethod(lambda id: Call("DELETE", f"/trials/{id}", _as(wire.Deleted)))
    trial_csv = staticmethod(lambda id: Call("GET", f"/trials/{id}/export.csv", lambda r: r.content))

    @staticmethod
    def start_trial(
        sweep: str, edits: Sequence[Mapping[str, Any]], where: Mapping[str, str] | None = None
    ) -> Call[wire.Trial]:
        """Edits tried on every finished explanation of a sweep. `where`: label, predicted, outcome, q."""
        body = {"edits": list(edits), "where": dict(where or {})}
        return Call("POST", f"/sweeps/{sweep}/trials", _as(wire.Trial), json=body)

    @staticmethod
    def trial_items(
        id: str, *, move: str | None = None, state: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> Call[wire.Page[wire.TrialItem]]:
        params = _given(move=move, state=state, cursor=cursor, limit=limit)
        return Call("GET", f"/trials/{id}/items", _as(wire.Page[wire.TrialItem]), params=params)

    trainings = staticmethod(lambda: Call("GET", "/trainings", _as(list[wire.Training])))

    # --- models made of models

    derivations = staticmethod(lambda: Call("GET", "/derivations", _as(list[wire.Derivation])))
    derivation = staticmethod(lambda id: Call("GET", f"/derivations/{id}", _as(wire.Derivation)))
    cancel_derivation = staticmethod(lambda id: Call("DELETE", f"/derivations/{id}", _as(wire.Derivation)))

    @staticmethod
    def derive(model: str, dataset: str, **change: Any) -> Call[wire.Derivation]:
        """A model of a model, made for a data set and measured on it. `change`: remove=[...], forget=[...] or add_class="name"."""
        body = {"change": change, "dataset": dataset}
        return Call("POST", f"/models/{model}/derivations", _as(wire.Derivation), json=body)

    # --- saved views

    @staticmethod
    def save_view(name: str, query: Mapping[str, str]) -> Call[wire.SavedView]:
        return Call("POST", "/views", _as(wire.SavedView), json={"name": name, "query": query})

    @staticmethod
    def patch_view(id: str, **changes: Any) -> Call[wire.SavedView]:
        return Call("PATCH", f"/views/{id}", _as(wire.SavedView), json=_given(**changes))
