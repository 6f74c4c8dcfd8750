"""Another site can neither act as a visitor nor read what they see, nor show it in its own frame, nor pass for this server."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest
from attacks_rig import Target, sentence

from fanlight.api.gate import SAFE

METHODS = ("POST", "PUT", "PATCH", "DELETE")
FOREIGN = (
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1.evil.example"},
    {"origin": "http://127.0.0.1:1"},
    {"referer": "http://evil.example/"},
    {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1"},
    {},
)
KINDS = ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")
Come = Callable[[], httpx.Client]


@pytest.fixture(params=["the token's cookie", "a session"])
def victim(target: Target, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """Somebody who is in, by cookie alone, as a browser has it."""
    if request.param == "a session":
        http = target.account("vera", "default", "owner")
        del http.headers["sec-fetch-site"]
        yield http
        http.close()
    else:
        with target.browser() as http:
            assert http.get(f"/?token={target.server.token}").status_code == 303
            yield http


def test_no_operation_at_all_can_be_called_from_another_site(target: Target, victim: httpx.Client) -> None:
    before = target.call("GET", "/audit").json()["total"]
    operations = [(m, p) for m, p, _ in target.operations() if m not in SAFE]
    assert {m for m, _ in operations} == set(METHODS) and len(operations) > 30
    for method, path in [*operations, *((m, "/_dash-update-component") for m in METHODS), ("POST", "/")]:
        address = path.replace("{", "").replace("}", "")
        for headers in FOREIGN:
            answer = victim.request(method, address, headers=headers)
            assert answer.status_code == 403, (method, path, headers, answer.status_code)
            assert answer.json()["error"]["code"] == "cross_site"
    assert target.call("GET", "/audit").json()["total"] == before


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_body_that_a_form_can_send_gets_past(target: Target, victim: httpx.Client, kind: str) -> None:
    body = b'{"explanations": ["x"]}'
    for headers in FOREIGN:
        answer = victim.post("/api/v1/shares", content=body, headers={**headers, "content-type": kind})
        assert answer.status_code == 403, (headers, kind)


def test_nobody_is_logged_in_or_out_from_another_site(target: Target, victim: httpx.Client) -> None:
    for headers in FOREIGN:
        if not {"sec-fetch-site", "origin"} & set(headers):
            continue  # a program: browsers send one of the two with every form
        for path in ("/login", "/logout"):
            answer = victim.post(path, headers=headers, data={"token": target.server.token})
            assert answer.status_code == 403 and "set-cookie" not in answer.headers, (path, headers)
    assert victim.get("/api/v1/me").status_code == 200


def test_reading_changes_nothing(target: Target, victim: httpx.Client) -> None:
    """A method that another site may send with the cookie (a picture, a link) does nothing but show."""
    before = target.call("GET", "/audit").json()["total"], target.call("GET", "/shares").text
    for method, path, _ in target.operations():
        if method == "GET" and not path.endswith("/events"):
            address = path.replace("{", "").replace("}", "")
            assert victim.get(address, headers={"sec-fetch-site": "cross-site"}).status_code < 500, path
    assert (target.call("GET", "/audit").json()["total"], target.call("GET", "/shares").text) == before


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1", "http://localhost:3000"])
def test_no_other_origin_may_read_an_answer(target: Target, victim: httpx.Client, origin: str) -> None:
    """No address ever allows one, not even for its own: there is no CORS here."""
    ask = {"origin": origin, "access-control-request-method": "DELETE", "access-control-request-headers": "x-a"}
    for address in ("/api/v1/models", "/api/v1/explanations", "/metrics", "/", "/healthz", f"/s/{target.token}"):
        for method in ("GET", "OPTIONS"):
            answer = victim.request(method, address, headers=ask)
            allowed = [h for h in answer.headers if h.startswith("access-control-")]
            assert allowed == [], (method, address, allowed)


def test_nothing_may_be_shown_in_a_frame(target: Target, victim: httpx.Client, stranger: httpx.Client) -> None:
    for address in ("/", "/settings", f"/e/{target.explanation}", "/login", f"/s/{target.token}", "/s/none", "/api/v1/models"):  # fmt: skip
        for http in (victim, stranger):
            answer = http.get(address, headers={"accept": "text/html"})
            policy = answer.headers.get("content-security-policy", "")
            if answer.status_code != 303:
                assert "frame-ancestors 'none'" in policy, (address, answer.status_code, policy)
            assert answer.headers["x-content-type-options"] == "nosniff"


HOSTS = ("evil.example", "127.0.0.1.evil.example", "evil.example:8321", "", "localhost.evil", "[::2]", "127.0.0.2")
HOSTS += (
    "0.0.0.0",
    "2130706433",
    "127.1",
    "127.0.0.1@evil.example",
    "evil.example#127.0.0.1",
    "evil.example/127.0.0.1",
)


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_that_is_not_this_servers_is_refused_everywhere(target: Target, host: str) -> None:
    """A page whose name was pointed at this machine (DNS rebinding) has that name in its Host header."""
    for address in ("/api/v1/models", "/metrics", "/", "/healthz", "/readyz", "/login", f"/s/{target.token}", "/s/x", "/assets/x"):  # fmt: skip
        answer = target.line(address, host=host)
        assert answer.status == 400, (address, host, answer.status)
        assert "Fanlight</title>" not in answer.text


def test_no_host_two_hosts_and_one_in_the_target(target: Target) -> None:
    enter = f"authorization: Bearer {target.server.token}\r\n".encode()
    for request in (
        b"GET /api/v1/models HTTP/1.1\r\n" + enter + b"\r\n",
        b"GET /api/v1/models HTTP/1.0\r\n" + enter + b"\r\n",
        b"GET /api/v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n" + enter + b"\r\n",
        b"GET /api/v1/models HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: 127.0.0.1\r\n" + enter + b"\r\n",
    ):
        assert target.raw(request, wait=False).status == 400, request


@pytest.mark.parametrize("header", ["host", "x-forwarded-host", "x-host", "x-forwarded-server", "forwarded"])
def test_no_link_is_built_from_what_a_visitor_says(target: Target, header: str) -> None:
    """Else a stranger's name would stand in a link that somebody passes on, or in a page that is kept."""
    given = {header: "127.0.0.1:81" if header == "host" else "evil.example"}
    made = target.call("POST", "/shares", json={"explanations": [target.explanation]}, headers=given)
    assert made.status_code == 201 and made.json()["url"].startswith(f"{target.server.url}/s/"), made.text
    with target.browser() as http:
        page = http.get(f"/s/{made.json()['token']}", headers=given)
        door = http.get("/", headers={**given, "accept": "text/html"})
    assert page.status_code == 200 and door.status_code == 401
    assert "evil.example" not in page.text + door.text and "127.0.0.1:81/" not in page.text + door.text
    assert target.call("DELETE", f"/shares/{made.json()['id']}").status_code == 200


def test_a_refusal_is_a_sentence(target: Target, victim: httpx.Client) -> None:
    assert "another site" in sentence(victim.delete("/api/v1/shares/x", headers={"sec-fetch-site": "cross-site"}))
    assert "does not answer to the name" in sentence(target.line("/api/v1/models", host="evil.example"))
