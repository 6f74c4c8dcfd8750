"""The edges of the wire: what no browser sends and an attacker does. Every answer is a sentence, none a 500."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from api_rig import TOKEN, Api, noise, settings, started
from fastapi.testclient import TestClient

from fanlight.api import events
from fanlight.app import create

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One server for this module: every fault here is one that changes nothing."""
    app = create(settings(tmp_path_factory.mktemp("edges")), token=TOKEN, pages=False)
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}, raise_server_exceptions=False) as http:
        yield Api(started(http))


@pytest.fixture(scope="module")
def record(api: Api) -> dict[str, Any]:
    return api.explain(input=api.upload(noise(1))["id"])


@pytest.fixture
def stranger(api: Api) -> TestClient:
    return TestClient(api.http.app, raise_server_exceptions=False)


def refused(answer: Any, status: int, *words: str) -> dict[str, Any]:
    assert answer.status_code == status, (answer.status_code, answer.text[:500])
    error: dict[str, Any] = answer.json()["error"]
    assert error["message"].endswith((".", "?"))
    said = json.dumps(error).lower()
    assert all(w.lower() in said for w in words), error
    return error


# --- the gate


@pytest.mark.parametrize("host", ["[", "a]b", "[::1", "]", "\xff[", "[v1.x]:y"])
def test_a_host_that_is_no_host_is_refused(stranger: TestClient, host: str) -> None:
    refused(stranger.get("/healthz", headers={"host": host.encode("latin-1")}), 400)


def test_a_cookie_outside_ascii_is_no_cookie(api: Api) -> None:
    browser = TestClient(api.http.app, raise_server_exceptions=False)
    browser.get(f"/?token={TOKEN}", follow_redirects=False)
    ((name, value),) = browser.cookies.items()
    for forged in ("\xe9.\xe9", value + "\xff", '"\\351.x"', "\x01.\x02"):
        header = f"{name}={forged}".encode("latin-1")
        answer = TestClient(api.http.app, raise_server_exceptions=False).get(
            "/api/v1/models", headers={"cookie": header}
        )
        refused(answer, 401)


@pytest.mark.parametrize("origin", ["http://[", "http://a]b", "\xff", "http://[::1"])
def test_an_origin_that_is_no_address_is_another_site(api: Api, origin: str) -> None:
    browser = TestClient(api.http.app, raise_server_exceptions=False)
    browser.get(f"/?token={TOKEN}", follow_redirects=False)
    refused(browser.post("/api/v1/shares", headers={"origin": origin.encode("latin-1")}), 403)


@pytest.mark.parametrize(
    "header", ["authorization", "cookie", "host", "origin", "accept", "content-length", "x-forwarded-proto"]
)
@pytest.mark.parametrize("value", [b"\xff\xfe", b"Bearer \xe9", b"[", b"=;=;", b"%00", b"bearer"])
def test_no_header_breaks_the_gate(stranger: TestClient, header: str, value: bytes) -> None:
    for method, path in (("GET", "/"), ("POST", "/login"), ("GET", "/healthz"), ("DELETE", "/api/v1/shares/x")):
        assert stranger.request(method, path, headers={header: value}).status_code < 500, (method, path)


@pytest.mark.parametrize(
    "path",
    ["/%09/evil.com", "/%0d%0aset-cookie:x=1", "/a%00", "/%7f", "/%c2%85", "/%e2%80%a8/evil.com", "/%0a/evil.com"],
)
def test_control_characters_in_a_path_are_refused(stranger: TestClient, path: str) -> None:
    answer = stranger.get(f"{path}?token={TOKEN}", follow_redirects=False)
    refused(answer, 400)
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/e/%C3%A9", "/e/%C3%A9"),
        ("/a%20b", "/a%20b"),
        ("/a%3Fb", "/a%3Fb"),
        ("/a%23b", "/a%23b"),
        ("//evil.com", "/evil.com"),
        ("/%2F/evil.com", "/evil.com"),
        ("/e/x?q=%C3%A9%0d%0a&x=1", "/e/x?q=%C3%A9%0D%0A&x=1"),
    ],
)
def test_entering_leads_to_the_same_address_percent_encoded(stranger: TestClient, path: str, location: str) -> None:
    target = f"http://testserver{path}{'&' if '?' in path else '?'}token={TOKEN}"
    answer = stranger.get(target, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, location)


