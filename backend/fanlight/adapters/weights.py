"""Weights of a safetensors file, checked before and after a library reads them, and put into a network they fit."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fanlight.artifact import MAX_HEADER
from fanlight.errors import BadRequest

if TYPE_CHECKING:
    from torch import Tensor, nn

BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


class BadWeights(BadRequest):
    code = "bad_weights"


def read(file: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file, finite; BadWeights with a sentence where it is none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not file.is_file():
        raise BadWeights(f"There is no file “{file}”.", given=str(file), hint="Name a .safetensors file.")
    check_header(file)
    try:
        tensors = load_file(file)
    except SafetensorError as e:
        raise BadWeights(f"{file.name} cannot be read: {e}.") from e
    for key, value in tensors.items():
        if value.is_floating_point() and not value.isfinite().all():
            raise BadWeights(f"The tensor {key} of {file.name} holds values that are not finite.")
    return tensors


def network(make: Callable[[int | None], nn.Module], tensors: Mapping[str, Tensor], name: str) -> nn.Module:
    """The network with these weights. Its number of outputs is theirs.

    Args:
        make: number of outputs (None: as published) -> a network with random weights.
        name: of the architecture, for sentences.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        net = make(None)
        expected = net.state_dict()
        differing = {
            (len(expected[k]), len(v))
            for k, v in tensors.items()
            if k in expected and v.ndim and expected[k].ndim == v.ndim and expected[k].shape != v.shape
            and expected[k].shape[1:] == v.shape[1:]
        }  # fmt: skip
        if len(differing) == 1:  # one more or less of something, in every tensor that differs: its classes
            net = make(next(iter(differing))[1])
    expected = net.state_dict()
    lacking, strange = sorted(set(expected) - set(tensors)), sorted(set(tensors) - set(expected))
    if lacking or strange:
        raise BadWeights(
            f"The weights are not those of {name}: {len(lacking)} tensors are missing and {len(strange)} unknown.",
            given=strange[:5],
            allowed=lacking[:5],
        )
    for key, value in tensors.items():
        if value.shape != expected[key].shape:
            raise BadWeights(
                f"The weights are not those of {name}: {key} has the shape {list(value.shape)}; "
                f"{list(expected[key].shape)} is expected."
            )
    net.load_state_dict(dict(tensors))
    return net


def check_header(file: Path) -> None:
    """Refuses a safetensors file whose header is huge or does not add up to the size of the file, before any library
    parses it."""
    size = file.stat().st_size
    with file.open("rb") as f:
        start = f.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise BadWeights(
                f"{file.name} is no safetensors file: its header claims {length} bytes (allowed: up to {MAX_HEADER}).",
                given=length,
            )
        try:
            header = json.loads(f.read(length))
            tensors = [v for k, v in header.items() if k != "__metadata__"]
            ends = sorted((int(v["data_offsets"][0]), int(v["data_offsets"][1])) for v in tensors)
            claimed = sum(_volume(v["shape"]) * BYTES[v["dtype"]] for v in tensors)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as e:
            raise BadWeights(f"The header of {file.name} cannot be understood: {type(e).__name__} {e}.") from e
    data = size - 8 - length
    whole = [0, *(end for _, end in ends)] == [*(begin for begin, _ in ends), data]
    if not whole or claimed != data:
        raise BadWeights(
            f"{file.name} holds {data} bytes of tensors where its header says {claimed}; it is damaged or cut short.",
            given=data,
            allowed=claimed,
        )


def _volume(shape: list[int]) -> int:
    total = 1
    for n in shape:
        if n < 0:
            raise ValueError(f"negative size {n}")
        total *= int(n)
    return total
