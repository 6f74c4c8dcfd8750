"""The pictures of the documentation: `make figures` draws, for each method, a real map of a real picture by a model that ships with Fanlight.

Methods that fit the default model explain a photograph; what does not fit it explains a drawing of the field guide by the field guide's
network. Methods of other tasks explain the bundle of their task that ships. What fits none has no picture, and its page says why. The captions
between `<!-- figure -->` and `<!-- /figure -->` are written here too.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from skimage import data

from fanlight import bundles
from fanlight.adapters import loader
from fanlight.adapters.base import takes
from fanlight.bench import _explained, world
from fanlight.drawing import lettering, renderer, scene
from fanlight.drawing.figure import ends
from fanlight.drawing.places import short
from fanlight.explainers.base import Drawing
from fanlight.explainers.registry import registry
from fanlight_models.worlds import fieldguide

DOCS = Path(__file__).resolve().parent.parent / "docs"
LARGEST = 30_000  # bytes of a picture
SIDE, GAP, BELOW = 240, 8, 46
INK, PAPER, LINE = "#1B1D21", "#FFFFFF", "#E4E4DF"
PHOTO = "Chelsea, a photograph by Stéfan van der Walt (CC0, from scikit-image)"
SCENE = "A drawing of the [field guide](../data/field-guide.md)"
OTHERS = {
    "concept-bottleneck": "scbm-field-guide",
    "prototype-classifier": "prototypes-field-guide",
    "text-to-image": "scenes-exact",
}
PROMPT = "a red circle left of a blue cross"
WIDE = 2 * SIDE + GAP  # of a drawing that is no map
HEADER = ("grad-cam", "integrated-gradients", "occlusion")  # in the picture of the README


def drawn(pixels: Any, artifact: Any) -> list[Image.Image]:
    """What the model saw, the map, the map over the picture."""
    made = [
        scene.picture(pixels, artifact, size=SIDE),
        renderer(artifact.kind).image(artifact, size=SIDE),
        scene.overlay(pixels, artifact, size=SIDE),
    ]
    return [tile.convert("RGB") for tile in made]


def figure(tiles: list[Image.Image], artifact: Any) -> Image.Image:
    """The tiles in a row, and below them the scale with its ends and unit."""
    width = len(tiles) * SIDE + (len(tiles) - 1) * GAP
    canvas = Image.new("RGB", (width, SIDE + BELOW), PAPER)
    for n, tile in enumerate(tiles):
        canvas.paste(tile, (n * (SIDE + GAP), 0))
    scale(canvas, SIDE + GAP, SIDE + 6, SIDE, artifact)
    return canvas


def scale(canvas: Image.Image, left: int, top: int, width: int, artifact: Any) -> None:
    legend = renderer(artifact.kind).legend(artifact)
    draw = ImageDraw.Draw(canvas)
    last = len(legend.stops) - 1
    for x in range(width):
        draw.line((left + x, top, left + x, top + 9), legend.stops[round(x / (width - 1) * last)])
    draw.rectangle((left, top, left + width - 1, top + 9), outline=LINE)
    face, (lo, hi) = lettering.font(13), ends(legend)
    draw.text((left, top + 14), lettering.drawable(lo), INK, face)
    draw.text((left + width, top + 14), lettering.drawable(hi), INK, face, anchor="ra")


def save(image: Image.Image, path: Path) -> None:
    """As WebP of the best quality that stays below LARGEST."""
    for quality in range(90, 20, -10):
        out = io.BytesIO()
        image.save(out, "WEBP", quality=quality, method=6)
        if len(out.getvalue()) <= LARGEST:
            path.write_bytes(out.getvalue())
            return
    raise SystemExit(f"{path.name} does not fit into {LARGEST} bytes")


def caption(name: str, words: str) -> None:
    """Writes what stands at the figure of a method's page."""
    page = DOCS / "methods" / f"{name}.md"
    text, count = re.subn(
        r"<!-- figure -->.*?<!-- /figure -->",
        lambda _: f"<!-- figure -->\n\n{words}\n\n<!-- /figure -->",
        page.read_text(),
        flags=re.DOTALL,
    )
    if count != 1:
        raise SystemExit(f"{page.name} needs one place for its figure: <!-- figure --> ... <!-- /figure -->")
    page.write_text(text)


