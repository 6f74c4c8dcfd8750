"""Groups of maps: planted ones are found, numbers agree with naive twins, one seed gives one answer."""

from __future__ import annotations

import numpy as np
import pytest

from fanlight import patterns


def blobs(centres: np.ndarray, each: int, spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = np.concatenate([c + spread * rng.normal(size=(each, centres.shape[1])) for c in centres])
    truth = np.repeat(np.arange(len(centres)), each)
    order = rng.permutation(len(points))
    return points[order], truth[order]


@pytest.mark.parametrize("k", [2, 3, 5, 7])
def test_planted_groups_are_found_and_counted(k: int) -> None:
    centres = np.random.default_rng(k).normal(size=(k, 10)) * 4
    points, truth = blobs(centres, 40, 0.3)
    found = patterns.grouped(points)
    assert len(found.centre) == k and found.silhouette is not None and found.silhouette > 0.6
    assert max(found.tried, key=lambda n: found.tried[n]) == k
    for g in range(k):
        assert len(set(truth[found.label == g])) == 1


def test_groups_of_many_points_are_found_on_a_part_and_the_others_join_the_nearest() -> None:
    centres = np.random.default_rng(0).normal(size=(3, 6)) * 5
    points, truth = blobs(centres, 1500, 0.4)
    found = patterns.grouped(points)
    assert len(found.centre) == 3 and len(found.label) == 4500 and found.measured == patterns.MEASURED
    assert all(len(set(truth[found.label == g])) == 1 for g in range(3))


def test_the_same_maps_give_the_same_groups_the_largest_first() -> None:
    points = np.random.default_rng(5).normal(size=(120, 8))
    a, b = patterns.grouped(points, 3), patterns.grouped(points, 3)
    assert (a.label == b.label).all() and (a.centre == b.centre).all()
    sizes = np.bincount(a.label)
    assert (np.diff(sizes) <= 0).all()


def test_a_cloud_without_groups_has_a_low_silhouette_and_few_or_equal_maps_are_not_grouped() -> None:
    cloud = patterns.grouped(np.random.default_rng(1).normal(size=(400, 20)))
    assert cloud.silhouette is not None and cloud.silhouette < 0.25
    for points in (np.random.default_rng(1).normal(size=(patterns.LEAST - 1, 4)), np.ones((50, 4))):
        alone = patterns.grouped(points)
        assert alone.silhouette is None and set(alone.label) == {0}


def test_silhouettes_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(2)
    points, label = rng.normal(size=(30, 3)), rng.integers(0, 4, 30)
    label[label == 3] = 2
    label[0] = 3  # alone
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)

    def naive(i: int) -> float:
        own = [apart[i, j] for j in range(30) if label[j] == label[i] and j != i]
        if not own:
            return 0.0
        others = [
            np.mean([apart[i, j] for j in range(30) if label[j] == g])
            for g in range(4)
            if g != label[i] and (label == g).any()
        ]
        a, b = np.mean(own), min(others)
        return float((b - a) / max(a, b))

    assert patterns.silhouettes(apart, label, 4) == pytest.approx([naive(i) for i in range(30)])


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    points = np.random.default_rng(3).normal(size=(60, 7)) * np.arange(1, 8)
    at, share = patterns.components(points)
    middle = points - points.mean(0)
    u, s, _ = np.linalg.svd(middle, full_matrices=False)
    assert np.abs(at) == pytest.approx(np.abs(u[:, :2] * s[:2]))
    assert share == pytest.approx(tuple((s**2 / (s**2).sum())[:2]))
    assert patterns.components(points[::-1])[0][::-1] == pytest.approx(at)
    flat, none = patterns.components(np.ones((5, 4)))
    assert not flat.any() and none == (0, 0)


def test_a_reduced_map_says_where_and_not_how_much() -> None:
    maps = np.zeros((3, 28, 28))
    maps[0, :4, :4] = 3.0
    maps[1, :4, :4] = 30.0
    found = patterns.reduced(maps)
    assert found[0] == pytest.approx(found[1]) and found[0].argmax() == 0
    assert np.linalg.norm(found[0]) == pytest.approx(1) and not found[2].any()
