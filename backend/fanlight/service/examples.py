"""Worked examples: a few explanations of the shipped photographs, really computed, once per data folder."""

from __future__ import annotations

import structlog
from sqlalchemy import Connection, insert, select

from fanlight import wire
from fanlight.bundles import DEFAULT
from fanlight.engine.base import BULK
from fanlight.errors import FanlightError
from fanlight.service.context import SYSTEM, Context
from fanlight.service.datasets import PHOTOGRAPHS
from fanlight.service.explain import submit
from fanlight.store.tables import counter, sample

log = structlog.get_logger()

# What is worth opening first: (photograph, method). Three ways of asking, each with a map that is above chance, so that the first thing
# that is seen is what an explanation looks like that can be believed.
CHOSEN = (("A cup of coffee", "grad-cam"), ("Eileen Collins", "occlusion"), ("A rocket launch", "integrated-gradients"))
DONE = "examples"


def compute(context: Context) -> int:
    """Asks for the examples unless this data folder has had them; returns how many were asked for."""

    def pending(conn: Connection) -> dict[str, str] | None:
        mine = counter.c.workspace == SYSTEM.workspace
        if conn.execute(select(counter.c.value).where(mine, counter.c.name == DONE)).first() is not None:
            return None
        rows = conn.execute(
            select(sample.c.name, sample.c.input).where(
                sample.c.workspace == SYSTEM.workspace, sample.c.dataset == PHOTOGRAPHS
            )
        )
        return {r.name: r.input for r in rows}

    inputs = context.db.read(pending)
    if not inputs:
        return 0
    asked = 0
    for photograph, method in CHOSEN:
        if photograph not in inputs:
            continue
        try:
            submit(
                context,
                SYSTEM,
                wire.ExplanationRequest(model=DEFAULT, input=inputs[photograph], explainer=method),
                priority=BULK,
            )
            asked += 1
        except FanlightError as e:
            log.warning("worked example not computed", photograph=photograph, problem=e.message)
    context.db.write(lambda c: c.execute(insert(counter).values(workspace=SYSTEM.workspace, name=DONE, value=asked)))
    return asked
