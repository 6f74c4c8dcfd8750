"""Backup, restore, collection and retention against a server with real explanations."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient
from sqlalchemy import update

from fanlight.app import create
from fanlight.blobs import REFRESH, Blobs
from fanlight.bundles import derived
from fanlight.errors import Conflict, FanlightError, InvalidField
from fanlight.service import retention
from fanlight.service.backup import backup, restore
from fanlight.service.context import Context
from fanlight.service.stock import collect
from fanlight.settings import Settings
from fanlight.store.tables import explanation

DAY = 86_400_000_000


def context(api: Api) -> Context:
    found: Context = api.http.app.state.context  # type: ignore[attr-defined]
    return found


def aged(api: Api, seconds: float = 10 * 86400) -> None:
    """Makes every stored file that old."""
    then = time.time() - seconds
    for path in Path(context(api).settings.artifacts).rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


def gathered(api: Api, **options: Any) -> Any:
    return collect(context(api).db, context(api).blobs, **options)


def shared(api: Api, ident: str) -> dict[str, Any]:
    made: dict[str, Any] = api.call("POST", "/shares", json={"explanations": [ident]}).json()
    return made


def gone(api: Api, record: dict[str, Any]) -> list[str]:
    """Which artifacts of a record are no longer stored."""
    return [a["digest"] for a in record["artifacts"] if not context(api).blobs.has(a["digest"])]


def test_a_backup_restored_elsewhere_is_the_same_installation(api: Api, tmp_path: Path) -> None:
    record = api.explain(input=api.upload(noise(1))["id"])
    api.trusted(record["id"])
    share = shared(api, record["id"])
    page = api.http.get(f"/s/{share['token']}").text
    saved = backup(context(api).settings, tmp_path / "all.tar")  # while the server runs
    assert saved.missing == [] and saved.blobs >= 4
    assert (tmp_path / "all.tar").stat().st_mode & 0o077 == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = settings(elsewhere)
    assert restore(place, tmp_path / "all.tar").blobs == saved.blobs
    with TestClient(create(place, token=TOKEN, pages=False), headers=api.http.headers) as http:
        other = Api(started(http))
        again = other.call("GET", f"/explanations/{record['id']}").json()
        assert {**again, "shares": 0} == {**api.finished(record["id"]), "shares": 0}
        for a in record["artifacts"]:
            assert other.http.get(a["url"]).content == api.http.get(a["url"]).content
        assert other.http.get(f"/s/{share['token']}").text == page
        assert other.explain(input=record["input"])["id"] == record["id"]  # not computed again


def test_a_backup_names_what_is_damaged_and_saves_the_rest(api: Api, tmp_path: Path) -> None:
    record = api.explain(input=api.upload(noise(2))["id"])
    name = record["artifacts"][0]["digest"]
    (Path(context(api).settings.artifacts) / name[:2] / name[2:4] / name).write_bytes(b"no")
    saved = backup(context(api).settings, tmp_path / "all.tar")
    assert saved.missing == [name] and saved.blobs >= 1
    (tmp_path / "x").mkdir()
    assert restore(settings(tmp_path / "x"), tmp_path / "all.tar").missing == [name]


def test_neither_backup_nor_restore_overwrites(api: Api, tmp_path: Path) -> None:
    api.upload(noise(3))
    backup(context(api).settings, tmp_path / "all.tar")
    with pytest.raises(Conflict, match="already"):
        backup(context(api).settings, tmp_path / "all.tar")
    with pytest.raises(Conflict, match="already"):
        restore(context(api).settings, tmp_path / "all.tar")


def changed(source: Path, target: Path, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> None:
    """The archive again, each member through `change`."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for member in old:
            found = old.extractfile(member)
            assert found is not None
            altered = change(member.name, found.read())
            if altered is not None:
                info = tarfile.TarInfo(altered[0])
                info.size = len(altered[1])
                new.addfile(info, io.BytesIO(altered[1]))


