"""What the pages say and ask, without a browser."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator
from typing import Any

import fake_api
import httpx
import pytest
from test_ui_frame import words
from ui_support import build

from fanlight import wire
from fanlight.client import AsyncClient
from fanlight.errors import BadRequest
from fanlight_ui import cards, examples, filters, session, table
from fanlight_ui.query import Query


@pytest.fixture
def store() -> Iterator[fake_api.Store]:
    """Pages that ask a stand-in for the API in this process."""
    store = fake_api.Store()
    build(store, "")
    session.connect(AsyncClient(transport=httpx.ASGITransport(fake_api.create(store))), "")
    yield store


def page(name: str) -> Any:
    return importlib.import_module(f"fanlight_ui.pages.{name}")


def hrefs(component: Any) -> list[str]:
    """All addresses in a component, in order."""
    if isinstance(component, (list, tuple)):
        return [h for c in component for h in hrefs(c)]
    own = getattr(component, "href", None)
    return ([own] if own else []) + (
        hrefs(component.children) if getattr(component, "children", None) is not None else []
    )


def test_the_address_says_what_is_asked() -> None:
    query = Query.of({"family": "b", "class": "tabby", "nonsense": "x", "q": "", "view": "table", "cursor": "c"})
    assert query.asked(10) == {"family": "b", "class": "tabby", "sort": "newest", "limit": 10, "cursor": "c"}
    assert query.view == "table"
    assert query.filters == {"family": "b", "class": "tabby"}


def test_of_a_name_given_twice_the_last_counts(store: fake_api.Store) -> None:
    asyncio.run(page("gallery").layout(tag=["a", "shortcut"]))
    assert "tag=shortcut&sort=newest&limit=36" in store.asked


def test_a_changed_filter_starts_the_list_again(store: fake_api.Store) -> None:
    query = Query.of({"family": "a", "cursor": "40", "sort": "oldest"})
    assert query.to(tag="x") == "/?family=a&sort=oldest&tag=x"
    assert query.to(family=None) == "/?sort=oldest"
    assert query.to(cursor="80") == "/?family=a&cursor=80&sort=oldest"


def test_a_chosen_filter_comes_first_and_leads_out_of_itself(store: fake_api.Store) -> None:
    facets = [wire.Facet(value=v, label=v.upper(), count=n) for v, n in (("a", 9), ("b", 3))]
    group = filters.group(Query.of({"family": "b"}), "family", facets)
    assert hrefs(group) == ["/", "/?family=a"]
    assert words(group).split()[:3] == ["Family", "✓", "B"]


def test_a_chosen_value_that_no_longer_occurs_can_still_be_taken_out(store: fake_api.Store) -> None:
    group = filters.group(Query.of({"tag": "gone"}), "tag", [])
    assert hrefs(group) == ["/"] and "gone" in words(group)


def test_the_gallery_asks_for_what_the_address_says(store: fake_api.Store) -> None:
    shown = asyncio.run(page("gallery").layout(family="attribution", outcome="wrong", sort="oldest"))
    wrong = sum(e.outcome == "wrong" for e in store.explanations.values())
    assert f"{wrong} of 130" in words(shown)
    assert "family=attribution&outcome=wrong&sort=oldest&limit=36" in store.asked


def test_a_later_page_keeps_the_counts_of_the_list(store: fake_api.Store) -> None:
    shown = asyncio.run(page("gallery").layout(cursor="36"))
    assert "Occlusion" in words(shown.children[0]) and "/" in hrefs(shown.children[1])


def test_nothing_found_offers_the_way_back(store: fake_api.Store) -> None:
    shown = asyncio.run(page("gallery").layout(q="zzz"))
    assert "No explanation fits" in words(shown) and "/" in hrefs(shown)


def test_an_empty_gallery_offers_three_examples_of_what_fits(store: fake_api.Store) -> None:
    store.explanations.clear()
    shown = words(asyncio.run(page("gallery").layout()))
    assert shown.count("Why “") == examples.COUNT and "Explain something of mine" in shown


def test_a_card_names_the_class_in_question_with_its_probability() -> None:
    e = fake_api.explanation(1)
    assert (cards.name(e), cards.probability(e)) == ("space suit", "83 %")
    assert cards.name(e.model_copy(update={"title": "My title"})) == "My title"
    assert cards.probability(e.model_copy(update={"target": {"minus": [1, 2]}})) == ""


def test_a_card_of_something_unfinished_says_so() -> None:
    e = fake_api.explanation(1).model_copy(update={"state": "failed"})
    assert words(cards.card(e)).count("failed") == 2


def test_the_table_follows_the_cursors_and_ends(store: fake_api.Store) -> None:
    query, cursors, seen = Query.of({}), {}, []
    for start in (0, 60, 120):
        answer, cursors = asyncio.run(table.block({"startRow": start, "endRow": start + 60}, query, cursors))
        seen += [r["id"] for r in answer["rowData"]]
    assert seen == list(store.explanations)
    assert answer["rowCount"] == 130


def test_the_table_can_ask_for_an_earlier_block_again(store: fake_api.Store) -> None:
    _, cursors = asyncio.run(table.block({"startRow": 0, "endRow": 60}, Query.of({}), {}))
    first, _ = asyncio.run(table.block({"startRow": 60, "endRow": 120}, Query.of({}), cursors))
    again, _ = asyncio.run(table.block({"startRow": 60, "endRow": 120}, Query.of({}), cursors))
    assert first == again and first["rowCount"] is None


def test_a_column_that_is_empty_in_every_row_so_far_is_hidden() -> None:
    def hidden(columns: list[dict[str, Any]]) -> list[str]:
        return [c["field"] for c in columns if c["hide"]]

    rows = [{c["field"]: "x" for c in table.COLUMNS} | {"outcome": "", "input": ""} for _ in range(2)]
    first = table.filled(rows)
    assert hidden(first) == ["outcome", "input"]
    later = table.filled([rows[0] | {"outcome": "right", "method": ""}], first)
    assert hidden(later) == ["input"]
    assert hidden(table.filled(rows, later)) == ["input"]


def test_a_block_out_of_order_is_refused(store: fake_api.Store) -> None:
    with pytest.raises(BadRequest):
        asyncio.run(table.block({"startRow": 120, "endRow": 180}, Query.of({}), {"60": "60"}))


def test_a_row_says_where_a_map_is_not_above_the_floor() -> None:
    assert table.faithfulness(fake_api.explanation(8).trust) == "▽ −0.04 not above"
    assert table.faithfulness(fake_api.explanation(1).trust) == "● +0.45"
    assert table.faithfulness(wire.Trust(state="unavailable", reason="x")) == "○ not measured"


def test_a_job_says_where_it_stands(store: fake_api.Store) -> None:
    said = {id: page("jobs").state_words(j) for id, j in store.jobs.items()}
    assert said["j1"].startswith("window 412 of 980 · 42 % · about 14")
    assert said["j2"].startswith("2 before it in the queue · about 40")
    assert said["j4"].startswith("failed · ")
    assert said["j5"].startswith("done in 1")


def test_jobs_of_mine_come_first_and_only_they_can_be_cancelled(store: fake_api.Store) -> None:
    listed = asyncio.run(page("jobs").listing())
    assert [words(s.children[0]) for s in listed] == ["Mine", "Of others", "Finished"]
    assert [words(s).count("Cancel ") for s in listed] == [2, 0, 0]
    assert "The model returned NaN" in words(listed[2])


def test_a_share_is_live_until_it_expires_or_is_revoked(store: fake_api.Store) -> None:
    states = {s.id: page("shares").status(s, now=fake_api.NOW) for s in store.shares.values()}
    assert states == {"s1": "live", "s2": "expired", "s3": "revoked"}


def test_only_live_shares_can_be_revoked(store: fake_api.Store) -> None:
    assert words(asyncio.run(page("shares").listing())).count("Revoke ") == 1


def test_classes_are_found_by_name_and_number(store: fake_api.Store) -> None:
    listing = page("model").listing
    assert words(listing(["cat", "dog", "catfish"], " CAT ")).split() == ["0", "cat", "2", "catfish"]
    assert words(listing(["cat", "dog"], "1")).split() == ["1", "dog"]
    assert "No class fits" in words(listing(["cat"], "x"))
    assert "and 64 more" in words(listing([f"c{i}" for i in range(100)], ""))


def test_a_model_says_why_a_method_does_not_fit(store: fake_api.Store) -> None:
    shown = words(asyncio.run(page("model").layout(model_id="black-box")))
    assert "Saliency needs gradients, and this model offers none." in shown


def test_an_unknown_data_set_is_told_in_a_sentence(store: fake_api.Store) -> None:
    shown = words(asyncio.run(page("data").layout(dataset="photograph")))
    assert "Did you mean photographs?" in shown


def test_samples_lead_to_the_workbench(store: fake_api.Store) -> None:
    shown = asyncio.run(page("data").layout(q="tabby"))
    assert "/explain?input=chelsea&dataset=photographs" in hrefs(shown)
    assert "10 found" in words(shown)


def test_a_data_set_that_is_being_read_shows_how_far_it_is_and_says_when_it_is_there(store: fake_api.Store) -> None:
    store.reading = [wire.DatasetReading(id="birds", name="Birds", done=1200, total=50_000)]
    shown = words(asyncio.run(page("data").layout()))
    assert "Birds: reading pictures, 1,200 of 50,000." in shown
    store.reading = []
    later, over = asyncio.run(page("data").look(1, ["Birds"]))
    assert over and "Read: Birds." in words(later)
    again, _ = asyncio.run(page("data").look(2, ["Birds"]))
    assert "Read: Birds." in words(again)
    assert "reading pictures" not in words(asyncio.run(page("data").layout()))


def test_settings_of_somebody_who_looks_only_ask_for_nothing_they_may_not_see(store: fake_api.Store) -> None:
    places = [{"workspace": w, "name": w.title(), "role": "viewer"} for w in ("default", "lab")]
    store.me = {
        "principal": "person:1", "name": "bob", "workspace": "lab", "workspace_name": "Lab", "role": "viewer", "scopes": ["read"],
        "operator": False, "workspaces": places,
    }  # fmt: skip
    shown = asyncio.run(page("settings").layout())
    assert "You are bob" in words(shown) and "Workspace Lab" in words(shown) and "Keys of programs" not in words(shown)
    assert "Default" in words(shown) and "Log out" in words(shown)


def test_settings_of_an_owner_list_the_members(store: fake_api.Store) -> None:
    shown = words(asyncio.run(page("settings").layout()))
    assert "Members of this workspace" in shown and "ann" in shown and "Keys of programs" in shown
    assert "Log out" not in shown, "with the token there is no session to end"


def test_settings_tell_the_facts_of_the_server(store: fake_api.Store) -> None:
    shown = words(asyncio.run(page("settings").layout()))
    assert "this machine only" in shown and "A link lasts 30 days" in shown and "2 running, 1 waiting" in shown
