"""Marks: the order of batches never shows."""

from __future__ import annotations

import numpy as np
import torch
from made import site_of

from headcount.survey.trials.trial import TrialCounts

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
