"""What must hold of the further checks with every explainer, without knowing one by name."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch

from fanlight.artifact import canonical
from fanlight.explainers.base import Explainer, absent
from fanlight.explainers.registry import MODULES, declared
from fanlight.quality import checks
from support.explaining import Counting, classifier, conv_net, finish, item
from support.subjects import subject
from support.tiny_vit import network

SIDE = 64
OURS = {
    m: e for m in MODULES if "image-map" in (e := declared(importlib.import_module(f"fanlight.explainers.{m}"))).returns
}
"""Those that return a map: nothing else is measured."""
every = pytest.mark.parametrize("explainer", OURS.values(), ids=lambda e: e.name)


def fitting(explainer: type[Explainer]) -> Counting:
    model = conv_net(side=SIDE)
    if explainer.needs <= model.capabilities:
        return model
    return classifier(network(size=(SIDE, SIDE)), 5, SIDE, "auto")


def cheap(explainer: type[Explainer]) -> dict[str, Any]:
    """Whole numbers at their minimum where that makes the method cheaper and its parameters still go together."""
    chosen: dict[str, Any] = {}
    size = (SIDE, SIDE)
    for name, field in explainer.Params.model_json_schema()["properties"].items():
        if field.get("type") != "integer":
            continue
        tried = {**chosen, name: max(field["minimum"], 4)}
        try:
            params = explainer.Params(**tried)
            explainer.check(params, size)
        except Exception:
            continue
        if explainer.cost(params, size) < explainer.cost(explainer.Params(**chosen), size):
            chosen = tried
    return chosen


@every
@pytest.mark.parametrize("name", checks.MEASURES)
def test_every_check_of_every_method_is_made_and_leaves_the_model_alone(explainer: type[Explainer], name: str) -> None:
    if (reason := absent(explainer)) is not None:
        pytest.skip(reason)
    model, params = fitting(explainer), cheap(explainer)
    of = subject(model, explainer, item(model), **params)
    before = {k: v.clone() for k, v in model.net.state_dict().items()}
    versions = [t._version for t in (*model.net.parameters(), *model.net.buffers())]
    model.asked = 0
    record, curves = finish(checks.run(name, of))
    assert record["state"] == "succeeded", record
    if curves is not None:
        curves.check()
    assert all(torch.equal(v, before[k]) for k, v in model.net.state_dict().items())
    assert [t._version for t in (*model.net.parameters(), *model.net.buffers())] == versions
    assert not any(m.training or m._forward_hooks or m._backward_hooks for m in model.net.modules())
    again, _ = finish(checks.run(name, of))
    assert canonical(again) == canonical(record), "it can be measured again"
