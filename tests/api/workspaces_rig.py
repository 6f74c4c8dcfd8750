"""Two workspaces on one server: in `default` one of everything, all marked with a word; in `lab` somebody who owns that workspace alone."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api_rig import Api, noise, settings
from fastapi import FastAPI
from people_rig import account, browser, founded, login
from sqlalchemy import Connection, Table, insert, select

from fanlight.service.context import Context
from fanlight.service.listing import behind
from fanlight.settings import Settings
from fanlight.store import sight
from fanlight.store.tables import job, listing, metadata, reference
from fanlight.store.tables_trials import trial, trial_item

MARK = "zanzibar"
EDITS = [{"mask_region": [0, 0, 8, 8]}]


def prepared(folder: Path) -> Settings:
    """With a data set of two pictures and a file that is none."""
    pictures = folder / "pictures" / MARK
    pictures.mkdir(parents=True)
    for n in range(2):
        (pictures / f"{MARK}-{n}.png").write_bytes(noise(70 + n))
    (pictures / f"{MARK}-broken.png").write_bytes(b"this is no picture")
    return settings(folder, datasets=f"{MARK}={folder / 'pictures'}")


@dataclass
class Made:
    """Ids of what there is in `default`."""

    input: str
    explanation: str
    other: str
    job: str
    artifact: str
    share: str
    token: str
    view: str
    key: str
    sweep: str
    trial: str
    derivation: str
    dataset: str = MARK

    def all(self) -> set[str]:
        return {v for k, v in vars(self).items() if k != "token"} | {self.token}


def context(api: Api) -> Context:
    app: FastAPI = api.http.app  # type: ignore[assignment]
    found: Context = app.state.context
    return found


def until(api: Api, path: str, done: Any) -> Any:
    end = time.monotonic() + 60
    while not done(found := api.call("GET", path).json()):
        assert time.monotonic() < end, found
        time.sleep(0.05)
    return found


def fill(api: Api) -> Made:
    """One of everything, by the one who has the token."""
    until(api, "/datasets", lambda found: found)
    photo = api.upload(noise(1), f"{MARK}.png")["id"]
    one, two = api.explain(input=photo), api.explain(input=photo, explainer="edges")
    api.trusted(one["id"])
    api.call("PATCH", f"/explanations/{one['id']}", json={"title": MARK, "note": MARK, "tags": [MARK]})
    share = api.call("POST", "/shares", json={"explanations": [one["id"]]}).json()
    view = api.call("POST", "/views", json={"name": MARK, "query": {"tag": MARK}}).json()
    key = api.call("POST", "/keys", json={"name": MARK, "scopes": ["read"]}).json()
    asked = {"model": "tiny", "explainer": "saliency", "name": MARK, "source": {"dataset": MARK}}
    swept = api.call("POST", "/sweeps", json=asked).json()["id"]
    until(api, f"/sweeps/{swept}", lambda found: found["state"] == "done")
    api.call("GET", f"/sweeps/{swept}/summary?wait=20")
    settled(api)
    made = Made(
        photo, one["id"], two["id"], one["job"], one["artifacts"][0]["digest"], share["id"], share["token"], view["id"],
        key["id"], swept, "trial00000000001", "derivation000001",
    )  # fmt: skip
    _placed(context(api), made)
    return made


def settled(api: Api) -> None:
    """Until the server is done with what it does by itself: it measures trust, and lists what events name."""
    end = time.monotonic() + 60
    while not _settled(context(api)):
        assert time.monotonic() < end, "the server still measures or lists"
        time.sleep(0.05)


def _settled(c: Context) -> bool:
    def act(conn: Connection) -> bool:
        open_jobs = conn.execute(select(job.c.id).where(job.c.state.in_(("queued", "running")))).first()
        pending = conn.execute(select(listing.c.n).where(listing.c.trust == "pending")).first()
        return open_jobs is None and pending is None and not behind(conn)

    with sight.server():
        return c.db.read(act)


def _placed(c: Context, made: Made) -> None:
    """What takes another kind of model, or minutes, to make."""

    def act(conn: Connection) -> None:
        who = {"workspace": "default", "principal": "token"}
        row = {
            "id": made.trial,
            **who,
            "sweep": made.sweep,
            "edits": EDITS,
            "about": MARK,
            "narrowed": {},
            "state": "done",
        }
        conn.execute(insert(trial), {**row, "total": 1, "turn": 0, "spent": 1, "created": 1, "finished": 2})
        item = {"trial": made.trial, "position": 0, "name": MARK, "input": made.input, "explanation": made.explanation}
        conn.execute(insert(trial_item), {**item, "state": "done", "move": "same", "before": "left", "after": "left"})
        examined = {**who, "model_digest": c.models.find("tiny")["digest"], "finished": 1}
        report = {"subject": MARK, "checks": [], "details": {}}
        conn.execute(insert(metadata.tables["examination"]), {**examined, "report": report})

    with sight.server():
        c.db.write(act)
    asked = {
        "id": made.derivation, "workspace": "default", "principal": "token", "model": "tiny", "model_name": "Tiny",
        "model_digest": "x", "change": {"remove": [1]}, "dataset": MARK, "created": 1.0,
    }  # fmt: skip
    folder = c.derivations.folder / made.derivation
    folder.mkdir(parents=True)
    (folder / "request.json").write_text(json.dumps(asked))
    (folder / "outcome.json").write_text(json.dumps({"cancelled": True, "finished": 2.0}))


def visitor(api: Api, name: str, role: str, workspace: str = "lab") -> Api:
    """Somebody who belongs to that workspace alone."""
    if workspace not in {w["id"] for w in api.call("GET", "/workspaces").json()}:
        founded(api, workspace, **{name: role})
    else:
        known = {p["name"] for p in api.call("GET", "/people").json()}
        if name not in known:
            account(api, name)
        assert api.call("PUT", f"/workspaces/{workspace}/members/{name}", json={"role": role}).status_code == 200
    client = browser(api)
    assert login(client, name).status_code == 303
    return Api(client)


def owned() -> list[Table]:
    """Tables whose rows belong to a workspace."""
    return [t for t in metadata.sorted_tables if "workspace" in t.columns and t.name != "member"]


def rows(api: Api, workspace: str) -> dict[str, list[str]]:
    """Everything of a workspace, as text; without what counts visits and what the server does by itself."""
    moving = {"api_key": {"used"}, "share": {"views"}, "input": {"thumbnail"}}

    def act(conn: Connection) -> dict[str, list[str]]:
        found = {}
        for table in owned():
            skipped = moving.get(table.name, set())
            columns = [c for c in table.columns if c.name not in skipped]
            wanted = select(*columns).where(table.c.workspace == workspace)
            if table is reference:  # a thumbnail is made when it is first looked at
                wanted = wanted.where(~table.c.owner.startswith("input:"))
            found[table.name] = sorted(str(tuple(r)) for r in conn.execute(wanted))
        return found

    with sight.server():
        return context(api).db.read(act)
