"""Word probabilities of a tiny masked language model with random weights."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from fanlight_models.diffusion import BadPrompt, Prompt
from fanlight_models.diffusion.atoms import surprisals
from fanlight_models.diffusion.masked import MaskedWords

transformers = pytest.importorskip("transformers", reason="transformers is not installed (pip install 'fanlight[diffusion]')")  # fmt: skip
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "red", "dog", "##s", "tedd", "##y", "and"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bert")
    (place / "vocab.txt").write_text("\n".join(PIECES))
    transformers.BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=16,
        initializer_range=1.0,
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(place)
    return place


def test_a_word_is_as_likely_as_the_model_says_where_it_is_masked(folder: Path) -> None:
    model = MaskedWords.read(folder)
    prompt = Prompt("a red dogs and a teddy")
    ids = model.tokenizer(prompt.text)["input_ids"]
    assert [PIECES[n] for n in ids[1:-1]] == ["a", "red", "dog", "##s", "and", "a", "tedd", "##y"]
    red, dogs = model.probabilities(prompt, [prompt.find("red"), prompt.find("dogs")])

    def asked(filled: list[int], place: int) -> float:
        with torch.inference_mode():
            return float(model.model(torch.tensor([filled])).logits[0, place].softmax(0)[ids[place]])

    assert red == pytest.approx(asked([*ids[:2], 4, *ids[3:]], 2), rel=1e-4)
    both = asked([*ids[:3], 4, 4, *ids[5:]], 3) * asked([*ids[:4], 4, *ids[5:]], 4)
    assert dogs == pytest.approx(both, rel=1e-4) and 0 < dogs < red < 1
    h = surprisals(["red", "dogs"], (red, dogs))
    assert h == pytest.approx((-math.log(red), -math.log(dogs)))


def test_what_cannot_be_read_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no weights as safetensors"):
        MaskedWords.read(tmp_path)
    prompt = Prompt("a red dog and " * 6)
    with pytest.raises(BadPrompt, match="26 pieces, the language model takes 16"):
        MaskedWords.read(folder).probabilities(prompt, prompt.words[:1])
