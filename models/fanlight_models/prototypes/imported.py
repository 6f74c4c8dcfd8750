"""A published checkpoint as a bundle that can be served; where its prototypes come from is recovered from the training pictures, where one has them.

A prototype's parts are raw tokens of a training picture, so with the picture at hand each is found again: its cosine with its own token is 1. What is
not found is said to be unavailable; the picture that is nearest is never shown in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from fanlight_models.prototypes import bundle
from fanlight_models.prototypes.nearest import nearest
from fanlight_models.prototypes.projection import Batches, Source
from fanlight_models.prototypes.protovit import ProtoViT
from fanlight_models.prototypes.published import Published, Refused

SURE = 0.999
"""Cosine from which a part counts as found again."""
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
"""Of ImageNet, on the scale 0..255: what the authors' code prepares pictures with, after squashing them to a square."""
BATCH = 32
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
TERMS = "MIT, as its authors state"


def model(found: Published) -> ProtoViT:
    """Errors: Refused where the gates are not rounded: such a checkpoint was saved before its projection."""
    made = ProtoViT(
        found.backbone,
        found.classes,
        per_class=found.per_class,
        parts=found.parts,
        radius=found.radius,
        temperature=found.temperature,
    )
    made.load_state_dict(found.weights)
    gate = made.head.gate
    if not bool(((gate == 0) | (gate == 1)).all()):
        raise Refused(
            "The gates of the file are not rounded: it was saved before its projection, so its prototypes show nothing."
        )
    return made.eval().requires_grad_(False)


def write(out: Path, found: Published, names: Sequence[str], title: str, images: Path | None = None) -> int:
    """Writes the bundle; returns how many prototypes have their training picture, 0 without `images`.

    Args: images: the training pictures, a folder with a subfolder for each class, in the order of `names`, cropped as they were in training.
    Errors: Refused.
    """
    made = model(found)
    side = found.backbone.size
    preprocessing = {"size": [side, side], "mean": list(MEAN), "std": list(STD), "squash": True}
    description = f"ProtoViT with {len(made.head.own):,} prototypes of {found.parts} parts for {found.classes} classes, as its authors published it."
    if images is None:
        _without(out, made, names, title, description, preprocessing)
        return 0
    files = _files(images, names)
    labels = [c for _, c in files]

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for at in range(0, len(files), BATCH):
            some = files[at : at + BATCH]
            x = torch.stack([_prepared(_pixels(path, side)) for path, _ in some])
            yield x, torch.tensor([c for _, c in some])

    sources = recover(made, batches)
    near, _ = nearest(made, batches)
    known = bundle.kept(sources, near)
    bundle.write(
        out,
        made,
        name=title,
        description=description,
        terms=TERMS,
        classes=names,
        preprocessing=preprocessing,
        card=card(title, description, sources),
        sources=sources,
        labels=labels,
        pictures={n: _pixels(files[n][0], side) for n in known},
        names={n: files[n][0].name for n in known},
        nearest=near,
        quality={},
        about={"split": "train", "recovered": True},
    )
    return sum(s.image is not None for s in sources)


def recover(made: ProtoViT, batches: Batches) -> list[Source]:
    """Of each prototype the training picture in which every open part finds its own token again, the first of several; without a picture where
    there is none. How far projection moved it is not known."""
    head = made.head
    parts, gate = head.parts(), head.gate == 1
    count, size = gate.shape
    image = torch.full((count,), -1)
    token, order = torch.zeros(count, size, dtype=torch.int64), torch.zeros(count, size, dtype=torch.int64)
    cosine, active = torch.zeros(count, size), torch.zeros(count)
    first = 0
    with torch.inference_mode():
        for x, _ in batches():
            z = made.features.tokens(x)
            unit, seen = F.normalize(z, dim=-1), head(z)
            for b in range(len(x)):
                left = (image < 0).nonzero()[:, 0]
                if not len(left):
                    break
                best, where = torch.einsum("nd,mkd->mkn", unit[b], parts[left]).max(2)
                sure = ((best >= SURE) | ~gate[left]).all(1) & gate[left].any(1)
                j = left[sure]
                image[j], token[j], cosine[j] = first + b, where[sure], best[sure]
                order[j], active[j] = seen.order[b, j], seen.activation[b, j]
            first += len(x)
    return [
        Source(
            image=int(image[j]) if image[j] >= 0 else None,
            token=_where(token[j], gate[j], image[j]),
            order=_where(order[j], gate[j], image[j]),
            cosine=[float(c) if g and image[j] >= 0 else None for c, g in zip(cosine[j], gate[j], strict=True)],
            movement=None,
            self_activation=float(active[j]),
        )
        for j in range(count)
    ]


