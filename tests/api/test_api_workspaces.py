"""What belongs to one workspace is not there for another: every table, every operation, every list, every stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, started
from fastapi.testclient import TestClient
from people_rig import PASSWORD, account, entered, founded
from workspaces_rig import EDITS, MARK, Made, context, fill, owned, prepared, rows, until, visitor

from fanlight.api.events import _told
from fanlight.app import create
from fanlight.service import datasets
from fanlight.service.context import ROLES, SCOPES
from fanlight.store import sight

Place = tuple[Api, Made, Api]
# Operations that are about the server, which is the same for everybody.
SERVERS = {"/models", "/models/{id}", "/models/{id}/examination", "/explainers", "/people", "/people/{id}"}
MISSING = {"input": "0" * 64, "artifact": "0" * 64, "dataset": "nowhere", "workspace": "nowhere"}


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The server as its operator sees it, what is in `default`, and the server as the owner of `lab` sees it."""
    settings = prepared(tmp_path_factory.mktemp("two"))
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_server").walled()
        settings = settings.model_copy(update={"database_url": url})
    app = create(settings, token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        yield api, fill(api), visitor(api, "bob", "owner")


def operations(api: Api) -> list[tuple[str, str, dict[str, Any]]]:
    paths = api.http.app.openapi()["paths"]  # type: ignore[attr-defined]
    return [
        (method.upper(), path.removeprefix("/api/v1"), operation)
        for path, some in paths.items()
        for method, operation in some.items()
        if path.startswith("/api/v1")
    ]


KINDS = {
    "inputs": "input", "explanations": "explanation", "jobs": "job", "artifacts": "artifact", "shares": "share", "views": "view",
    "keys": "key", "sweeps": "sweep", "trials": "trial", "derivations": "derivation", "datasets": "dataset", "comparisons": "explanation",
    "workspaces": "workspace", "me": "workspace",
}  # fmt: skip
ENDS = {"form": "json", "number": "1", "name": "map", "person": "bob", "dataset": MARK}


def filled(path: str, given: str, other: str) -> str:
    for name, value in {**ENDS, "id": given, "digest": given, "a": given, "b": other}.items():
        path = path.replace("{" + name + "}", value)
    return path


BODIES: dict[str, Callable[[Made], Any]] = {
    "POST /explanations": lambda m: {"model": "tiny", "explainer": "saliency", "input": m.input},
    "POST /interventions": lambda m: {"explanation": m.explanation, "edits": EDITS},
    "POST /live": lambda m: {"session": "s", "explanation": m.explanation, "edits": [], "seq": 1},
    "POST /shares": lambda m: {"explanations": [m.explanation]},
    "POST /sweeps": lambda m: {"model": "tiny", "explainer": "saliency", "source": {"dataset": m.dataset}},
    "POST /inputs": lambda m: {"kind": "prompt", "value": {"text": "a disc", "picture": m.input}},
    "POST /models/{id}/derivations": lambda m: {"change": {"remove": [1]}, "dataset": m.dataset},
    "PUT /me/workspace": lambda m: {"workspace": "default"},
}
"""Bodies that name something of another workspace."""
WITHIN: dict[str, Any] = {
    "PATCH /explanations/{id}": {"note": "mine now"},
    "POST /explanations/{id}/trust": {},
    "POST /explanations/{id}/probabilities": {"source": "uniform"},
    "POST /sweeps/{id}/trials": {"edits": EDITS},
    "PATCH /views/{id}": {"name": "mine now"},
    "PATCH /workspaces/{id}": {"name": "mine now"},
    "PUT /workspaces/{id}/members/{person}": {"role": "owner"},
    "PATCH /people/{id}": {"disabled": True},
}
"""Bodies of operations whose address names it."""
NAMES_NOTHING = {"POST /views", "POST /keys", "POST /people", "POST /workspaces", "PUT /me/password"}


def test_everything_that_belongs_to_a_workspace_is_there_to_be_stolen(place: Place) -> None:
    api, _, _ = place
    found = rows(api, "default")
    assert {name for name, some in found.items() if not some} == set(), "fill() makes one of everything"
    assert len(owned()) >= 18


def test_every_operation_with_a_body_is_tried(place: Place) -> None:
    api, _, _ = place
    with_body = {f"{m} {p}" for m, p, o in operations(api) if "requestBody" in o}
    assert with_body == set(BODIES) | set(WITHIN) | NAMES_NOTHING


def test_what_is_named_in_an_address_is_unknown_to_another_workspace(place: Place) -> None:
    """The answer is the one for an id that never was: status, headers and words."""
    api, made, bob = place
    before, tried = rows(api, "default"), 0
    for method, path, operation in operations(api):
        if "{" not in path or path in SERVERS or path.endswith("/derivations"):
            continue
        kind = KINDS[path.split("/")[1]]
        theirs = "default" if kind == "workspace" else getattr(made, kind)
        none = MISSING.get(kind, "x" * len(theirs))
        body = WITHIN.get(f"{method} {path}")
        answers = []
        for given in (theirs, none):
            answer = bob.call(method, filled(path, given, given if given == none else made.other), json=body)
            answers.append((answer.status_code, answer.text.replace(given, "?"), answer.headers.get("content-type")))
        operate = operation["security"][0]["token"] == ["operate"]
        assert answers[0] == answers[1], (method, path)
        assert answers[0][0] == (403 if operate else 404), (method, path, answers[0])
        tried += 1
    assert tried > 45
    assert rows(api, "default") == before


def test_what_is_named_in_a_body_or_a_query_is_unknown_to_another_workspace(place: Place) -> None:
    api, made, bob = place
    before = rows(api, "default")
    none = Made(**{k: MISSING.get(k, "x" * len(v)) for k, v in vars(made).items()})
    for operation, body in BODIES.items():
        method, path = operation.split(" ")
        path = path.replace("{id}", "tiny")
        answers = []
        for given in (made, none):
            sent = body(given) if path != "/me/workspace" else {"workspace": "default" if given is made else "nowhere"}
            answer = bob.call(method, path, json=sent)
            text = answer.text.replace(sent.get("workspace", "\0"), "?")
            for value in vars(given).values():
                text = text.replace(value, "?")
            answers.append((answer.status_code, text))
        assert answers[0] == answers[1] and answers[0][0] in (403, 404), (operation, answers)
    for query in (f"/comparisons?ids={made.explanation},{made.other}", f"/comparisons?ids={'x' * 16},{'y' * 16}"):
        assert bob.call("GET", query).status_code == 404
    similar = {"model": "tiny", "explainer": "saliency", "input": made.input, "target": {"similar_to": made.input}}
    assert bob.call("POST", "/explanations", json=similar).status_code in (404, 422)
    assert rows(api, "default") == before


def test_no_list_no_count_and_no_search_tells_of_another_workspace(place: Place) -> None:
    api, made, bob = place
    filters = {
        "q": MARK, "tag": MARK, "input": made.input, "dataset": MARK, "sweep": made.sweep, "owner": "token", "parent": made.explanation,
    }  # fmt: skip
    lists = [p for m, p, _ in operations(api) if m == "GET" and "{" not in p and p not in ("/events", "/comparisons")]
    lists += [f"/explanations?{k}={v}" for k, v in filters.items()] + [f"/shares?explanation={made.explanation}"]
    lists += [f"/audit?subject={made.explanation}", "/jobs?state=succeeded", "/explanations?sort=faithfulness"]
    tried = 0
    for path in lists:
        answer = bob.call("GET", path)
        if path.split("?")[0] in SERVERS | {"/workspaces", "/trainings"}:
            continue
        assert answer.status_code == 200, path
        assert [w for w in {*made.all(), MARK} if w in answer.text.replace(str(filters.get("q")), MARK)] == [], path
        found = answer.json()
        if isinstance(found, dict) and "total" in found and path != "/audit":
            assert found["total"] == 0 and not any(found["facets"].values()), path
        tried += 1
    assert tried > 15
    mine = bob.call("GET", "/system").json()
    assert (mine["explanations"], mine["queued"], mine["running"]) == (0, 0, 0)
    assert bob.http.get("/metrics").status_code == 403 and api.http.get("/metrics").status_code == 200


def test_an_examination_of_another_workspace_is_as_if_it_were_not(place: Place) -> None:
    api, _, bob = place
    assert api.call("GET", "/models/tiny/examination").json()["state"] == "done"
    assert bob.call("GET", "/models/tiny/examination").json()["state"] == "none"


def test_equal_work_is_not_shared_between_workspaces(place: Place) -> None:
    """The same picture and the same question are computed anew, so that nobody learns by an instant answer who asked before."""
    api, made, bob = place
    before = rows(api, "default")
    assert (
        bob.upload(noise(1), "mine.png")["id"] == made.input and "mine" in bob.call("GET", f"/inputs/{made.input}").text
    )
    own = bob.explain(input=made.input)
    assert (
        own["id"] != made.explanation
        and own["provenance"]["key"] == api.call("GET", f"/explanations/{made.explanation}").json()["provenance"]["key"]
    )
    assert own["principal"] != "token" and own["note"] == "" and own["dataset"] is None
    bob.trusted(own["id"])
    assert bob.call("GET", f"/artifacts/{own['artifacts'][0]['digest']}").status_code == 200
    assert bob.call("GET", "/explanations").json()["total"] == 1
    assert bob.call("DELETE", f"/explanations/{own['id']}").status_code == 200
    assert bob.call("GET", f"/artifacts/{made.artifact}").status_code == 404, (
        "readable only through a record of one's own"
    )
    assert rows(api, "default") == before
    assert api.call("GET", f"/artifacts/{made.artifact}").status_code == 200


def test_a_share_is_open_to_whoever_has_its_link(place: Place) -> None:
    api, made, bob = place
    for http in (bob.http, TestClient(api.http.app)):
        assert http.get(f"/s/{made.token}").status_code == 200
        assert http.get(f"/s/{made.token}/preview.png").status_code == 200


def test_a_stream_tells_of_its_own_workspace_alone(place: Place) -> None:
    api, made, bob = place
    inside = context(api)
    heard: dict[str, list[Any]] = {"default": [], "lab": []}

    async def listen(workspace: str) -> None:
        with sight.visitor(workspace):
            async for _, data in inside.bus.stream(inside.db, workspace, 0):
                if data:
                    heard[workspace].append(data)

    async def act() -> None:
        tasks = [asyncio.ensure_future(listen(w)) for w in heard]
        await asyncio.sleep(0.2)
        inside.bus.publish("default", {"type": "job", "id": made.job, "progress": 0.5})
        await asyncio.sleep(0.3)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert api.http.portal is not None
    api.http.portal.call(act)
    assert {"type": "job", "id": made.job, "progress": 0.5} in heard["default"] and len(heard["default"]) > 5
    assert [d for d in heard["lab"] if made.explanation in str(d) or made.job in str(d) or made.sweep in str(d)] == []


@pytest.mark.parametrize("end", ["logout", "disabled", "dismissed"])
def test_a_stream_ends_when_its_reader_may_no_longer_read(place: Place, end: str) -> None:
    api, _, _ = place
    name = f"eve-{end}"
    eve = visitor(api, name, "viewer")
    inside, entry = context(api), api.http.app.state.entry  # type: ignore[attr-defined]
    with sight.door():
        who = api.http.portal.call(entry.session, next(iter(eve.http.cookies.values())))  # type: ignore[union-attr]
    assert who is not None and who.workspace == "lab"

    async def act() -> int:
        times = iter(range(0, 1000, 10))
        stream, told = _told(inside, who, 0, entry, lambda: float(next(times))), 0
        await anext(stream)
        inside.bus.publish("lab", {"n": 1})
        async for _ in stream:
            told += 1
        return told

    if end == "logout":
        eve.http.post("/logout")
    elif end == "disabled":
        api.call("PATCH", f"/people/{name}", json={"disabled": True})
    else:
        api.call("DELETE", f"/workspaces/lab/members/{name}")
    with sight.visitor("lab"):
        assert api.http.portal.call(asyncio.wait_for, act(), 20) == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("role", sorted(ROLES))
def test_a_role_opens_what_its_scopes_say(place: Place, role: str) -> None:
    api, _, _ = place
    person = visitor(api, f"a-{role}", role, workspace="roles")
    tried = 0
    for method, path, operation in operations(api):
        (needed,) = operation["security"][0]["token"]
        if path.endswith("/events") or path == "/me/password":
            continue
        answer = person.call(method, filled(path, "x", "y"))
        closed = answer.status_code == 403 and answer.json()["error"]["code"] == "scope"
        opens = needed == "self" or needed in ROLES[role]
        if path.endswith("/derivations") and opens:
            continue  # for the server's own workspace
        assert closed == (not opens), (method, path, answer.text)
        tried += 1
    assert tried > 70 and ROLES["owner"] == SCOPES


def test_a_person_of_two_workspaces_is_in_one_at_a_time(place: Place) -> None:
    api, made, _ = place
    founded(api, "default", zoe="viewer")
    founded(api, "attic", zoe="owner")
    zoe = entered(api, "zoe")
    assert zoe.call("GET", "/me").json()["workspace"] == "default"
    assert zoe.call("GET", f"/explanations/{made.explanation}").status_code == 200
    assert zoe.call("PATCH", f"/explanations/{made.explanation}", json={"note": "x"}).status_code == 403
    there = zoe.call("PUT", "/me/workspace", json={"workspace": "attic"}).json()
    assert (there["workspace"], there["role"], [m["workspace"] for m in there["workspaces"]]) == (
        "attic",
        "owner",
        ["attic", "default"],
    )
    assert zoe.call("GET", f"/explanations/{made.explanation}").status_code == 404
    assert zoe.upload(noise(33))["id"]
    named = {"fanlight-workspace": "default"}
    assert zoe.call("GET", f"/explanations/{made.explanation}", headers=named).status_code == 200
    assert zoe.call("GET", "/me").json()["workspace"] == "attic", "a header is for its request alone"
    texts = {zoe.call("GET", "/me", headers={"fanlight-workspace": w}).text.replace(w, "?") for w in ("lab", "nowhere")}
    assert len(texts) == 1 and "unknown_workspace" in texts.pop()
    assert api.call("DELETE", "/workspaces/attic/members/zoe").status_code == 200
    assert zoe.call("GET", "/me").json()["workspace"] == "default", "who was sent away is where they still belong"


def test_the_token_and_a_key_in_another_workspace(place: Place) -> None:
    api, made, bob = place
    lab, nowhere = {"fanlight-workspace": "lab"}, {"fanlight-workspace": "nowhere"}
    assert api.call("GET", "/me", headers=lab).json()["workspace"] == "lab"
    assert api.call("GET", f"/explanations/{made.explanation}", headers=lab).status_code == 404
    assert api.call("GET", "/me", headers=nowhere).status_code == 404
    secret = bob.call("POST", "/keys", json={"name": "mine", "scopes": ["read"]}).json()["key"]
    key = Api(TestClient(api.http.app, headers={"Authorization": f"Bearer {secret}"}))
    assert key.call("GET", "/me").json()["workspace"] == "lab"
    assert key.call("GET", f"/explanations/{made.explanation}").status_code == 404
    assert key.call("GET", "/me", headers={"fanlight-workspace": "default"}).status_code == 404
    assert key.call("GET", "/metrics").status_code == 404 and key.http.get("/metrics").status_code == 403


def test_owners_look_after_their_own_members_and_no_others(place: Place) -> None:
    api, _, _ = place
    cat = visitor(api, "cat", "owner", workspace="yard")
    account(api, "dog")
    assert cat.call("PUT", "/workspaces/yard/members/dog", json={"role": "editor"}).json()["role"] == "editor"
    assert cat.call("PUT", "/workspaces/yard/members/dog", json={"role": "king"}).status_code == 422
    assert [m["name"] for m in cat.call("GET", "/workspaces/yard/members").json()] == ["cat", "dog"]
    assert cat.call("PUT", "/workspaces/lab/members/cat", json={"role": "owner"}).status_code == 404
    dog = entered(api, "dog")
    assert dog.call("PUT", "/workspaces/yard/members/dog", json={"role": "owner"}).status_code == 403
    for method, body in (("DELETE", None), ("PUT", {"role": "viewer"})):
        refused = cat.call(method, "/workspaces/yard/members/cat", json=body)
        assert refused.status_code == 409 and refused.json()["error"]["code"] == "last_owner"
    assert cat.call("PUT", "/workspaces/yard/members/dog", json={"role": "owner"}).status_code == 200
    key = dog.call("POST", "/keys", json={"name": "k", "scopes": ["admin"]}).json()["key"]
    program = Api(TestClient(api.http.app, headers={"Authorization": f"Bearer {key}"}))
    assert program.call("GET", "/workspaces/yard").status_code == 200
    assert cat.call("DELETE", "/workspaces/yard/members/dog").status_code == 200
    assert program.call("GET", "/workspaces/yard").status_code == 401 and dog.call("GET", "/models").status_code == 403
    log = [(e["action"], e["detail"].get("role")) for e in cat.call("GET", "/audit?action=member").json()["items"]]
    assert log == [("member.remove", None), ("member.set", "owner"), ("member.set", "editor"), ("member.set", "owner")]
    assert PASSWORD not in cat.call("GET", "/audit").text


def test_a_data_set_is_offered_as_rows_and_grows_with_the_servers(place: Place) -> None:
    api, made, _ = place
    sam = visitor(api, "sam", "editor", workspace="shelf")
    assert {d["id"] for d in sam.call("GET", "/datasets").json()} <= {"photographs"}, "what comes with Fanlight"
    assert api.call("PUT", f"/workspaces/shelf/datasets/{MARK}").status_code == 200
    assert api.call("PUT", "/workspaces/shelf/datasets/nowhere").status_code == 404
    for _ in range(2):
        (found,) = (d for d in sam.call("GET", "/datasets").json() if d["id"] == MARK)
        assert (found["id"], found["count"], found["unreadable"]) == (MARK, 2, 1)
        api.call("PUT", f"/workspaces/shelf/datasets/{MARK}")
    picture = sam.call("GET", f"/datasets/{MARK}/samples").json()["items"][0]
    assert sam.http.get(picture["thumbnail"]).status_code == 200
    record = sam.explain(input=picture["input"])
    assert record["dataset"] == MARK and record["label"] == MARK
    asked = {"model": "tiny", "explainer": "saliency", "source": {"dataset": MARK}}
    swept = sam.call("POST", "/sweeps", json=asked).json()["id"]
    over = until(sam, f"/sweeps/{swept}", lambda found: found["state"] == "done")
    assert (over["counts"]["succeeded"], over["counts"]["skipped"]) == (2, 1)
    assert sam.call("GET", f"/inputs/{made.input}").status_code == 404, "what is not of the data set is not offered"
    place_of = next(iter(context(api).settings.datasets.split("="))), context(api).settings.datasets.split("=")[1]
    (Path(place_of[1]) / MARK / "later.png").write_bytes(noise(99))
    with sight.server():
        datasets.register(context(api), datasets.folder(place_of[0], Path(place_of[1])))
    (found,) = (d for d in sam.call("GET", "/datasets").json() if d["id"] == MARK)
    assert (found["version"], found["count"]) == (2, 3)
    assert sam.call("GET", f"/datasets/{MARK}/samples").json()["total"] == 3
