"""The numbers of a map as a long table, one row per pixel of the model's input, for CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from fanlight.artifact import Artifact
from fanlight.drawing import renderer
from fanlight.drawing.information import Read
from fanlight.drawing.scene import PICTURES
from fanlight.errors import Conflict, InvalidField

Array = np.ndarray[Any, np.dtype[Any]]
TABLES = ("concepts", "prototypes")
"""Kinds whose values are a table of their own."""


def columns(artifact: Artifact) -> dict[str, Array]:
    """`row`, `column` int32 from the upper left; of regions `region` int32; `value (unit)` float32 as it is stored.

    Of kinds in `TABLES` the columns of their table; of words their seven maps, the noise floor and the attention of measured words, where there are.

    Raises:
        InvalidField: a kind that has neither.
    """
    if artifact.kind in TABLES:
        table = renderer(artifact.kind).table(artifact)
        return {
            name: np.array([float("nan") if v is None else v for v in column])
            for name, column in zip(table.columns, zip(*table.rows, strict=True), strict=True)
        }
    if artifact.kind == "words":
        read = Read(artifact)
        row, column = _places(read.maps["a"])
        return {
            "row": row,
            "column": column,
            **{
                f"{read.titles[n]} ({artifact.meta['unit']})": m.ravel().astype(np.float32)
                for n, m in read.maps.items()
            },
            **{name: m.ravel().astype(np.float32) for name, m in _beside(artifact)},
        }
    if artifact.kind not in PICTURES:
        raise InvalidField(
            f"A result of kind “{artifact.kind}” has no value per pixel.",
            code="no_map",
            given=artifact.kind,
            allowed=PICTURES,
        )
    unit = str(artifact.meta["unit"])
    name = f"value ({unit})" if unit else "value"
    value = artifact.arrays["value"]
    if artifact.kind == "region-scores":
        label = artifact.arrays["label"]
        row, column = _places(label)
        region: Array = label.ravel().astype(np.int32)
        return {"row": row, "column": column, "region": region, name: value.astype(np.float32)[region]}
    row, column = _places(value)
    return {"row": row, "column": column, name: value.ravel().astype(np.float32)}


def _beside(artifact: Artifact) -> list[tuple[str, Array]]:
    """What stands beside the maps of words: the noise floor, and attention, which is a share and no information."""
    meta, arrays = artifact.meta, artifact.arrays
    found = [(f"noise floor ({meta['unit']})", arrays["floor"])] if meta["floored"] else []
    return found + [
        (f"attention {n}: {word[2]}", m)
        for n, (word, m) in enumerate(zip(meta["words"], arrays["attention"], strict=False), 1)
    ]


def to_csv(artifact: Artifact) -> str:
    """Every value in the fewest digits that give the same float32 back."""
    given = columns(artifact)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(given)
    writer.writerows(zip(*(c.astype(str) for c in given.values()), strict=True))
    return out.getvalue()


def to_parquet(artifact: Artifact, about: Mapping[str, str]) -> bytes:
    """The same columns with their types; `about` becomes the file's key-value metadata.

    Raises:
        Conflict: pyarrow is not installed.
    """
    given = columns(artifact)
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as e:
        raise Conflict(
            "This server cannot write Parquet: the package pyarrow is not installed.",
            code="not_installed",
            given="pyarrow",
            hint="pip install 'fanlight[parquet]', or export CSV: it holds the same columns.",
        ) from e
    table = pyarrow.table(given).replace_schema_metadata(dict(about))
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(table, sink, compression="zstd")
    blob: bytes = sink.getvalue().to_pybytes()
    return blob


def _places(grid: Array) -> tuple[Array, Array]:
    row, column = np.indices(grid.shape, np.int32)
    return row.ravel(), column.ravel()
