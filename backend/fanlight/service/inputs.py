"""Inputs: decoded once, stored as canonical pixels under the digest of their content."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import Connection, Row, insert, select

from fanlight import decoding, images, wire
from fanlight.artifact import digest
from fanlight.blobs import Blobs
from fanlight.errors import InvalidField, unknown
from fanlight.service.context import Context, Visitor
from fanlight.service.recent import Recent
from fanlight.store.database import now
from fanlight.store.tables import input_, reference

THUMBNAIL = 256
MAX_SIDE = 2048

Box = tuple[float, float, float, float]

# A picture of 40 megapixels takes some 500 MB while it is stored, and 300 while a part of it is cut out. Cutting has
# two threads of its own rather than two places, because each thread that ever cut keeps much of that memory.
_storing = threading.BoundedSemaphore(2)
_cutting = ThreadPoolExecutor(2, thread_name_prefix="fanlight-cut")
_views = Recent(32 << 20)


def upload(context: Context, visitor: Visitor, name: str, blob: bytes) -> wire.Input:
    """Decodes, stores and registers a picture; the same content is the same input. Errors: UnreadableInput, TooLarge."""
    with _storing:
        return _store(context, visitor, name, blob)


def _store(context: Context, visitor: Visitor, name: str, blob: bytes) -> wire.Input:
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


def view(context: Context, row: Row[Any], box: Box | None, size: int) -> bytes:
    """PNG of the part `box` of the stored picture, its longer side `size` pixels."""
    box = box or (0.0, 0.0, float(row.width), float(row.height))
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= row.width and 0 <= y0 < y1 <= row.height):
        allowed = [0, 0, row.width, row.height]
        raise InvalidField("The box must lie inside the picture.", code="invalid_box", given=list(box), allowed=allowed)
    size = min(size, MAX_SIDE)
    kept = _views.get((context.blobs, row.blob, box, size))
    return kept or _cutting.submit(_view, context.blobs, row, box, size).result()


def _view(blobs: Blobs, row: Row[Any], box: Box, size: int) -> bytes:
    key = (blobs, row.blob, box, size)
    found = _views.get(key)  # the one before in the queue may have made it
    if found is None:
        found = _cut(blobs, row, box, size)
        _views.put(key, found)
    return found


def _cut(blobs: Blobs, row: Row[Any], box: Box, size: int) -> bytes:
    w, h = box[2] - box[0], box[3] - box[1]
    scale = size / max(w, h)
    # The stored thumbnail is enough where it has two samples a side for each pixel made, and a hundredth of the work.
    enough = 2 * scale * max(row.width, row.height) <= THUMBNAIL
    pixels = images.load(blobs.get(row.thumbnail if enough else row.blob))
    across, down = pixels.shape[1] / row.width, pixels.shape[0] / row.height
    part = (box[0] * across, box[1] * down, box[2] * across, box[3] * down)
    return images.png(images.crop_resize(pixels, part, (max(1, round(h * scale)), max(1, round(w * scale)))))


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
