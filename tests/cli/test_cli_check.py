"""`fanlight explain --check` and `Client.check` against a running server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from fanlight.cli import app
from fanlight.client import Client
from support.processes import FanlightServer

ALL = {"stability", "randomisation", "agreement"}
MODEL = '''"""A small model for tests."""
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 3)
        self.head.weight.data *= 50
    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))

def load():
    return TorchImageClassifier(Net(), classes=["one", "two", "three"], preprocessing=Preprocessing((64, 64)), features_at="features")
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("check")
    (folder / "tiny.py").write_text(MODEL)
    server = FanlightServer(folder, trust="request", default_model=False, models=folder / "tiny.py", threads=1)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "circle.png"
    Image.radial_gradient("L").convert("RGB").save(path)
    return path


@pytest.fixture
def fanlight(server: FanlightServer, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("FANLIGHT_URL", server.url)
    monkeypatch.setenv("FANLIGHT_TOKEN", server.token)
    return lambda *args: CliRunner().invoke(app, [str(a) for a in args])


def test_explain_check_waits_for_everything_and_says_it(fanlight: Any, picture: Path) -> None:
    run = fanlight("explain", picture, "--model", "tiny", "--explainer", "saliency", "--check")
    assert run.exit_code == 0, run.stderr
    for word in ("Faithfulness", "edges alone get", "Stability 0.", "Untrained network 0.", "Agreement", "random 0."):
        assert word in run.stdout, run.stdout
    assert "Checking further: about" in run.stderr
    again = fanlight("explain", picture, "--model", "tiny", "--explainer", "saliency", "--check", "--json")
    checks = json.loads(again.stdout)["trust"]["checks"]
    assert set(checks) == ALL and {c["state"] for c in checks.values()} == {"succeeded"}


def test_the_client_checks_what_is_named_and_all_without_names(server: FanlightServer, picture: Path) -> None:
    with Client(server.url, server.token) as fan:
        one = fan.explain(model="tiny", input=fan.upload(picture).id, explainer="edges")
        some = fan.check(one.id, ["stability"])
        assert set(some.trust.checks) == {"stability"} and some.trust.checks["stability"].found.value > 0.5
        whole = fan.check(one.id)
        assert set(whole.trust.checks) == ALL
        assert whole.trust.checks["randomisation"].found.value == pytest.approx(1, abs=1e-9)
        assert whole.trust.checks["randomisation"].verdict == "warn"
