"""What the further checks are made of, for tests: a small model, a picture, a method and its stored map."""

from __future__ import annotations

from typing import Any

from fanlight.explainers.base import Explainer
from fanlight.quality.again import MAP, Subject
from support.explaining import Context, explained, item


def subject(model: Any, explainer: type[Explainer], one: Any = None, **params: Any) -> Subject:
    one = one or item(model)
    artifacts = explained(explainer, model, one, **params)
    return Subject(
        model=model,
        network=model,
        asked=lambda copied: copied,
        item=one,
        explainer=explainer,
        params=explainer.Params(**params),
        artifact=next(a for a in artifacts if a.kind == MAP),
        ctx=Context(),
    )
