"""DiffusionPID as an explainer: exact on the scenes, what is stored is what the numeric part says, steps, reuse, memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from fanlight.artifact import Artifact
from fanlight.drawing.information import Read
from fanlight.errors import ComputeFailed, InvalidField
from fanlight.explainers import contrasts, rewording
from fanlight.explainers.base import Drawing
from fanlight.explainers.diffusion.diffusion_pid import DiffusionPID
from fanlight_models.diffusion import Prompt, Sampling, atoms, finished, generate, plan
from support.explaining import Context, finish
from support.painting import painter

TEXT = "a red circle left of a blue cross"
SMALL = {"nodes": "32", "steps": 8, "all_pairs": False}


def made(model: Any, lent: Context | None = None, text: str = TEXT, seed: int = 0, **params: Any) -> Artifact:
    one = Drawing(text, None, seed, f"{text} {seed}")
    run = DiffusionPID().run(model, [one], DiffusionPID.Params(**{**SMALL, **params}), lent or Context())
    found: Artifact = finish(run)[0][0]
    return found.check()


@pytest.mark.parametrize("context", [True, False])
def test_what_is_stored_is_what_the_numeric_part_computes(context: bool) -> None:
    model, chunk = painter(), 8
    found = made(model, Context(chunk), words="blue, red", context=context, guidance=2)
    prompt = Prompt(TEXT)
    how = generate.Drawing(seed=0, steps=8, guidance=2)
    x = generate.finished(model, [contrasts.base_of(prompt)], how)[0]
    asked = plan(prompt, [prompt.find("red"), prompt.find("blue")], context=context)
    readings = finished(model, x, asked.conditionings, Sampling(nodes=32), chunk=chunk)
    for edits, options in (
        ([], {}),
        ([{"set_rule": "pointwise"}], {"rule": "pointwise"}),
        ([{"set_rule": ["pointwise", 0.1, 0.3]}], {"rule": "pointwise", "surprisal": (-math.log(0.3), -math.log(0.1))}),
        ([{"set_band": [-1.0, 2.0]}], {"band": (-1.0, 2.0)}),
    ):
        shown, _ = contrasts.edited(found, DiffusionPID.canonical(edits, found.meta))
        read, twin = Read(shown), atoms.decompose(readings, asked.pairs[0, 1], **options)
        # the twin has the words in the order of the prompt, the artifact as they were named; a band counts pairs of nodes as one there
        loose = 0.1 if "band" in options else 1e-4
        for name, expected in (
            ("a", twin.b.map),
            ("b", twin.a.map),
            ("both", twin.ab.map),
            ("redundant", twin.maps.redundant),
            ("unique_a", twin.maps.unique_b),
            ("unique_b", twin.maps.unique_a),
            ("synergy", twin.maps.synergy),
        ):
            scale = float(twin.ab.map.abs().max()) + float(twin.a.map.abs().max())
            np.testing.assert_allclose(read.maps[name], expected.numpy(), atol=loose * scale, err_msg=name)
        if "band" not in options:
            assert read.told["both"] == pytest.approx((twin.signed[2].total, twin.signed[2].total_error), rel=1e-4)
            assert read.interaction() == pytest.approx((twin.interaction.total, twin.interaction.total_error), rel=1e-4)
            np.testing.assert_allclose(read.errors["a"], twin.b.error.numpy(), atol=1e-4 * float(twin.b.error.max()))
            signed, weight = twin.signed[2], readings.law.weight(readings.alphas)
            curve = (signed.curve * weight).view(-1, 2).mean(1) / weight.view(-1, 2).mean(1)
            ours = np.array(read.curves()["both_signed"])
            np.testing.assert_allclose(ours, curve, rtol=1e-3, atol=1e-3 * np.abs(ours).max())


def test_words_are_chosen_as_they_are_named() -> None:
    model = painter()
    cross = made(model, text="a red cross left of a blue cross", words="blue, cross#2")
    assert [w[2] for w in cross.meta["words"]] == ["blue", "cross"] and cross.meta["words"][1][0] > 10
    run = made(model, text="a fire truck near the tall tree", words="tall tree, fire truck")
    assert [w[2] for w in run.meta["words"]] == ["fire truck", "tall tree"] and run.meta["pair"] == [1, 0]
    default = made(model, all_pairs=True)
    assert [w[2] for w in default.meta["words"]] == ["red", "circle", "left", "blue", "cross"]
    assert len(default.meta["pairs"]) == 10 and default.meta["evaluations"] == 32 * 17
    many = made(model, text="one two three four five six seven eight nine", words="eight, nine", all_pairs=True)
    assert len(many.meta["words"]) == contrasts.MOST and many.meta["pair"] == [4, 5]


def test_a_step_is_one_pass_and_it_stops_between_two() -> None:
    model = painter()
    run = DiffusionPID().run(model, [Drawing(TEXT, None, 0, "k")], DiffusionPID.Params(), Context(4))
    seen, previews = [], 0
    for _ in range(200):
        before = model.asked
        step = next(run)
        seen.append(model.asked - before)
        previews += step.preview is not None
    assert max(seen) <= 4 and previews > 100
    run.close()
    asked = model.asked
    with pytest.raises(StopIteration):
        next(run)
    assert model.asked == asked


def test_previews_are_the_picture_and_then_maps() -> None:
    model = painter()
    run = DiffusionPID().run(model, [Drawing(TEXT, None, 0, "k")], DiffusionPID.Params(**SMALL), Context(4))
    shown = [step.preview().check() for step in run if step.preview is not None]
    counts = [a.meta["nodes"] for a in shown]
    assert counts[:8] == [0] * 8 and counts[8] >= 16 and counts == sorted(counts) and counts[-1] == 32
    assert not np.array_equal(shown[0].arrays["picture"], shown[7].arrays["picture"])


def test_what_is_known_is_not_asked_again_and_bytes_are_the_same() -> None:
    model, context = painter(), Context()
    first = made(model, context)
    asked = model.asked
    assert made(model, context).to_bytes() == first.to_bytes() and model.asked == asked
    wider = made(model, context, all_pairs=True)
    assert model.asked - asked == 32 * (17 - 5), "the first pair and the floor are known"
    assert made(painter(), Context(), all_pairs=True).to_bytes() == wider.to_bytes()
    before = model.asked
    made(model, context, seed=1)
    assert model.asked - before == 2 * 8 + 32 * 5, "another seed is another picture"


def test_a_target_error_is_kept_and_hangs_on_nothing_else() -> None:
    model, context = painter(), Context()
    whole = made(model, context, nodes="256")
    largest = max(e for _, e in Read(whole).told.values())
    stopped = made(model, context, nodes="256", stop_at=2 * largest)
    assert 16 <= stopped.meta["nodes"] < 256
    assert max(e for _, e in Read(stopped).told.values()) <= 2 * largest
    assert made(painter(), Context(), nodes="256", stop_at=2 * largest).to_bytes() == stopped.to_bytes()


def test_large_results_share_rows_and_mean_the_same() -> None:
    values = torch.rand(3, 50, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    small = contrasts.shared(values, 16)
    assert small.shape == (3, 16, 4, 4)
    torch.testing.assert_close(small.mean(1), values.mean(1))
    alphas = contrasts.shared(torch.linspace(-5, 7, 50)[None], 16, scaled=False)[0]
    assert (alphas.diff() > 0).all() and -5 < alphas[0] < alphas[-1] < 7


def test_drawing_again_says_its_progress_and_what_moved() -> None:
    model = painter()
    found = made(model)
    steps = []
    run = DiffusionPID().ask(model, [found], [{"drop_word": 1}], DiffusionPID.Params())
    while True:
        try:
            steps.append(next(run).done)
        except StopIteration as end:
            changed = end.value.artifacts[0].check()
            break
    assert steps == pytest.approx([n / 8 for n in range(1, 9)])
    assert changed.meta["redrawn"] == {"drop_word": 1} and changed.meta["redrawn_words"] == [0]
    assert changed.arrays["difference"].shape == found.arrays["floor"].shape
    kept = DiffusionPID().edit(model, [changed], [{"drop_word": 1}, {"set_band": [0, 1]}], DiffusionPID.Params())
    np.testing.assert_array_equal(kept.artifacts[0].arrays["changed"], changed.arrays["changed"])
    with pytest.raises(InvalidField, match="must be asked"):
        DiffusionPID().edit(model, [changed], [{"drop_word": 2}], DiffusionPID.Params())


def test_edits_have_one_form() -> None:
    about = made(painter()).meta
    last = rewording.canonical(
        [{"drop_word": 0}, {"set_rule": "min"}, {"exchange_words": [4, 1]}, {"set_rule": "pointwise"}], about
    )
    assert last == [{"set_rule": "pointwise"}, {"exchange_words": [1, 4]}]
    assert rewording.canonical([{"replace_word": [1, "  dark   green "]}], about) == [
        {"replace_word": [1, "dark green"]}
    ]


def test_a_network_that_answers_nan_is_a_sentence() -> None:
    model = painter()
    with torch.no_grad():
        model.net.last.bias.fill_(float("nan"))
    with pytest.raises(ComputeFailed, match="not finite"):
        made(model)
