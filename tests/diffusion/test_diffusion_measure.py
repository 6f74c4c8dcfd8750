"""How a model is asked: counts, batches, stages, caches, breaking off, errors; and the algebra of what comes out."""

from __future__ import annotations

import dataclasses
import json

import pytest
import torch
from diffusion_toys import five_pixels, said
from torch import Tensor, nn

from fanlight_models.diffusion import Conditioning, Law, Prompt, Readings, Sampling, finished, measure, plan, start
from fanlight_models.diffusion.atoms import atoms, contradicted, decompose, matrix, surprisals, unsure
from fanlight_models.diffusion.mixture import Mixture
from fanlight_models.diffusion.plan import Quad

ALL = said("", "a", "b", "a b")
X = torch.tensor([1.0, 1, 1, 1, 0], dtype=torch.float64).view(1, 1, 5)


class Network:
    """A small network with random weights, in float32: its words are rows of a table."""

    shape, logsnr, law, device = (2, 8, 8), (-6.0, 8.0), Law(), torch.device("cpu")

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Conv2d(4, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 2, 3, padding=1)).eval()
        self.table = torch.randn(64, 2, 8, 8)
        self.asked = 0

    def lost(self, text: str) -> str:
        return ""

    def encode(self, prompts):
        rows = [self.table[sum(map(ord, p.text)) % 64] for p in prompts]
        return {"field": torch.stack(rows)}

    def noise(self, z: Tensor, alpha: Tensor, encoded) -> Tensor:
        self.asked += len(z)
        return self.net(torch.cat([z, encoded["field"]], 1))


PICTURE = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(1))


def test_a_pair_costs_four_conditionings_and_a_second_look_nothing() -> None:
    model = Network()
    words = Prompt("one red cat on a mat")
    asked = plan(words, [words.find("red"), words.find("mat")], context=True)
    assert len(asked.conditionings) == 4
    readings = finished(model, PICTURE, asked.conditionings, Sampling(nodes=20, noises=2), chunk=8)
    assert readings.evaluations == model.asked == 4 * 20 * 2
    steps = list(measure(model, PICTURE, asked.conditionings, readings, chunk=8))
    assert readings.evaluations == model.asked == 160 and len(steps) == 1 and steps[0].of == 0
    other = plan(
        words, [words.find("red"), words.find("cat")], context=True
    )  # shares the whole prompt and that without “red”
    assert readings.missing(other.conditionings) == 2 * 20 * 2


@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize(("n", "count"), [(2, 4), (4, 11), (8, 37), (12, 79)])
def test_all_pairs_cost_no_more_than_promised(context: bool, n: int, count: int) -> None:
    prompt = Prompt(" ".join("abcdefghijklm"))
    assert len(plan(prompt, prompt.words[:n], context=context).conditionings) == count
    assert len(plan(prompt, prompt.words[:n], context=context, pairs=False).conditionings) == n + 1


def test_numbers_do_not_depend_on_what_is_asked_beside_them() -> None:
    model, sampling = Network(), Sampling(nodes=12, noises=3)
    together = finished(model, PICTURE, ALL, sampling, chunk=8)
    alone = start(model, sampling)
    for some in (ALL[3:], ALL[1:2], [ALL[2], ALL[0]]):
        alone = finished(model, PICTURE, some, readings=alone, chunk=8)
    other = finished(model, PICTURE, ALL, sampling, chunk=5)
    for estimator in ("signed", "orthogonal"):
        for less, more in ((0, 1), (0, 3), (2, 3)):
            one, two, three = (r.contrast(ALL[less], ALL[more], estimator).map for r in (together, alone, other))
            assert torch.equal(one, two)
            torch.testing.assert_close(one, three, rtol=1e-4, atol=1e-5)


