"""From work to what an explainer is given: pictures prepared, the model's answers, and the model as it is asked."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import torch

from fanlight.adapters import heads
from fanlight.adapters.similarity import Similarity, embed
from fanlight.artifact import canonical, digest
from fanlight.blobs import Blobs
from fanlight.engine.base import Work
from fanlight.engine.core import Progress
from fanlight.engine.reuse import Reuse
from fanlight.errors import ComputeFailed, FanlightError
from fanlight.explainers.base import Drawing, Item, Target
from fanlight.images import apply_edits, load as load_pixels, of_picture


@dataclass(frozen=True)
class Items:
    """Args: blobs: where pictures are; kept: what is remembered between requests."""

    blobs: Blobs
    kept: Reuse
    _coming: dict[str, Future[Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ahead(self, model: Any, work: Work, pool: Executor) -> None:
        """Decodes and prepares in another thread what the device is about to need: with several people it need not wait for that."""
        if self.kept.get(("input", _key(work))) is None:
            pool.submit(self._once, model, work)

    def _taken(self, model: Any, work: Work) -> Any:
        """The prepared picture, or its error, which a second attempt finds anew."""
        try:
            return self._once(model, work)
        finally:
            self._coming.pop(_key(work), None)

    def _once(self, model: Any, work: Work) -> Any:
        """Made by whichever thread comes first; the other waits for it. An error stays for whoever takes it."""
        key = _key(work)
        with self._lock:
            known = self.kept.get(("input", key))
            coming = self._coming.get(key)
            mine = known is None and coming is None
            if mine:
                coming = self._coming[key] = Future()
        if coming is None:
            return known
        if mine:
            try:
                coming.set_result(self.kept.compute(("input", key), lambda: self._read(model, work)))
                self._coming.pop(key, None)
            except BaseException as e:
                coming.set_exception(e)
        return coming.result()

    def drawings(self, works: Sequence[Work]) -> list[Drawing | FanlightError]:
        """Of prompts (`service.prompts`), for a model that draws."""
        found: list[Drawing | FanlightError] = []
        for work in works:
            try:
                said = orjson.loads(self.blobs.get(work.input))
                pixels = load_pixels(self.blobs.get(said["pixels"])) if said["pixels"] else None
                found.append(Drawing(said["text"], pixels, work.seed, _key(work)))
            except FanlightError as e:
                found.append(e)
        return found

    def of(self, model: Any, works: Sequence[Work]) -> Generator[Progress, None, list[Item | FanlightError]]:
        """Prepared items, or the error of each that cannot be; one forward pass for all that are new."""
        keys = [_key(w) for w in works]
        prepared: list[Any] = []
        for work in works:
            try:
                prepared.append(self._taken(model, work))
            except FanlightError as e:
                prepared.append(e)
            if len(works) > 1:
                yield Progress(0.01, quiet=True)
        logits: dict[str, torch.Tensor] = {k: row for k in keys if (row := self.kept.get(("logits", k))) is not None}
        new = {
            k: p[0] for k, p in zip(keys, prepared, strict=True) if not isinstance(p, FanlightError) and k not in logits
        }
        if new:
            with torch.inference_mode():
                x = torch.stack(list(new.values()))
                out = model.logits(x).float().cpu()
                said = model.chances(x).float().cpu() if hasattr(model, "chances") else [None] * len(new)
            if out.ndim != 2 or out.shape != (len(new), len(model.classes)):
                raise ComputeFailed(
                    f"The model returned shape {tuple(out.shape)} for {len(new)} pictures and {len(model.classes)} classes.",
                    code="wrong_shape",
                    allowed=[len(new), len(model.classes)],
                    hint="An image classifier returns one logit per class: (B, K).",
                )
            for k, row, p in zip(new, out, said, strict=True):
                logits[k] = row
                self.kept.put(("logits", k), row)
                self.kept.put(("chances", k), p)
        items: list[Item | FanlightError] = []
        for work, key, found in zip(works, keys, prepared, strict=True):
            if isinstance(found, FanlightError):
                items.append(found)
                continue
            row = logits[key]
            if not torch.isfinite(row).all():
                items.append(
                    ComputeFailed(
                        "The model returned values that are not finite (NaN or infinity) for this picture.",
                        code="not_finite",
                        hint="Check its weights and preprocessing: fanlight doctor MODEL",
                    )
                )
                continue
            chances = self.kept.get(("chances", key))
            best = heads.order(model.head, row if chances is None else chances)[0]
            target = Target(best) if work.target is None else Target.of(work.target)
            if target.of_class and max(target.index, target.minus or 0) >= len(row):
                items.append(
                    ComputeFailed(f"The model has {len(row)} classes.", code="unknown_target", given=target.json())
                )
                continue
            x, image, box = found
            items.append(Item(x, image, target, row, work.seed, box, key, chances))
        return items

    def _read(self, model: Any, work: Work) -> tuple[torch.Tensor, Any, Any]:
        pixels = apply_edits(load_pixels(self.blobs.get(work.input)), list(filter(of_picture, work.edits)))
        height, width = pixels.shape[:2]
        box = model.view(width, height)
        return model.prepare(pixels), model.pixels(pixels), box

    def compared(self, model: Any, blob: str, items: Sequence[Item]) -> tuple[Any, list[Item]]:
        """The model asked how similar pictures are to the one in `blob`, and the items with its answers."""

        def embedded() -> torch.Tensor:
            return embed(model, model.prepare(load_pixels(self.blobs.get(blob))))

        asked = Similarity(model, self.kept.compute(("embedding", model.digest, blob), embedded))
        with torch.inference_mode():
            rows = asked.logits(torch.stack([i.x for i in items])).float().cpu()
        return asked, [
            replace(i, logits=row, key=digest(canonical([i.key, blob]))) for i, row in zip(items, rows, strict=True)
        ]

    def of_concepts(self, model: Any, items: Sequence[Item]) -> tuple[Any, list[Item]]:
        """The bottleneck asked for its concepts, and the items with their logits."""
        asked = model.concepts_of
        with torch.inference_mode():
            rows = asked.logits(torch.stack([i.x for i in items])).float().cpu()
        return asked, [
            replace(i, logits=row, chances=None, key=digest(canonical([i.key, "concepts"])))
            for i, row in zip(items, rows, strict=True)
        ]


def _key(work: Work) -> str:
    """Names the prepared picture of a piece of work: the same for every method and target."""
    return digest(canonical([work.model["digest"], work.input, list(filter(of_picture, work.edits))]))
