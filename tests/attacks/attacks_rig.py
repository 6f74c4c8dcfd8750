"""A server as an attacker finds it: a program of its own behind a socket, some of everything in it, and requests that no library would send."""

from __future__ import annotations

import io
import json
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from PIL import Image

from support.processes import FanlightServer

MODEL = '''"""A small model."""
import torch
from torch import nn
from fanlight.adapters.image_classifier import Preprocessing, TorchImageClassifier

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.features = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(4, 3)
    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))

def load():
    return TorchImageClassifier(Net(), classes=CLASSES, preprocessing=Preprocessing(size=(64, 64)), features_at="features")
'''
CLASSES = ("left", "right", "middle")
PASSWORD = "seven quiet herons"
SETTINGS: dict[str, Any] = {"default_model": False, "trust": "request", "threads": 1}
TRACES = ("Traceback", 'File "', "site-packages", "fanlight/api", "sqlalchemy.", "starlette", "pydantic_core", "0x7f")
SECRETS = (b"root:x:0", b"[project]", b"SQLite format", b"-----BEGIN")


def noise(seed: int, size: tuple[int, int] = (64, 48)) -> bytes:
    """A PNG of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


@dataclass(frozen=True)
class Raw:
    """An answer taken apart by hand. Args: status: 0 where the server closed without one; headers: names in lower case."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")


@dataclass
class Target:
    """The server, with the operator's client, and what there is in the workspace `default`."""

    server: FanlightServer
    http: httpx.Client
    picture: str = ""
    explanation: str = ""
    job: str = ""
    artifact: str = ""
    share: str = ""
    token: str = ""

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.http.request(method, "/api/v1" + path, **more)

    def browser(self, **more: Any) -> httpx.Client:
        """Somebody who does not know the token."""
        return httpx.Client(base_url=self.server.url, timeout=60, trust_env=False, **more)

    def upload(self, blob: bytes, name: str = "picture.png") -> httpx.Response:
        return self.call("POST", "/inputs", files={"file": (name, blob)})

    def explain(self, **spec: Any) -> dict[str, Any]:
        """The finished record."""
        body = {"model": "tiny", "explainer": "saliency", **spec}
        answer = self.call("POST", "/explanations?wait=20", json=body)
        assert answer.status_code in (200, 202), answer.text
        end = time.monotonic() + 60
        while (record := self.call("GET", f"/explanations/{answer.json()['id']}").json())["state"] != "succeeded":
            assert time.monotonic() < end and record["state"] in ("queued", "running"), record
            time.sleep(0.05)
        return dict(record)

    def account(self, name: str, workspace: str, role: str) -> httpx.Client:
        """Somebody who logged in by name, with a browser that asks from the server's own pages."""
        if workspace not in {w["id"] for w in self.call("GET", "/workspaces").json()}:
            made = self.call("POST", "/workspaces", json={"id": workspace, "name": workspace})
            assert made.status_code == 201, made.text
        made = self.call("POST", "/people", json={"name": name, "password": PASSWORD, "operator": False})
        assert made.status_code in (201, 409), made.text
        put = self.call("PUT", f"/workspaces/{workspace}/members/{name}", json={"role": role})
        assert put.status_code == 200, put.text
        http = self.browser(headers={"sec-fetch-site": "same-origin"})
        entered = http.post("/login", data={"name": name, "password": PASSWORD})
        assert entered.status_code == 303, entered.text
        return http

    def operations(self) -> list[tuple[str, str, dict[str, Any]]]:
        """(method, path, description) of everything that the OpenAPI description names."""
        paths = self.http.get("/api/v1/openapi.json").json()["paths"]
        return [(method.upper(), path, op) for path, some in paths.items() for method, op in some.items()]

    def stocked(self) -> Target:
        self.picture = self.upload(noise(1)).json()["id"]
        record = self.explain(input=self.picture)
        self.explanation, self.job = record["id"], record["job"]
        self.artifact = record["artifacts"][0]["digest"]
        share = self.call("POST", "/shares", json={"explanations": [self.explanation]}).json()
        self.share, self.token = share["id"], share["token"]
        return self

    def raw(self, request: bytes, *, patience: float = 20, wait: bool = True) -> Raw:
        """What the server answers to these very bytes."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=patience) as s:
            s.sendall(request)
            if not wait:
                s.shutdown(socket.SHUT_WR)
            return answered(s)

    def line(self, target: str | bytes, method: str = "GET", *, enter: bool = True, **headers: str) -> Raw:
        """One request with this very target, as it stands. Args: enter: as the operator; headers: `_` stands for `-`."""
        given = {"host": f"127.0.0.1:{self.server.port}", "connection": "close"}
        given |= {"authorization": f"Bearer {self.server.token}"} if enter else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        spelt = target.encode() if isinstance(target, str) else target
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items()).encode("latin-1")
        return self.raw(method.encode() + b" " + spelt + b" HTTP/1.1\r\n" + lines + b"\r\n")

    def lives(self) -> None:
        """It is the same process, it answers, and computes."""
        assert self.server.running, self.server.output()
        assert self.http.get("/healthz").status_code == 200
        assert self.explain(input=self.picture, seed=time.time_ns() % 2**31)["state"] == "succeeded"


def answered(s: socket.socket) -> Raw:
    """Reads an answer until the server closes or the body is as long as its header says."""
    got = b""
    try:
        while b"\r\n\r\n" not in got:
            if not (more := s.recv(2**16)):
                return Raw(0, body=got)
            got += more
        head, _, body = got.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
        length = int(headers.get("content-length", 2**62))
        while len(body) < length and (more := s.recv(2**16)):
            body += more
    except ConnectionResetError:
        return Raw(0, body=got)
    return Raw(int(lines[0].split()[1]), headers, body)


def model(folder: Path, classes: tuple[str, ...] = CLASSES) -> Path:
    """The file of the small model, with these classes."""
    path = folder / "tiny.py"
    path.write_text(MODEL.replace("CLASSES", json.dumps(list(classes))))
    return path


def clean(text: str) -> list[str]:
    """What of the inside of the server a text shows."""
    return [t for t in TRACES if t in text]


def sentence(answer: httpx.Response | Raw) -> str:
    """The message of a refusal, which is a sentence and shows nothing of the inside."""
    assert clean(answer.text) == [], answer.text[:500]
    error = json.loads(answer.text)["error"]
    assert error["message"].endswith((".", "?")), error
    return str(error["message"])
