"""Views of stored pictures: the right pixels, made once, kept within a budget, few at a time."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from api_rig import Api, noise, png
from PIL import Image

from fanlight import images
from fanlight.service import inputs
from fanlight.service.recent import Recent


def view(api: Api, ident: str, **query: object) -> np.ndarray:
    answer = api.call("GET", f"/inputs/{ident}/image.png", params=query)
    assert answer.status_code == 200, answer.text
    return np.asarray(Image.open(io.BytesIO(answer.content)))


def gradient(width: int, height: int) -> np.ndarray:
    x, y = np.linspace(0, 255, width), np.linspace(0, 255, height)
    return np.stack(np.broadcast_arrays(x[None], y[:, None], (x[None] + y[:, None]) / 2), 2).round().astype(np.uint8)


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> Recent:
    """A cache of this test's own."""
    fresh = Recent(32 << 20)
    monkeypatch.setattr(inputs, "_views", fresh)
    return fresh


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(height, width) of every stored picture that is read back."""
    seen: list[tuple[int, int]] = []
    load = images.load

    def counted(blob: bytes) -> images.Pixels:
        pixels = load(blob)
        seen.append(pixels.shape[:2])
        return pixels

    monkeypatch.setattr(images, "load", counted)
    return seen


def test_what_is_kept_is_bounded_in_bytes_and_the_least_recent_goes_first() -> None:
    kept = Recent(10)
    for key in "ab":
        kept.put(key, b"1234")
    assert kept.get("a") == b"1234"
    kept.put("c", b"5678")
    assert (kept.get("a"), kept.get("b"), kept.get("c"), kept.used) == (b"1234", None, b"5678", 8)
    kept.put("a", b"1")
    assert kept.used == 5
    kept.put("large", bytes(11))
    assert kept.get("large") is None and kept.used == 5
    kept.put("a", bytes(11))
    assert kept.get("a") is None and kept.used == 4


def test_many_large_views_stay_within_the_budget(
    api: Api, monkeypatch: pytest.MonkeyPatch, loads: list[tuple[int, int]]
) -> None:
    views = Recent(1 << 20)
    monkeypatch.setattr(inputs, "_views", views)
    ident = api.upload(noise(3, (400, 400)))["id"]
    for right in range(300, 310):
        view(api, ident, box=f"0,0,{right},300", size=400)
    assert 0 < views.used <= 1 << 20 and len(loads) == 10
    view(api, ident, box="0,0,309,300", size=400)
    assert len(loads) == 10, "the latest view is kept"
    view(api, ident, box="0,0,300,300", size=400)
    assert len(loads) == 11, "the earliest is not"


@pytest.mark.parametrize("box", [None, (0, 0, 1500, 1000), (300, 200, 900, 800), (1000.5, 0, 1500, 999.5)])
@pytest.mark.parametrize("size", [16, 40, 128, 129, 300])
@pytest.mark.usefixtures("views")
def test_a_view_shows_the_part_that_was_asked_for(
    api: Api, box: tuple[float, ...] | None, size: int, loads: list[tuple[int, int]]
) -> None:
    pixels = gradient(1500, 1000)
    ident = api.upload(png(pixels))["id"]
    given = {} if box is None else {"box": ",".join(map(str, box))}
    got = view(api, ident, size=size, **given)
    x0, y0, x1, y1 = box or (0, 0, 1500, 1000)
    scale = size / max(x1 - x0, y1 - y0)
    shape = (round((y1 - y0) * scale), round((x1 - x0) * scale))
    assert got.shape == (*shape, 3)
    centres = np.ix_(
        y0 + (np.arange(shape[0]) + 0.5) * (y1 - y0) / shape[0],
        x0 + (np.arange(shape[1]) + 0.5) * (x1 - x0) / shape[1],
    )
    for channel, (expected, full) in enumerate(((centres[1], 1500), (centres[0], 1000))):
        wanted = np.broadcast_to((expected - 0.5) * 255 / (full - 1), shape)
        assert np.abs(got[..., channel] - wanted).max() < 4
    small = 2 * scale * 1500 <= 256
    assert loads == [(1000, 1500), *([(171, 256)] if small else [])], "the thumbnail is made for the first who needs it"
    view(api, ident, size=size - 1 if small else size + 1, **given)
    assert loads[-1] == ((171, 256) if small else (1000, 1500)) and len(loads) == 2 + small


@pytest.mark.usefixtures("views")
def test_a_small_picture_is_shown_exactly(api: Api) -> None:
    blob = noise(4, (60, 40))
    ident = api.upload(blob)["id"]
    assert (view(api, ident, size=60) == np.asarray(Image.open(io.BytesIO(blob)))).all()
    assert view(api, ident, size=20).shape == (13, 20, 3)


@pytest.mark.usefixtures("views")
def test_a_view_for_looking_at_is_a_jpeg_never_enlarged_and_cached_for_good(api: Api) -> None:
    pixels = gradient(600, 400)
    ident = api.upload(png(pixels))["id"]
    exact = view(api, ident, box="0,0,300,300", size=200).astype(int)
    for size, side in ((200, 200), (512, 300)):
        address = f"/inputs/{ident}/image.jpg?box=0,0,300,300&size={size}"
        answer = api.call("GET", address)
        assert answer.headers["content-type"] == "image/jpeg" and "immutable" in answer.headers["cache-control"]
        seen = np.asarray(Image.open(io.BytesIO(answer.content)))
        assert seen.shape == (side, side, 3)
        assert api.call("GET", address, headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        if side == 200:
            assert np.abs(seen - exact).mean() < 2
    assert api.call("GET", f"/inputs/{ident}/image.jpg?box=0,0,700,300").status_code == 422


@pytest.mark.usefixtures("views")
def test_a_thumbnail_is_made_once_and_weighs_little_in_a_list(api: Api, loads: list[tuple[int, int]]) -> None:
    made = api.upload(noise(6, (500, 300)))
    assert made["thumbnail"].endswith("/thumbnail.webp")
    small = [api.call("GET", f"/inputs/{made['id']}/thumbnail.png") for _ in range(2)]
    assert small[0].content == small[1].content and loads == [(300, 500)]
    assert Image.open(io.BytesIO(small[0].content)).size == (256, 154)
    light = api.call("GET", f"/inputs/{made['id']}/thumbnail.webp")
    shown = Image.open(io.BytesIO(light.content))
    assert shown.format == "WEBP" and shown.size == (256, 154) and len(light.content) < len(small[0].content) / 2


@pytest.mark.usefixtures("views")
def test_views_asked_for_at_once_are_cut_two_at_a_time_and_the_same_ones_hardly_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    ident = api.upload(noise(5, (300, 300)))["id"]
    load, lock, pair = images.load, threading.Lock(), threading.Event()
    now = most = total = 0

    def watched(blob: bytes) -> images.Pixels:
        nonlocal now, most, total
        with lock:
            now, total = now + 1, total + 1
            most = max(most, now)
            if now == 2:
                pair.set()
        pair.wait(10)  # until both places are taken, so that a third would be seen
        threading.Event().wait(0.02)
        pixels = load(blob)
        with lock:
            now -= 1
        return pixels

    monkeypatch.setattr(images, "load", watched)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda size: view(api, ident, size=size), [290, 291, 292, 293] * 3))
    assert most == 2
    assert total <= 8, "of twelve: none again that was made while it waited"


def test_uploads_at_once_are_stored_two_at_a_time(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    encode, lock, pair = images.encode, threading.Lock(), threading.Event()
    now = most = 0

    def watched(pixels: images.Pixels) -> bytes:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
            if now == 2:
                pair.set()
        pair.wait(10)
        threading.Event().wait(0.02)
        with lock:
            now -= 1
        return encode(pixels)

    monkeypatch.setattr(images, "encode", watched)
    with ThreadPoolExecutor(8) as pool:
        idents = set(pool.map(lambda seed: api.upload(noise(seed))["id"], range(100, 108)))
    assert most == 2 and len(idents) == 8
