"""What the shell and the pages ask a server for whoever runs it: API keys, the log of who did what, people and workspaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from fanlight import wire
from fanlight.client import Call


def keys() -> Call[list[wire.Key]]:
    return Call("GET", "/keys", lambda r: TypeAdapter(list[wire.Key]).validate_json(r.content))


def create_key(name: str, scopes: Sequence[str], days: int | None = None) -> Call[wire.NewKey]:
    body = {"name": name, "scopes": list(scopes), **({} if days is None else {"expires_in_days": days})}
    return Call("POST", "/keys", lambda r: wire.NewKey.model_validate_json(r.content), json=body)


def revoke_key(ident: str) -> Call[wire.Key]:
    return Call("DELETE", f"/keys/{ident}", lambda r: wire.Key.model_validate_json(r.content))


def audit(
    *, action: str = "", subject: str = "", who: str = "", cursor: str | None = None, limit: int = 50
) -> Call[wire.Page[wire.AuditEntry]]:
    given = {"action": action or None, "subject": subject or None, "who": who or None, "cursor": cursor, "limit": limit}
    params = {k: v for k, v in given.items() if v is not None}
    return Call("GET", "/audit", lambda r: wire.Page[wire.AuditEntry].model_validate_json(r.content), params=params)


def _of(kind: Any) -> Any:
    return lambda r: kind.model_validate_json(r.content)


def _list(kind: Any) -> Any:
    return lambda r: TypeAdapter(list[kind]).validate_json(r.content)


def me() -> Call[wire.Me]:
    return Call("GET", "/me", _of(wire.Me))


def switch(workspace: str) -> Call[wire.Me]:
    return Call("PUT", "/me/workspace", _of(wire.Me), json={"workspace": workspace})


def leave(workspace: str) -> Call[wire.Member]:
    return Call("DELETE", f"/me/workspaces/{workspace}", _of(wire.Member))


def change_password(old: str, new: str) -> Call[wire.Me]:
    return Call("PUT", "/me/password", _of(wire.Me), json={"old": old, "new": new})


def people() -> Call[list[wire.Person]]:
    return Call("GET", "/people", _list(wire.Person))


def create_person(
    name: str, password: str | None, operator: bool = False, subject: str | None = None
) -> Call[wire.Person]:
    """With a password, or with a subject at the provider of identities, or both."""
    given = {"name": name, "password": password, "operator": operator, "subject": subject}
    body = {k: v for k, v in given.items() if v is not None}
    return Call("POST", "/people", _of(wire.Person), json=body)


def change_person(person: str, **changes: Any) -> Call[wire.Person]:
    """Changes: password, disabled, operator, subject."""
    return Call("PATCH", f"/people/{person}", _of(wire.Person), json=changes)


def remove_person(person: str) -> Call[wire.Person]:
    return Call("DELETE", f"/people/{person}", _of(wire.Person))


def workspaces() -> Call[list[wire.Workspace]]:
    return Call("GET", "/workspaces", _list(wire.Workspace))


def workspace(ident: str) -> Call[wire.Workspace]:
    return Call("GET", f"/workspaces/{ident}", _of(wire.Workspace))


def create_workspace(ident: str, name: str, datasets: Sequence[str] | None = None) -> Call[wire.Workspace]:
    body = {"id": ident, "name": name, **({} if datasets is None else {"datasets": list(datasets)})}
    return Call("POST", "/workspaces", _of(wire.Workspace), json=body)


def change_workspace(ident: str, **changes: Any) -> Call[wire.Workspace]:
    """Changes: name, most_jobs, most_cost, weight."""
    return Call("PATCH", f"/workspaces/{ident}", _of(wire.Workspace), json=changes)


def offer(workspace: str, dataset: str) -> Call[wire.Workspace]:
    return Call("PUT", f"/workspaces/{workspace}/datasets/{dataset}", _of(wire.Workspace))


def members(workspace: str) -> Call[list[wire.Member]]:
    return Call("GET", f"/workspaces/{workspace}/members", _list(wire.Member))


def appoint(workspace: str, person: str, role: str) -> Call[wire.Member]:
    return Call("PUT", f"/workspaces/{workspace}/members/{person}", _of(wire.Member), json={"role": role})


def dismiss(workspace: str, person: str) -> Call[wire.Member]:
    return Call("DELETE", f"/workspaces/{workspace}/members/{person}", _of(wire.Member))
