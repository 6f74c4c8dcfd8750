"""Models, explainers, data sets, and the server itself."""

from __future__ import annotations

import platform
from importlib.metadata import version
from importlib.util import find_spec

from fastapi import APIRouter, Depends, Query
from sqlalchemy import Connection, func, select

from fanlight import wire
from fanlight.api.access import Explainer, Reader, Services
from fanlight.explainers.registry import registry
from fanlight.quality import world
from fanlight.service import datasets, shelf
from fanlight.service.keys import NUMERICS
from fanlight.store.ledger import OPEN
from fanlight.store.tables import counter, job

PACKAGES = ("fanlight", "torch", "torchvision", "numpy", "fastapi", "sqlalchemy", "obstore")
router = APIRouter()


async def _loaded(context: Services) -> None:
    """A page that is opened while the server starts gets its models a moment later instead of none."""
    await context.models.loaded()


@router.get("/models", dependencies=[Depends(_loaded)])
def models(context: Services, _: Reader) -> list[wire.Model]:
    """The registered models, without their class names and cards."""
    return context.models.listed()


@router.get("/models/{id}", dependencies=[Depends(_loaded)])
def model(id: str, context: Services, _: Reader) -> wire.Model:
    return context.models.shown(id)


@router.post("/models/{id}/examination", status_code=202, dependencies=[Depends(_loaded)])
async def examine(id: str, context: Services, who: Explainer) -> wire.Examination:
    """Loads and runs the model in a process of its own, as `fanlight doctor MODEL` does; one model at a time (429 meanwhile)."""
    return await context.examinations.start(who, id)


@router.get("/models/{id}/examination", dependencies=[Depends(_loaded)])
async def examined(id: str, context: Services, who: Reader) -> wire.Examination:
    """What was found the last time, or that it is going on."""
    return await context.examinations.get(who, id)


@router.get("/explainers")
def explainers(context: Services, _: Reader) -> list[wire.ExplainerInfo]:
    """The methods, with their parameters as JSON Schema."""
    return [
        wire.ExplainerInfo(
            name=e.name,
            title=e.title,
            family=e.family,
            version=e.version,
            summary=e.summary,
            reading=e.reading,
            misleads=e.misleads,
            accepts=e.accepts,
            needs=sorted(e.needs),
            params=e.Params.model_json_schema(),
            returns=list(e.returns),
            cost=e.cost(e.Params(), (224, 224)),
            edits=dict(e.edits),
            asks=sorted(e.asks),
            general=sorted(e.general),
            pairs=e.pairs,
            paper=wire.Citation(**e.paper._asdict()),
            docs=f"docs/methods/{e.name}.md",
            world=world.score(e.name, e.version, world.shipped()),
        )
        for e in registry(context.explainers).values()
    ]


@router.get("/datasets")
def all_datasets(context: Services, who: Reader) -> list[wire.Dataset]:
    return datasets.listed(context, who)


@router.get("/datasets/reading")
def being_read(context: Services, who: Reader) -> list[wire.DatasetReading]:
    """Data sets that this server is still reading, with how far it is; when one is read it is among the others."""
    return shelf.reading(context, who)


@router.get("/datasets/{id}/samples")
def samples(
    id: str,
    context: Services,
    who: Reader,
    cursor: str | None = None,
    limit: int = 48,
    q: str | None = Query(None, max_length=200),
    label: str | None = None,
) -> wire.Page[wire.Sample]:
    return datasets.samples(context, who, id, cursor=cursor, limit=limit, q=q, label=label)


@router.get("/system")
async def system(context: Services, who: Reader) -> wire.System:
    health = await context.engine.health()
    kept = select(counter.c.value).where(counter.c.workspace == who.workspace, counter.c.name == "explanations")
    open_ = select(job.c.state, func.count()).where(job.c.workspace == who.workspace, job.c.state.in_(OPEN))

    def act(conn: Connection) -> tuple[int, dict[str, int]]:
        counts = {state: n for state, n in conn.execute(open_.group_by(job.c.state))}
        return int(conn.execute(kept).scalar() or 0), counts

    explained, held = await context.db.aread(act)
    s = context.settings
    return wire.System(
        version=version("fanlight"),
        device=health.device,
        ready=health.ready and context.models.ready.is_set(),
        queued=held.get("queued", 0),
        running=held.get("running", 0),
        explanations=explained,
        principal=who.principal,
        loopback=s.loopback,
        public_url=s.public_url,
        numerics=NUMERICS,
        versions={"python": platform.python_version()} | {p: version(p) for p in PACKAGES if find_spec(p)},
        settings={
            "database": "SQLite" if context.db.sqlite else "PostgreSQL",
            "artifacts": "S3" if "://" in s.artifacts else "folder",
            "engine": s.engine,
            "isolated": s.isolate,
            "max_upload_mb": s.max_upload_mb,
            "max_megapixels": s.max_megapixels,
            "share_days": s.share_days,
            "job_deadline": s.job_deadline,
            "word_model": s.word_model is not None,
            "throughput": round(context.dispatcher.throughput, 1),
            "problems": context.models.problems,
        },
    )
