"""Inputs: decoded once, stored as canonical pixels under the digest of their content."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from fanlight import decoding, images, wire
from fanlight.artifact import digest
from fanlight.blobs import Blobs
from fanlight.errors import InvalidField, unknown
from fanlight.service.context import Context, Visitor
from fanlight.store.database import now
from fanlight.store.tables import input_, reference

THUMBNAIL = 256
MAX_SIDE = 2048


def upload(context: Context, visitor: Visitor, name: str, blob: bytes) -> wire.Input:
    """Decodes, stores and registers a picture; the same content is the same input. Errors: UnreadableInput, TooLarge."""
    limits = context.settings
    picture = decoding.decode(
        blob, max_bytes=limits.max_upload_mb * 2**20, max_pixels=limits.max_megapixels * 1_000_000
    )
    ident = images.canonical_digest(picture.pixels)
    known = context.db.read(lambda c: _row(c, visitor.workspace, ident))
    if known is not None:
        return to_wire(context, known)
    stored = context.blobs.put(images.encode(picture.pixels))
    small = context.blobs.put(images.thumbnail(picture.pixels, THUMBNAIL))
    height, width = picture.pixels.shape[:2]

    def save(conn: Connection) -> Row[Any]:
        found = _row(conn, visitor.workspace, ident)
        if found is None:
            conn.execute(
                insert(input_).values(
                    workspace=visitor.workspace,
                    id=ident,
                    principal=visitor.principal,
                    kind="image",
                    width=width,
                    height=height,
                    name=_clean(name),
                    notes=picture.notes,
                    blob=stored,
                    thumbnail=small,
                    original=digest(blob),
                    created=now(conn),
                )
            )
            for d in (stored, small):
                refer(conn, visitor.workspace, d, f"input:{ident}")
            found = _row(conn, visitor.workspace, ident)
            assert found is not None
        return found

    return to_wire(context, context.db.write(save))


def find(conn: Connection, workspace: str, ident: str) -> Row[Any]:
    row = _row(conn, workspace, ident)
    if row is None:
        raise unknown("input", ident, [], hint="Upload the picture first: POST /api/v1/inputs.")
    return row


def refer(conn: Connection, workspace: str, blob: str, owner: str) -> None:
    """Notes that `owner` needs a blob: it is readable through that row, and kept."""
    known = conn.execute(
        select(reference.c.digest).where(reference.c.digest == blob, reference.c.owner == owner)
    ).first()
    if known is None:
        conn.execute(insert(reference).values(digest=blob, owner=owner, workspace=workspace))


def view(context: Context, row: Row[Any], box: tuple[float, float, float, float] | None, size: int) -> bytes:
    """PNG of the part `box` of the stored picture, its longer side `size` pixels."""
    box = box or (0.0, 0.0, float(row.width), float(row.height))
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= row.width and 0 <= y0 < y1 <= row.height):
        allowed = [0, 0, row.width, row.height]
        raise InvalidField("The box must lie inside the picture.", code="invalid_box", given=list(box), allowed=allowed)
    return _view(context.blobs, row.blob, box, min(size, MAX_SIDE))


@lru_cache(maxsize=256)
def _view(blobs: Blobs, blob: str, box: tuple[float, float, float, float], size: int) -> bytes:
    import io

    w, h = box[2] - box[0], box[3] - box[1]
    scale = size / max(w, h)
    shape = (max(1, round(h * scale)), max(1, round(w * scale)))
    out = io.BytesIO()
    images.crop_resize(images.load(blobs.get(blob)), box, shape).save(out, "PNG", compress_level=1)
    return out.getvalue()


def to_wire(context: Context, row: Row[Any]) -> wire.Input:
    base = f"{context.settings.root_path}/api/v1/inputs/{row.id}"
    return wire.Input(
        id=row.id,
        width=row.width,
        height=row.height,
        name=row.name,
        notes=row.notes,
        created=row.created / 1e6,
        url=base + "/image.png",
        thumbnail=base + "/thumbnail.png",
    )


def _row(conn: Connection, workspace: str, ident: str) -> Row[Any] | None:
    return conn.execute(select(input_).where(input_.c.workspace == workspace, input_.c.id == ident)).first()


def _clean(name: str) -> str:
    """The last part of a file name, printable, for display only: it never becomes a path."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(ch for ch in last if ch.isprintable())[:200] or "picture"
