"""The parts of the workbench page, pure: what is known -> components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import controls, forecast, panels, subject
from fanlight_ui.choice import MOST, Choice, asked_as, available
from fanlight_ui.views import base, prediction, world

Panel = tuple[Any, dict[str, Any], wire.Explanation | None]


@dataclass(frozen=True)
class Facts:
    """Everything that the page shows.

    Args:
        model: the chosen one, with its classes; None where no model is registered.
        shelf: the data set whose samples are shown.
        chosen: the picture to explain, or that a prompt is about.
        prompt: what a model that draws is asked about, where it was stored.
        found: what stands in the panels.
    """

    choice: Choice
    models: Sequence[wire.Model]
    model: wire.Model | None
    infos: Sequence[wire.ExplainerInfo]
    datasets: Sequence[wire.Dataset] = ()
    shelf: str | None = None
    samples: wire.Page[wire.Sample] | None = None
    chosen: wire.Input | None = None
    found: Sequence[Panel] = ()
    prompt: wire.Input | None = None

    @property
    def takes(self) -> str:
        return self.model.takes if self.model else "image"

    @property
    def own(self) -> bool:
        """Whether a prompt is about a picture, rather than drawn."""
        return self.takes == "prompt" and self.chosen is not None

    @property
    def picked(self) -> list[wire.ExplainerInfo]:
        """The chosen methods that fit the model; the first that fits where none was chosen."""
        fits = available(self.model) if self.model else []
        names = [n for n in self.choice.explainers if n in fits] or fits[:1]
        return [i for n in names for i in self.infos if i.name == n]


def page(facts: Facts) -> Component:
    """The whole page, as the address says."""
    if facts.model is None:
        return html.Main(
            [
                html.H1("Explain"),
                html.P("No model is registered yet. FANLIGHT_MODELS names bundles and Python files to register."),
            ],
            className="page narrow",
        )
    first = next(
        (
            record
            for _, _, record in facts.found
            if record is not None and (record.prediction or prediction.drawn(record))
        ),
        None,
    )
    return html.Main(
        [
            dcc.Store(id="wb-choice", data={"results": list(facts.choice.results)}),
            dcc.Store(id="wb-input", data=facts.chosen.model_dump(mode="json") if facts.chosen else None),
            dcc.Store(id="wb-prompted", data=facts.prompt.model_dump(mode="json") if facts.prompt else None),
            dcc.Store(id="wb-takes", data=facts.takes),
            dcc.Store(id="wb-scales"),
            dcc.Store(id="wb-titles", data={i.name: i.title for i in facts.infos}),
            dcc.Store(id="wb-defaults", data=defaults(facts.picked)),
            html.Div(html.H1(title(first) if first else "Explain", id="wb-title"), className="head"),
            html.Div([rail(facts, facts.model), stage(facts, first)], className="workbench"),
        ],
        className="page",
    )


def title(record: wire.Explanation) -> str:
    """The question that an explanation answers."""
    if prediction.drawn(record):
        return "Which word put what where?"
    return f"Why “{record.target_name}”?" if record.target_name else "Explain"


# --- the rail: what is asked


def rail(facts: Facts, model: wire.Model) -> Component:
    picked, infos = facts.picked, facts.infos
    return html.Div(
        [
            _step(
                "Model",
                dmc.Select(
                    id="wb-model",
                    data=[{"value": m.id, "label": m.name} for m in facts.models],
                    value=model.id,
                    allowDeselect=False,
                    **{"aria-label": "Model"},
                ),
            ),
            html.Div(
                _step(
                    "Prompt",
                    subject.field(
                        facts.prompt.text if facts.prompt else facts.choice.prompt, facts.own, model.examples
                    ),
                ),
                id="wb-ask",
                hidden=facts.takes != "prompt",
            ),
            html.Div(
                _step("Picture", subject.browser(facts.datasets, facts.shelf, facts.samples)),
                id="wb-pick",
                hidden=facts.takes == "prompt" and not facts.own,
            ),
            _step(
                f"Methods, up to {MOST} side by side",
                dmc.ChipGroup(chips(model, infos), id="wb-methods", value=[i.name for i in picked], multiple=True),
                html.Div(reasons(model, infos), id="wb-reasons"),
                html.Div(forms(picked, facts.choice.params), id="wb-forms"),
            ),
            _step("Target and seed", *targets(facts.choice, model, hidden=facts.takes == "prompt")),
            html.Div(
                [
                    html.Div(id="wb-forecast", className="quiet"),
                    html.Button("Explain", id="wb-go", className="button primary", disabled=True),
                ],
                className="go",
            ),
        ],
        className="rail card pad",
        role="form",
        **{"aria-label": "What to explain"},
    )


def _step(name: str, *parts: Component) -> Component:
    return html.Section([html.H2(name, className="step-name"), *parts], className="step-of")


def chips(model: wire.Model, infos: Sequence[wire.ExplainerInfo]) -> Component:
    fits, tasks = set(available(model)), asked_as(model, infos)
    return html.Div(
        [
            dmc.Chip(i.title, value=i.name, disabled=i.name not in fits, size="sm", variant="outline")
            for i in infos
            if i.accepts in tasks
        ],
        className="chips",
    )


def reasons(model: wire.Model, infos: Sequence[wire.ExplainerInfo]) -> list[Component]:
    """Why a method cannot be chosen, in a sentence each."""
    tasks = asked_as(model, infos)
    titles = {i.name: i.title for i in infos if i.accepts in tasks}
    return [
        html.P(f"{titles[a.name]}: {a.reason}", className="quiet")
        for a in model.explainers
        if not a.available and a.reason and a.name in titles
    ]


def forms(infos: Sequence[wire.ExplainerInfo], values: Mapping[str, Mapping[str, Any]]) -> list[Component]:
    """A disclosure per method: its parameters, how to read it and how it misleads."""
    return [
        html.Details(
            [
                html.Summary(
                    [
                        i.title,
                        html.Span(f"{i.summary} {forecast.words(i.cost).capitalize()}.", className="quiet"),
                        html.Span(world.brief(i.world), className="quiet") if i.world else None,
                    ]
                ),
                world.score(i.world),
                controls.form(i.params, i.name, values.get(i.name)),
                reading(i),
            ],
            className="disclosure method",
            open=bool(controls.differs(i.params, values.get(i.name) or {})),
        )
        for i in infos
    ]


def reading(info: wire.ExplainerInfo) -> Component:
    """How to read a method's result, and how it misleads."""
    return html.Div(
        [
            html.P([html.Strong("How to read it. "), info.reading]),
            html.P([html.Strong("How it misleads. "), info.misleads]),
            html.P(
                html.A(info.paper.citation, href=info.paper.link, rel="noreferrer", target="_blank"), className="quiet"
            )
            if info.paper.link.startswith("https://")
            else None,
        ],
        className="reading",
    )


