from __future__ import annotations

import numpy as np
import torch

from headcount.tasks.task import IGNORED, LOSS, PERPLEXITY, label_counts, loss_marks, row_losses


def test_losses_are_sums_of_log_probabilities() -> None:
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[4, 0, 1], [2, IGNORED, IGNORED]])
    told = logits.log_softmax(-1)
    expected = torch.stack([-(told[0, 0, 4] + told[0, 1, 0] + told[0, 2, 1]), -told[1, 0, 2]])
    torch.testing.assert_close(row_losses(logits, labels), expected)
    assert label_counts(labels).tolist() == [3, 1]
    marks = loss_marks(logits, labels)
    np.testing.assert_allclose(marks.statistics[:, 0], expected.numpy(), rtol=1e-6)
    assert marks.statistics[:, 1].tolist() == [3, 1]


def test_half_precision_is_summed_in_single() -> None:
    logits = torch.zeros(1, 400, 3, dtype=torch.float16)
    loss = row_losses(logits, torch.zeros(1, 400, dtype=torch.long))
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, torch.tensor([400 * np.log(3)], dtype=torch.float32))


def test_the_metric_weighs_tokens_not_examples() -> None:
    rows = np.array([[6.0, 2], [2.0, 2], [4.0, 8]])
    assert LOSS.value(rows) == 1.0
    assert PERPLEXITY.value(rows) == np.exp(1.0)
    assert LOSS.scores(rows).tolist() == [3.0, 1.0, 0.5]
    assert not LOSS.higher_is_better
