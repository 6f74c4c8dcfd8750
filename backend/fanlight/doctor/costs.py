"""What each explainer costs on a model, here: run once at its defaults, with its time and its peak of memory."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.adapters.base import Pixels, fits, missing
from fanlight.doctor import Check
from fanlight.errors import FanlightError
from fanlight.explainers.base import absent
from fanlight.explainers.registry import registry

if TYPE_CHECKING:
    import torch

    from fanlight.adapters.image_classifier import TorchImageClassifier
    from fanlight.explainers.base import Item

LONGEST = 30.0  # seconds of one; what takes longer is stopped, and its time is projected from how far it came
KEEP = 1 << 30  # bytes of intermediates that a run may keep


def costs(
    model: Any,
    one: Any,
    ask: Callable[[], object],
    files: tuple[str, ...],
    changed: Callable[[], str | None],
    seconds: float,
) -> dict[str, Any]:
    """Seconds of one forward pass, and of every explainer whether it fits and why not, its passes, seconds, peak of
    memory beyond the model (MiB, None where the system does not tell), whether it was run to its end ("measured"), and
    how it failed if it did. Cheap ones first, so that what is cut short is what takes long.

    Args: one: what is explained, an Item or a Drawing; ask: one forward pass.
        changed: how the model is not what it was, asked after each; the first explainer that leaves something behind is the last one run.
    """
    import torch

    with torch.no_grad():
        forward = fastest(ask, synchronize(model.device))
    rows = {name: fit(model, explainer, forward) for name, explainer in registry(files).items()}
    left = seconds
    for name, row in sorted(rows.items(), key=lambda r: r[1]["seconds"] or 0.0):
        if row["available"] and left > 0:
            peak, began = Peak(model.device), time.perf_counter()  # clearing up before a run is none of its time
            row |= measured(model, registry(files)[name], one, min(LONGEST, left), peak)
            left -= time.perf_counter() - began
            if said := changed():
                row["error"] = f"it changed the model: {said}"
                break
    return {"forward_seconds": round(forward, 5), "device": str(model.device), "explainers": list(rows.values())}


def fit(model: Any, explainer: Any, forward: float) -> dict[str, Any]:
    """Whether an explainer fits, and an estimate of its seconds from its passes."""
    reason = missing(explainer.needs, model.capabilities) or absent(explainer)
    if not fits(explainer.accepts, model.task):
        reason = f"It explains models of the task {explainer.accepts}; this one is for {model.task}."
    passes = explainer.cost(explainer.Params(), model.size) if reason is None else None
    return {
        "name": explainer.name,
        "available": reason is None,
        "reason": reason,
        "forwards": passes,
        "seconds": round(passes * forward, 4) if passes is not None else None,
        "peak_mb": None,
        "measured": False,
        "error": None,
    }


def item(model: TorchImageClassifier, image: Pixels) -> Item:
    """A picture prepared, asked about what the model gives first."""
    import torch

    from fanlight.adapters import heads
    from fanlight.explainers.base import Item, Target

    x = model.prepare(image)
    with torch.inference_mode():
        logits = model.logits(x[None])[0].float().cpu()
    box = model.view(image.shape[1], image.shape[0])
    target = Target(heads.order(model.head, logits)[0])
    return Item(x, model.pixels(image), target, logits, 0, box, "the doctor's picture")


def measured(model: Any, explainer: Any, one: Any, seconds: float, peak: Peak) -> dict[str, Any]:
    """Seconds and peak of one run at defaults, stopped after `seconds` and its time projected then. Args: peak: made just before."""
    from fanlight.engine.execute import Context
    from fanlight.engine.memory import CPU_CHUNK
    from fanlight.engine.reuse import Reuse

    ready = synchronize(model.device)
    began, done = time.perf_counter(), 1.0
    try:
        run = explainer().run(model, [one], explainer.Params(), Context(model.device, CPU_CHUNK, Reuse(KEEP)))
        for step in run:
            ready()
            if time.perf_counter() - began > seconds and step.done > 0:
                done = step.done
                break
        ready()
    except FanlightError as e:
        return {"available": False, "reason": f"Not at its defaults: {e.message}", "seconds": None}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}
    took = time.perf_counter() - began
    return {"seconds": round(took / done, 4), "peak_mb": peak.mib(), "measured": done == 1.0}


def explained(rows: list[dict[str, Any]]) -> Check:
    """How it came through the explainers: what failed, or left something behind."""
    failed = [f"{r['name']} ({r['error']})" for r in rows if r["error"]]
    if failed:
        return Check("explainers", "bad", f"Of the explainers that should work, {'; '.join(failed)} failed.")
    run = sum(r["measured"] for r in rows)
    fitting = sum(r["available"] for r in rows)
    return Check(
        "explainers",
        "good",
        f"{fitting} of {len(rows)} methods fit. {run} of them were run to their end; the others are projected from their first steps. "
        "Running them has not changed the model.",
    )


class Peak:
    """The highest use of memory since it was made, beyond what was in use then: of the device, else of this process."""

    def __init__(self, device: torch.device):
        import torch

        gc.collect()
        self.device, self._told = device, True
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self._before = torch.cuda.memory_allocated(device)
            return
        try:
            ctypes.CDLL(None).malloc_trim(0)  # what was freed goes back, lest it be used again unseen
            Path("/proc/self/clear_refs").write_text("5")  # Linux: forgets the highest use so far
            self._before = _status("VmRSS")
        except (OSError, AttributeError):
            self._told = False

    def mib(self) -> float | None:
        """None where the system does not tell."""
        import torch

        if not self._told:
            return None
        now = torch.cuda.max_memory_allocated(self.device) if self.device.type == "cuda" else _status("VmHWM")
        return round(max(0, now - self._before) / 2**20, 1)


def _status(field: str) -> int:
    """A field of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith(f"{field}:")))


def synchronize(device: torch.device) -> Callable[[], None]:
    """What waits until a device has finished its work."""
    import torch

    return (lambda: torch.cuda.synchronize(device)) if device.type == "cuda" else (lambda: None)


def fastest(call: Callable[[], object], ready: Callable[[], None], times: int = 5) -> float:
    """Seconds of the fastest of some calls, the first not counted."""
    call()
    taken = []
    for _ in range(times):
        ready()
        start = time.perf_counter()
        call()
        ready()
        taken.append(time.perf_counter() - start)
    return min(taken)
