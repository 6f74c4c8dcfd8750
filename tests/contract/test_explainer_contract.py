"""What must hold of every explainer, without knowing one by name."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from fanlight import drawing, explainers
from fanlight.adapters.base import CAPABILITIES
from fanlight.artifact import KINDS, Artifact
from fanlight.errors import ComputeFailed
from fanlight.explainers.base import Explainer, Target
from fanlight.explainers.registry import MODULES, declared, registry
from support.explaining import Context, Counting, classifier, conv_net, explained
from support.families import MODELS, item
from support.tiny_vit import network

ROOT = Path(__file__).resolve().parents[2]
SIDE = 64
OURS = {m: declared(importlib.import_module(f"fanlight.explainers.{m}")) for m in MODULES}


def fitting(explainer: type[Explainer]) -> Counting:
    """A small model that offers what the explainer needs: convolutions, or attention, or what its family explains."""
    if explainer.accepts in MODELS:
        return MODELS[explainer.accepts](SIDE)
    model = conv_net(side=SIDE)
    if explainer.needs <= model.capabilities:
        return model
    model = classifier(network(size=(SIDE, SIDE)), 5, SIDE, "auto")
    assert explainer.needs <= model.capabilities
    return model


every = pytest.mark.parametrize("explainer", OURS.values(), ids=lambda e: e.name)


def test_the_registry_lists_exactly_the_files_of_the_folder():
    families = {p.parent for p in Path(explainers.__file__).parent.glob("*/__init__.py")}
    files = {f"{folder.name}.{f.stem}" for folder in families for f in folder.glob("*.py") if f.stem != "__init__"}
    assert set(MODULES) == files
    assert list(registry())[: len(MODULES)] == [e.name for e in OURS.values()]


def test_declaring_all_explainers_imports_no_torch():
    code = "import sys; from fanlight.explainers.registry import registry; registry(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("module", MODULES)
def test_the_name_is_the_file_name_with_hyphens(module):
    assert OURS[module].name == module.rpartition(".")[2].replace("_", "-")


@every
def test_everything_is_declared(explainer: type[Explainer]):
    for attribute in ("title", "family", "summary", "reading", "misleads", "version"):
        assert getattr(explainer, attribute).strip(), attribute
    assert explainer.needs <= set(CAPABILITIES)
    assert explainer.returns and set(explainer.returns) <= set(KINDS)
    assert explainer.paper.link.startswith("https://") and explainer.paper.bibtex.startswith("@")
    first_author = re.split(r"[,& ]", explainer.paper.citation)[0]
    assert first_author in inspect.getdoc(explainer), "the docstring names the paper"
    assert explainer.paper.citation[-4:] in explainer.paper.bibtex, "citation and bibtex name the same year"


@every
def test_every_parameter_has_bounds_and_a_description(explainer: type[Explainer]):
    for name, field in explainer.Params.model_json_schema()["properties"].items():
        assert len(field.get("description", "")) > 10, name
        assert "default" in field, name
        bounded = "minimum" in field and "maximum" in field
        assert bounded or "enum" in field or "maxLength" in field or field["type"] == "boolean", name


@every
def test_parameters_out_of_bounds_and_unknown_ones_are_refused(explainer: type[Explainer]):
    with pytest.raises(ValidationError):
        explainer.Params(no_such_parameter=1)
    for name, field in explainer.Params.model_json_schema()["properties"].items():
        wrong = [field["minimum"] - 1, field["maximum"] + 1, float("nan")] if "minimum" in field else ["no such value"]
        if "maxLength" in field:
            wrong = ["x" * (field["maxLength"] + 1)]
        for value in wrong:
            with pytest.raises(ValidationError):
                explainer.Params(**{name: value})


@every
def test_documentation_and_a_test_of_its_own_exist(explainer: type[Explainer]):
    module = explainer.__module__.rpartition(".")[2]
    page = (ROOT / "docs" / "methods" / f"{explainer.name}.md").read_text()
    for name in explainer.Params.model_fields:
        assert f"`{name}`" in page, f"the page does not mention the parameter {name}"
    assert explainer.paper.link in page
    assert (ROOT / "tests" / "explainers" / f"test_{module}.py").is_file()


@every
def test_a_renderer_exists_for_what_it_returns(explainer: type[Explainer]):
    assert set(explainer.returns) <= set(drawing.RENDERERS)


@every
def test_defaults_finish_quickly_with_what_is_declared(explainer: type[Explainer]):
    model = fitting(explainer)
    start = time.perf_counter()
    artifacts = explained(explainer, model, item(model))
    assert time.perf_counter() - start < 5
    assert tuple(a.kind for a in artifacts) == explainer.returns
    assert len({a.name for a in artifacts}) == len(artifacts)
    for artifact in artifacts:
        again = Artifact.from_bytes(artifact.check().to_bytes())
        assert again.meta == artifact.meta and again.kind == artifact.kind
        for name, array in artifact.arrays.items():
            np.testing.assert_array_equal(again.arrays[name], array)
        for array in (artifact.arrays[n] for n in ("value", "label") if artifact.kind == "image-map" and n != "label"):
            assert array.shape == model.size and array.dtype == np.float32


@every
def test_the_same_seed_gives_the_same_bytes(explainer: type[Explainer]):
    model = fitting(explainer)
    first, second = (explained(explainer, model, item(model, seed=5), Context()) for _ in range(2))
    assert [a.to_bytes() for a in first] == [a.to_bytes() for a in second]


@every
def test_an_item_alone_equals_the_item_in_a_batch(explainer: type[Explainer]):
    model = fitting(explainer)
    items = [item(model, n, Target(n, 3 if n == 1 else None), seed=n) for n in range(3)]
    together = explained(explainer, model, items)
    for one, artifacts in zip(items, together, strict=True):
        for mine, theirs in zip(explained(explainer, model, one), artifacts, strict=True):
            for name, array in mine.arrays.items():
                tolerance = 1e-4 * np.abs(array).max(initial=0)
                np.testing.assert_allclose(theirs.arrays[name], array, rtol=0, atol=tolerance, err_msg=name)


@every
@pytest.mark.parametrize("chunk", [1, 5])
def test_the_size_of_a_chunk_changes_nothing_that_matters(explainer: type[Explainer], chunk: int):
    model = fitting(explainer)
    usual, other = (explained(explainer, model, item(model), Context(rows)) for rows in (8, chunk))
    for mine, theirs in zip(usual, other, strict=True):
        for name, array in mine.arrays.items():
            np.testing.assert_allclose(
                theirs.arrays[name], array, rtol=0, atol=1e-4 * np.abs(array).max(initial=0), err_msg=name
            )


@every
def test_the_model_is_left_as_it_was(explainer: type[Explainer]):
    model = fitting(explainer)
    before = {k: v.clone() for k, v in model.net.state_dict().items()}
    explained(explainer, model, [item(model, 0), item(model, 1)])
    for key, value in model.net.state_dict().items():
        assert torch.equal(value, before[key])
    for module in model.net.modules():
        assert not module.training
        hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
        assert not any(hooks)
    assert all(not p.requires_grad and p.grad is None for p in model.net.parameters())


@every
def test_the_stated_cost_is_within_a_factor_of_two(explainer: type[Explainer]):
    # an adaptive method is counted where it may not stop early: what it then costs does not hang on the model
    fixed = {name: 0 for name in explainer.Params.model_fields if name == "tolerance"}
    model = fitting(explainer)
    one = item(model)
    model.asked = 0
    explained(explainer, model, one, **fixed)
    stated = explainer.cost(explainer.Params(**fixed), model.size)
    # what runs on a copy of the network is not seen by the counter, and is added to `asked` by whoever does it
    assert stated / 2 <= max(model.passes, model.asked) <= stated * 2


@every
def test_a_model_that_answers_nan_is_noticed_and_does_not_crash(explainer: type[Explainer]):
    model = fitting(explainer)
    one = item(model)
    [m for m in model.net.modules() if isinstance(m, torch.nn.Linear)][-1].weight.fill_(float("nan"))
    model.asked = 0
    try:
        artifacts = explained(explainer, model, one)
    except ComputeFailed as said:
        assert said.code == "not_finite"
        return
    if model.asked:
        with pytest.raises(ValueError, match="not finite"):
            for artifact in artifacts:
                artifact.check()
