"""The pages as one Dash application on the server's own FastAPI app: one process, one origin, one gate before all of it."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dash
from dash.exceptions import CallbackException, PreventUpdate
from fastapi import FastAPI, Request

from fanlight.client import AsyncClient
from fanlight.errors import BadRequest
from fanlight_ui import errors, session, shell, table, theme

HERE = Path(__file__).parent
log = logging.getLogger(__name__)
FOREIGN = "This call was made by no page of this server, or by a page of another version of it."
DESCRIPTION = "A workbench for explanations of neural networks"

INDEX = """<!DOCTYPE html>
<html lang="en">
  <head>
    {%metas%}
    <title>{%title%}</title>
    <link rel="icon" type="image/svg+xml" href="MARK">
    <meta name="referrer" content="same-origin">
    <style>TOKENS</style>
    <script src="PREFIX/assets/boot.js"></script>
    {%css%}
  </head>
  <body>
    {%app_entry%}
    <footer>{%config%}{%scripts%}{%renderer%}</footer>
  </body>
</html>"""


def create_pages(server: FastAPI, *, client: AsyncClient, prefix: str = "") -> dash.Dash:
    """Mounts the pages on `server`.

    Args:
        server: their routes are added to it, among them a last one that answers every path nothing else answers (installed by
            the lifespan), so routes of the API that must answer 404 have to be there before the server starts.
        client: asks the API on behalf of the visitor being answered.
        prefix: path under which a browser reaches the server, "" or "/fanlight". The routes themselves are without it: whoever
            serves below a prefix takes it off before Dash sees the path.
    """
    session.connect(client, prefix)
    app = dash.Dash(
        "fanlight_ui",
        server=False,
        backend="fastapi",
        use_pages=True,
        pages_folder=str(HERE / "pages"),
        assets_folder=str(HERE / "assets"),
        assets_ignore=r"^boot\.js$",
        requests_pathname_prefix=prefix + "/",
        routes_pathname_prefix="/",
        serve_locally=True,
        suppress_callback_exceptions=True,
        include_pages_meta=False,
        index_string=INDEX.replace("PREFIX", prefix).replace("MARK", _mark()).replace("TOKENS", theme.css()),
        meta_tags=[{"name": "description", "content": DESCRIPTION}],
        title="Fanlight",
        description=DESCRIPTION,
        update_title=None,
        on_error=errors.report,
        enable_mcp=False,
        add_log_handler=False,
    )
    app._use_async = True  # its constructor ties this to a package that only its Flask backend needs
    app.backend.websocket_capability = False  # else every tab tries to open one, even where no callback uses it
    refuse_foreign_calls(app)
    app.init_app(server)
    app.layout = shell.layout
    shell.register(app)
    _set_up(app)
    table.defer(app)
    return app


def refuse_foreign_calls(app: dash.Dash) -> None:
    """Calls that no page of ours makes are refused in a sentence. Errors inside a callback do not come here (`on_error`)."""
    serve = app.backend.serve_callback

    def guarded(dash_app: dash.Dash) -> Callable[[Request], Awaitable[Any]]:
        answer = serve(dash_app)

        async def checked(request: Request) -> Any:
            try:
                return await answer(request)
            except PreventUpdate:
                raise
            except (
                CallbackException
            ) as e:  # a callback of ours that returned too little, or a caller who named other outputs
                log.error("what a callback returned does not fit what it was asked for: %s", e)
                raise BadRequest(FOREIGN, code="foreign_call", hint="Reload the page.") from e
            except Exception as e:
                log.warning("call of a callback refused: it cannot be taken apart (%s)", type(e).__name__)
                log.debug("where it could not", exc_info=True)
                raise BadRequest(FOREIGN, code="foreign_call", hint="Reload the page.") from e

        return checked

    app.backend.serve_callback = guarded


def _mark() -> str:
    """The icon inside the document: a browser asks for one with an address again at each change of the page's own."""
    return "data:image/svg+xml," + quote((HERE / "assets" / "mark.svg").read_text("utf-8"))


def _set_up(app: dash.Dash) -> None:
    """Dash finds its assets and callbacks at the first request to one of its own routes, which a deep link is not: do it now.

    It also takes the callbacks that the page modules declare globally into this application, so that a second one in the process
    gets its own. Modules that are no pages are imported once: their callbacks would be missing there, so they declare none.
    """
    for step in app.backend._before_request_funcs:
        done = step()
        if inspect.iscoroutine(done):
            try:
                done.send(None)  # with suppress_callback_exceptions it awaits nothing
            except StopIteration:
                continue
            raise RuntimeError("Dash's setup of pages waits for something; this needs an event loop")


def csp(app: dash.Dash) -> str:
    """The Content-Security-Policy of the pages. Scripts: our own files and the inline ones that Dash writes, by hash."""
    scripts = " ".join(dict.fromkeys(app.csp_hashes()))
    return (
        f"default-src 'self'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
        "worker-src 'self' blob:; connect-src 'self'; font-src 'self' data:; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    )
