"""What a visitor may not do is not offered: controls that need a scope they lack are disabled, with the reason. `assets/may.js` finds them, also
those that appear later; the gate and the API refuse what is sent all the same.
"""

from __future__ import annotations

import json

from dash import html
from dash.development.base_component import Component

from fanlight import administration
from fanlight.wire import Me
from fanlight_ui import session

NEEDS: dict[str, tuple[str, ...]] = {
    "explain": (
        "#wb-go", "[data-upload-pick]", "#wb-prompt", '[id*=\'"type":"example"\']',
        "#ex-change", "#ex-hide", "#ex-recompute", "#ex-save", "#ex-title", "#ex-note", "#ex-tags input", "#ex-delete", "#ex-delete-sure",
        "#ex-check", "#mo-examine", "#swn-go", "#stn-go", "#sw-turn", "#sw-cancel",
        "#tr-add", "#tr-apply", "#tr-cancel", "#tr-forget",
        "#gv-name", "#gv-save", '[id*=\'"type":"gv-do"\']', '[id*=\'"type":"cancel"\']', '[id*=\'"type":"check-cancel"\']',
        ".co-answer input", "#co-save", "#pt-save", "[data-do=mute]", ".pt-chips button", ".pt-parts button",
        "#wd-save", "#wd-draw", "[data-wd=fields] :is(select, input, button)",
    ),
    "share": ("#ex-share", "#ex-share-make", '[id*=\'"type":"revoke"\']', "#revoke-yes"),
    "admin": ("#md-go", "#pt-forget-go", "#pt-gone-go"),
}  # fmt: skip
"""Per scope the controls that need it."""


def reason(me: Me) -> str:
    """Why something is not offered, and what to do; empty where all is."""
    if "admin" in me.scopes:
        return ""
    if not me.workspace:
        return "You belong to no workspace yet. An owner of one can add you."
    may = (
        "asks and changes, but does not make models for all" if "explain" in me.scopes else "looks, but changes nothing"
    )
    return f"Your role here is {me.role}: it {may}. An owner of the workspace can give you another role."


def lacking(me: Me) -> dict[str, str]:
    """CSS selectors of what is not offered, with the reason."""
    why = reason(me)
    held = NEEDS.keys() if "admin" in me.scopes else me.scopes
    return {selector: why for scope, some in NEEDS.items() if scope not in held for selector in some}


def frame() -> list[Component]:
    """Of every page: what may not be done, for the script, and the sentence that says so once where something is not offered."""
    return [html.Span(id="may", hidden=True), html.P(id="may-said", className="may-said", role="note", hidden=True)]


async def told(_shown: str | None) -> str:
    """For the script, once per document. Where the server does not answer everything is offered, and refused when it is tried."""
    try:
        return json.dumps(lacking(await session.ask(administration.me())))
    except Exception:  # pages themselves report
        return "{}"
