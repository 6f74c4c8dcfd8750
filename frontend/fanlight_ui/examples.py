"""What an empty gallery shows: three worked examples, computed and opened in one click, and the way to something of one's own."""

from __future__ import annotations

import asyncio

from dash import dcc, html
from dash.development.base_component import Component

from fanlight.client import calls
from fanlight.wire import ExplainerInfo, Model, Sample
from fanlight_ui import session
from fanlight_ui.views.base import picture

COUNT = 3


async def empty() -> Component:
    chosen = await choose()
    cards = [example(sample, model, explainer) for sample, model, explainer in chosen]
    words = "Nothing has been explained here yet. " + (
        "Start with one of these, or with something of your own." if cards else "Start with a picture."
    )
    return html.Main(
        [
            html.H1("Why does a model say what it says?"),
            html.P(words, className="lead"),
            html.Div(cards, className="cards examples", **{"data-walk": "examples"}) if cards else None,
            html.P(id="example-state", role="status", className="quiet"),
            dcc.Link("Explain something of mine", href=session.href("/explain"), className="button primary"),
        ],
        className="page welcome",
    )


async def choose() -> list[tuple[Sample, Model, ExplainerInfo]]:
    """Samples of the first data set, spread over it, each with another of the cheapest methods that fit the first model."""
    models, datasets, explainers = await asyncio.gather(
        session.ask(calls.models()), session.ask(calls.datasets()), session.ask(calls.explainers())
    )
    models = [m for m in models if m.takes == "image"]
    if not models or not datasets:
        return []
    page = await session.ask(calls.samples(datasets[0].id))
    model = models[0]
    fits = {a.name for a in model.explainers if a.available}
    methods = sorted((e for e in explainers if e.name in fits and e.family != "floor"), key=lambda e: e.cost)
    if not methods or not page.items:
        return []
    step = max(1, len(page.items) // COUNT)
    return [(sample, model, methods[i % len(methods)]) for i, sample in enumerate(page.items[::step][:COUNT])]


def example(sample: Sample, model: Model, explainer: ExplainerInfo) -> Component:
    """A card whose button computes the explanation and opens it."""
    asked = {"type": "example", "input": sample.input, "model": model.id, "explainer": explainer.name}
    return html.Article(
        [
            html.Img(src=picture(sample.input), alt="", className="shot"),
            html.Div(
                [
                    html.H2(
                        html.Button(
                            f"Why “{sample.label}”?" if sample.label else f"Explain “{sample.name}”",
                            id=asked,
                            className="link",
                        )
                    ),
                    html.P(f"{explainer.title} · {model.name}", className="quiet"),
                    html.P(explainer.summary),
                ],
                className="words",
            ),
        ],
        className="card item",
        **{"data-item": sample.input},
    )


async def compute(input: str, model: str, explainer: str) -> str:
    """Asks for the explanation; returns its id, finished or on its way."""
    return (await session.ask(calls.explain(model, input, explainer))).id
