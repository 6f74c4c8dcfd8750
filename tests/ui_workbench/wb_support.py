"""What the tests of the two pages hold on to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import dash
from dash._callback_context import context_value
from dash._utils import AttributeDict, stringify_id
from wire_server import WireServer


def flat(component: Any) -> str:
    """All text of a component and its attributes, as one string."""

    def plain(value: Any) -> Any:
        return value.to_plotly_json() if hasattr(value, "to_plotly_json") else str(value)

    return json.dumps(component, default=plain, ensure_ascii=False)


@dataclass
class Pages:
    """The pages in process. `call` runs a callback as Dash would; `props` is what it set besides its outputs."""

    wire: WireServer
    props: dict[str, dict[str, Any]]

    def module(self, name: str) -> ModuleType:
        return sys.modules[next(m for m in dash.page_registry if m.endswith(f"pages.{name}"))]

    def call(self, make: Callable[..., Coroutine[Any, Any, Any]], *args: Any, **query: str) -> Any:
        context_value.set(AttributeDict(updated_props=self.props, triggered_inputs=[]))
        return asyncio.run(make(*args, **query))

    def set(self, id: Any) -> dict[str, Any]:
        return self.props.get(stringify_id(id), {})


@dataclass
class Live:
    """The pages on a loopback port."""

    url: str
    wire: WireServer
    _loop: list[asyncio.AbstractEventLoop]

    def soon(self, act: Callable[..., Any], *args: Any, **kw: Any) -> None:
        """Runs `act` on the server's own loop, where its event queues live, and waits for it."""

        async def run() -> None:
            act(*args, **kw)

        asyncio.run_coroutine_threadsafe(run(), self._loop[0]).result(5)
