"""The summary of a sweep as one HTML page: no script, no request, readable in print."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from fanlight import wire
from fanlight.drawing.number import day, percent
from fanlight.drawing.page import CSS, TEMPLATES, environment, source
from fanlight.drawing.trust import score

OWN = (TEMPLATES / "sweep.css").read_text("utf-8")
STYLE = CSS + OWN
POLICY = f"default-src 'none'; img-src data:; style-src {source(STYLE)}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content-Security-Policy that the page is served with."""
SKIPPED = 200
TALL = 100


def page(
    sweep: wire.Sweep,
    summary: wire.SweepSummary,
    items: Mapping[str, wire.SweepItem],
    cards: Mapping[str, str],
    groups: Sequence[tuple[str, str]],
    without: Sequence[wire.SweepItem],
) -> str:
    """The page.

    Args:
        items: by explanation.
        cards: data addresses of the pictures of explanations.
        groups: of each group the data addresses of its mean picture and its mean map.
        without: items that have no result, with a reason.
    """
    clusters = summary.clusters.items if summary.clusters else []
    told = {
        "title": sweep.name,
        "about": sweep.about,
        "method": f"{sweep.explainer_title} · {sweep.model_name}",
        "made": day(time.time()),
        "counts": counts(sweep),
        "so_far": None if summary.complete else f"{summary.n:,} of {summary.total:,}: the sweep was not complete.",
        "accuracy": portion(summary.accuracy, "labelled pictures right"),
        "faithful": faithful(summary.faithful),
        "bars": bars(summary.faithful),
        "lists": [
            (title, [(cards[i], items[i]) for i in ids if i in cards and i in items])
            for title, ids in (
                ("Most faithful", summary.most[:4]),
                ("Least faithful", summary.least[:4]),
                ("Wrong with the highest probability", summary.confident[:4]),
            )
        ],
        "clusters": list(zip(clusters, groups, strict=True)),
        "grouping": summary.clusters.sentence if summary.clusters else "",
        "without": without[:SKIPPED],
        "more": max(0, len(without) - SKIPPED),
    }
    return environment().get_template("sweep.html").render(page=told, css=Markup(STYLE))


def counts(sweep: wire.Sweep) -> str:
    """How many ended how, in words."""
    words = {"succeeded": "explained", "failed": "failed", "skipped": "skipped", "cancelled": "cancelled"}
    said = [f"{sweep.counts[state]:,} {word}" for state, word in words.items() if sweep.counts.get(state)]  # type: ignore[index, call-overload]
    left = sum(sweep.counts.get(s, 0) for s in ("waiting", "submitted", "measuring"))
    if left:
        said.append(f"{left:,} to come")
    if sweep.reused:
        said.append(f"{sweep.reused:,} of them were there before")
    return ", ".join(said)


def portion(p: wire.Portion, what: str) -> str:
    """A share with its interval, or that there is none."""
    if p.value is None or p.lo is None or p.hi is None:
        return f"No {what.split(' ')[0]} picture so far." if what.startswith("labelled") else "Not measured so far."
    return f"{percent(p.value, 1)} of {p.n:,} {what} (95 % interval {percent(p.lo, 1)} to {percent(p.hi, 1)})"


def faithful(f: wire.Faithful) -> str:
    """The distribution in words."""
    if f.mean is None or f.quartiles is None:
        return "No map's faithfulness is measured so far."
    band = f" (95 % interval {score(f.lo)} to {score(f.hi)})" if f.lo is not None and f.hi is not None else ""
    low, mid, high = (score(v) for v in f.quartiles)
    return (
        f"Mean {score(f.mean)}{band} over {f.n:,} maps; median {mid}, middle half {low} to {high}. "
        f"0 is what a random order of patches gets. {portion(f.above, 'maps are above their own floor')}."
    )


def bars(f: wire.Faithful) -> list[dict[str, Any]]:
    """Bars of a histogram on a field of 100 x TALL: x, y, width, height, low (below the floor), words."""
    if not f.counts:
        return []
    span, top = f.edges[-1] - f.edges[0], max(f.counts)
    return [
        {
            "x": round(100 * (a - f.edges[0]) / span, 3),
            "width": round(100 * (b - a) / span * 0.94, 3),
            "height": round(TALL * n / top, 3),
            "y": round(TALL - TALL * n / top, 3),
            "low": b <= 1e-12,
            "words": f"{score(a)} to {score(b)}: {n}",
            "count": n,
        }
        for a, b, n in zip(f.edges, f.edges[1:], f.counts, strict=False)
    ]
