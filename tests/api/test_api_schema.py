"""The OpenAPI description, the client and the documentation say the same; generated requests find no 5xx."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from api_rig import Api, noise
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from fanlight.client import Call, calls

EXAMPLES = 12
SENT = ("method", "url", "params", "json", "headers", "content", "files")


def test_generated_requests_never_get_a_server_error(api: Api) -> None:
    """Every operation, with values from its schema and beside it."""
    photo = api.upload(noise(1))
    record = api.explain(input=photo["id"])
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    known = [
        photo["id"],
        record["id"],
        share["id"],
        record["artifacts"][0]["digest"],
        "tiny",
        "saliency",
        share["token"],
    ]
    schema = schemathesis.openapi.from_dict(api.http.app.openapi())  # type: ignore[attr-defined]
    operations = [o.ok() for o in schema.get_all_operations()]
    assert len(operations) > 30
    faults: list[str] = []
    for operation in operations:
        if operation.path.endswith("/events"):
            continue  # a stream does not end; it has its own test

        @given(case=operation.as_strategy(), real=st.sampled_from(known), swap=st.booleans())
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            database=None,
            derandomize=True,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def attack(case: Any, real: str, swap: bool) -> None:
            if swap:
                case.path_parameters = {
                    k: real if isinstance(v, str) else v for k, v in (case.path_parameters or {}).items()
                }
            sent = case.as_transport_kwargs(base_url="http://testserver")
            sent["content"] = sent.pop("data", None) if not sent.get("files") and not sent.get("json") else None
            sent["headers"] = {**dict(sent.get("headers") or {}), "authorization": api.http.headers["authorization"]}
            try:
                answer = api.http.request(**{k: v for k, v in sent.items() if k in SENT and v is not None})
            except (ValueError, UnicodeError, TypeError):
                return  # the client itself refuses to send it
            if answer.status_code >= 500:
                faults.append(f"{case.method} {case.formatted_path}: {answer.status_code} {answer.text[:200]}")
            elif answer.status_code >= 400 and "json" in answer.headers.get("content-type", ""):
                assert answer.json()["error"]["message"]

        attack()
    assert not faults, faults[:5]
    assert api.explain(input=photo["id"], seed=5)["state"] == "succeeded"


def example(make: Any) -> Call[Any]:
    """A call of a verb, with a placeholder for each argument that has no default."""
    needed = [
        p for p in inspect.signature(make).parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]
    made: Call[Any] = make(*["x" if p.name != "blob" else b"x" for p in needed if p.kind is not p.KEYWORD_ONLY])
    return made


VERBS = [n for n in vars(calls) if not n.startswith("_")]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_of_the_client_is_an_operation_of_the_server(api: Api, verb: str) -> None:
    call = example(getattr(calls, verb))
    operations = api.http.app.openapi()["paths"]  # type: ignore[attr-defined]
    wanted = re.compile("^" + "/api/v1" + re.escape(call.path).replace("x", "(x|{[a-z]+})") + "$")
    matches = [
        p
        for p, ops in operations.items()
        if re.fullmatch(r"/api/v1" + re.sub(r"/x(?=/|$)", "/(?:x|\\\\{[a-z]+\\\\})", call.path), p)
        and call.method.lower() in ops
    ]
    assert matches or any(wanted.match(p) for p in operations), f"{call.method} {call.path}"


def test_every_operation_is_documented(api: Api, root: Path) -> None:
    text = (root / "docs" / "api.md").read_text("utf-8")
    missing = [
        f"{method.upper()} {path}"
        for path, operations in api.http.app.openapi()["paths"].items()  # type: ignore[attr-defined]
        for method in operations
        if f"{method.upper()} {path.removeprefix('/api/v1')}" not in text
    ]
    assert not missing, missing


def test_every_answer_has_a_typed_schema(api: Api) -> None:
    """A JSON answer without a schema would let client and server drift apart."""
    loose = []
    for path, operations in api.http.app.openapi()["paths"].items():  # type: ignore[attr-defined]
        for method, operation in operations.items():
            content = operation["responses"].get("200", operation["responses"].get("201", {})).get("content", {})
            if path.startswith("/api/") and content.get("application/json", {}).get("schema") == {}:
                loose.append(f"{method} {path}")
    assert loose == [], loose
