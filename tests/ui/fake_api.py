"""A small stand-in for the API, for tests of the pages only: wire types, kept in memory, over the photographs that scikit-image ships."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from functools import lru_cache
from io import BytesIO
from typing import Any

import fake_people
import numpy as np
from fake_records import NOW, PHOTOS, Store, examination, explainers, explanation, models
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from PIL import Image, ImageFilter
from skimage import data

from fanlight import wire
from fanlight.errors import FanlightError, NotFound


@lru_cache
def photo(name: str) -> Image.Image:
    return Image.fromarray(getattr(data, name)()).convert("RGB")


def square(image: Image.Image, size: int) -> Image.Image:
    w, h = image.size
    s = min(w, h)
    return image.crop(((w - s) // 2, (h - s) // 2, (w + s) // 2, (h + s) // 2)).resize((size, size))


def png(image: Image.Image) -> Response:
    out = BytesIO()
    image.save(out, "PNG")
    return Response(out.getvalue(), media_type="image/png", headers={"Cache-Control": "max-age=600"})


@lru_cache(256)
def card(name: str, seed: int) -> Image.Image:
    """The picture beside an invented map."""
    left = square(photo(name), 320)
    noise = np.random.default_rng(seed).integers(0, 256, (320, 320), dtype=np.uint8)
    v = np.asarray(Image.fromarray(noise).filter(ImageFilter.GaussianBlur(24)), np.float32)
    v = ((v - v.mean()) / (np.abs(v - v.mean()).max() + 1e-6))[..., None]
    colour = np.where(v > 0, np.array([178, 67, 47]), np.array([43, 108, 176]))
    grey = np.asarray(left.convert("L").convert("RGB"), np.float32) * 0.4 + 150
    both = np.abs(v) * colour + (1 - np.abs(v)) * grey
    out = Image.new("RGB", (642, 320), "white")
    out.paste(left, (0, 0))
    out.paste(Image.fromarray(both.clip(0, 255).astype(np.uint8)), (322, 0))
    return out


def facets(items: list[wire.Explanation]) -> dict[str, list[wire.Facet]]:
    def count(pairs: list[tuple[str, str]]) -> list[wire.Facet]:
        labels = dict(pairs)
        return [wire.Facet(value=v, label=labels[v], count=n) for v, n in Counter(v for v, _ in pairs).most_common()]

    return {
        "family": count([(e.family, e.family.capitalize()) for e in items]),
        "explainer": count([(e.explainer, e.explainer_title) for e in items]),
        "model": count([(e.model, e.model_name) for e in items]),
        "class": count([(e.target_name, e.target_name) for e in items]),
        "outcome": count([(e.outcome, e.outcome) for e in items if e.outcome]),
        "trust": count(
            [
                (
                    trust_of(e),
                    {"above": "above the floor", "below": "not above the floor", "pending": "being measured"}[
                        trust_of(e)
                    ],
                )
                for e in items
            ]
        ),
        "tag": count([(t, t) for e in items for t in e.tags]),
        "dataset": count([(e.dataset, e.dataset) for e in items if e.dataset]),
    }


def trust_of(e: wire.Explanation) -> str:
    return {True: "above", False: "below", None: "pending"}[e.trust.above_floor]


def create(store: Store) -> FastAPI:
    app = FastAPI(openapi_url=None)
    api = "/api/v1"

    @app.exception_handler(FanlightError)
    async def refuse(_request: Request, error: FanlightError) -> JSONResponse:
        return JSONResponse(error.body(), error.status)

    def found(table: dict[str, Any], id: str, kind: str) -> Any:
        if id not in table:
            raise NotFound(f"There is no {kind} “{id}”.", code=f"unknown_{kind}")
        return table[id]

    @app.get(f"{api}/system")
    async def system() -> wire.System:
        states = [j.state for j in store.jobs.values()]
        return wire.System(
            version="0.1.0", device="cpu", ready=True, queued=states.count("queued"), running=states.count("running"),
            explanations=len(store.explanations), principal="me", loopback=True, numerics="cpu/f32/torch2.14.1/deterministic",
            versions={"fanlight": "0.1.0", "torch": "2.14.1", "dash": "4.4.1"}, settings={"share_days": 30, "memory_mb": 4096},
        )  # fmt: skip

    @app.get(f"{api}/me")
    async def me() -> wire.Me:
        return wire.Me(**store.me)

    fake_people.routes(app, api, store.people)

    @app.get(f"{api}/models")
    async def all_models() -> list[wire.Model]:
        return models()

    @app.get(f"{api}/models/{{id}}")
    async def one_model(id: str) -> wire.Model:
        return found({m.id: m for m in models()}, id, "model")

    looked: dict[str, int] = {}

    @app.post(f"{api}/models/{{id}}/examination", status_code=202)
    async def examine(id: str) -> wire.Examination:
        looked[id] = 0
        return await examined(id)

    @app.get(f"{api}/models/{{id}}/examination")
    async def examined(id: str) -> wire.Examination:
        found({m.id: m for m in models()}, id, "model")
        if id not in looked:
            return wire.Examination(state="none", model=id, seconds=60)
        looked[id] += 1
        return (
            examination(id)
            if looked[id] > 2
            else wire.Examination(state="running", model=id, seconds=60, since=time.time())
        )

    @app.get(f"{api}/explainers")
    async def all_explainers() -> list[wire.ExplainerInfo]:
        return explainers()

    @app.get(f"{api}/datasets")
    async def datasets() -> list[wire.Dataset]:
        return [
            wire.Dataset(
                id="photographs",
                name="Photographs",
                version=1,
                digest="ab" * 32,
                count=90,
                unreadable=1,
                terms="CC0 and public domain",
                description="Real photographs that scikit-image ships.",
            )
        ]

    @app.get(f"{api}/datasets/reading")
    async def datasets_reading() -> list[wire.DatasetReading]:
        return store.reading

    @app.get(f"{api}/trainings")
    async def trainings() -> list[wire.Training]:
        return []

    @app.get(f"{api}/datasets/{{id}}/samples")
    async def samples(id: str, cursor: str = "0", limit: int = 48, q: str = "") -> wire.Page[wire.Sample]:
        found({"photographs": 1}, id, "dataset")
        every = [
            wire.Sample(
                dataset=id, position=i, name=f"{name}-{i}.png", label=PHOTOS[name][0], input=name, width=512, height=512,
                thumbnail=f"{api}/inputs/{name}/thumbnail.png",
            )
            for i, name in enumerate(list(PHOTOS) * 10)
        ]  # fmt: skip
        every = [s for s in every if q.lower() in (s.name + " " + (s.label or "")).lower()]
        at = int(cursor)
        labels = [wire.Facet(value=n, label=n, count=10) for n, _ in PHOTOS.values()]
        following = str(at + limit) if at + limit < len(every) else None
        return wire.Page(
            items=every[at : at + limit], next_cursor=following, total=len(every), facets={"label": labels}
        )

    @app.get(f"{api}/inputs/{{id}}/thumbnail.png")
    async def thumbnail(id: str) -> Response:
        return png(square(photo(id), 160))

    @app.get(f"{api}/explanations")
    async def search(request: Request) -> wire.Page[wire.Explanation]:
        asked = dict(request.query_params)
        store.asked.append(str(request.url.query))
        items = list(store.explanations.values())
        tests = {
            "family": lambda e, v: e.family == v,
            "explainer": lambda e, v: e.explainer == v,
            "model": lambda e, v: e.model == v,
            "class": lambda e, v: e.target_name == v,
            "outcome": lambda e, v: e.outcome == v,
            "trust": lambda e, v: trust_of(e) == v,
            "tag": lambda e, v: v in e.tags,
            "dataset": lambda e, v: e.dataset == v,
            "sweep": lambda e, v: False,
            "owner": lambda e, v: v in (e.principal, "me"),
            "q": lambda e, v: (
                v.lower() in f"{e.target_name} {e.input_name} {e.explainer_title} {' '.join(e.tags)}".lower()
            ),
        }
        for name, test in tests.items():
            if name in asked:
                items = [e for e in items if test(e, asked[name])]
        if asked.get("sort") == "oldest":
            items.reverse()
        at, limit = int(asked.get("cursor", 0)), int(asked.get("limit", 24))
        following = str(at + limit) if at + limit < len(items) else None
        return wire.Page(
            items=items[at : at + limit], next_cursor=following, total=len(items), facets={} if at else facets(items)
        )

    @app.post(f"{api}/explanations")
    async def explain(body: wire.ExplanationRequest) -> wire.Explanation:
        made = explanation(len(store.explanations)).model_copy(
            update={"input": body.input, "explainer": body.explainer}
        )
        store.explanations[made.id] = made
        return made

    @app.get(f"{api}/explanations/{{id}}")
    async def one(id: str) -> wire.Explanation:
        return found(store.explanations, id, "explanation")

    @app.get(f"{api}/explanations/{{id}}/card.png")
    async def card_png(id: str) -> Response:
        e = found(store.explanations, id, "explanation")
        return png(card(e.input, int(e.id[1:])))

    @app.get(f"{api}/jobs")
    async def all_jobs(state: str | None = None) -> wire.Page[wire.Job]:
        items = [j for j in store.jobs.values() if state in (None, j.state)]
        return wire.Page(items=items, total=len(items))

    @app.delete(f"{api}/jobs/{{id}}")
    async def cancel(id: str) -> wire.Job:
        job = found(store.jobs, id, "job")
        if not job.mine:
            raise FanlightError("This job is somebody else's.", code="not_yours")
        store.jobs[id] = job.model_copy(update={"state": "cancelled", "finished": time.time()})
        store.emit(
            type="job",
            id=id,
            explanation=job.explanation,
            kind=job.kind,
            state="cancelled",
            progress=0,
            message="",
            place=None,
            seconds_left=None,
        )
        return store.jobs[id]

    @app.get(f"{api}/views")
    async def all_views() -> list[wire.SavedView]:
        return []

    @app.get(f"{api}/sweeps")
    async def all_sweeps() -> wire.Page[wire.Sweep]:
        return wire.Page(items=[], total=0)

    @app.get(f"{api}/shares")
    async def all_shares() -> list[wire.Share]:
        return list(store.shares.values())

    @app.delete(f"{api}/shares/{{id}}")
    async def revoke(id: str) -> wire.Share:
        store.shares[id] = found(store.shares, id, "share").model_copy(update={"revoked": NOW})
        return store.shares[id]

    @app.get(f"{api}/events")
    async def events(request: Request) -> Response:
        if not store.streaming:
            return Response(status_code=503)

        async def stream() -> AsyncIterator[str]:
            at = len(store.events)
            yield ": hello\n\n"
            while not await request.is_disconnected():
                for n, event in enumerate(store.events[at:], at):
                    yield f"id: {n}\ndata: {json.dumps(event)}\n\n"
                at = len(store.events)
                await asyncio.sleep(0.05)

        return StreamingResponse(stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    @app.get("/api/{rest:path}")
    async def nothing(rest: str) -> JSONResponse:
        raise NotFound(f"There is no /api/{rest}.")

    return app
