"""A server that is too busy is asked again, as often and as late as it says, and no more than that."""

import email.utils
import time

import httpx
import pytest

from fanlight import Client, FanlightError
from fanlight.errors import TooBusy
from fanlight.patience import TIMES, Patience, retry_after

BUSY = {
    "error": {"code": "too_busy", "message": "This server has more requests than it can answer.", "hint": "Try again."}
}


class Server:
    """Refuses the first requests, then answers. Keeps the bodies that it read."""

    def __init__(self, refusals, after="0", status=429):
        self.refusals, self.after, self.status = refusals, after, status
        self.bodies = []

    def __call__(self, request):
        self.bodies.append((request.method, request.read()))
        if len(self.bodies) > self.refusals:
            return httpx.Response(200, json=[])
        return httpx.Response(self.status, json=BUSY, headers={} if self.after is None else {"Retry-After": self.after})

    def client(self, **options):
        return Client("http://test", "t", transport=httpx.MockTransport(self), **options)


def test_a_request_that_was_refused_is_sent_again_and_answered():
    server = Server(refusals=TIMES)
    with server.client() as fan:
        assert fan.models() == []
    assert len(server.bodies) == TIMES + 1


def test_a_post_is_sent_again_with_its_whole_body():
    server = Server(refusals=1)
    with server.client() as fan, pytest.raises(FanlightError):  # the list that is answered is no input
        fan.upload(b"the picture", "a.png")
    assert [method for method, _ in server.bodies] == ["POST", "POST"]
    assert all(b"the picture" in body for _, body in server.bodies)


def test_the_wait_is_as_long_as_the_server_says():
    server = Server(refusals=1, after="1")
    begun = time.monotonic()
    with server.client() as fan:
        fan.models()
    assert 1 <= time.monotonic() - begun < 3


def test_after_the_last_time_the_sentence_of_the_server_is_raised():
    server = Server(refusals=100)
    with server.client() as fan, pytest.raises(TooBusy, match="more requests than it can answer") as refused:
        fan.models()
    assert len(server.bodies) == TIMES + 1
    assert (refused.value.code, refused.value.status, refused.value.retry_after) == ("too_busy", 429, 0)
    assert refused.value.hint == "Try again."


@pytest.mark.parametrize(("after", "patience"), [("31", 30), ("1", 0.5), ("0", 0)])
def test_a_wait_beyond_its_patience_is_not_begun(after, patience):
    server = Server(refusals=100, after=after)
    begun = time.monotonic()
    with server.client(patience=patience) as fan, pytest.raises(TooBusy):
        fan.models()
    assert len(server.bodies) == 1 and time.monotonic() - begun < 1


@pytest.mark.parametrize("status", [400, 409, 500, 503])
def test_other_refusals_stand(status):
    server = Server(refusals=100, status=status)
    with server.client() as fan, pytest.raises(FanlightError):
        fan.models()
    assert len(server.bodies) == 1


def test_the_waits_of_one_request_are_added_up():
    answer, patience = httpx.Response(429, headers={"Retry-After": "12"}), Patience(30)
    assert [patience.wait(answer) for _ in range(3)] == [12, 12, None]


def test_when_to_come_back_is_a_number_or_a_date_or_not_said():
    def said(value):
        return retry_after(httpx.Response(429, headers={"Retry-After": value}))

    assert (said("7"), said(" 0 ")) == (7, 0)
    assert 8 < said(email.utils.formatdate(time.time() + 10, usegmt=True)) <= 10
    assert said(email.utils.formatdate(time.time() - 10, usegmt=True)) == 0
    assert said("9" * 400) > 1e8
    assert [said(v) for v in ("soon", "-1", "1.5", "")] == [None] * 4
    assert retry_after(httpx.Response(429)) is None
    assert Patience(30).wait(httpx.Response(429)) == 1
