"""`fanlight worker`: computes what servers on the same PostgreSQL have promised."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fanlight import collector
from fanlight.cli.output import part
from fanlight.cli.serve import Host, configured


def worker(
    host: Host = None,
    port: Annotated[int, typer.Option(help="Port of the health checks.", min=0, max=65535)] = 8323,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder of its own, for what is not shared.", show_default="fanlight-data")
    ] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ... or auto.", show_default="auto")] = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads of the compute worker; 0: all cores.", show_default="0")
    ] = None,
) -> None:
    """Take jobs from a PostgreSQL ledger and compute them, without API and pages.

    Its settings are those of the servers: the same database, artifact store, token, models and explainers.
    """
    settings = configured(host=host, port=port, data_dir=data_dir, device=device, threads=threads)
    collector.begin()
    raise typer.Exit(part("fanlight.worker", "all").work(settings))
