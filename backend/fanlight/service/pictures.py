"""Pictures of stored explanations, drawn from their artifacts alone: cards, overlays, previews, the share page and its file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson
from PIL import Image
from sqlalchemy import Connection

from fanlight import images, wire
from fanlight.artifact import Artifact
from fanlight.blobs import Blobs
from fanlight.drawing import page, preview, renderer, scene
from fanlight.errors import Conflict, NotFound
from fanlight.service import shares
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find

CARD = 320
CURVES = 640


def card(context: Context, visitor: Visitor, ident: str) -> bytes:
    """The picture beside its map; of an unfinished record the picture alone."""
    record = _frozen(context, visitor, ident)
    return _card(context.blobs, _key(record))


def overlay(context: Context, visitor: Visitor, ident: str, size: int) -> bytes:
    return overlay_of(context, _frozen(context, visitor, ident), {}, size)


def social(context: Context, visitor: Visitor, ident: str) -> bytes:
    return preview_of(context, _frozen(context, visitor, ident), {})


def export(context: Context, visitor: Visitor, ids: list[str]) -> str:
    """One HTML file with everything in it."""

    def act(conn: Connection) -> dict[str, Any]:
        return shares.snapshot(context, conn, [find(conn, visitor.workspace, i) for i in ids], view={}, expires=None)

    return file_of(context, context.db.read(act))


def file_of(context: Context, snapshot: Mapping[str, Any]) -> str:
    return page.share_page(snapshot, base="", token_path="", images=lambda n, name: drawn(context, snapshot, n, name))


def drawn(context: Context, snapshot: Mapping[str, Any], n: int, name: str) -> bytes:
    """A picture of a share page: of record `n`, one of overlay.png, picture.png, curves.png, preview.png."""
    records = snapshot["explanations"]
    if not 0 <= n < len(records):
        raise NotFound("There is no such picture.", code="not_found")
    record, view = records[n], snapshot.get("view") or {}
    match name:
        case "overlay.png":
            return overlay_of(context, record, view, 768)
        case "picture.png":
            return _picture(context.blobs, _key(record), 768)
        case "curves.png":
            return _curves(context.blobs, record["blobs"]["curves"])
        case "preview.png":
            return preview_of(context, record, view)
    raise NotFound("There is no such picture.", code="not_found")


def overlay_of(context: Context, record: Mapping[str, Any], view: Mapping[str, Any], size: int) -> bytes:
    pixels, artifact = _parts(context.blobs, record)
    return _png(scene.overlay(pixels, artifact, size=size, style=scene.Style.of(view)))


def preview_of(context: Context, record: Mapping[str, Any], view: Mapping[str, Any]) -> bytes:
    pixels, artifact = _parts(context.blobs, record)
    known = wire.Explanation.model_validate({k: v for k, v in record.items() if k in wire.Explanation.model_fields})
    return _png(preview.preview(known, pixels, artifact, style=scene.Style.of(view)))


def _frozen(context: Context, visitor: Visitor, ident: str) -> dict[str, Any]:
    def act(conn: Connection) -> dict[str, Any]:
        row = find(conn, visitor.workspace, ident)
        if row.state != "succeeded":
            raise Conflict(f"This explanation has no picture: it is {row.state}.", code="not_finished", given=ident)
        return shares.frozen(context, conn, row)

    return context.db.read(act)


Key = tuple[str, str, str]


def _key(record: Mapping[str, Any]) -> Key:
    """(picture blob, map blob, edits): what a drawing depends on."""
    return record["blobs"]["picture"], record["blobs"]["map"], orjson.dumps(record["edits"]).decode()


def _load(blobs: Blobs, key: Key) -> tuple[Any, Artifact]:
    picture, drawing, edits = key
    pixels = images.load(blobs.get(picture))
    return images.apply_edits(pixels, [e for e in orjson.loads(edits) if "mask_region" in e]), Artifact.from_bytes(
        blobs.get(drawing)
    )


def _parts(blobs: Blobs, record: Mapping[str, Any]) -> tuple[Any, Artifact]:
    return _load(blobs, _key(record))


@lru_cache(maxsize=512)
def _card(blobs: Blobs, key: Key) -> bytes:
    pixels, artifact = _load(blobs, key)
    return _png(scene.beside(pixels, artifact, size=CARD))


@lru_cache(maxsize=64)
def _picture(blobs: Blobs, key: Key, size: int) -> bytes:
    pixels, artifact = _load(blobs, key)
    return _png(scene.picture(pixels, artifact, size=size))


@lru_cache(maxsize=64)
def _curves(blobs: Blobs, digest: str | None) -> bytes:
    if digest is None:
        raise NotFound("This record has no curves.", code="not_found")
    artifact = Artifact.from_bytes(blobs.get(digest))
    return _png(renderer(artifact.kind).image(artifact, size=CURVES))


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=3)
    return out.getvalue()
