"""What a network is made of, found by running it once: some methods hold only where all of it is of a few known kinds.

Functions are watched, not only modules, so that an activation written as a function is seen too.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

# what keeps sums: linear in the one operand that depends on the picture
LINEAR = {
    F.conv2d, torch.conv2d, F.linear, F.pad, F.avg_pool2d, F.adaptive_avg_pool2d, F.batch_norm, torch.batch_norm,
    F.dropout, F.dropout2d, torch.dropout, torch.flatten, torch.reshape, torch.mean, torch.sum, torch.permute,
    torch.transpose, torch.squeeze, torch.unsqueeze, torch.clone,
    Tensor.flatten, Tensor.reshape, Tensor.view, Tensor.mean, Tensor.sum, Tensor.permute, Tensor.transpose,
    Tensor.contiguous, Tensor.squeeze, Tensor.unsqueeze, Tensor.clone, Tensor.to, Tensor.float, Tensor.__getitem__,
    Tensor.__neg__, Tensor.neg, torch.neg, torch.chunk, Tensor.chunk, torch.split, Tensor.split,
}  # fmt: skip
SUMS = {
    torch.add, Tensor.add, Tensor.add_, Tensor.__add__, Tensor.__radd__, Tensor.__iadd__, operator.add, operator.iadd,
    torch.sub, Tensor.sub, Tensor.__sub__, Tensor.__rsub__, torch.cat, torch.stack,
}  # fmt: skip
PRODUCTS = {
    torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__, torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.einsum,
    torch.div, Tensor.div, Tensor.__truediv__,
}  # fmt: skip
RECTIFIERS = {
    F.relu, F.relu_, torch.relu, torch.relu_, Tensor.relu, Tensor.relu_, F.relu6, F.hardtanh, F.hardtanh_,
    torch.clamp, Tensor.clamp, torch.clamp_min, Tensor.clamp_min,
}  # fmt: skip
RESCALED = (nn.ReLU, nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Softplus)


class Structure(NamedTuple):
    """What was found.

    Args:
        rectifiers: it rectifies somewhere.
        rescale: everything in it is linear, or an activation of `RESCALED` or a max-pooling without overlap, a module of
            its own that runs once, on a tensor that no other activation reads or made.
    """

    rectifiers: bool
    rescale: bool


class Watch(TorchFunctionMode):
    """Notes rectifiers, and whether a function outside of the known modules is anything but linear."""

    def __init__(self) -> None:
        super().__init__()
        self.inside = 0
        self.rectifiers = False
        self.linear = True

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        given = kwargs or {}
        self.rectifiers |= func in RECTIFIERS
        out = func(*args, **given)
        if not self.inside and isinstance(out, (Tensor, tuple)) and (depending := _depending(args, given)):
            self.linear &= func in LINEAR or func in SUMS or (func in PRODUCTS and depending == 1 and _kept(func, args))
        return out


def look(net: nn.Module, size: tuple[int, int]) -> Structure:
    """Runs a frozen network in eval mode once. Errors of the network pass through."""
    first = next(net.parameters(), torch.empty(0))
    x = torch.randn((1, 3, *size), generator=torch.Generator().manual_seed(0)).to(first).requires_grad_()
    runs: list[nn.Module] = []
    read: list[Tensor] = []  # what activations read, and what those made that are no pooling; kept, lest ids come again
    made: list[Tensor] = []
    apart = True

    def enter(module: nn.Module, inputs: tuple[Any, ...]) -> None:
        nonlocal apart
        watch.inside += 1
        runs.append(module)
        given = inputs[0]
        pooling = isinstance(module, nn.MaxPool2d)
        apart &= not any(given is t for t in read) and (pooling or not any(given is t for t in made))
        read.append(given)

    def leave(_module: nn.Module, _inputs: tuple[Any, ...], output: Any) -> None:
        watch.inside -= 1
        made.append(output)

    watch = Watch()
    handles = []
    for module in net.modules():
        if type(module) in RESCALED or _pools_apart(module):
            handles += [module.register_forward_pre_hook(enter), module.register_forward_hook(leave)]
    try:
        with torch.enable_grad(), watch:
            net(x)
    finally:
        for handle in handles:
            handle.remove()
    once = len({id(m) for m in runs}) == len(runs)
    return Structure(watch.rectifiers, watch.linear and once and apart)


def _pools_apart(module: nn.Module) -> bool:
    """Max-pooling whose windows do not overlap. (Captum 0.9 misses the sum by most of it where they do.)"""
    if type(module) is not nn.MaxPool2d:
        return False
    return (module.kernel_size, module.padding, module.dilation) == (module.stride, 0, 1) and not module.ceil_mode


def _depending(args: Sequence[Any], given: dict[str, Any]) -> int:
    """How many operands depend on the picture."""
    flat = [a for x in (*args, *given.values()) for a in (x if isinstance(x, (list, tuple)) else (x,))]
    return sum(isinstance(a, Tensor) and a.requires_grad for a in flat)


def _kept(func: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Not a division by what depends on the picture."""
    divides = func in (torch.div, Tensor.div, Tensor.__truediv__)
    return not divides or not (isinstance(args[1], Tensor) and args[1].requires_grad)


def held(net: nn.Module, size: tuple[int, int]) -> int:
    """Bytes that the forward pass of one picture of `size` = (H, W) holds for the way back, weights not counted."""
    own = {t.untyped_storage().data_ptr() for t in (*net.parameters(), *net.buffers())}
    found: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        place = tensor.untyped_storage()
        if place.data_ptr() not in own:
            found[place.data_ptr()] = place.nbytes()
        return tensor

    x = torch.zeros(1, 3, *size, device=next(net.parameters(), torch.empty(0)).device).requires_grad_()
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        out = net(x)
    del out  # until here nothing was freed, so that no place was counted twice
    return sum(found.values())
