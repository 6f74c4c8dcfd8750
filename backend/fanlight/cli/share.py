"""`fanlight share`: links to frozen explanations, made, listed, revoked; or one file that needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fanlight.cli.connection import Token, Url, connect
from fanlight.cli.output import Commands, Json, emit, say, table
from fanlight.client import Call


class CreateByDefault(Commands):
    default = "create"


app = typer.Typer(cls=CreateByDefault, help="Make a link to explanations, list links, revoke one.")


@app.command()
def create(
    explanations: Annotated[list[str], typer.Argument(metavar="ID...", help="Explanations to share, 16 at most.")],
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help="Days the link lives.", show_default="as the server is set, 30")
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Write the page to this file instead of making a link.", show_default=False),
    ] = None,
    as_json: Json = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Make a link (the default), or write one explanation as a file.

    What is shared is frozen: it shows the same when the explanation is changed or computed again.
    """
    if html is not None and len(explanations) > 1:
        raise typer.BadParameter("one file holds one explanation; name one ID", param_hint="--html")
    with connect(url, token) as client:
        if html is not None:
            page = Call("GET", f"/explanations/{explanations[0]}/export.html", lambda r: r.content)
            html.write_bytes(client.send(page))
            return emit({"file": str(html)}) if as_json else say(f"Wrote {html}")
        made = client.share(explanations, expires_in_days=days)
    if as_json:
        return emit(made)
    typer.echo(made.url)
    if made.loopback_only:
        say(
            "This link opens on this machine only; docs/operations.md says how others reach a server, and "
            "--html writes a file to send."
        )


@app.command("list")
def list_shares(as_json: Json = False, url: Url = None, token: Token = None) -> None:
    """List the links.

    Their tokens are shown only once, when they are made.
    """
    with connect(url, token) as client:
        shares = client.shares()
    if as_json:
        return emit(shares)
    rows = [(s.id, s.title, "revoked" if s.revoked else "live", s.views) for s in shares]
    table(("id", "title", "state", "views"), rows, empty="There are no shares.")


@app.command()
def revoke(
    share: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False, url: Url = None, token: Token = None
) -> None:
    """Close a link for good."""
    with connect(url, token) as client:
        revoked = client.revoke(share)
    emit(revoked) if as_json else say("The link is closed.")
