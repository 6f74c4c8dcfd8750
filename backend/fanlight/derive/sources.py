"""The data sets of a change: a folder of pictures, or the drawn field guide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fanlight.adapters.base import Pixels
from fanlight.decoding import decode
from fanlight.derive.base import Data, Labelled
from fanlight.errors import InvalidField
from fanlight.service.datasets import File, Source, folder
from fanlight.service.field_guide import COUNT, FIELD_GUIDE, source as drawn
from fanlight.settings import Settings


def named(given: str, settings: Settings, count: int = COUNT) -> Data:
    """A folder with a subfolder per class, or `field-guide`: the first `count` scenes of its test split. Errors: invalid_dataset."""
    path = Path(given).expanduser()
    if given == FIELD_GUIDE and not path.exists():
        return _data(drawn(count), settings)
    if not path.is_dir():
        raise InvalidField(
            f"“{given}” is no folder of pictures.",
            code="invalid_dataset",
            given=given,
            allowed=f"a folder with a subfolder for each class, or {FIELD_GUIDE}",
        )
    return _data(folder(path.resolve().name, path), settings)


def _data(source: Source, settings: Settings) -> Data:
    def reader(file: File) -> Callable[[], Pixels]:
        most = {"max_bytes": settings.max_upload_mb * 2**20, "max_pixels": settings.max_megapixels * 1_000_000}
        return lambda: decode(file.read_bytes(), **most).pixels

    return Data(source.name, [Labelled(name, label, reader(file)) for name, label, file in source.files])