def test_readings_go_to_arrays_and_back() -> None:
    model = Network()
    readings = finished(model, PICTURE, ALL[:3], Sampling(nodes=8, law=Law(0, 1, -3, 3)), chunk=8)
    every, told = readings.arrays()
    again = Readings.of(every, json.loads(json.dumps(told)))
    assert torch.equal(again.contrast(ALL[0], ALL[1]).map, readings.contrast(ALL[0], ALL[1]).map)
    finished(model, PICTURE, ALL, readings=again, chunk=8)
    assert again.evaluations == 32 and again.sampling == readings.sampling and again.law == readings.law
    with pytest.raises(ValueError, match="no energies of shape"):
        Readings.of({k: v for k, v in every.items() if k != "energies.1"}, told)


def test_half_precision_is_enough_to_keep() -> None:
    model, runs = five_pixels(torch.float32), []
    for kept in (torch.float32, torch.float16):
        runs.append(start(model, Sampling(nodes=40)))
        for _ in measure(model, X.float(), ALL, runs[-1], kept=kept):
            pass
    full, half = (r.contrast(ALL[0], ALL[3]).map for r in runs)
    assert 0 < float((full - half).abs().max()) < 5e-3 * float(full.max())
    assert torch.equal(*(r.contrast(ALL[0], ALL[3], "signed").map for r in runs))


def test_memory_that_runs_out_halves_the_passes() -> None:
    class Tight(Network):
        def noise(self, z, alpha, encoded):
            if len(z) > 3:
                raise torch.OutOfMemoryError("out of memory")
            return super().noise(z, alpha, encoded)

    found = finished(Tight(), PICTURE, ALL, Sampling(nodes=8), chunk=16)
    wanted = finished(Network(), PICTURE, ALL, Sampling(nodes=8), chunk=16)
    torch.testing.assert_close(
        found.contrast(ALL[0], ALL[3]).map, wanted.contrast(ALL[0], ALL[3]).map, rtol=1e-4, atol=1e-5
    )
    assert found.evaluations == wanted.evaluations == 32


def test_it_can_be_broken_off_looked_at_and_gone_on_with() -> None:
    model, sampling = five_pixels(), Sampling(nodes=40, seed=5)
    whole = finished(model, X, ALL, sampling, chunk=16)
    readings, seen = start(model, sampling), []
    for step in measure(model, X, ALL, readings, chunk=16, watch=[(ALL[0], ALL[3])]):
        seen.append(step.error)
        if step.done >= 80:
            break
    assert seen[0] == float("inf") and seen[-1] < float("inf") and readings.evaluations == 80
    preview = readings.contrast(ALL[0], ALL[3], "signed")
    assert preview.nodes == 20 and abs(preview.total - 1.386) < 4 * preview.total_error
    readings = finished(model, X, ALL, readings=readings, chunk=16)
    assert readings.evaluations == whole.evaluations == 160
    assert torch.equal(readings.contrast(ALL[0], ALL[3]).map, whole.contrast(ALL[0], ALL[3]).map)


def test_it_stops_at_a_target_error() -> None:
    model, readings = five_pixels(), start(five_pixels(), Sampling(nodes=400))
    steps = list(measure(model, X, ALL, readings, chunk=32, watch=[(ALL[0], ALL[3])], target=0.3))
    assert steps[-1].reached and steps[-1].error <= 0.3 and readings.evaluations < 1600
    assert not any(s.reached for s in steps[:-1])


def test_a_preview_is_not_biased_by_what_is_missing() -> None:
    """Over many seeds the mean of a broken-off run is the whole integral: 14 of 50 pairs of strata, which are not evenly spread."""
    model, totals = five_pixels(), []
    for seed in range(150):
        readings = start(model, Sampling(nodes=100, seed=seed))
        for step in measure(model, X, [ALL[0], ALL[3]], readings, chunk=56):
            if step.done >= 56:
                break
        totals.append(readings.contrast(ALL[0], ALL[3], "signed").total)
    found = torch.tensor(totals)
    assert abs(float(found.mean()) - 1.3776) < 4 * float(found.std()) / 150**0.5 + 0.01


