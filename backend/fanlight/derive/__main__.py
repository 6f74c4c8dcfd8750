"""`python -m fanlight.derive FOLDER`: does what `work.json` in that folder says and writes `outcome.json` beside it, whole or not at all.

Progress goes to stdout, a JSON line each. The process ends with its parent.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fanlight.adapters.base import Pixels
from fanlight.blobs import Blobs
from fanlight.derive.base import Data, Labelled
from fanlight.engine.child import bind_to_parent
from fanlight.errors import BadRequest, FanlightError
from fanlight.images import load

GENTLY = 10  # added to the niceness of this process


def main(folder: Path) -> None:
    bind_to_parent()
    os.nice(GENTLY)
    work = json.loads((folder / "work.json").read_text("utf-8"))
    try:
        outcome = done(work)
    except FanlightError as e:
        outcome = {"problem": " ".join(filter(None, (e.message, e.hint)))}
    draft = folder / "outcome.part"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(outcome, file, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / "outcome.json")


def done(work: dict[str, Any]) -> dict[str, Any]:
    """The story of the derived model. Errors: those of the change."""
    import torch

    from fanlight.derive import learning, removal

    torch.set_num_threads(1)
    blobs = Blobs(work["artifacts"])

    def read(digest: str) -> Pixels:
        try:
            return load(blobs.get(digest))
        except (FanlightError, ValueError) as e:
            raise BadRequest(str(e), code="unreadable_input") from e

    pictures = [Labelled(name, label, lambda d=blob: read(d)) for name, label, blob in work["pictures"]]  # type: ignore[misc]
    data = Data(work["dataset"]["name"], pictures, work["dataset"]["digest"])
    ((kind, what),) = work["change"].items()
    make: Any = {"remove": removal.remove, "forget": learning.forget, "add_class": learning.add_class}[kind]
    story: dict[str, Any] = make(Path(work["bundle"]), what, data, Path(work["into"]), tell, work["job"])
    return story


def tell(progress: float, message: str) -> None:
    sys.stdout.write(json.dumps({"progress": progress, "message": message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
