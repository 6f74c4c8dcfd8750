"""A small ASGI app that speaks the wire types, so that pages can be driven without a model: what a test substitutes at the client's seam.

One model with four classes. `saliency` answers at once; `occlusion` takes a job whose steps a test moves with `advance`; `broken` fails.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import numpy as np
from fastapi import FastAPI
from PIL import Image
from wire_methods import CLASSES, INFOS, SIDE, waves
from wire_routes import add_routes

from fanlight import wire
from fanlight.artifact import Artifact, digest
from fanlight.errors import InvalidField, unknown


class WireServer:
    """State of one server. `app` is the ASGI app under /api/v1; `pages(app)` may be mounted beside it."""

    def __init__(self) -> None:
        self.app = FastAPI()
        self.records: dict[str, wire.Explanation] = {}
        self.jobs: dict[str, wire.Job] = {}
        self.blobs: dict[str, bytes] = {}
        self.pictures: dict[str, Image.Image] = {}
        self.shares: dict[str, wire.Share] = {}
        self.asked: list[dict[str, Any]] = []
        self.lacking: list[str] = []
        self.listeners: list[asyncio.Queue[dict[str, Any]]] = []
        self._names = (f"7Kd2qP{i:02d}" for i in itertools.count())
        self.sample = self.put_picture(
            Image.fromarray(np.uint8(120 + 100 * np.stack([waves(i) for i in range(3)], -1) / 0.08))
        )
        add_routes(self)

    # --- what tests do to it

    def put_picture(self, image: Image.Image) -> str:
        id = digest(image.tobytes())
        self.pictures[id] = image.convert("RGB")
        return id

    def put(self, record: wire.Explanation) -> wire.Explanation:
        self.records[record.id] = record
        return record

    def advance(self, job: str, **changes: Any) -> None:
        """Moves a job on; with state="succeeded" its explanation gets its artifact."""
        self.jobs[job] = moved = self.jobs[job].model_copy(update=changes)
        record = self.records[moved.explanation]
        if moved.state == "succeeded":
            self.put(self._finished(record))
        elif moved.state != record.state:
            self.put(record.model_copy(update={"state": moved.state}))
        self.tell({"type": "job", **moved.model_dump(mode="json")})

    def trust(self, id: str, **values: Any) -> None:
        """Gives an explanation its trust record."""
        self.put(self.records[id].model_copy(update={"trust": wire.Trust(state="succeeded", **values)}))
        self.tell({"type": "trust", "explanation": id, "state": "succeeded"})

    def tell(self, event: dict[str, Any]) -> None:
        for queue in self.listeners:
            queue.put_nowait(event)

    # --- its insides

    def explain(self, asked: wire.ExplanationRequest, **more: Any) -> wire.Explanation:
        self.asked.append(asked.model_dump(mode="json", exclude_none=True))
        info = next((i for i in INFOS if i.name == asked.explainer), None)
        if info is None:
            raise unknown("explainer", asked.explainer, [i.name for i in INFOS])
        if asked.params.get("window", 32) > 112:
            raise InvalidField(
                "window is 200; it must be at most 112.",
                given=200,
                allowed={"maximum": 112},
                hint="Choose 4 to 112.",
            )
        slow = asked.explainer == "occlusion"
        id = next(self._names)
        target = asked.target
        provenance = wire.Provenance(
            key="a" * 64,
            model_digest="9f3c" * 16,
            input_digest=asked.input,
            explainer_version="1",
            versions={"torch": "2.14.1"},
            numerics="cpu/f32",
            device="cpu",
            created=time.time(),
            seconds=0.4,
            forwards=info.cost,
        )
        record = wire.Explanation(
            id=id,
            state="queued" if slow else "running",
            job=f"job-{id}",
            model="net",
            model_name="EfficientNet-Lite0",
            input=asked.input,
            input_name="370.jpg",
            explainer=info.name,
            explainer_title=info.title,
            family=info.family,
            params={"window": 32, **asked.params} if slow else asked.params,
            target=target.model_dump(by_alias=True) if isinstance(target, wire.MinusTarget) else {"class": target or 0},
            target_name="guenon",
            seed=asked.seed,
            trust=wire.Trust(state="pending"),
            created=time.time(),
            provenance=provenance,
            **more,
        )
        self.jobs[record.job or ""] = wire.Job(
            id=f"job-{id}", explanation=id, state="queued", place=2, mine=True, title=info.title, created=time.time()
        )
        if info.name == "broken":
            error = wire.ErrorBody(
                code="not_finite", message="The model returned NaN.", hint="Check its weights with fanlight doctor."
            )
            return self.put(record.model_copy(update={"state": "failed", "error": error}))
        return self.put(record if slow else self._finished(record))

    def _finished(self, record: wire.Explanation) -> wire.Explanation:
        meta = {"unit": "logit", "signed": True, "box": [0, 0, SIDE, SIDE], "target": {"class": 0}}
        value = waves(len(self.records))
        if record.explainer == "patches":
            label = (np.arange(SIDE)[:, None] // 32 * 7 + np.arange(SIDE)[None] // 32).astype(np.int32)
            scores = np.array([value[label == r].mean() for r in range(49)], np.float32)
            made = Artifact(
                "regions", "region-scores", {"label": label, "value": scores, "all": np.stack([scores] * 4, 1)}, meta
            )
        else:
            made = Artifact("map", "image-map", {"value": value}, meta)
        blob = made.check().to_bytes()
        name = digest(blob)
        self.blobs[name] = blob
        ref = wire.ArtifactRef(
            name=made.name, kind=made.kind, digest=name, url=f"/api/v1/artifacts/{name}", unit="logit", meta=meta
        )
        p = [0.952, 0.011, 0.004, 0.002]
        predicted = [
            wire.Prediction(index=i, name=c, probability=p[i], logit=8.0 - 3 * i) for i, c in enumerate(CLASSES)
        ]
        return record.model_copy(
            update={
                "state": "succeeded",
                "prediction": predicted,
                "artifacts": [ref],
                "summary": "The face carries 64 % of the evidence.",
            }
        )
