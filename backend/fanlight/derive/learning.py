"""Teaching a model: prototypes that forget what they look at, and a further class. Everything that is not named stays, to the last bit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fanlight import __version__
from fanlight.adapters import loader
from fanlight.adapters.prototype_classifier import TorchPrototypeClassifier
from fanlight.derive.base import Array, Data, Progress, figures
from fanlight.derive.looking import Seen, looked, opened, origin_of
from fanlight.derive.naming import begun, listed, made_before, prototypes
from fanlight.drawing.number import percent
from fanlight.drawing.trial import points
from fanlight.errors import InvalidField
from fanlight.service.sweeps import plain
from fanlight.service.sweeps_figures import portion
from fanlight_models.prototypes import derived, relearn
from fanlight_models.prototypes.bundle import Nearest, build, config
from fanlight_models.prototypes.protovit import ProtoViT

NEAREST, SHOWN = 10, 3
LEAST = 4
"""Pictures of a class: half are learnt from, half are measured on."""


def forget(
    bundle: Path, which: Sequence[int], data: Data, into: Path, tell: Progress = lambda *_: None, job: str = ""
) -> dict[str, Any]:
    """Writes a model whose prototypes `which` were learnt anew, away from the patches that they were made of.

    Of each class every other picture is learnt from, the others are measured on. Returns the story, as `removal.remove` does.
    Errors: InvalidField, BadRequest.
    """
    model = opened(bundle)
    which = prototypes(which, len(model.own))
    change = {"forget": which}
    name, folder = begun(bundle, model.name, change, into, job)
    if folder.exists():
        return made_before(folder, name)
    origin = origin_of(model)
    seen = looked(model, data, model.classes, tell, tokens=True)
    learns, measured = halves(seen.labels)
    own = model.own
    for c in sorted({int(own[j]) for j in which}):
        _enough(seen, c, model.classes[c], data)
    before = seen.activation @ model.weight.T
    head = model.prototypes.head
    tell(0.75, "learning")
    every: derived.Learnt | None = None
    for c in sorted(set(own[which].tolist())):
        mine = [j for j in which if int(own[j]) == c]
        forbidden = torch.cat([head.parts()[j][head.gate[j] == 1] for j in mine]).detach()
        z, labels, held = _half(seen, learns)
        allowed = relearn.without(z[labels == c], forbidden)
        free = torch.zeros_like(head.last_layer.weight, dtype=torch.bool)
        free[:, mine] = True
        try:
            relearn.begin(head, mine, allowed, z[labels != c])
        except ValueError as e:
            raise InvalidField(
                f"What is left of the pictures of “{model.classes[c]}” is too little to learn from: {e}",
                code="nothing_to_learn",
                given=mine,
            ) from e
        sources = relearn.learn(head, mine, free, relearn.Pictures(z, labels, held), forbidden)
        seen.activation[:, mine] = relearn.activations(head, mine, _tokens(seen))
        taught = _taught(model, model.prototypes, seen, learns, mine, sources, model.classes)
        every = taught if every is None else _joined(every, taught)
    assert every is not None
    after = seen.activation @ head.last_layer.weight.detach().T
    told = figures(before.argmax(1).numpy()[measured], after.argmax(1).numpy()[measured], seen.labels[measured])
    story = _story(change, origin, data, seen, learns, told)
    text = _forgotten(story, which, model)
    return _write(folder, model, model.prototypes, name, story, text, every, tell)


def add_class(
    bundle: Path, title: str, data: Data, into: Path, tell: Progress = lambda *_: None, job: str = ""
) -> dict[str, Any]:
    """Writes a model that knows a further class, from the pictures of `data` that are labelled so; the others should be of the known classes.

    Of each class every other picture is learnt from, the others are measured on: `before` and `after` are about the known classes,
    `further` about the new one. Errors: InvalidField, BadRequest.
    """
    model = opened(bundle)
    title = title.strip()
    if not title or plain(title) in [plain(c) for c in model.classes]:
        raise InvalidField(
            f"“{model.name}” has a class “{title}” already." if title else "The class needs a name.",
            code="known_class",
            given=title,
            allowed="a name that none of its classes has",
        )
    classes, change = [*model.classes, title], {"add_class": title}
    name, folder = begun(bundle, model.name, change, into, job)
    if folder.exists():
        return made_before(folder, name)
    origin = origin_of(model)
    seen = looked(model, data, classes, tell, tokens=True)
    learns, measured = halves(seen.labels)
    c = len(classes) - 1
    _enough(seen, c, title, data)
    if not (seen.labels[learns] != c).any():
        raise InvalidField(
            f"“{data.name}” has no pictures of the classes that “{model.name}” knows, to tell “{title}” from.",
            code="no_labels",
            given=title,
        )
    grown = _grown(model.prototypes)
    head, old = grown.head, len(model.own)
    few = list(range(old, len(head.own)))
    tell(0.75, "learning")
    z, labels, held = _half(seen, learns)
    relearn.begin(head, few, z[labels == c], z[labels != c])
    free = torch.zeros_like(head.last_layer.weight, dtype=torch.bool)
    free[c], free[:, old:] = True, True
    held = torch.cat([held, torch.zeros(len(held), len(few))], 1)
    sources = relearn.learn(head, few, free, relearn.Pictures(z, labels, held))
    before = (seen.activation @ model.weight.T).argmax(1).numpy()
    every = torch.cat([seen.activation, relearn.activations(head, few, _tokens(seen))], 1)
    after = (every @ head.last_layer.weight.detach().T).argmax(1).numpy()
    known = measured[seen.labels[measured] != c]
    theirs = measured[seen.labels[measured] == c]
    told = figures(before[known], after[known], seen.labels[known])
    right = int((after[theirs] == c).sum())
    taught = _taught(model, grown, replace(seen, activation=every), learns, few, sources, classes)
    story = _story(change, origin, data, seen, learns, told) | {"further": portion(right, len(theirs)).model_dump()}
    return _write(folder, model, grown, name, story, _added(story, title), taught, tell)


def halves(labels: Array) -> tuple[Array, Array]:
    """Of each class every other picture, (learn, measure): numbers of pictures. Those without a class are in neither."""
    learn: list[int] = []
    measure: list[int] = []
    for c in np.unique(labels[labels >= 0]):
        inside = np.flatnonzero(labels == c).tolist()
        learn += inside[::2]
        measure += inside[1::2]
    return np.array(sorted(learn), np.int64), np.array(sorted(measure), np.int64)


def _enough(seen: Seen, c: int, title: str, data: Data) -> None:
    count = int((seen.labels == c).sum())
    if count < LEAST:
        raise InvalidField(
            f"“{data.name}” has {count} pictures labelled “{title}”; {LEAST} are needed: half to learn from, half to measure on.",
            code="too_few_pictures",
            given=count,
            allowed=[LEAST, None],
        )


def _tokens(seen: Seen) -> Tensor:
    assert seen.tokens is not None
    return seen.tokens


def _half(seen: Seen, learns: Array) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, classes and activations of what is learnt from."""
    return _tokens(seen)[learns], torch.from_numpy(seen.labels[learns]), seen.activation[learns]


