"""Families: maps, clusters, nearest heads, and heads of one layer lying together."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.records.heads import Head
from headcount.rooms.families.grouping import (
    Families,
    StackPairs,
    families_of,
    family_sentences,
    head_clusters,
    mds_places,
    nearest_pairs,
)


def distances(places: np.ndarray) -> np.ndarray:
    return np.linalg.norm(places[:, None] - places[None], axis=-1)


@pytest.fixture(scope="module")
def found() -> Families:
    """Three layers of four heads; layers lie apart. And two cross heads."""
    noise = np.random.default_rng(0)
    places = np.repeat([[0, 0], [5, 0], [0, 5]], 4, axis=0) + noise.normal(0, 0.3, (12, 2))
    heads = tuple(Head("enc", layer, index) for layer in range(3) for index in range(4))
    cross = (Head("cross", 0, 0), Head("cross", 0, 1))
    pairs = {
        "enc": StackPairs(heads, distances(places) * 10, 10),
        "cross": StackPairs(cross, np.array([[0, 6.0], [6.0, 0]]), 20),
    }
    return families_of([*heads, *cross], pairs)


def test_a_plane_is_found_again() -> None:
    places = np.random.default_rng(1).normal(size=(15, 2))
    again, stress = mds_places(distances(places))
    assert stress < 1e-3
    np.testing.assert_allclose(distances(again), distances(places), atol=0.01)
    np.testing.assert_array_equal(again, mds_places(distances(places))[0])


@pytest.mark.parametrize("count", [1, 2])
def test_a_map_of_few_heads(count: int) -> None:
    places, stress = mds_places(1.5 * (1 - np.eye(count)))
    assert places.shape == (count, 2)
    assert stress < 1e-3
    assert head_clusters(1.5 * (1 - np.eye(count))).tolist() == [0] * count


def test_no_structure_is_one_cluster() -> None:
    noise = np.random.default_rng(4)
    assert head_clusters(distances(noise.normal(size=(40, 20)))).max() == 0


def test_means_clusters_and_layers(found: Families) -> None:
    assert found.js[0, 1] == pytest.approx(found.js_sum[0, 1] / 10)
    assert found.tokens.tolist() == [10] * 12 + [20] * 2
    assert found.cluster.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [0, 0]
    assert found.silhouette[0] > found.silhouette_shuffled[0, 1]
    assert found.silhouette_p[0] < 0.001
    assert np.isnan(found.silhouette[1])  # one layer


def test_stacks_are_not_compared(found: Families) -> None:
    assert np.isnan(found.js[:12, 12:]).all()
    assert found.nearest[12].tolist() == [13, -1, -1, -1, -1, -1]
    assert [str(head) for head, _ in found.near("cross.0.1")] == ["cross.0.0"]
    near = found.near("enc.1.0", 3)
    assert {head.layer for head, _ in near} == {1}
    assert [js for _, js in near] == sorted(js for _, js in near)


def test_all_of_it_as_arrays(found: Families) -> None:
    arrays = found.arrays()
    assert arrays.keys() == vars(found).keys() - {"provenance"}
    assert arrays["heads"].tolist() == [str(head) for head in found.heads]
    np.testing.assert_array_equal(arrays["nearest"], found.nearest)


def test_it_is_told_in_sentences(found: Families) -> None:
    first, second = family_sentences(found)
    assert first.startswith("enc: 12 heads in 3 clusters; stress of the map 0.0")
    assert "p < 0.0005" in first
    assert second.startswith("cross: 2 heads in no clear clusters")
    assert len(nearest_pairs(found, 5)) == 5
    assert len(nearest_pairs(found, 500)) == 12 * 11 // 2 + 1
