"""What a network has to offer, found by running it: where its grid of features is, whether its attention can be read,
and where its embedding is. One rule for all architectures; docs/decisions/0008 says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from fanlight.adapters.attention import Tap
from fanlight.adapters.tokens import Grid, as_grid, grid_of, read_grid

CLOSE = 1e-4  # relative, between logits with and without the tap
CANDIDATES = 8


class Run(NamedTuple):
    """One run of one module: its name, what came out, and how much attention had been computed before it ended."""

    name: str
    module: nn.Module
    inputs: tuple[object, ...]
    output: object
    layers: int


class Survey(NamedTuple):
    """What was found.

    Args:
        tokens: prefix and grid of its attention; None where its attention is not offered.
        embedding: name of the linear layer that makes the logits from (B, D), the embedding; None where there is none.
        features: name of the module whose grid of features Grad-CAM should read; None where there is none, or it was
            not looked for. In a vision transformer the input norm of the last attention: behind it, a class token gets
            nothing more from the places of the picture, and their gradients are zero. Elsewhere the last grid that
            the logits depend on.
    """

    tokens: Grid | None
    embedding: str | None
    features: str | None = None


def look(net: nn.Module, size: tuple[int, int], *, prefix: int | None = None, features: bool = False) -> Survey:
    """Surveys a frozen network in eval mode. Errors of the network pass through."""
    runs, logits = _observed(net, _noise(net, size))
    tokens, before = _attention(net, size, prefix, logits)
    site = None
    if features:
        names = [r.name for r in runs]
        fitting = [r.name for r in reversed(runs) if names.count(r.name) == 1 and _usable(r, size, prefix)]
        if before in fitting:
            site = before
        else:
            site = next((n for n in fitting[:CANDIDATES] if _matters(net, n, size, prefix)), None)
    return Survey(tokens, _embedding(runs, logits), site)


def _attention(
    net: nn.Module, size: tuple[int, int], prefix: int | None, plain: Tensor
) -> tuple[Grid | None, str | None]:
    """The grid of the attention, if every layer's rows are over the same tokens, these are a grid, and the logits
    depend on all of them; and the norm that ran last before the last of them. `plain`: the logits without the tap."""
    try:
        with Tap() as tap:
            runs, tapped = _observed(net, _noise(net, size).requires_grad_(), tap)
    except Exception:  # what runs without the tap and not with it does not offer its attention
        return None, None
    shapes = {tuple(a.shape) for a in tap.rows}
    alike = len({(batch, tokens) for batch, _, tokens, _ in shapes}) == 1 and next(iter(shapes))[0] == 1
    place = grid_of(next(iter(shapes))[-1], size, prefix) if alike else None
    off = (plain - tapped).abs().max() / plain.abs().max().clamp_min(1e-12)
    if place is None or not off <= CLOSE or not tapped.requires_grad:
        return None, None
    slopes = torch.autograd.grad((tapped * _weights(tapped)).sum(), tap.rows, allow_unused=True)
    if any(s is None for s in slopes):
        return None, None
    norms = [r.name for r in runs if r.layers < len(tap.rows) and _norm(r.module) and _tokens(r.output)]
    return place, norms[-1] if norms else None


def _embedding(runs: list[Run], logits: Tensor) -> str | None:
    for run in reversed(runs):
        if isinstance(run.module, nn.Linear) and isinstance(run.output, Tensor):
            x = run.inputs[0]
            last = run.output.shape == logits.shape and torch.equal(run.output, logits)
            return run.name if last and isinstance(x, Tensor) and x.ndim == 2 else None
    return None


def _observed(net: nn.Module, x: Tensor, tap: Tap | None = None) -> tuple[list[Run], Tensor]:
    """Every run of every named module, in the order of their ends, and the logits."""
    runs: list[Run] = []

    def watch(name: str, module: nn.Module) -> Iterator[torch.utils.hooks.RemovableHandle]:
        def hook(_module: nn.Module, inputs: tuple[object, ...], output: object) -> None:
            runs.append(Run(name, module, inputs, output, len(tap.rows) if tap else 0))

        yield module.register_forward_hook(hook)

    handles = [h for name, module in net.named_modules() if name for h in watch(name, module)]
    try:
        with torch.set_grad_enabled(tap is not None):
            return runs, net(x)
    finally:
        for handle in handles:
            handle.remove()


def _usable(run: Run, size: tuple[int, int], prefix: int | None) -> bool:
    """Whether a run's output is a grid of several cells. Of tokens only norms are taken: they end a block."""
    if not isinstance(run.output, Tensor) or (run.output.ndim == 3 and not _norm(run.module)):
        return False
    made = as_grid(run.output, size, prefix)
    return made is not None and made[0].shape[2] * made[0].shape[3] > 1


def _matters(net: nn.Module, name: str, size: tuple[int, int], prefix: int | None) -> bool:
    """Whether the logits depend on the places of the grid there."""
    found: list[Tensor | None] = []
    handle = read_grid(net.get_submodule(name), size, prefix, found)
    try:
        with torch.enable_grad():
            logits = net(_noise(net, size).requires_grad_())
            if len(found) != 1 or found[0] is None or not logits.requires_grad or not found[0].requires_grad:
                return False
            (slope,) = torch.autograd.grad((logits * _weights(logits)).sum(), found[0], allow_unused=True)
    finally:
        handle.remove()
    return slope is not None and bool(slope.any())


def _noise(net: nn.Module, size: tuple[int, int]) -> Tensor:
    first = next(net.parameters(), torch.empty(0))
    return torch.randn((1, 3, *size), generator=torch.Generator().manual_seed(0)).to(first)


def _weights(logits: Tensor) -> Tensor:
    """Different weights of the logits, so that sums that are constant by construction hide nothing."""
    return torch.randn(logits.shape, generator=torch.Generator().manual_seed(1)).to(logits)


def _norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower()


def _tokens(output: object) -> bool:
    return isinstance(output, Tensor) and output.ndim == 3
