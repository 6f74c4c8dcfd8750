"""A real photograph, maps computed plainly from it, and a record as the service keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fanlight import wire
from fanlight.artifact import Artifact

BOX = [75.5, 0.0, 375.5, 300.0]


def image_map(value: Any, *, signed: bool, unit: str = "logit", box: Any = None) -> Artifact:
    value = np.asarray(value, np.float32)
    box = box or [0, 0, value.shape[1], value.shape[0]]
    return Artifact("map", "image-map", {"value": value}, {"unit": unit, "signed": signed, "box": box}).check()


def regions(label: Any, value: Any, *, signed: bool = True) -> Artifact:
    value = np.asarray(value, np.float32)
    arrays = {"label": np.asarray(label, np.int32), "value": value, "all": np.stack([value, -value], axis=1)}
    meta = {"unit": "logit", "signed": signed, "box": [0, 0, *arrays["label"].shape[::-1]], "target": {"class": 0}}
    return Artifact("regions", "region-scores", arrays, meta).check()


def curves(**meta: Any) -> Artifact:
    """A deletion that falls faster than its random floor."""
    x = np.linspace(0, 1, 29)
    y = np.stack([np.exp(-4 * x), 1 - x])
    half = np.stack([0 * x, 0.1 * np.sin(np.pi * x)])
    said = {"x_label": "share deleted", "y_label": "value", "series": ["deletion", "deletion, random order"], **meta}
    return Artifact("trust-curves", "curves", {"x": x, "y": y, "lo": y - half, "hi": y + half}, said).check()


TRUST = wire.Trust(
    state="succeeded",
    insertion=0.4,
    deletion=0.64,
    faithfulness=0.52,
    above_floor=True,
    completeness_error=0.003,
    interval={"faithfulness": wire.Interval(lo=0.48, hi=0.56)},
    curves=wire.ArtifactRef(name="trust-curves", kind="curves", digest="c" * 64, url="/api/v1/artifacts/c"),
)


def record(**changes: Any) -> wire.Explanation:
    names = ("tabby, tabby cat", "Egyptian cat", "window screen")
    fields: dict[str, Any] = {
        "id": "e1",
        "state": "succeeded",
        "model": "m",
        "model_name": "EfficientNet-Lite0",
        "input": "41ab",
        "input_name": "cat.png",
        "explainer": "occlusion",
        "explainer_title": "Occlusion",
        "family": "attribution",
        "target": {"class": 281},
        "target_name": "tabby, tabby cat",
        "params": {"window": 32, "step": 16, "full_cover": True},
        "seed": 7,
        "prediction": [
            wire.Prediction(index=i, name=n, probability=p, logit=1.0)
            for i, (n, p) in enumerate(zip(names, (0.612, 0.2, 0.0003), strict=True))
        ],
        "trust": TRUST,
        "provenance": wire.Provenance(
            key="9f" * 32,
            model_digest="9f3c" + "a" * 60,
            input_digest="41ab" + "b" * 60,
            explainer_version="2",
            versions={"torch": "2.14.1"},
            numerics="float32",
            device="cpu",
            threads=2,
            created=1_796_115_600.0,
            seconds=3.21,
            forwards=196,
        ),
        "created": 1_796_115_600.0,
        **changes,
    }
    return wire.Explanation(**fields)


def frozen(**changes: Any) -> dict[str, Any]:
    words = {
        "reading": "Red is for.",
        "misleads": "Grey is new.",
        "paper": "Zeiler & Fergus 2014",
        "method_title": "Occlusion",
    }
    extra = {k: changes.pop(k) for k in list(changes) if k in words}
    return {**record(**changes).model_dump(mode="json"), **words, **extra}
