"""What a study found, from stored artifacts: one number for every pair of words, with intervals over seeds; every picture as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from sqlalchemy import Connection, Row

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.drawing.information import ATOMS, SHOWN, Read
from fanlight.errors import FanlightError, InvalidField
from fanlight.service import studies_figures, sweeps
from fanlight.service.context import Context, Visitor
from fanlight.service.recent import Recent
from fanlight.service.sweeps_export import cell
from fanlight.store.tables import sweep_item

Rule = Literal["min", "pointwise"]
KIND = "words"
"""Of the artifacts that have numbers for a study."""
COLUMNS = {
    "interaction": "interaction: both less the sum of the two, signed",
    "redundant": "redundant: what either word says, sum of its map",
    "unique_first": "unique to the first word, sum of its map",
    "unique_second": "unique to the second word, sum of its map",
    "synergy": "synergy: what only both say, sum of its map",
    "first_total": "the first word, signed, of the picture",
    "second_total": "the second word, signed, of the picture",
    "both_total": "both words, signed, of the picture",
}
HEAD = ("first", "second", "seed", "state", "explanation", *COLUMNS, "interaction_error", "guidance", "reason")
_numbers = Recent(16 << 20)


def table(context: Context, visitor: Visitor, ident: str, column: str, rule: Rule) -> wire.Study:
    """One number for every pair, from what is finished. Errors: unknown_sweep, no_study, unknown_column."""
    if column not in COLUMNS:
        raise InvalidField(
            f"“{column}” is no column of a study.", code="unknown_column", given=column, allowed=list(COLUMNS)
        )
    row, lists, found = _found(context, visitor, ident)
    pairs = len(lists.first) * len(lists.second)
    values = np.full((len(lists.seeds), pairs), np.nan)
    guidance: set[float] = set()
    done = 0
    for r in found:
        said = _of(context, r, rule)
        if said is not None:
            values[divmod(r.position, pairs)] = said[column]
            guidance.add(said["guidance"])
            done += 1
    f = studies_figures.figures(values)
    known = f.mean[~np.isnan(f.mean)]
    cells = [
        wire.StudyCell(
            n=int(f.n[k]),
            mean=_known(f.mean[k]),
            lo=_known(f.lo[k]),
            hi=_known(f.hi[k]),
            normalised=_known(f.normalised[k]),
            normalised_lo=_known(f.normalised_lo[k]),
            normalised_hi=_known(f.normalised_hi[k]),
        )
        for k in range(pairs)
    ]
    width = len(lists.second)
    drawn = next(iter(guidance)) if len(guidance) == 1 else None
    return wire.Study(
        sweep=ident,
        template=lists.template,
        first=lists.first,
        second=lists.second,
        seeds=lists.seeds,
        column=column,
        columns=[wire.StudyColumn(name=n, title=t) for n, t in COLUMNS.items()],
        rule=rule,
        cells=[cells[n : n + width] for n in range(0, pairs, width)],
        lowest=_known(known.min()) if len(known) else None,
        highest=_known(known.max()) if len(known) else None,
        guidance=drawn,
        n=done,
        total=row.total,
        complete=row.state == "done",
        about=_read(column, len(lists.seeds), drawn),
    )


def _read(column: str, seeds: int, guidance: float | None) -> str:
    said = ["In nats, mean over seeds. It is of the model, not of the world."]
    said.append(
        "One seed: no interval, and pairs may differ by chance."
        if seeds == 1
        else "Intervals of 95 % by resampling the seeds" + ("; from so few they are too narrow." if seeds < 8 else ".")
    )
    if column == "redundant":
        said.append(
            "A pair that the model finds unlikely has more redundancy by this measure: for what goes with what take the interaction."
        )
    if column in ("interaction", "first_total", "second_total", "both_total") and guidance not in (1, None):
        said.append(f"Drawn with guidance {guidance:g}, which inflates signed values.")
    return " ".join(said)


def export(context: Context, visitor: Visitor, ident: str, rule: Rule) -> bytes:
    """Every picture as CSV. Errors: unknown_sweep, no_study."""
    _, lists, found = _found(context, visitor, ident)
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow(HEAD)
    for r in found:
        first, second, seed = lists.at(r.position)
        said = _of(context, r, rule) or {}
        about = {
            "first": first,
            "second": second,
            "seed": seed,
            "state": r.state,
            "explanation": r.there,
            "reason": r.reason,
        }
        write.writerow([cell({**about, **said}.get(name)) for name in HEAD])
    return out.getvalue().encode()


def _found(context: Context, visitor: Visitor, ident: str) -> tuple[Row[Any], wire.WordLists, Sequence[Row[Any]]]:
    def act(conn: Connection) -> tuple[Row[Any], wire.WordLists, Sequence[Row[Any]]]:
        row = sweeps.find(conn, visitor, ident)
        lists = wire.SweepRequest.model_validate(row.spec).source.words
        if lists is None:
            raise InvalidField(
                "This sweep is over pictures, not over lists of words.",
                code="no_study",
                given=ident,
                hint="GET /api/v1/sweeps/{id}/summary says what it found.",
            )
        return row, lists, conn.execute(sweeps.results().where(sweep_item.c.sweep == ident)).all()

    return context.db.read(act)


def _of(context: Context, r: Row[Any], rule: Rule) -> dict[str, float] | None:
    """The numbers of a finished picture; None where there are none."""
    named = next((a for a in r.artifacts or [] if a["kind"] == KIND), None)
    if named is None or r.state not in ("measuring", "succeeded"):
        return None
    kept = _numbers.get((named["digest"], rule))
    if kept is None:
        try:
            stored = Artifact.from_bytes(context.blobs.get(named["digest"]))
        except (FanlightError, ValueError):  # gone since
            return None
        kept = json.dumps(numbers(stored, rule)).encode()
        _numbers.put((named["digest"], rule), kept)
    found: dict[str, float] = json.loads(kept)
    return found


def numbers(stored: Artifact, rule: Rule = "min") -> dict[str, float]:
    """Of an artifact `words` and its pair: `COLUMNS` in nats, the standard error of the interaction, the guidance it was drawn with."""
    read = Read(Artifact(stored.name, stored.kind, stored.arrays, {**stored.meta, "rule": rule, "chances": None}))
    sums = {name: float(read.maps[name].sum()) for name in ATOMS}
    totals = {name: read.told[name][0] for name in SHOWN}
    value, error = read.interaction()
    return {
        "interaction": value,
        "redundant": sums["redundant"],
        "unique_first": sums["unique_a"],
        "unique_second": sums["unique_b"],
        "synergy": sums["synergy"],
        "first_total": totals["a"],
        "second_total": totals["b"],
        "both_total": totals["both"],
        "interaction_error": error,
        "guidance": float((stored.meta["drawn"] or {}).get("guidance", 1)),
    }


def _known(value: Any) -> float | None:
    return None if np.isnan(value) else float(f"{value:.6g}")
