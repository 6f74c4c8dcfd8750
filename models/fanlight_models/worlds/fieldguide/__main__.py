"""`python -m fanlight_models.worlds.fieldguide --out FOLDER --split test --count 100` writes the field guide as files.

FOLDER/images/SPECIES/NUMBER.png (a picture folder), FOLDER/masks/NUMBER.png (0: no bird; 1 to 14: the part, in the order of masks/parts.txt) and
FOLDER/concepts.csv: a row a picture with its species, what is drawn of each group, and whether it can be seen.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from fanlight_models.worlds.fieldguide import GROUPS, PARTS, SIZE, SPLITS, draw, split


def write(out: Path, name: str, count: int | None, *, seed: int, biased: bool, size: int) -> int:
    """Writes `count` scenes of a split into an empty or new folder and returns their number."""
    if out.exists() and any(out.iterdir()):
        raise SystemExit(f"“{out}” is not empty; nothing is written. Name a new folder.")
    scenes = split(name, count, seed=seed, biased=biased)
    (out / "masks").mkdir(parents=True, exist_ok=True)
    (out / "masks" / "parts.txt").write_text("\n".join(PARTS) + "\n", encoding="utf-8")
    with open(out / "concepts.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        about = ["species", "family", "sex", "age", "season", "background"]
        rows.writerow(["image", *about, *(g.name for g in GROUPS), *(f"{g.name} seen" for g in GROUPS)])
        for number, scene in enumerate(scenes):
            drawing = draw(scene, size)
            image = Path("images") / scene.name.lower().replace(" ", "-") / f"{number:05}.png"
            (out / image).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(drawing.image).save(out / image)
            part = (drawing.masks * np.arange(1, len(PARTS) + 1, dtype=np.uint8)[:, None, None]).sum(0, dtype=np.uint8)
            Image.fromarray(part).save(out / "masks" / f"{number:05}.png")
            values = [getattr(scene, a) for a in ("name", *about[1:])] + [scene.value(g.name) for g in GROUPS]
            rows.writerow([image.as_posix(), *values, *(int(s) for s in drawing.seen())])
    return len(scenes)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m fanlight_models.worlds.fieldguide", description="Write the field guide as files."
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new or empty folder")
    parser.add_argument("--split", choices=sorted(SPLITS), default="test")
    parser.add_argument("--count", type=int, help="pictures; default: the whole split")
    parser.add_argument("--biased", action="store_true", help="the background tells the family in train and validation")
    parser.add_argument("--size", type=int, default=SIZE, help=f"pixels a side, 16 to 2048 (default {SIZE})")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    try:
        n = write(given.out, given.split, given.count, seed=given.seed, biased=given.biased, size=given.size)
    except ValueError as e:
        parser.error(str(e))
    sys.stdout.write(json.dumps({"folder": str(given.out), "pictures": n}) + "\n")


if __name__ == "__main__":
    main()
