"""One of everything in the default workspace of an empty server, with an editor, and a valid body for every operation that takes one."""

from __future__ import annotations

import io
import time
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from PIL import Image

from fanlight.errors import FanlightError

EDITOR, PASSWORD = "ann", "seven quiet herons"
EDITS = [{"mask_region": [0, 0, 8, 8]}]


@dataclass(frozen=True)
class Stock:
    """Args: known: ids and names that are there; bodies: "METHOD /api/v1/path" -> a valid body."""

    known: list[str]
    bodies: dict[str, Any]


def noise(seed: int) -> bytes:
    """A PNG of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def stock(http: httpx.Client) -> Stock:
    """Fills the server. Args: http: of the operator."""

    def call(method: str, path: str, expect: tuple[int, ...] = (200, 201, 202), **more: Any) -> Any:
        answer = http.request(method, "/api/v1" + path, **more)
        if answer.status_code not in expect:
            raise FanlightError(
                f"{method} {path} was answered {answer.status_code}: {answer.text[:300]}", code="unexpected"
            )
        return answer.json()

    call("POST", "/people", json={"name": EDITOR, "password": PASSWORD, "operator": False})
    call("PUT", f"/workspaces/default/members/{EDITOR}", json={"role": "editor"})
    call("POST", "/workspaces", json={"id": "lab", "name": "Lab"})
    photo = call("POST", "/inputs", files={"file": ("a.png", noise(1))})["id"]
    prompt = call("POST", "/inputs", json={"kind": "prompt", "value": "a red disc"})["id"]
    one = _finished(call, {"model": "tiny", "explainer": "saliency", "input": photo})
    two = _finished(call, {"model": "tiny", "explainer": "edges", "input": photo})
    share = call("POST", "/shares", json={"explanations": [one["id"]]})
    view = call("POST", "/views", json={"name": "mine", "query": {"q": "a"}})
    key = call("POST", "/keys", json={"name": "mine", "scopes": ["read"]})
    end = time.monotonic() + 60
    while "shelf" not in {d["id"] for d in call("GET", "/datasets")} and time.monotonic() < end:
        time.sleep(0.2)
    sweep = call("POST", "/sweeps", json={"model": "tiny", "explainer": "saliency", "source": {"dataset": "shelf"}})
    models = [m["id"] for m in call("GET", "/models")]
    known = [photo, prompt, one["id"], two["id"], one["job"], one["artifacts"][0]["digest"], share["id"], share["token"], view["id"], key["id"],
             sweep["id"], "shelf", "default", "lab", EDITOR, *models, "saliency", "html", "csv", "0", "map"]  # fmt: skip
    return Stock(known, {k: v for k, v in _bodies(photo, one["id"], two["id"]).items()})


def _finished(call: Any, body: dict[str, Any]) -> dict[str, Any]:
    ident = call("POST", "/explanations?wait=20", json=body)["id"]
    end = time.monotonic() + 60
    while (record := call("GET", f"/explanations/{ident}"))["state"] != "succeeded":
        if record["state"] not in ("queued", "running") or time.monotonic() > end:
            raise FanlightError(f"The first explanation is {record['state']}.", code="unexpected")
        time.sleep(0.05)
    return dict(record)


def _bodies(photo: str, one: str, two: str) -> dict[str, Any]:
    asked = {
        "model": "tiny",
        "explainer": "occlusion",
        "input": photo,
        "params": {"window": 8, "stride": 8},
        "target": 0,
        "seed": 1,
    }
    made = {
        "POST /explanations": asked,
        "POST /interventions": {"explanation": one, "edits": EDITS, "note": "a note"},
        "POST /live": {"session": "s", "explanation": one, "edits": EDITS, "seq": 1},
        "POST /shares": {"explanations": [one, two], "view": {"lo": -1, "hi": 1, "opacity": 0.5}, "expires_in_days": 3},
        "POST /sweeps": {"model": "tiny", "explainer": "saliency", "name": "all", "source": {"dataset": "shelf"}},
        "POST /sweeps/{id}/trials": {"edits": EDITS},
        "POST /inputs": {"kind": "prompt", "value": {"text": "a red disc and a blue square"}},
        "POST /models/{id}/derivations": {"change": {"remove": [1]}, "dataset": "shelf"},
        "PATCH /explanations/{id}": {"title": "a title", "note": "a note", "tags": ["one", "two"]},
        "POST /explanations/{id}/trust": {"measures": ["insertion", "deletion"]},
        "POST /views": {"name": "another", "query": {"q": "a", "tag": "b", "sort": "newest"}},
        "PATCH /views/{id}": {"name": "renamed"},
        "POST /keys": {"name": "program", "scopes": ["read", "explain"], "expires_in_days": 5},
        "POST /people": {"name": "bob", "password": PASSWORD, "operator": False},
        "PATCH /people/{id}": {"disabled": False},
        "POST /workspaces": {"id": "attic", "name": "Attic", "jobs": 5, "cost": 1000},
        "PATCH /workspaces/{id}": {"name": "Renamed"},
        "PUT /workspaces/{id}/members/{person}": {"role": "viewer"},
        "PUT /me/workspace": {"workspace": "default"},
        "PUT /me/password": {"old": "not the password", "new": "nine loud sparrows"},
    }  # fmt: skip
    return {f"{k.split(' ')[0]} /api/v1{k.split(' ')[1]}": v for k, v in made.items()}