def test_the_login_address_shows_the_form_or_leads_home(api: Api, stranger: TestClient) -> None:
    form = stranger.get("/login")
    assert form.status_code == 200 and 'action="/login"' in form.text and "_dash" not in form.text
    assert stranger.head("/login").status_code == 200
    refused(stranger.put("/login"), 405, "post")
    entered = stranger.post("/login", data={"token": TOKEN}, follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    home = stranger.get("/login", follow_redirects=False)
    assert (home.status_code, home.headers["location"]) == (303, "/")


def test_there_is_no_icon_for_strangers(api: Api, stranger: TestClient) -> None:
    refused(stranger.get("/favicon.ico"), 404)
    refused(api.http.get("/favicon.ico"), 404)


# --- text and numbers


UNSTORABLE = [
    r'"\ud800"',
    r'"a\udfffb"',
    r'"\u0000"',
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "1" + "0" * 400,
    "1" + "0" * 5000,
    "[" * 900 + "]" * 900,
    '{"a":' * 900 + "1" + "}" * 900,
    r'{"\ud800": 1}',
]


@pytest.mark.parametrize("value", UNSTORABLE, ids=lambda v: v[:12])
def test_what_cannot_be_stored_is_refused_wherever_it_stands(api: Api, record: dict[str, Any], value: str) -> None:
    ident, photo = record["id"], record["input"]
    one = f'{{"model": "tiny", "explainer": "saliency", "input": "{photo}"'
    bodies = [
        ("POST", "/explanations", f'{one}, "params": {{"x": {value}}}}}'),
        ("POST", "/explanations", f'{one}, "target": {value}}}'),
        ("POST", "/explanations", f'{{"model": {value}, "explainer": "saliency", "input": "x"}}'),
        ("PATCH", f"/explanations/{ident}", f'{{"title": {value}}}'),
        ("PATCH", f"/explanations/{ident}", f'{{"tags": [{value}]}}'),
        ("POST", "/interventions", f'{{"explanation": "{ident}", "edits": [{{"set_target": {value}}}]}}'),
        ("POST", "/interventions", f'{{"explanation": "{ident}", "edits": [{{"mask_region": [0, 0, 4, {value}]}}]}}'),
        ("POST", "/live", f'{{"session": {value}, "explanation": "{ident}", "edits": [], "seq": 1}}'),
        ("POST", "/shares", f'{{"explanations": ["{ident}"], "view": {{"hi": {value}, "lo": 0}}}}'),
        ("POST", "/shares", f'{{"explanations": ["{ident}"], "view": {{"other": {value}}}}}'),
        ("POST", f"/explanations/{ident}/trust", f'{{"measures": [{value}]}}'),
    ]
    for method, path, body in bodies:
        answer = api.call(method, path, content=body.encode(), headers=JSON)
        assert answer.status_code in (400, 422), (path, body[:80], answer.status_code, answer.text[:300])
        assert answer.json()["error"]["message"].endswith(".")


def test_raw_surrogates_and_other_encodings_are_not_utf_8(api: Api) -> None:
    for body in (b'{"model": "\xed\xa0\x80"}', '{"model": "x"}'.encode("utf-16"), b'{"model": "\xff"}'):
        refused(api.call("POST", "/explanations", content=body, headers=JSON), 400, "utf-8")


def test_a_name_in_an_odd_charset_is_still_text(api: Api) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="\\ud800.png"\r\n\r\n'
    kind = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}
    answer = api.call("POST", "/inputs", content=head + noise(7) + b"\r\n--x--\r\n", headers=kind)
    assert answer.status_code == 201, answer.text
    assert api.call("GET", f"/inputs/{answer.json()['id']}").status_code == 200


def test_an_error_shows_any_value_at_all() -> None:
    from fanlight.api.shapes import respond
    from fanlight.errors import InvalidField

    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    for given in (deep, "\ud800", {"\ud800": float("nan")}, 10**5000, [float("inf")], {1: object()}, "x" * 10**6):
        assert respond(InvalidField("No.", given=given)).status_code == 422


def cursor(rank: str, n: str = "1", sort: str = "newest") -> str:
    return base64.urlsafe_b64encode(f'["{sort}",{rank},{n}]'.encode()).decode().rstrip("=")


@pytest.mark.parametrize("sort", ["newest", "oldest", "faithfulness", "probability"])
def test_a_cursor_that_the_gallery_did_not_make_is_refused(api: Api, record: dict[str, Any], sort: str) -> None:
    made = [
        cursor(r, sort=sort)
        for r in ("1" + "0" * 30, "NaN", "Infinity", "-Infinity", "1e400", "true", "null", '"1"', "[]")
    ]
    made += [cursor("1", i, sort) for i in (r'"\ud800"', '"a"', "1.5", "true", "null", "1" + "0" * 30)] + [
        "²",
        "[" * 200,
        "é",
        "W10",
        "bnVsbA",
    ]
    for c in made:
        refused(api.call("GET", "/explanations", params={"cursor": c, "sort": sort}), 422, "cursor")


def test_a_cursor_of_another_order_is_refused(api: Api, record: dict[str, Any]) -> None:
    assert api.call("GET", "/explanations", params={"cursor": cursor("1")}).status_code == 200
    refused(api.call("GET", "/explanations", params={"cursor": cursor("1"), "sort": "oldest"}), 422, "order")


