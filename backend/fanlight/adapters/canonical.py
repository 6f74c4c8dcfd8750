"""A network rewritten so that everything in it is a module that a rule of relevance can be hung on; the network itself is
not touched.

Activations and means written as functions become modules, sums of two branches become a module that adds, batch
normalisation is folded into the convolution before it. The copy shares the weights that are not folded.
"""

from __future__ import annotations

import copy
import operator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

CLOSE = 1e-4  # relative, between the logits of both


class Add(nn.Module):
    """(..., 2) -> (...): the sum of two branches."""

    def forward(self, x: Tensor) -> Tensor:
        return x.sum(-1)


class Average(nn.Module):
    """(B, D, h, w) -> (B, D), or (B, D, 1, 1) where the places are kept."""

    def __init__(self, keep: bool):
        super().__init__()
        self.keep = keep

    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3), keepdim=self.keep)


ACTIVATIONS: dict[Any, type[nn.Module]] = {
    **dict.fromkeys((F.relu, torch.relu, torch.relu_, F.relu_, "relu", "relu_"), nn.ReLU),
    **dict.fromkeys((F.relu6,), nn.ReLU6),
    **dict.fromkeys((F.silu,), nn.SiLU),
    **dict.fromkeys((F.hardswish,), nn.Hardswish),
    **dict.fromkeys((F.gelu,), nn.GELU),
    **dict.fromkeys((torch.tanh, "tanh"), nn.Tanh),
}
ACTIVATING = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SiLU, nn.Hardswish, nn.GELU, nn.Tanh)
"""Activations that answer 0 with 0: all relevance of what comes out goes to what went in."""
WEIGHTED = (nn.Conv2d, nn.Linear)
AVERAGING = (nn.AvgPool2d, nn.AdaptiveAvgPool2d, Average)
PASSING = (nn.MaxPool2d, nn.Flatten, nn.Identity, nn.Dropout, nn.Dropout2d, nn.ZeroPad2d)
FUNCTIONS = {
    torch.flatten, torch.reshape, F.dropout, F.max_pool2d, torch.cat, torch.stack, F.pad, operator.getitem, getattr,
}  # fmt: skip
METHODS = {"flatten", "reshape", "view", "contiguous", "size", "clone"}
ADDING = {operator.add, operator.iadd, torch.add, "add", "add_"}


class Unsuitable(Exception):
    """The network holds something that no rule is known for."""


class Tracer(fx.Tracer):
    """Layers with weights are leaves even where they are subclasses with a padding of their own."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        known = isinstance(m, (*WEIGHTED, nn.BatchNorm2d)) and not list(m.children())
        return known or super().is_leaf_module(m, module_qualified_name)


def rewritten(net: nn.Module, size: tuple[int, int]) -> nn.Module:
    """The copy, which answers as the network does. Raises Unsuitable where there is none."""
    own = copy.deepcopy(net, {id(p): p for p in net.parameters()})
    try:
        graph = Tracer().trace(own)
    except Exception as e:
        raise Unsuitable("it cannot be traced") from e
    made = fx.GraphModule(own, graph)
    modules = dict(made.named_modules())
    for number, node in enumerate(list(graph.nodes)):
        _rewrite(made, graph, node, f"rewritten_{number}", modules)
    graph.eliminate_dead_code()
    graph.lint()
    made.recompile()
    _apart(made, graph)
    for module in made.modules():
        if hasattr(module, "inplace"):
            module.inplace = False  # type: ignore[assignment]
    first = next(net.parameters(), torch.empty(0))
    x = torch.randn((1, 3, *size), generator=torch.Generator().manual_seed(0)).to(first)
    with torch.no_grad():
        plain, other = net(x), made(x)
    if plain.isfinite().all() and not (plain - other).abs().max() <= CLOSE * plain.abs().max().clamp_min(1e-12):
        raise Unsuitable("its copy answers differently")
    return made.eval()


def suitable(net: nn.Module, size: tuple[int, int]) -> bool:
    """Whether there is such a copy."""
    try:
        rewritten(net, size)
    except Unsuitable:
        return False
    return True


def _rewrite(made: fx.GraphModule, graph: fx.Graph, node: fx.Node, name: str, modules: dict[str, nn.Module]) -> None:
    if node.op in ("placeholder", "output"):
        return
    if node.op == "call_module":
        module = modules[str(node.target)]
        if isinstance(module, nn.BatchNorm2d):
            _fold(made, node, name, modules)
        elif not isinstance(module, (*WEIGHTED, *ACTIVATING, *AVERAGING, *PASSING)):
            raise Unsuitable(f"it holds a {type(module).__name__}")
        return
    target: Any = node.target
    if node.op == "get_attr":
        raise Unsuitable("it computes with a parameter outside of a layer")
    with graph.inserting_before(node):
        if target in ACTIVATIONS:
            new = _module(made, graph, name, ACTIVATIONS[target](), node.args[:1])
        elif target in ADDING:
            if not all(isinstance(a, fx.Node) for a in node.args[:2]) or node.kwargs:
                raise Unsuitable("it adds a number")
            pair = graph.call_function(torch.stack, (list(node.args[:2]),), {"dim": -1})
            new = _module(made, graph, name, Add(), (pair,))
        elif target in (torch.mean, "mean"):
            dims = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
            keep = bool(node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False))
            if not isinstance(dims, (list, tuple)) or {int(d) % 4 for d in dims} != {2, 3}:
                raise Unsuitable("it takes a mean that is not over places")
            new = _module(made, graph, name, Average(keep), node.args[:1])
        elif target in (F.adaptive_avg_pool2d, F.avg_pool2d):
            kind = nn.AdaptiveAvgPool2d if target is F.adaptive_avg_pool2d else nn.AvgPool2d
            new = _module(made, graph, name, kind(*node.args[1:], **node.kwargs), node.args[:1])  # type: ignore[arg-type]
        elif target in FUNCTIONS or target in METHODS:
            return
        else:
            raise Unsuitable(f"it computes {getattr(target, '__name__', target)}")
    node.replace_all_uses_with(new)
    graph.erase_node(node)


def _module(made: fx.GraphModule, graph: fx.Graph, name: str, module: nn.Module, args: Any) -> fx.Node:
    made.add_submodule(name, module)
    return graph.call_module(name, tuple(args))


def _fold(made: fx.GraphModule, node: fx.Node, name: str, modules: dict[str, nn.Module]) -> None:
    """Batch normalisation goes into the convolution whose only reader it is."""
    before = node.args[0]
    conv = modules.get(str(before.target)) if isinstance(before, fx.Node) and before.op == "call_module" else None
    if not isinstance(conv, nn.Conv2d) or not isinstance(before, fx.Node) or len(before.users) != 1:
        raise Unsuitable("it normalises what does not come from a convolution")
    made.add_submodule(name, fuse_conv_bn_eval(conv, modules[str(node.target)]).requires_grad_(False))  # type: ignore[arg-type]
    before.target = name
    modules[name] = made.get_submodule(name)
    node.replace_all_uses_with(before)
    node.graph.erase_node(node)


def _apart(made: fx.GraphModule, graph: fx.Graph) -> None:
    """A module that is called twice gets a copy of its own for each call."""
    seen: set[str] = set()
    for number, node in enumerate(graph.nodes):
        if node.op == "call_module":
            if node.target in seen:
                again = copy.copy(made.get_submodule(node.target))
                made.add_submodule(f"again_{number}", again)
                node.target = f"again_{number}"
            seen.add(str(node.target))
    made.recompile()
