"""Runs one batch on the device: loads the model, prepares the inputs, predicts, explains or measures trust, stores what came of it."""

from __future__ import annotations

import base64
import itertools
import platform
import time
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
import torch

from fanlight import collector
from fanlight.adapters import heads, loader
from fanlight.adapters.base import takes
from fanlight.adapters.similarity import Similarity, embed
from fanlight.artifact import Artifact, canonical
from fanlight.blobs import Blobs
from fanlight.drawing import renderer
from fanlight.engine import asked
from fanlight.engine.base import Work
from fanlight.engine.core import BATCH_COST, Outcome, Plan, Progress
from fanlight.engine.items import Items
from fanlight.engine.memory import CPU_CHUNK, Memory, Torch, budget, full, knee, poisoned
from fanlight.engine.reuse import Reuse
from fanlight.engine.unchanged import changed, state
from fanlight.errors import ComputeFailed, FanlightError
from fanlight.explainers.base import Drawing, Item, Run, Step, Target
from fanlight.explainers.registry import find
from fanlight.images import load as load_pixels, of_picture, png
from fanlight.quality import checks, trust
from fanlight.quality.again import MAP, Subject

T = TypeVar("T")
PREVIEW = 160  # pixels
PREVIEW_EVERY = 0.5  # seconds
TOP = 10
EXPLAINED = 0.7  # of a job that asks the network again for a change: what explaining takes
VERSIONS = {
    "fanlight": version("fanlight"),
    "torch": torch.__version__,
    "numpy": np.__version__,
    "python": platform.python_version(),
}


@dataclass(frozen=True)
class Config:
    """What a compute worker needs to know; JSON-able, so that it crosses to a child process."""

    artifacts: str
    device: str = "auto"
    threads: int = 0
    memory_mb: int = 4096
    device_memory_mb: int = 0
    explainers: tuple[str, ...] = ()
    word_model: str = ""


class Context:
    """What a run is lent (see explainers.base.Context)."""

    def __init__(self, device: torch.device, chunk: int, kept: Reuse):
        self.device, self.chunk, self._kept = device, chunk, kept

    def reuse(self, key: Hashable, compute: Callable[[], T]) -> T:
        return self._kept.compute(key, compute)

    def remember(self, key: Hashable, value: Any) -> None:
        self._kept.put(key, value)

    def recall(self, key: Hashable) -> Any | None:
        return self._kept.get(key)


class Meter:
    """What one batch costs: seconds in its own steps and pictures asked about, whatever else is interleaved with it."""

    def __init__(self, model: Any):
        self.model = model
        self.seconds = 0.0
        self.passes = 0
        self._shown = time.perf_counter()

    def relay(self, run: Generator[Step, None, T], part: tuple[float, float] = (0, 1)) -> Generator[Progress, None, T]:
        """The steps of an explainer as the core's steps, measured, with a small picture now and then. Args: part: of the work."""
        while True:
            began, before = time.perf_counter(), self.model.asked
            try:
                step = next(run)
            except StopIteration as e:
                return e.value  # type: ignore[no-any-return]
            finally:
                self.seconds += time.perf_counter() - began
                self.passes += self.model.asked - before
            done = part[0] + (part[1] - part[0]) * step.done
            yield Progress(0.02 + 0.97 * done, step.message, self._preview(step))

    def _preview(self, step: Step) -> tuple[str] | None:
        if step.preview is None or time.perf_counter() - self._shown < PREVIEW_EVERY:
            return None
        self._shown = time.perf_counter()
        made = step.preview()
        picture = png(renderer(made.kind).image(made, size=PREVIEW), level=6)
        return ("data:image/png;base64," + base64.b64encode(picture).decode(),)


