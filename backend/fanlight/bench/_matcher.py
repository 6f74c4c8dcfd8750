"""One training step of the matcher of prototypes, ours or with every copy of the similarities, in a process of its own.

`python -m fanlight.bench._matcher SIDE BATCH PROTOTYPES` prints seconds and MB (10^6 bytes) beyond what the inputs take, as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from fanlight.errors import FanlightError

if TYPE_CHECKING:
    from torch import Tensor

WIDTH, GRID, PARTS = 192, (14, 14), 4  # a DeiT-Tiny at 224 px


def measured(side: str, batch: int, prototypes: int, threads: int) -> dict[str, float]:
    """{"seconds", "mb"}; a fresh process, so that neither side profits from memory that the other has taken."""
    command = [sys.executable, "-m", "fanlight.bench._matcher", side, str(batch), str(prototypes), str(threads)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise FanlightError(f"The step by {side} failed: {run.stderr.strip()[-300:]}", code="job_failed")
    found: dict[str, float] = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def ours(z: Tensor, parts: Tensor, near: Tensor) -> Tensor:
    """(B, m): sums of the matched similarities."""
    from fanlight_models.prototypes import matching

    return matching.matched(z, parts, matching.match(z, parts, near).token).sum(-1)


def naive(z: Tensor, parts: Tensor, near: Tensor) -> Tensor:
    """The same with all similarities at once, (B, m, K, N), masks as large as these, and gradients through them."""
    import torch

    similarity = torch.einsum("bnd,mkd->bmkn", z, parts)
    taken = torch.zeros_like(similarity)
    window = torch.zeros_like(similarity)
    batch, count, size, tokens = similarity.shape
    found = []
    for _ in range(size):
        masked = similarity.detach() - 1e5 * taken - 1e5 * window
        best, where = masked.max(3)
        part = best.argmax(2, keepdim=True)  # (B, m, 1)
        token = where.gather(2, part)  # (B, m, 1)
        at = token[..., None].expand(batch, count, size, 1)
        found.append(similarity.gather(3, at).gather(2, part[..., None])[..., 0, 0])
        taken = taken.scatter(3, at, 1.0).scatter(2, part[..., None].expand(batch, count, 1, tokens), 1.0)
        window = (~near[token[..., 0]]).to(similarity)[:, :, None].expand_as(similarity).clone()
    return torch.stack(found, -1).sum(-1)


SIDES = {"ours": ours, "naive": naive}


def main(side: str, batch: str, prototypes: str, threads: str) -> None:
    import torch
    import torch.nn.functional as F

    from fanlight.doctor.costs import Peak
    from fanlight_models.prototypes import matching

    torch.set_num_threads(int(threads))
    torch.manual_seed(0)
    near = matching.neighbours(GRID, 1)
    tokens = torch.randn(int(batch), GRID[0] * GRID[1], WIDTH, requires_grad=True)
    vectors = torch.randn(int(prototypes), PARTS, WIDTH, requires_grad=True)
    small = torch.randn(2, GRID[0] * GRID[1], WIDTH)
    # the first step loads what later ones have; it is a small one
    one, two = (f(F.normalize(small, dim=-1), F.normalize(vectors[:8], dim=-1), near) for f in (ours, naive))
    if not torch.allclose(one, two, atol=1e-5):
        raise SystemExit("The two sides do not agree.")
    peak = Peak(torch.device("cpu"))
    began = time.perf_counter()
    total = SIDES[side](F.normalize(tokens, dim=-1), F.normalize(vectors, dim=-1), near).sum()
    torch.autograd.backward(total)
    took = time.perf_counter() - began
    mib = peak.mib()
    if mib is None:
        raise SystemExit("The system does not tell the peak of memory.")
    sys.stdout.write(json.dumps({"seconds": took, "mb": mib * 2**20 / 1e6}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:5])
