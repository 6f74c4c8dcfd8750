"""Very many stored explanations, made without computing any: rows as the server writes them, for measuring the gallery and nothing else."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, insert, select

from fanlight.bench import _copy
from fanlight.errors import FanlightError
from fanlight.service import listing
from fanlight.service.context import WORKSPACE
from fanlight.service.keys import NUMERICS
from fanlight.store.database import Database
from fanlight.store.migrate import upgrade
from fanlight.store.sight import SERVER
from fanlight.store.tables import event, explanation, listing as listed, tag

BATCH = 5000
MODELS = ("efficientnet-lite0", "resnet50", "vit-tiny", "convnext-small", "field-guide")
EXPLAINERS = ("saliency", "integrated-gradients", "grad-cam", "occlusion", "kernel-shap", "random", "edges")
DATASETS = ("photographs", "birds", "street", "market", "clinic", "archive")
FIRST = ("golden", "spotted", "grey", "giant", "common", "arctic", "striped", "northern", "little", "wild")
LAST = ("terrier", "heron", "kettle", "wagon", "beetle", "anemone", "loom", "lantern", "otter", "plover")
CLASSES = tuple(f"{a} {b} {n}" for n in range(10) for a in FIRST for b in LAST)
TAGS = tuple(
    f"{a}-{b}" for a in ("check", "paper", "odd", "shortcut", "teaching") for b in ("one", "two", "three", "four")
)
START = 1_700_000_000_000_000
PREDICTION = [
    {"index": i, "name": name, "probability": 0.09, "logit": 5.0 - i / 3} for i, name in enumerate(CLASSES[:10])
]
TRUST = {
    "state": "succeeded", "insertion": 0.31, "deletion": 0.22, "faithfulness": 0.27, "above_floor": True, "completeness_error": None,
    "floor": {"insertion": 0.4, "deletion": 0.41, "orders": 10, "patch": 16, "steps": 28}, "reason": None, "seconds": 1.9,
    "interval": {name: {"lo": 0.1, "hi": 0.4} for name in ("insertion", "deletion", "faithfulness")},
}  # fmt: skip
PROVENANCE = {
    "device": "cpu (x86_64)", "threads": 2, "chunk": 8, "seconds": 0.04, "forwards": 2,
    "versions": {"fanlight": "0.1.0", "torch": "2.14.1", "numpy": "2.4.0", "python": "3.11.7"},
}  # fmt: skip


class Made(NamedTuple):
    """A record, and the tags that people gave it."""

    record: dict[str, Any]
    tags: list[str]


def records(count: int, seed: int = 0) -> Iterator[Made]:
    """Explanations with uneven classes (the n-th as often as 1 / n), and outcomes and trust that depend on model and method."""
    draw = random.Random(seed)
    weights = list(itertools.accumulate(1 / (n + 1) for n in range(len(CLASSES))))
    for n in range(count):
        model, explainer = draw.choice(MODELS), draw.choice(EXPLAINERS)
        (name,) = draw.choices(CLASSES, cum_weights=weights)
        right = draw.random() < 0.6 + 0.08 * MODELS.index(model)
        above = draw.random() < 0.3 + 0.1 * EXPLAINERS.index(explainer)
        picture = f"{draw.randrange(count // 8 + 1):064x}"
        digest = f"{n:064x}"
        record = {
            "id": f"m{n:015d}", "workspace": WORKSPACE, "principal": f"person-{draw.randrange(40)}", "key": digest, "live": True,
            "state": "succeeded" if n % 50 else "failed", "edits": [], "model": model, "model_digest": digest, "input": picture,
            "input_name": f"picture {int(picture, 16)}.jpg", "dataset": draw.choice(DATASETS), "label": name if right else draw.choice(CLASSES),
            "outcome": "right" if right else "wrong", "explainer": explainer, "explainer_version": "1", "family": "attribution",
            "params": {}, "seed": n, "numerics": NUMERICS, "target": {"class": 1}, "target_name": name, "prediction": PREDICTION,
            "top_class": name, "top_probability": draw.random(), "summary": f"Mostly the middle, for {name}.", "trust": TRUST,
            "artifacts": [{"name": "map", "kind": "image-map", "digest": digest, "unit": "logit per pixel", "meta": {"signed": False}}],
            "trust_class": "above" if above else "below", "faithfulness": draw.gauss(0.2 if above else 0.0, 0.1), "provenance": PROVENANCE,
            "title": "", "note": "look again" if n % 97 == 0 else "", "created": START + n, "finished": START + n, "error": None, "job": None,
            "parent": None, "superseded_by": None, "recomputes": None, "verified": None,
        }  # fmt: skip
        yield Made(record, draw.sample(TAGS, 2) if draw.random() < 0.02 else [])


def fill(url: str, count: int) -> None:
    """Migrates a database and stores `count` explanations with their tags and their rows in the list, unless they are there.

    Errors: FanlightError where it holds another number of them.
    """
    upgrade(url)
    database = Database(url, sees=SERVER)
    try:
        there = database.read(lambda c: c.execute(select(func.count()).select_from(explanation)).scalar_one())
        if there == count:
            return
        if there:
            raise FanlightError(f"The database holds {there} explanations instead of {count}.", code="not_empty")
        made = records(count)
        if database.sqlite:
            while batch := list(itertools.islice(made, BATCH)):
                database.write(lambda c, b=batch: _store(c, b))  # type: ignore[misc]
        else:
            database.write(lambda c: _copy_all(c, made))
        database.write(lambda c: listing.count(c, WORKSPACE, listing.SHOWN_COUNT, count))
        settle(database)
    finally:
        database.close()


def settle(database: Database) -> None:
    """What both databases would come to by themselves: statistics, and on PostgreSQL pages that say which rows are visible."""
    if database.sqlite:
        with database.engine.connect() as conn:
            conn.exec_driver_sql("ANALYZE")
            conn.commit()
    else:
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            conn.exec_driver_sql("VACUUM ANALYZE")


def _copy_all(conn: Connection, made: Iterator[Made]) -> None:
    with _copy.bare(conn, (explanation, tag, listed)):
        while batch := list(itertools.islice(made, BATCH)):
            for table, rows in _rows(batch).items():
                _copy.copy(conn, table, rows)


def _store(conn: Connection, batch: list[Made]) -> None:
    for table, rows in _rows(batch).items():
        if rows:
            conn.execute(insert(table), rows)
    assert conn.execute(event.select().limit(1)).first() is None, "the database was not empty"


def _rows(batch: list[Made]) -> dict[Table, list[dict[str, Any]]]:
    return {
        explanation: [m.record for m in batch],
        tag: [{"explanation": m.record["id"], "tag": t, "workspace": WORKSPACE} for m in batch for t in m.tags],
        listed: [listing.row(m.record, m.tags, m.record["model"]) for m in batch],
    }
