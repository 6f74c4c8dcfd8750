"""Who I am; people and workspaces, for whoever runs the server; members, for the owners of a workspace."""

from __future__ import annotations

from fastapi import APIRouter, Request

from fanlight import wire
from fanlight.api.access import Admin, Operator, Reader, Self, Services
from fanlight.api.body import StrictRoute
from fanlight.service import people, workspaces

router = APIRouter(route_class=StrictRoute)


@router.get("/me")
def me(context: Services, who: Self) -> wire.Me:
    """The asker, the workspace that is meant, and where else they belong."""
    return people.me(context, who)


@router.put("/me/workspace")
def switch(request: wire.Switch, context: Services, who: Self) -> wire.Me:
    """From now on the session is about another workspace of the person."""
    return people.switch(context, who, request.workspace)


@router.delete("/me/workspaces/{id}")
def leave(id: str, context: Services, who: Self) -> wire.Member:
    """The asker belongs to the workspace no more, and the keys that they made in it end. The last owner stays."""
    return workspaces.leave(context, who, id)


@router.put("/me/password")
async def change_password(request: wire.PasswordChange, context: Services, who: Self, http: Request) -> wire.Me:
    """Every other session of the person ends."""
    await people.change_password(context, http.app.state.entry, who, request)
    return people.me(context, who)


@router.post("/people", status_code=201)
def create(request: wire.PersonRequest, context: Services, who: Operator) -> wire.Person:
    """An account; it belongs to no workspace until somebody adds it to one."""
    return people.create(context, who, request)


@router.get("/people")
def listed(context: Services, who: Operator) -> list[wire.Person]:
    return people.listed(context, who)


@router.patch("/people/{id}")
def patch(id: str, changes: wire.PersonPatch, context: Services, who: Operator) -> wire.Person:
    """A new password ends every session; a disabled account opens nothing, nor do the keys that it made."""
    return people.patch(context, who, id, changes)


@router.delete("/people/{id}")
def remove(id: str, context: Services, who: Operator) -> wire.Person:
    """The account is gone; what the person computed stays."""
    return people.remove(context, who, id)


@router.post("/workspaces", status_code=201)
def found(request: wire.WorkspaceRequest, context: Services, who: Operator) -> wire.Workspace:
    return workspaces.create(context, who, request)


@router.get("/workspaces")
def all_workspaces(context: Services, who: Operator) -> list[wire.Workspace]:
    """All of the server; /me lists the asker's."""
    return workspaces.listed(context, who)


@router.get("/workspaces/{id}")
def one(id: str, context: Services, who: Reader) -> wire.Workspace:
    """Name, quotas and how much of them is taken."""
    return workspaces.one(context, who, id)


@router.patch("/workspaces/{id}")
def change(id: str, changes: wire.WorkspacePatch, context: Services, who: Admin) -> wire.Workspace:
    """Its name, for owners; weight and quotas, for whoever runs the server. 0 takes a quota away."""
    return workspaces.patch(context, who, id, changes)


@router.put("/workspaces/{id}/datasets/{dataset}")
def offer(id: str, dataset: str, context: Services, who: Operator) -> wire.Workspace:
    """Makes a data set of the server readable in the workspace."""
    return workspaces.offer_dataset(context, who, id, dataset)


@router.get("/workspaces/{id}/members")
def members(id: str, context: Services, who: Admin) -> list[wire.Member]:
    return workspaces.members(context, who, id)


@router.put("/workspaces/{id}/members/{person}")
def appoint(id: str, person: str, request: wire.MemberRequest, context: Services, who: Admin) -> wire.Member:
    """Adds a person, by id or name, or gives them another role."""
    return workspaces.appoint(context, who, id, person, request.role)


@router.delete("/workspaces/{id}/members/{person}")
def dismiss(id: str, person: str, context: Services, who: Admin) -> wire.Member:
    """The keys that they made in it end with it."""
    return workspaces.dismiss(context, who, id, person)
