"""The parts of the page of prototypes, pure. The skeleton is built here; assets/prototypes.js clones its row and paints every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html
from dash.development.base_component import Component

from fanlight import wire
from fanlight.drawing.number import percent
from fanlight_ui import editing, workbench
from fanlight_ui.session import href
from fanlight_ui.views import base, numbers

KIND = "prototypes"
OWN = ("mute_prototype", "gate_part", "remove_part", "exclude_region", "why_not")
SIZE = 512


@dataclass(frozen=True)
class Shown:
    """What the page shows.

    Args:
        record: finished. told: what the server says of its artifact. classes: of the model, for "why not?"; empty where it is gone.
        edits: to show it with; `asked`: whether they are other than those that are stored.
        info: of the method; None where it is no longer registered.
    """

    record: wire.Explanation
    told: Mapping[str, Any]
    classes: Sequence[dict[str, str]] = field(default_factory=tuple)
    edits: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    asked: bool = False
    info: wire.ExplainerInfo | None = None

    @property
    def detail(self) -> dict[str, Any]:
        found: dict[str, Any] = self.told["detail"]
        return found


def state(shown: Shown) -> dict[str, Any]:
    """What assets/prototypes.js starts from."""
    record = shown.record
    return {
        "id": record.id,
        "fixed": [dict(e) for e in record.edits if "mask_region" in e],
        "stored": editing.among(record.edits, OWN),
        "edits": [dict(e) for e in shown.edits],
        "ask": shown.asked,
        "picture": base.picture(record.input, shown.detail["box"], SIZE),
        "live": bool(shown.classes),
        "detail": shown.detail,
    }


def head(shown: Shown) -> Component:
    record = shown.record
    against = next((e["why_not"] for e in shown.edits if "why_not" in e), None)
    origin = [
        record.model_name,
        record.input_name or numbers.short(record.input, 8),
        f"e/{numbers.short(record.id, 6)}",
    ]
    explained = shown.detail["target"]["index"]
    why = dmc.Select(
        id="pt-why",
        data=[c for c in shown.classes if c["value"] != str(explained)],
        value=None if against is None else str(against),
        placeholder="Why not …?",
        searchable=True,
        clearable=True,
        limit=60,
        disabled=not shown.classes,
        **{"aria-label": "Why not another class?"},
    )
    return html.Div(
        [
            html.H1("This looks like that"),
            html.Span(" · ".join(origin), className="quiet from"),
            html.Div(
                [
                    dcc.Link("Record", href=href(f"/e/{record.id}"), className="button"),
                    why,
                    _step("undo", "↶", "Undo (Ctrl+Z)"),
                    _step("redo", "↷", "Redo (Ctrl+Shift+Z)"),
                    html.Button("Save", id="pt-save", className="button", disabled=True),
                    html.Button("Share", id="ex-share", className="button primary"),
                ],
                className="actions",
            ),
        ],
        className="head",
    )


def _step(name: str, sign: str, words: str) -> Component:
    return html.Button(
        html.Span(sign, **{"aria-hidden": "true"}),
        id=f"pt-{name}",
        className="button",
        title=words,
        disabled=True,
        **{"aria-label": words.partition(" (")[0]},
    )


def body(shown: Shown, gone: Component | None = None) -> Component:
    """Args: gone: the panel that takes prototypes out for good."""
    return html.Div(
        [
            html.Div([looks(shown), contrast()], className="pt-main"),
            html.Div([prediction(), trust(shown), flip(), gone, reading(shown)], className="pt-side"),
            row(),
        ],
        className="pt-page",
    )


def looks(shown: Shown) -> Component:
    """The rows of the explained class, with their sum."""
    target = shown.detail["target"]
    name = shown.record.target_name or target["name"]
    return html.Section(
        [
            html.Div(
                [html.H2(name), html.Span(className="quiet num", **{"data-pt": "sum"})],
                className="pt-title",
            ),
            html.P(
                "The model of this record is gone: what is stored is shown, and cannot be changed.", className="quiet"
            )
            if not shown.classes
            else None,
            html.Div(className="pt-said", role="status", **{"data-pt": "said"}),
            html.Div(className="pt-excluded", **{"data-pt": "excluded"}),
            html.Div(className="pt-rows", **{"data-pt": "rows"}),
            html.Div(
                [
                    html.Div(
                        [html.Span(**{"data-pt": "rest"}), html.Strong(className="num", **{"data-pt": "rest-points"})]
                    ),
                    html.Div(
                        [
                            html.Span("sum of all points, the logit"),
                            html.Strong(className="num", **{"data-pt": "total"}),
                        ]
                    ),
                ],
                className="pt-foot",
            ),
        ],
        className="card pad pt-looks",
        **{"aria-label": f"Prototypes for {name}"},
    )


def contrast() -> Component:
    """The rows of the class that it was not."""
    return html.Section(
        [
            html.Div(
                [html.H2(**{"data-pt": "why-title"}), html.Span(className="quiet num", **{"data-pt": "why-sum"})],
                className="pt-title",
            ),
            html.P(**{"data-pt": "why-said"}),
            html.Div(className="pt-rows", **{"data-pt": "why-rows"}),
        ],
        className="card pad",
        id="pt-contrast",
        hidden=True,
        **{"aria-label": "Why not another class"},
    )


def prediction() -> Component:
    return html.Section(
        [
            html.H2("Prediction"),
            html.Ul(className="bars pt-bars", **{"data-pt": "bars"}),
            html.P(className="quiet", **{"data-pt": "changed"}),
        ],
        className="card pad pt-first",
    )


def flip() -> Component:
    return html.Section(
        [
            html.H2("Smallest change that flips it"),
            html.P(**{"data-pt": "flip"}),
            html.Button("Mute them", id="pt-flip", className="button small", hidden=True),
        ],
        className="card pad",
    )


def trust(shown: Shown) -> Component:
    """What was measured of the prototypes of the model."""
    return html.Section(
        [html.H2("How far to trust it"), *[html.P(words) for words in measured(shown.detail["quality"])]],
        className="card pad pt-trust",
    )


def measured(quality: Mapping[str, Any]) -> list[str]:
    """The figures of the model in sentences; where none were measured, that."""

    def share(key: str) -> str:
        return percent(float(quality[key]))

    if not quality:
        return ["Nothing was measured of the prototypes of this model."]
    said = []
    if "consistency" in quality:
        said.append(
            f"{share('consistency')} of its prototypes meet one and the same part in four of five pictures where it can be seen; "
            f"under noise {share('stability')} keep to what they meet."
        )
    if "inside_sensitivity" in quality:
        outside = percent(1 - float(quality["inside_sensitivity"]))
        lost = float(quality["activation_change"])
        taken = "took all of it away" if lost >= 100 else f"took {lost:.0f} % of it away"
        said.append(
            f"{outside} of what would change a similarity lies outside of its boxes: an attack on the pixels there alone {taken}."
        )
    moved = float(quality["movement_mean"])
    far = (
        "That is far: a source shows what a prototype was replaced by more than what it was trained to mean."
        if moved > 0.3
        else ""
    )
    said.append(
        f"At projection its prototypes moved by {moved:.2f} on average (1 − cosine), {float(quality['movement_most']):.2f} at most. {far}".strip()
    )
    counts = [
        (quality["duplicates"], "the same parts as another"),
        (quality["dead"], "among the most active of no training picture"),
        (quality["weak_self"], "weaker on their own source than they should be"),
        (quality["largest_weight_elsewhere"], "with their largest weight for another class"),
    ]
    found = [f"{n} {words}" for n, words in counts if n]
    said.append(
        f"Of {quality['prototypes']} prototypes: {', '.join(found) if found else 'no duplicates, none dead, none weak on its own source'}."
    )
    return said


def reading(shown: Shown) -> Component | None:
    if shown.info is None:
        return None
    return html.Section(workbench.reading(shown.info), className="card pad")


def row() -> Component:
    """What assets/prototypes.js clones for each prototype."""
    return html.Div(
        html.Article(
            [
                html.Div(
                    [
                        html.Div(className="pt-shot", role="img", **{"data-pt": "here"}),
                        html.Span("≈", className="pt-like", **{"aria-hidden": "true"}),
                        html.Div(className="pt-shot", role="img", **{"data-pt": "there"}),
                    ],
                    className="pt-pair",
                ),
                html.Div(
                    [
                        html.H3(**{"data-pt": "name"}),
                        html.Div(className="pt-chips", role="group", **{"data-pt": "chips"}),
                        html.P(className="quiet", **{"data-pt": "source"}),
                        html.P(className="pt-flags quiet", **{"data-pt": "flags"}),
                        html.Div(
                            [
                                html.Button(
                                    "mute", className="pt-pill", **{"data-do": "mute", "aria-pressed": "false"}
                                ),
                                html.Button(
                                    "parts", className="pt-pill", **{"data-do": "parts", "aria-expanded": "false"}
                                ),
                                html.Button(
                                    "nearest patches",
                                    className="pt-pill",
                                    **{"data-do": "near", "aria-expanded": "false"},
                                ),
                            ],
                            className="pt-actions",
                        ),
                    ],
                    className="pt-words",
                ),
                html.Div(
                    [
                        html.Strong(className="num", **{"data-pt": "points"}),
                        html.Span(className="quiet num", **{"data-pt": "product"}),
                    ],
                    className="pt-points",
                ),
                html.Ul(className="pt-parts", hidden=True, **{"data-pt": "parts"}),
                html.Div(className="pt-near", hidden=True, **{"data-pt": "near"}),
            ],
            className="pt-row",
        ),
        id="pt-template",
        hidden=True,
    )
