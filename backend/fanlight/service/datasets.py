"""Data sets: named, versioned collections of inputs. Picture folders (one subfolder per label) and the photographs that scikit-image ships."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog
from sqlalchemy import Connection, Row, delete, func, insert, select

from fanlight import wire
from fanlight.artifact import canonical, digest
from fanlight.errors import BadRequest, InvalidField
from fanlight.service import inputs, offers
from fanlight.service.context import SYSTEM, Context, Visitor
from fanlight.service.search import position
from fanlight.service.shelf import absent
from fanlight.settings import Settings
from fanlight.store.database import now
from fanlight.store.tables import dataset, input_, sample, unreadable

log = structlog.get_logger()

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".bmp", ".gif")
PHOTOGRAPHS = "photographs"
WORLDS = ("field-guide",)
"""Drawn here: `service.worlds` says what is known of them."""
# File and what it shows. Terms as scikit-image states them: CC0 or public domain, or no known copyright restrictions.
SHIPPED = (
    ("chelsea.png", "Chelsea the cat", "CC0, Stefan van der Walt"),
    ("coffee.png", "A cup of coffee", "CC0, Rachel Michetti"),
    ("astronaut.png", "Eileen Collins", "public domain, NASA"),
    ("rocket.jpg", "A rocket launch", "public domain, SpaceX"),
    ("camera.png", "A man with a camera", "CC0, Lav Varshney"),
    ("clock_motion.png", "A wall clock, blurred by motion", "public domain, Stefan van der Walt"),
    ("coins.png", "Greek coins", "no known copyright restrictions, Brooklyn Museum"),
    ("hubble_deep_field.jpg", "Hubble deep field", "public domain, NASA"),
    ("retina.jpg", "A retina", "CC0, Mikael Häggström"),
    ("gravel.png", "Gravel", "CC0, CC0Textures"),
)


class File(Protocol):
    """What a sample is read from: a path, or what makes its bytes."""

    @property
    def name(self) -> str: ...

    def read_bytes(self) -> bytes: ...


@dataclass(frozen=True)
class Source:
    """Files of a data set: (name, label or None, file), in order."""

    id: str
    name: str
    description: str
    terms: str
    files: tuple[tuple[str, str | None, File], ...]


def photographs() -> Source | None:
    """The photographs inside the scikit-image package, if it is installed; the package itself is not imported."""
    spec = importlib.util.find_spec("skimage")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "data"
    files = tuple((title, None, folder / name) for name, title, _ in SHIPPED if (folder / name).exists())
    terms = "; ".join(f"{title}: {t}" for _, title, t in SHIPPED)
    return Source(PHOTOGRAPHS, "Photographs", "Real photographs that ship with scikit-image.", terms, files)


def folder(name: str, path: Path) -> Source:
    """An ImageFolder: pictures in subfolders named by their label, or directly in the folder without one."""
    if not path.is_dir():
        raise InvalidField(
            f"“{path}” is not a folder.",
            code="invalid_dataset",
            given=str(path),
            hint="FANLIGHT_DATASETS=name=folder,...",
        )
    found = sorted(p for p in path.rglob("*") if p.is_file() and p.suffix.lower() in SUFFIXES)
    files = tuple((p.name, p.parent.relative_to(path).parts[0] if p.parent != path else None, p) for p in found)
    return Source(_slug(name), name, f"{len(files)} pictures from a folder.", "", files)


def sources(settings: Settings) -> Iterator[Source]:
    if (shipped := photographs()) is not None:
        yield shipped
    for pair in Settings.listed(settings.datasets):
        name, _, path = pair.partition("=")
        yield folder(name or Path(path).name, Path(path).expanduser())


def register(context: Context, source: Source, progress: Callable[[int, int], None] | None = None) -> wire.Dataset:
    """Decodes every file once, skips and counts what cannot be read, and stores a new version where the content has changed."""
    items: list[tuple[str, str | None, str]] = []
    broken: list[dict[str, Any]] = []
    for n, (name, label, path) in enumerate(source.files):
        try:
            items.append((name, label, inputs.upload(context, SYSTEM, name, path.read_bytes(), small=True).id))
        except (BadRequest, OSError) as e:
            why = e.message if isinstance(e, BadRequest) else f"The file cannot be read: {e.strerror}."
            broken.append({"position": len(broken), "name": name[:300], "label": label, "reason": why})
            log.warning("sample skipped", dataset=source.id, file=path.name, problem=str(e))
        if progress is not None:
            progress(n + 1, len(source.files))
    content = digest(canonical(sorted(i[2] for i in items)))

    def save(conn: Connection) -> wire.Dataset:
        here = {"workspace": SYSTEM.workspace, "dataset": source.id}
        conn.execute(delete(unreadable).where(*(unreadable.c[name] == value for name, value in here.items())))
        if broken:
            conn.execute(insert(unreadable), [{**here, **b} for b in broken])
        old = conn.execute(
            select(dataset).where(dataset.c.workspace == SYSTEM.workspace, dataset.c.id == source.id)
        ).first()
        if old is None or old.digest != content:
            conn.execute(delete(dataset).where(dataset.c.workspace == SYSTEM.workspace, dataset.c.id == source.id))
            conn.execute(delete(sample).where(sample.c.workspace == SYSTEM.workspace, sample.c.dataset == source.id))
            conn.execute(
                insert(dataset).values(
                    workspace=SYSTEM.workspace,
                    id=source.id,
                    version=(old.version + 1) if old else 1,
                    name=source.name,
                    digest=content,
                    count=len(items),
                    unreadable=len(broken),
                    terms=source.terms,
                    description=source.description,
                    created=now(conn),
                )
            )
            rows = [
                {
                    "workspace": SYSTEM.workspace,
                    "dataset": source.id,
                    "position": n,
                    "name": name,
                    "label": label,
                    "input": ident,
                }
                for n, (name, label, ident) in enumerate(items)
            ]
            if rows:
                conn.execute(insert(sample), rows)
            offers.renew(conn, source.id)
        return _wire(
            conn.execute(
                select(dataset).where(dataset.c.workspace == SYSTEM.workspace, dataset.c.id == source.id)
            ).one()
        )

    return context.db.write(save)


def listed(context: Context, visitor: Visitor) -> list[wire.Dataset]:
    wanted = select(dataset).where(dataset.c.workspace == visitor.workspace).order_by(dataset.c.created)
    return [_wire(r) for r in context.db.read(lambda c: list(c.execute(wanted)))]


def samples(
    context: Context, visitor: Visitor, ident: str, *, cursor: str | None, limit: int, q: str | None, label: str | None
) -> wire.Page[wire.Sample]:
    """A page of a data set in its order; `q` searches names and labels. Facets count the labels."""
    if not 1 <= limit <= 200:
        raise InvalidField("A page has 1 to 200 samples.", code="invalid_limit", given=limit, allowed=[1, 200])
    after = -1 if cursor is None else position(cursor)

    def act(conn: Connection) -> wire.Page[wire.Sample]:
        known = [r.id for r in conn.execute(select(dataset.c.id).where(dataset.c.workspace == visitor.workspace))]
        if ident not in known:
            raise absent(context, visitor, ident, known)
        inside = [sample.c.workspace == visitor.workspace, sample.c.dataset == ident]
        where = list(inside)
        for word in (q or "").split()[:8]:
            where.append(
                sample.c.name.icontains(word, autoescape=True) | sample.c.label.icontains(word, autoescape=True)
            )
        if label:
            where.append(sample.c.label == label)
        total = int(conn.execute(select(func.count()).select_from(sample).where(*where)).scalar_one())
        wanted = (
            select(sample, input_.c.width, input_.c.height)
            .join(input_, (input_.c.workspace == sample.c.workspace) & (input_.c.id == sample.c.input))
            .where(*where, sample.c.position > after)
            .order_by(sample.c.position)
            .limit(limit + 1)
        )
        rows = list(conn.execute(wanted))
        counts = conn.execute(
            select(sample.c.label, func.count().label("n"))
            .where(*inside, sample.c.label.is_not(None))
            .group_by(sample.c.label)
            .order_by(sample.c.label)
        )
        facets = {"label": [wire.Facet(value=r.label, label=r.label, count=r.n) for r in counts]}
        more = len(rows) > limit
        return wire.Page[wire.Sample](
            items=[_sample(context, r) for r in rows[:limit]],
            next_cursor=str(rows[limit - 1].position) if more else None,
            total=total,
            facets={} if cursor else facets,
        )

    return context.db.read(act)


def _sample(context: Context, row: Row[Any]) -> wire.Sample:
    return wire.Sample(
        dataset=row.dataset,
        position=row.position,
        name=row.name,
        label=row.label,
        input=row.input,
        width=row.width,
        height=row.height,
        thumbnail=f"{context.settings.root_path}/api/v1/inputs/{row.input}/thumbnail.webp",
    )


def _wire(row: Row[Any]) -> wire.Dataset:
    return wire.Dataset(
        id=row.id,
        name=row.name,
        version=row.version,
        digest=row.digest,
        count=row.count,
        unreadable=row.unreadable,
        terms=row.terms,
        description=row.description,
        world=row.id in WORLDS,
    )


def _slug(text: str) -> str:
    return "".join(ch if ch.isalnum() else "-" for ch in text.lower()).strip("-")[:100] or "data"