def newer(name: str, blob: bytes) -> tuple[str, bytes]:
    return name, json.dumps({**json.loads(blob), "revision": "9999"}).encode() if name == "manifest.json" else blob


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda n, b: (n, b + b"x" if n == "database.sqlite" else b), "database is damaged"),
        (lambda n, b: (n, b[:-1] if n.startswith("blobs/") else b), "is damaged"),
        (lambda n, b: ("../" + n if n.startswith("blobs/") else n, b), "does not belong"),
        (lambda n, b: None if n == "manifest.json" else (n, b), "manifest"),
        (lambda n, b: None if n == "database.sqlite" else (n, b), "no database"),
        (newer, "newer Fanlight"),
    ],
)
def test_an_altered_backup_is_refused_and_leaves_no_database(
    api: Api, tmp_path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], says: str
) -> None:
    api.upload(noise(4))
    backup(context(api).settings, tmp_path / "all.tar")
    changed(tmp_path / "all.tar", tmp_path / "altered.tar", change)
    place = Settings(data_dir=tmp_path / "new")
    with pytest.raises(FanlightError, match=says):
        restore(place, tmp_path / "altered.tar")
    assert not (tmp_path / "new" / "fanlight.sqlite").exists()
    assert restore(place, tmp_path / "all.tar").missing == []  # and can be repeated with a sound one


def made(place: Settings, name: str = "small-without-3") -> Path:
    """A model that was made of another, as its files are."""
    folder = derived(place.data_dir) / name
    (folder / "sources").mkdir(parents=True)
    (folder / "bundle.toml").write_text("name = 'small'")
    (folder / "sources" / "0.jpg").write_bytes(b"a picture")
    (derived(place.data_dir) / ".half").mkdir()
    (derived(place.data_dir) / ".half" / "bundle.toml").write_text("not yet")
    return folder


def test_models_that_were_made_of_others_are_in_it(api: Api, tmp_path: Path) -> None:
    folder = made(context(api).settings)
    assert backup(context(api).settings, tmp_path / "all.tar").models == 1
    place = Settings(data_dir=tmp_path / "new")
    assert restore(place, tmp_path / "all.tar").models == 1
    new = derived(place.data_dir)
    assert [p.name for p in new.iterdir()] == [folder.name], "what was still being written, or unpacked, is not there"
    for file in ("bundle.toml", "sources/0.jpg"):
        assert (new / folder.name / file).read_bytes() == (folder / file).read_bytes()
    other = Settings(data_dir=tmp_path / "taken")
    made(other)
    with pytest.raises(Conflict, match="There is a model"):
        restore(other, tmp_path / "all.tar")
    assert not (tmp_path / "taken" / "fanlight.sqlite").exists()


def renamed(name: str, blob: bytes) -> tuple[str, bytes]:
    """A manifest that names a file outside."""
    return name, blob.replace(b"models/small-without-3/bundle.toml", b"models/../bundle.toml")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda n, b: (n, b + b"x" if n.endswith("0.jpg") else b), "is damaged"),
        (lambda n, b: None if n.endswith("0.jpg") else (n, b), "it lacks"),
        (lambda n, b: ("models/other/0.jpg" if n.endswith("0.jpg") else n, b), "does not belong"),
        (renamed, "newer"),
    ],
)
def test_altered_models_are_refused(
    api: Api, tmp_path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], says: str
) -> None:
    made(context(api).settings)
    backup(context(api).settings, tmp_path / "all.tar")
    changed(tmp_path / "all.tar", tmp_path / "altered.tar", change)
    place = Settings(data_dir=tmp_path / "new")
    with pytest.raises(FanlightError, match=says):
        restore(place, tmp_path / "altered.tar")
    assert not (tmp_path / "new" / "fanlight.sqlite").exists() and not list(derived(place.data_dir).glob("*"))
    assert restore(place, tmp_path / "all.tar").models == 1


def test_no_archive_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(b"hello" * 1000)
    with pytest.raises(InvalidField, match="no backup"):
        restore(Settings(data_dir=tmp_path / "new"), tmp_path / "x.tar")


