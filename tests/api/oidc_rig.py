"""A server in this process whose people log in through a provider on loopback, and a browser that goes there and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from api_rig import TOKEN, Api, settings, started
from fastapi.testclient import TestClient
from people_rig import browser

from fanlight.app import create
from support.identities import CLIENT, SECRET, Provider

HTML = {"accept": "text/html"}
HERE = "http://127.0.0.1:8321"


def configured(provider: Provider, folder: Path, **changes: Any) -> TestClient:
    """To be entered as a context."""
    oidc = {"oidc_issuer": provider.issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SECRET}
    given = {"public_url": HERE, "oidc_label": "Example <ID>", **oidc, **changes}
    return TestClient(
        create(settings(folder, **given), token=TOKEN, pages=False), headers={"Authorization": f"Bearer {TOKEN}"}
    )


def begin(client: TestClient, to: str = "/") -> httpx.Response:
    """Off to the provider."""
    return client.get("/login/oidc", params={"next": to}, headers=HTML, follow_redirects=False)


def agreed(address: str) -> str:
    """What the provider sends the browser back to: path and query of the server."""
    answer = httpx.get(address)
    assert answer.status_code == 302, answer.text
    back = urlsplit(answer.headers["location"])
    assert f"{back.scheme}://{back.netloc}" == HERE
    return f"{back.path}?{back.query}"


def back(client: TestClient, path: str) -> httpx.Response:
    return client.get(path, headers={**HTML, "sec-fetch-site": "cross-site"}, follow_redirects=False)


def through(client: TestClient, to: str = "/") -> httpx.Response:
    """The whole way; the last answer."""
    answer = begin(client, to)
    return back(client, agreed(answer.headers["location"])) if answer.status_code == 303 else answer


def linked(api: Api, name: str, subject: str = "s-1") -> dict[str, Any]:
    answer = api.call("POST", "/people", json={"name": name, "subject": subject})
    assert answer.status_code == 201, answer.text
    return answer.json()  # type: ignore[no-any-return]


__all__ = ["Api", "browser", "started"]
