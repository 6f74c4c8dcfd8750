"""Files of one explanation. Every word and number comes from the section that the share page prints, or from the stored arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

import orjson
from sqlalchemy import Connection

from fanlight.artifact import Artifact
from fanlight.drawing import figure, report, values
from fanlight.drawing.section import Section, section
from fanlight.drawing.seen import Seen
from fanlight.errors import Conflict, InvalidField, NotFound
from fanlight.explainers.registry import registry
from fanlight.service import pictures, shares
from fanlight.service.context import Context, Visitor
from fanlight.service.explain import find

Form = Literal["html", "pdf", "svg", "png", "csv", "parquet", "safetensors", "bib", "json"]

MEDIA: dict[Form, str] = {
    "html": "text/html; charset=utf-8",
    "pdf": "application/pdf",
    "svg": "image/svg+xml",
    "png": "image/png",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "safetensors": "application/octet-stream",
    "bib": "application/x-bibtex; charset=utf-8",
    "json": "application/json",
}
MARKED: tuple[Form, ...] = ("html", "pdf", "svg", "png", "json")
"""What shows a region."""


@dataclass(frozen=True)
class Whole:
    """Everything that a file of an explanation may hold."""

    context: Context
    snapshot: dict[str, Any]
    record: dict[str, Any]
    blob: bytes
    drawn: Artifact
    section: Section
    bibtex: str

    def picture(self, name: str) -> bytes:
        """PNG of one of `pictures.NAMES`, as the share page shows it."""
        return pictures.drawn(self.context.blobs, self.snapshot, 0, name)


def export(context: Context, visitor: Visitor, ident: str, form: Form, region: str | None = None) -> bytes:
    """The file.

    Args:
        region: of a result of words, places of its maps as `drawing.seen` packs them: marked on the picture, with what each word says inside.

    Raises:
        NotFound: the explanation was deleted or never was; or its arrays are no longer stored.
        Conflict: it is not finished; or what the form needs is not installed.
        InvalidField: this kind of result, or its method, has nothing of that form; or no such region.
    """
    if region is None:
        if form == "html":
            return pictures.export(context, visitor, [ident]).encode()
        return WRITERS[form](_whole(context, visitor, ident, {}))
    if form not in MARKED:
        raise InvalidField(
            f"A region is drawn in {', '.join(MARKED)}; {form} holds the whole result.",
            given=form,
            allowed=list(MARKED),
            hint="Leave `region` out.",
        )
    view = {"region": region}
    whole = _whole(context, visitor, ident, view)
    if not Seen.of(view).fits(whole.drawn):
        own = whole.drawn.arrays["floor"].shape if whole.drawn.kind == "words" else None
        raise InvalidField(
            "A region is marked on results of words; this is another."
            if own is None
            else f"The maps of this result have {own[1]} x {own[0]} places.",
            code="invalid_region",
            given=region[:60],
            hint="The page of words has it in its address.",
        )
    return pictures.export(context, visitor, [ident], view).encode() if form == "html" else WRITERS[form](whole)


def _whole(context: Context, visitor: Visitor, ident: str, view: dict[str, Any]) -> Whole:
    def act(conn: Connection) -> tuple[dict[str, Any], str]:
        row = find(conn, visitor.workspace, ident)
        if row.state != "succeeded":
            raise Conflict(
                f"Only a finished explanation can be exported; this one is {row.state}.",
                code="not_finished",
                given=ident,
            )
        method = registry(context.explainers).get(row.explainer)
        return shares.snapshot(context, conn, [row], view=view, expires=None), method.paper.bibtex if method else ""

    snapshot, bibtex = context.db.read(act)
    record = snapshot["explanations"][0]
    digest = record["blobs"]["map"]
    if digest is None:
        raise NotFound("This explanation has no stored result to export.", code="unknown_artifact", given=ident)
    blob = context.blobs.get(digest)
    drawn = Artifact.from_bytes(blob)
    return Whole(context, snapshot, record, blob, drawn, section(record, drawn, view, lambda _name: None), bibtex)


def _figure(draw: Callable[[Section, bytes, bytes], str | bytes]) -> Callable[[Whole], bytes]:
    def made(whole: Whole) -> bytes:
        file = draw(whole.section, whole.picture("picture.png"), whole.picture("overlay.png"))
        return file.encode() if isinstance(file, str) else file

    return made


def _pdf(whole: Whole) -> bytes:
    names = ["picture.png", "overlay.png", *(["curves.png"] if whole.record["blobs"]["curves"] else [])]
    return report.pdf(whole.section, {n: whole.picture(n) for n in names}, created=whole.snapshot["created"])


def _parquet(whole: Whole) -> bytes:
    about = {"fanlight": orjson.dumps(whole.record).decode(), "provenance": figure.provenance(whole.section)}
    return values.to_parquet(whole.drawn, about)


def _bib(whole: Whole) -> bytes:
    if not whole.bibtex:
        raise InvalidField(
            f"The method “{whole.section.method}” names no publication to cite.",
            code="no_citation",
            given=whole.record["explainer"],
        )
    return whole.bibtex.strip().encode() + b"\n"


def _json(whole: Whole) -> bytes:
    """The record, and what the page says of its map."""
    said = whole.section
    hidden = {"blobs", "method_title"}
    body = {
        "explanation": {k: v for k, v in whole.record.items() if k not in hidden},
        "question": said.question,
        "sentence": said.sentence,
        "trust": said.badge.text,
        "checks": {row.name: row.line for row in said.rows if row.sentence},
        "scale": asdict(said.legend) if said.legend else None,
        "table": asdict(said.table) if said.table else None,
        **({"inside": asdict(said.inside)} if said.inside else {}),
        "facts": {name: full or value for name, value, full in said.facts},
        "bibtex": whole.bibtex,
    }
    return orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)


WRITERS: dict[str, Callable[[Whole], bytes]] = {
    "pdf": _pdf,
    "svg": _figure(figure.svg),
    "png": _figure(figure.png),
    "csv": lambda whole: values.to_csv(whole.drawn).encode(),
    "parquet": _parquet,
    "safetensors": lambda whole: whole.blob,
    "bib": _bib,
    "json": _json,
}
