"""Saved views: kept, opened, renamed, deleted and brought back; what is no view is refused."""

from __future__ import annotations

from typing import Any

from api_rig import Api


def save(api: Api, name: str, **query: str) -> dict[str, Any]:
    answer = api.call("POST", "/views", json={"name": name, "query": query})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def test_a_view_is_kept_renamed_deleted_and_brought_back(api: Api) -> None:
    made = save(api, "  wrong and sure  ", outcome="wrong", sort="probability", q="<b>koala</b>", view="cards")
    assert made["name"] == "wrong and sure" and made["mine"]
    assert made["query"] == {"outcome": "wrong", "sort": "probability", "q": "<b>koala</b>"}, "defaults are left out"
    save(api, "All of mine", owner="me")
    assert [v["name"] for v in api.call("GET", "/views").json()] == ["All of mine", "wrong and sure"]
    renamed = api.call("PATCH", f"/views/{made['id']}", json={"name": "Wrong!"}).json()
    assert (renamed["name"], renamed["query"]) == ("Wrong!", made["query"])
    other = api.call("PATCH", f"/views/{made['id']}", json={"query": {"trust": "below"}}).json()
    assert other["query"] == {"trust": "below"}
    assert api.call("DELETE", f"/views/{made['id']}").json()["name"] == "Wrong!"
    assert [v["name"] for v in api.call("GET", "/views").json()] == ["All of mine"]
    assert api.call("DELETE", f"/views/{made['id']}").status_code == 404
    assert api.call("PATCH", f"/views/{made['id']}", json={"name": "x"}).status_code == 404
    assert api.call("POST", f"/views/{made['id']}/restore").json()["query"] == {"trust": "below"}
    assert [v["name"] for v in api.call("GET", "/views").json()] == ["All of mine", "Wrong!"]
    assert api.call("POST", f"/views/{made['id']}/restore").status_code == 200, "twice is no error"


def test_names_are_given_once(api: Api) -> None:
    first, second = save(api, "Birds", q="bird"), save(api, "Cats", q="cat")
    for call in (
        api.call("POST", "/views", json={"name": "birds", "query": {}}),
        api.call("PATCH", f"/views/{second['id']}", json={"name": "BIRDS"}),
    ):
        assert call.status_code == 409 and call.json()["error"]["code"] == "name_taken"
    assert api.call("PATCH", f"/views/{first['id']}", json={"name": "BIRDS"}).status_code == 200
    api.call("DELETE", f"/views/{first['id']}")
    save(api, "birds", q="parrot")
    answer = api.call("POST", f"/views/{first['id']}/restore")
    assert answer.status_code == 409 and "birds" in answer.json()["error"]["message"].casefold()


def test_what_is_no_view_is_refused_with_a_sentence(api: Api) -> None:
    def code(**body: Any) -> str:
        answer = api.call("POST", "/views", json=body)
        assert 400 <= answer.status_code < 500 and answer.json()["error"]["message"]
        return str(answer.json()["error"]["code"])

    assert code(name="x", query={"nonsense": "1"}) == "invalid_view"
    assert code(name="x", query={"sort": "colour"}) == "invalid_view"
    assert code(name="x", query={"view": "map"}) == "invalid_view"
    assert code(name="   ", query={}) == "invalid_request"
    assert code(name="x" * 101, query={}) == "invalid_request"
    assert code(name="x", query={"q": "y" * 201}) == "invalid_request"
    assert code(name="x", query={"q": 3}) == "invalid_request"
    assert code(name="x", query={}, extra=1) == "invalid_request"
    assert api.call("GET", "/views").json() == []


def test_there_are_not_without_end(api: Api, monkeypatch: Any) -> None:
    from fanlight.service import views

    monkeypatch.setattr(views, "MOST", 2)
    save(api, "one")
    save(api, "two")
    answer = api.call("POST", "/views", json={"name": "three", "query": {}})
    assert answer.status_code == 409 and answer.json()["error"]["code"] == "too_many_views"
