"""What the compute worker is asked beside its work, and answers from words alone: would a job on them fail, and how probable are they."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fanlight.engine.base import Work
from fanlight.errors import ComputeFailed, FanlightError, InvalidField, Unavailable
from fanlight.explainers.base import Explainer

if TYPE_CHECKING:
    from fanlight_models.diffusion.masked import MaskedWords


def foresee(model: Any, explainer: type[Explainer], work: Work) -> Mapping[str, Any]:
    """Errors: of the first prompt that a job would fail with."""
    for question in work.questions:
        explainer().foresee(model, str(question["text"]), explainer.Params(**question["params"]), work.edits)
    return {}


def chances(folder: str, work: Work) -> Mapping[str, Any]:
    """By the masked language model that the operator named. Errors: not_configured, not_installed, bad_model, bad_prompt."""
    from fanlight_models.diffusion import BadPrompt, Prompt, Word

    if not folder:
        raise Unavailable(
            "This server has no language model that would say how probable words are.",
            code="not_configured",
            hint="Name a folder in FANLIGHT_WORD_MODEL, or give probabilities, or a table.",
        )
    model = read(folder)
    found = []
    for question in work.questions:
        text = str(question["text"])
        words = [Word(int(a), int(b), text[int(a) : int(b)]) for a, b in question["spans"]]
        try:
            found.append(list(model.probabilities(Prompt(text), words)))
        except BadPrompt as e:
            raise InvalidField(str(e), code="bad_prompt", given=text) from e
    return {"probabilities": found, "name": Path(folder).name}


@functools.lru_cache(1)
def read(folder: str) -> MaskedWords:
    """Once: it stays in memory, on the CPU."""
    from fanlight.adapters import hub
    from fanlight_models.diffusion.masked import MaskedWords

    place = Path(folder)
    try:
        hub.required("transformers", "diffusion")
        if not place.is_dir():
            raise ValueError(f"There is no folder “{place.name}”.")
        return MaskedWords.read(place)
    except FanlightError:
        raise
    except (OSError, ValueError, RuntimeError, KeyError, TypeError) as e:
        said = str(e).strip().partition("\n")[0]
        raise ComputeFailed(
            f"The language model of FANLIGHT_WORD_MODEL cannot be read: {said}", code="bad_model"
        ) from e
