"""Pictures of stored explanations, drawn from their artifacts alone: cards, overlays, previews, the share page and its file."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import orjson
from PIL import Image
from sqlalchemy import Connection

from fanlight import images, wire
from fanlight.artifact import Artifact
from fanlight.blobs import Blobs
from fanlight.decoding import Pixels
from fanlight.drawing import page, pictures, scene
from fanlight.drawing.preview import preview
from fanlight.errors import Conflict, FanlightError, NotFound
from fanlight.service import shares
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find
from fanlight.service.recent import Recent

CARD = 320
# A picture of 40 megapixels takes 120 MB and more while it is drawn: as many at a time as uploads.
_drawing = threading.BoundedSemaphore(2)
_cards = Recent(32 << 20)
Frozen = Mapping[str, Any]


def card(context: Context, visitor: Visitor, ident: str) -> bytes:
    """The picture beside its map. Errors: not_finished."""
    record = _frozen(context, visitor, ident)
    return _card(context.blobs, record["blobs"]["picture"], record["blobs"]["map"], orjson.dumps(record["edits"]))


def overlay(context: Context, visitor: Visitor, ident: str, size: int) -> bytes:
    record = _frozen(context, visitor, ident)
    with _drawing:
        pixels, drawn = _seen(context.blobs, record)
        return images.png(scene.overlay(pixels, drawn, size=size))


def social(context: Context, visitor: Visitor, ident: str) -> bytes:
    return _preview(context.blobs, _frozen(context, visitor, ident), {})


def export(context: Context, visitor: Visitor, ids: list[str], view: Frozen | None = None) -> str:
    """One HTML file with everything in it. Args: view: what was looked at, as of a share."""

    def act(conn: Connection) -> dict[str, Any]:
        rows = [find(conn, visitor.workspace, i) for i in ids]
        for row in rows:
            if row.state != "succeeded":
                raise Conflict(
                    f"Only a finished explanation can be exported; this one is {row.state}.",
                    code="not_finished",
                    given=row.id,
                )
        return shares.snapshot(context, conn, rows, view=dict(view or {}), expires=None)

    snapshot = context.db.read(act)

    def embedded(n: int, name: str) -> bytes | None:
        try:
            return drawn(context.blobs, snapshot, n, name)
        except NotFound:
            return None

    return page.share_page(snapshot, maps=_maps(context.blobs, snapshot), base="", token_path="", images=embedded)


def shared(context: Context, snapshot: Frozen, *, base: str, path: str) -> str:
    """The page of a share at `path`."""
    return page.share_page(snapshot, maps=_maps(context.blobs, snapshot), base=base, token_path=path)


def drawn(blobs: Blobs, snapshot: Frozen, n: int, name: str) -> bytes:
    """A picture of the page of a share: of record `n`, one of `pictures.NAMES` or preview.png. Errors: NotFound."""
    if not 0 <= n < len(snapshot["explanations"]):
        raise NotFound("There is no such picture.")
    record, view = snapshot["explanations"][n], snapshot.get("view") or {}
    if name == "preview.png":
        return _preview(blobs, record, view)
    curves = record["blobs"]["curves"]
    with _drawing:
        pixels, over = _parts(blobs, record)
        try:
            known = Artifact.from_bytes(blobs.get(curves)) if curves else None
            return pictures.share_image(name, record, pixels, over, known, view)
        except KeyError:
            raise NotFound("There is no such picture.") from None


def _preview(blobs: Blobs, record: Frozen, view: Mapping[str, Any]) -> bytes:
    known = wire.Explanation.model_validate({k: v for k, v in record.items() if k in wire.Explanation.model_fields})
    with _drawing:
        pixels, over = _seen(blobs, record)
        return images.png(preview(known, pixels, over, style=scene.Style.of(view)))


def _frozen(context: Context, visitor: Visitor, ident: str) -> dict[str, Any]:
    def act(conn: Connection) -> dict[str, Any]:
        row = find(conn, visitor.workspace, ident)
        if row.state != "succeeded":
            raise Conflict(f"This explanation has no picture: it is {row.state}.", code="not_finished", given=ident)
        return shares.frozen(context, conn, row)

    return context.db.read(act)


def _maps(blobs: Blobs, snapshot: Frozen) -> list[Artifact | None]:
    """The map of each record; None where its blob is gone, which the page then says."""
    found: list[Artifact | None] = []
    for record in snapshot["explanations"]:
        try:
            found.append(Artifact.from_bytes(blobs.get(record["blobs"]["map"])))
        except FanlightError:
            found.append(None)
    return found


def _parts(blobs: Blobs, record: Frozen) -> tuple[Pixels, Artifact]:
    return images.load(blobs.get(record["blobs"]["picture"])), Artifact.from_bytes(blobs.get(record["blobs"]["map"]))


def _seen(blobs: Blobs, record: Frozen) -> tuple[Pixels, Artifact]:
    """The picture as it was explained, with its edits, and the map."""
    pixels, over = _parts(blobs, record)
    return _edited(pixels, record["edits"]), over


def _edited(pixels: Pixels, edits: list[dict[str, Any]]) -> Pixels:
    return images.apply_edits(pixels, [e for e in edits if "mask_region" in e])


def _card(blobs: Blobs, picture: str, over: str, edits: bytes) -> bytes:
    key = (blobs, picture, over, edits)
    if (found := _cards.get(key)) is not None:
        return found
    with _drawing:
        if (found := _cards.get(key)) is not None:  # the one before may have drawn it
            return found
        pixels = _edited(images.load(blobs.get(picture)), orjson.loads(edits))
        pair = scene.beside(pixels, Artifact.from_bytes(blobs.get(over)), size=CARD)
        # A list shows dozens: 256 colours with dithering weigh a third, and nobody reads values off a card.
        made = images.png(pair.quantize(256, Image.Quantize.FASTOCTREE), level=6)
        _cards.put(key, made)
        return made