def _grown(old: ProtoViT) -> ProtoViT:
    """The same model with a further class, whose prototypes and weights are at their start (+1 for its own, -0.5 for others)."""
    shape = config(old)
    made = build({**shape, "classes": shape["classes"] + 1})
    state = made.state_dict()
    for key, value in old.state_dict().items():
        at = tuple(slice(0, n) for n in value.shape)
        state[key][at] = value
    made.load_state_dict(state)
    return made.eval()


def _taught(
    model: TorchPrototypeClassifier, net: ProtoViT, seen: Seen, learns: Array, few: Sequence[int], sources: Any, classes: Sequence[str]
) -> derived.Learnt:  # fmt: skip
    """Where what was learnt comes from, with the pictures that are shown. Pictures are numbered as in `seen`."""
    a = seen.activation[learns][:, list(few)]
    count = min(NEAREST, len(learns))
    value, at = a.topk(count, 0)
    image = torch.full((len(few), NEAREST), -1)
    activation, token = (
        torch.zeros(len(few), NEAREST),
        torch.zeros(len(few), NEAREST, net.head.patch_select.shape[-1], dtype=torch.int64),
    )
    with torch.no_grad():
        for f, j in enumerate(few):
            numbers = torch.from_numpy(learns)[at[:, f]]
            image[f, :count], activation[f, :count] = numbers, value[:, f]
            token[f, :count] = net.head(_tokens(seen)[numbers]).token[:, j]
    numbered = [s.__class__(**{**s.__dict__, "image": int(learns[s.image])}) for s in sources]
    wanted = {s.image for s in numbered} | {int(i) for row in image.tolist() for i in row[: SHOWN + 1] if i >= 0}
    pictures = {
        n: (model.pixels(seen.pictures[n].read()), int(seen.labels[n]), seen.pictures[n].name) for n in sorted(wanted)
    }
    width = NEAREST if model.source.nearest is None else model.source.nearest.image.shape[1]
    fitted = Nearest(_wide(image, width, -1), _wide(activation, width, 0), _wide(token, width, 0))
    return derived.Learnt(list(few), numbered, fitted, pictures, list(classes))


