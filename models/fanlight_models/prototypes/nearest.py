"""Global analysis: the training pictures that each prototype is most active on, and which prototypes are alive (ProtoViT, section 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor

from fanlight_models.prototypes.bundle import Nearest
from fanlight_models.prototypes.projection import Batches
from fanlight_models.prototypes.protovit import ProtoViT


def nearest(model: ProtoViT, batches: Batches, count: int = 10) -> tuple[Nearest, Tensor]:
    """The `count` training pictures of each prototype by gated activation, of any class, and how many pictures have it among their
    per_class most active ones, (m,): a prototype with 0 is dead."""
    head = model.head
    m, parts = head.patch_select.shape[1:]
    value = torch.full((m, count), float("-inf"))
    image = torch.full((m, count), -1)
    token = torch.zeros(m, count, parts, dtype=torch.int64)
    used = torch.zeros(m, dtype=torch.int64)
    seen = 0
    model.eval()
    with torch.inference_mode():
        for x, _ in batches():
            found = model(x)
            active = found.activation  # (B, m)
            top = active.topk(min(head.per_class, m), 1).indices
            used += torch.bincount(top.reshape(-1), minlength=m)
            all_value = torch.cat([value, active.T], 1)
            all_image = torch.cat([image, (seen + torch.arange(len(x))).expand(m, -1)], 1)
            all_token = torch.cat([token, found.token.transpose(0, 1)], 1)
            value, at = all_value.topk(count, 1)
            image = all_image.gather(1, at)
            token = all_token.gather(1, at[:, :, None].expand(-1, -1, parts))
            seen += len(x)
    return Nearest(image, value.where(image >= 0, torch.zeros(())), token), used
