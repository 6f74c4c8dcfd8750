"""Settings: who belongs to the workspace, keys, accounts and the log; what is done there asks first and says what came of it."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator
from typing import Any

import fake_api
import httpx
import pytest
from dash._callback_context import context_value
from dash._utils import AttributeDict
from dash.exceptions import PreventUpdate
from fake_people import NOW
from test_ui_frame import words
from ui_support import build

from fanlight import wire
from fanlight.client import AsyncClient
from fanlight_ui import keys, people, people_deeds as deeds, session


@pytest.fixture
def store() -> Iterator[fake_api.Store]:
    made = fake_api.Store()
    build(made, "")
    session.connect(AsyncClient(transport=httpx.ASGITransport(fake_api.create(made))), "")
    yield made


def call(make: Any, *args: Any, by: dict[str, str] | str = "", value: Any = 1) -> tuple[Any, dict[str, Any]]:
    """What a callback answers, and what it set besides. Args: by: id of what set it off; value: of that."""
    id = json.dumps(by, separators=(",", ":"), sort_keys=True) if isinstance(by, dict) else by
    props: dict[str, Any] = {}
    triggered = [AttributeDict(prop_id=f"{id}.n_clicks", value=value)] if by else []
    context_value.set(AttributeDict(updated_props=props, triggered_inputs=triggered))
    return asyncio.run(make(*args)), props


def said(props: dict[str, Any]) -> str:
    return " ".join(n["message"] for n in props["toasts"]["sendNotifications"])


def settings() -> str:
    return words(asyncio.run(importlib.import_module("fanlight_ui.pages.settings").layout()))


def test_an_owner_sees_quotas_members_keys_and_the_log(store: fake_api.Store) -> None:
    store.people.log.append(
        wire.AuditEntry(
            id=1,
            time=NOW,
            workspace="default",
            principal="key:k1",
            who="nightly",
            action="share.create",
            subject="s1",
            detail={"n": 2},
        )  # fmt: skip
    )
    shown = settings()
    assert "5 of 20 (25 %)" in shown and "1,200 forward passes, no quota" in shown
    assert "ann" in shown and "nightly report" in shown and "revoked" in shown
    assert "nightly share.create s1  n 2" in shown


def test_a_viewer_sees_quotas_alone(store: fake_api.Store) -> None:
    store.me = {**store.me, "role": "viewer", "scopes": ["read"], "operator": False, "name": "bob"}
    shown = settings()
    assert "5 of 20" in shown and "Leave" in shown
    assert not [w for w in ("Members of", "Keys of", "Accounts", "What was done", "Rename") if w in shown]


def test_who_belongs_nowhere_sees_how_to_and_can_log_out(store: fake_api.Store) -> None:
    store.me = {"principal": "person:9", "name": "new", "workspace": "", "scopes": [], "operator": False}
    shown = settings()
    assert "none yet" in shown and "An owner of a workspace can add you" in shown and "Log out" in shown
    assert "This workspace" not in shown and "Versions" not in shown


def test_accounts_are_for_operators(store: fake_api.Store) -> None:
    store.me = {**store.me, "operator": False}
    assert "bob in no workspace" not in settings()
    store.me = {**store.me, "operator": True}
    assert "bob in no workspace; never here yet" in settings()


def test_somebody_is_added_and_given_another_role(store: fake_api.Store) -> None:
    shown, props = call(deeds.add, 1, " bob ", "viewer")
    assert "bob is viewer of this workspace." in said(props) and "bob" in words(shown)
    by = {"type": people.ROLE, "who": "2"}
    _, props = call(deeds.turn, ["owner", "owner"], by=by, value="owner")
    assert store.people.members["2"].role == "owner" and "bob is owner" in said(props)
    with pytest.raises(PreventUpdate):  # the same role as it has
        call(deeds.turn, ["owner", "owner"], by=by, value="owner")


def test_a_refusal_is_a_sentence_and_the_list_stays_as_it_is(store: fake_api.Store) -> None:
    _, props = call(deeds.add, 1, "nobody", "viewer")
    assert "There is no person named “nobody”." in said(props)
    shown, props = call(deeds.turn, ["viewer"], by={"type": people.ROLE, "who": "1"}, value="viewer")
    assert "The workspace would have no owner." in said(props) and store.people.members["1"].role == "owner"
    assert "ann" in words(shown)
    with pytest.raises(PreventUpdate):
        call(deeds.add, 1, " ", "viewer")


def test_what_cannot_be_taken_back_is_asked_first(store: fake_api.Store) -> None:
    store.people.keys["k2"] = store.people.keys["k1"].model_copy(update={"id": "k2", "revoked": None})
    by = {"type": people.DO, "verb": "revoke", "who": "k2"}
    (opened, what, question, word), _ = call(deeds.ask_first, [1], None, by=by)
    assert opened and "cannot be taken back" in question and word == "Revoke the key"
    assert store.people.keys["k2"].revoked is None
    closed, props = call(deeds.do, 1, what)
    assert closed is False and store.people.keys["k2"].revoked and "opens nothing any more" in said(props)
    assert "pp-keys" in props
    (opened, *_), _ = call(deeds.ask_first, [None], 1, by="pp-no")
    assert not opened


def test_every_question_leads_to_a_deed(store: fake_api.Store) -> None:
    store.people.members["2"] = store.people.members["1"].model_copy(update={"person": "2", "name": "bob"})
    _, props = call(deeds.do, 1, {"verb": "remove", "who": "2"})
    assert "2" not in store.people.members and "bob belongs" in said(props)
    for verb, closed in (("close", True), ("open", False)):
        _, props = call(deeds.do, 1, {"verb": verb, "who": "2"})
        assert store.people.accounts["2"].disabled is closed and "pp-accounts" in props
    with pytest.raises(Exception, match="no owner"):
        call(deeds.do, 1, {"verb": "leave", "who": "default"})
    assert set(deeds.QUESTIONS) == {"leave", "remove", "revoke", "close", "open"}


def test_a_key_is_shown_once_with_its_end(store: fake_api.Store) -> None:
    shown, _ = call(deeds.make_key, 1, "report", ["read", "share"], "7")
    assert "fl_k2_secret" in words(shown) and "It is shown this once" in words(shown)
    assert store.people.keys["k2"].expires == NOW + 7 * 86400
    assert "fl_k2_secret" not in words(keys.inside(list(store.people.keys.values())))
    call(deeds.make_key, 1, "for ever", ["read"], "never")
    assert store.people.keys["k3"].expires is None
    for name, scopes in (("", ["read"]), ("x", [])):
        with pytest.raises(PreventUpdate):
            call(deeds.make_key, 1, name, scopes, "7")


def test_an_account_is_made_and_added(store: fake_api.Store) -> None:
    _, props = call(deeds.make_account, 1, "eve", "seven quiet herons", "editor")
    assert store.people.members["3"].role == "editor" and "as editor of this workspace" in said(props)
    assert "pp-members" in props
    call(deeds.make_account, 1, "dan", "seven quiet herons", "none")
    assert "4" in store.people.accounts and "4" not in store.people.members
    _, props = call(deeds.make_account, 1, "sam", "short", "none")
    assert "12 to 256 characters" in said(props) and "5" not in store.people.accounts


def test_an_owner_names_the_workspace(store: fake_api.Store) -> None:
    name, props = call(deeds.rename, 1, " The nest ")
    assert name == store.people.space.name == "The nest" and "called The nest" in said(props)
    with pytest.raises(PreventUpdate):
        call(deeds.rename, 1, "")


@pytest.mark.parametrize(
    ("taken", "most", "words_"), [(5, 20, "5 of 20 (25 %)"), (30, 20, "30 of 20 (100 %)"), (0, None, "0, no quota")]
)
def test_a_share_of_a_quota(taken: int, most: int | None, words_: str) -> None:
    assert people.share(taken, most) == words_


def test_buttons_say_whom_they_are_about_and_nobody_removes_themselves(store: fake_api.Store) -> None:
    bob = wire.Member(person="2", name="bob", role="viewer", disabled=True, since=NOW)
    me = wire.Me(principal="person:1", name="ann", workspace="default", role="owner", scopes=["admin"], operator=False)
    shown = words(people.belonging([*store.people.members.values(), bob], me))
    assert shown.count("Remove") == 1 and "Remove  bob" in shown and "(you)" in shown and "closed" in shown
    assert "Role of bob" in str(people.belonging([bob], me))