def _wide(value: Tensor, width: int, fill: int) -> Tensor:
    """(f, NEAREST, ...) -> (f, width, ...)"""
    if value.shape[1] >= width:
        return value[:, :width]
    more = value.new_full((len(value), width - value.shape[1], *value.shape[2:]), fill)
    return torch.cat([value, more], 1)


def _joined(a: derived.Learnt, b: derived.Learnt) -> derived.Learnt:
    near = Nearest(
        *(torch.cat([getattr(a.nearest, k), getattr(b.nearest, k)]) for k in ("image", "activation", "token"))
    )
    return derived.Learnt(
        [*a.numbers, *b.numbers], [*a.sources, *b.sources], near, {**a.pictures, **b.pictures}, a.classes
    )


def _story(change: Any, origin: Any, data: Data, seen: Seen, learns: Array, told: dict[str, Any]) -> dict[str, Any]:
    about = {"name": data.name, "digest": data.digest, "pictures": len(seen.pictures), "unreadable": len(seen.problems)}
    made = {"fanlight": __version__, "at": round(time.time())}
    return {"change": change, "parent": origin, "data": about, "learnt_from": len(learns), **told, "made": made}


def _write(
    folder: Path, model: TorchPrototypeClassifier, net: ProtoViT, name: str, story: dict[str, Any], section: str,
    taught: derived.Learnt, tell: Progress,
) -> dict[str, Any]:  # fmt: skip
    folder.parent.mkdir(parents=True, exist_ok=True)
    derived.write(folder, model.source, net, name=name, story=story, section=section, learnt=taught)
    tell(0.98, "reading it back")
    made = loader.load({"bundle": str(folder)})
    return {**story, "bundle": str(folder), "name": name, "digest": made.digest}


def _share(p: dict[str, Any]) -> str:
    return f"{percent(p['value'], 1)} of {p['n']:,} (95 % interval {percent(p['lo'], 1)} to {percent(p['hi'], 1)})"


def _table(story: dict[str, Any], rows: list[tuple[str, str]]) -> str:
    change = story["difference"]
    every = [
        ("right before", _share(story["before"])),
        ("right after", _share(story["after"])),
        ("change", f"{points(change['value'])} points, 95 % interval {points(change['lo'])} to {points(change['hi'])}"),
        *rows,
    ]
    return "\n".join(f"| {name} | {value} |" for name, value in every)


def _origin(story: dict[str, Any]) -> str:
    return (
        f"Made from “{story['parent']['name']}” (digest {story['parent']['digest'][:16]}); the original is untouched, and choosing it takes\n"
        f"the change back. Learnt from {story['learnt_from']:,} pictures of “{story['data']['name']}”, of each class every other one; measured\n"
        "on the others. Backbone and all other prototypes are those of the original, bit for bit; figures above this section are its own."
    )


def _forgotten(story: dict[str, Any], which: Sequence[int], model: TorchPrototypeClassifier) -> str:
    many = len(which) > 1
    of = listed(sorted({model.classes[int(model.own[j])] for j in which}))
    return f"""## Prototype{"s" if many else ""} {listed(which)} anew

{"They" if many else "It"} ({of}) forgot what {"they were" if many else "it was"} made of and learnt to look at something else.
{_origin(story)}

| on the pictures that it did not learn from | |
|---|---|
{_table(story, [])}"""


def _added(story: dict[str, Any], title: str) -> str:
    return f"""## With {title}

A further class, with prototypes of its own.
{_origin(story)}

| on the pictures that it did not learn from | |
|---|---|
{_table(story, [(f"right on pictures of {title}", _share(story["further"]))])}

Right before and after are about pictures of the classes that were known before: what is lost there was taken for {title}, or moved with it."""
