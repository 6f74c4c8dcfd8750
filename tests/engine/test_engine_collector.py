"""What the garbage collector of a process of ours looks at, and that models do without it."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from fanlight import bundles
from fanlight.adapters import loader
from fanlight.adapters.base import takes

PARTS = ("efficientnet-lite0", "field-guide", "scbm-field-guide", "cbm-field-guide", "prototypes-field-guide")


def said(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout


def test_in_a_process_of_ours_nothing_is_collected_while_it_imports_and_what_it_imported_is_not_looked_at() -> None:
    code = """
import gc
from fanlight import collector
collector.begin(); print(gc.isenabled())
import fastapi
collector.settle(); print(gc.isenabled(), gc.get_freeze_count() > 20_000, len(gc.get_objects()) < 1000)
with collector.loading():
    print(gc.isenabled())
print(gc.isenabled())
"""
    assert said(code).split() == "False True True True False True".split()


def test_a_process_that_is_not_ours_is_left_as_it_is() -> None:
    code = """
import gc
from fanlight import collector
frozen = gc.get_freeze_count()
with collector.loading():
    print(gc.isenabled())
collector.settle()
print(gc.isenabled(), gc.get_freeze_count() == frozen)
"""
    assert said(code).split() == ["True"] * 3


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_a_command_that_is_refused_leaves_the_process_as_it_was(command: str) -> None:
    code = f"""
import gc
from typer.testing import CliRunner
from fanlight.cli import app
print(CliRunner().invoke(app, ["{command}", "--port", "99999"]).exit_code, gc.isenabled())
"""
    assert said(code).split() == ["2", "True"]


def places() -> list[Any]:
    found = {p.name: p for p in (*bundles.shipped(), *bundles.installed())}
    return [pytest.param(found.get(name), id=name) for name in PARTS]


@pytest.mark.parametrize("place", places())
def test_a_model_that_nobody_uses_is_gone_without_the_collector(place: Path | None) -> None:
    if place is None:
        pytest.skip("this model is not installed here")
    model = loader.load(loader.source(place))
    assert takes(model.task) == "image"
    gc.collect()
    gc.disable()
    try:
        with torch.inference_mode():
            model.logits(model.colour((127.5, 127.5, 127.5)).expand(1, 3, *model.size))
        x = model.colour((127.5, 127.5, 127.5)).expand(1, 3, *model.size).clone().requires_grad_()
        model.logits(x)[:, 0].sum().backward()
        whole, weights = weakref.ref(model), weakref.ref(next(model.net.parameters()))
        del model
        assert whole() is None and weights() is None
    finally:
        gc.enable()
