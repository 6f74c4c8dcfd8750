"""What is done under Settings to people, keys and the workspace; the page declares these as callbacks. The API says what is allowed; its refusals are
shown as sentences.
"""

from __future__ import annotations

from typing import Any

from dash import ctx, no_update, set_props
from dash.development.base_component import Component
from dash.exceptions import PreventUpdate

from fanlight import administration
from fanlight.client import Call
from fanlight_ui import errors, keys, people, session

QUESTIONS = {
    "leave": ("You leave this workspace: what you did in it stays, the keys that you made in it end.", "Leave"),
    "remove": ("They see nothing of this workspace any more, and the keys that they made in it end.", "Remove"),
    "revoke": ("Programs with this key are refused from now on. This cannot be taken back.", "Revoke the key"),
    "close": ("They are logged out, cannot log in, and the keys that they made end. You can open it again.", "Close"),
    "open": ("They can log in again. Keys that they made stay revoked.", "Open the account"),
}
"""Per deed the question, and the word on the button."""


async def done(verb: str, who: str) -> str:
    """Does it; says so. Args: who: a workspace for `leave`, a key for `revoke`, else a person."""
    match verb:
        case "leave":
            await session.ask(administration.leave(who))
            return "You belong to it no more."
        case "remove":
            me = await session.ask(administration.me())
            gone = await session.ask(administration.dismiss(me.workspace, who))
            return f"{gone.name} belongs to this workspace no more."
        case "revoke":
            return f"Revoked: “{(await session.ask(administration.revoke_key(who))).name}” opens nothing any more."
        case "close" | "open":
            found = await session.ask(administration.change_person(who, disabled=verb == "close"))
            return f"The account of {found.name} is {'closed' if found.disabled else 'open again'}."
    raise PreventUpdate


async def belonging() -> list[Component]:
    me = await session.ask(administration.me())
    return people.belonging(await session.ask(administration.members(me.workspace)), me)


async def accounts() -> list[Component]:
    return people.people(await session.ask(administration.people()), await session.ask(administration.me()))


async def known_keys() -> list[Component | None]:
    return keys.inside(await session.ask(administration.keys()))


PARTS = {"remove": ("pp-members", belonging), "revoke": ("pp-keys", known_keys)}
PARTS |= {verb: ("pp-accounts", accounts) for verb in ("close", "open")}
"""What is shown anew after a deed."""


async def tried(call: Call[Any]) -> Any:
    """What the server answers; None where it refuses, which is said."""
    try:
        return await session.ask(call)
    except Exception as e:
        errors.report(e)
        return None


async def ask_first(clicks: list[int | None], _no: int | None) -> tuple[Any, Any, Any, Any]:
    if ctx.triggered_id == "pp-no":
        return False, None, no_update, no_update
    if not any(clicks) or not ctx.triggered_id:
        raise PreventUpdate
    verb, who = ctx.triggered_id["verb"], ctx.triggered_id["who"]
    return True, {"verb": verb, "who": who}, *QUESTIONS[verb]


async def do(clicks: int | None, what: dict[str, str] | None) -> bool:
    if not clicks or not what:
        raise PreventUpdate
    set_props("pp-sure", {"opened": False})
    said = await done(what["verb"], what["who"])
    errors.toast(said, kind="good")
    if what["verb"] in PARTS:
        id, show = PARTS[what["verb"]]
        set_props(id, {"children": await show()})
    else:  # another workspace, or none
        set_props("_pages_location", {"refresh": True, "href": session.href("/settings")})
    return False


async def add(clicks: int | None, who: str | None, role: str) -> Any:
    if not clicks:
        raise PreventUpdate
    if not (who or "").strip():
        errors.toast("Type the name of an account first.", kind="bad")
        raise PreventUpdate
    me = await session.ask(administration.me())
    member = await tried(administration.appoint(me.workspace, str(who).strip(), role))
    if member is None:
        return no_update
    errors.toast(f"{member.name} is {member.role} of this workspace.", kind="good")
    return await belonging()


async def turn(_roles: list[str]) -> Any:
    """Another role. Where it is refused, the list is shown as it is."""
    if not ctx.triggered_id or not ctx.triggered:
        raise PreventUpdate
    who, role = ctx.triggered_id["who"], ctx.triggered[0]["value"]
    me = await session.ask(administration.me())
    before = await session.ask(administration.members(me.workspace))
    if any(m.person == who and m.role == role for m in before):
        raise PreventUpdate
    member = await tried(administration.appoint(me.workspace, who, role))
    if member is not None:
        errors.toast(f"{member.name} is {member.role} of this workspace.", kind="good")
    return await belonging()


async def make_key(clicks: int | None, name: str | None, scopes: list[str], ends: str) -> Any:
    if not clicks:
        raise PreventUpdate
    if not (name or "").strip() or not scopes:
        errors.toast("Say what the key is for, and what it may.", kind="bad")
        raise PreventUpdate
    days = None if ends == "never" else int(ends)
    made = await tried(administration.create_key(str(name).strip(), scopes, days))
    return no_update if made is None else keys.inside(await session.ask(administration.keys()), made)


async def make_account(clicks: int | None, name: str | None, password: str | None, role: str) -> Any:
    if not clicks:
        raise PreventUpdate
    if not (name or "").strip() or not password:
        errors.toast("Give the account a name and a first password.", kind="bad")
        raise PreventUpdate
    made = await tried(administration.create_person(str(name).strip(), password))
    if made is None:
        return no_update
    said = f"The account of {made.name} is there."
    if role != "none":
        me = await session.ask(administration.me())
        if await tried(administration.appoint(me.workspace, made.id, role)) is not None:
            said = f"The account of {made.name} is there, as {role} of this workspace."
            set_props("pp-members", {"children": await belonging()})
    errors.toast(said, kind="good")
    return await accounts()


async def rename(clicks: int | None, name: str | None) -> Any:
    if not clicks:
        raise PreventUpdate
    if not (name or "").strip():
        errors.toast("A workspace needs a name.", kind="bad")
        raise PreventUpdate
    me = await session.ask(administration.me())
    found = await tried(administration.change_workspace(me.workspace, name=str(name).strip()))
    if found is None:
        return no_update
    errors.toast(f"The workspace is now called {found.name}.", kind="good")
    return found.name
