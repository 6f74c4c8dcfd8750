"""Whether a model that draws can be explained: its noise predictions, its words, its pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fanlight.doctor import Check, Report
from fanlight.doctor.costs import Peak, costs, explained, fastest, synchronize
from fanlight.drawing.number import digits
from fanlight.explainers.registry import registry
from fanlight.settings import Settings

if TYPE_CHECKING:
    from fanlight.adapters.text_to_image import Painter

TOLERANCE = 1e-4  # relative, between a row alone and the same row in a batch
PROMPT = "a red circle left of a blue cross"
"""Words that the scenes know, and every tokenizer of pieces."""
TELL = "Name prompts that it has words for: `examples` in its fanlight.json, or `[config]` of its bundle."
LONG = 1000  # words of a prompt that no text encoder reads to its end


def inspect(source: str, model: Any, weights: int, seconds: float) -> Report:
    """The report on a loaded model. Args: weights: how many; seconds: of running explainers, all together."""
    from fanlight.explainers.base import Drawing

    says = f"{model.size[1]} x {model.size[0]} pixels from latents {' x '.join(map(str, model.shape))}, {weights:,} parameters."
    checks = [Check("load", "good", f"{model.name}: {says}")]
    if model.caveat:
        checks.append(Check("kind", "warning", model.caveat))
    before = lengths(model.net)

    def changed() -> str | None:
        moved = [k for k, v in lengths(model.net).items() if v != before[k]]
        return f"changed {', '.join(moved[:3])}" if moved else None

    prompt, refused = asking(model)
    try:
        checks += predictions(model, prompt or "")
        checks += pictures(model)
        if prompt is None:
            checks.append(Check("words", "warning", f"The doctor's prompt “{PROMPT}” cannot be asked: {refused}", TELL))
            return Report(source, checks, {"model": about(model)})
        checks += words(model, prompt)
        checks.append(limit(model, prompt))
    except Exception as e:
        checks.append(Check("run", "bad", f"Asking it for noise raised {type(e).__name__}: {e}"))
    if not Report(source, checks).sound:
        return Report(source, checks)
    z, alpha, rows = _asked(model, [prompt or ""])

    def ask() -> Any:
        return model.noise(z, alpha, rows)

    checks.append(cost(model, ask))
    one = Drawing(prompt or "", None, 0, "the doctor's prompt")
    figures = costs(model, one, ask, _files(), changed, seconds)
    checks += [explained(figures["explainers"]), methods(model, figures["explainers"])]
    return Report(source, checks, {"model": about(model), **figures})


def lengths(net: Any) -> dict[str, float]:
    """The norm of every tensor: tells whether weights changed, without a second copy of them."""
    return {k: float(v.double().nan_to_num().norm()) for k, v in net.state_dict().items()}


def asking(model: Painter) -> tuple[str | None, str]:
    """The first prompt that it has words for, the doctor's or one of its examples; else None and why the doctor's is none."""
    from fanlight_models.diffusion import BadPrompt, Conditioning

    refused = ""
    for prompt in (PROMPT, *model.examples):
        try:
            model.encode([Conditioning(prompt)])
        except BadPrompt as e:
            refused = refused or str(e)
        else:
            return prompt, ""
    return None, refused


def _asked(model: Painter, prompts: Sequence[str]) -> tuple[Any, Any, Any]:
    """Noisy latents, log-SNRs across the trained range, and these prompts, one a row; the same for the same number."""
    import torch

    from fanlight_models.diffusion import Conditioning

    rows = len(prompts)
    z = torch.randn(rows, *model.shape, generator=torch.Generator().manual_seed(0)).to(model.device)
    low, high = (max(model.logsnr[0], -5.0), min(model.logsnr[1], 5.0))
    alpha = torch.linspace(low, high, rows, dtype=torch.float64).to(model.device)
    with torch.inference_mode():
        return z, alpha, model.encode([Conditioning(p) for p in prompts])


def predictions(model: Painter, prompt: str) -> Iterator[Check]:
    """Shape, finite numbers, and the same question giving the same answer: again, alone, and in batches of another size."""
    import torch

    z, alpha, encoded = _asked(model, ["", prompt, prompt, ""])
    again = _asked(model, ["", prompt, prompt, ""])[2]
    with torch.inference_mode():
        batch, once_more = model.noise(z, alpha, encoded), model.noise(z, alpha, again)
        parts = [[slice(n, n + 1) for n in range(4)], [slice(0, 3), slice(3, 4)], [slice(0, 2), slice(2, 4)]]
        split = [
            torch.cat([model.noise(z[p], alpha[p], {k: v[p] for k, v in encoded.items()}) for p in cut])
            for cut in parts
        ]
    if batch.shape != z.shape:
        yield Check("shape", "bad", f"It predicts noise of shape {tuple(batch.shape)}; {tuple(z.shape)} is expected.")
        return
    if not bool(torch.isfinite(batch).all()):
        yield Check(
            "finite", "bad", "Some of its predictions are NaN or infinite.", "Half precision overflows in some."
        )
        return
    yield Check("finite", "good", f"All its predictions are finite, of the shape {' x '.join(map(str, z.shape[1:]))}.")
    if not torch.equal(batch, once_more):
        yield Check("repeats", "bad", "The same question gets another answer each time.", "Dropout is on.")
        return
    yield Check("repeats", "good", "The same question gets the same answer each time.")
    off = max(float((other - batch).abs().max() / batch.abs().max().clamp_min(1e-12)) for other in split)
    good = off <= TOLERANCE
    said = f"within {TOLERANCE:g}" if good else f"by {off:.1e} relative"
    yield Check(
        "batch",
        "good" if good else "bad",
        f"An answer {'does not depend' if good else 'depends'} on those beside it, in batches of 4, 3, 2 and 1 ({said}).",
    )


def pictures(model: Painter) -> Iterator[Check]:
    """Whether pictures become latents of its shape, and those pictures of its size."""
    import numpy as np

    rows, columns = model.size
    grey = np.full((rows, columns, 3), 128, np.uint8)
    latent = model.latent(grey)
    back = model.picture(latent)
    if tuple(latent.shape) != tuple(model.shape) or back.shape != grey.shape:
        yield Check(
            "pictures",
            "bad",
            f"A picture of {columns} x {rows} becomes a latent of {tuple(latent.shape)} and that one of {back.shape[1]} x {back.shape[0]}; "
            f"{tuple(model.shape)} is expected.",
        )
    else:
        yield Check("pictures", "good", f"A picture becomes a latent and that a picture of {columns} x {rows} pixels.")


def words(model: Painter, prompt: str) -> Iterator[Check]:
    """Whether words change what it predicts, and what can be read of them."""
    import torch

    z, alpha, encoded = _asked(model, ["", prompt])
    middle = torch.full_like(alpha[:1], min(max(model.law.loc, model.logsnr[0]), model.logsnr[1]))
    with torch.inference_mode():
        less, more = (model.noise(z[:1], middle, {k: v[n : n + 1] for k, v in encoded.items()}) for n in range(2))
    moved = float((less - more).abs().max())
    if moved == 0:
        yield Check("words", "warning", "A prompt changes nothing of what it predicts, so that no word says anything.")
    else:
        yield Check("words", "good", f"A prompt changes its prediction (by up to {moved:.2g}).")
    said = (
        "Its cross-attention can be read."
        if model.attends
        else "It has no cross-attention to read, so that there are no attention maps; maps of words do not need it."
    )
    yield Check("attention", "good" if model.attends else "none", said)


def limit(model: Painter, prompt: str) -> Check:
    """How much of a long prompt it reads."""
    word = prompt.split()[0]
    text = " ".join([word] * LONG)
    seen = len(text.removesuffix(model.lost(text)).split())
    if seen == LONG:
        return Check("prompt", "good", f"It reads all of a prompt of {LONG:,} short words.")
    return Check(
        "prompt",
        "good" if seen else "bad",
        f"It reads the first {seen:,} short words of a prompt; longer words take several places. What it does not read is said with a result.",
    )


def cost(model: Painter, ask: Callable[[], Any]) -> Check:
    """Time and memory of one prediction."""
    import torch

    with torch.inference_mode():
        ask()
        peak = Peak(model.device)
        seconds = fastest(ask, synchronize(model.device))
        mib = peak.mib()
    beyond = "" if mib is None else f" and {digits(mib, 3)} MiB of memory beyond the model at most"
    return Check("cost", "good", f"One prediction takes {digits(seconds, 3)} s{beyond}, on {model.device}.")


def methods(model: Painter, rows: Sequence[Mapping[str, Any]]) -> Check:
    """Which methods of words work, and why others do not."""
    own = {name for name, explainer in registry(_files()).items() if explainer.accepts == model.task}
    works = [r["name"] for r in rows if r["available"] and not r["error"]]
    fails = [f"{r['name']}: {r['error'] or r['reason']}" for r in rows if r["name"] in own and r["name"] not in works]
    others = len(rows) - len(own)
    said = [
        f"Of words: {', '.join(works)}." if works else "No method of words works.",
        f"Not: {'; '.join(fails)}" if fails else "",
        f"{others} others explain models of other tasks.",
    ]
    return Check("methods", "good" if works else "bad", " ".join(filter(None, said)))


def _files() -> tuple[str, ...]:
    return tuple(Settings.listed(Settings().explainers))


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
