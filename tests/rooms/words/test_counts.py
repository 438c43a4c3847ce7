"""The statistics of relations: what is chosen where, what is tested, and what is told instead."""

from __future__ import annotations

import numpy as np
import pandas as pd

from headcount import stats
from headcount.records.heads import Head
from headcount.rooms.relations.relations import COLUMNS, relation_frame
from headcount.rooms.words.counts import HitsTest, RelationCounts, Unit, in_selection

QUICK = HitsTest(draws=100, support=20)


def counts(
    hits: np.ndarray, offsets: np.ndarray, arcs: np.ndarray | None = None, relation: str = "det"
) -> RelationCounts:
    """One relation and direction: hits ``[sentence, head]`` and ``[sentence, offset]``."""
    n, heads = hits.shape
    arcs = np.ones(n, np.int16) if arcs is None else arcs.astype(np.int16)
    return RelationCounts(
        heads=tuple(Head("enc", 0, index) for index in range(heads)),
        tried=tuple(range(-1, offsets.shape[1] - 1)),
        units=tuple(Unit.of(number, f"Sentence {number}.") for number in range(n)),
        unit=np.arange(n),
        labels=np.full(n, relation),
        arcs={"dep->head": arcs},
        hits={"dep->head": hits.astype(np.int16)},
        offsets={"dep->head": offsets.astype(np.int16)},
    )


def drawn(n: int = 400, heads: int = 6, rate: float = 0.3, seed: int = 0) -> RelationCounts:
    """Heads and offsets that all know nothing."""
    noise = np.random.default_rng(seed)
    return counts(noise.random((n, heads)) < rate, noise.random((n, 3)) < rate)


def rows(frame: pd.DataFrame, split: str, relation: str = "det") -> pd.DataFrame:
    return frame[(frame["split"] == split) & (frame["relation"] == relation)]


def test_the_promised_columns() -> None:
    frame = relation_frame([drawn()], QUICK)
    assert tuple(frame.columns) == COLUMNS
    assert set(frame["split"]) == {"select", "report", "all"}
    assert rows(frame, "report")["n"].iloc[0] + rows(frame, "select")["n"].iloc[0] == 400
    assert rows(frame, "all")["n"].iloc[0] == 400


def test_the_offset_is_chosen_on_one_half_and_judged_on_the_other() -> None:
    found = drawn()
    chosen = in_selection(found.units)
    hits = np.zeros((400, 3), int)
    hits[chosen, 1], hits[~chosen, 2] = 1, 1  # offset 0 is right on select, offset 1 on report
    frame = relation_frame([counts(found.hits["dep->head"], hits)], QUICK)
    assert rows(frame, "select")["offset"].iloc[0] == 0
    assert rows(frame, "select")["baseline"].iloc[0] == 1.0
    assert rows(frame, "report")["offset"].iloc[0] == 0
    assert rows(frame, "report")["baseline"].iloc[0] == 0.0
    naive = rows(frame, "all")["offset"].iloc[0]
    assert naive == (0 if chosen.mean() >= 0.5 else 1)


def test_the_head_is_chosen_on_one_half() -> None:
    found = drawn(heads=3)
    chosen = in_selection(found.units)
    hits = np.zeros((400, 3), int)
    hits[chosen, 0], hits[~chosen, 1] = 1, 1
    frame = relation_frame([counts(hits, found.offsets["dep->head"])], QUICK)
    assert rows(frame, "report")["selected"].tolist() == [True, False, False]
    assert rows(frame, "report")["accuracy"].tolist() == [0.0, 1.0, 0.0]
    assert not rows(frame, "all")["selected"].any()


def test_the_split_depends_on_the_text_and_the_seed_alone() -> None:
    units = [Unit.of(number, f"Sentence {number}.") for number in range(2000)]
    first = in_selection(units)
    assert 0.45 < first.mean() < 0.55
    moved = [Unit.of(number + 7, f"Sentence {number}.") for number in range(2000)]
    np.testing.assert_array_equal(in_selection(moved[::-1]), first[::-1])
    other = in_selection(units, seed=1)
    assert 0.4 < (first == other).mean() < 0.6


def test_equal_offsets_give_the_nearest() -> None:
    found = drawn()
    frame = relation_frame([counts(found.hits["dep->head"], np.ones((400, 4), int))], QUICK)
    assert set(frame["offset"]) == {0.0}


