"""Trainings: the logs that recipes leave in a folder that the operator names, read when somebody asks."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any

from pydantic import BaseModel, ValidationError

from fanlight import wire
from fanlight.service.context import Context
from fanlight_models.training_log import SUFFIX

LONGEST = 4 << 20  # bytes of a log; of a longer one the end
MOST = 50  # logs, the newest
SHOWN = 200  # steps of one
PATIENCE = 300.0  # seconds without a word


class _Line(BaseModel):
    at: float
    training: str | None = None
    ended: bool = False
    stage: str = ""
    done: int = 0
    of: int = 0
    unit: str = "epochs"
    figures: dict[str, float] = {}
    left: float | None = None


def listed(context: Context, now: float | None = None) -> list[wire.Training]:
    """Newest first. A line that is no line of a log, such as one that is being written, is passed over."""
    folder = context.settings.trainings
    if folder is None or not folder.is_dir():
        return []
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda p: -p.stat().st_mtime)[:MOST]
    found = (_read(p, time.time() if now is None else now) for p in files)
    return [t for t in found if t is not None]


def _read(path: Path, now: float) -> wire.Training | None:
    lines = _lines(path)
    steps = [line for line in lines if line.stage]
    if not lines:
        return None
    name = path.name.removesuffix(SUFFIX)
    last = lines[-1]
    return wire.Training(
        id=name,
        title=next((line.training for line in lines if line.training), name)[:200],
        state="done" if last.ended else "running" if now - last.at <= _patience(steps) else "quiet",
        began=lines[0].at,
        updated=last.at,
        unit=steps[-1].unit if steps else "epochs",
        seconds_left=None if last.left is None else max(last.left - (now - last.at), 0.0),
        steps=[_step(steps[i]) for i in _spread(len(steps))],
    )


def _lines(path: Path) -> list[_Line]:
    with path.open("rb") as file:
        head = file.readline(1000)
        size = path.stat().st_size
        file.seek(max(len(head), size - LONGEST))
        rest = file.read(LONGEST).splitlines()
    found = []
    for text in (head, *rest):
        try:
            found.append(_Line.model_validate_json(text))
        except ValidationError:
            continue
    return found


def _patience(steps: list[_Line]) -> float:
    gaps = [b.at - a.at for a, b in zip(steps, steps[1:], strict=False)]
    return max(PATIENCE, 3 * median(gaps[-20:])) if gaps else PATIENCE


def _spread(count: int) -> list[int]:
    if count <= SHOWN:
        return list(range(count))
    return sorted({round(i * (count - 1) / (SHOWN - 1)) for i in range(SHOWN)})


def _step(line: _Line) -> wire.TrainingStep:
    said: dict[str, Any] = line.model_dump(include={"at", "stage", "done", "of", "figures"})
    return wire.TrainingStep(**said)
