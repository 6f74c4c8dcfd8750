"""Where each number of an explanation comes from, how its method misleads, and what its keeper wrote about it. Pure parts."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import html
from dash.development.base_component import Component

from fanlight import wire
from fanlight_ui import snippets, workbench
from fanlight_ui.views import numbers


def know(record: wire.Explanation, info: wire.ExplainerInfo | None, title: str) -> Component:
    """Cautions of the method, then where every number comes from."""
    parts: list[Component] = [html.H2("What to know")]
    if info:
        parts.append(workbench.reading(info))
    return html.Section([*parts, provenance(record, info), own_words(record, title)], className="card pad know-part")


def provenance(record: wire.Explanation, info: wire.ExplainerInfo | None) -> Component:
    """Digests, parameters, versions; and the same request to paste."""
    p = record.provenance
    device = (p.device, p.threads and f"threads: {p.threads}", p.chunk and f"chunks of {p.chunk}")
    said: list[tuple[str, Any]] = [
        ("model", f"{record.model} {p.model_digest}"),
        ("input", p.input_digest),
        *[(f"artifact {a.name}", a.digest) for a in record.artifacts],
        ("method", f"{record.explainer}, version {p.explainer_version}"),
        ("parameters", ", ".join(f"{k} = {v}" for k, v in record.params.items()) or "none"),
        ("seed", str(record.seed)),
        ("edits", "; ".join(str(e) for e in record.edits) or None),
        ("numerics", p.numerics),
        ("device", ", ".join(t for t in device if t)),
        ("versions", ", ".join(f"{k} {v}" for k, v in p.versions.items())),
        (
            "computed",
            f"{numbers.when(p.created)}" + (f" in {numbers.seconds(p.seconds)}" if p.seconds is not None else ""),
        ),
        ("forward passes", f"{p.forwards:,}" if p.forwards is not None else None),
        ("key", p.key),
    ]
    rows = [
        part
        for name, value in said
        if value
        for part in (html.Dt(name), html.Dd(value, className="mono" if len(value) > 40 and " " not in value else None))
    ]
    texts = [
        ("Python", snippets.python(record)),
        ("curl", snippets.curl(record)),
        ("BibTeX", snippets.bibtex(info)),
    ]
    copies = [
        html.Details(
            [
                html.Summary(f"Copy as {name}"),
                html.Pre(text, id=f"ex-copy-{name.lower()}", className="snippet"),
                html.Button("Copy", className="button small", **{"data-copy": f"ex-copy-{name.lower()}"}),
            ],
            className="disclosure",
        )
        for name, text in texts
        if text
    ]
    verify = html.Div(
        [
            html.Button("Recompute and verify", id="ex-recompute", className="button small"),
            html.Div(id="ex-verdict", role="status"),
        ],
        className="row",
    )
    summary = f"Provenance: model {numbers.short(p.model_digest)}, input {numbers.short(p.input_digest)}, seed {record.seed}, {p.numerics}"
    return html.Div(
        [
            html.Details([html.Summary(summary), html.Dl(rows, className="provenance")], className="disclosure"),
            *copies,
            verify,
        ]
    )


def own_words(record: wire.Explanation, title: str) -> Component:
    """Title, tags and note of whoever keeps it; and its end."""
    return html.Details(
        [
            html.Summary("Title, tags, note" + (f": {', '.join(record.tags)}" if record.tags else "")),
            html.Div(
                [
                    dmc.TextInput(
                        id="ex-own-title",
                        label="Title",
                        value=record.title,
                        inputProps={"maxLength": 200},
                        placeholder=title,
                    ),
                    dmc.TagsInput(id="ex-tags", label="Tags", value=record.tags, maxTags=32),
                    dmc.Textarea(id="ex-note", label="Note", value=record.note, autosize=True, minRows=2, maxRows=12),
                    html.Div(
                        [
                            html.Button("Save", id="ex-save", className="button small"),
                            html.Button("Delete …", id="ex-delete", className="plain danger"),
                        ],
                        className="row",
                    ),
                ],
                className="about-record",
            ),
        ],
        className="disclosure",
        open=bool(record.note),
    )
