"""People and workspaces on the wire."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from fanlight.wire.base import Request, Wire

Role = Literal["viewer", "editor", "owner"]
Login = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$", to_lower=True, strip_whitespace=True)
]
WorkspaceId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Password = Annotated[str, Field(max_length=1024)]
Subject = Annotated[str, Field(max_length=255)]
"""What a provider of identities calls somebody, for ever."""


class Membership(Wire):
    workspace: str
    name: str
    role: Role


class Me(Wire):
    """Who asks, where, and what they may do there."""

    principal: str
    name: str = ""
    """Of a person with an account; empty for the access token and for keys."""
    workspace: str
    """Empty where a person belongs to no workspace."""
    workspace_name: str = ""
    role: Role | None = None
    scopes: list[str]
    operator: bool
    workspaces: list[Membership] = []


class Switch(Request):
    workspace: WorkspaceId


class PasswordChange(Request):
    old: Password
    new: Password


class PersonRequest(Request):
    """With a password, or with a subject, or both."""

    name: Login
    password: Password | None = None
    operator: bool = False
    subject: Subject | None = None


class PersonPatch(Request):
    """An empty subject takes the link to the provider away."""

    password: Password | None = None
    disabled: bool | None = None
    operator: bool | None = None
    subject: Subject | None = None


class Person(Wire):
    id: str
    name: str
    operator: bool
    disabled: bool
    created: float
    seen: float | None = None
    """When they last logged in."""
    subject: str = ""
    """At the provider of identities."""
    workspaces: list[Membership] = []


class WorkspaceRequest(Request):
    id: WorkspaceId
    name: Annotated[str, Field(min_length=1, max_length=100)]
    datasets: list[Annotated[str, Field(max_length=128)]] | None = None
    """Data sets of the server to offer in it; left out: those that come with Fanlight."""


class WorkspacePatch(Request):
    """A quota of 0 is none: the limits of the server hold."""

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    most_jobs: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    most_cost: Annotated[int, Field(ge=0, le=2**53)] | None = None
    weight: Annotated[int, Field(ge=1, le=100)] | None = None
    """Its share of the time where several wait: 2 has twice that of 1."""


class Workspace(Wire):
    id: str
    name: str
    created: float
    members: int
    most_jobs: int | None = None
    """Most unfinished jobs."""
    most_cost: int | None = None
    """Most unfinished work, in forward passes."""
    weight: int = 1
    jobs: int
    cost: int


class MemberRequest(Request):
    role: Role


class Member(Wire):
    person: str
    name: str
    role: Role
    disabled: bool = False
    since: float
