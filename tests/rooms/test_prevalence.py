"""How many heads there are of a strength: a figure that does not grow with the sample."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.errors import UsageError
from headcount.records import HeadTable
from headcount.rooms.nulls import prevalence_frame, prevalence_of


def drawn(seed: int, error: float) -> tuple[np.ndarray, np.ndarray]:
    """100 heads, of which 30 are truly 0.2 and the others spread below 0."""
    rng = np.random.default_rng(seed)
    true = np.concatenate([np.full(30, 0.2), rng.uniform(-0.2, 0, 70)])
    return true + rng.normal(0, error, 100), np.full(100, error)


def test_the_count_is_the_same_for_small_and_large_samples_where_significances_grow() -> None:
    counts, significant = {}, {}
    for error in (0.08, 0.02):
        found = [drawn(seed, error) for seed in range(4)]
        counts[error] = np.mean([prevalence_of(*one, 0.1).count for one in found])
        significant[error] = np.mean([(one / size > 3.3).sum() for one, size in found])
    assert counts[0.02] == pytest.approx(30, abs=1.5)
    assert counts[0.08] == pytest.approx(30, abs=6)
    assert significant[0.08] < 15 < 29 < significant[0.02]


def test_the_interval_holds_the_truth_and_a_smaller_sample_finds_less() -> None:
    held = 0
    for seed in range(6):
        found = prevalence_of(*drawn(seed, 0.04), 0.1, seed=seed)
        held += found.low <= 30 <= found.high
    assert held >= 5
    fine, coarse = (prevalence_of(*drawn(0, error), 0.1).detectable for error in (0.02, 0.08))
    assert coarse == pytest.approx(4 * fine)
    # 80% power at Holm's first step over 100 heads: (3.29 + 0.84) errors.
    assert fine == pytest.approx(4.13 * 0.02, rel=0.01)


def test_too_few_effects_are_refused() -> None:
    with pytest.raises(UsageError, match="1 effects with an error are too few"):
        prevalence_of([0.1, np.nan], [0.1, 0.1])


def test_a_survey_says_how_many_heads_there_are(relations_table: HeadTable) -> None:
    frame = prevalence_frame(relations_table)
    assert frame["stack"].tolist() == ["enc"]
    (said,) = frame["sentence"]
    assert said.startswith("enc: about ")
    assert "of 8 heads" in said


@pytest.fixture(scope="module")
def relations_table() -> HeadTable:
    from subjects import subject_of

    import headcount as hc
    from headcount.text import read_sample

    encoder = subject_of("bert", "wordpiece")
    trees = list(read_sample())
    rules = hc.RoleOptions(roles=[hc.roles.Syntactic()], nulls=False)
    return hc.survey(encoder, treebank=trees, roles=rules, columns=[])
