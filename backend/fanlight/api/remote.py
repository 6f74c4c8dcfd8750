"""Whom the gate of `fanlight pages` asks: the server that has the database. Names and passwords are sent to that one, by the proxy before both."""

from __future__ import annotations

from fanlight import administration
from fanlight.api.entrance import WORKSPACE
from fanlight.api.gate import Door
from fanlight.client import AsyncClient, credentials
from fanlight.errors import FanlightError, Forbidden, NotFound, Unauthorized
from fanlight.service.context import Visitor
from fanlight.service.provider import Claims


class Remote:
    """Args: client: of the server; door: whose cookies are passed on."""

    days = 0

    def __init__(self, client: AsyncClient, door: Door):
        self._client, self._door = client, door

    async def key(self, given: str) -> Visitor:  # noqa: ARG002
        raise Forbidden("A key opens the API, not the pages.", code="scope", hint="Pages take the access token.")

    async def session(self, secret: str, wanted: str = "") -> Visitor | None:
        sent = {"cookie": f"{self._door.session(True)}={secret}", "x-forwarded-proto": "https"}
        mark = credentials.set(sent | ({WORKSPACE: wanted} if wanted else {}))
        try:
            me = await self._client.send(administration.me())
        except Unauthorized:
            return None
        except FanlightError as e:
            if e.status == 401:
                return None
            raise
        finally:
            credentials.reset(mark)
        return Visitor(
            me.principal, me.workspace, person=True, scopes=frozenset(me.scopes), operator=me.operator, name=me.name
        )

    async def elsewhere(self, wanted: str) -> str:
        return wanted  # the server refuses what is not there

    async def peopled(self) -> bool:
        return True  # it does not know; the form for a name is shown

    async def login(self, name: str, password: str, address: str, old: str = "") -> str:  # noqa: ARG002
        raise Unauthorized(
            "This server has no accounts.", code="wrong_login", hint="The proxy sends /login to the API."
        )

    async def vouched(self, claims: Claims, used: str, until: int, old: str = "") -> str:  # noqa: ARG002
        raise NotFound("This server has no provider of identities.", code="not_found")

    async def logout(self, secret: str) -> None:
        """The server does that."""
