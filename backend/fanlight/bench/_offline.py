"""The same explainer without a server: one process, one loop, as fast as this machine computes it."""

from __future__ import annotations

import io
import itertools
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from fanlight.bench import _pictures
from fanlight.bundles import DEFAULT, folder

SIZES = (1, 2, 4, 8, 16)
"""Pictures per pass that are tried; the fastest is what the server is compared with."""


class Rate(NamedTuple):
    """Args: rate: maps per second; cpu: milliseconds of processor time per map."""

    rate: float
    cpu: float


class Offline:
    """Gradient maps in this process.

    Args:
        threads: of torch, as many as the server's worker has.
    """

    def __init__(self, threads: int):
        from fanlight.engine.local import PATIENT

        os.environ.update(PATIENT)  # as in the server's worker; read when torch is first imported
        import torch

        from fanlight.adapters import loader
        from fanlight.explainers.attribution.saliency import Saliency

        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model: Any = loader.load(loader.source(folder() / DEFAULT), self.device)
        self.explainer = Saliency()
        self.params = Saliency.Params()

    def items(self, blobs: Sequence[bytes]) -> list[Any]:
        """Decoded, cut, scaled and predicted: everything that the server does before it explains pictures it has not seen."""
        import torch

        from fanlight.explainers.base import Item, Target
        from fanlight.images import load

        pixels = [load(blob) for blob in blobs]
        boxes = [self.model.view(p.shape[1], p.shape[0]) for p in pixels]
        shown = [self.model.pixels(p) for p in pixels]
        x = [self.model.prepare(p) for p in pixels]
        with torch.inference_mode():
            logits = self.model.logits(torch.stack(x)).float().cpu()
        rows = zip(x, shown, boxes, logits, strict=True)
        return [Item(a, image, Target(int(row.argmax())), row, 0, box, "") for a, image, box, row in rows]

    def explain(self, items: Sequence[Any]) -> None:
        """One pass over all of them."""
        from fanlight.explainers.evaluate import gradient_rows

        lents = (Lent(self.device, chunk) for chunk in itertools.count(len(items)))
        lent = next(lent for lent in lents if gradient_rows(lent) == len(items))
        for _ in self.explainer.run(self.model, items, self.params, lent):
            pass

    def from_items(self, size: int, seconds: float) -> Rate:
        """Prepared pictures, `size` at a time."""
        turns = itertools.cycle(self.items(canonical(size)))
        return _rate(lambda: self.explain(list(itertools.islice(turns, size))), size, seconds)

    def from_blobs(self, size: int, seconds: float) -> Rate:
        """Stored pictures: decoding, preparation and prediction included."""
        turns = itertools.cycle(canonical(2 * size))
        return _rate(lambda: self.explain(self.items(list(itertools.islice(turns, size)))), size, seconds)


class Lent:
    """What a run is lent; nothing is reused between two runs."""

    def __init__(self, device: Any, chunk: int):
        self.device, self.chunk = device, chunk

    def reuse(self, _key: Any, compute: Callable[[], Any]) -> Any:
        return compute()

    def remember(self, _key: Any, _value: Any) -> None:
        return None

    def recall(self, _key: Any) -> None:
        return None


def canonical(count: int) -> list[bytes]:
    """Pictures as the server keeps them."""
    from fanlight.images import encode

    return [
        encode(np.asarray(Image.open(io.BytesIO(blob))))
        for _, blob in itertools.islice(_pictures.photographs(seed=4), count)
    ]


def fastest(measure: Callable[[int, float], Rate], seconds: float) -> tuple[int, dict[int, float]]:
    """The best of SIZES, and maps per second at each."""
    rates = {size: measure(size, seconds).rate for size in SIZES}
    return max(rates, key=lambda size: rates[size]), rates


def _rate(act: Callable[[], None], size: int, seconds: float) -> Rate:
    act()  # the first pass plans the kernels
    begin, before = time.perf_counter(), time.process_time()
    passes = 0
    while (took := time.perf_counter() - begin) < seconds:
        act()
        passes += 1
    return Rate(passes * size / took, 1000 * (time.process_time() - before) / (passes * size))