def test_collection_takes_what_nothing_names_and_only_when_told(api: Api) -> None:
    kept = api.explain(input=api.upload(noise(5))["id"])
    spare = api.explain(input=api.upload(noise(6))["id"])
    api.trusted(kept["id"])
    api.trusted(spare["id"])
    api.call("DELETE", f"/explanations/{spare['id']}")
    assert gathered(api, dry=False).removed == 0 and gone(api, spare) == []  # still young
    aged(api)
    found = gathered(api)
    assert found.unneeded >= 1 and found.size > 0 and found.removed == 0 and gone(api, spare) == []
    assert gathered(api, dry=False).removed == found.unneeded
    assert gone(api, spare) and gone(api, kept) == []
    assert gathered(api).unneeded == 0
    for a in kept["artifacts"]:
        assert api.http.get(a["url"]).status_code == 200
    assert api.call("GET", f"/inputs/{spare['input']}/image.png").status_code == 200  # an input is a record of its own


def test_artifacts_of_a_live_share_stay_and_those_of_a_revoked_one_go(api: Api) -> None:
    record = api.explain(input=api.upload(noise(7))["id"])
    api.trusted(record["id"])
    share = shared(api, record["id"])
    # Nothing but the share names the artifacts now; deleting through the API would have revoked it.
    from sqlalchemy import delete

    from fanlight.store.tables import job, reference

    def forget(conn: Any) -> None:
        conn.execute(delete(reference).where(reference.c.owner == f"explanation:{record['id']}"))
        conn.execute(delete(job))
        conn.execute(delete(explanation).where(explanation.c.id == record["id"]))

    context(api).db.write(forget)
    aged(api)
    page = api.http.get(f"/s/{share['token']}")
    gathered(api, dry=False)
    assert gone(api, record) == [] and api.http.get(f"/s/{share['token']}/0/overlay.png").status_code == 200
    assert page.status_code == 200
    api.call("DELETE", f"/shares/{share['id']}")
    gathered(api, dry=False)
    assert gone(api, record)


def test_what_is_put_again_counts_as_new(api: Api) -> None:
    blobs: Blobs = context(api).blobs
    name = blobs.put(b"made before, and again just now")
    aged(api, REFRESH * 100)
    blobs.put(b"made before, and again just now")
    assert gathered(api, dry=False).removed == 0 and blobs.has(name)


def old(api: Api, *idents: str) -> None:
    t = int(time.time() * 1e6) - 40 * DAY
    context(api).db.write(
        lambda c: c.execute(update(explanation).where(explanation.c.id.in_(idents)).values(created=t))
    )


def test_retention_deletes_what_is_old_and_unmarked_and_nothing_else(api: Api) -> None:
    pictures = [api.upload(noise(n))["id"] for n in range(10, 17)]
    plain, tagged, noted, named, sharing, young, unshared = (api.explain(input=p)["id"] for p in pictures)
    parent = api.explain(input=pictures[0], explainer="random")["id"]
    for ident in (plain, tagged, noted, named, sharing, young, unshared, parent):
        api.trusted(ident)
    api.call("PATCH", f"/explanations/{tagged}", json={"tags": ["keep"]})
    api.call("PATCH", f"/explanations/{noted}", json={"note": "look here"})
    api.call("PATCH", f"/explanations/{named}", json={"title": "the owl"})
    shared(api, sharing)
    api.call("DELETE", f"/shares/{shared(api, unshared)['id']}")
    old(api, plain, tagged, noted, named, sharing, unshared)
    ctx = context(api)
    due = {ident for _, ident in ctx.db.read(lambda c: retention.due(c, 30))}
    assert due == {plain, unshared}
    ctx.settings = ctx.settings.model_copy(update={"retention_days": 30})
    assert retention.tidy(ctx) == 2 and retention.tidy(ctx) == 0
    states = {i: api.call("GET", f"/explanations/{i}").status_code for i in (plain, unshared, tagged, young, sharing)}
    assert states == {plain: 404, unshared: 404, tagged: 200, young: 200, sharing: 200}


def test_retention_is_off_unless_asked_for() -> None:
    assert Settings.model_fields["retention_days"].default == 0
