"""`fanlight pages`: the pages alone, where the API runs elsewhere. Needs neither torch nor a database.

One reverse proxy puts both under one origin; docker-compose.yml shows how.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fanlight.cli.output import part
from fanlight.cli.serve import Host, Port, RootPath, configured
from fanlight.client import AsyncClient
from fanlight.errors import FanlightError
from fanlight.settings import Settings

Api = Annotated[str, typer.Option(envvar="FANLIGHT_URL", help="Address of the server that answers /api/v1.")]


def pages(api: Api = "http://127.0.0.1:8321", host: Host = None, port: Port = None, root_path: RootPath = None) -> None:
    """Start the pages without an API.

    For a deployment of several services behind one proxy; needs neither torch nor a database.
    """
    settings = configured(host=host, port=port, root_path=root_path)
    app = application(settings, api)
    part("uvicorn", "server").run(
        app, host=settings.host, port=settings.port, log_level=settings.log_level, access_log=False
    )


def application(settings: Settings, api: str) -> Any:
    """The pages behind the same gate as the API: the same token, and cookies that both accept."""
    if not settings.token:
        raise FanlightError(
            "The pages need the access token of the server behind them.", code="no_token", hint="Set FANLIGHT_TOKEN."
        )
    gate, ui = part("fanlight.api.gate", "server"), part("fanlight_ui.app", "ui")
    hosts = part("fanlight.app", "server").hosts(settings)
    server = part("fastapi", "server").FastAPI(title="Fanlight pages", openapi_url=None, docs_url=None, redoc_url=None)

    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    server.get("/healthz")(healthz)
    client = AsyncClient(api)
    dash = ui.create_pages(server, client=client, prefix=settings.root_path)
    policy = ui.csp(dash)
    door = gate.Door(settings.token, prefix=settings.root_path, hosts=hosts, policy=lambda: policy)
    server.add_middleware(part("fanlight_ui.compression", "ui").Compression)
    doorman = part("fanlight.api.remote", "server").Remote(client, door)
    server.add_middleware(gate.Gate, door=door, doorman=doorman)
    return server