def test_intervals() -> None:
    frame = relation_frame([drawn()], HitsTest())
    assert (frame["low"] < frame["accuracy"]).all()
    assert (frame["accuracy"] < frame["high"]).all()
    assert (frame["high"] - frame["low"]).max() < 0.2


def test_bootstrap_intervals_are_those_of_stats() -> None:
    found = drawn()
    frame = relation_frame([found], HitsTest(draws=500, seed=3))
    pairs = np.stack([found.hits["dep->head"], np.ones((400, 6))], axis=-1)
    expected = stats.bootstrap_interval(pairs, draws=500, seed=3)
    np.testing.assert_allclose(rows(frame, "all")["low"], expected.low)
    np.testing.assert_allclose(rows(frame, "all")["high"], expected.high)


def test_p_is_the_paired_sign_flip_and_holm_is_over_all_tests() -> None:
    noise = np.random.default_rng(5)
    arcs = noise.integers(1, 4, 300)
    hits = noise.binomial(arcs[:, None], 0.5, (300, 4))
    offsets = noise.binomial(arcs[:, None], 0.4, (300, 2))
    found = counts(hits, offsets, arcs)
    frame = relation_frame([found], QUICK)
    report = ~in_selection(found.units)
    place = found.tried.index(int(rows(frame, "report")["offset"].iloc[0]))
    expected = stats.sign_flip_scores(
        np.stack([hits[report], np.repeat(arcs[report, None], 4, 1)], -1),
        np.stack([offsets[report, place], arcs[report]], -1),
        alternative="greater",
        correction="none",
    )
    np.testing.assert_allclose(rows(frame, "report")["p"], expected.p, atol=0.01)
    tested = frame[frame["p"].notna()]
    assert set(tested["split"]) == {"report"}
    assert len(tested) == 8  # 4 heads on det, and the same arcs again as all
    np.testing.assert_allclose(tested["p_adjusted"], stats.holm(tested["p"]))
    np.testing.assert_allclose(tested["p_bh"], stats.benjamini_hochberg(tested["p"]))


def test_a_false_claim_is_rare_where_nobody_knows_anything() -> None:
    claims = sum(
        bool((relation_frame([drawn(heads=20, seed=seed)], QUICK)["p_adjusted"] < 0.05).any())
        for seed in range(60)
    )
    assert claims <= 8  # 5% of 60, and chance


def test_what_is_rare_is_shown_and_not_tested() -> None:
    frame = relation_frame([drawn(60)], HitsTest(draws=100, support=100))
    assert frame["p"].isna().all()
    assert set(frame["note"]) == {"fewer than 100 arcs"}
    assert frame["accuracy"].notna().all()


def test_too_few_sentences_for_a_test_lose_nothing() -> None:
    few = drawn(12)
    many = counts(few.hits["dep->head"], few.offsets["dep->head"], np.full(12, 10))
    frame = relation_frame([many], HitsTest(draws=100))
    report = rows(frame, "report")
    assert report["p"].isna().all()
    assert report["p_adjusted"].isna().all()
    assert report["note"].str.contains("use at least").all()
    assert report["accuracy"].notna().all()
    assert report["low"].notna().all()


def test_one_sentence() -> None:
    one = counts(np.ones((1, 2), int), np.ones((1, 3), int))
    frame = relation_frame([one], HitsTest(support=1))
    assert frame["low"].isna().all()
    assert frame["p"].isna().all()
    assert (rows(frame, "all")["accuracy"] == 1).all()


def test_a_relation_that_one_half_lacks() -> None:
    found = drawn()
    report = ~in_selection(found.units)
    only = counts(found.hits["dep->head"], found.offsets["dep->head"], report)
    frame = relation_frame([only], QUICK)
    assert set(frame["split"]) == {"report", "all"}
    assert rows(frame, "report")["baseline"].isna().all()
    assert rows(frame, "report")["p"].isna().all()
    assert rows(frame, "all")["baseline"].notna().all()


def test_nothing_visible_at_all() -> None:
    nothing = counts(np.zeros((3, 2)), np.zeros((3, 3)), np.zeros(3))
    frame = relation_frame([nothing], QUICK)
    assert frame.empty
    assert tuple(frame.columns) == COLUMNS
