"""The garbage collector of a process of our own.

Once the libraries are imported there are some hundred thousand objects, and a full collection looks at all of them: every thread stands still for a
fifth of a second, in the middle of somebody's answer. What was imported stays until the end, so it is not looked at (`gc.freeze`). Models may be
among it: they are no cycles, so that they go when the last one that uses them does (tests/engine/test_engine_collector.py).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_ours = False


def begin() -> None:
    """At the start of a process: nothing is collected while it imports."""
    global _ours
    _ours = True
    gc.disable()


def settle() -> None:
    """Much was imported just now. In a process that is not ours it does nothing, as all here."""
    if _ours:
        gc.freeze()
        gc.enable()


@contextmanager
def loading() -> Iterator[None]:
    """Of what is imported to load a model, or loaded."""
    if _ours:
        gc.disable()
    try:
        yield
    finally:
        settle()
