"""How the commands that talk to a server find it and show that they are allowed to."""

from __future__ import annotations

import os
from typing import Annotated
from urllib.parse import urlsplit

import typer

from fanlight.client import Client
from fanlight.settings import Settings

Url = Annotated[
    str | None,
    typer.Option(
        "--url", help="Address of the server. Default: FANLIGHT_URL, else http://127.0.0.1:8321.", show_default=False
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        help="Access token. Default: FANLIGHT_TOKEN, else, for a server here, the one in FANLIGHT_DATA_DIR.",
        show_default=False,
    ),
]


def connect(url: str | None, token: str | None) -> Client:
    """A client; without a token the one that a server on this machine keeps in its data folder is taken."""
    url = url or os.environ.get("FANLIGHT_URL")
    token = token or os.environ.get("FANLIGHT_TOKEN")
    if token is None and (url is None or urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")):
        kept = Settings().data_dir / "token"
        token = kept.read_text().strip() if kept.is_file() else None
    return Client(url, token)
