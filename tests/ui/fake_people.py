"""The part of the stand-in that is about people, keys and the workspace: a few rules of the real one, in memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request

from fanlight import wire
from fanlight.errors import Conflict, Forbidden, NotFound

NOW = time.time()


def _ann() -> dict[str, wire.Member]:
    return {"1": wire.Member(person="1", name="ann", role="owner", since=NOW)}


@dataclass
class People:
    space: wire.Workspace = field(
        default_factory=lambda: wire.Workspace(
            id="default", name="Default", created=NOW, members=1, most_jobs=20, jobs=5, cost=1200
        )
    )
    members: dict[str, wire.Member] = field(default_factory=_ann)
    accounts: dict[str, wire.Person] = field(
        default_factory=lambda: {
            i: wire.Person(id=i, name=n, operator=False, disabled=False, created=NOW)
            for i, n in (("1", "ann"), ("2", "bob"))
        }
    )
    keys: dict[str, wire.Key] = field(
        default_factory=lambda: {
            "k1": wire.Key(id="k1", name="nightly report", scopes=["read"], principal="me", created=NOW, revoked=NOW)
        }
    )
    log: list[wire.AuditEntry] = field(default_factory=list)


def routes(app: FastAPI, api: str, people: People) -> None:
    """Args: api: beginning of every address."""

    def account(named: str) -> wire.Person:
        for p in people.accounts.values():
            if named in (p.id, p.name):
                return p
        raise NotFound(f"There is no person named “{named}”.", code="unknown_person")

    @app.get(f"{api}/workspaces/{{id}}")
    async def one(id: str) -> wire.Workspace:
        return people.space.model_copy(update={"id": id})

    @app.patch(f"{api}/workspaces/{{id}}")
    async def rename(id: str, request: Request) -> wire.Workspace:
        assert id == people.space.id
        people.space = people.space.model_copy(update=await request.json())
        return people.space

    @app.get(f"{api}/workspaces/{{id}}/members")
    async def members(id: str) -> list[wire.Member]:
        return list(people.members.values()) if id == people.space.id else []

    @app.put(f"{api}/workspaces/{{id}}/members/{{person}}")
    async def appoint(id: str, person: str, request: Request) -> wire.Member:
        who, role = account(person), (await request.json())["role"]
        owners = [m.person for m in people.members.values() if m.role == "owner"]
        if owners == [who.id] and role != "owner":
            raise Conflict("The workspace would have no owner.", code="last_owner", given=id)
        people.members[who.id] = wire.Member(person=who.id, name=who.name, role=role, since=NOW)
        return people.members[who.id]

    @app.delete(f"{api}/workspaces/{{id}}/members/{{person}}")
    async def dismiss(id: str, person: str) -> wire.Member:
        assert id == people.space.id
        return people.members.pop(person)

    @app.delete(f"{api}/me/workspaces/{{id}}")
    async def leave(id: str) -> wire.Member:
        raise Conflict("The workspace would have no owner.", code="last_owner", given=id)

    @app.get(f"{api}/people")
    async def accounts() -> list[wire.Person]:
        return list(people.accounts.values())

    @app.post(f"{api}/people", status_code=201)
    async def create(request: Request) -> wire.Person:
        given: dict[str, Any] = await request.json()
        if len(given["password"]) < 12:
            raise Forbidden("A password has 12 to 256 characters.", code="weak_password")
        made = wire.Person(
            id=str(len(people.accounts) + 1), name=given["name"], operator=False, disabled=False, created=NOW
        )
        people.accounts[made.id] = made
        return made

    @app.patch(f"{api}/people/{{id}}")
    async def change(id: str, request: Request) -> wire.Person:
        people.accounts[id] = people.accounts[id].model_copy(update=await request.json())
        return people.accounts[id]

    @app.get(f"{api}/keys")
    async def keys() -> list[wire.Key]:
        return list(people.keys.values())

    @app.post(f"{api}/keys", status_code=201)
    async def make(request: Request) -> wire.NewKey:
        given = await request.json()
        days = given.get("expires_in_days")
        key = wire.Key(
            id=f"k{len(people.keys) + 1}", name=given["name"], scopes=given["scopes"], principal="me", created=NOW,
            expires=None if days is None else NOW + days * 86400,
        )  # fmt: skip
        people.keys[key.id] = key
        return wire.NewKey(**key.model_dump(), key=f"fl_{key.id}_secret")

    @app.delete(f"{api}/keys/{{id}}")
    async def revoke(id: str) -> wire.Key:
        people.keys[id] = people.keys[id].model_copy(update={"revoked": NOW})
        return people.keys[id]

    @app.get(f"{api}/audit")
    async def audit() -> wire.Page[wire.AuditEntry]:
        return wire.Page[wire.AuditEntry](items=people.log, total=len(people.log))
