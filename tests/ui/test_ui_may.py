"""What a role may not do is not offered, and why is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fanlight_ui
from fanlight.wire import Me
from fanlight_ui import may

SCOPES = {"viewer": ["read"], "editor": ["read", "explain", "share"], "owner": ["read", "explain", "share", "admin"]}
SOURCE = "\n".join(
    p.read_text("utf-8")
    for p in Path(fanlight_ui.__file__).parent.rglob("*")
    if p.suffix in (".py", ".js") and p.name != "may.py"
)


def somebody(role: str | None, **changes: object) -> Me:
    scopes = SCOPES[role] if role else []
    given = {
        "principal": "person:1",
        "name": "bob",
        "workspace": "lab",
        "role": role,
        "scopes": scopes,
        "operator": False,
        **changes,
    }
    return Me.model_validate(given)


def test_a_viewer_is_told_once_and_offered_nothing_that_changes() -> None:
    found = may.lacking(somebody("viewer"))
    assert {"#wb-go", "#ex-share", "#md-go"} <= found.keys()
    assert set(found.values()) == {
        "Your role here is viewer: it looks, but changes nothing. An owner of the workspace can give you another role."
    }


def test_an_editor_lacks_only_what_owners_do() -> None:
    found = may.lacking(somebody("editor"))
    assert found.keys() == set(may.NEEDS["admin"]) and "does not make models" in found["#md-go"]


def test_owners_and_the_token_lack_nothing() -> None:
    assert may.lacking(somebody("owner")) == {}
    assert may.lacking(somebody(None, name="", scopes=SCOPES["owner"])) == {}


def test_who_belongs_nowhere_is_told_how_to() -> None:
    assert "belong to no workspace" in may.lacking(somebody(None, workspace=""))["#wb-go"]


@pytest.mark.parametrize("selector", [s for some in may.NEEDS.values() for s in some])
def test_every_control_that_is_named_is_there(selector: str) -> None:
    """A control that got another name would be offered again."""
    kind = re.match(r"""\[id\*='"type":"([a-z-]+)"'\]""", selector)
    name = kind[1] if kind else re.findall(r"[a-z]+(?:-[a-z]+)+|mute", selector)[0]
    prefix, _, rest = name.partition("-")
    built = f'f"{prefix}-{{name}}"' in SOURCE and f'"{rest}"' in SOURCE
    assert name in SOURCE or built, name


def test_every_callback_that_changes_something_has_its_control_here() -> None:
    """By the calls that change: whoever adds one names its button, or says why not."""
    named = " ".join(s for some in may.NEEDS.values() for s in some)
    inputs = set(re.findall(r'Input\("([a-z]{2}n?-[a-z-]+)", "n_clicks"\)', SOURCE))
    free = {"wb-more", "ex-delete-not", "revoke-no", *{i for i in inputs if i.startswith("pp-")}}
    assert {i for i in inputs if f"#{i}" not in named} - free == set()