def test_common_noise_makes_the_difference_certain_and_errors_are_what_they_say() -> None:
    model = five_pixels()

    def spread(repeats: int = 60, **how: bool) -> tuple[float, float]:
        runs = [finished(model, X, ALL, Sampling(nodes=100, seed=s, **how), chunk=400) for s in range(repeats)]
        found = [r.contrast(ALL[0], ALL[3], "signed") for r in runs]
        totals = torch.tensor([f.total for f in found])
        said_ = torch.tensor([f.total_error for f in found])
        return float(totals.std()), float(said_.square().mean().sqrt())

    independent, _ = spread(common=False, stratified=False, antithetic=False)
    common, stated = spread()
    assert independent / common >= 4  # a variance at least 16 times smaller
    assert 0.7 < stated / common < 1.4
    plain, stated = spread(stratified=False, antithetic=False)
    assert 0.7 < stated / plain < 1.4 and common < plain


@pytest.fixture(scope="module")
def pair():
    return finished(five_pixels(), X, ALL, Sampling(nodes=64), chunk=64)


def test_signed_information_obeys_the_chain_rule(pair) -> None:
    nothing, a, _, both = ALL
    whole = pair.contrast(nothing, both, "signed").map
    torch.testing.assert_close(
        whole, pair.contrast(nothing, a, "signed").map + pair.contrast(a, both, "signed").map, rtol=0, atol=1e-6
    )


def test_a_contrast_with_itself_is_nothing_and_orthogonal_is_never_negative(pair) -> None:
    for estimator in ("signed", "orthogonal"):
        assert pair.contrast(ALL[1], ALL[1], estimator).map.abs().max() == 0
    assert pair.contrast(ALL[0], ALL[3]).map.min() >= 0


@pytest.mark.parametrize("rule", ["min", "pointwise"])
def test_atoms_add_up_to_the_joint_information(pair, rule: str) -> None:
    found = decompose(pair, Quad(*ALL), rule=rule, surprisal=(1.2, 3.7))
    torch.testing.assert_close(found.maps.joint(), found.ab.map, rtol=0, atol=1e-12)
    assert float(found.localised.joint()) == pytest.approx(found.ab.total, abs=1e-9)
    assert float(found.image.joint()) == pytest.approx(found.signed[2].total, abs=1e-9)
    if rule == "min":
        assert min(m.min() for m in (found.maps.redundant, found.maps.unique_a, found.maps.unique_b)) >= 0


