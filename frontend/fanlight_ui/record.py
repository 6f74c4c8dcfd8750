"""The parts of an explanation's page, pure: the record and what the server says of its artifacts -> components."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import panels, views
from fanlight_ui.provenance import know
from fanlight_ui.session import href
from fanlight_ui.views import base, numbers, prediction, trust, world

SIZE = 768

FORMS = {
    "pdf": "Report to print (PDF)",
    "html": "Self-contained page (HTML)",
    "svg": "Figure (SVG)",
    "png": "Figure (PNG)",
    "csv": "Values (CSV)",
    "parquet": "Values (Parquet)",
    "safetensors": "Arrays (safetensors)",
    "bib": "Citation of the method (BibTeX)",
    "json": "The record (JSON)",
}
"""Files of a record, in the order of the menu."""


@dataclass(frozen=True)
class Known:
    """Everything that the page shows.

    Args:
        told: what the server says of each artifact, by digest.
        info: of the method; None where it is no longer registered.
        classes: of the model, for choosing another; empty where the model is gone.
        before: the explanation that this one changed, if any.
        further: what can be measured of its trust beyond faithfulness; None where that is not known.
        jobs: of the measurements that run now, by id.
    """

    record: wire.Explanation
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    info: wire.ExplainerInfo | None = None
    classes: Sequence[dict[str, str]] = ()
    before: wire.Explanation | None = None
    further: Sequence[wire.Measure] | None = None
    jobs: Mapping[str, wire.Job] = field(default_factory=dict)


def title(record: wire.Explanation) -> str:
    if prediction.drawn(record):
        return record.title or f"“{record.input_name}”"
    return record.title or (f"Why “{record.target_name}”?" if record.target_name else record.explainer_title)


def head(record: wire.Explanation) -> Component:
    """Title, where it comes from, and what can be done with it."""
    done = record.state == "succeeded"
    origin = [
        record.model_name,
        record.input_name or numbers.short(record.input, 8),
        f"stored {numbers.when(record.created)}",
        f"e/{numbers.short(record.id, 6)}",
    ]
    actions = [
        _neighbour("previous", "‹", "k"),
        _neighbour("next", "›", "j"),
    ]
    if not record.edits:  # the workbench asks about whole pictures only
        actions.append(dcc.Link("Compare", href=href("/explain", **compare(record)), className="button"))
    if done:
        own = (views.PAGES[a.kind] for a in record.artifacts if a.kind in views.PAGES)
        actions += [dcc.Link(words, href=href(f"/e/{record.id}/{path}"), className="button own") for path, words in own]
        beside = href("/compare", ids=record.id)
        actions += [
            dcc.Link("Beside …", href=beside, className="button", title="Compare with another stored explanation"),
            html.Button(
                "Change something",
                id="ex-change",
                className="button",
                hidden=prediction.drawn(record),  # its own page changes words
                **{"aria-expanded": "false", "aria-controls": "ex-change-part"},
            ),
            export(record),
            html.Button("Share", id="ex-share", className="button primary"),
        ]
    return html.Div(
        [
            html.H1(title(record), id="ex-title"),
            html.Span(" · ".join(origin), className="quiet from"),
            html.Div(actions, className="actions"),
        ],
        className="head",
    )


def _neighbour(name: str, sign: str, key: str) -> Component:
    """A link to the record before or after this one; assets/record.js knows which list it was opened from."""
    data = {"data-go": name, "aria-label": f"{name.capitalize()} explanation"}
    return html.A(sign, id=f"ex-{name}", hidden=True, className="button", title=f"{name.capitalize()} ({key})", **data)


def compare(record: wire.Explanation) -> dict[str, Any]:
    """The workbench with the same question, to which methods can be added."""
    minus = (record.target or {}).get("minus")
    return {
        "model": record.model,
        "input": record.input,
        "explainers": record.explainer,
        "target": prediction.explained(record),
        "minus": minus[1] if minus else None,
        "seed": record.seed or None,
        "results": record.id,
    }


def export(record: wire.Explanation) -> Component:
    """Files of this record; each holds the numbers that the page shows."""
    file = f"/api/v1/explanations/{record.id}/export."
    links = [(text, href(file + form)) for form, text in FORMS.items()]
    if chosen := views.principal(record.artifacts):
        links.insert(4, ("Table (CSV)", href(f"/api/v1/artifacts/{chosen.digest}/table.csv")))
    items = [html.Li(html.A(text, href=url, target="_blank", rel="noopener")) for text, url in links]
    return html.Details(
        [html.Summary("Export", className="button"), html.Ul(items, className="card")], id="ex-export", className="menu"
    )


def body(known: Known) -> list[Component]:
    """Everything below the title of a finished explanation."""
    record = known.record
    return [
        html.Div(
            [
                html.Div([subject(known), words(known)], className="column"),
                html.Div(maps(known), className="column"),
                html.Div(
                    [
                        html.Section(
                            [html.Div(trust_parts(known), id="ex-trust"), world.of(record, known.info)],
                            className="card pad trust-part",
                        ),
                        know(record, known.info, title(record)),
                    ],
                    className="column",
                ),
            ],
            className="record",
            **{"data-linked": "1"},
        )
    ]


def subject(known: Known) -> Component:
    """The picture as the model saw it, and what it said."""
    record = known.record
    box = base.seen(record)
    marks = [base.hidden(r, box) for r in base.hidden_regions(record.edits)] if box else []
    minus = (record.target or {}).get("minus")
    parts: list[Component | None] = [prediction.of(record, known.before)]
    if known.before is not None:
        parts.append(
            html.P(
                ["Outline: before the change. ", dcc.Link("Open the original", href=href(f"/e/{known.before.id}"))],
                className="quiet",
            )
        )
    told = [
        html.Span(
            [
                "Explaining: ",
                html.Strong(record.target_name.split(" rather than ")[0] if minus else record.target_name),
                " rather than",
            ]
        )
    ]
    if known.classes:
        chosen = prediction.explained(record)
        near = [str(p.index) for p in record.prediction if p.index != chosen]
        ordered = sorted(
            (c for c in known.classes if c["value"] != str(chosen)),
            key=lambda c: near.index(c["value"]) if c["value"] in near else len(near),
        )
        told.append(
            dmc.Select(
                id="ex-minus",
                data=ordered,
                value=str(minus[1]) if minus else None,
                placeholder="another class …",
                searchable=True,
                limit=40,
                size="xs",
                **{"aria-label": "Explain it rather than another class"},
            )
        )
    if not prediction.drawn(record):
        parts.append(html.Div(told, className="explaining"))
    return html.Section(
        [
            html.Div(
                [
                    html.Img(
                        src=base.picture(record.input, box),
                        alt=f"The {'words' if prediction.drawn(record) else 'picture'} {record.input_name}".strip(),
                        className="subject",
                    ),
                    *marks,
                ],
                className="framed",
            ),
            html.Div(parts, className="pad"),
        ],
        className="card subject-part",
        **{"aria-label": "The picture and the prediction"},
    )


def words(known: Known) -> Component:
    """What a person would say of it, and the numbers behind that."""
    chosen = views.principal(known.record.artifacts)
    told = known.told[chosen.digest] if chosen else {}
    sentence = known.record.summary or told.get("sentence", "")
    regions = "Regions" if chosen is None or chosen.kind in views.PICTURES else "Numbers"
    return html.Section(
        [html.H2("In words"), html.P(sentence, className="lead-words"), base.table(told, f"{regions} as a table")],
        className="card pad words-part",
    )


def maps(known: Known) -> list[Component | None]:
    """The artifact that stands for the explanation, by its kind, with the tools that read it; the others in a disclosure."""
    record = known.record
    chosen = views.principal(record.artifacts)
    if chosen is None:
        return [panels.ended(record)]

    def shown(artifact: wire.ArtifactRef, slot: int) -> Component:
        return views.show(artifact, known.told[artifact.digest], base.Scene.of(record, slot=slot, size=SIZE))

    others = [a for a in record.artifacts if a is not chosen]
    also = html.Details(
        [
            html.Summary(f"Also stored: {', '.join(a.name for a in others)}"),
            *[html.Div([html.H3(a.name), shown(a, slot)]) for slot, a in enumerate(others, 1)],
        ],
        className="disclosure also",
    )
    tools = html.Div(
        [
            html.Label("opacity", htmlFor="ex-opacity"),
            dmc.Slider(
                id="ex-opacity",
                value=80,
                min=0,
                max=100,
                step=5,
                label=None,
                size="sm",
                className="opacity",
                updatemode="drag",
                thumbLabel="Opacity of the map",
            ),
            html.Output(
                "point at the map or use arrow keys",
                className="quiet num",
                **{"data-pixel": "1", "aria-live": "polite"},
            ),
        ],
        className="tools card",
    )
    main = html.Section([shown(chosen, 0), html.Div(caption(record), className="caption")], className="card map-part")
    return [main, tools if chosen.kind in views.PICTURES else None, live(known), also if others else None]


def caption(record: wire.Explanation) -> list[Component]:
    return [
        html.Div(
            [html.H2(record.explainer_title), html.Span(trust.badge(record.trust), id="ex-badge")], className="row"
        ),
        html.P(panels.facts(record), className="quiet"),
    ]


def live(known: Known) -> Component | None:
    """Another target at once, where the scores of every class are stored."""
    if not known.classes or not any(a.kind == "region-scores" for a in known.record.artifacts):
        return None
    return html.Section(
        [
            html.H2("The same regions for another class"),
            dmc.Select(
                id="ex-live-class",
                data=list(known.classes),
                searchable=True,
                limit=40,
                size="sm",
                placeholder="choose a class",
                **{"aria-label": "Class to show at once"},
            ),
            html.Div(id="ex-live-panel", **{"aria-live": "polite"}),
        ],
        className="card pad",
    )


def live_panel(panel: wire.LivePanel, under: str) -> list[Component]:
    """What POST /live answered, over the picture at the address `under`: its scale and its words. The drawing travels in the answer."""
    if panel.legend is None or not (panel.image or "").startswith("data:image/png;base64,"):
        raise ValueError("a live panel carries its picture as a PNG data address")
    layers = [html.Img(src=under, alt="", className="under"), html.Img(src=panel.image, alt="", className="over")]
    return [
        html.Div(layers, className="map", role="img", style={"aspectRatio": "1"}, **{"aria-label": panel.summary}),
        html.Div(base.scale_parts(panel.legend), className="scale"),
        html.P(panel.summary),
    ]


def trust_parts(known: Known) -> list[Component]:
    return [html.H2("How far to trust it"), trust.strip(known.record.trust, known.further, known.jobs)]
