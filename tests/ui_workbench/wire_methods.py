"""What the small wire server offers: classes, methods with their parameters, and the numbers it makes."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from fanlight import wire

CLASSES = ["guenon", "patas", "titi", "macaque"]
SIDE = 224


class SaliencyParams(BaseModel):
    """Parameters of a quick method."""

    smooth: int = Field(
        1, ge=1, le=64, title="Smoothing samples", description="Noisy copies that are averaged, a count."
    )
    absolute: bool = Field(True, description="Whether the sign is dropped.")


class OcclusionParams(BaseModel):
    """Parameters of a slow method."""

    window: int = Field(32, ge=4, le=112, description="Side of the hidden square in pixels.")
    baseline: Literal["grey", "black", "mean"] = Field("grey", description="Colour that hides.")
    strength: float = Field(1.0, gt=0, le=1, description="How far the square is hidden, a fraction.")


SCORE = wire.WorldScore(
    state="measured",
    world="field-guide",
    sentence="On the field guide, where the truth is known, this method ranks the bird's parts with correlation 0.83 to the truth (0.71 to 0.90); "
    "random 0.00, best possible 0.97.",
    detail="Mean of 16 scenes with its 95 % interval, at the method's default parameters. It judges the method, not one map.",
    headline=wire.Measurement(value=0.83, lo=0.71, hi=0.9, floor=0.0, ceiling=0.97, unit="rank correlation"),
    model="Field guide",
    model_digest="f1" * 32,
    scenes=16,
)


def _info(
    name: str, title: str, params: type[BaseModel], cost: int, kinds: list[str], world: wire.WorldScore | None = None
) -> wire.ExplainerInfo:
    return wire.ExplainerInfo(
        name=name,
        title=title,
        family="attribution",
        version="1",
        summary="Which pixels matter.",
        reading="Warm marks what speaks for the class.",
        misleads="It may mark edges whatever the class.",
        accepts="image-classifier",
        needs=[],
        params=params.model_json_schema(),
        returns=kinds,
        cost=cost,
        paper=wire.Citation(citation="Somebody, 2020", link="https://doi.org/10.0/0", bibtex="@misc{somebody2020}"),
        docs="",
        world=world,
    )


INFOS = [
    _info("saliency", "Saliency", SaliencyParams, 2, ["image-map"], SCORE),
    _info("occlusion", "Occlusion", OcclusionParams, 514, ["image-map"]),
    _info("patches", "KernelSHAP", OcclusionParams, 1000, ["region-scores"]),
    _info("broken", "Broken", SaliencyParams, 2, ["image-map"]),
    _info("grad-cam", "Grad-CAM", SaliencyParams, 2, ["image-map"]),
]
REASON = "It needs that a layer with a grid of features can be read, as Grad-CAM needs; this model does not offer it."


def waves(seed: int) -> np.ndarray:
    """A smooth signed map, (224, 224) float32."""
    y, x = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    return (0.08 * np.sin(9 * x + seed) * np.cos(7 * y - seed)).astype(np.float32)
