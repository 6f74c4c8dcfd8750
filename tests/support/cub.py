"""A tiny folder in the official layout of CUB-200-2011, drawn and not downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

CLASSES, EACH = 3, 4
ATTRIBUTES = (
    "has_bill_shape::hooked",
    "has_bill_shape::flat",
    "has_crest::yes",
    "has_wing_color::blue",
    "has_size::small",
)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def mimic(root: Path, classes: int = CLASSES, each: int = EACH) -> Path:
    """A folder as CUB-200-2011 has it, with drawn noise instead of photographs. Attribute 1 is in class 1, 2 in all others, 3 in classes 1 and 2,
    4 in none, 5 nobody could see."""
    folder = root / "CUB_200_2011"
    draw, number, rows = (
        np.random.default_rng(0),
        0,
        {k: [] for k in ("images", "labels", "split", "boxes", "parts", "attributes")},
    )
    names = [f"{c + 1:03d}.Bird_{c + 1}" for c in range(classes)]
    for c in range(classes):
        for i in range(each):
            number += 1
            name = f"{names[c]}/{i}.jpg"
            (folder / "images" / names[c]).mkdir(parents=True, exist_ok=True)
            Image.fromarray(draw.integers(0, 256, (40, 50, 3), dtype=np.uint8) // 2 + 40 * c).save(
                folder / "images" / name
            )
            rows["images"].append(f"{number} {name}")
            rows["labels"].append(f"{number} {c + 1}")
            rows["split"].append(f"{number} {int(i < each - 1)}")
            rows["boxes"].append(f"{number} 5.0 6.0 30.0 25.0")
            rows["parts"] += [f"{number} 1 10.5 12.0 1", f"{number} 2 0.0 0.0 0"]
            for a, present in enumerate((c == 0, c != 0, c < 2, False, True), 1):
                certainty = 1 if a == 5 else 4 - (i == 1)
                rows["attributes"].append(f"{number} {a} {int(present)} {certainty} 2.5")
    rows["attributes"][0] += " 0 0"  # as a few lines of the published file are
    write(folder / "images.txt", "\n".join(rows["images"]))
    write(folder / "classes.txt", "\n".join(f"{i + 1} {n}" for i, n in enumerate(names)))
    write(folder / "image_class_labels.txt", "\n".join(rows["labels"]))
    write(folder / "train_test_split.txt", "\n".join(rows["split"]))
    write(folder / "bounding_boxes.txt", "\n".join(rows["boxes"]))
    write(folder / "parts" / "parts.txt", "1 back\n2 left eye\n")
    write(folder / "parts" / "part_locs.txt", "\n".join(rows["parts"]))
    write(folder / "attributes" / "certainties.txt", "1 not visible\n2 guessing\n3 probably\n4 definitely\n")
    write(folder / "attributes" / "image_attribute_labels.txt", "\n".join(rows["attributes"]))
    write(root / "attributes.txt", "\n".join(f"{i + 1} {n}" for i, n in enumerate(ATTRIBUTES)))
    return folder
