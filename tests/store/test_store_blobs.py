"""The artifact store: put if absent, verified on read, on a folder, in memory and on S3."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fanlight.artifact import digest
from fanlight.blobs import Blobs
from fanlight.errors import ComputeFailed, NotFound, Unavailable


@pytest.fixture(params=["local", "memory", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Blobs:
    if request.param == "local":
        return Blobs(str(tmp_path / "artifacts"))
    if request.param == "memory":
        return Blobs("memory://")
    bucket = request.getfixturevalue("s3_bucket")
    for name, value in bucket.env.items():
        monkeypatch.setenv(name, value)
    return Blobs(bucket.url)


def path(name: str) -> str:
    return f"{name[:2]}/{name[2:4]}/{name}"


def damage(blobs: Blobs, name: str, blob: bytes) -> None:
    blobs._store.put(path(name), blob)


def count(blobs: Blobs) -> int:
    return sum(len(page) for page in blobs._store.list())


def test_a_blob_is_named_by_its_digest_and_comes_back_as_it_was(blobs: Blobs) -> None:
    for blob in (b"", b"x", bytes(range(256)) * 1000):
        name = blobs.put(blob)
        assert name == digest(blob) and blobs.has(name)
        assert blobs.get(name) == blob


def test_putting_twice_keeps_the_first(blobs: Blobs) -> None:
    name = blobs.put(b"the same")
    first = blobs._store.head(path(name))
    assert blobs.put(b"the same") == name
    assert count(blobs) == 1
    assert blobs._store.head(path(name))["last_modified"] == first["last_modified"]


def test_many_at_once_put_the_same(blobs: Blobs) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda n: blobs.put(b"equal" * 1000), range(24)))
    assert len(names) == 1 and blobs.get(names.pop()) == b"equal" * 1000
    assert count(blobs) == 1


def test_what_is_not_there_is_a_sentence(blobs: Blobs) -> None:
    assert not blobs.has("0" * 64)
    with pytest.raises(NotFound) as caught:
        blobs.get("0" * 64)
    assert caught.value.code == "artifact_gone" and "Recompute" in str(caught.value.hint)


@pytest.mark.parametrize("damaged", [b"", b"blo", b"another blob"], ids=["empty", "truncated", "changed"])
def test_a_damaged_blob_is_reported_moved_aside_and_can_be_put_again(blobs: Blobs, damaged: bytes) -> None:
    name = blobs.put(b"blob")
    damage(blobs, name, damaged)
    with pytest.raises(ComputeFailed) as caught:
        blobs.get(name)
    assert caught.value.code == "artifact_damaged"
    assert bytes(blobs._store.get(f"quarantine/{name}").bytes()) == damaged, "kept for whoever wants to know why"
    assert not blobs.has(name)
    assert blobs.put(b"blob") == name and blobs.get(name) == b"blob"
    damage(blobs, name, damaged)
    with pytest.raises(ComputeFailed):
        blobs.get(name)


def test_putting_repairs_a_damaged_blob_that_nobody_has_read(blobs: Blobs) -> None:
    name = blobs.put(b"blob")
    damage(blobs, name, b"blo")
    assert blobs.put(b"blob") == name and blobs.get(name) == b"blob"


@pytest.mark.parametrize(
    "name",
    [
        "../" * 21 + "e",
        "/etc/passwd",
        "..%2f" * 12 + "0000",
        "a" * 63,
        "a" * 65,
        "A" * 64,
        "",
        "\u0660" * 64,
        "0" * 63 + "\n",
        "quarantine/" + "0" * 53,
    ],
)
def test_names_that_are_no_digests_are_refused(blobs: Blobs, name: str) -> None:
    for ask in (blobs.get, blobs.has):
        with pytest.raises(NotFound) as caught:
            ask(name)
        assert caught.value.code == "unknown_artifact"


def test_the_probe_writes(blobs: Blobs) -> None:
    blobs.probe()
    blobs.probe()
    assert count(blobs) == 1


def test_a_store_that_does_not_answer_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    blobs = Blobs(str(tmp_path / "artifacts"))
    name = digest(b"x")
    (tmp_path / "artifacts" / name[:2]).write_text("a file where a folder should be")
    for act in (lambda: blobs.put(b"x"), lambda: blobs.get(name)):
        with pytest.raises((Unavailable, NotFound)) as caught:
            act()
        assert caught.value.code in ("store_unavailable", "artifact_gone")


FULL = """
import resource, signal, sys
from fanlight.blobs import Blobs
from fanlight.errors import Unavailable
blobs = Blobs(sys.argv[1])
small = blobs.put(b"small")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    blobs.put(b"large" * 10_000)
except Unavailable as e:
    print(e.code, "|", e.message)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(blobs.get(small), blobs.put(b"large" * 10_000) == blobs.put(b"large" * 10_000))
"""


def test_a_disk_without_room_is_a_sentence_and_leaves_no_part_of_a_blob(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path / "artifacts"], capture_output=True, text=True, timeout=60
    )
    assert "\ndisk_full | The disk that holds the artifacts is full" in done.stdout, done.stderr
    assert "\nb'small' True\n" in done.stdout
    files = {p.name for p in (tmp_path / "artifacts").rglob("*") if p.is_file()}
    assert files == {digest(b"small"), digest(b"large" * 10_000)}


SLOW_PUT = """
import sys
from fanlight.blobs import Blobs
blob = bytes(100_000_000)
print("ready", flush=True)
Blobs(sys.argv[1]).put(blob)
print("done", flush=True)
"""


def test_a_put_that_is_killed_leaves_nothing_that_can_be_read(tmp_path: Path) -> None:
    blobs, name = Blobs(str(tmp_path)), digest(bytes(100_000_000))
    with subprocess.Popen([sys.executable, "-c", SLOW_PUT, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        while not any(p.is_file() and p.stat().st_size for p in tmp_path.rglob("*")):
            assert process.poll() is None, "it was done before it was seen"
        process.kill()
        interrupted = process.stdout.read() == ""
    assert interrupted, "it was done before it was killed"
    assert not blobs.has(name) and any("#" in p.name for p in tmp_path.rglob("*"))
    blobs.put(bytes(100_000_000))
    assert len(blobs.get(name)) == 100_000_000
