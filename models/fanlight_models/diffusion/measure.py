"""Asking a model about one picture under several conditionings, in steps: preview, stop at an error, break off at any time.

Each step is one forward pass of `chunk` rows, the last padded, so that a row's numbers do not depend on which conditionings are asked
together. To cancel, stop iterating; what was computed stays in the readings, and the next call goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from fanlight_models.diffusion.channel import Sampling, noised
from fanlight_models.diffusion.protocol import Attending, Denoiser, Encoded, rows
from fanlight_models.diffusion.readings import NotFinite, Readings
from fanlight_models.diffusion.words import Conditioning

CHUNK = 16
FEWEST = 16  # nodes before an error is believed: from fewer it may be small by chance, and a target would stop at once
Contrast = tuple[Conditioning, Conditioning]


@dataclass(frozen=True, eq=False)
class Step:
    """done, of: evaluations of this call. error: the largest standard error of a watched contrast's signed total so far, in nats; infinite
    while too little is known. readings: everything so far; its `contrast` is the preview. reached: the target error was."""

    done: int
    of: int
    error: float
    readings: Readings
    reached: bool = False


def start(model: Denoiser, sampling: Sampling) -> Readings:
    """Readings of a picture that nothing was asked about yet."""
    return Readings.empty(sampling, sampling.lawful(model.law, model.logsnr), model.shape)


def measure(
    model: Denoiser,
    x: Tensor,
    conditionings: Sequence[Conditioning],
    readings: Readings,
    *,
    watch: Sequence[Contrast] = (),
    target: float | None = None,
    attend: Conditioning | None = None,
    chunk: int = CHUNK,
    kept: torch.dtype = torch.float32,
) -> Iterator[Step]:
    """Fills `readings` with what is missing of these conditionings; yields after every forward pass.

    Args:
        x: latent (C, h, w), float32 or float64 (the arithmetic of the sums).
        readings: of this x and no other, from `start` or an earlier call: a conditioning that is in it costs nothing.
        watch: contrasts (less, more) whose error is told. target: stop as soon as all of them are known to this, in nats.
        attend: a conditioning whose attention is recorded in the same passes.
        chunk: rows of a pass; halved where the device's memory does not suffice, which changes last digits.
        kept: type that predictions are kept in; half saves memory and costs about 1e-3 of an orthogonal map.
    Errors: ValueError for a latent of another shape or picture, or predictions that are not finite; BadPrompt."""
    if tuple(x.shape) != tuple(readings.shape):
        raise ValueError(
            f"This model's latents are {readings.shape}, not {tuple(x.shape)}; encode the picture with it."
        )
    if chunk < 1:
        raise ValueError(f"A pass has at least one row, not {chunk}.")
    readings.claim(x)
    chosen = sorted(set(conditionings))
    if not chosen:
        raise ValueError("At least one conditioning is measured.")
    encoded = model.encode(chosen)
    for c in chosen:
        readings.open(c.key, x, kept)
    todo = _todo(chosen, readings)
    at, total = 0, len(todo)
    while at < total:
        part = todo[at : at + chunk]
        try:
            _pass(model, x, part, chosen, encoded, readings, chunk, attend)
        except torch.OutOfMemoryError:
            if chunk == 1:
                raise
            chunk = -(-chunk // 2)
            continue
        at += len(part)
        error = _error(readings, watch)
        reached = target is not None and error <= target
        yield Step(at, total, error, readings, reached)
        if reached:
            return
    if total == 0:
        yield Step(0, 0, _error(readings, watch), readings, target is None or _error(readings, watch) <= target)


Row = tuple[int, int, int]  # node, draw, index of the conditioning


def _todo(chosen: Sequence[Conditioning], readings: Readings) -> list[Row]:
    """Node by node, coarse to fine; within a node draw by draw, the conditionings beside each other."""
    draws = readings.sampling.noises
    return [
        (node, draw, i)
        for node in readings.sampling.order()
        for draw in range(draws)
        for i, c in enumerate(chosen)
        if not readings.done[c.key][node]
    ]


def _pass(
    model: Denoiser, x: Tensor, part: list[Row], chosen: Sequence[Conditioning], encoded: Encoded, readings: Readings,
    chunk: int, attend: Conditioning | None,
) -> None:  # fmt: skip
    sampling = readings.sampling
    filled = part + [part[-1]] * (chunk - len(part))
    noise = torch.stack([sampling.noise(node, draw, x.shape, chosen[i].key) for node, draw, i in filled]).to(x)
    alpha = readings.alphas[[node for node, _, _ in filled]]
    z = noised(x.to("cpu"), noise.to("cpu"), alpha.to(x.dtype))
    picked = rows(encoded, torch.tensor([i for _, _, i in filled]))
    z, alpha = z.to(model.device), alpha.to(model.device)
    with torch.inference_mode():
        if attend is None:
            said = model.noise(z, alpha, picked)
        else:
            said, looks = cast(Attending, model).noise_and_attention(z, alpha, picked)
    # Copies outside of inference mode, so that what is stored is ordinary.
    said = said.to("cpu", x.dtype).clone()
    if not bool(torch.isfinite(said).all()):
        raise NotFinite(
            "The network predicted numbers that are not finite; half precision overflows in some networks, use float32."
        )
    squares = ((noise.to("cpu") - said) ** 2).sum(1)  # (chunk, h, w)
    for row, (node, draw, i) in enumerate(part):
        key = chosen[i].key
        if draw == 0:
            readings.energies[key][node] = 0
        readings.energies[key][node] += squares[row] / sampling.noises
        readings.predictions[key][node, draw] = said[row].to(readings.predictions[key].dtype)
        if attend is not None and chosen[i] == attend:
            readings.attention[key] = readings.attention.get(key, 0) + looks[row].to("cpu", torch.float32).clone()
            readings.attended[key] = readings.attended.get(key, 0) + 1
        readings.done[key][node] = draw == sampling.noises - 1
    readings.evaluations += len(part)


def _error(readings: Readings, watch: Sequence[Contrast]) -> float:
    try:
        found = [readings.contrast(*pair, estimator="signed") for pair in watch]
    except ValueError:
        return float("inf")
    return max((e.total_error if e.nodes >= FEWEST else float("inf") for e in found), default=float("inf"))


def finished(
    model: Denoiser, x: Tensor, conditionings: Sequence[Conditioning], sampling: Sampling | None = None, *,
    readings: Readings | None = None, attend: Conditioning | None = None, chunk: int = CHUNK,
) -> Readings:  # fmt: skip
    """`measure` to its end."""
    readings = readings or start(model, sampling or Sampling())
    for _ in measure(model, x, conditionings, readings, attend=attend, chunk=chunk):
        pass
    return readings
