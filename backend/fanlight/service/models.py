"""Models: registered at the start from the environment's bundles and FANLIGHT_MODELS, kept in memory, matched with explainers."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from sqlalchemy import delete, insert

from fanlight import bundles, wire
from fanlight.adapters.base import fits, missing, takes
from fanlight.errors import FanlightError, InvalidField, unknown
from fanlight.explainers.base import Target, absent
from fanlight.explainers.registry import registry
from fanlight.settings import Settings
from fanlight.store.database import now
from fanlight.store.tables import model

if TYPE_CHECKING:
    from fanlight.service.context import Context

log = structlog.get_logger()


LOADING = 30.0  # seconds that an answer waits for models that are still being loaded
FIELD_GUIDE, SCENES = "field-guide", "scenes"  # the names of their bundles hold this


class Models:
    """The registered models. `ready` is set when each was loaded once, or refused with a sentence."""

    def __init__(self, context: Context):
        self._context = context
        self._known: dict[str, dict[str, Any]] = {}
        self._indices: dict[str, dict[str, list[int]]] = {}
        self.problems: dict[str, str] = {}
        self.ready = asyncio.Event()

    async def loaded(self) -> None:
        """Waits until every model was loaded or refused; LOADING seconds at most."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ready.wait(), LOADING)

    async def register(self) -> None:
        """Has the engine describe every source; what fails is noted in `problems` and does not stop the others."""
        paths = [str(p) for p in await self._installed()]
        for path in (*paths, *Settings.listed(self._context.settings.models)):
            await self._add(path)
        await self._context.db.awrite(self._save)
        self.ready.set()

    async def add(self, path: str) -> None:
        """Registers one more while the server runs."""
        await self._add(path)
        await self._context.db.awrite(self._save)

    async def _add(self, path: str) -> None:
        from fanlight.adapters import loader

        try:
            called, source = loader.named(path)
            info = dict(await self._context.engine.describe(source))
        except (FanlightError, OSError) as e:
            self.problems[path[:200]] = str(e)
            log.error("model not registered", source=path[:200], problem=str(e))
            return
        name = _slug(called)
        if name in self._known:
            self.problems[path] = f"There are two models named {name}."
            return
        given = path.removeprefix(f"{called}=")
        self._known[name] = {"source": source, **info, "id": name, "given": given}
        indices: dict[str, list[int]] = {}
        for i, c in enumerate(info["classes"]):
            indices.setdefault(c.casefold(), []).append(i)
        self._indices[name] = indices

    async def _installed(self) -> list[Path]:
        """Bundles of the environment, of the package and of the data folder. Without the default one it is converted into the data folder
        first, in a process of its own."""
        settings = self._context.settings
        worlds = {FIELD_GUIDE: settings.field_guide, SCENES: settings.scenes}
        world = [p for p in bundles.shipped() if any(name in p.name for name, offered in worlds.items() if offered)]
        world += self._pipelines() if settings.scenes else []
        made = bundles.made(settings.data_dir)
        if not settings.default_model:
            return [*world, *made]
        found = bundles.installed()
        own = self._context.settings.data_dir / "models"
        if not any(p.name == bundles.DEFAULT for p in found) and not (own / bundles.DEFAULT / "bundle.toml").exists():
            log.info("converting the default model once", bundle=bundles.DEFAULT)
            own.mkdir(parents=True, exist_ok=True)
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "fanlight_models.convert",
                bundles.DEFAULT,
                str(own),
                stderr=asyncio.subprocess.PIPE,
            )
            _, said = await process.communicate()
            if process.returncode:
                last = said.decode(errors="replace").strip().splitlines()[-1:]
                self.problems[bundles.DEFAULT] = f"It could not be converted: {' '.join(last)}"
        return [*found, *(p.parent for p in sorted(own.glob("*/bundle.toml"))), *world, *made]

    def _pipelines(self) -> list[Path]:
        """Those of the scenes; none where what reads them is not installed."""
        found = [p for p in bundles.pipelines() if SCENES in p.name]
        if found and not all(find_spec(name) for name in ("diffusers", "transformers")):
            log.info(
                "models that draw are not offered",
                models=[p.name for p in found],
                needs="pip install 'fanlight[diffusion]'",
            )
            return []
        return found

    def _save(self, conn: Any) -> None:
        from fanlight.service.context import WORKSPACE

        conn.execute(delete(model).where(model.c.workspace == WORKSPACE))
        t = now(conn)
        for m in self._known.values():
            info = {k: v for k, v in m.items() if k not in ("id", "source", "given", "card")}
            row = {"workspace": WORKSPACE, "id": m["id"], "digest": m["digest"], "name": m["name"], "task": m["task"]}
            conn.execute(insert(model).values(**row, source=m["source"], info=info, created=t))

    def find(self, name: str) -> dict[str, Any]:
        if name not in self._known:
            raise unknown("model", name, list(self._known), hint="GET /api/v1/models lists them.")
        return self._known[name]

    def of_folder(self, folder: str | Path) -> str | None:
        """The id of the model of a bundle's folder; None where it is not registered."""
        wanted = str(Path(folder).resolve())
        at = ((i, m["source"].get("bundle")) for i, m in self._known.items())
        return next((i for i, place in at if place and str(Path(place).resolve()) == wanted), None)

    def name_of(self, name: str) -> str:
        """For display; of a model that is gone, its id."""
        return str(self._known[name]["name"]) if name in self._known else name

    def listed(self) -> list[wire.Model]:
        return [self.shown(m, classes=False) for m in self._known]

    def shown(self, name: str, *, classes: bool = True) -> wire.Model:
        m = self.find(name)
        return wire.Model(
            id=m["id"],
            name=m["name"],
            task=m["task"],
            takes=takes(m["task"]),
            digest=m["digest"],
            description=m["description"],
            terms=m["terms"],
            size=tuple(m["size"]),
            classes=m["classes"] if classes else None,
            concepts=m.get("concepts") if classes else None,
            capabilities=m["capabilities"],
            head=m.get("head", "single-label"),
            unit=m.get("unit", ""),
            explainers=[self.availability(name, e) for e in registry(self._context.explainers)],
            card=m["card"] if classes else "",
            examples=m.get("examples", []),
        )

    def availability(self, name: str, explainer: str) -> wire.Availability:
        """Whether the explainer fits the model, and why not: tasks and capabilities are data."""
        m, e = self.find(name), registry(self._context.explainers)[explainer]
        if not fits(e.accepts, m["task"]):
            reason: str | None = f"It explains models of the task {e.accepts}; this one is of the task {m['task']}."
        else:
            reason = missing(e.needs, frozenset(m["capabilities"])) or absent(e)
        return wire.Availability(name=explainer, available=reason is None, reason=reason)

    def target(self, name: str, given: wire.Target | Mapping[str, Any] | None) -> Target | None:
        """Class index, class name, {"class": i}, {"minus": [a, b]}, {"similar_to": input} or {"concept": k} -> resolved; None stays None (the
        top prediction)."""
        if given is None:
            return None
        if isinstance(given, wire.MinusTarget):
            a, b = (self._index(name, v) for v in given.minus)
            if a == b:
                raise InvalidField(
                    "The difference of a class with itself is 0 everywhere.",
                    code="invalid_target",
                    given=list(given.minus),
                )
            return Target(a, b)
        if isinstance(given, wire.SimilarTarget):
            lacking = missing(frozenset({"embedding"}), frozenset(self.find(name)["capabilities"]))
            if lacking:
                raise InvalidField(
                    f"Similarity to a picture cannot be explained for {self.name_of(name)}. {lacking}",
                    code="not_available",
                    given=given.model_dump(),
                )
            return Target(0, None, given.similar_to)
        if isinstance(given, wire.ConceptTarget):
            return Target(self._concept(name, given.concept), concept=True)
        if isinstance(given, wire.ClassTarget):
            return Target(self._index(name, given.class_))
        if isinstance(given, Mapping):
            return Target.of(given)
        return Target(self._index(name, given))

    def _index(self, name: str, given: int | str) -> int:
        classes = self.find(name)["classes"]
        if isinstance(given, int):
            if not 0 <= given < len(classes):
                raise InvalidField(
                    f"Class {given} does not exist: this model has {len(classes)} classes.",
                    code="unknown_target",
                    given=given,
                    allowed=[0, len(classes) - 1],
                    hint="Give an index from 0 or a class name.",
                )
            return given
        found = self._indices[name].get(given.strip().casefold(), [])
        if len(found) > 1:
            raise InvalidField(
                f"“{given}” names {len(found)} classes.",
                code="ambiguous_target",
                given=given,
                allowed=found,
                hint="Give the index.",
            )
        if not found:
            error = unknown("target", given, classes, hint=f"GET /api/v1/models/{name} lists the classes.")
            raise InvalidField(
                error.message, code=error.code, given=error.given, allowed=error.allowed, hint=error.hint
            )
        return found[0]

    def _concept(self, name: str, given: int | str) -> int:
        names = self.find(name).get("concepts") or []
        if not names:
            raise InvalidField(
                f"{self.name_of(name)} has no concepts: only a concept bottleneck has.",
                code="not_available",
                given=given,
            )
        if isinstance(given, int) and 0 <= given < len(names):
            return given
        folded = [c.casefold() for c in names]
        if isinstance(given, str) and given.strip().casefold() in folded:
            return folded.index(given.strip().casefold())
        raise InvalidField(
            f"There is no concept {given}.",
            code="unknown_target",
            given=given,
            allowed=names,
            hint=f"GET /api/v1/models/{name} lists the concepts.",
        )

    def target_name(self, name: str, target: Mapping[str, Any] | None) -> str:
        if target is None or name not in self._known:
            return ""
        known = self._known[name]
        return Target.of(target).name(known["classes"], known.get("concepts") or ())


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "model"
