"""What is explained on the workbench: a picture, chosen or of one's own, or a prompt, drawn or said of a picture. Pure parts."""

from __future__ import annotations

from collections.abc import Sequence

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui.session import src

STRIP = 24
"""Samples that are fetched at a time."""
LONGEST = 2000
"""Letters of a prompt that the server takes."""
SOURCES = (("draw", "drawn by the model"), ("own", "one of mine"))


def field(text: str, own: bool, examples: Sequence[str]) -> Component:
    """The words, prompts to begin with, and whether the picture is drawn from them or given beside them. assets/prompt.js sends them."""
    return html.Div(
        [
            dmc.Textarea(
                id="wb-prompt",
                value=text,
                placeholder="What should be in the picture?",
                autosize=True,
                minRows=2,
                maxRows=8,
                size="md",
                **{"aria-label": "Prompt", "aria-describedby": "wb-prompt-said"},
            ),
            html.P(
                "Enter explains it.",
                id="wb-prompt-said",
                className="quiet",
                role="status",
                **{"data-longest": str(LONGEST)},
            ),
            html.Div(
                started(examples),
                id="wb-examples",
                className="chips",
                role="group",
                **{"aria-label": "Prompts to begin with"},
            ),
            dmc.RadioGroup(
                dmc.Group([dmc.Radio(label, value=value, size="sm") for value, label in SOURCES], gap="sm"),
                id="wb-source",
                value="own" if own else "draw",
                label="The picture is",
                size="sm",
            ),
        ],
        className="ask-words",
    )


def started(examples: Sequence[str]) -> list[Component]:
    return [html.Button(text, className="button small", **{"data-prompt": text}) for text in examples]


def browser(datasets: Sequence[wire.Dataset], shelf: str | None, samples: wire.Page[wire.Sample] | None) -> Component:
    """Own pictures by button and camera; samples of the registered data sets as a strip."""
    own = html.Div(
        [
            html.Button("Choose a file", className="button small", **{"data-upload-pick": "file"}),
            html.Button("Camera", className="button small phone", **{"data-upload-pick": "camera"}),
            html.Span("or drop or paste one", className="quiet desktop"),
        ],
        className="row",
    )
    shelves = html.Div(
        [
            html.Div(
                [
                    dmc.Select(
                        id="wb-dataset",
                        data=[{"value": d.id, "label": f"{d.name} ({d.count:,})"} for d in datasets],
                        value=shelf,
                        allowDeselect=False,
                        size="sm",
                        **{"aria-label": "Data set"},
                    ),
                    dmc.TextInput(
                        id="wb-find",
                        placeholder="Search",
                        size="sm",
                        debounce=300,
                        **{"aria-label": "Search the samples by name or label"},
                    ),
                ],
                className="browse",
            ),
            html.Div(
                thumbnails(samples.items if samples else []),
                id="wb-samples",
                className="strip",
                role="group",
                **{"aria-label": "Samples"},
            ),
            html.Button("More samples", id="wb-more", className="plain", hidden=not (samples and samples.next_cursor)),
            dcc.Store(id="wb-cursor", data=samples.next_cursor if samples else None),
        ],
        hidden=not datasets,
    )
    return html.Div([own, shelves])


def thumbnails(samples: Sequence[wire.Sample]) -> list[Component]:
    return [
        html.Button(
            html.Img(src=src(s.thumbnail), alt="", width=72, height=72),
            id={"type": "sample", "input": s.input, "name": s.name, "size": f"{s.width}x{s.height}"},
            title=f"{s.name}: {s.label}" if s.label else s.name,
            className="sample",
            **{"aria-label": f"{s.label or s.name}, {s.name}"},
        )
        for s in samples
    ]