@pytest.mark.parametrize("path", ["/jobs", "/datasets/photographs/samples"])
@pytest.mark.parametrize("given", ["9223372036854775808", "9" * 20, "9" * 300, "²", "٣", "-1", "1.0", "+1", " 1", "x"])
def test_a_cursor_that_is_no_position_is_refused(api: Api, path: str, given: str) -> None:
    refused(api.call("GET", path, params={"cursor": given}), 422, "cursor")


def test_the_last_event_may_be_anything(api: Api) -> None:
    from fanlight.service.search import ordinal

    assert [ordinal(t) for t in ("²", "٣", "", "9" * 19, "-1", "12")] == [None] * 5 + [12]


@pytest.mark.parametrize(
    "region", [[0, 0, 1e30, 1], [0, 0, -1e300, 1], [0, 0, 2**63, 1], [-1, 0, 4, 4], [0.5, 0.2, 0.1, 9]]
)
def test_a_region_far_outside_is_refused(api: Api, record: dict[str, Any], region: list[float]) -> None:
    body = {"explanation": record["id"], "edits": [{"mask_region": region}]}
    refused(api.call("POST", "/interventions", json=body), 422, "region")
    assert api.call("POST", "/live", json={**body, "session": "s", "seq": 1}).status_code == 422


# --- streams


def test_one_stream_too_many_is_told_when_to_come_back(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STREAMS", 0)
    answer = api.call("GET", "/events")
    refused(answer, 429, "too many")
    assert int(answer.headers["retry-after"]) > 0


# --- methods


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/models", {"GET"}),
        ("POST", "/models/tiny", {"GET"}),
        ("PUT", "/explanations", {"GET", "POST"}),
        ("PUT", "/explanations/x", {"GET", "PATCH", "DELETE"}),
        ("GET", "/interventions", {"POST"}),
        ("HEAD", "/interventions", {"POST"}),
        ("HEAD", "/events", {"GET"}),
        ("PATCH", "/artifacts/x/raw", {"GET"}),
        ("OPTIONS", "/jobs", {"GET"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(api: Api, method: str, path: str, allowed: set[str]) -> None:
    answer = api.call(method, path)
    assert answer.status_code == 405 and set(answer.headers["allow"].split(", ")) == allowed
    if method != "HEAD":
        refused(answer, 405, "method")


def test_every_address_that_can_be_read_answers_head(api: Api, record: dict[str, Any]) -> None:
    url = record["artifacts"][0]["url"]
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    for path in ("/api/v1/models", "/api/v1/explanations/" + record["id"], url, url + "/raw", "/healthz", "/readyz",
                 "/metrics", f"/s/{share['token']}", f"/s/{share['token']}/preview.png", "/s/gone", "/api/v1/jobs/x", "/api/nope"):  # fmt: skip
        full, head = api.http.get(path), api.http.head(path)
        assert head.status_code == full.status_code and head.content == b"", path
        assert head.headers["content-type"] == full.headers["content-type"]
    refused(api.http.get("/api/nope"), 404)


def test_what_is_not_the_address_of_a_share_is_like_one_that_is_gone(api: Api, stranger: TestClient) -> None:
    gone = stranger.get("/s/" + "x" * 43)
    assert gone.status_code == 404 and gone.headers["content-type"].startswith("text/html")
    for path in ("x" * 201, "x" * 5000, "x/one/overlay.png", "x/-1/overlay.png", "x/100/overlay.png", "x/²/a", "x/0/" + "y" * 99,
                 "x/0/a/b", "x/", "", "x/other.png", "x/" + "9" * 4000 + "/a"):  # fmt: skip
        answer = stranger.get(f"/s/{path}")
        assert (answer.status_code, answer.content) == (404, gone.content), path
        assert answer.headers["cache-control"] == "no-store"
    refused(stranger.post("/s/x"), 405)


def test_pictures_of_a_live_share_have_numbers(api: Api, record: dict[str, Any], stranger: TestClient) -> None:
    share = api.call("POST", "/shares", json={"explanations": [record["id"]]}).json()
    assert stranger.get(f"/s/{share['token']}/0/overlay.png").status_code == 200
    for n in ("1", "99", "-1", "one", "²", "00000000000000000000"):
        assert stranger.get(f"/s/{share['token']}/{n}/overlay.png").status_code == 404, n


# --- artifacts


@pytest.mark.parametrize("part", ["", "/render.png", "/raw", "/table.csv"])
def test_what_is_had_already_is_not_sent_again_but_only_to_who_may_have_it(api: Api, part: str) -> None:
    mine = api.explain(input=api.upload(noise(11 + len(part)))["id"])
    artifact = mine["artifacts"][0]
    tag, url = f'"{artifact["digest"]}"', artifact["url"] + part
    for same in (tag, f"W/{tag}", f'"other", {tag}', f'W/"x",W/{tag}', "*"):
        answer = api.http.get(url, headers={"if-none-match": same})
        assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag), same
    for other in ('"other"', artifact["digest"], f'"{artifact["digest"]}x"', ""):
        assert api.http.get(url, headers={"if-none-match": other}).status_code == 200, other
    api.call("DELETE", f"/explanations/{mine['id']}")
    for gone in (tag, "*"):
        refused(api.http.get(url, headers={"if-none-match": gone}), 404, "no artifact")
    refused(api.call("GET", "/artifacts/nonsense" + part, headers={"if-none-match": '"nonsense"'}), 404)


# --- what is asked for is honoured or refused


@pytest.mark.parametrize(
    "view", [{"x": "y" * 9000}, {"x": [[[[[1]]]]]}, {"lo": -1e300, "hi": 1e300}, {"lo": 1, "hi": 2**63}]
)
def test_a_view_of_a_share_is_small(api: Api, record: dict[str, Any], view: dict[str, Any]) -> None:
    one = [record["id"]]
    if view.get("hi") == 2**63:
        assert api.call("POST", "/shares", json={"explanations": one, "view": view}).status_code == 201
    else:
        refused(api.call("POST", "/shares", json={"explanations": one, "view": view}), 422, "view")


def test_measures_are_taken_together_or_not_at_all(api: Api, record: dict[str, Any]) -> None:
    path = f"/explanations/{record['id']}/trust"
    for some in (["insertion"], ["deletion"], []):
        refused(api.call("POST", path, json={"measures": some}), 422, "together", "insertion", "deletion")
    refused(api.call("POST", path, json={"measures": ["speed"]}), 422, "no such measure", "insertion")
    assert api.call("POST", path, json={"measures": ["deletion", "insertion"]}).status_code in (200, 202)
    assert api.call("POST", path, json={}).status_code in (200, 202)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("state", "succeeded"), ("trust", "above"), ("outcome", "wrong"), ("family", "attribution")],
)
def test_a_filter_that_nothing_can_meet_names_what_could(
    api: Api, record: dict[str, Any], name: str, allowed: str
) -> None:
    refused(api.call("GET", "/explanations", params={name: "odd"}), 422, "odd", allowed)


