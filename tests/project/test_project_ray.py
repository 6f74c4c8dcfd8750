"""The nodes of the compose file as plain processes: a head, and a server that joins it."""

import subprocess
import sys
import time
from importlib.util import find_spec

import psutil
import pytest
import yaml
from PIL import Image

from fanlight.client import Client
from support.processes import BIN, FanlightServer, Process, listens

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="fanlight[ray] is not installed"),
]
PORT = 6379
MODEL = """
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier
def load():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    return TorchImageClassifier(net, classes=["one", "two", "three"], preprocessing=Preprocessing(size=(32, 32)))
"""


@pytest.fixture
def head(root, tmp_path):
    """The head of docker-compose.yml, on loopback and with processors, so that no further node is needed."""
    if listens(PORT):
        pytest.skip(f"port {PORT} is taken")
    service = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]["ray-head"]
    words = [w.replace("--num-cpus=0", "--num-cpus=2") for w in service["command"]]
    ray = {k: v for k, v in service["environment"].items() if k.startswith("RAY_")}
    home = tmp_path / "home"
    home.mkdir()
    env = {**ray, "RAY_AUTH_TOKEN": "t" * 40, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "HOME": str(home)}
    process = Process(
        [BIN / "ray", *words],
        ready=lambda: "Ray runtime started" in process.output(),
        log=tmp_path / "head.log",
        env=env,
    )
    process.env = {k: v for k, v in process.env.items() if k != "RAY_ADDRESS"}
    process.start()
    yield process, env
    process.stop()


def test_a_server_joins_the_head_with_the_token_and_without_it_says_why_not(head, tmp_path):
    process, env = head
    model = tmp_path / "tiny.py"
    model.write_text(MODEL)
    picture = tmp_path / "picture.png"
    Image.radial_gradient("L").convert("RGB").save(picture)
    settings = {"engine": "ray", "ray_address": "auto", "ray_bulk": "0", "threads": 1, "default_model": False}
    server = FanlightServer(tmp_path, models=model, env={k: v for k, v in env.items() if k != "HOME"}, **settings)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    keyless = {"RAY_AUTH_TOKEN": "", "HOME": str(stranger)}
    other = FanlightServer(stranger, models=model, env=keyless, **settings)
    other.ready = lambda: "joins none without a token" in other.output()
    try:
        server.start()
        with Client(server.url, server.token) as client:
            record = client.explain("tiny", client.upload(picture).id, "saliency")
        assert record.state == "succeeded"
        assert any("ServeReplica" in p.name() for p in psutil.Process(process.pid).children(True))
        other.start()
        answers = (_asked(env) for _ in range(3))  # the server of Ray Client starts after the rest
        assert "yes" in answers, "it answers who has the token"
        assert "ConnectionError" in _asked({**env, "RAY_AUTH_TOKEN": "u" * 40}), "and nobody else"
        server.stop()
        time.sleep(1)
        assert process.running, "a server that leaves does not end the cluster"
    finally:
        other.stop()
        server.stop()


def _asked(env):
    """What a visitor of the head's Ray Client with this environment is told."""
    code = "import ray; ray.init('ray://127.0.0.1:10001'); print('yes' if ray.is_initialized() else 'no')"
    told = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": "/usr/bin:/bin", **env}, capture_output=True, text=True, timeout=90
    )
    return "yes" if told.stdout.strip() == "yes" else told.stderr
