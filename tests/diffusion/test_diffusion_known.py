"""Toys whose information is known exactly: estimators, heads, maps, atoms."""

from __future__ import annotations

import math

import pytest
import torch
from diffusion_toys import Linear, five_pixels, quadrature, said, sum_of_two

from fanlight_models.diffusion import Law, Sampling, decompose, finished
from fanlight_models.diffusion.atoms import atoms
from fanlight_models.diffusion.heads import HEADS, flow_time
from fanlight_models.diffusion.plan import Quad

SUM = [
    # x, base, full, exact log-ratio, signed, orthogonal, signed over the range of Stable Diffusion
    (2.0, "", "a", 0.692812, 0.692744, 0.139958, 0.685808),
    (2.0, "", "a b", 1.385624, 1.385533, 1.021337, 1.376256),
    (2.0, "a", "a b", 0.692812, 0.692789, 0.435504, 0.690448),
    (1.0, "", "a", 0.287682, 0.287665, 0.272181, 0.286070),
    (1.0, "", "a b", 0.287682, 0.287638, 4.147776, 0.281698),
]


@pytest.mark.parametrize(("x", "base", "full", "exact", "signed", "orthogonal", "narrow"), SUM)
def test_a_sum_of_two_signs_by_quadrature(x, base, full, exact, signed, orthogonal, narrow) -> None:
    model = sum_of_two()
    found = quadrature(model, x, base, full, nodes=1101)
    assert found[0] == pytest.approx(signed, abs=2e-6) and found[1] == pytest.approx(orthogonal, abs=2e-6)
    assert abs(found[0] - exact) <= 1e-3
    less, more = model.log_likelihood(torch.full((1, 1, 1), x, dtype=torch.float64), said(base, full)).tolist()
    assert more - less == pytest.approx(exact, abs=1e-6)
    assert quadrature(model, x, base, full, (-5.364, 7.069), 625)[0] == pytest.approx(narrow, abs=1e-4)


def test_pointwise_atoms_of_the_sum() -> None:
    one, both = torch.tensor(0.692812), torch.tensor(1.385624)
    found = atoms(one, one, both, "pointwise", (math.log(2), math.log(2)))
    assert [round(float(v), 6) for v in (found.redundant, found.unique_a, found.unique_b, found.synergy)] == [
        0.692812, 0, 0, 0.692812,
    ]  # fmt: skip
    r_plus, r_minus = math.log(2), math.log(2) - 0.692812
    assert float(found.redundant) == pytest.approx(r_plus - r_minus, abs=1e-6)
    low = atoms(torch.tensor(0.287682), torch.tensor(0.287682), torch.tensor(0.287682), "pointwise")
    assert float(low.redundant) == pytest.approx(0.287682) and float(low.synergy) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(
    ("drawn", "base", "full", "exact", "signed", "orthogonal"),
    [
        ("a b", "", "a b", 1.297610, 1.297514, 1.297407),
        ("a b", "a", "a b", 0.632689, 0.632663, 0.632705),
        ("a b", "", "a", 0.664921, 0.664851, 0.150393),
        ("a", "", "a", 0.322263, 0.322239, 0.322215),
    ],
)
def test_the_orthogonal_estimator_is_calibrated_only_where_the_informed_side_drew_the_picture(
    drawn, base, full, exact, signed, orthogonal
) -> None:
    model = sum_of_two()
    points = torch.linspace(-5, 7, 61, dtype=torch.float64)
    centres = torch.tensor({"a b": [2.0], "a": [2.0, 0.0]}[drawn], dtype=torch.float64)
    density = torch.exp(-((points[:, None] - centres) ** 2) / 0.5).mean(1) / math.sqrt(0.5 * math.pi)
    found = torch.tensor(
        [quadrature(model, float(x), base, full, nodes=221, hermite=40) for x in points], dtype=torch.float64
    )
    mean = torch.trapezoid(found * density[:, None], points, dim=0).tolist()
    assert mean[0] == pytest.approx(signed, abs=3e-4) and mean[1] == pytest.approx(orthogonal, abs=3e-4)
    assert abs(mean[0] - exact) < 1e-3


def test_the_gaussian_is_exact_through_every_head() -> None:
    for base, full, exact in (("", "A", 0.693893), ("", "A B", 1.473612)):
        found = [quadrature(Linear(head), 1.5, base, full, (-24, 30), 541, 24) for head in HEADS]
        for signed, orthogonal in found:
            assert signed == pytest.approx(exact, abs=2e-6)
            assert (signed, orthogonal) == pytest.approx(found[0], abs=1e-9)


