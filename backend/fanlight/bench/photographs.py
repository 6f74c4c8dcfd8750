"""How faithful the map of every method is on photographs: against random maps of the same picture, one result per photograph and method.

Results are appended to a file as they are made: a run that is stopped goes on where it was, and what there is can be looked at meanwhile
(`--report`). The order is photograph by photograph, cheap methods first. The floor of a photograph is measured once and shared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fanlight.bench import _explained
from fanlight.bench._machine import machine, today, versions
from fanlight.bench._records import Records
from fanlight.cli.output import say
from fanlight.decoding import decode
from fanlight.drawing.number import MINUS
from fanlight.errors import FanlightError, NotFound
from fanlight.explainers.base import Explainer, Params
from fanlight.explainers.registry import find, registry
from fanlight.quality import trust
from fanlight.settings import Settings

if TYPE_CHECKING:
    from fanlight.adapters.image_classifier import TorchImageClassifier
    from fanlight.explainers.base import Item

COUNT = 100
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
PACKAGES = ("fanlight", "torch", "numpy", "pillow")
HEAD = (
    "| method | faithfulness above random maps | above the floor | photographs | processor time | in words |\n"
    "|---|---|---|---|---|---|\n"
)


def run(options: Sequence[str]) -> dict[str, Any]:
    """Options: --folder FOLDER (of photographs), --resume FILE (of results, made where it is missing), --count N (the first N by name),
    --methods NAME ..., --samples N (methods that draw samples draw at most N), --report (measure nothing, say what the file holds)."""
    parser = argparse.ArgumentParser(prog="fanlight bench photographs --", description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--resume", type=Path, required=True, metavar="FILE")
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--methods", nargs="+", metavar="NAME")
    parser.add_argument("--samples", type=int, help="most samples of a method; default: its own default")
    parser.add_argument("--report", action="store_true")
    chosen = parser.parse_args(options)
    import torch

    torch.set_num_threads(1)
    files = photographs(chosen.folder, chosen.count)
    model = _explained.default_model()
    methods = [find(n) for n in chosen.methods] if chosen.methods else list(registry().values())
    tasks, unfit = fitting(methods, model, chosen.samples)
    records = Records(chosen.resume, {"model": model.digest, "samples": chosen.samples, "floor": trust.FLOOR})
    try:
        if not chosen.report:
            measure(model, files, tasks, records)
    except KeyboardInterrupt:
        say(f"Stopped. The same command goes on; {chosen.resume.name} holds what there is.")
    about = {"benchmark": "photographs", "date": today(), "machine": machine(), "versions": versions(PACKAGES)}
    told = {"model": model.name, "photographs": len(files), "samples": chosen.samples}
    return {**about, "options": told, **summary([f.name for f in files], tasks, records.rows), "unfit": unfit}


def photographs(folder: Path, count: int) -> list[Path]:
    """The first of a folder by name. Errors: NotFound."""
    found = sorted(p for p in folder.glob("*") if p.suffix.lower() in SUFFIXES) if folder.is_dir() else []
    if not found:
        raise NotFound(
            f"There are no photographs in {folder}.", code="no_photographs", hint="Name a folder of JPEG or PNG files."
        )
    return found[:count]


class Task(NamedTuple):
    """A method at the parameters it is measured at."""

    method: type[Explainer]
    params: Params

    def of(self, row: Mapping[str, Any]) -> bool:
        """Whether a result is of this method, version and parameters."""
        same = row.get("method") == self.method.name and row["version"] == self.method.version
        return same and row["params"] == self.params.model_dump(mode="json")


def fitting(
    methods: Sequence[type[Explainer]], model: TorchImageClassifier, samples: int | None
) -> tuple[list[Task], dict[str, str]]:
    """The methods that make a map of the model, cheap ones first; why the others do not."""
    tasks = [Task(m, _explained.thrifty(m, samples, model)) for m in methods]
    reasons = {t.method.name: _explained.unfit(t.method, t.params, model) for t in tasks}
    fit = [t for t in tasks if reasons[t.method.name] is None]
    cheap = sorted(fit, key=lambda t: t.method.cost(t.params, model.size))
    return cheap, {name: reason for name, reason in reasons.items() if reason is not None}


def measure(model: TorchImageClassifier, files: Sequence[Path], tasks: Sequence[Task], records: Records) -> None:
    """Whatever of photographs and methods the file does not hold yet."""
    for n, file in enumerate(files, 1):
        rows = [r for r in records.rows if r.get("photo") == file.name]
        todo = [t for t in tasks if not any(t.of(r) for r in rows)]
        if not todo or any("unreadable" in r for r in rows):
            continue
        limits = Settings.model_fields
        try:
            pixels = decode(
                file.read_bytes(),
                max_bytes=limits["max_upload_mb"].default * 2**20,
                max_pixels=limits["max_megapixels"].default * 1_000_000,
            ).pixels
        except FanlightError as e:
            records.add({"photo": file.name, "unreadable": e.message})
            say(f"{file.name} is left out: {e.message}")
            continue
        began = time.monotonic()
        one = _explained.item(model, pixels)
        floor = next((r["floor"] for r in rows if "floor" in r), None)
        for row in measured(model, one, todo, floor):
            records.add({"photo": file.name, **row})
        say(f"{n}/{len(files)} {file.name}: {len(todo)} methods in {time.monotonic() - began:.0f} s")


def measured(model: Any, one: Item, tasks: Sequence[Task], floor: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The floor, where it is not known yet, and a row for each method."""
    for method, params in tasks:
        began = time.process_time()
        found: dict[str, Any] = {}
        try:
            artifacts = _explained.explained(method, params, model, one)
        except FanlightError as e:
            found = {"state": "failed", "reason": e.message}
        seconds = time.process_time() - began
        if not found:
            result = _explained.finished(trust.run(model, one, artifacts, floor, _explained.lent()))
            if floor is None and result.floor is not None:
                floor = result.floor
                yield {"floor": floor}
            kept = ("state", "faithfulness", "insertion", "deletion", "above_floor", "completeness_error", "reason")
            found = {k: result.record.get(k) for k in kept}
            found["conservation"] = next(a for a in artifacts if a.kind == "image-map").meta.get("conservation")
        about = {"method": method.name, "version": method.version, "params": params.model_dump(mode="json")}
        yield {**about, **found, "seconds": round(seconds, 3)}


