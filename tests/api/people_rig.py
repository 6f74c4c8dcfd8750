"""People with accounts, each with a browser of their own, on a server in this process."""

from __future__ import annotations

from typing import Any

from api_rig import Api
from fastapi.testclient import TestClient

PASSWORD = "seven quiet herons"
FETCH = {"sec-fetch-site": "same-origin"}


def account(api: Api, name: str, *, operator: bool = False) -> dict[str, Any]:
    answer = api.call("POST", "/people", json={"name": name, "password": PASSWORD, "operator": operator})
    assert answer.status_code == 201, answer.text
    return answer.json()  # type: ignore[no-any-return]


def founded(api: Api, ident: str, **members: str) -> None:
    """A workspace with members: name=role, whose accounts are made where they are missing."""
    if ident != "default":
        assert api.call("POST", "/workspaces", json={"id": ident, "name": ident.title()}).status_code == 201
    known = {p["name"] for p in api.call("GET", "/people").json()}
    for name, role in members.items():
        if name not in known:
            account(api, name)
        answer = api.call("PUT", f"/workspaces/{ident}/members/{name}", json={"role": role})
        assert answer.status_code == 200, answer.text


def browser(api: Api) -> TestClient:
    return TestClient(api.http.app, headers=FETCH)


def login(client: TestClient, name: str, password: str = PASSWORD, **headers: str) -> Any:
    form = {"name": name, "password": password}
    return client.post("/login", data=form, headers={"accept": "text/html", **headers}, follow_redirects=False)


def entered(api: Api, name: str) -> Api:
    """The server as this person's browser sees it."""
    client = browser(api)
    assert login(client, name).status_code == 303
    return Api(client)
