import pytest

from fanlight.doctor.installation import artifacts, database, examine
from fanlight.settings import Settings


def test_a_new_data_folder_is_fine_and_is_not_made(tmp_path):
    checks = {c.name: c.outcome for c in examine(Settings(data_dir=tmp_path / "new")).checks}
    assert {checks[name] for name in ("python", "torch", "device", "disk", "database", "artifacts")} == {"good"}
    assert not (tmp_path / "new").exists()


def test_places_that_cannot_be_reached_are_named(tmp_path):
    (tmp_path / "file").write_text("")
    unreachable = database(Settings(database_url="postgresql://nobody@127.0.0.1:1/none"))
    unwritable = artifacts(Settings(artifacts_url=str(tmp_path / "file")))
    assert unreachable.outcome == "bad" and "FANLIGHT_DATABASE_URL" in unreachable.hint
    assert unwritable.outcome == "bad" and "FANLIGHT_ARTIFACTS_URL" in unwritable.hint


@pytest.mark.postgres
def test_a_database_that_answers_is_good(postgres_url):
    assert database(Settings(database_url=postgres_url)).outcome == "good"


def test_a_database_of_an_unknown_kind_is_a_sentence():
    check = database(Settings(database_url="nonsense"))
    assert check.outcome == "bad" and "Traceback" not in check.says


def test_a_password_is_not_printed():
    assert "secret" not in database(Settings(database_url="postgresql://me:secret@127.0.0.1:1/none")).says
