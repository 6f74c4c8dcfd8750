"""People and keys under Settings, on a real server: an account is made and logs in, a role is given, a key is made, used and revoked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from browser_visitor import PHONE, Visitor

from fanlight import administration
from fanlight.client import Client
from fanlight.errors import FanlightError
from support.processes import FanlightServer

pytestmark = pytest.mark.browser
Come = Callable[..., Visitor]
PASSWORD = "seven quiet herons"


def choose(page: Any, id: str, words: str) -> None:
    """In a list of choices."""
    page.click(id)
    page.click(f"[role=option] >> text={words}")


def logged_in(me: Visitor, name: str) -> Any:
    page = me.page
    page.goto(me.url + "/login")
    page.fill("input[name=name]", name)
    page.fill("input[name=password]", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_selector("main")
    return page


def test_an_operator_makes_an_account_which_then_looks_but_cannot_change(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter("/settings")
        page.fill("#pp-login", "vera")
        page.fill("#pp-password", PASSWORD)
        page.click("#pp-make")
        page.wait_for_selector("text=The account of vera is there, as viewer of this workspace.")
        page.wait_for_selector("#pp-members >> text=vera")
        page.fill("#pp-login", "vera")
        page.fill("#pp-password", PASSWORD)
        page.click("#pp-make")
        page.wait_for_selector("text=There is an account named “vera” already.")
        page.wait_for_selector("#pp-accounts >> text=never here yet")
        assert me.faults() == [] and me.sideways() <= 0
        me.shot("settings-people", full=True)
    with visitor(size=PHONE, scheme="dark") as her:
        page = logged_in(her, "vera")
        page = her.open("/settings")
        assert "viewer" in page.inner_text("main") and page.locator("#pp-members").count() == 0
        page = her.open("/explain")
        page.wait_for_selector("#may-said >> text=Your role here is viewer: it looks, but changes nothing.")
        page.wait_for_selector("#wb-go:disabled", state="attached")
        assert "viewer" in page.get_attribute("#wb-go", "title")
        her.shot("workbench-viewer")
        her.open("/settings")
        page.click("text=Leave Default")
        page.click("#pp-yes")
        page.wait_for_selector("text=none yet")
        her.wrong[:] = [w for w in her.wrong if "403" not in w]  # who belongs nowhere has no stream of events
        assert her.faults() == [] and her.sideways() <= 0
    with visitor() as me:
        page = me.enter("/settings")
        page.wait_for_selector("#pp-accounts >> text=vera")
        assert "vera" not in page.inner_text("#pp-members")
        page.fill("#pp-who", "vera")
        choose(page, "#pp-as", "editor")
        page.click("#pp-add")
        page.wait_for_selector("text=vera is editor of this workspace.")
        page.click("#pp-members button >> text=Remove")
        page.click("#pp-yes")
        page.wait_for_selector("text=vera belongs to this workspace no more.")


def test_a_key_is_made_shown_once_used_and_revoked(visitor: Come, server: FanlightServer) -> None:
    with visitor() as me:
        page = me.enter("/settings")
        page.fill("#pp-key-name", "nightly")
        choose(page, "#pp-ends", "after a week")
        page.click("#pp-key")
        secret = page.inner_text("#pp-secret")
        with Client(server.url, secret) as program:
            assert program.models()
        me.shot("settings-key")
        page.reload()
        page.wait_for_selector("#pp-keys >> text=nightly")
        assert secret not in page.content()
        page.focus("#pp-keys button >> text=Revoke")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Programs with this key are refused from now on.")
        page.click("#pp-yes")
        page.wait_for_selector("text=“nightly” opens nothing any more.")
        with Client(server.url, secret) as program, pytest.raises(FanlightError, match="does not open"):
            program.models()
        page.reload()
        page.click("text=What was done here")
        page.wait_for_selector(".log >> text=key.revoke")
    with Client(server.url, server.token) as client:
        found = [e.action for e in client.send(administration.audit(action="key")).items]
        assert found[:2] == ["key.revoke", "key.create"]


def test_the_workspace_gets_another_name(visitor: Come) -> None:
    with visitor() as me:
        page = me.enter("/settings")
        page.fill("#pp-name", "Ornithology")
        page.click("#pp-rename")
        page.wait_for_selector("text=The workspace is now called Ornithology.")
        page.reload()
        page.wait_for_selector("text=Ornithology")
