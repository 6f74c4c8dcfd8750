"""Eight people at once, with mixed methods on one model, get what each would get alone."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from engine_rig import KINDS, Rig

from fanlight.artifact import Artifact
from fanlight.engine.base import Work
from fanlight.engine.core import BATCH_COST
from fanlight.explainers.registry import find

CLIENTS, EACH = 8, 7
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("saliency", {}),
    ("integrated-gradients", {"steps": 16}),
    ("grad-cam", {}),
    ("occlusion", {"window": 8, "stride": 8}),
    ("input-x-gradient", {}),
    ("kernel-shap", {"patch": 8, "samples": 64}),
    ("layer-cam", {}),
    ("smooth-grad", {"samples": 8}),
    ("grad-cam-plus-plus", {}),
    ("rise", {"samples": 32}),
    ("guided-backprop", {}),
    ("lime", {"regions": 6, "samples": 32}),
    ("edges", {}),
)


def questions(rig: Rig) -> list[list[Work]]:
    """What each client asks, one after the other: methods in turn, on pictures of which some are shared."""
    return [
        [
            rig.work(rig.picture((client + n) % 5), name, params=params, target={"class": client % 3}, seed=client)
            for n in range(EACH)
            for name, params in [METHODS[(3 * client + n) % len(METHODS)]]
        ]
        for client in range(CLIENTS)
    ]


def told(rig: Rig, end: Any) -> list[dict[str, np.ndarray]]:
    assert end.kind == "done", end.data
    return [Artifact.from_bytes(rig.blobs.get(a["digest"])).arrays for a in end.data["artifacts"]]


def alone(work: Work) -> bool:
    """Whether the core gives it a batch of its own, so that its passes have the same shapes whoever else is there."""
    method = find(work.explainer)
    return method.cost(method.Params(**work.params), (32, 32)) > BATCH_COST // 2


@pytest.mark.parametrize("kind", KINDS)
def test_eight_clients_get_what_they_get_alone(fresh, kind):
    quiet, busy = fresh("inline"), fresh(kind)
    single = {(c, n): quiet.last(work) for c, works in enumerate(questions(quiet)) for n, work in enumerate(works)}
    asked = questions(busy)

    async def client(works: list[Work]) -> list[Any]:
        return [(await busy.events(work))[-1] for work in works]

    async def everybody() -> list[list[Any]]:
        return await asyncio.gather(*map(client, asked))

    equal = 0
    for c, ends in enumerate(busy.run(everybody(), seconds=120)):
        for n, end in enumerate(ends):
            work, expected = asked[c][n], single[c, n]
            same_shape = alone(work) or end.data["provenance"]["forwards"] == expected.data["provenance"]["forwards"]
            for found, wanted in zip(told(busy, end), told(quiet, expected), strict=True):
                assert found.keys() == wanted.keys()
                for name, value in found.items():
                    if same_shape:
                        np.testing.assert_array_equal(value, wanted[name], err_msg=f"{work.explainer}, {name}")
                    else:
                        largest = float(np.abs(wanted[name]).max())
                        np.testing.assert_allclose(value, wanted[name], rtol=1e-4, atol=1e-4 * largest)
            equal += same_shape
    assert equal >= CLIENTS * EACH // 3


def test_the_clients_were_there_at_once(fresh):
    """Otherwise the test above proves nothing: batches hold the work of several people."""
    rig = fresh("thread")
    works = [rig.work(rig.picture(n), "saliency", target={"class": 0}) for n in range(CLIENTS)]
    passes = [end.data["provenance"]["forwards"] for end in rig.last(*works)]
    assert (
        max(passes)
        > rig.last(rig.work(rig.picture(99), "saliency", target={"class": 0})).data["provenance"]["forwards"]
    )
