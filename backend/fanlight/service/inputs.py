"""Inputs: decoded once, stored as canonical pixels under the digest of their content."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

from PIL import Image
from sqlalchemy import Connection, Row, insert, select, update

from fanlight import decoding, images, wire
from fanlight.artifact import digest
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


def upload(context: Context, visitor: Visitor, name: str, blob: bytes, *, small: bool = False) -> wire.Input:
    """Decodes, stores and registers a picture; the same content is the same input. When this returns, its pixels are durable.

    Args:
        small: makes the thumbnail at once, for pictures that stand in a list. Otherwise the first who looks at it has it made.

    Errors: UnreadableInput, TooLarge.
    """
    with _storing:
        return _store(context, visitor, name, blob, small)


def _store(context: Context, visitor: Visitor, name: str, blob: bytes, small: bool) -> wire.Input:
    limits = context.settings
    picture = decoding.decode(
        blob, max_bytes=limits.max_upload_mb * 2**20, max_pixels=limits.max_megapixels * 1_000_000
    )
    return save(
        context,
        visitor,
        ident=images.canonical_digest(picture.pixels),
        kind="image",
        name=_clean(name),
        notes=picture.notes,
        pixels=picture.pixels,
        original=digest(blob),
        small=small,
    )


def save(
    context: Context,
    visitor: Visitor,
    *,
    ident: str,
    kind: Literal["image", "prompt"],
    name: str,
    notes: list[str],
    pixels: images.Pixels,
    original: str,
    small: bool,
) -> wire.Input:
    """Stores what is looked at of an input and registers it, once. Args: original: digest of what it was made from; of a prompt that is a blob."""
    known = context.db.read(lambda c: _row(c, visitor.workspace, ident))
    if known is not None:
        return to_wire(context, known)
    stored = context.blobs.put(images.encode(pixels))
    little = context.blobs.put(images.thumbnail(pixels, THUMBNAIL)) if small else ""
    height, width = pixels.shape[:2]

    def act(conn: Connection) -> Row[Any]:
        found = _row(conn, visitor.workspace, ident)
        if found is None:
            conn.execute(
                insert(input_).values(
                    workspace=visitor.workspace,
                    id=ident,
                    principal=visitor.principal,
                    kind=kind,
                    width=width,
                    height=height,
                    name=name,
                    notes=notes,
                    blob=stored,
                    thumbnail=little,
                    original=original,
                    created=now(conn),
                )
            )
            visitor.did(conn, "input.create", ident, name=name)
            for d in filter(None, (stored, little, original if kind == "prompt" else "")):
                refer(conn, visitor.workspace, d, f"input:{ident}")
            found = _row(conn, visitor.workspace, ident)
            assert found is not None
        return found

    return to_wire(context, context.db.write(act))


def find(conn: Connection, workspace: str, ident: str) -> Row[Any]:
    row = _row(conn, workspace, ident)
    if row is None:
        raise unknown("input", ident, [], hint="Upload the picture first: POST /api/v1/inputs.")
    return row


def refer(conn: Connection, workspace: str, blob: str, owner: str) -> None:
    """Notes that `owner` needs a blob: it is readable through that row, and kept."""
    known = conn.execute(
        select(reference.c.digest).where(
            reference.c.workspace == workspace, reference.c.digest == blob, reference.c.owner == owner
        )
    ).first()
    if known is None:
        conn.execute(insert(reference).values(digest=blob, owner=owner, workspace=workspace))


def thumbnail(context: Context, row: Row[Any]) -> bytes:
    """PNG, its longer side at most THUMBNAIL; made and stored for the first who asks for it."""
    if row.thumbnail:
        return context.blobs.get(row.thumbnail)
    return _kept((context.blobs, row.blob, "small"), lambda: _shrunk(context, row))


def thumbnail_webp(context: Context, row: Row[Any]) -> bytes:
    """The thumbnail for lists."""
    small = thumbnail(context, row)
    return _kept((context.blobs, row.blob, "webp"), lambda: images.webp(Image.fromarray(images.load(small))))


def _shrunk(context: Context, row: Row[Any]) -> bytes:
    blob = images.thumbnail(images.load(context.blobs.get(row.blob)), THUMBNAIL)
    stored = context.blobs.put(blob)

    def save(conn: Connection) -> None:
        mine = (input_.c.workspace == row.workspace) & (input_.c.id == row.id)
        conn.execute(update(input_).where(mine).values(thumbnail=stored))
        refer(conn, row.workspace, stored, f"input:{row.id}")

    context.db.write(save)
    return blob


def view(context: Context, row: Row[Any], box: Box | None, size: int, *, exact: bool = True) -> bytes:
    """The part `box` of the stored picture: PNG whose longer side is `size` pixels, or, where not `exact`, JPEG never enlarged."""
    box = box or (0.0, 0.0, float(row.width), float(row.height))
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= row.width and 0 <= y0 < y1 <= row.height):
        allowed = [0, 0, row.width, row.height]
        raise InvalidField("The box must lie inside the picture.", code="invalid_box", given=list(box), allowed=allowed)
    size = min(size, MAX_SIDE)
    if not exact:  # a browser enlarges faster than it loads
        size = max(1, min(size, round(max(x1 - x0, y1 - y0))))
    return _kept((context.blobs, row.blob, box, size, exact), lambda: _cut(context, row, box, size, exact))


def _kept(key: Hashable, make: Callable[[], bytes]) -> bytes:
    """What was made before, or what `make` gives in one of the two threads."""

    def once() -> bytes:
        found = _views.get(key)  # the one before in the queue may have made it
        if found is None:
            found = make()
            _views.put(key, found)
        return found

    return _views.get(key) or _cutting.submit(once).result()


def _cut(context: Context, row: Row[Any], box: Box, size: int, exact: bool) -> bytes:
    w, h = box[2] - box[0], box[3] - box[1]
    scale = size / max(w, h)
    # The thumbnail is enough where it has two samples a side for each pixel made, and a hundredth of the work.
    if 2 * scale * max(row.width, row.height) <= THUMBNAIL:
        pixels = images.load(context.blobs.get(row.thumbnail) if row.thumbnail else _shrunk(context, row))
    else:
        pixels = images.load(context.blobs.get(row.blob))
    across, down = pixels.shape[1] / row.width, pixels.shape[0] / row.height
    part = (box[0] * across, box[1] * down, box[2] * across, box[3] * down)
    made = images.crop_resize(pixels, part, (max(1, round(h * scale)), max(1, round(w * scale))))
    return images.png(made) if exact else images.jpeg(made)


def to_wire(context: Context, row: Row[Any]) -> wire.Input:
    base = f"{context.settings.root_path}/api/v1/inputs/{row.id}"
    return wire.Input(
        id=row.id,
        kind=row.kind,
        **_said(context, row),
        width=row.width,
        height=row.height,
        name=row.name,
        notes=row.notes,
        created=row.created / 1e6,
        url=base + "/image.png",
        thumbnail=base + "/thumbnail.webp",
    )


def _said(context: Context, row: Row[Any]) -> dict[str, Any]:
    """Of a prompt its words and its picture, from what it was made from."""
    if row.kind != "prompt":
        return {}
    content = json.loads(context.blobs.get(row.original))
    return {"text": content["text"], "picture": content["picture"]}


def _row(conn: Connection, workspace: str, ident: str) -> Row[Any] | None:
    return conn.execute(select(input_).where(input_.c.workspace == workspace, input_.c.id == ident)).first()


def _clean(name: str) -> str:
    """The last part of a file name, printable, for display only: it never becomes a path."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(ch for ch in last if ch.isprintable())[:200] or "picture"