def summary(names: Sequence[str], tasks: Sequence[Task], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the results say of each method, over the photographs that were measured so far.

    `value` is the mean faithfulness relative to the floor, (lo, hi) its 95 % bootstrap interval over photographs, `above` the share of
    photographs on which the map is above the floor; all three None where nothing is measured.
    """
    given = [r for r in rows if r.get("photo") in names]
    told = {}
    for task in tasks:
        own = [r for r in given if task.of(r)]
        done = [r for r in own if r["state"] == "succeeded"]
        values = np.array([r["faithfulness"] for r in done], dtype=np.float64)
        lo, hi = _explained.interval(values) if len(values) else (None, None)
        above = float(np.mean([r["above_floor"] for r in done])) if done else None
        gaps = [abs(r["conservation"] - 1) for r in done if r["conservation"] is not None]
        told[task.method.name] = {
            "title": task.method.title,
            "version": task.method.version,
            "changed": {k: v for k, v in task.params if v != getattr(task.method.Params(), k)},
            "n": len(done),
            "undefined": len(own) - len(done),
            "value": float(values.mean()) if len(values) else None,
            "lo": lo,
            "hi": hi,
            "above": above,
            "seconds": float(np.median([r["seconds"] for r in own])) if own else None,
            "gap": float(np.median(gaps)) if gaps else None,
            "words": words(lo, hi, above),
        }
    unreadable = {r["photo"]: r["unreadable"] for r in given if "unreadable" in r}
    there = {(r["photo"], t.method.name) for r in given if "method" in r for t in tasks if t.of(r)}
    complete = [n for n in names if n not in unreadable and all((n, t.method.name) in there for t in tasks)]
    return {"complete": len(complete), "unreadable": unreadable, "methods": Methods(told)}


class Methods(dict[str, Any]):
    """What was found of each method; as text a line each."""

    def __str__(self) -> str:
        return "\n".join(f"{name}: {_value(m)}, {m['words']}" for name, m in self.items())


def words(lo: float | None, hi: float | None, above: float | None) -> str:
    """How a method stands to the floor: by the interval of its mean, and by how often a single map of it is above."""
    if lo is None or hi is None or above is None:
        return "not yet measured"
    if hi < 0:
        return "**worse than random maps**"
    if lo <= 0:
        return "**not told apart from random maps**"
    if above < 0.5:
        return "**near the floor**: better on average, but most single maps are not above it"
    return "above the floor" if above < 0.9 else "above the floor on nearly every photograph"


def table(run: Mapping[str, Any]) -> str:
    """Markdown, most faithful first."""
    methods: Mapping[str, Any] = run["methods"]
    rows = sorted(methods.items(), key=lambda m: -(m[1]["value"] if m[1]["value"] is not None else -9))
    return _about(run) + HEAD + "".join(_row(name, m) for name, m in rows) + _below(run)


def _about(run: Mapping[str, Any]) -> str:
    m, o = run["machine"], run["options"]
    packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    so_far = "" if run["complete"] + len(run["unreadable"]) == o["photographs"] else " so far"
    left_out = "".join(f" {name} is left out: {reason}" for name, reason in run["unreadable"].items())
    drawn = f" Methods that draw samples drew at most {o['samples']}." if o["samples"] else " All at their defaults."
    return (
        f"{run['date']}. {o['model']}, the class it gives first; {run['complete']} of {o['photographs']} photographs{so_far}.{left_out}{drawn} "
        f"{m['cpu']}, one thread. {packages}.\n\n"
    )


def _row(name: str, m: Mapping[str, Any]) -> str:
    changed = "".join(f", {v} {k}" for k, v in m["changed"].items())
    above = f"{m['above']:.0%}" if m["above"] is not None else ""
    seconds = f"{m['seconds']:.2g} s" if m["seconds"] is not None else ""
    n = f"{m['n']}" + (f", {m['undefined']} undefined" if m["undefined"] else "")
    title = f"[{m['title']}](methods/{name}.md){changed}"
    return f"| {title} | {_value(m)} | {above} | {n} | {seconds} | {m['words']} |\n"


def _value(m: Mapping[str, Any]) -> str:
    if m["value"] is None:
        return ""
    return f"{m['value']:.3f} ({m['lo']:.3f} to {m['hi']:.3f})".replace("-", MINUS)


def _below(run: Mapping[str, Any]) -> str:
    gaps = [
        f"{m['title']}: its values miss the answer by {m['gap']:.0%} of it (median), which biases keep."
        for m in run["methods"].values()
        if m["gap"] is not None
    ]
    unfit = (
        [f"Not of this model: {', '.join(f'{find(n).title} ({r})' for n, r in run['unfit'].items())}"]
        if run["unfit"]
        else []
    )
    return "".join(f"\n{line}\n" for line in [*gaps, *unfit])
