"""The log that a training leaves beside its checkpoint, one JSON a line, from which the server shows how far it is.

The first line names the training, each later one a step of it; the last one says that it has ended. A training that goes on from its checkpoint
goes on in the same log.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path

SUFFIX = ".training.jsonl"


def beside(checkpoint: Path) -> Path:
    """Where the log of a checkpoint lies."""
    return checkpoint.with_name(checkpoint.name.split(".")[0] + SUFFIX)


class TrainingLog:
    """Args: path; title: what is trained, for people."""

    def __init__(self, path: Path, title: str):
        self.path = path
        if not path.exists():
            self._add({"training": title})

    def step(
        self,
        stage: str,
        done: int,
        of: int,
        figures: Mapping[str, float],
        *,
        left: float | None = None,
        unit: str = "epochs",
    ) -> None:
        """Args: stage; done of `of` in `unit`; figures: losses and accuracies, those that are not finite are left out; left: seconds of the stage."""
        finite = {name: round(float(v), 6) for name, v in figures.items() if math.isfinite(v)}
        self._add({"stage": stage, "done": done, "of": of, "unit": unit, "figures": finite, "left": left})

    def end(self) -> None:
        self._add({"ended": True})

    def _add(self, said: Mapping[str, object]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"at": round(time.time(), 1), **said}) + "\n")
