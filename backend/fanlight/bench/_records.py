"""Results kept one a line, as they are made, so that a long measurement can be stopped at any moment and gone on with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fanlight.errors import BadRequest


class Records:
    """A file of JSON lines that only grows. A line that was cut off by the end of the process is dropped.

    Args:
        about: what the results depend on; a file that was begun with something else is refused.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]):
        self.path = path
        self.about = json.loads(json.dumps(about))
        self.rows: list[dict[str, Any]] = []
        if path.is_file():
            self._read()
        path.parent.mkdir(parents=True, exist_ok=True)
        if not self.rows:
            self.add({"about": self.about})

    def _read(self) -> None:
        text = self.path.read_bytes()
        whole = text[: text.rfind(b"\n") + 1]
        try:
            self.rows = [json.loads(line) for line in whole.splitlines()]
        except json.JSONDecodeError as e:
            raise BadRequest(
                f"“{self.path.name}” is no file of results: {e}.", code="bad_records", hint="Name another file."
            ) from e
        if self.rows and self.rows[0].get("about") != self.about:
            raise BadRequest(
                f"“{self.path.name}” holds results that were made otherwise, which cannot be mixed.",
                code="other_records",
                given=self.rows[0].get("about"),
                allowed=self.about,
                hint="Go on with the options and versions it was begun with, or name another file.",
            )
        if len(whole) < len(text):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))

    def add(self, row: Mapping[str, Any]) -> None:
        """Written and on the disk when this returns."""
        line = json.dumps(row)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows.append(json.loads(line))
