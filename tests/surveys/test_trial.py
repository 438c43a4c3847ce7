"""Marks become columns: intervals, chance, p values, and why there is none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from made import site_of
from tiny import TINY

from headcount import stats
from headcount.errors import ModelError
from headcount.models.subject import Subject
from headcount.records.columns import Column
from headcount.rooms.trials.inputs import measure_of
from headcount.surveys.trial import MEASURES, TRIALS, Finding, Findings, TrialCounts, trial_table

SUBJECT = Subject(TINY["marian"](), name="tiny")
SHARE = Column("share", range=(0, 1))


def found(examples: int, shares: list[float], chance: float, seed: int = 0) -> Finding:
    """Heads of the first decoder layer that hit with these chances, four cells an example."""
    noise = torch.Generator().manual_seed(seed)
    finding = Finding(SHARE, "a coin", skipped={"enc": "nobody asks"})
    site = SUBJECT.anatomy.site("dec", 0)
    hits = torch.stack(
        [(torch.rand(examples, 4, generator=noise) < one).sum(-1) for one in shares], dim=1
    )
    even = torch.full((examples,), 4.0)
    finding.counts.add(site, range(examples), hits.double(), chance * even, even)
    return finding


def test_values_intervals_chance_and_tests() -> None:
    finding = found(40, [0.9, 0.5, 0.1, 0.5], chance=0.5)
    table = trial_table(SUBJECT, [Findings([finding])])
    frame = table.details[TRIALS].set_index("head")
    counted = finding.counts.of(SUBJECT.anatomy.site("dec", 0))
    ours = np.stack([counted.hits, counted.cells], -1)
    test = stats.sign_flip_scores(
        ours, np.stack([counted.chance, counted.cells], -1), alternative="greater"
    )
    np.testing.assert_allclose(frame["value"], ours[..., 0].sum(0) / 160)
    np.testing.assert_allclose(frame["p"], test.p)
    np.testing.assert_allclose(frame["p_adjusted"], stats.holm(test.p))
    assert (frame["baseline"] == 0.5).all()
    assert (frame["n"] == 160).all()
    assert (frame["examples"] == 40).all()
    assert frame["p_adjusted"][0] < 0.01 < frame["p_adjusted"][2]
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["high"] <= 1).all()
    assert table.head("dec.0.0")["share"] == frame["value"][0]
    assert table.head("dec.1.0")["share"] is None


def test_stacks_that_were_not_asked_say_why() -> None:
    table = trial_table(SUBJECT, [Findings([found(20, [0.5] * 4, 0.5)])])
    assert table.notes == {"share": "enc: nobody asks"}


def test_too_few_examples_give_no_test_and_say_so() -> None:
    table = trial_table(SUBJECT, [Findings([found(5, [0.9] * 4, 0.5)])])
    frame = table.details[TRIALS]
    assert frame["p"].isna().all()
    assert frame["value"].notna().all()
    assert table.notes["share"].startswith("no test: A one-sided paired test on 5 sentences gives")


def test_examples_without_a_case_give_no_value_and_say_so() -> None:
    finding = Finding(SHARE, "a coin")
    site = SUBJECT.anatomy.site("cross", 0)
    nothing = torch.zeros(20)
    finding.counts.add(site, range(20), torch.zeros(20, 4), nothing, nothing)
    table = trial_table(SUBJECT, [Findings([finding])])
    assert table.frame["share"].isna().all()
    assert table.notes["share"] == "cross: no example has a case of it"
    assert not len(table.details[TRIALS])


def test_attention_that_is_no_number_is_refused() -> None:
    finding = Finding(SHARE, "a coin")
    bad = torch.full((2, 4), torch.nan)
    finding.counts.add(SUBJECT.anatomy.site("dec", 1), [0, 1], bad, torch.ones(2), torch.ones(2))
    with pytest.raises(ModelError, match=r"The attention at dec.1 of tiny is not a number"):
        trial_table(SUBJECT, [Findings([finding])])


def test_what_the_model_does_is_kept_beside() -> None:
    measure = measure_of("t", "right", np.array([1.0, 2, 2]), np.array([2.0, 2, 2]), (0, 1))
    assert (measure.value, measure.high, measure.n) == (pytest.approx(5 / 6), 1.0, 6)
    table = trial_table(SUBJECT, [Findings([found(20, [0.5] * 4, 0.5)], [measure])])
    assert table.details[MEASURES].to_dict("records")[0]["name"] == "right"


# --- Marks --------------------------------------------------------------------------------------


SITE = site_of("dec", 2)


def test_examples_come_back_in_their_order_whatever_the_batches() -> None:
    hits, ones = torch.arange(8.0).reshape(4, 2), torch.ones(4)
    whole, parts = TrialCounts(), TrialCounts()
    whole.add(SITE, [0, 1, 2, 3], hits, ones, 2 * ones)
    for rows in ([3], [0, 2], [1]):
        parts.add(SITE, rows, hits[rows], ones[rows], 2 * ones[rows])
    for mine, theirs in zip(whole.of(SITE), parts.of(SITE), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert parts.examples == [0, 1, 2, 3]