def main() -> None:
    torch.set_num_threads(1)
    photo = np.asarray(data.chelsea())
    bird = fieldguide.draw(fieldguide.split("test", 1)[0], 224).image
    sources = [
        (_explained.default_model(), photo, PHOTO),
        (loader.load(loader.source(world.default())), bird, SCENE),
    ]
    (DOCS / "figures").mkdir(exist_ok=True)
    header: dict[str, Any] = {}
    for method in registry().values():
        params = method.Params()
        if method.accepts in OTHERS:
            other(method, bird)
            continue
        fitting = [s for s in sources if _explained.unfit(method, params, s[0]) is None]
        if not fitting:
            reason = _explained.unfit(method, params, sources[0][0])
            caption(method.name, f"*There is no picture here: no model that ships with Fanlight fits. {reason}*")
            continue
        model, pixels, about = fitting[0]
        one = _explained.item(model, pixels)
        artifact = next(a for a in _explained.explained(method, params, model, one) if a.kind == "image-map")
        tiles = drawn(pixels, artifact)
        save(figure(tiles, artifact), DOCS / "figures" / f"{method.name}.webp")
        header[method.name] = (tiles, artifact, method)
        target = short(one.target.name(model.classes))
        sentence = renderer(artifact.kind).sentence(artifact, target=target)
        alt = f"The picture, the map of {method.title}, and the map over the picture. {sentence}"
        caption(
            method.name,
            f"![{alt}](../figures/{method.name}.webp)\n\n"
            f"*{about}; asked about “{target}” of {model.name}, at the method's defaults. What the model saw, the map with its scale "
            f"(unit: {artifact.meta['unit']}), the map over the picture.*",
        )
    save(overview(header), DOCS / "figures" / "overview.webp")


def other(method: Any, bird: Any) -> None:
    """Of a method whose result is no map: the picture, and the drawing that pages and reports show."""
    place = next((p for p in bundles.shipped() if p.name == OTHERS[method.accepts]), None)
    if place is None:
        caption(
            method.name,
            f"*There is no picture here: no model that ships with Fanlight fits. It takes a {method.accepts}.*",
        )
        return
    model = loader.load(loader.source(place))
    asked = takes(model.task) == "prompt"
    one: Any = Drawing(PROMPT, None, 0, "figure") if asked else _explained.item(model, bird)
    artifact = _explained.explained(method, method.Params(), model, one)[0]
    drawing = renderer(artifact.kind).image(artifact, size=2 * WIDE).convert("RGB")
    drawing = drawing.resize((WIDE, round(WIDE * drawing.height / drawing.width)), Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", (SIDE + GAP + WIDE, max(SIDE, drawing.height)), PAPER)
    seen = artifact.arrays["picture"] if asked else one.image
    canvas.paste(
        Image.fromarray(seen).resize((SIDE, SIDE), Image.Resampling.NEAREST if asked else Image.Resampling.BICUBIC),
        (0, 0),
    )
    canvas.paste(drawing, (SIDE + GAP, 0))
    save(canvas, DOCS / "figures" / f"{method.name}.webp")
    target = "the picture" if asked else short(one.target.name(model.classes))
    sentence = renderer(artifact.kind).sentence(artifact, target=target)
    about = f"Drawn for “{PROMPT}”" if asked else f"{SCENE}; asked about “{target}”"
    caption(
        method.name,
        f"![The picture, and what {method.title} says of it. {sentence}](../figures/{method.name}.webp)\n\n"
        f"*{about}, by {model.name}, at the method's defaults.*",
    )


def overview(made: dict[str, Any]) -> Image.Image:
    """The picture and three maps over it, each with its method's name."""
    width = (1 + len(HEADER)) * SIDE + len(HEADER) * GAP
    canvas = Image.new("RGB", (width, SIDE + BELOW + 20), PAPER)
    draw = ImageDraw.Draw(canvas)
    canvas.paste(made[HEADER[0]][0][0], (0, 0))
    for n, name in enumerate(HEADER, 1):
        tiles, artifact, method = made[name]
        left = n * (SIDE + GAP)
        canvas.paste(tiles[2], (left, 0))
        scale(canvas, left, SIDE + 26, SIDE, artifact)
        draw.text((left, SIDE + 4), lettering.drawable(method.title), INK, lettering.font(15))
    return canvas


if __name__ == "__main__":
    main()
