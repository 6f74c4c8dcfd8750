"""Prompts and their words, and what is wrong with some of them."""

from __future__ import annotations

import pytest
from diffusion_toys import five_pixels

from fanlight_models.diffusion import BadPrompt, Conditioning, Prompt, Word, plan
from fanlight_models.diffusion.words import alone, without

DOGS = Prompt("A dog, a teddy bear and a Dog's bowl beside a DOG")


def test_words_are_found_however_they_are_written() -> None:
    assert DOGS.find("dog", 1) == Word(2, 5, "dog", 1)
    assert DOGS.find("dog", 2).text == "DOG" and DOGS.text[slice(*DOGS.find("dog", 2).span)] == "DOG"
    assert DOGS.find("Teddy  bear").text == "teddy bear"
    assert DOGS.find("dog's").text == "Dog's"
    assert [w.occurrence for w in Prompt("a b a A").words] == [1, 1, 2, 3]
    assert Prompt("größe 東京 naïve").find("東京").text == "東京"


@pytest.mark.parametrize(
    ("prompt", "word", "occurrence", "said"),
    [
        ("a cat", "dog", None, "“dog” is not in the prompt. Its words: a, cat."),
        ("a cat", "cats", None, "not in the prompt"),
        ("cat and cat", "cat", None, "“cat” is 2 times in the prompt; say which, from 1 to 2."),
        ("cat and cat", "cat", 3, "there is no occurrence 3"),
        ("cat and cat", "cat", 0, "there is no occurrence 0"),
        ("", "cat", None, "The prompt is empty"),
        ("  ", "cat", None, "The prompt is empty"),
        ("a cat", " , ", None, "holds no word"),
        ("a cat", "", None, "holds no word"),
    ],
)
def test_a_word_that_is_not_there_or_not_clear_is_refused(prompt, word, occurrence, said) -> None:
    with pytest.raises(BadPrompt, match=said.replace("(", r"\(").replace(".", r"\.")):
        Prompt(prompt).find(word, occurrence)


def test_ways_to_remove_words() -> None:
    prompt = Prompt("a red dog, and a red cat")
    second, dog = prompt.find("red", 2), prompt.find("dog")
    assert without(prompt, [second]).text == "a red dog, and a cat"
    assert without(prompt, [dog, second]).text == "a red, and a cat"
    assert without(prompt, [dog], "underscore").text == "a red _, and a red cat"
    assert without(prompt, [dog], "swap", {dog: "zebra"}).text == "a red zebra, and a red cat"
    padded = without(prompt, [dog], "pad")
    assert padded.text == prompt.text and padded.padded == (dog.span,)
    assert padded.marked() == "a red _, and a red cat" and padded.key != Conditioning(prompt.text).key
    assert without(Prompt("dog"), [Prompt("dog").find("dog")]).text == ""
    assert without(prompt, prompt.words).text == ""
    with pytest.raises(BadPrompt, match="shall be swapped"):
        without(prompt, [dog], "swap")
    with pytest.raises(BadPrompt, match="delete, underscore, pad, swap"):
        without(prompt, [dog], "forget")


def test_words_alone() -> None:
    prompt = Prompt("a dog and a cat")
    dog, cat = prompt.find("dog"), prompt.find("cat")
    assert [alone(w).text for w in ((), (cat,), (cat, dog))] == ["", "cat", "dog cat"]
    assert alone((dog, cat), "{a} and {b}").text == "dog and cat"
    with pytest.raises(BadPrompt, match="holds {a} and {b}"):
        alone((dog, cat), "dog")


def test_a_plan_names_each_conditioning_once() -> None:
    prompt = Prompt("a red dog and a cat")
    red, dog, cat = (prompt.find(w) for w in ("red", "dog", "cat"))
    asked = plan(prompt, [cat, red], context=True)
    quad = asked.pairs[0, 1]
    assert (quad.base.text, quad.a.text, quad.b.text, quad.ab.text) == (
        "a dog and a", "a red dog and a", "a dog and a cat", "a red dog and a cat",
    )  # fmt: skip
    assert [(a.text, b.text) for a, b in asked.singles] == [
        ("a dog and a cat", prompt.text),
        ("a red dog and a", prompt.text),
    ]
    bare = plan(prompt, [cat, red], context=False)
    assert [c.text for c in bare.conditionings] == ["", "cat", "red", "red cat"]
    noisy = plan(prompt, [dog], context=True, neutral="the")
    assert noisy.floor is not None and noisy.floor[1].text == "a red dog and a cat the"
    assert len(noisy.conditionings) == 3
    # two equal words are two words
    twice = Prompt("cat and cat")
    both = plan(twice, twice.words[::2], context=True)
    assert [c.text for c in both.conditionings] == ["and", "and cat", "cat and", "cat and cat"]


def test_plans_that_make_no_sense_are_refused() -> None:
    prompt = Prompt("a teddy bear")
    with pytest.raises(BadPrompt, match="are the same place"):
        plan(prompt, [prompt.find("teddy bear"), prompt.find("bear")], context=True)
    with pytest.raises(BadPrompt, match="One to 12 words"):
        plan(prompt, [], context=True)
    long = Prompt(" ".join(chr(97 + n) for n in range(14)))
    with pytest.raises(BadPrompt, match="not 13"):
        plan(long, long.words[:13], context=True)


def test_a_word_that_the_encoder_never_sees_is_refused() -> None:
    class Short(type(five_pixels())):
        def lost(self, text: str) -> str:
            return text[10:]

    model = five_pixels()
    model.__class__ = Short
    prompt = Prompt("a red dog and a cat")
    plan(prompt, [prompt.find("dog")], context=True).check(model)
    with pytest.raises(BadPrompt, match="never sees its end “and a cat”; “cat” is there"):
        plan(prompt, [prompt.find("dog"), prompt.find("cat")], context=True).check(model)
