"""The routes of the small wire server, over its state."""

from __future__ import annotations

import asyncio
import io
import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import Request, UploadFile
from fastapi.responses import JSONResponse, Response, StreamingResponse
from PIL import Image
from wire_methods import CLASSES, INFOS, REASON, SIDE

from fanlight import wire
from fanlight.artifact import Artifact
from fanlight.errors import FanlightError, UnreadableInput, unknown

if TYPE_CHECKING:
    from wire_server import WireServer


def _png(image: Image.Image) -> Response:
    out = io.BytesIO()
    image.save(out, "PNG")
    return Response(out.getvalue(), media_type="image/png")


def add_routes(s: WireServer) -> None:
    app, v1 = s.app, "/api/v1"

    @app.exception_handler(FanlightError)
    async def said(_: Request, e: FanlightError) -> JSONResponse:
        return JSONResponse(e.body(), e.status)

    def model() -> wire.Model:
        fits = [
            wire.Availability(
                name=i.name, available=i.name != "grad-cam", reason=REASON if i.name == "grad-cam" else None
            )
            for i in INFOS
        ]
        return wire.Model(
            id="net",
            name="EfficientNet-Lite0",
            task="image-classifier",
            digest="9f" * 32,
            size=(224, 224),
            classes=CLASSES,
            capabilities=[],
            explainers=fits,
        )

    def record(id: str) -> wire.Explanation:
        if id not in s.records:
            raise unknown("explanation", id, list(s.records))
        return s.records[id]

    def outcome(r: wire.Explanation) -> Response:
        if r.state in wire.TERMINAL:
            return Response(r.model_dump_json(), media_type="application/json")
        return JSONResponse(wire.Accepted(id=r.id, job=r.job or "", state=r.state).model_dump(), 202)

    @app.get(v1 + "/me")
    async def me() -> wire.Me:
        return wire.Me(
            principal="token", workspace="default", scopes=["read", "explain", "share", "admin"], operator=False
        )

    @app.get(v1 + "/keys")
    async def keys() -> list[wire.Key]:
        return []

    @app.get(v1 + "/system")
    async def system() -> wire.System:
        return wire.System(
            version="0",
            device="cpu",
            ready=True,
            queued=0,
            running=0,
            explanations=len(s.records),
            principal="me",
            loopback=True,
            numerics="cpu/f32",
            settings={"share_days": 30},
        )

    @app.get(v1 + "/models")
    async def models() -> list[wire.Model]:
        return [model()]

    @app.get(v1 + "/models/{id}")
    async def one_model(id: str) -> wire.Model:
        if id != "net":
            raise unknown("model", id, ["net"])
        return model()

    @app.get(v1 + "/explainers")
    async def explainers() -> list[wire.ExplainerInfo]:
        return INFOS

    @app.get(v1 + "/datasets")
    async def datasets() -> list[wire.Dataset]:
        return [wire.Dataset(id="waves", name="Waves", version=1, digest="d" * 64, count=30)]

    @app.get(v1 + "/datasets/{id}/samples")
    async def samples(
        id: str, cursor: str | None = None, limit: int = 48, q: str | None = None
    ) -> wire.Page[wire.Sample]:
        at = int(cursor or 0)
        shown = [n for n in range(30) if q is None or q in f"wave-{n}.png"]
        items = [
            wire.Sample(
                dataset=id,
                position=n,
                name=f"wave-{n}.png",
                label=CLASSES[n % 4],
                input=s.sample,
                width=SIDE,
                height=SIDE,
                thumbnail=f"{v1}/inputs/{s.sample}/thumbnail.png",
            )
            for n in shown[at : at + limit]
        ]
        return wire.Page[wire.Sample](
            items=items, next_cursor=str(at + limit) if at + limit < len(shown) else None, total=len(shown)
        )

    def the_input(id: str, name: str = "") -> wire.Input:
        if id not in s.pictures:
            raise unknown("input", id, [])
        w, h = s.pictures[id].size
        return wire.Input(
            id=id,
            width=w,
            height=h,
            name=name,
            created=0,
            url=f"{v1}/inputs/{id}",
            thumbnail=f"{v1}/inputs/{id}/thumbnail.png",
        )

    @app.post(v1 + "/inputs", status_code=201)
    async def upload(file: UploadFile) -> wire.Input:
        try:
            image = Image.open(io.BytesIO(await file.read()))
            image.load()
        except OSError:
            raise UnreadableInput(f"{file.filename} is not a picture.", hint="Send a JPEG, PNG or WebP file.") from None
        return the_input(s.put_picture(image), file.filename or "")

    @app.get(v1 + "/inputs/{id}")
    async def one_input(id: str) -> wire.Input:
        return the_input(id, "370.jpg")

    @app.get(v1 + "/inputs/{id}/image.jpg")
    async def image(id: str, box: str | None = None, size: int = 512) -> Response:
        shown = s.pictures[id].crop(tuple(round(float(v)) for v in box.split(","))) if box else s.pictures[id]  # type: ignore[arg-type]
        return _png(shown.resize((size, round(size * shown.height / shown.width))))

    @app.get(v1 + "/inputs/{id}/thumbnail.png")
    async def thumbnail(id: str) -> Response:
        return _png(s.pictures[id].resize((96, 96)))

    @app.post(v1 + "/explanations")
    async def explain(body: wire.ExplanationRequest) -> Response:
        return outcome(s.explain(body))

    @app.get(v1 + "/explanations")
    async def listed(explainer: str | None = None) -> wire.Page[wire.Explanation]:
        items = [r for r in s.records.values() if explainer in (None, r.explainer)]
        return wire.Page[wire.Explanation](items=items, total=len(items))

    @app.get(v1 + "/explanations/{id}")
    async def one(id: str) -> wire.Explanation:
        return record(id)

    @app.get(v1 + "/explanations/{id}/trust/measures")
    async def measures(id: str) -> list[wire.Measure]:
        record(id)
        return []

    @app.patch(v1 + "/explanations/{id}")
    async def patch(id: str, body: wire.ExplanationPatch) -> wire.Explanation:
        return s.put(record(id).model_copy(update=body.model_dump(exclude_none=True)))

    @app.delete(v1 + "/explanations/{id}")
    async def delete(id: str) -> wire.Deleted:
        gone = s.records.pop(record(id).id)
        return wire.Deleted(id=gone.id, revoked_shares=[x.id for x in s.shares.values() if id in x.explanations])

    @app.get(v1 + "/explanations/{id}/card.png")
    async def card(id: str) -> Response:
        return _png(s.pictures[record(id).input].resize((96, 96)))

    @app.post(v1 + "/explanations/{id}/recompute")
    async def recompute(id: str) -> Response:
        old = record(id)
        new = s.put(old.model_copy(update={"id": id + "r"}))
        return outcome(new)

    @app.post(v1 + "/interventions", status_code=201)
    async def intervene(body: wire.InterventionRequest) -> wire.Explanation:
        old = record(body.explanation)
        changed = [p.model_copy(update={"probability": p.probability / 2}) for p in old.prediction]
        return s.put(
            old.model_copy(update={"id": old.id + "i", "parent": old.id, "edits": body.edits, "prediction": changed})
        )

    @app.post(v1 + "/live")
    async def live(body: wire.LiveRequest) -> wire.LivePanel:
        chosen = body.edits[0]["set_target"]["class"]
        legend = {
            "lo": -0.1,
            "hi": 0.1,
            "unit": "logit",
            "cmap": "signed",
            "stops": ["#2B6CB0", "#FFFFFF", "#B2432F"],
            "lo_label": "against",
            "hi_label": "for",
        }
        return wire.LivePanel(
            seq=body.seq,
            target={"class": chosen},
            target_name=CLASSES[chosen],
            summary=f"Evidence for {CLASSES[chosen]}.",
            image="data:image/png;base64,iVBORw0KGgo=",
            legend=legend,
        )

    @app.get(v1 + "/jobs")
    async def jobs() -> wire.Page[wire.Job]:
        return wire.Page[wire.Job](items=list(s.jobs.values()), total=len(s.jobs))

    @app.get(v1 + "/jobs/{id}")
    async def job(id: str) -> wire.Job:
        return s.jobs[id]

    @app.delete(v1 + "/jobs/{id}")
    async def cancel(id: str) -> wire.Job:
        s.advance(id, state="cancelled")
        return s.jobs[id]

    @app.get(v1 + "/shares")
    async def shares() -> list[wire.Share]:
        return list(s.shares.values())

    @app.post(v1 + "/shares", status_code=201)
    async def share(body: wire.ShareRequest) -> wire.NewShare:
        days = body.expires_in_days or 30
        made = wire.NewShare(
            id=f"s{len(s.shares)}",
            explanations=list(body.explanations),
            created=time.time(),
            expires=time.time() + 86400 * days,
            url="http://127.0.0.1/s/tok",
            token="tok",
            loopback_only=True,
        )
        s.shares[made.id] = made
        return made

    @app.get(v1 + "/artifacts/{name}")
    async def described(name: str) -> dict[str, Any]:
        a = Artifact.from_bytes(s.blobs[name])
        legend = {
            "lo": -0.08,
            "hi": 0.08,
            "unit": "logit",
            "cmap": "signed",
            "stops": ["#2B6CB0", "#F4F2EC", "#B2432F"],
            "lo_label": "against",
            "hi_label": "for",
        }
        table = {
            "columns": ["region", "share of the evidence in %"],
            "rows": [["upper left", 41.25], ["middle", 22.0], ["lower right", -9.1]],
        }
        return {
            "digest": name,
            "name": a.name,
            "kind": a.kind,
            "meta": dict(a.meta),
            "arrays": {},
            "legend": legend,
            "sentence": "The upper left and the middle carry 63 % of the evidence for guenon.",
            "table": table,
        }

    @app.get(v1 + "/artifacts/{name}/raw")
    async def raw(name: str) -> Response:
        return Response(s.blobs[name], media_type="application/octet-stream")

    @app.get(v1 + "/artifacts/{name}/render.png")
    async def render(name: str, lo: float = -0.08, hi: float = 0.08, size: int = 512) -> Response:
        a = Artifact.from_bytes(s.blobs[name])
        v = a.arrays["value"] if a.kind == "image-map" else a.arrays["value"][a.arrays["label"]]
        t = np.clip((v - lo) / (hi - lo), 0, 1)[..., None]
        ends = np.array([[43, 108, 176], [244, 242, 236], [178, 67, 47]], float)
        rgb = np.where(t < 0.5, ends[0] + 2 * t * (ends[1] - ends[0]), ends[1] + (2 * t - 1) * (ends[2] - ends[1]))
        return _png(Image.fromarray(rgb.astype(np.uint8)).resize((size, size)))

    @app.get(v1 + "/events")
    async def events(request: Request) -> StreamingResponse:
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        s.listeners.append(queue)

        async def stream() -> Any:
            try:
                yield ": hello\n\n"
                while not await request.is_disconnected():
                    try:
                        yield f"data: {json.dumps(await asyncio.wait_for(queue.get(), 0.5))}\n\n"
                    except TimeoutError:
                        continue
            finally:
                s.listeners.remove(queue)

        return StreamingResponse(stream(), media_type="text/event-stream")

    # What the gallery asks beside its list.
    @app.get(v1 + "/views")
    async def views() -> list[wire.SavedView]:
        return []

    @app.get(v1 + "/sweeps")
    async def sweeps() -> wire.Page[wire.Sweep]:
        return wire.Page[wire.Sweep](items=[], total=0)

    @app.api_route("/api/{rest:path}", methods=["GET", "POST", "PATCH", "DELETE"])
    async def not_here(rest: str) -> Response:
        """The pages below would answer with a page: a call that this server lacks is noted instead, and the test fails."""
        s.lacking.append(rest)
        return JSONResponse({"error": {"code": "not_found", "message": f"The small wire server lacks {rest}."}}, 404)
