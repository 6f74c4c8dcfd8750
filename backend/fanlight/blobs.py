"""The artifact store: immutable blobs named by their sha256, put if absent, verified on every read. A folder or S3, through obstore."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from fanlight import meters
from fanlight.artifact import digest
from fanlight.errors import ComputeFailed, NotFound, Unavailable

log = structlog.get_logger()
REFRESH = 600.0  # seconds: a blob that is put again is written anew where it is older, so that it counts as new for who collects


@dataclass(frozen=True)
class Stored:
    """A blob as the store lists it: digest, bytes, seconds since 1970 of its last writing."""

    name: str
    size: int
    written: float


class Blobs:
    """Args: url: a folder, `s3://bucket/prefix` (credentials from AWS_* variables), or `memory://`."""

    def __init__(self, url: str):
        self.url = url
        self._store: ObjectStore
        if url == "memory://":
            self._store = MemoryStore()
        elif "://" in url:
            self._store = from_url(url)
        else:
            Path(url).mkdir(parents=True, exist_ok=True)
            self._store = LocalStore(Path(url))

    def put(self, blob: bytes) -> str:
        """Stores `blob` unless it is there; returns its digest. Atomic: no reader ever sees a part of it."""
        name = digest(blob)
        with _plain_errors():
            try:
                self._store.put(_path(name), blob, mode="create")
            except AlreadyExistsError:
                if not self._sound(name):  # a damaged copy would otherwise stay for ever, an old one be collected
                    self._store.put(_path(name), blob)
        return name

    def get(self, name: str) -> bytes:
        """The blob of that digest; a damaged one is moved aside and reported, never returned."""
        path = _path(name)
        with _plain_errors():
            try:
                blob = bytes(self._store.get(path).bytes())
            except (NotFoundError, FileNotFoundError) as e:
                raise NotFound(
                    "A stored file of this record is gone.",
                    code="artifact_gone",
                    given=name,
                    hint="Recompute the explanation.",
                ) from e
            if digest(blob) == name:
                return blob
            meters.store_errors.labels("artifact_damaged").inc()
            self._store.rename(path, f"quarantine/{name}")  # needs no room on a full disk
        raise ComputeFailed(
            "A stored file of this record is damaged; it was moved aside.",
            code="artifact_damaged",
            given=name,
            hint="Recompute the explanation.",
        )

    def has(self, name: str) -> bool:
        path = _path(name)
        with _plain_errors():
            try:
                self._store.head(path)
            except (NotFoundError, FileNotFoundError):
                return False
        return True

    def probe(self) -> None:
        """Raises where nothing can be written."""
        self.put(b"fanlight")

    def listed(self) -> Iterator[Stored]:
        """Every blob that is there, in no order; not what was moved aside or only begun."""
        with _plain_errors():
            for some in self._store.list():
                for found in some:
                    name = str(found["path"]).rsplit("/", 1)[-1]
                    if found["path"] == f"{name[:2]}/{name[2:4]}/{name}" and len(name) == 64:
                        yield Stored(name, int(found["size"]), found["last_modified"].timestamp())

    def collect(self, name: str, before: float) -> bool:
        """Deletes a blob unless it was written again since `before` (seconds since 1970); whether it did."""
        with _plain_errors():
            try:
                if self._store.head(_path(name))["last_modified"].timestamp() > before:
                    return False
                self._store.delete(_path(name))
            except (NotFoundError, FileNotFoundError):
                return False
        return True

    def _sound(self, name: str) -> bool:
        """Whether the stored copy is whole, and so new that nobody collects it."""
        try:
            got = self._store.get(_path(name))
            written = got.meta["last_modified"].timestamp()
            return digest(bytes(got.bytes())) == name and time.time() - written < REFRESH
        except (NotFoundError, FileNotFoundError):  # moved aside meanwhile
            return False


def _path(name: str) -> str:
    if len(name) != 64 or not set(name) <= set("0123456789abcdef"):
        raise NotFound("There is no such artifact.", code="unknown_artifact", given=name)
    return f"{name[:2]}/{name[2:4]}/{name}"


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Turns a store that is away or full into a sentence."""
    try:
        yield
    except (BaseError, OSError) as e:
        said = str(e)
        log.error("artifact store failed", problem=said)
        # ENOSPC, EFBIG, EDQUOT
        if "No space" in said or any(f"os error {n})" in said for n in (28, 27, 122)):
            meters.store_errors.labels("disk_full").inc()
            raise Unavailable(
                "The disk that holds the artifacts is full; nothing was lost.",
                code="disk_full",
                hint="Free some space and try again.",
            ) from e
        meters.store_errors.labels("store_unavailable").inc()
        raise Unavailable(
            "The artifact store does not answer.", code="store_unavailable", hint="Try again shortly."
        ) from e
