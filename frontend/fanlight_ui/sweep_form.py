"""The form that asks for a sweep: model, method, pictures, target. Pure parts, and reading them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, State, dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import controls, forecast

AMOUNTS = {"all": "all of them", "first": "the first", "sample": "some at random"}
RULES = {
    "predicted": "the class that the model predicts",
    "label": "the class of its label",
    "class": "one class of all",
}


def form(
    models: Sequence[wire.Model],
    infos: Sequence[wire.ExplainerInfo],
    datasets: Sequence[wire.Dataset],
    given: Mapping[str, str],
    gallery: Mapping[str, str] | None,
    found: int | None,
) -> Component:
    """The whole form. Args: given: what the address chooses; gallery: filters whose pictures are meant, and how many explanations they name."""
    model = next((m for m in models if m.id == given.get("model")), models[0])
    methods = fitting(model, infos)
    chosen = given.get("explainer") if given.get("explainer") in [m["value"] for m in methods] else None
    return html.Div(
        [
            dcc.Store(id="swn-gallery", data=dict(gallery) if gallery is not None else None),
            part(
                "Model and method",
                dmc.Select(
                    id="swn-model",
                    label="Model",
                    data=[{"value": m.id, "label": m.name} for m in models],
                    value=model.id,
                    allowDeselect=False,
                ),
                dmc.Select(
                    id="swn-method",
                    label="Method",
                    data=methods,
                    value=chosen or (methods[0]["value"] if methods else None),
                    allowDeselect=False,
                    searchable=True,
                ),
                html.Details([html.Summary("Parameters"), html.Div(id="swn-params")], className="disclosure"),
            ),
            part("Pictures", *pictures(datasets, given, gallery, found)),
            part(
                "What is explained of each picture",
                dmc.Select(
                    id="swn-rule",
                    label="Target",
                    data=[{"value": k, "label": v} for k, v in RULES.items()],
                    value="predicted",
                    allowDeselect=False,
                ),
                html.Div(
                    dmc.Select(
                        id="swn-class", label="Class", data=[], searchable=True, limit=40, placeholder="choose a class"
                    ),
                    id="swn-class-part",
                    hidden=True,
                ),
            ),
            *ending("swn", "Start the sweep", "method, model and data set"),
        ],
        className="sweep-form card pad",
    )


PARAMS = tuple(
    State({"type": kind, "scope": ALL, "name": ALL}, what)
    for kind, value in (("param", "value"), ("flag", "checked"))
    for what in (value, "id")
)
"""What a form of parameters holds, for `differing`."""


def differing(
    info: wire.ExplainerInfo | None, values: list[Any], ids: list[Any], flags: list[Any], flag_ids: list[Any]
) -> dict[str, Any]:
    """The parameters of a method that differ from its defaults. Args: those of PARAMS."""
    given = controls.collect([*ids, *flag_ids], [*values, *flags])
    return controls.differs(info.params, given.get(f"sweep-{info.name}", {})) if info else {}


def ending(prefix: str, start: str, default: str) -> list[Component]:
    """How a form of bulk work ends: its name, what it will take, its button. Args: default: what it is named without one."""
    return [
        part(
            "Name",
            dmc.TextInput(
                id=f"{prefix}-name",
                label="Name (optional)",
                description=f"For people; else {default}.",
                attributes={"input": {"maxLength": 200}},
            ),
        ),
        html.Div(
            [
                html.Div(id=f"{prefix}-forecast", className="quiet num", role="status"),
                html.Button(start, id=f"{prefix}-go", className="button primary"),
            ],
            className="row",
        ),
        html.Div(id=f"{prefix}-said", role="alert"),
    ]


def part(title: str, *inside: Component) -> Component:
    return html.Section([html.H2(title), *inside], className="part")


def pictures(
    datasets: Sequence[wire.Dataset], given: Mapping[str, str], gallery: Mapping[str, str] | None, found: int | None
) -> list[Component]:
    """Which pictures: of a data set and a label, or those of the gallery that one came from."""
    sets = [{"value": d.id, "label": f"{d.name} · {d.count:,}"} for d in datasets]
    chosen = given.get("dataset") if given.get("dataset") in [d.id for d in datasets] else None
    source: list[Component] = [
        dmc.Select(
            id="swn-dataset",
            label="Data set",
            data=sets,
            value=chosen or (datasets[0].id if datasets else None),
            allowDeselect=False,
        ),
        dmc.Select(
            id="swn-label", label="Label", data=[], value=given.get("label") or None, clearable=True, searchable=True, limit=60,
            placeholder="any",
        ),
        dmc.TextInput(id="swn-q", label="Words in name or label", value=given.get("q", ""), attributes={"input": {"maxLength": 200}}),
    ]  # fmt: skip
    said: list[Component] = []
    if gallery is not None:
        narrowed = ", ".join(f"{k}: {v}" for k, v in gallery.items() if k not in ("sort", "view")) or "no filter"
        said = [
            html.P(
                f"The pictures of the gallery with {narrowed}; {found or 0:,} explanations. Each picture counts once."
            )
        ]
    return [
        *said,
        html.Div(source, hidden=gallery is not None, className="fields"),
        html.Div(
            [
                dmc.Select(
                    id="swn-amount",
                    label="How many",
                    data=[{"value": k, "label": v} for k, v in AMOUNTS.items()],
                    value="all",
                    allowDeselect=False,
                ),
                html.Div(
                    dmc.NumberInput(
                        id="swn-count", label="Pictures", value=50, min=1, max=20_000, step=10, allowDecimal=False
                    ),
                    id="swn-count-part",
                    hidden=True,
                ),
                html.Div(
                    dmc.NumberInput(
                        id="swn-seed", label="Seed of the drawing", value=0, min=0, step=1, allowDecimal=False
                    ),
                    id="swn-seed-part",
                    hidden=True,
                ),
            ],
            className="fields",
        ),
    ]


def fitting(model: wire.Model, infos: Sequence[wire.ExplainerInfo]) -> list[dict[str, str]]:
    """The methods that fit the model, cheapest first; floors last, because they explain nothing."""
    fits = {a.name for a in model.explainers if a.available}
    there = sorted((i for i in infos if i.name in fits), key=lambda i: (i.family == "floor", i.cost))
    return [{"value": i.name, "label": i.title} for i in there]


def source(
    gallery: Mapping[str, str] | None,
    dataset: str | None,
    label: str | None,
    q: str | None,
    amount: str,
    count: Any,
    seed: Any,
) -> dict[str, Any]:
    """`wire.SweepSource` as it is sent."""
    made: dict[str, Any] = {"gallery": dict(gallery)} if gallery is not None else {"dataset": dataset}
    if gallery is None:
        made |= {k: v for k, v in (("label", label), ("q", (q or "").strip())) if v}
    if amount in ("first", "sample"):
        made[amount] = whole(count)
    if amount == "sample":
        made["sample_seed"] = whole(seed) or 0
    return made


def whole(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def params(info: wire.ExplainerInfo | None) -> Component:
    if info is None:
        return html.P("Choose a method first.", className="quiet")
    return controls.form(info.params, f"sweep-{info.name}")


def foretold(cost: int, pictures: int | None, throughput: float | None) -> str:
    """What it will cost, before it begins."""
    if not pictures:
        return ""
    said = f"{pictures:,} pictures, {forecast.words(cost * pictures, throughput)}"
    return f"{said}; measuring their faithfulness comes on top."
