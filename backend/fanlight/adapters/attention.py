"""Reading attention from any network: while a `Tap` is open, attention is computed step by step and its rows are kept.

Fused kernels (`scaled_dot_product_attention`, `nn.MultiheadAttention`) do not give their rows away, so that the tap
computes softmax(Q K' / sqrt d) and multiplies V itself; attention that is written out in the network (softmax, then a
product) is only watched. The rows are part of the graph: the logits can be differentiated with respect to them.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

SOFTMAX = {F.softmax, torch.softmax, Tensor.softmax}
SAME = {F.dropout, torch.dropout, Tensor.to, Tensor.type_as, Tensor.contiguous}
PRODUCT = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm}
MULTI_HEAD = inspect.signature(F.multi_head_attention_forward)


class Tap(TorchFunctionMode):
    """Keeps the rows of attention of everything that runs inside it.

    >>> with Tap() as tap:
    ...     logits = net(x)
    >>> tap.rows  # a list of (B, heads, N, N), in the order of computation

    Attributes:
        rows: of each self-attention, every row summing to 1. Attention of other shapes (pooling by a query, cross
            attention) runs as it is and is not kept.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Tensor] = []
        self._softmax: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        given = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self._attend(*args, **given)
        if func is F.multi_head_attention_forward:
            return self._multi_head(func, *args, **given)
        out = func(*args, **given)
        if func in SOFTMAX and _square(out):
            self._softmax[id(out)] = (out, out)  # kept alive, lest another tensor get its id
        elif func in SAME and args and id(args[0]) in self._softmax and out.shape == args[0].shape:
            self._softmax[id(out)] = (out, self._softmax[id(args[0])][1])
        elif func in PRODUCT and args and id(args[0]) in self._softmax:
            self.rows.append(self._softmax[id(args[0])][1])
        return out

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """What `scaled_dot_product_attention` computes: (..., N, d), (..., M, d), (..., M, e) -> (..., N, e)."""
        key, value = shared(query, key, value) if enable_gqa else (key, value)
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        rows = masked(scores, attn_mask, is_causal).softmax(-1)
        if _square(rows):
            self.rows.append(rows)
        return F.dropout(rows, dropout_p) @ value if dropout_p else rows @ value

    def _multi_head(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What `nn.MultiheadAttention` computes of (N, B, E), for plain self-attention; anything else runs as it is."""
        bound = MULTI_HEAD.bind(*args, **kwargs)
        bound.apply_defaults()
        a = bound.arguments
        plain = all(a[n] is None for n in ("bias_k", "bias_v", "static_k", "static_v", "key_padding_mask", "attn_mask"))
        plain &= not (a["add_zero_attn"] or a["is_causal"] or a["use_separate_proj_weight"])
        plain &= not (a["training"] and a["dropout_p"]) and a["query"].ndim == 3
        if not plain or a["query"] is not a["key"] or a["key"] is not a["value"]:
            return func(*args, **kwargs)
        x, heads = a["query"], a["num_heads"]
        mapped = F.linear(x, a["in_proj_weight"], a["in_proj_bias"])
        split = mapped.reshape(*x.shape[:2], 3, heads, -1)  # (N, B, 3, heads, d)
        query, key, value = split.permute(2, 1, 3, 0, 4)  # (B, heads, N, d) each
        mixed = self._attend(query, key, value).permute(2, 0, 1, 3).flatten(2)  # (N, B, E)
        out = F.linear(mixed, a["out_proj_weight"], a["out_proj_bias"])
        if not a["need_weights"]:
            return out, None
        return out, self.rows[-1].mean(1) if a["average_attn_weights"] else self.rows[-1]


def shared(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values that several heads of the queries share, repeated for each of them."""
    times = query.shape[-3] // key.shape[-3]
    return key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)


def masked(scores: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Scores (..., N, M) of which those that are hidden are minus infinity, or that the mask is added to."""
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is None:
        return scores
    return scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask


def _square(rows: object) -> bool:
    return isinstance(rows, Tensor) and rows.ndim == 4 and rows.shape[-1] == rows.shape[-2]
