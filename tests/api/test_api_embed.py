"""Who may show a share page in a frame: nobody, but for the pages that the settings name."""

from __future__ import annotations

from pathlib import Path

import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient
from pydantic import ValidationError

from fanlight.app import create

WIKI = "https://wiki.example.org"


def ancestors(policy: str) -> str:
    return policy.partition("frame-ancestors ")[2]


def shared(api: Api) -> str:
    record = api.explain(input=api.upload(noise(1))["id"])
    return str(api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()["token"])


def test_by_default_nobody_may(api: Api) -> None:
    token = shared(api)
    for query in ("", "?embed=1", "?embed=https://evil.example"):
        answer = api.http.get(f"/s/{token}{query}")
        assert answer.status_code == 200 and ancestors(answer.headers["content-security-policy"]) == "'none'", query


def test_named_parents_may_where_the_address_asks_for_it(tmp_path: Path) -> None:
    app = create(settings(tmp_path, embed_parents=f"{WIKI}, http://localhost:8080"), token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        token = shared(Api(started(http)))
        policy = http.get(f"/s/{token}?embed=1").headers["content-security-policy"]
        assert ancestors(policy) == f"{WIKI} http://localhost:8080"
        assert "default-src 'none'" in policy and "x-frame-options" not in http.get(f"/s/{token}?embed=1").headers
        assert ancestors(http.get(f"/s/{token}").headers["content-security-policy"]) == "'none'"
        assert ancestors(http.get("/s/none?embed=1").headers["content-security-policy"]) == "'none'"


@pytest.mark.parametrize(
    "value", ["*", "https://a.example; script-src *", "https://*.example", "wiki.example.org", "https://a/b"]
)
def test_what_is_no_origin_is_refused_at_start(tmp_path: Path, value: str) -> None:
    with pytest.raises(ValidationError, match="not an origin"):
        settings(tmp_path, embed_parents=value)
