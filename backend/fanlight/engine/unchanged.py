"""Whether a model is after a run as it was before: nothing that it returned could be trusted otherwise."""

from __future__ import annotations

from typing import Any


def state(net: Any) -> tuple[bool, int, int]:
    """(training anywhere?, in-place changes of parameters and buffers so far, hooks): must be the same after a run as before."""
    tensors = (*net.parameters(), *net.buffers())
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks) for m in net.modules())
    return any(m.training for m in net.modules()), sum(t._version for t in tensors if not t.is_inference()), hooks


def changed(before: tuple[bool, int, int], after: tuple[bool, int, int]) -> tuple[str]:
    what = (
        "switched to training mode"
        if before[0] != after[0]
        else "changed its weights"
        if before[1] != after[1]
        else "left hooks behind"
    )
    return (f"The model {what} while it was explained, so nothing it returned can be trusted; the result was dropped.",)
