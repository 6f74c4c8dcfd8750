"""An S3-compatible store on loopback (moto), in a process of its own."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import NamedTuple

import httpx

from support.processes import Process, answers, free_port


class Bucket(NamedTuple):
    """An empty bucket.

    Args:
        url: for FANLIGHT_ARTIFACTS_URL.
        env: credentials and address, as AWS_* variables.
    """

    url: str
    env: dict[str, str]


class S3(Process):
    def __init__(self, folder: Path):
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.numbers = count(1)
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        ready = f"{self.endpoint}/moto-api/"
        super().__init__(command, ready=lambda: answers(ready), log=folder / "s3.log", patience=60)

    def bucket(self) -> Bucket:
        name = f"fanlight-{next(self.numbers)}"
        httpx.put(f"{self.endpoint}/{name}", trust_env=False).raise_for_status()
        env = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }
        return Bucket(f"s3://{name}/artifacts", env)
