"""Inputs, data sets, models and explainers on the wire."""

from __future__ import annotations

from typing import Any, Literal

from fanlight.wire.base import Wire


class Input(Wire):
    """What is explained. `id` is the digest of the decoded content, so the same picture in another file is the same input."""

    id: str
    kind: Literal["image"] = "image"
    width: int
    height: int
    name: str = ""
    notes: list[str] = []
    """What decoding did that a person may want to know: turned by EXIF, scaled from 16 bit, alpha laid on white, ..."""
    created: float
    url: str
    thumbnail: str


class Dataset(Wire):
    id: str
    name: str
    version: int
    digest: str
    count: int
    unreadable: int = 0
    terms: str = ""
    description: str = ""


class Sample(Wire):
    """One item of a data set."""

    dataset: str
    position: int
    name: str
    label: str | None = None
    input: str
    width: int
    height: int
    thumbnail: str


class Availability(Wire):
    """Whether an explainer fits a model, and if not, why, in a sentence."""

    name: str
    available: bool
    reason: str | None = None


class Model(Wire):
    id: str
    name: str
    task: str
    digest: str
    description: str = ""
    terms: str = ""
    size: tuple[int, int]
    classes: list[str] | None = None
    capabilities: list[str]
    head: Literal["single-label", "multi-label", "regression"] = "single-label"
    """How outputs become predictions: one of several classes, labels of their own, or values."""
    unit: str = ""
    """Of the values of a regression."""
    explainers: list[Availability]
    card: str = ""


class Citation(Wire):
    citation: str
    link: str
    bibtex: str


class ExplainerInfo(Wire):
    """A method: what it accepts, its parameters as JSON Schema, what it returns."""

    name: str
    title: str
    family: str
    version: str
    summary: str
    reading: str
    misleads: str
    accepts: str
    needs: list[str]
    params: dict[str, Any]
    returns: list[str]
    cost: int
    """Forward passes at default parameters on a 224 px model."""
    paper: Citation
    docs: str