def _where(values: Tensor, gate: Tensor, image: Tensor) -> list[int | None]:
    return [int(v) if g and image >= 0 else None for v, g in zip(values, gate, strict=True)]


def card(title: str, description: str, sources: Sequence[Source] | None) -> str:
    """What is known of a published model, and what is not."""
    if sources is None:
        origin = (
            "Where its prototypes come from is not in the published file, so their training pictures cannot be shown."
        )
    else:
        there = sum(s.image is not None for s in sources)
        origin = (
            f"Where its prototypes come from is not in the published file. Of {there} of {len(sources)} it was recovered from a folder of training "
            f"pictures, by a cosine of {SURE} or more between every part and a token. The others are shown without a picture."
        )
    return f"""# {title}

{description}

- **From**: a published checkpoint of ProtoViT (Ma et al., NeurIPS 2024), read without running code of it.
- **Accuracy**: not measured here. Its authors state it beside the file.
- **Prototypes**: {origin}
- **Preparation**: squashed to a square, mean and standard deviation of ImageNet; birds were cropped to their box in training.
- **Terms**: {TERMS}.
"""


def _without(
    out: Path, made: ProtoViT, names: Sequence[str], title: str, description: str, preprocessing: dict[str, object]
) -> None:
    out.mkdir(parents=True, exist_ok=True)
    save_file({k: v.detach().contiguous() for k, v in made.state_dict().items()}, out / "weights.safetensors")
    (out / "classes.txt").write_text("".join(f"{n}\n" for n in names), "utf-8")
    (out / "prototypes.json").write_text(json.dumps({"format": 1, "prototypes": None}, indent=1) + "\n", "utf-8")
    (out / "card.md").write_text(card(title, description, None), "utf-8")
    head = {
        "format": bundle.FORMAT,
        "name": title,
        "task": bundle.TASK,
        "architecture": bundle.ARCHITECTURE,
        "description": description,
        "terms": TERMS,
    }
    parts = [
        bundle.table(head),
        "[config]",
        bundle.table(bundle.config(made)),
        "[preprocessing]",
        bundle.table(preprocessing),
    ]
    (out / "bundle.toml").write_text("\n".join(parts), "utf-8")


def _files(images: Path, names: Sequence[str]) -> list[tuple[Path, int]]:
    """(file, class) in the order of the folders. Errors: Refused."""
    folders = sorted(p for p in images.iterdir() if p.is_dir()) if images.is_dir() else []
    if len(folders) != len(names):
        raise Refused(f"{images} has {len(folders)} subfolders; {len(names)} classes need one each.")
    found = [
        (p, c) for c, folder in enumerate(folders) for p in sorted(folder.iterdir()) if p.suffix.lower() in SUFFIXES
    ]
    if not found:
        raise Refused(f"{images} holds no pictures.")
    return found


def _pixels(path: Path, side: int) -> bundle.Pixels:
    try:
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR), np.uint8)
    except (OSError, ValueError, Image.DecompressionBombError) as e:
        raise Refused(f"{path} is no picture that can be read: {e}") from e


def _prepared(pixels: bundle.Pixels) -> Tensor:
    x = torch.from_numpy(pixels.astype(np.float32)).permute(2, 0, 1)
    return (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None]