def test_the_integral_of_flow_matching_over_its_own_time() -> None:
    """o = int ((1 - s) / s) E |du|^2 ds, du the difference of two predicted velocities."""
    model, alphas = Linear(), torch.linspace(-24, 30, 4001, dtype=torch.float64)
    s = flow_time(alphas)
    _, orthogonal = quadrature(model, 1.5, "", "A", (-24, 30), 4001, 24)
    points = torch.linspace(-9, 9, 181, dtype=torch.float64)
    density = torch.exp(-(points**2) / 2) / math.sqrt(2 * math.pi)
    alpha, eps = alphas.repeat_interleave(181), points.repeat(4001).view(-1, 1, 1, 1)
    g = torch.sigmoid(alpha).view(-1, 1, 1, 1)
    z = g.sqrt() * 1.5 + (1 - g).sqrt() * eps
    less, more = (
        model.noise(z, alpha, {k: v.expand(len(z)) for k, v in model.encode(said(t)).items()}) for t in ("", "A")
    )
    du = (less - more).flatten().view(4001, 181) / (1 - s)[:, None]  # eps^ = z' + (1 - s) u^
    squared = torch.trapezoid(du**2 * density, points, dim=1)
    over_s = float(torch.trapezoid((1 - s) / s * squared, s).abs())
    assert over_s == pytest.approx(orthogonal, abs=1e-4)


QUAD = Quad(*said("", "a", "b", "a b"))
X = torch.tensor([1.0, 1, 1, 1, 0], dtype=torch.float64).view(1, 1, 5)


@pytest.fixture(scope="module")
def converged():
    return finished(five_pixels(), X, said("", "a", "b", "a b"), Sampling(nodes=200, noises=200, seed=1), chunk=4096)


def test_five_pixels_are_mapped_and_their_roles_recovered(converged) -> None:
    maps = {
        ("", "a"): [0.440, 0.090, 0.042, 0.127, 0],
        ("", "b"): [0.091, 0.438, 0.042, 0.128, 0],
        ("", "a b"): [0.440, 0.438, 0.042, 0.475, 0],
        ("a", "a b"): [0, 0.348, 0, 0.347, 0],
    }
    for (base, full), wanted in maps.items():
        found = converged.contrast(*said(base, full), "signed")
        torch.testing.assert_close(found.map[0], torch.tensor(wanted, dtype=torch.float64), atol=0.015, rtol=0)
    split = decompose(converged, QUAD, estimator="signed").maps
    for atom, wanted in (
        (split.redundant, [0.091, 0.090, 0.042, 0.127, 0]),
        (split.unique_a, [0.349, 0, 0, 0, 0]),
        (split.unique_b, [0, 0.348, 0, 0, 0]),
        (split.synergy, [0, 0, 0, 0.347, 0]),
    ):
        torch.testing.assert_close(atom[0], torch.tensor(wanted, dtype=torch.float64), atol=0.015, rtol=0)


def test_the_totals_are_the_exact_log_ratios_within_their_errors(converged) -> None:
    model = five_pixels()
    for base, full in (("", "a"), ("", "b"), ("", "a b"), ("a", "a b")):
        less, more = model.log_likelihood(X, said(base, full)).tolist()
        found = converged.contrast(*said(base, full), "signed")
        assert abs(found.total - (more - less)) < 4 * found.total_error + 0.01 and found.total_error < 0.05


def test_on_average_both_estimators_agree_and_an_absent_word_is_told_apart_by_the_sign_alone() -> None:
    model, generator = five_pixels(), torch.Generator().manual_seed(0)

    def mean(component: int, base: str, full: str, count: int = 800) -> tuple[torch.Tensor, torch.Tensor]:
        noise = torch.randn(count, 1, 1, 5, generator=generator, dtype=torch.float64)
        sums = torch.zeros(2, 5, dtype=torch.float64)
        sampling = Sampling(nodes=24, law=Law(1, 2, -7, 9))
        for n, x in enumerate(model.means[component] + 0.5 * noise):
            readings = finished(model, x, said(base, full), Sampling(24, law=sampling.law, seed=n), chunk=48)
            sums += torch.stack([readings.contrast(*said(base, full), e).map[0] for e in ("signed", "orthogonal")])
        return sums[0] / count, sums[1] / count

    signed, orthogonal = mean(0, "a", "a b")  # component 0: a = b = +1
    wanted = torch.tensor([0, 0.347, 0, 0.346, 0], dtype=torch.float64)
    torch.testing.assert_close(signed, wanted, atol=0.05, rtol=0)
    torch.testing.assert_close(orthogonal, wanted, atol=0.05, rtol=0)
    signed, orthogonal = mean(1, "a", "a b", 200)  # b = -1, scored for b = +1
    assert float(signed.sum()) < -4 and float(orthogonal.sum()) > 4