class Execution:
    """The executor of the compute core; owns one device. Args: config; blobs: the artifact store."""

    def __init__(self, config: Config, blobs: Blobs | None = None):
        self.config = config
        self.blobs = blobs or Blobs(config.artifacts)
        name = config.device if config.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(name)
        if config.threads:
            torch.set_num_threads(config.threads)
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        half = config.memory_mb * 2**20 // 2
        allocator = Torch(self.device)
        self.models = Reuse(budget(allocator, config.device_memory_mb * 2**20, half))
        self.kept = Reuse(half)
        self.memory = Memory(allocator, self.models, self.kept)
        self.items = Items(self.blobs, self.kept)
        self._alone = itertools.count()

    # --- what the core asks

    def plan(self, work: Work) -> Plan:
        if work.kind == "predict":
            return Plan(("predict", work.model["digest"]), 1)
        explainer = find(work.explainer, self.config.explainers)
        params = explainer.Params(**work.params)
        cost = explainer.cost(params, tuple(work.model.get("size", (224, 224))))
        if work.kind in ("trust", "check") or cost > BATCH_COST // 2:
            return Plan(("alone", next(self._alone)), max(cost, work.cost))
        other = work.reference or "concept" in (work.target or {})
        return Plan((work.kind, work.model["digest"], work.explainer, canonical(work.params), other), cost)

    def out_of_memory(self, error: BaseException) -> bool:
        return full(error)

    def poisoned(self, error: BaseException) -> bool:
        return poisoned(error, self.memory.device)

    def most(self, work: Work) -> int:
        return self.memory.most(*_kind(work))

    def split(self, work: Work, cost: int) -> None:
        self.memory.split(*_kind(work), cost)

    def relieve(self, work: Work, tries: int) -> bool:
        return self.memory.relieve(*_kind(work), tries)

    def describe(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        with collector.loading():
            return loader.describe(source)

    def ahead(self, work: Work, pool: ThreadPoolExecutor) -> None:
        """Prepares the picture of a piece of work that was submitted, where its model is at hand."""
        model = self.models.get(work.model["digest"])
        if model is not None and takes(model.task) == "image":
            self.items.ahead(model, work, pool)

    def edit(self, work: Work) -> Mapping[str, Any]:
        """Of `Engine.edit`. Called from another thread than `run`: what it shares with that is read-only."""
        try:
            return self._edit(work)
        except FanlightError:
            raise
        except Exception as e:
            raise ComputeFailed(f"The change could not be computed: {type(e).__name__}: {e}", code="edit_failed") from e

    def _edit(self, work: Work) -> Mapping[str, Any]:
        if work.kind == "chances":
            return asked.chances(self.config.word_model, work)
        model = self._model(work)
        explainer = find(work.explainer, self.config.explainers)
        if work.kind == "foresee":
            return asked.foresee(model, explainer, work)
        params = explainer.Params(**work.params)
        stored = [self._stored(d) for d in work.artifacts.values()]
        if work.kind == "suggest":
            return explainer().suggest(model, stored, work.edits, params)
        edited = explainer().edit(model, stored, work.edits, params)
        shown = edited.artifacts[0].check()
        draw = renderer(shown.kind)
        target = Target.of(work.target or {"class": 0})
        return {
            "artifact": {
                "name": shown.name,
                "kind": shown.kind,
                "meta": dict(shown.meta),
                "sentence": draw.sentence(shown, target=_named(model, target)),
                "detail": draw.detail(shown),
            },
            "prediction": edited.prediction,
        }

    def run(self, works: Sequence[Work]) -> Generator[Progress, None, list[Outcome]]:
        yield Progress(0.0, quiet=True)
        model = self._model(works[0])
        meter = Meter(model)
        before = state(model.net)
        try:
            chunk = self.memory.chunk(*_kind(works[0]), lambda: self._knee(model))
            ctx = Context(self.device, chunk, self.kept)
            items: Sequence[Any] = (
                self.items.drawings(works)
                if takes(model.task) == "prompt"
                else (yield from self.items.of(model, works))
            )
            outcomes: list[Outcome] = [i if isinstance(i, FanlightError) else {} for i in items]
            good = [n for n, i in enumerate(items) if not isinstance(i, FanlightError)]
            if good:
                ready: list[Any] = [items[n] for n in good]
                top = [_top(model, i) for i in ready]
                events = [
                    (n, "predicted", {"prediction": t, "target": i.target.json()})
                    for n, t, i in zip(good, top, ready, strict=True)
                ]
                yield Progress(0.02, "predicted", events=events)
                if works[0].reference is not None:
                    meter.model, ready = self.items.compared(model, works[0].reference, ready)
                elif ready[0].target.concept:
                    meter.model, ready = self.items.of_concepts(model, ready)
                results: list[Outcome]
                if works[0].kind == "predict":
                    results = [{} for _ in ready]
                elif works[0].kind == "trust":
                    results = [(yield from self._trust(meter, works[good[0]], ready[0], ctx))]
                elif works[0].kind == "check":
                    results = [(yield from self._check(meter, model, works[good[0]], ready[0], ctx))]
                else:
                    results = yield from self._explain(meter, model, [works[n] for n in good], ready, ctx)
                for n, result, t, item in zip(good, results, top, ready, strict=True):
                    if isinstance(result, Mapping):
                        provenance = self._provenance(model, chunk, meter)
                        result = {"prediction": t, "target": item.target.json(), "provenance": provenance, **result}
                    outcomes[n] = result
        finally:
            after = state(model.net)
            if after != before:
                self.models.drop(works[0].model["digest"])
        if after != before:
            raise ComputeFailed(*changed(before, after))
        return outcomes

    # --- parts

    def _model(self, work: Work) -> Any:
        wanted = work.model["digest"]

        def load() -> Any:
            with collector.loading():
                model = loader.load(work.model["source"], device=self.device)
            if model.digest == wanted:
                return model
            raise ComputeFailed(
                f"The files of model “{work.model['id']}” have changed since it was registered.",
                code="model_changed",
                given=model.digest,
                allowed=wanted,
                hint="Restart the server to register the new version.",
            )

        return self.memory.resident(wanted, load)

    def _knee(self, model: Any) -> int:
        """Rows per pass: fixed on the CPU, on CUDA the knee of throughput."""
        if self.device.type != "cuda" or takes(model.task) != "image":
            return CPU_CHUNK

        def ask(rows: int) -> None:
            with torch.inference_mode():
                model.logits(torch.zeros((rows, 3, *model.size), device=self.device))
                torch.cuda.synchronize(self.device)

        return knee(ask, self.memory.device.empty)

    def _explain(
        self, meter: Meter, model: Any, works: Sequence[Work], items: Sequence[Item], ctx: Context
    ) -> Generator[Progress, None, list[Outcome]]:
        explainer = find(works[0].explainer, self.config.explainers)
        params = explainer.Params(**works[0].params)
        run: Run = explainer().run(meter.model, items, params, ctx)
        asking = any(next(iter(e)) in explainer.asks for w in works for e in w.edits)
        results = yield from meter.relay(run, (0, EXPLAINED if asking else 1))
        outcomes: list[Outcome] = []
        for work, item, found in zip(works, items, results, strict=True):
            own = [e for e in work.edits if not of_picture(e)]
            edited = None
            if own and asking:
                edited = yield from meter.relay(explainer().ask(meter.model, found, own, params), (EXPLAINED, 1))
            elif own:
                edited = explainer().edit(meter.model, found, own, params)
            outcome = self._store(edited.artifacts if edited else found, _named(model, item.target))
            if edited and isinstance(outcome, Mapping):
                outcome = {**outcome, "prediction": edited.prediction}
            outcomes.append(outcome)
            if own:
                yield Progress(0.99, quiet=True)
        return outcomes

    def _store(self, artifacts: Sequence[Artifact], target: str) -> Outcome:
        try:
            for a in artifacts:
                a.check()
        except ValueError as e:
            return ComputeFailed(f"The method returned a result that cannot be stored: {e}.", code="not_finite")
        refs = [self._put(a) for a in artifacts]
        return {"artifacts": refs, "summary": renderer(artifacts[0].kind).sentence(artifacts[0], target=target)}

    def _stored(self, name: str) -> Artifact:
        """A stored artifact, read once: live edits ask for the same again and again."""
        return self.kept.compute(("artifact", name), lambda: Artifact.from_bytes(self.blobs.get(name)))

    def _put(self, a: Artifact) -> dict[str, Any]:
        return {
            "name": a.name,
            "kind": a.kind,
            "digest": self.blobs.put(a.to_bytes()),
            "unit": a.meta.get("unit", ""),
            "meta": dict(a.meta),
        }

    def _trust(self, meter: Meter, work: Work, item: Item, ctx: Context) -> Generator[Progress, None, Outcome]:
        artifacts = [self._stored(d) for d in work.artifacts.values()]
        result = yield from meter.relay(trust.run(meter.model, item, artifacts, work.floor, ctx))
        curves = self._put(result.curves.check()) if result.curves is not None else None
        return {"trust": {**result.record, "curves": curves}, "floor": result.floor}

    def _check(
        self, meter: Meter, network: Any, work: Work, item: Item, ctx: Context
    ) -> Generator[Progress, None, Outcome]:
        artifacts = [self._stored(d) for d in work.artifacts.values()]
        explainer = find(work.explainer, self.config.explainers)

        def asked(copied: Any) -> Any:
            if item.target.concept:
                return copied.concepts_of
            if work.reference is None:
                return copied
            return Similarity(copied, embed(copied, copied.prepare(load_pixels(self.blobs.get(work.reference)))))

        subject = Subject(
            model=meter.model,
            network=network,
            asked=asked,
            item=item,
            explainer=explainer,
            params=explainer.Params(**work.params),
            artifact=next(a for a in artifacts if a.kind == MAP),
            ctx=ctx,
        )
        record, found = yield from meter.relay(checks.run(work.measure, subject))
        curves = self._put(found.check()) if found is not None else None
        return {"measure": work.measure, "check": {**record, "curves": curves}}

    def _provenance(self, model: Any, chunk: int, meter: Meter) -> dict[str, Any]:
        device = (
            torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else f"cpu ({platform.machine()})"
        )
        return {
            "device": device,
            "threads": torch.get_num_threads(),
            "chunk": chunk,
            "seconds": round(meter.seconds, 4),
            "forwards": meter.passes,
            "versions": {**VERSIONS, **getattr(model, "versions", {})},
        }


def _top(model: Any, item: Item | Drawing) -> list[dict[str, Any]]:
    """The best outputs and the explained ones, as `wire.Prediction` says them; none where the model draws."""
    if isinstance(item, Drawing):
        return []
    wanted = [i for i in (item.target.index, item.target.minus) if i is not None and item.target.of_class]
    return heads.predictions(model.head, model.unit, model.classes, item.logits, TOP, wanted, item.chances)


def _kind(work: Work) -> tuple[str, str]:
    """What memory is learned by: the model, and the method or what is measured of it."""
    return work.model["digest"], work.explainer if work.kind == "explain" else f"{work.kind} {work.measure}"


def _named(model: Any, target: Target) -> str:
    return target.name(getattr(model, "classes", ()), getattr(model, "concepts", ()))
