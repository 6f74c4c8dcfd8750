"""From a configuration (JSON-able) to a model, and from a trained model to a bundle: a folder without code.

| file | holds |
|---|---|
| bundle.toml | task `concept-bottleneck`, the configuration, preprocessing |
| weights.safetensors | all tensors of the model |
| concepts.txt, classes.txt | one name a line, in the order of the tensors; `group::value` where values exclude each other |
| cases.safetensors | concepts (n, K) as the model reads them, float16, and labels (n,) of reference cases, for similar cases |
| card.md | data, training, accuracy, limits |
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from fanlight_models.concepts.autoregressive import Autoregressive
from fanlight_models.concepts.cbm import CBM
from fanlight_models.concepts.cem import CEM
from fanlight_models.concepts.encoders import ENCODERS
from fanlight_models.concepts.scbm import SCBM

Model = SCBM | CBM | CEM | Autoregressive
KINDS = ("scbm", "hard-cbm", "soft-cbm", "cem", "autoregressive")
FORMAT, TASK = 1, "concept-bottleneck"


class BadConceptBundle(ValueError):
    """A folder that is no bundle of a concept model; the message is a sentence."""


def build(config: Mapping[str, Any]) -> Model:
    """{kind, concepts, classes, encoder: {kind, ...}, and options of the kind} -> a fresh model. Errors: ValueError, TypeError."""
    given = dict(config)
    kind, encoder = given.pop("kind", None), dict(given.pop("encoder", {}))
    if kind not in KINDS:
        raise ValueError(f"“{kind}” is no kind of bottleneck. Kinds: {', '.join(KINDS)}.")
    name = encoder.pop("kind", None)
    if name not in ENCODERS:
        raise ValueError(f"“{name}” is no encoder. Encoders: {', '.join(ENCODERS)}.")
    made = ENCODERS[name](**encoder)
    if kind in ("hard-cbm", "soft-cbm"):
        return CBM(made, soft=kind == "soft-cbm", **given)
    return {"scbm": SCBM, "cem": CEM, "autoregressive": Autoregressive}[kind](made, **given)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class ConceptBundle:
    """A bundle that was read: the model in eval mode with frozen parameters, its names, preprocessing as in bundle.toml, reference cases."""

    model: Model
    config: Mapping[str, Any]
    name: str
    description: str
    terms: str
    concepts: tuple[str, ...]
    classes: tuple[str, ...]
    preprocessing: Mapping[str, Any]
    card: str
    cases: Tensor
    labels: Tensor

    def groups(self) -> list[list[int]]:
        """Concepts that exclude each other: those whose names begin with the same `group::`; groups of one are left out."""
        return groups(self.concepts)


def groups(concepts: Sequence[str]) -> list[list[int]]:
    """`ConceptBundle.groups` of names."""
    found: dict[str, list[int]] = {}
    for i, concept in enumerate(concepts):
        if "::" in concept:
            found.setdefault(concept.partition("::")[0], []).append(i)
    return [inside for inside in found.values() if len(inside) > 1]


def write(
    folder: Path,
    model: Model,
    config: Mapping[str, Any],
    *,
    name: str,
    description: str,
    terms: str,
    concepts: Sequence[str],
    classes: Sequence[str],
    preprocessing: Mapping[str, Any],
    card: str,
    cases: Tensor,
    labels: Tensor,
) -> None:
    """The bundle of a trained model. cases (n, K), labels (n,): reference cases as the model reads them."""
    if len(concepts) != model.concepts or len(classes) != model.classes:
        raise ValueError(
            f"{len(concepts)} names of concepts and {len(classes)} of classes for a model of {model.concepts} and {model.classes}."
        )
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.clone().contiguous() for k, v in model.state_dict().items()}, folder / "weights.safetensors")
    save_file(
        {"concepts": cases.half().contiguous(), "labels": labels.short().contiguous()}, folder / "cases.safetensors"
    )
    (folder / "concepts.txt").write_text("".join(f"{c}\n" for c in concepts), encoding="utf-8")
    (folder / "classes.txt").write_text("".join(f"{c}\n" for c in classes), encoding="utf-8")
    (folder / "card.md").write_text(card, encoding="utf-8")
    head = {
        "format": FORMAT,
        "name": name,
        "task": TASK,
        "architecture": TASK,
        "description": description,
        "terms": terms,
    }
    plain = {k: v for k, v in config.items() if not isinstance(v, Mapping)}
    tables = {k: v for k, v in config.items() if isinstance(v, Mapping)}
    lines = [_pairs(head), "[config]", _pairs(plain)]
    for key, table in tables.items():
        lines += [f"[config.{key}]", _pairs(table)]
    lines += ["[preprocessing]", _pairs(preprocessing)]
    (folder / "bundle.toml").write_text("\n".join(lines), encoding="utf-8")


def read(folder: Path) -> ConceptBundle:
    """A bundle that `write` wrote. Errors: BadConceptBundle says what does not fit."""
    files = ("bundle.toml", "weights.safetensors", "concepts.txt", "classes.txt", "cases.safetensors")
    missing = [f for f in files if not (folder / f).is_file()]
    if missing:
        raise BadConceptBundle(
            f"The folder “{folder.name}” is no bundle of a concept model: it lacks {', '.join(missing)}."
        )
    try:
        toml = tomllib.loads((folder / "bundle.toml").read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise BadConceptBundle(f"bundle.toml of “{folder.name}” is not valid TOML: {e}.") from e
    if toml.get("format") != FORMAT or toml.get("task") != TASK:
        raise BadConceptBundle(
            f"“{folder.name}” is of format {toml.get('format')!r} and task {toml.get('task')!r}; {FORMAT} and “{TASK}” are expected."
        )
    concepts, classes = (_names(folder / f) for f in ("concepts.txt", "classes.txt"))
    try:
        model = build(toml.get("config", {}))
    except (TypeError, ValueError) as e:
        raise BadConceptBundle(f"[config] of “{folder.name}” makes no model: {e}") from e
    for what, names, count in (("concepts", concepts, model.concepts), ("classes", classes, model.classes)):
        if len(names) != count:
            raise BadConceptBundle(f"“{folder.name}” names {len(names)} {what}; its model has {count}.")
    weights, expected = load_file(folder / "weights.safetensors"), model.state_dict()
    wrong = [k for k in expected if k not in weights or weights[k].shape != expected[k].shape] + [
        k for k in weights if k not in expected
    ]
    if wrong:
        raise BadConceptBundle(
            f"The weights of “{folder.name}” are not those of its model: {', '.join(wrong[:3])} and {max(len(wrong) - 3, 0)} more."
        )
    if not all(bool(torch.isfinite(v).all()) for v in weights.values()):
        raise BadConceptBundle(f"The weights of “{folder.name}” hold numbers that are not finite.")
    model.load_state_dict(weights)
    cases = load_file(folder / "cases.safetensors")
    if cases["concepts"].shape != (len(cases["labels"]), model.concepts):
        raise BadConceptBundle(f"The reference cases of “{folder.name}” do not have its {model.concepts} concepts.")
    card = folder / "card.md"
    return ConceptBundle(
        model.eval().requires_grad_(False),
        toml["config"],
        str(toml.get("name", folder.name)),
        str(toml.get("description", "")),
        str(toml.get("terms", "")),
        concepts,
        classes,
        toml.get("preprocessing", {}),
        card.read_text(encoding="utf-8") if card.is_file() else "",
        cases["concepts"].double(),
        cases["labels"].long(),
    )


def _names(file: Path) -> tuple[str, ...]:
    names = tuple(line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    if len(set(names)) != len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise BadConceptBundle(f"{file.name} names “{twice}” twice.")
    return names


def _pairs(table: Mapping[str, Any]) -> str:
    return "".join(f"{k} = {_value(v)}\n" for k, v in table.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(v) for v in value)}]"
    return repr(value)