def defaults(infos: Sequence[wire.ExplainerInfo]) -> dict[str, dict[str, Any]]:
    """What the controls hold when nothing was changed, so that the address says only what was."""
    return {
        i.name: {
            f.name: str(f.default) if f.kind == "choice" else "" if f.default is None else f.default
            for f in controls.fields(i.params)
        }
        for i in infos
    }


def classes(model: wire.Model) -> list[dict[str, str]]:
    """The classes for a searchable list."""
    return [{"value": str(i), "label": name} for i, name in enumerate(model.classes or [])]


def targets(choice: Choice, model: wire.Model, *, hidden: bool = False) -> list[Component]:
    """Args: hidden: there is no class to choose; the seed stays."""
    known = classes(model)

    def held(value: int | None) -> str | None:
        return None if value is None else str(value)

    common: dict[str, Any] = {
        "data": known,
        "searchable": True,
        "clearable": True,
        "limit": 60,
        "size": "sm",
        "nothingFoundMessage": "No class of that name",
    }
    chosen = [
        dmc.Select(id="wb-target", label="Class", placeholder="top prediction", value=held(choice.target), **common),
        dmc.Select(
            id="wb-minus",
            label="Rather than",
            placeholder="no other class",
            value=held(choice.minus),
            description="Needs a class above.",
            **common,
        ),
    ]
    return [
        html.Div(chosen, id="wb-classes", hidden=hidden),
        dmc.NumberInput(
            id="wb-seed",
            label="Seed",
            value=choice.seed,
            min=0,
            step=1,
            allowDecimal=False,
            size="sm",
            description="Of whatever draws random numbers, pictures among them.",
        ),
    ]


