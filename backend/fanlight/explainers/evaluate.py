"""Asking the model in chunks: the one place where explainers and trust turn many pictures into many logits or
gradients.

A chunk is short enough to be a step (progress, cancellation), and all chunks of one evaluation have the same shape,
the last padded, so that the same request gives the same bytes. The shape is the one that wastes least on padding; an
evaluation smaller than a chunk is padded to a power of two, so that a single picture costs what a single picture costs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from fanlight.artifact import Artifact
from fanlight.explainers.base import Context, Step, Target

if TYPE_CHECKING:
    from torch import Tensor

    from fanlight.adapters.base import ImageClassifier

T = TypeVar("T")
PASS = 0.25
"""What a pass costs beside its rows, in rows: a little padding is cheaper than further passes."""
HELD = 80_000_000
"""Bytes held for the way back in one pass of a series of gradients."""


def chunks(total: int, limit: int) -> Iterator[tuple[int, int, int]]:
    """(start, stop, rows) of each pass over `total` pictures: rows start..stop-1 are wanted, `rows` are computed, at most
    `limit` and more than half of it where there are as many."""
    most = max(limit, 1)
    if total <= most:
        rows = min(most, 1 << max(total - 1, 0).bit_length())
    else:
        rows = min(range(most // 2 + 1, most + 1), key=lambda n: (-(-total // n) * (n + PASS), -n))
    for start in range(0, total, rows):
        yield start, min(start + rows, total), rows


def gradient_rows(ctx: Context, items: int = 1) -> int:
    """Rows of a pass with gradients, which keeps every activation: a quarter of a chunk, which keeps the peak of memory low; a whole
    one where the maps of several people are made in one, for throughput (docs/decisions/0003)."""
    return max(1, ctx.chunk // 4) if items == 1 else ctx.chunk


def series_rows(model: ImageClassifier, ctx: Context) -> int:
    """Rows of a pass with gradients in a long series of them about one picture: as many as keep what is held for the way back
    within HELD, at most a chunk and at least a quarter of one. A network of small activations is asked in larger passes, which cost
    less per picture."""
    return min(max(HELD // max(model.held, 1), gradient_rows(ctx)), ctx.chunk)


def padded(x: Tensor, rows: int) -> Tensor:
    """(B, ...) -> (rows, ...), the last picture repeated."""
    import torch

    return x if len(x) == rows else torch.cat([x, x[-1:].expand(rows - len(x), *x.shape[1:])])


def logits(
    model: ImageClassifier,
    picture: Callable[[int, int], Tensor],
    total: int,
    ctx: Context,
    span: tuple[float, float] = (0.0, 1.0),
    message: str = "",
    preview: Callable[[Tensor], Artifact] | None = None,
    limit: int | None = None,
) -> Generator[Step, None, Tensor]:
    """All logits of `total` pictures, without gradients: (total, K) float32 on the CPU.

    Args:
        picture: (start, stop) -> (stop - start, 3, H, W); called chunk by chunk, so that never all of them exist at
            once.
        span: the part of the progress bar that this evaluation fills.
        preview: what to show of the logits of the first pictures, (n, K), while the others are asked about.
        limit: rows of a pass, where making the pictures takes so long that a whole chunk would be no step.
    """
    import torch

    found: list[Tensor] = []
    for start, stop, rows in chunks(total, limit or ctx.chunk):
        with torch.inference_mode():
            found.append(model.logits(padded(picture(start, stop), rows))[: stop - start].float().cpu())
        seen = None if preview is None else functools.partial(lambda n: preview(torch.cat(found[:n])), len(found))
        yield Step(span[0] + (span[1] - span[0]) * stop / total, message, seen)
    return torch.cat(found)


def gradient(model: ImageClassifier, x: Tensor, targets: Sequence[Target], rows: int) -> Tensor:
    """Gradient of each picture's own target with respect to the picture, (B, 3, H, W), in one pass of `rows` pictures."""
    import torch

    with torch.enable_grad():
        inputs = padded(x, rows).clone().requires_grad_()
        out = model.logits(inputs)
        total = torch.cat([t.value(out[i : i + 1]) for i, t in enumerate(targets)]).sum()
        (grads,) = torch.autograd.grad(total, inputs)
    return grads[: len(targets)]


def composite(x: Tensor, baseline: Tensor, kept: Tensor) -> Tensor:
    """x where `kept` (M, H, W) is True, the baseline elsewhere: (M, 3, H, W)."""
    import torch

    return torch.where(kept[:, None], x, baseline)


def once(key: Hashable, ctx: Context, compute: Callable[[], Generator[Step, None, T]]) -> Generator[Step, None, T]:
    """What `compute` returns, or what it returned for the same key before."""
    found: T | None = ctx.recall(key)
    if found is None:
        found = yield from compute()
        ctx.remember(key, found)
    return found
