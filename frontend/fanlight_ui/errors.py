"""Errors as a person reads them: the sentence, what is allowed, what to do. Never a traceback."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
from dash import dcc, html, set_props
from dash.development.base_component import Component

from fanlight import wire
from fanlight.errors import FanlightError
from fanlight_ui import session

log = logging.getLogger(__name__)


def as_fanlight(error: Exception) -> FanlightError:
    """Any error as one that may be read; what was not foreseen is logged and said without its insides."""
    if isinstance(error, FanlightError):
        return error
    if isinstance(error, httpx.TransportError):
        return FanlightError("The server does not answer.", code="no_server", hint="Reload the page in a moment.")
    log.error("error in a page", exc_info=error)
    return FanlightError(
        "This page could not be put together.",
        code="page_failed",
        hint="Reload it; the server's log says why it failed.",
    )


OF_THE_API = re.compile(r"/api/|\b(GET|POST|PUT|PATCH|DELETE) /")
INSTEAD = {
    "unknown_model": "The page Models shows those that there are.",
    "unknown_explainer": "The workbench shows the methods that there are.",
    "unknown_input": "Choose a file, or take a sample.",
    "unknown_target": "Choose one from the list of classes.",
    "invalid_params": "The form of the method says which values it takes.",
    "not_editable": "Hide a part of the picture or ask for another class: that makes a new explanation.",
    "invalid_edit": "Draw the rectangle on the picture, or choose corners within the ranges beside the fields.",
}
"""What a person can do on a page, by the code of an error, where its hint is for programs."""


def said(error: FanlightError | wire.ErrorBody) -> tuple[str, str]:
    """The sentence of an error and what to do, for a person: without the number of an edit, without calls of the API."""
    message = re.sub(r"^Edit \d+: (.)", lambda m: m[1].upper(), error.message)
    hints = re.split(r"(?<=[.!?])\s+", error.hint or "")
    kept = [h for h in hints if h and not OF_THE_API.search(h)]
    if len(kept) < len(hints):
        kept.append(INSTEAD.get(error.code, ""))
    return message, " ".join(kept).strip()


def notice(error: Exception | Any, *, title: str = "That did not work") -> Component:
    """An alert in the page. `error`: an exception, or a `wire.ErrorBody`."""
    shown = as_fanlight(error) if isinstance(error, Exception) else error
    message, hint = said(shown)
    lines: list[Component] = [html.Strong(title), html.P(message)]
    # Names can be chosen from; the corners of a box say nothing without their axes.
    if isinstance(shown.allowed, list) and any(isinstance(a, str) for a in shown.allowed):
        lines.append(html.P(["Allowed: ", ", ".join(str(a) for a in shown.allowed), "."]))
    if hint:
        lines.append(html.P(hint))
    return html.Div(lines, className="notice", role="alert", **{"data-code": shown.code})


def toast(message: str, *, kind: str = "info", title: str | None = None) -> None:
    """A short message at the edge of the page, from within a callback. `kind`: info, good, bad."""
    color = {"info": "accent", "good": "accent", "bad": "red"}[kind]
    sent = {
        "action": "show",
        "message": message,
        "title": title,
        "color": color,
        "closeButtonProps": {"aria-label": "Close"},
        "autoClose": 12000 if kind == "bad" else 5000,
    }
    set_props("toasts", {"sendNotifications": [sent]})


def report(error: Exception) -> None:
    """What Dash calls with an error that a callback let out."""
    shown = as_fanlight(error)
    toast(" ".join(filter(None, said(shown))), kind="bad", title="That did not work")


def page(layout: Callable[..., Awaitable[Component]]) -> Callable[..., Awaitable[Component]]:
    """Decorates a page's `layout`: an error becomes a page that says so. Of a name that the address gives twice, the last counts."""

    @functools.wraps(layout)
    async def shown(*args: Any, **query: Any) -> Component:
        try:
            return await layout(*args, **{k: v[-1] if isinstance(v, list) else v for k, v in query.items()})
        except Exception as e:
            error = as_fanlight(e)
            told = notice(error, title="Not found" if error.status == 404 else "That did not work")
            home = dcc.Link("Open the gallery", href=session.href("/"), className="button")
            return html.Main([told, home], className="page narrow")

    return shown
