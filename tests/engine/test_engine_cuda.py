"""The same work on CUDA as on the CPU: equal within the stated tolerance. Runs where a GPU is at hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fanlight.artifact import Artifact
from fanlight.explainers.registry import registry

TOLERANCE = 1e-3  # of the largest absolute value; float32, TF32 off, deterministic kernels

pytestmark = pytest.mark.gpu


@pytest.fixture
def both(fresh: Callable[..., Any]) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device is at hand")
    return fresh("inline"), fresh("inline", device="cuda")


@pytest.mark.parametrize("name", list(registry()))
def test_a_method_gives_the_same_on_both_devices(both: tuple[Any, Any], name: str) -> None:
    params = {"kernel-shap": {"patch": 8}, "occlusion": {"window": 8, "stride": 8}}.get(name, {})
    cpu, cuda = (
        [
            Artifact.from_bytes(rig.blobs.get(a["digest"]))
            for a in rig.last(rig.work(explainer=name, params=params)).data["artifacts"]
        ]
        for rig in both
    )
    for one, two in zip(cpu, cuda, strict=True):
        for key, x in one.arrays.items():
            y = two.arrays[key]
            scale = float(np.abs(x).max()) or 1.0
            assert float(np.abs(x.astype(np.float64) - y).max()) <= TOLERANCE * scale, f"{one.name}.{key}"


def test_the_same_request_gives_the_same_numbers_twice_on_cuda(both: tuple[Any, Any]) -> None:
    _, rig = both
    picture = rig.picture(3)
    first, second = (rig.last(rig.work(picture, "integrated-gradients")).data for _ in range(2))
    a, b = (Artifact.from_bytes(rig.blobs.get(d["artifacts"][0]["digest"])).arrays["value"] for d in (first, second))
    assert float(np.abs(a - b).max()) <= TOLERANCE * float(np.abs(a).max())
