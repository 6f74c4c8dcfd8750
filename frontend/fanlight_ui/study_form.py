"""The form that asks for a study: a template, two lists of words, seeds, model and method. Pure parts, and reading them back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import forecast
from fanlight_ui.sweep_form import ending, part, whole

TEMPLATE = "a {a} {b}"
GIVEN = ("model", "explainer", "template", "first", "second", "seeds")
"""What an address may fill in."""


def form(models: Sequence[wire.Model], infos: Sequence[wire.ExplainerInfo], given: Mapping[str, str]) -> Component:
    """The whole form. Args: models: those that a method with `pairs` fits, at least one."""
    model = next((m for m in models if m.id == given.get("model")), models[0])
    methods = fitting(model, infos)
    chosen = given.get("explainer") if given.get("explainer") in [m["value"] for m in methods] else methods[0]["value"]
    longest = {"input": {"maxLength": 500}}
    return html.Div(
        [
            part(
                "Model and method",
                dmc.Select(
                    id="stn-model",
                    label="Model",
                    data=[{"value": m.id, "label": m.name} for m in models],
                    value=model.id,
                    allowDeselect=False,
                ),
                dmc.Select(id="stn-method", label="Method", data=methods, value=chosen, allowDeselect=False),
                html.Details(
                    [
                        html.Summary("Parameters"),
                        html.P(
                            "Which two words are compared follows from the template, whatever stands here.",
                            className="quiet",
                        ),
                        html.Div(id="stn-params"),
                    ],
                    className="disclosure",
                ),
            ),
            part(
                "Words",
                dmc.TextInput(
                    id="stn-template",
                    label="Template",
                    description="{a} stands for a word of the first list, {b} for one of the second; each once.",
                    value=given.get("template") or TEMPLATE,
                    attributes=longest,
                ),
                html.Div(
                    [
                        _list("first", "First list: rows of the table", given.get("first", "")),
                        _list("second", "Second list: columns", given.get("second", "")),
                    ],
                    className="fields",
                ),
                html.P(id="stn-prompt", className="quiet", role="status"),
            ),
            part(
                "Seeds",
                html.Div(
                    [
                        dmc.NumberInput(
                            id="stn-seeds",
                            label="How many pictures of every pair",
                            description="Intervals need two, and are too narrow below eight.",
                            value=whole(given.get("seeds")) or 8,
                            min=1,
                            max=1000,
                            step=1,
                            allowDecimal=False,
                        ),
                        dmc.NumberInput(
                            id="stn-from",
                            label="First seed",
                            description="The others follow it.",
                            value=0,
                            min=0,
                            step=1,
                            allowDecimal=False,
                        ),
                    ],
                    className="fields",
                ),
            ),
            *ending("stn", "Start the study", "method, model and template"),
        ],
        className="sweep-form card pad",
    )


def _list(name: str, label: str, value: str) -> Component:
    return dmc.Textarea(
        id=f"stn-{name}",
        label=label,
        description="One a line, or with commas between.",
        value="\n".join(listed(value)),
        autosize=True,
        minRows=4,
        maxRows=12,
    )


def listed(text: str | None) -> list[str]:
    """The words of a list as it was typed, each once, in their order."""
    once: dict[str, str] = {}
    for word in re.split(r"[\n,;]+", text or ""):
        once.setdefault(" ".join(word.casefold().split()), " ".join(word.split()))
    return [word for word in once.values() if word]


def fitting(model: wire.Model, infos: Sequence[wire.ExplainerInfo]) -> list[dict[str, str]]:
    """The methods that compare two words and fit the model, cheapest first."""
    fits = {a.name for a in model.explainers if a.available}
    there = sorted((i for i in infos if i.pairs and i.name in fits), key=lambda i: i.cost)
    return [{"value": i.name, "label": i.title} for i in there]


def example(template: str | None, first: Sequence[str], second: Sequence[str]) -> str:
    """What the first picture is asked for, or what is missing."""
    text = template or ""
    if text.count("{a}") != 1 or text.count("{b}") != 1:
        return "The template needs {a} and {b}, each once."
    if not first or not second:
        return "Each list needs a word."
    return f"First: “{text.replace('{a}', first[0]).replace('{b}', second[0])}”."


def foretold(cost: int, pictures: int) -> str:
    """What it will cost, before it begins. No seconds: what this server measured of itself was measured on other models."""
    return f"{pictures:,} pictures, {forecast.words(cost * pictures)}" if pictures else ""


def seeds(many: Any, start: Any) -> list[int]:
    begin = whole(start) or 0
    return list(range(begin, begin + max(0, whole(many) or 0)))
