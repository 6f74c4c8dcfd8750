"""Whether a model that draws can be explained: its noise predictions, its words, its pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fanlight.doctor import Check, Report
from fanlight.doctor.costs import costs, explained
from fanlight.settings import Settings

if TYPE_CHECKING:
    from fanlight.adapters.text_to_image import Painter

TOLERANCE = 1e-4  # relative, between a row alone and the same row in a batch
PROMPT = "a red circle left of a blue cross"
"""Words that the scenes know, and every tokenizer of pieces."""


def inspect(source: str, model: Any, weights: int, seconds: float) -> Report:
    """The report on a loaded model. Args: weights: how many; seconds: of running explainers, all together."""
    from fanlight.explainers.base import Drawing
    from fanlight_models.diffusion import BadPrompt, Conditioning

    says = f"{model.size[1]} x {model.size[0]} pixels from latents {' x '.join(map(str, model.shape))}, {weights:,} parameters."
    checks = [Check("load", "good", f"{model.name}: {says}")]
    before = {k: v.clone() for k, v in model.net.state_dict().items()}

    def changed() -> str | None:
        now = model.net.state_dict()
        moved = [k for k, v in before.items() if not bool((now[k] == v).all())]
        return f"changed {', '.join(moved[:3])}" if moved else None

    try:
        checks += predictions(model)
        encoded = model.encode([Conditioning(""), Conditioning(PROMPT)])
        checks += words(model, encoded)
    except BadPrompt as e:
        checks.append(Check("words", "warning", f"The doctor's prompt “{PROMPT}” cannot be asked: {e}"))
        return Report(source, checks, {"model": about(model)})
    except Exception as e:
        checks.append(Check("run", "bad", f"Asking it for noise raised {type(e).__name__}: {e}"))
    report = Report(source, checks)
    if not report.sound:
        return report
    files = tuple(Settings.listed(Settings().explainers))
    z, alpha, rows = _asked(model, 1)
    one = Drawing(PROMPT, None, 0, "the doctor's prompt")
    figures = costs(model, one, lambda: model.noise(z, alpha, rows), files, changed, seconds)
    checks.append(explained(figures["explainers"]))
    return Report(source, checks, {"model": about(model), **figures})


def _asked(model: Painter, rows: int) -> tuple[Any, Any, Any]:
    """Noisy latents, log-SNRs across the trained range and no words, of so many rows; the same for the same number."""
    import torch

    from fanlight_models.diffusion import Conditioning

    z = torch.randn(rows, *model.shape, generator=torch.Generator().manual_seed(0)).to(model.device)
    low, high = (max(model.logsnr[0], -5.0), min(model.logsnr[1], 5.0))
    alpha = torch.linspace(low, high, rows, dtype=torch.float64).to(model.device)
    return z, alpha, model.encode([Conditioning("")] * rows)


def predictions(model: Painter) -> Iterator[Check]:
    """Shape, finite numbers, and the same question giving the same answer: again, and beside others."""
    import torch

    z, alpha, encoded = _asked(model, 4)
    one = {k: v[:1] for k, v in encoded.items()}
    with torch.inference_mode():
        batch, alone, again = model.noise(z, alpha, encoded), *(model.noise(z[:1], alpha[:1], one) for _ in range(2))
    if batch.shape != z.shape:
        yield Check("shape", "bad", f"It predicts noise of shape {tuple(batch.shape)}; {tuple(z.shape)} is expected.")
        return
    if not bool(torch.isfinite(batch).all()):
        yield Check(
            "finite", "bad", "Some of its predictions are NaN or infinite.", "Half precision overflows in some."
        )
        return
    yield Check("finite", "good", "All its predictions are finite.")
    if not torch.equal(alone, again):
        yield Check("repeats", "bad", "The same question gets another answer each time.", "Dropout is on.")
        return
    yield Check("repeats", "good", "The same question gets the same answer each time.")
    off = float((batch[:1] - alone).abs().max() / alone.abs().max().clamp_min(1e-12))
    good = off <= TOLERANCE
    said = f"within {TOLERANCE:g}" if good else f"by {off:.1e} relative"
    yield Check(
        "batch",
        "good" if good else "bad",
        f"An answer {'does not depend' if good else 'depends'} on those beside it ({said}).",
    )


def words(model: Painter, encoded: Any) -> Iterator[Check]:
    """Whether words change what it predicts, and what can be read of them."""
    import torch

    z, alpha, _ = _asked(model, 1)
    middle = torch.full_like(alpha, min(max(model.law.loc, model.logsnr[0]), model.logsnr[1]))
    with torch.inference_mode():
        less, more = (model.noise(z, middle, {k: v[n : n + 1] for k, v in encoded.items()}) for n in range(2))
    moved = float((less - more).abs().max())
    if moved == 0:
        yield Check("words", "warning", "A prompt changes nothing of what it predicts, so that no word says anything.")
    else:
        yield Check("words", "good", f"A prompt changes its prediction (by up to {moved:.2g}).")
    said = (
        "Its cross-attention can be read."
        if model.attends
        else "It has no cross-attention to read; maps of words do not need it."
    )
    yield Check("attention", "good" if model.attends else "none", said)


def about(model: Painter) -> dict[str, Any]:
    return {
        "name": model.name,
        "task": model.task,
        "digest": model.digest,
        "classes": 0,
        "size": list(model.size),
        "capabilities": sorted(model.capabilities),
        "head": "",
        "unit": "",
        "features": None,
        "terms": model.terms,
    }
