"""What holds of the statistics whatever the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from headcount import stats
from headcount.rooms.agreement.ranks import rank_agreement

COUNTS = arrays(
    np.int64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.integers(0, 9)
)
P_VALUES = arrays(
    np.float64,
    array_shapes(max_dims=2, max_side=12),
    elements=st.one_of(st.floats(0, 1), st.just(np.nan)),
)
FEW = settings(max_examples=60, deadline=None)


def with_arcs(hits: np.ndarray) -> np.ndarray:
    """Hits and arcs, an arc or more in every sentence."""
    return np.stack([hits, hits + 1 + np.arange(len(hits))[:, None] % 3], axis=-1)


def sums(counts: np.ndarray) -> tuple[np.ndarray, ...]:
    x, n = counts[..., 0], counts[..., 1]
    return tuple(part.sum(axis=0) for part in (x, n, x * x, x * n, n * n, n > 0))


@FEW
@given(COUNTS, st.randoms(use_true_random=False))
def test_the_order_of_sentences_never_shows_in_closed_forms(
    hits: np.ndarray, random: object
) -> None:
    order = random.sample(range(len(hits)), len(hits))
    ours, theirs = with_arcs(hits), with_arcs(hits[::-1])
    assert np.array_equal(
        stats.ratio_interval(*sums(ours)), stats.ratio_interval(*sums(ours[order])), equal_nan=True
    )
    level = 0.999
    straight = stats.sign_flip_scores(ours, theirs, level=level, correction="none")
    mixed = stats.sign_flip_scores(ours[order], theirs[order], level=level, correction="none")
    assert np.allclose(straight, mixed, rtol=0, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_sentences_shows_in_draws_as_chance_only(random: object) -> None:
    rng = np.random.default_rng(random.randrange(10**6))
    arcs = rng.integers(1, 6, (50, 1))
    counts = np.stack([rng.binomial(arcs, 0.5), arcs], axis=-1)
    order = rng.permutation(50)
    straight, mixed = stats.bootstrap_interval(counts), stats.bootstrap_interval(counts[order])
    assert straight.value == mixed.value
    assert np.allclose(straight, mixed, atol=0.012)


@FEW
@given(COUNTS, st.data())
def test_split_and_merge_give_the_same_interval(hits: np.ndarray, data: st.DataObject) -> None:
    counts = with_arcs(hits)
    cut = data.draw(st.integers(0, len(counts)))
    merged = [a + b for a, b in zip(sums(counts[:cut]), sums(counts[cut:]), strict=True)]
    assert np.array_equal(
        stats.ratio_interval(*merged), stats.ratio_interval(*sums(counts)), equal_nan=True
    )


@FEW
@given(COUNTS)
def test_a_heads_interval_does_not_depend_on_its_company(hits: np.ndarray) -> None:
    counts = with_arcs(hits)
    together = stats.bootstrap_interval(counts, draws=60)
    alone = stats.bootstrap_interval(counts[:, 0], draws=60)
    ends = [together.low[0], together.high[0]]
    assert np.allclose(ends, [alone.low, alone.high], rtol=0, atol=1e-12)


@FEW
@given(COUNTS)
def test_swapping_the_systems_turns_the_difference_round(hits: np.ndarray) -> None:
    ours, theirs = with_arcs(hits), with_arcs(hits[::-1])
    options = {"draws": 60, "level": 0.999, "correction": "none"}
    one = stats.bootstrap_difference(ours, theirs, **options)
    two = stats.bootstrap_difference(theirs, ours, **options)
    assert np.allclose(one.value, -two.value)
    assert np.allclose(one.low, -two.high)
    assert np.allclose(one.p, two.p)
    up = stats.sign_flip_scores(ours, theirs, alternative="greater", **options)
    down = stats.sign_flip_scores(theirs, ours, alternative="less", **options)
    assert np.allclose(up.p, down.p)


@FEW
@given(COUNTS)
def test_intervals_hold_the_value_and_p_lies_in_0_to_1(hits: np.ndarray) -> None:
    counts = with_arcs(hits)
    for found in (
        stats.ratio_interval(*sums(counts)),
        stats.wilson_interval(*sums(counts)[:2]),
    ):
        assert np.all((found.low <= found.value + 1e-12) & (found.value <= found.high + 1e-12))
    p = stats.sign_flip(hits - hits[::-1], level=0.999, correction="none", draws=60).p
    assert np.all((p > 0) & (p <= 1))


@given(P_VALUES)
def test_holm_is_above_bh_is_above_p(p: np.ndarray) -> None:
    known = ~np.isnan(p)
    holm, bh = stats.holm(p), stats.benjamini_hochberg(p)
    assert np.array_equal(np.isnan(holm), ~known)
    assert np.array_equal(np.isnan(bh), ~known)
    slack = 1e-12
    assert np.all(holm[known] + slack >= bh[known])
    assert np.all(bh[known] + slack >= p[known])
    assert np.all(holm[known] <= 1)


@given(P_VALUES)
def test_corrections_keep_the_order(p: np.ndarray) -> None:
    flat = p.ravel()
    order = np.argsort(flat)
    for correct in (stats.holm, stats.benjamini_hochberg):
        known = correct(flat)[order][~np.isnan(flat[order])]
        assert np.all(np.diff(known) >= 0)


@FEW
@given(
    arrays(np.int64, 12, elements=st.integers(-5, 5)),
    st.sampled_from(["spearman", "kendall", "pearson"]),
)
def test_agreement_is_symmetric_and_bounded(scores: np.ndarray, kind: str) -> None:
    other = np.arange(12) % 5
    one = rank_agreement(scores, other, kind, draws=50)
    two = rank_agreement(other, scores, kind, draws=50)
    assert np.allclose(one[:3], two[:3], equal_nan=True)
    if not one.note:
        assert -1 <= one.low <= one.high <= 1
        assert -1 <= one.value <= 1
    else:
        assert np.ptp(scores) == 0
