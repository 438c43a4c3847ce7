from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch
from tiny_subjects import classifier, encoder
from tiny_tokenizers import ENGLISH

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject

GOLD = [0.5, 3.0, 1.0, 4.5, 2.0, 2.0, 5.0, 0.0, 1.5, 3.5]
SCORED = list(zip(ENGLISH, GOLD, strict=True))


@pytest.fixture(scope="module")
def subject() -> Subject:
    return classifier(1, seed=2)


def test_the_metrics_are_scipys(subject: Subject) -> None:
    spearman, pearson, loss = (
        tasks.regression(SCORED, metric).evaluate(subject)
        for metric in ("spearman", "pearson", "loss")
    )
    said = np.array(spearman.outputs)
    assert spearman.value == pytest.approx(scipy.stats.spearmanr(said, GOLD)[0])
    assert pearson.value == pytest.approx(scipy.stats.pearsonr(said, GOLD)[0])
    assert loss.scores == pytest.approx((said - GOLD) ** 2, rel=1e-4)
    assert spearman.statistics == pytest.approx(np.stack([said, GOLD], axis=1))


def test_outputs_are_the_models_own(subject: Subject) -> None:
    outcome = tasks.regression(SCORED).evaluate(subject, batch_size=3)
    inputs = subject.tokenizer(ENGLISH[0], return_tensors="pt")  # type: ignore[misc]
    with torch.no_grad():
        alone = subject.model(**inputs).logits.item()
    assert outcome.outputs[0] == pytest.approx(alone, abs=1e-4)


def test_constant_predictions_give_nan_and_a_reason() -> None:
    subject = classifier(1)
    subject.model.classifier.weight.data.zero_()
    subject.model.classifier.bias.data.fill_(0.25)
    for metric in ("spearman", "pearson"):
        outcome = tasks.regression(SCORED, metric).evaluate(subject)
        assert np.isnan(outcome.value)
        assert outcome.notes == (
            f"The {metric} is undefined: all 10 predictions are 0.25, and a constant has no order.",
        )


@pytest.mark.parametrize(("make", "name"), [(encoder, "BertModel"), (classifier, "tiny bert")])
def test_a_model_with_another_head_is_refused(make: object, name: str) -> None:
    with pytest.raises(ModelError, match="regression needs a model with a head of one output"):
        tasks.regression(SCORED).evaluate(make())  # type: ignore[operator]


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(UsageError) as error:
        tasks.regression(SCORED, "accuracy")
    assert str(error.value) == (
        "Tasks of the kind regression have no metric 'accuracy'; choose spearman, pearson or loss."
    )
    with pytest.raises(InputError, match="Example 1 has the score 'high'"):
        tasks.regression([("a", "high")])
    with pytest.raises(InputError, match="There are no examples; tasks of the kind regression"):
        tasks.regression([])