# --- the stage: what is seen


def stage(facts: Facts, first: wire.Explanation | None) -> Component:
    chosen, found, draws = facts.chosen, facts.found, facts.takes == "prompt" and not facts.own
    shown = base.picture(chosen.id, base.seen(first) if first else None) if chosen else ""
    subject = html.Div(
        [
            html.Div(
                [
                    html.Img(
                        id="wb-picture",
                        src=shown,
                        alt="The chosen picture",
                        hidden=not chosen or draws,
                        className="subject",
                    ),
                    html.Button(
                        [
                            html.Span("Drop a picture here", className="big"),
                            html.Span("or paste one, click to choose a file, or take a sample.", className="quiet"),
                        ],
                        id="wb-hint",
                        className="hint",
                        hidden=bool(chosen) or draws,
                        **{"data-upload-pick": "file"},
                    ),
                    html.P(id="wb-drawn", className="to-draw", hidden=not draws),
                ],
                className="drop",
            ),
            html.P(id="wb-about", className="quiet about-input"),
            html.P("", className="quiet upload-status", role="status", **{"data-upload-status": "1"}),
            html.Div(prediction.of(first) if first else None, id="wb-prediction"),
        ],
        className="card subject-card",
        **{"data-upload": "1", "data-into": "wb-input", "data-preview": "wb-picture"},
    )
    # Its heading is where the keyboard goes after Explain (assets/workbench.js).
    heading = html.H2("Results", id="wb-results", className="sr", tabIndex="-1")
    slots = [heading, *(slot(i, found[i] if i < len(found) else None) for i in range(MOST))]
    tools = html.Div(
        [
            dmc.Switch(id="wb-shared", label="one scale per unit", checked=True, size="sm"),
            html.Label("opacity", htmlFor="wb-opacity"),
            dmc.Slider(
                id="wb-opacity",
                value=80,
                min=0,
                max=100,
                step=5,
                label=None,
                size="sm",
                className="opacity",
                updatemode="drag",
                thumbLabel="Opacity of the maps",
            ),
            html.Output(className="quiet num", **{"data-pixel": "1", "aria-live": "polite"}),
        ],
        className="tools card",
    )
    return html.Div(
        [html.Div([subject, html.Div(slots, className="slots")], className="panels"), tools],
        id="wb-stage",
        className="stage asked" if found else "stage",
        **{"data-linked": "1"},
    )


def slot(index: int, found: Panel | None) -> Component:
    """Room for one method; hidden until it is used."""
    shown, kept, _ = found if found else (None, None, None)
    return html.Section(
        [
            dcc.Store(id={"type": "run", "slot": index}),
            dcc.Store(id={"type": "kept", "slot": index}, data=kept),
            dcc.Store(id={"type": "nudge", "slot": index}),
            dcc.Store(id={"type": "stop", "slot": index}),
            dcc.Interval(id={"type": "poll", "slot": index}, interval=2000, disabled=True),
            html.Div(shown, id={"type": "panel", "slot": index}, **{"aria-live": "polite"}),
        ],
        id={"type": "slot", "slot": index},
        hidden=found is None,
        className="slot card",
    )


def rescaled(
    kept: Sequence[Mapping[str, Any] | None], slots: Sequence[int], shared: bool
) -> tuple[list[str], list[Any]]:
    """Addresses and legends of the maps in `slots`, on one scale per unit or each on its own."""
    own = [panels.Scale.of(k) for k in kept]
    scales = panels.common(own) if shared else own
    urls, legends = [], []
    for i in slots:
        k, now = kept[i], scales[i]
        assert k is not None and now is not None
        legend = {**k["legend"], "lo": now.lo, "hi": now.hi}
        scene = base.Scene(input="", slot=i, lo=None if now == own[i] else now.lo, hi=None if now == own[i] else now.hi)
        urls.append(base.render(wire.ArtifactRef.model_validate(k["artifact"]), scene))
        legends.append(base.scale_parts(legend))
    return urls, legends
