"""Results of words, asked for as a client does."""

from __future__ import annotations

from typing import Any

import httpx

from fanlight.client import Client
from support.processes import FanlightServer


def explained(server: FanlightServer, prompt: str) -> Any:
    """The maps of a prompt by the exact model of the scenes."""
    asked = {"kind": "prompt", "value": prompt}
    said = httpx.post(f"{server.url}/api/v1/inputs", json=asked, headers=server.headers, trust_env=False).json()
    with Client(server.url, server.token) as fan:
        return fan.explain(model="scenes-exact", input=said["id"], explainer="diffusion-pid", params={"guidance": 1})
