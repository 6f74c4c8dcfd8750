"""Comparison `/compare?ids=a,b`: two to four stored explanations side by side. All of its state is in the address."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import dash
from dash import ClientsideFunction, Input, clientside_callback, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight.client import calls
from fanlight.errors import FanlightError
from fanlight_ui import compare, errors, panels
from fanlight_ui.session import ask

dash.register_page(__name__, path="/compare", title="Compare · Fanlight")

NEAR = 12
"""Candidates that are offered."""


@errors.page
async def layout(**query: Any) -> Component:
    asked = compare.Asked.of(query)
    records = await asyncio.gather(*(ask(calls.explanation(i)) for i in asked.ids))
    others = await _candidates(records)
    if len(records) < 2:
        return html.Main(compare.page(compare.Found(asked, records, candidates=others)), className="page")
    comparison = await ask(calls.compare(asked.ids, asked.map or None))
    told = await asyncio.gather(*(panels.told_of(r) for r in records))
    apart = None
    if len(records) == 2:
        try:
            apart = await ask(calls.difference(*asked.ids, asked.map or None))
        except FanlightError as e:  # no part in common: the matrix says none, and there is no difference to draw
            if e.code != "nothing_in_common":
                raise
    return html.Main(compare.page(compare.Found(asked, records, told, comparison, apart, others)), className="page")


async def _candidates(records: Sequence[wire.Explanation]) -> list[wire.Explanation]:
    """What else is stored of the first picture."""
    if not records:
        return []
    found = await ask(calls.explanations(input=records[0].input, state="succeeded", limit=NEAR + compare.MOST))
    shown = {r.id for r in records}
    return [e for e in found.items if e.id not in shown][:NEAR]


clientside_callback(ClientsideFunction("compare", "opacity"), Input("cp-opacity", "value"))