def test_several_states_go_with_commas(api: Api, record: dict[str, Any]) -> None:
    found = api.call("GET", "/explanations", params={"state": "succeeded,failed"}).json()
    assert record["id"] in [e["id"] for e in found["items"]]
    assert all(e["state"] == "failed" for e in api.call("GET", "/explanations?state=failed,cancelled").json()["items"])
    refused(api.call("GET", "/explanations?state=failed,odd"), 422, "odd", "queued")
    for facets in ("above", "below", "pending", "unavailable"):
        assert api.call("GET", "/explanations", params={"trust": facets}).status_code == 200


# --- uploads and targets


def test_an_upload_that_is_none_says_what_one_is(api: Api) -> None:
    refused(api.call("POST", "/inputs", files={"file": ("x" * 5000 + ".png", noise(1))}), 400, "upload", "name")
    for bad in (
        api.call("POST", "/inputs", data={"file": "text"}),
        api.call("POST", "/inputs", files={"file": (None, b"text")}),
        api.call("POST", "/inputs", files={"other": ("x.png", noise(1))}),
        api.call("POST", "/inputs"),
    ):
        error = refused(bad, 422, "file", "multipart")
        assert "UploadFile" not in error["message"] and "class" not in error["message"]
    refused(api.call("POST", "/inputs", content=b"--x", headers={"content-type": "multipart/form-data"}), 400, "upload")


@pytest.mark.parametrize("target", [True, [0], 1.5, {"minus": [1]}, {"other": 1}, {"class": -1}, {"class": "x"}])
def test_a_target_that_is_none_says_what_one_is(api: Api, record: dict[str, Any], target: Any) -> None:
    error = refused(api.ask(input=record["input"], target=target), 422, "target", "minus", "class")
    assert "target.int" not in error["message"] and error["allowed"]


def test_the_message_of_an_error_stays_short(api: Api) -> None:
    answer = api.call("POST", "/explanations", json={"x" * 9000: 1, "model": "m", "input": "i", "explainer": "e"})
    assert answer.status_code == 422 and len(answer.json()["error"]["message"]) < 500


@pytest.mark.parametrize("query", ["lo=-1e308&hi=1e308", "hi=1e400", "lo=nan", "lo=-inf", "lo=2&hi=1"])
def test_a_scale_without_measure_is_refused(api: Api, record: dict[str, Any], query: str) -> None:
    refused(api.http.get(f"{record['artifacts'][0]['url']}/render.png?{query}"), 422)
