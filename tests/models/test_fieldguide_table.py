"""The field guide's table: does the world keep what it promises of its probabilities, and is there something left to infer?"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from fanlight_models.worlds.fieldguide import COUPLED, FAMILIES, GROUPS, SPECIES, measures, posterior, table


@pytest.fixture(scope="module")
def birds():
    return table.sample(24_000, seed=11)


def test_there_are_enough_species_families_and_concepts():
    assert (len(SPECIES), len(FAMILIES)) == (24, 6)
    assert len(table.CONCEPTS) >= 48
    assert len(set(table.CONCEPTS)) == len(table.CONCEPTS)


def test_probabilities_sum_to_one_and_every_value_is_possible():
    assert table.prior().sum() == pytest.approx(1, abs=1e-12)
    for p in table.probabilities():
        np.testing.assert_allclose(p.sum(2), 1, atol=1e-12)
        assert (p > 0).all()


def test_species_share_values_within_their_family_and_across_families():
    adult = table.typical()[:, 0]
    for family in range(len(FAMILIES)):
        members = adult[np.array(table.FAMILY_OF) == family]
        shared = [len(set(members[:, g])) < len(members) for g in range(len(GROUPS))]
        assert sum(shared) >= 0.8 * len(GROUPS)
    deciding = [c for g in range(len(GROUPS)) for c in set(adult[:, g]) if (adult[:, g] == c).sum() == 1]
    assert len(deciding) <= 2, "a single concept hardly ever names the species"


def test_frequencies_of_labels_match_the_table(birds):
    species, state, values = birds
    n = len(species)
    found = table.vector(values).mean(0)
    expected = table.marginals()
    error = np.sqrt(expected * (1 - expected) / n)
    assert np.abs((found - expected) / error).max() < 4, "79 concepts, so one may be beyond three standard errors"
    assert (np.abs((found - expected) / error) < 3).mean() > 0.97
    p = 1 / len(SPECIES)
    assert np.abs(np.bincount(species, minlength=24) / n - p).max() < 3.5 * np.sqrt(p * (1 - p) / n)
    assert np.abs(np.bincount(state, minlength=8) / n - table.P_STATE).max() < 3 * 0.5 / np.sqrt(n)


def naive(values, known):
    """P(species | known groups) and P(concept | known groups) by adding up all 192 cases, one at a time."""
    species, concepts, total = np.zeros(24), np.zeros(len(table.CONCEPTS)), 0.0
    for s, z in itertools.product(range(24), range(8)):
        p = table.prior()[s, z]
        for g, q in enumerate(table.probabilities()):
            if known[g]:
                p *= q[s, z, values[g]]
        total += p
        species[s] += p
        concepts += p * np.concatenate(
            [np.eye(q.shape[2])[values[g]] if known[g] else q[s, z] for g, q in enumerate(table.probabilities())]
        )
    return species / total, concepts / total


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_posterior_is_that_of_enumeration(birds, share):
    values = birds[2][:5]
    known = np.random.default_rng(0).random(values.shape) < share
    belief = posterior.believe(values, known)
    for i in range(len(values)):
        species, concepts = naive(values[i], known[i])
        np.testing.assert_allclose(belief.species()[i], species, atol=1e-12)
        np.testing.assert_allclose(belief.concepts()[i], concepts, atol=1e-12)


def test_with_nothing_known_the_posterior_is_the_table():
    nothing = posterior.believe(np.zeros((1, len(GROUPS)), np.int64), np.zeros((1, len(GROUPS)), bool))
    np.testing.assert_allclose(nothing.concepts()[0], table.marginals(), atol=1e-12)


def test_the_covariance_of_the_table_is_that_of_its_birds(birds):
    nothing = posterior.believe(birds[2][:1], np.zeros((1, len(GROUPS)), bool))
    found = np.cov(table.vector(birds[2]).T.astype(np.float64), bias=True)
    assert np.abs(nothing.covariance() - found).max() < 4 * 0.25 / np.sqrt(len(birds[2]))


def test_with_everything_known_no_covariance_remains(birds):
    belief = posterior.believe(birds[2][:20], np.ones((20, len(GROUPS)), bool))
    assert np.abs(belief.covariance()).max() == 0


def test_what_hides_the_head_or_the_breast_leaves_their_concepts_correlated(birds):
    values = birds[2][:1000]
    for pair in COUPLED:
        known = np.ones(values.shape, bool)
        for group in (
            {"bill colour", "crown", "throat", "eye ring"} if "breast" not in pair else {"breast", "breast pattern"}
        ):
            known[:, table.GROUP[group]] = False
        assert abs(posterior.residual(posterior.believe(values, known))[pair]) > 0.2


def test_a_linear_probe_on_true_concepts_reaches_the_rate_of_the_table(birds):
    """The best classifier of species from concepts has a rate that the table gives; a linear one trained on them comes within sampling error."""
    torch.set_num_threads(1)
    species, _, values = birds
    cut = 20_000
    x, y = torch.from_numpy(table.vector(values)).float(), torch.from_numpy(species)
    probe = torch.nn.Linear(x.shape[1], len(SPECIES))
    torch.nn.init.zeros_(probe.weight)
    optimiser = torch.optim.LBFGS(probe.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def loss():
        optimiser.zero_grad()
        value = torch.nn.functional.cross_entropy(probe(x[:cut]), y[:cut]) + 1e-5 * probe.weight.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    rate = posterior.bayes_rate(values)
    assert 0.95 < rate < 0.999, "the table leaves something to doubt"
    reached = (probe(x[cut:]).argmax(1) == y[cut:]).float().mean().item()
    assert abs(reached - rate) < 3 * np.sqrt(rate * (1 - rate) / (len(y) - cut)) + 0.003


def test_the_rate_of_the_table_is_the_accuracy_of_its_best_guess(birds):
    species, _, values = birds
    rate = posterior.bayes_rate(values)
    right = posterior.believe(values, np.ones(values.shape, bool)).species().argmax(1) == species
    assert abs(right.mean() - rate) < 3 * np.sqrt(rate * (1 - rate) / len(species))


def test_correlation_of_a_covariance_is_bounded(birds):
    belief = posterior.believe(birds[2][:200], np.random.default_rng(1).random((200, len(GROUPS))) < 0.6)
    matrix = posterior.correlation(belief.covariance())
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    assert np.abs(matrix).max() <= 1 + 1e-9
    assert 0 < posterior.remaining(belief) < 1


def test_the_mean_gain_of_an_intervention_is_positive_where_groups_are_hidden_together(birds):
    species, _, values = (b[:400] for b in birds)
    seen = np.ones(values.shape, bool)
    for group in ("bill colour", "crown", "throat", "eye ring", "breast", "breast pattern"):
        seen[:, table.GROUP[group]] = False
    curves = posterior.intervene(values, seen, species)
    concepts, _ = curves.gain()
    assert measures.bootstrap(concepts)[1] > 0
    np.testing.assert_allclose(curves.concepts_joint[:, 0], curves.concepts_apart[:, 0])
