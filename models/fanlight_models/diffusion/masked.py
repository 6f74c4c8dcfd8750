"""How likely a word is in its prompt, by a masked language model in a local folder: what the pointwise rule weighs words with.

DiffusionPID takes a BERT for it [SECONDARY]; the details are ours: a word of several pieces is filled in from the left, and its probability is the
product. Needs transformers; nothing is fetched, only safetensors are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fanlight_models.diffusion.words import BadPrompt, Prompt, Word
from fanlight_models.shards import strangers

LEAST = 1e-12  # a probability of 0 would make every other word redundant


class MaskedWords:
    """A masked language model and its tokenizer. `read` loads them from a folder."""

    def __init__(self, tokenizer: Any, model: Any):
        self.tokenizer, self.model = tokenizer, model.eval().requires_grad_(False)

    @classmethod
    def read(cls, folder: Path) -> MaskedWords:
        """Errors: ValueError for pickled weights, or a tokenizer without a mask."""
        if not list(folder.glob("*.safetensors")):
            raise ValueError(
                f"“{folder.name}” has no weights as safetensors; pickles are not opened. Convert them first."
            )
        if strange := strangers(folder):
            raise ValueError(
                f"The index of the weights of “{folder.name}” names {', '.join(strange[:3])}, which is not opened."
            )
        import transformers

        safe = {"local_files_only": True, "trust_remote_code": False}
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safe)
        if tokenizer.mask_token_id is None:
            raise ValueError(f"“{folder.name}” is no masked language model: its tokenizer has no token for a mask.")
        model = transformers.AutoModelForMaskedLM.from_pretrained(folder, use_safetensors=True, **safe)
        return cls(tokenizer, model)

    def probabilities(self, prompt: Prompt, words: Sequence[Word]) -> tuple[float, ...]:
        """p(word | the rest of the prompt) of each word, for `atoms.surprisals`. Errors: BadPrompt where the prompt is too long for the model."""
        said = self.tokenizer(prompt.text, return_offsets_mapping=True, verbose=False)
        ids = list(said["input_ids"])
        at = [(int(a), int(b)) for a, b in said["offset_mapping"]]
        if len(ids) > int(self.model.config.max_position_embeddings):
            raise BadPrompt(
                f"The prompt has {len(ids)} pieces, the language model takes {self.model.config.max_position_embeddings}."
            )
        return tuple(self._one(ids, [n for n, (a, b) in enumerate(at) if a < w.end and b > w.start]) for w in words)

    def _one(self, ids: list[int], places: list[int]) -> float:
        filled = list(ids)
        for n in places:
            filled[n] = self.tokenizer.mask_token_id
        probability = 1.0
        for n in places:
            with torch.inference_mode():
                logits = self.model(torch.tensor([filled], device=self.model.device)).logits[0, n]
            probability *= float(logits.double().softmax(0)[ids[n]])
            filled[n] = ids[n]
        return max(probability, LEAST)
