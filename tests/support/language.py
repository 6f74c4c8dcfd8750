"""A masked language model as transformers writes one, tiny and random, that knows some words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="transformers is not installed (pip install 'fanlight[diffusion]')")  # fmt: skip
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def bert(place: Path, words: Sequence[str]) -> Path:
    """A folder with tokenizer and weights; probabilities of words differ."""
    place.mkdir(parents=True)
    pieces = [*SPECIAL, *words]
    (place / "vocab.txt").write_text("\n".join(pieces))
    transformers.BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place)
    config = transformers.BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=32,
        initializer_range=1.0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        transformers.BertForMaskedLM(config).save_pretrained(place)
    return place
