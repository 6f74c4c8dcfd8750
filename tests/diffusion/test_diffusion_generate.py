"""Pictures from the exact denoiser, and what happens to them when words change."""

from __future__ import annotations

import math

import pytest
import torch
from diffusion_toys import Linear, said

from fanlight_models.diffusion import BadPrompt, Conditioning, Law, Prompt, Sampling, finished as measured
from fanlight_models.diffusion.generate import (
    Drawing,
    correlation,
    difference,
    draw,
    dropped,
    exchanged,
    finished,
    reordered,
    replaced,
    to_grid,
    weighed,
)
from fanlight_models.worlds import scenes
from fanlight_models.worlds.scenes.bayes import Bayes

TEXT = "a red circle left of a blue cross"
PROMPT = Prompt(TEXT)
PLAIN = Drawing(seed=3, steps=40, guidance=1)


@pytest.fixture(scope="module")
def model() -> Bayes:
    return Bayes(scenes.world())


def test_what_is_drawn_is_what_was_said(model: Bayes) -> None:
    """Whatever the noise, the picture is a scene that the prompt describes: no other prompt fits it better."""
    for seed in range(3):
        x = finished(model, [Conditioning(TEXT)], Drawing(seed, 40, 1))[0]
        assert model.information(x, Conditioning(""), Conditioning(TEXT)) == pytest.approx(math.log(64), abs=0.01)
        assert model.information(x, Conditioning(TEXT), Conditioning("a red circle left of a blue circle")) < -20


def test_ddim_draws_a_gaussian_as_it_must() -> None:
    """For N(m, s^2) the flow is z -> m + s z up to the small steps; known A and B leave n alone: mean 1.75, variance 0.25."""
    drawn = torch.stack(
        [finished(Linear(), said("A B"), Drawing(s, 400, 1, (-12, 12)))[0] for s in range(30)]
    ).flatten()
    from fanlight_models.diffusion.channel import generator

    noise = torch.stack([torch.randn(1, 1, 1, generator=generator(s, "drawing")) for s in range(30)]).flatten()
    torch.testing.assert_close(drawn.float(), 1.75 + 0.5 * noise, atol=0.02, rtol=0)


def test_it_draws_in_steps_and_the_same_again(model: Bayes) -> None:
    steps = list(draw(model, [Conditioning(TEXT)], PLAIN))
    assert [s.step for s in steps] == list(range(1, 41)) and steps[0].steps == 40
    again = finished(model, [Conditioning(TEXT)], PLAIN)
    assert torch.equal(steps[-1].latents, again)
    assert not torch.allclose(again, finished(model, [Conditioning(TEXT)], Drawing(4, 40, 1)))


def test_a_weight_of_one_is_the_prompt_and_of_none_the_word_gone(model: Bayes) -> None:
    red = PROMPT.find("red")
    asked = [
        Conditioning(TEXT),
        weighed(PROMPT, red, 1),
        dropped(PROMPT, red),
        weighed(PROMPT, red, 0),
        weighed(PROMPT, red, 3),
    ]
    whole, one, gone, none, more = finished(model, asked, PLAIN)
    torch.testing.assert_close(whole, one, atol=1e-3, rtol=0)
    torch.testing.assert_close(gone, none, atol=1e-3, rtol=0)
    assert torch.isfinite(more).all()
    with pytest.raises(BadPrompt, match="-10 to 10, not 11"):
        weighed(PROMPT, red, 11)


def test_guidance_is_the_usual_extrapolation(model: Bayes) -> None:
    first = next(iter(draw(model, [Conditioning(TEXT)], Drawing(3, 40, 5, (-9, 9))))).latents
    less, more = (next(iter(draw(model, [Conditioning(t)], Drawing(3, 40, 1, (-9, 9))))).latents for t in ("", TEXT))
    torch.testing.assert_close(first, less + 5 * (more - less), atol=1e-2, rtol=1e-3)


def test_a_word_changes_the_picture_where_its_map_says(model: Bayes) -> None:
    """Another word for the colour of the left object, from the same noise: the difference lies where the information of the colour is."""
    red = PROMPT.find("red")
    before, after = finished(model, [Conditioning(TEXT), replaced(PROMPT, red, "green")], PLAIN)
    moved = difference(before, after)
    readings = measured(
        model, before, [Conditioning(TEXT), dropped(PROMPT, red)], Sampling(64, 2, law=Law(-1, 2, -8, 7)), chunk=64
    )
    found = readings.contrast(dropped(PROMPT, red), Conditioning(TEXT))
    assert float(moved[:, 8:].mean()) < 0.1 * float(moved[:, :8].mean())
    assert correlation(found.map, to_grid(moved, (16, 16))) > 0.5
    assert correlation(found.map, to_grid(moved.flip(1), (16, 16))) < 0.1


def test_edits_of_a_prompt() -> None:
    red, blue = PROMPT.find("red"), PROMPT.find("blue")
    assert dropped(PROMPT, red).text == "a circle left of a blue cross"
    assert replaced(PROMPT, red, "green").text == "a green circle left of a blue cross"
    assert exchanged(PROMPT, red, blue).text == "a blue circle left of a red cross"
    assert reordered(Prompt("one, two three"), [2, 0, 1]).text == "three, one two"
    assert reordered(PROMPT, range(8)).text == TEXT
    with pytest.raises(BadPrompt, match="the same place"):
        exchanged(PROMPT, red, PROMPT.find("red circle"))
    with pytest.raises(BadPrompt, match="names each of the 8 words once"):
        reordered(PROMPT, [0, 0])
    with pytest.raises(BadPrompt, match="not said for which word"):
        replaced(PROMPT, red, "")


def test_numbers_that_make_no_sense_are_refused(model: Bayes) -> None:
    with pytest.raises(ValueError, match="1 to 1000 steps"):
        Drawing(steps=0)
    with pytest.raises(ValueError, match="At least one prompt"):
        next(draw(model, []))
    with pytest.raises(ValueError, match="one grid"):
        correlation(torch.zeros(2, 2), torch.zeros(3, 3))
    assert math.isnan(correlation(torch.ones(2, 2), torch.rand(2, 2)))
