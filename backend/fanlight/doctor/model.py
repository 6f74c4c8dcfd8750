"""Whether a model can be explained: loaded and run in a process of its own, so that a crash is a finding, not an end.

`examine` starts that process (`python -m fanlight.doctor.model SOURCE`) and reads its report.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from fanlight.adapters.base import Pixels, takes
from fanlight.doctor import Check, Report, drawing
from fanlight.doctor.costs import costs, explained, item
from fanlight.errors import FanlightError
from fanlight.settings import Settings

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from fanlight.adapters.image_classifier import TorchImageClassifier

TOLERANCE = 1e-4  # relative, between a picture alone and the same picture in a batch
SECONDS = 120.0  # of running explainers, all together
PATIENCE = 600  # seconds; a download of weights may be among them
OUTPUTS = {"single-label": "classes", "multi-label": "labels", "regression": "values"}


def examine(source: str, seconds: float = SECONDS) -> Report:
    """The report on a model: a bundle folder, a Python file, or a model of a library. Args: seconds: of running explainers."""
    try:
        run = subprocess.run(command(source, seconds), capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return too_long(source)
    return told(source, run.returncode, run.stdout, run.stderr)


def command(source: str, seconds: float, *, gently: int = 0) -> list[str]:
    """What starts the process that examines. Args: gently: added to its niceness."""
    return [sys.executable, "-m", "fanlight.doctor.model", source, str(seconds), str(gently)]


def told(source: str, code: int, out: str, said: str) -> Report:
    """The report of that process, from its exit code and what it printed."""
    if code:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        last = said.strip().splitlines()[-1:] or ["It printed nothing."]
        return Report(source, [Check("load", "bad", f"It ended the process that loaded it ({how}): {last[0]}")])
    return Report.of(json.loads(out.splitlines()[-1]))


def too_long(source: str) -> Report:
    return Report(source, [Check("load", "bad", f"Loading and running it once took more than {PATIENCE} s.")])


def inspect(source: str, seconds: float = SECONDS) -> Report:
    """The report, made in this process. Args: seconds: of running explainers, all together; what takes longer is projected."""
    import torch

    from fanlight.adapters.loader import load, named

    torch.manual_seed(0)
    try:
        model = load(named(source)[1], device())
    except FanlightError as error:
        return Report(source, [Check("load", "bad", error.message, error.hint or "")])
    weights = sum(p.numel() for p in model.net.parameters())
    if takes(model.task) == "prompt":
        return drawing.inspect(source, model, weights, seconds)
    outputs = f"{len(model.classes)} {OUTPUTS[model.head]}"
    says = f"{outputs}, {model.size[1]} x {model.size[0]} pixels, {weights:,} parameters."
    checks = [Check("load", "good", f"{model.name}: {says}")]
    before, training = state(model), model.net.training
    try:
        x = torch.stack([model.prepare(image) for image in pictures()])
        with torch.no_grad():
            model.logits(x[:1])
        checks.append(untouched(model, before, training))
        if checks[-1].outcome == "good":  # else all that follows would be a consequence
            checks += answers(model, x)
        if all(c.outcome != "bad" for c in checks):
            checks += [
                gradients(model, x[:1]),
                features(model, x[:1]),
                attention(model, x[:1]),
                embedding(model, x[:1]),
            ]
    except Exception as e:
        checks.append(Check("run", "bad", f"Running it on a picture raised {type(e).__name__}: {e}"))
    report = Report(source, checks)
    if not report.sound:
        return report
    files = tuple(Settings.listed(Settings().explainers))
    one = item(model, next(pictures()))
    figures = costs(model, one, lambda: model.logits(one.x[None]), files, lambda: left_behind(model, before), seconds)
    checks.append(explained(figures["explainers"]))
    return Report(source, checks, {"model": about(model), **figures})


def device() -> torch.device:
    """Where a server with the same settings would compute."""
    import torch

    name = Settings().device
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return torch.device(name if name != "auto" else "cuda" if torch.cuda.is_available() else "cpu")


def pictures() -> Iterator[Pixels]:
    """Four different pictures of 320 x 240 pixels: blurred noise, so that no model finds them degenerate."""
    from PIL import Image, ImageFilter

    rng = np.random.default_rng(0)
    for radius in (1, 3, 8, 20):
        noise = Image.fromarray(rng.integers(0, 256, (240, 320, 3), dtype=np.uint8))
        yield np.asarray(noise.filter(ImageFilter.GaussianBlur(radius)))


def answers(model: TorchImageClassifier, x: Tensor) -> Iterator[Check]:
    """Shapes, finite numbers, and the same picture giving the same numbers: again, and beside others."""
    import torch

    with torch.no_grad():
        alone, again, batch = model.logits(x[:1]), model.logits(x[:1]), model.logits(x)
    expected = (1, len(model.classes))
    if tuple(alone.shape) != expected:
        hint = "One logit per class, for each picture of a batch."
        yield Check(
            "shape", "bad", f"It answers one picture with shape {tuple(alone.shape)}; {expected} is expected.", hint
        )
        return
    if tuple(batch.shape) != (len(x), expected[1]):
        yield Check(
            "shape",
            "bad",
            f"It answers {len(x)} pictures with shape {tuple(batch.shape)}.",
            "The first axis is the batch.",
        )
        return
    yield Check("shape", "good", f"One picture gives {expected[1]} logits.")
    if not bool(torch.isfinite(batch).all()):
        yield Check(
            "finite",
            "bad",
            "Some of its logits are NaN or infinite.",
            "Explanations of such outputs fail; check weights and preprocessing.",
        )
        return
    yield Check("finite", "good", "All logits are finite.")
    if float(batch.std(0).max()) == 0:
        yield Check(
            "input",
            "warning",
            "Four different pictures get the same logits.",
            "Check the preprocessing and the weights.",
        )
    if not torch.equal(alone, again):
        yield Check(
            "repeats",
            "bad",
            "The same picture gets different logits each time.",
            "Dropout or sampling is on: results could not be stored under a key.",
        )
        return
    yield Check("repeats", "good", "The same picture gets the same logits each time.")
    off = float((batch[:1] - alone).abs().max() / alone.abs().max().clamp_min(1e-12))
    if off > TOLERANCE:
        hint = "A batch normalisation in training mode mixes the pictures of a batch; call eval()."
        yield Check(
            "batch", "bad", f"A picture's logits depend on the pictures beside it (by {off:.1e} relative).", hint
        )
        return
    yield Check("batch", "good", f"A picture's logits do not depend on the pictures beside it (within {TOLERANCE:g}).")


def gradients(model: TorchImageClassifier, x: Tensor) -> Check:
    import torch

    if "gradients" not in model.capabilities:
        return Check("gradients", "none", "It offers no gradients; methods that need them are not available.")
    x = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.logits(x).max(), x, allow_unused=True)
    if slope is None or not bool(torch.isfinite(slope).all()):
        return Check(
            "gradients",
            "bad",
            "The gradient with respect to the picture is missing or not finite.",
            "Set differentiable=False if it has none.",
        )
    if not bool(slope.any()):
        return Check(
            "gradients",
            "warning",
            "The gradient with respect to the picture is zero everywhere.",
            "Gradient maps of it will be empty.",
        )
    return Check("gradients", "good", "The output can be differentiated with respect to the picture.")


def features(model: TorchImageClassifier, x: Tensor) -> Check:
    import torch

    if "spatial-features" not in model.capabilities:
        return Check("features", "none", "It names no grid of features; Grad-CAM is not available.")
    with torch.enable_grad():
        logits, grid = model.features(x.clone().requires_grad_())
        (slope,) = torch.autograd.grad(logits.max(), grid, allow_unused=True)
    if slope is None:
        return Check(
            "features",
            "bad",
            "The logits do not depend on the grid of features that it names.",
            "Name a module that the output passes through.",
        )
    where = f" at {model.features_at}" if model.features_at else ""
    if not bool(slope.any()):
        return Check(
            "features",
            "warning",
            f"The gradient at its grid of features{where} is zero everywhere, and so will be Grad-CAM.",
            'In a transformer name the input norm of the last block, or "auto".',
        )
    return Check("features", "good", f"Grid of {grid.shape[3]} x {grid.shape[2]} with {grid.shape[1]} features{where}.")


def attention(model: TorchImageClassifier, x: Tensor) -> Check:
    import torch

    if "attention" not in model.capabilities:
        return Check("attention", "none", "Its attention cannot be read; methods that need it are not available.")
    with torch.no_grad():
        logits, rows, prefix, (h, w) = model.attentions(x)
        off = float((logits - model.logits(x)).abs().max() / logits.abs().max().clamp_min(1e-12))
    says = f"{len(rows)} layers with {rows[0].shape[1]} heads over {w} x {h} places and {prefix} tokens before them"
    if off > TOLERANCE:
        return Check("attention", "bad", f"{says}, but while it is read the logits differ by {off:.1e} relative.")
    return Check("attention", "good", f"{says}.")


def embedding(model: TorchImageClassifier, x: Tensor) -> Check:
    import torch

    if "embedding" not in model.capabilities:
        return Check("embedding", "none", "Its logits are not those of a linear layer; similarity is no target of it.")
    with torch.no_grad():
        return Check("embedding", "good", f"{model.embedding(x).shape[1]} values before the last layer.")


def left_behind(model: TorchImageClassifier, before: dict[str, Any]) -> str | None:
    """What an explainer changed of the model, if it did."""
    left = untouched(model, before, False)
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in model.net.modules())
    return left.says if left.outcome == "bad" else f"{hooks} hooks are left on it." if hooks else None


def untouched(model: TorchImageClassifier, before: dict[str, Any], training: bool) -> Check:
    """Running it may change nothing: results are stored under a key that assumes so."""
    import torch

    changed = [name for name, value in state(model).items() if not torch.equal(value, before[name])]
    if changed:
        return Check(
            "side effects",
            "bad",
            f"Running it changed {', '.join(changed[:3])}.",
            "A layer is in training mode; call eval() in load().",
        )
    if model.net.training != training or any(m.training for m in model.net.modules()):
        return Check(
            "side effects", "bad", "Running it put a layer into training mode.", "Leave the mode alone in forward()."
        )
    return Check("side effects", "good", "Running it changes neither weights nor mode.")


def state(model: TorchImageClassifier) -> dict[str, Any]:
    return {name: value.clone() for name, value in model.net.state_dict().items()}


def about(model: TorchImageClassifier) -> dict[str, Any]:
    return {
        "name": model.name,
        "task": model.task,
        "digest": model.digest,
        "classes": len(model.classes),
        "size": list(model.size),
        "capabilities": sorted(model.capabilities),
        "head": model.head,
        "unit": model.unit,
        "features": model.features_at,
        "terms": model.terms,
    }


if __name__ == "__main__":
    from fanlight.engine.local import PATIENT

    for name, value in PATIENT.items():  # as in the server's worker; read when torch is first imported
        os.environ.setdefault(name, value)
    answer = sys.stdout
    os.nice(int(sys.argv[3]))
    with contextlib.redirect_stdout(sys.stderr):  # a model may print; the answer is ours alone
        report = inspect(sys.argv[1], float(sys.argv[2]))
    answer.write(json.dumps(report.json()) + "\n")
