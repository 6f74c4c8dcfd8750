"""Whatever changes something leaves an entry in the audit log: who, what, when, in which workspace. Every operation of the API is tried."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, started
from fastapi.testclient import TestClient
from people_rig import PASSWORD, account, entered, founded
from sqlalchemy import Connection, insert, select
from workspaces_rig import MARK, Made, context, fill, prepared, until

from fanlight.app import create
from fanlight.service.context import Visitor
from fanlight.store.tables import job, watcher
from fanlight.store.tables_trials import trial

CHANGING = ("POST", "PUT", "PATCH", "DELETE")
SAFE = {
    "POST /live": "computes from what is stored, answers, and keeps nothing",
    "POST /explanations/{id}/probabilities": "as /live: it answers and keeps nothing",
    "POST /sweeps/{id}/trials": "takes a model with concepts: tests/api/test_api_trials.py looks for its entry",
    "POST /models/{id}/derivations": "takes a model with concepts: tests/api/test_api_derivations.py looks for its entry",
}
"""Operations that leave no entry here, and why."""


@dataclass
class Tried:
    api: Api
    made: Made
    zoe: Api
    """Somebody with an account, an owner of `default`."""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tried]:
    app = create(prepared(tmp_path_factory.mktemp("audit")), token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        api = Api(started(http))
        made = fill(api)
        founded(api, "default", zoe="owner")
        founded(api, "attic", zoe="viewer")
        account(api, "leaver")
        yield Tried(api, made, entered(api, "zoe"))


def sweep(t: Tried, seed: int) -> str:
    body = {"model": "tiny", "explainer": "saliency", "name": "s", "source": {"dataset": MARK}, "seed": seed}
    answer = t.api.call("POST", "/sweeps", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def waiting(t: Tried) -> str:
    """A sweep that is paused, so that it is not over before it is asked about."""
    ident = sweep(t, int(time.time() * 1e6) % 2**31)
    assert t.api.call("POST", f"/sweeps/{ident}/pause").status_code == 200
    return ident


def going(t: Tried) -> str:
    """A trial that runs, of a server that is not there."""
    row = {"id": "trial00000000002", "state": "running", "finished": None, "owner": "elsewhere", "lease_until": 2**60}

    def act(conn: Connection) -> None:
        old = conn.execute(select(trial).where(trial.c.id == t.made.trial)).mappings().one()
        conn.execute(insert(trial), {**old, **row})

    context(t.api).db.write(act)
    return str(row["id"])


def busy(t: Tried) -> str:
    """A job that another server works on."""
    row = {"id": "job0000000000002", "state": "running", "finished": None, "owner": "elsewhere", "lease_until": 2**60}

    def act(conn: Connection) -> None:
        old = conn.execute(select(job).where(job.c.id == t.made.job)).mappings().one()
        conn.execute(insert(job), {**old, **row})
        conn.execute(insert(watcher), {"job": row["id"], "principal": "token"})

    context(t.api).db.write(act)
    return str(row["id"])


def derivation(t: Tried) -> str:
    folder = context(t.api).derivations.folder / "derivation000002"
    folder.mkdir(parents=True)
    asked = json.loads((folder.parent / t.made.derivation / "request.json").read_text())
    (folder / "request.json").write_text(json.dumps({**asked, "id": folder.name}))
    return folder.name


# What is sent: path parts and body. Where an operation ends something, something is made to end.
Asked = tuple[str, Any]
DEEDS: dict[str, tuple[str, Callable[[Tried], Asked]]] = {
    "POST /models/{id}/examination": ("model.examine", lambda _: ("/models/tiny/examination", None)),
    "DELETE /derivations/{id}": ("derivation.cancel", lambda t: (f"/derivations/{derivation(t)}", None)),
    "POST /explanations": (
        "explanation.create",
        lambda t: ("/explanations", {"model": "tiny", "explainer": "saliency", "input": t.made.input, "seed": 77}),
    ),
    "POST /interventions": (
        "explanation.edit",
        lambda t: ("/interventions", {"explanation": t.made.explanation, "edits": [{"mask_region": [20, 8, 40, 30]}]}),
    ),
    "PATCH /explanations/{id}": (
        "explanation.change",
        lambda t: (f"/explanations/{t.made.explanation}", {"note": "seen", "tags": ["a"]}),
    ),
    "DELETE /explanations/{id}": (
        "explanation.delete",
        lambda t: (f"/explanations/{t.api.explain(input=t.made.input, seed=78)['id']}", None),
    ),
    "POST /explanations/{id}/recompute": (
        "explanation.recompute",
        lambda t: (f"/explanations/{t.made.other}/recompute", None),
    ),
    "POST /explanations/{id}/trust": (
        "explanation.measure",
        lambda t: (f"/explanations/{t.made.explanation}/trust", {"measures": ["stability"]}),
    ),
    "DELETE /jobs/{id}": ("job.cancel", lambda t: (f"/jobs/{busy(t)}", None)),
    "POST /inputs": ("input.create", lambda _: ("/inputs", noise(901))),
    "POST /keys": ("key.create", lambda _: ("/keys", {"name": "k", "scopes": ["read"]})),
    "DELETE /keys/{id}": ("key.revoke", lambda t: (f"/keys/{t.made.key}", None)),
    "PUT /me/workspace": ("person.switch", lambda _: ("/me/workspace", {"workspace": "default"})),
    "PUT /me/password": ("person.password", lambda _: ("/me/password", {"old": PASSWORD, "new": "eight loud herons"})),
    "DELETE /me/workspaces/{id}": ("member.leave", lambda _: ("/me/workspaces/attic", None)),
    "POST /people": ("person.create", lambda _: ("/people", {"name": "new", "password": PASSWORD})),
    "PATCH /people/{id}": ("person.change", lambda _: ("/people/leaver", {"operator": True})),
    "DELETE /people/{id}": ("person.remove", lambda t: (f"/people/{account(t.api, 'gone')['id']}", None)),
    "POST /workspaces": ("workspace.create", lambda _: ("/workspaces", {"id": "loft", "name": "Loft"})),
    "PATCH /workspaces/{id}": ("workspace.change", lambda _: ("/workspaces/attic", {"weight": 2})),
    "PUT /workspaces/{id}/datasets/{dataset}": (
        "workspace.offer",
        lambda _: (f"/workspaces/attic/datasets/{MARK}", None),
    ),
    "PUT /workspaces/{id}/members/{person}": (
        "member.set",
        lambda _: ("/workspaces/default/members/leaver", {"role": "viewer"}),
    ),
    "DELETE /workspaces/{id}/members/{person}": (
        "member.remove",
        lambda _: ("/workspaces/default/members/leaver", None),
    ),
    "POST /shares": ("share.create", lambda t: ("/shares", {"explanations": [t.made.explanation]})),
    "DELETE /shares/{id}": ("share.revoke", lambda t: (f"/shares/{t.made.share}", None)),
    "POST /sweeps": (
        "sweep.create",
        lambda _: ("/sweeps", {"model": "tiny", "explainer": "saliency", "source": {"dataset": MARK}, "seed": 5}),
    ),
    "POST /sweeps/{id}/pause": ("sweep.pause", lambda t: (f"/sweeps/{sweep(t, 6)}/pause", None)),
    "POST /sweeps/{id}/resume": ("sweep.resume", lambda t: (f"/sweeps/{waiting(t)}/resume", None)),
    "POST /sweeps/{id}/cancel": ("sweep.cancel", lambda t: (f"/sweeps/{waiting(t)}/cancel", None)),
    "DELETE /sweeps/{id}": ("sweep.delete", lambda t: (f"/sweeps/{_ended(t)}", None)),
    "POST /trials/{id}/cancel": ("trial.cancel", lambda t: (f"/trials/{going(t)}/cancel", None)),
    "DELETE /trials/{id}": ("trial.delete", lambda t: (f"/trials/{t.made.trial}", None)),
    "POST /views": ("view.create", lambda _: ("/views", {"name": "mine", "query": {"tag": "a"}})),
    "PATCH /views/{id}": ("view.change", lambda t: (f"/views/{t.made.view}", {"name": "ours"})),
    "DELETE /views/{id}": ("view.delete", lambda t: (f"/views/{t.made.view}", None)),
    "POST /views/{id}/restore": ("view.restore", lambda t: (f"/views/{t.made.view}/restore", None)),
}
BY_ZOE = ("PUT /me/workspace", "PUT /me/password", "DELETE /me/workspaces/{id}")


def _ended(t: Tried) -> str:
    ident = waiting(t)
    assert t.api.call("POST", f"/sweeps/{ident}/cancel").status_code == 200
    return ident


def newest(api: Api) -> int:
    return int(api.call("GET", "/audit?limit=1").json()["items"][0]["id"])


def operations(api: Api) -> set[str]:
    """Those that are there to change something."""
    paths = api.http.app.openapi()["paths"]  # type: ignore[attr-defined]
    return {
        f"{method.upper()} {path.removeprefix('/api/v1')}"
        for path, some in paths.items()
        for method in some
        if path.startswith("/api/v1") and method.upper() in CHANGING
    }


def test_every_operation_that_changes_something_is_known_here(tried: Tried) -> None:
    assert operations(tried.api) == DEEDS.keys() | SAFE.keys()


@pytest.mark.parametrize("operation", DEEDS)
def test_a_deed_leaves_an_entry(tried: Tried, operation: str) -> None:
    action, asked = DEEDS[operation]
    path, body = asked(tried)
    by = tried.zoe if operation in BY_ZOE else tried.api
    principal = by.call("GET", "/me").json()["principal"]
    before, t = newest(tried.api), time.time()
    sent = {"files": {"file": ("x.png", body)}} if isinstance(body, bytes) else {"json": body}
    answer = by.call(operation.split(" ")[0], path, **({} if body is None else sent))
    assert answer.status_code < 300, answer.text
    where = "attic" if action == "member.leave" else "default"
    log = tried.api.call("GET", f"/audit?action={action}&limit=20", headers={"fanlight-workspace": where}).json()[
        "items"
    ]
    fresh = [e for e in log if e["id"] > before and e["action"] == action and e["principal"] == principal]
    assert fresh, (operation, log[:3])
    entry = fresh[0]
    assert t - 5 <= entry["time"] <= time.time() + 5 and entry["subject"]
    whole_server = action.split(".")[0] in ("person", "workspace")
    assert entry["workspace"] == ("" if whole_server else where)
    assert TOKEN not in str(entry) and PASSWORD not in str(entry)


def test_what_changes_nothing_leaves_none(tried: Tried) -> None:
    picture = tried.api.upload(noise(901))
    tried.api.explain(input=picture["id"])
    before = newest(tried.api)
    tried.api.upload(noise(901))
    tried.api.ask(input=picture["id"])
    body = {"session": "s", "explanation": tried.made.explanation, "edits": [], "seq": 1}
    tried.api.call("POST", "/live", json=body)
    assert tried.api.call("PATCH", f"/explanations/{'x' * 16}", json={"note": "no"}).status_code == 404
    assert newest(tried.api) == before


def test_a_sweep_is_one_deed(tried: Tried) -> None:
    ident = sweep(tried, 4711)
    until(tried.api, f"/sweeps/{ident}", lambda found: found["state"] == "done")
    log = tried.api.call("GET", "/audit?action=explanation.create&limit=200").json()["items"]
    (entry,) = [e for e in tried.api.call("GET", f"/audit?subject={ident}").json()["items"]]
    assert entry["action"] == "sweep.create" and entry["detail"]["items"] == 3
    assert not [e for e in log if e["id"] > entry["id"]]


def test_the_log_names_people_and_keys_and_can_be_asked_for_one(tried: Tried) -> None:
    log = tried.api.call("GET", "/audit?who=zoe").json()
    assert log["items"] and {e["who"] for e in log["items"]} == {"zoe"}
    assert tried.api.call("GET", "/audit?who=nobody").json()["total"] == 0
    key = tried.zoe.call("POST", "/keys", json={"name": "nightly", "scopes": ["read", "explain"]}).json()
    program = Api(TestClient(tried.api.http.app, headers={"Authorization": f"Bearer {key['key']}"}))
    program.upload(noise(902))
    (entry,) = tried.api.call("GET", f"/audit?who=key:{key['id']}").json()["items"]
    assert (entry["who"], entry["action"]) == ("nightly", "input.create")


def test_the_entry_is_in_the_transaction_of_the_deed(tried: Tried) -> None:
    """One that is undone leaves none."""
    c, before = context(tried.api), newest(tried.api)

    def act(conn: Any) -> None:
        Visitor("token").did(conn, "view.create", "x")
        raise ValueError("undone")

    with pytest.raises(ValueError, match="undone"):
        c.db.write(act)
    assert newest(tried.api) == before
