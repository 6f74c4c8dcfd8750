"""What lies in the data folder belongs to its owner; and every test that the document on security names is there."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from fanlight.app import access_token, create
from fanlight.service.backup import backup
from fanlight.settings import Settings


def test_others_on_the_machine_can_neither_write_nor_read_what_is_secret(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path / "data", default_model=False, examples=False, field_guide=False, scenes=False
    )
    app = create(settings, pages=False)
    app.state.context.blobs.put(b"something")
    app.state.context.db.close()
    assert access_token(settings)
    backup(settings, tmp_path / "all.tar")
    for path in (settings.data_dir, *settings.data_dir.rglob("*")):
        assert not path.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), path
    for path in (settings.data_dir / "token", tmp_path / "all.tar"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o700, "nobody else looks into the folder"


@pytest.mark.parametrize("document", ["security.md", "operations.md"])
def test_every_test_that_the_document_names_is_there(root: Path, document: str) -> None:
    text = (root / "docs" / document).read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len(named) > 20
    for path, test in named:
        assert (root / path).is_file(), path
        assert not test or re.search(rf"^(async )?def {test}\(", (root / path).read_text("utf-8"), re.M), (
            f"{path}::{test}"
        )


def test_every_file_of_attacks_is_named(root: Path) -> None:
    text = (root / "docs" / "security.md").read_text("utf-8")
    files = {p.name for p in (root / "tests" / "attacks").glob("test_*.py")}
    assert [f for f in files if f"tests/attacks/{f}" not in text] == []
