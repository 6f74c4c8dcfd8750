"""The gallery at a million stored explanations: pages under any filters, over HTTP, on SQLite and PostgreSQL.

Rows are made, not computed (`_million.py`). Totals and counts per filter are held against a plain count of the records.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import create_engine, select

from fanlight.bench import _api, _million
from fanlight.bench._figures import Declared, figures, passed, percentile
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._server import fanlight
from fanlight.cli.output import say
from fanlight.store.tables import explanation

QUESTIONS = {
    "plain": "no filter, and the pages after",
    "one": "one filter",
    "several": "two or three filters",
    "text": "words, alone or with a filter",
    "tag": "a tag, alone or with a filter",
    "sorted": "by faithfulness or probability, with and without filters",
}
FIGURES = {
    f"{database}_{name}": declared
    for database, title in (("sqlite", "SQLite"), ("postgresql", "PostgreSQL"))
    for name, declared in {
        "p50": Declared(measures=f"{title}: a page, median of all questions", unit="ms"),
        "p95": Declared(measures=f"{title}: a page, 95th percentile of all questions", unit="ms", at_most=150),
        **{k: Declared(measures=f"{title}: 95th percentile, {v}", unit="ms") for k, v in QUESTIONS.items()},
        "slowest": Declared(measures=f"{title}: slowest page", unit="ms"),
        "wrong": Declared(measures=f"{title}: totals and counts that differ from a plain count", at_most=0),
        "checked": Declared(measures=f"{title}: totals and counts that were compared"),
    }.items()
}
PACKAGES = ("fanlight", "sqlalchemy", "fastapi", "uvicorn")
COLUMNS = {
    "model": "model",
    "explainer": "explainer",
    "class": "top_class",
    "outcome": "outcome",
    "trust": "trust_class",
    "dataset": "dataset",
}
EXACT = 10_000


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --rows N, --rounds N, --requests N (per round and kind of question), --postgres URL (of an empty database, or of one that
    this benchmark has filled), --folder PATH (keeps the SQLite database there, and uses the one that is there)."""
    parser = argparse.ArgumentParser(prog="fanlight bench gallery --", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument(
        "--postgres", help="postgresql+psycopg://... of an empty database; without it SQLite alone is measured"
    )
    parser.add_argument("--folder", type=Path, help="keep the SQLite database here for the next run")
    chosen = parser.parse_args(options)
    about = {"benchmark": "gallery", "date": today(), "machine": machine(), "versions": versions(PACKAGES)}
    about["options"] = {"rows": chosen.rows, "rounds": chosen.rounds, "requests": chosen.requests}
    measured: dict[str, Sequence[float]] = {}
    with tempfile.TemporaryDirectory(prefix="fanlight-bench-") as name:
        folder = Path(name)
        kept = chosen.folder or folder
        kept.mkdir(parents=True, exist_ok=True)
        urls = {"sqlite": f"sqlite:///{kept.resolve() / 'gallery.sqlite'}"}
        if chosen.postgres:
            urls["postgresql"] = chosen.postgres
        for database, url in urls.items():
            say(f"Storing {chosen.rows} explanations ({database}).")
            _million.fill(url, chosen.rows)
            say("Asking for pages.")
            settings: dict[str, Any] = {"database_url": url, "default_model": False, "examples": False}
            with fanlight(folder / database, **settings) as server, _api.client(server) as http:
                found = _ask(http, chosen.rounds, chosen.requests)
                wrong, checked = _compare(http, url)
            measured |= {f"{database}_{k}": v for k, v in found.items()}
            measured |= {f"{database}_wrong": [wrong], f"{database}_checked": [checked]}
    made = figures(FIGURES, measured)
    return {**about, **made, "passed": passed(made)}


def _ask(http: httpx.Client, rounds: int, requests: int) -> dict[str, list[float]]:
    """Milliseconds per round: of each kind of question, and of all of them."""
    found: dict[str, list[float]] = {name: [] for name in ("p50", "p95", "slowest", *QUESTIONS)}
    for n in range(rounds):
        draw = random.Random(n)
        every: list[float] = []
        for kind in QUESTIONS:
            times = []
            for _ in range(requests):
                asked = question(kind, draw)
                took, answer = _api.timed(http, "GET", "/explanations", 200, params=asked)
                times.append(1000 * took)
                cursor = answer.json()["next_cursor"]
                if kind == "plain" and cursor:
                    times.append(1000 * _api.timed(http, "GET", "/explanations", 200, params={"cursor": cursor})[0])
            found[kind].append(percentile(times, 95))
            every += times
        found["p50"].append(percentile(every, 50))
        found["p95"].append(percentile(every, 95))
        found["slowest"].append(max(every))
    return found


def question(kind: str, draw: random.Random) -> dict[str, Any]:
    """Parameters of a page that somebody might ask for."""
    values: dict[str, Callable[[], str]] = {
        "model": lambda: draw.choice(_million.MODELS),
        "explainer": lambda: draw.choice(_million.EXPLAINERS),
        "class": lambda: draw.choice(_million.CLASSES),
        "outcome": lambda: draw.choice(("right", "wrong")),
        "trust": lambda: draw.choice(("above", "below")),
        "dataset": lambda: draw.choice(_million.DATASETS),
    }

    def filters(n: int) -> dict[str, Any]:
        return {name: values[name]() for name in draw.sample(sorted(values), n)}

    words = (
        draw.choice(_million.FIRST), draw.choice(_million.LAST)[:3], f"picture {draw.randrange(10**5)}", "look again", "absent",
        f"{draw.choice(_million.FIRST)} {draw.choice(_million.LAST)}",
    )  # fmt: skip
    match kind:
        case "one":
            return filters(1)
        case "several":
            return filters(draw.choice((2, 3)))
        case "text":
            return {"q": draw.choice(words), **filters(draw.choice((0, 1)))}
        case "tag":
            return {"tag": draw.choice(_million.TAGS), **filters(draw.choice((0, 1)))}
        case "sorted":
            return {"sort": draw.choice(("faithfulness", "probability")), **filters(draw.choice((0, 1, 2)))}
    return {}


def _compare(http: httpx.Client, url: str, questions: int = 12) -> tuple[int, int]:
    """How many totals and counts differ from those of a plain count, and how many were compared."""
    draw = random.Random(7)
    engine = create_engine(url)
    columns = [explanation.c[c].label(name) for name, c in COLUMNS.items()]
    with engine.connect() as conn:
        rows = [
            dict(r._mapping)
            for r in conn.execute(select(*columns).where(explanation.c.state.in_(("succeeded", "failed"))))
        ]
    engine.dispose()
    wrong = checked = 0
    for _ in range(questions):
        asked = question("several", draw)
        page = _api.timed(http, "GET", "/explanations", 200, params=asked)[1].json()
        for name, told in {"": page["total"], **page["facets"]}.items():
            under = {k: v for k, v in asked.items() if k != name}
            inside = [r for r in rows if all(r[k] == v for k, v in under.items())]
            if len(inside) > EXACT or (name and name not in COLUMNS):
                continue
            pairs = {"": (told, len(inside))} if not name else _pairs(told, inside, name)
            checked += len(pairs)
            wrong += sum(a != b for a, b in pairs.values())
    return wrong, checked


def _pairs(
    told: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], name: str
) -> dict[str, tuple[int, int]]:
    counted = Counter(r[name] for r in rows)
    return {f["value"]: (f["count"], counted[f["value"]]) for f in told}