def test_the_pointwise_rule_is_the_larger_information_less_what_makes_a_word_unlikely() -> None:
    one, other, both = torch.rand(3, 50, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    h1, h2 = 0.3, 0.5
    found = atoms(one, other, both, "pointwise", (h1, h2))
    r = min(h1, h2) - torch.minimum(h1 - one, h2 - other)
    torch.testing.assert_close(found.redundant, r, rtol=0, atol=1e-12)
    equal = atoms(one, other, both, "pointwise")
    assert torch.equal(equal.redundant, torch.maximum(one, other)) and equal.unique_a.max() <= 0
    small = atoms(one / 100, other / 100, both / 100, "pointwise", (1.2, 3.7))
    assert torch.equal(small.redundant, one / 100)  # a copy of the likelier word's map


def test_two_words_that_share_no_pixel_are_not_redundant_but_their_totals_seem_so() -> None:
    base = five_pixels()
    model = Mixture(base.means[..., :2].contiguous(), 0.5, base.words)
    readings = finished(model, X[..., :2], ALL, Sampling(nodes=100, noises=8), chunk=400)
    found = decompose(readings, Quad(*ALL))
    assert float(found.localised.redundant) < 0.02 and float(found.image.redundant) > 0.5


def test_a_band_of_log_snrs_is_a_part_of_the_whole(pair) -> None:
    nothing, both = ALL[0], ALL[3]
    low, high = (pair.contrast(nothing, both, "signed", band=b).total for b in ((-99.0, 0.0), (0.0, 99.0)))
    assert low + high == pytest.approx(pair.contrast(nothing, both, "signed").total, abs=1e-9)
    assert pair.contrast(nothing, both, band=(50.0, 60.0)).total == 0


def test_word_probabilities() -> None:
    assert surprisals(["a", "b"]) == (0.0, 0.0)
    assert surprisals(["Cat"], {"cat": 0.5}) == pytest.approx((0.693147,))
    assert surprisals(["a", "b"], [0.1, 1.0]) == pytest.approx((2.302585, 0.0))
    for bad in ({"cat": 0.5}, [0.5], [0.0, 0.5], [2.0, 0.5]):
        with pytest.raises(ValueError, match=r"robabilit"):
            surprisals(["a", "b"], bad)
    with pytest.raises(ValueError, match="min, pointwise"):
        atoms(X, X, X, "other")


def test_the_table_of_all_pairs() -> None:
    prompt = Prompt("a b")
    asked = plan(prompt, prompt.words, context=False)
    readings = finished(five_pixels(), X, asked.conditionings, Sampling(nodes=100, noises=4), chunk=400)
    found = matrix(readings, asked)
    assert found["redundant"].shape == (2, 2) and torch.isnan(found["redundant"][0, 0])
    assert found["redundant"][0, 1] == found["redundant"][1, 0]
    both = decompose(readings, asked.pairs[0, 1])
    assert float(found["unique"][0, 1]) == pytest.approx(float(both.localised.unique_a))
    assert torch.all((found["alone"] - 0.69).abs() < 4 * found["error"] + 0.02)


def test_a_word_that_is_not_in_the_picture_is_called_contradicted() -> None:
    x = five_pixels().means[1]  # b = -1
    readings = finished(five_pixels(), x, ALL, Sampling(nodes=100), chunk=400)
    signed, orthogonal = (readings.contrast(ALL[1], ALL[3], e) for e in ("signed", "orthogonal"))
    assert contradicted(signed, orthogonal) and signed.total < -1 < 1 < orthogonal.total
    right = finished(five_pixels(), X, ALL, Sampling(nodes=100), chunk=400)
    assert not contradicted(*(right.contrast(ALL[1], ALL[3], e) for e in ("signed", "orthogonal")))
    found = right.contrast(ALL[1], ALL[3], "signed")
    assert not unsure(found)[0, 1] and unsure(dataclasses.replace(found, error=found.map.abs() * 0.6))[0, 1]


def test_what_cannot_be_asked_is_refused_in_a_sentence(pair) -> None:
    model, readings = Network(), start(Network(), Sampling(nodes=4))
    with pytest.raises(ValueError, match=r"\(2, 8, 8\), not \(2, 9, 8\)"):
        next(measure(model, torch.zeros(2, 9, 8), ALL, readings))
    with pytest.raises(ValueError, match="latent holds numbers that are not finite"):
        next(measure(model, PICTURE / 0, ALL, start(model, Sampling(nodes=4))))
    done = finished(model, PICTURE, ALL[:1], Sampling(nodes=4))
    with pytest.raises(ValueError, match="of another picture"):
        next(measure(model, PICTURE + 1, ALL[:1], done))

    class Overflowing(Network):
        def noise(self, z, alpha, encoded):
            return super().noise(z, alpha, encoded) * float("inf")

    with pytest.raises(ValueError, match="half precision overflows"):
        next(measure(Overflowing(), PICTURE, ALL, start(model, Sampling(nodes=4))))
    with pytest.raises(ValueError, match="At least one conditioning"):
        next(measure(model, PICTURE, [], readings))
    with pytest.raises(ValueError, match="even number"):
        Sampling(nodes=3)
    with pytest.raises(ValueError, match="Too little"):
        readings.contrast(Conditioning("x"), Conditioning("y"))
    with pytest.raises(ValueError, match="signed, orthogonal"):
        pair.contrast(ALL[0], ALL[1], "other")
    with pytest.raises(ValueError, match="No attention"):
        pair.attention_map(ALL[0], [0])
