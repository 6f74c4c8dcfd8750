"""Members of a workspace: they leave by themselves, owners name it, and everybody in it sees what it has asked for."""

from __future__ import annotations

from api_rig import Api
from people_rig import entered, founded
from workspaces_rig import visitor


def test_people_leave_by_themselves_but_the_last_owner_stays(api: Api) -> None:
    founded(api, "barn", hen="owner")
    hen, fox = entered(api, "hen"), visitor(api, "fox", "viewer", workspace="barn")
    refused = hen.call("DELETE", "/me/workspaces/barn")
    assert refused.status_code == 409 and refused.json()["error"]["code"] == "last_owner"
    assert api.call("PATCH", "/people/hen", json={"operator": True}).status_code == 200
    assert hen.call("DELETE", "/me/workspaces/barn").status_code == 409, "not of an operator either"
    key = hen.call("POST", "/keys", json={"name": "k", "scopes": ["read"]}).json()
    assert api.call("PUT", "/workspaces/barn/members/fox", json={"role": "owner"}).status_code == 200
    assert hen.call("DELETE", "/me/workspaces/barn").json()["name"] == "hen"
    assert hen.call("GET", "/me").json()["workspace"] == ""
    assert fox.call("GET", "/keys").json()[0]["id"] == key["id"] and fox.call("GET", "/keys").json()[0]["revoked"]
    assert hen.call("DELETE", "/me/workspaces/barn").status_code == 404
    assert api.call("DELETE", "/me/workspaces/barn").json()["error"]["code"] == "not_a_person"


def test_owners_name_their_workspace_and_all_see_its_quotas_which_operators_set(api: Api) -> None:
    owl = visitor(api, "owl", "owner", workspace="nest")
    egg = visitor(api, "egg", "viewer", workspace="nest")
    assert owl.call("PATCH", "/workspaces/nest", json={"name": "The nest"}).json()["name"] == "The nest"
    for quota in ({"most_jobs": 9}, {"most_cost": 9}, {"weight": 9}, {"name": "x", "weight": 9}):
        refused = owl.call("PATCH", "/workspaces/nest", json=quota)
        assert refused.status_code == 403 and refused.json()["error"]["allowed"] == ["name"]
    assert egg.call("PATCH", "/workspaces/nest", json={"name": "mine"}).status_code == 403
    assert api.call("PATCH", "/workspaces/nest", json={"most_jobs": 3, "weight": 2}).status_code == 200
    seen = egg.call("GET", "/workspaces/nest").json()
    assert (seen["name"], seen["most_jobs"], seen["weight"], seen["jobs"]) == ("The nest", 3, 2, 0)
    assert egg.call("GET", "/workspaces/default").status_code == 404
