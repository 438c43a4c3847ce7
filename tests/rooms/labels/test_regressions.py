"""Tests of numbers in `rooms/labels/labelled.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_subjects import classifier, encoder, filler, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS
from torch.nn.functional import cosine_similarity

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.labels.labelled import PEARSON, SPEARMAN

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


# ---  -------------------------------------------------------------------------------------------


NUMBERS = st.integers(-5, 5).map(lambda number: number / 2)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=15))
@pytest.mark.filterwarnings("ignore")
def test_correlations_are_scipys(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    expected = scipy.stats.pearsonr(x, y)[0], scipy.stats.spearmanr(x, y)[0]
    rows = np.stack([x, y], axis=1)
    for metric, judged in zip((PEARSON, SPEARMAN), expected, strict=True):
        assert metric.value(rows) == pytest.approx(judged, abs=1e-9, nan_ok=True)
        if not np.isnan(judged):
            assert metric.scores(rows).mean() == pytest.approx(judged, abs=1e-9)


def test_a_resample_is_the_correlation_of_the_examples_drawn() -> None:
    x, y = np.array([1.0, 2, 3, 4, 2.5]), np.array([2.0, 1, 4, 3, 9])
    drawn = np.array([0, 0, 2, 3, 4])
    weights = np.bincount(drawn, minlength=5)[None].astype(float)
    assert PEARSON.resample(np.stack([x, y], axis=1), weights) == pytest.approx(
        scipy.stats.pearsonr(x[drawn], y[drawn])[0], abs=1e-9
    )
    assert SPEARMAN.resample(np.stack([x, y], axis=1), weights) == pytest.approx(
        scipy.stats.spearmanr(x[drawn], y[drawn])[0], abs=1e-9
    )


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_constant_predictions_have_no_correlation_and_a_reason(noise: float) -> None:
    x = 0.5 + noise * np.arange(4)
    rows = np.stack([x, np.arange(4.0)], axis=1)
    for metric in (SPEARMAN, PEARSON):
        assert np.isnan(metric.value(rows))
        assert metric.reason(rows) == ("all 4 predictions are 0.5, and a constant has no order")
    assert SPEARMAN.reason(rows[:, ::-1]) == (
        "all 4 gold scores are 0.5, and a constant has no order"
    )
    assert SPEARMAN.reason(rows[:1]) == "a correlation needs two examples or more"


# ---  -------------------------------------------------------------------------------------------


GOLD_SIMILARITY = [0.0, 5.0, 1.0, 4.0, 2.0, 2.5, 3.0, 0.5, 1.5, 4.5]
ALIKE = [(*pair, gold) for pair, gold in zip(PAIRS, GOLD_SIMILARITY, strict=True)]


def embedded(subject: Subject, text: str) -> torch.Tensor:
    inputs = subject.tokenizer(text, return_tensors="pt")  # type: ignore[misc]
    with torch.no_grad():
        return subject.model(**inputs).last_hidden_state[0].mean(dim=0)


def test_the_cosine_of_mean_pooled_embeddings_is_ranked() -> None:
    subject = encoder()
    outcome = tasks.similarity(ALIKE).evaluate(subject, batch_size=4)
    cosines = [
        cosine_similarity(embedded(subject, a), embedded(subject, b), dim=0).item()
        for a, b in PAIRS
    ]
    assert outcome.outputs == pytest.approx(cosines, abs=1e-5)
    assert outcome.value == pytest.approx(scipy.stats.spearmanr(cosines, GOLD_SIMILARITY)[0])
    pearson = tasks.similarity(ALIKE, "pearson").evaluate(subject)
    assert pearson.value == pytest.approx(
        scipy.stats.pearsonr(cosines, GOLD_SIMILARITY)[0], abs=1e-4
    )


def test_a_head_on_top_changes_nothing() -> None:
    bare, headed = encoder(), filler()
    headed.model.bert.load_state_dict(bare.model.state_dict(), strict=False)
    task = tasks.similarity(ALIKE)
    assert task.evaluate(headed).outputs == pytest.approx(task.evaluate(bare).outputs, abs=1e-5)


def test_decoders_and_encoder_decoders_embed_too() -> None:
    task = tasks.similarity(ALIKE)
    translating = translator("t5")
    said = task.evaluate(translating, batch_size=4)
    ids = translating.tokenizer(PAIRS[0][0], return_tensors="pt").input_ids  # type: ignore[misc]
    other = translating.tokenizer(PAIRS[0][1], return_tensors="pt").input_ids  # type: ignore[misc]
    with torch.no_grad():
        one, two = (
            translating.model.encoder(input_ids=text).last_hidden_state[0].mean(dim=0)
            for text in (ids, other)
        )
    assert said.outputs[0] == pytest.approx(cosine_similarity(one, two, dim=0).item(), abs=1e-5)
    writing = writer()
    assert len(set(task.evaluate(writing).outputs)) == 10
    assert not any(module._forward_hooks for module in writing.model.modules())


def test_the_loss_brings_scores_to_0_to_1() -> None:
    subject = encoder()
    task = tasks.similarity(ALIKE, "loss", span=(0, 5))
    cosines = tasks.similarity(ALIKE).evaluate(subject).outputs
    expected = [(said - gold / 5) ** 2 for said, gold in zip(cosines, GOLD_SIMILARITY, strict=True)]
    assert task.evaluate(subject).scores == pytest.approx(expected, abs=1e-5)
    assert tasks.similarity(ALIKE).span == (0.0, 5.0)
    assert tasks.similarity(ALIKE[:1]).span == (0.0, 1.0)


def test_a_prefix_stands_before_every_text() -> None:
    subject = encoder()
    with_prefix = tasks.similarity(ALIKE, prefix="the ").evaluate(subject)
    spelt = tasks.similarity([(f"the {a}", f"the {b}", c) for a, b, c in ALIKE]).evaluate(subject)
    assert with_prefix.outputs == pytest.approx(spelt.outputs, abs=1e-6)


def test_rows_of_a_batch_are_pairs() -> None:
    task, subject = tasks.similarity(ALIKE), encoder()
    for batch in task.batches(subject, 3):
        assert batch.inputs["input_ids"].shape[0] == 2 * len(batch)
        assert batch.labels is not None
        assert batch.labels.tolist() == [GOLD_SIMILARITY[number] for number in batch.index]


@pytest.mark.parametrize("place", [0, 1, 5, 9])
@pytest.mark.parametrize("side", [0, 1])
def test_a_text_without_a_token_is_told_and_shifts_nothing(place: int, side: int) -> None:
    examples = [list(example) for example in ALIKE]
    examples[place][side] = "\u200b"
    with pytest.raises(InputError, match=f"Example {place + 1} of .* finds no token; drop it"):
        tasks.similarity(examples).evaluate(encoder(), batch_size=2)


def test_similarity_what_is_wrong_is_told() -> None:
    with pytest.raises(InputError) as error:
        tasks.similarity([("a", 1.0)])
    assert str(error.value) == (
        "examples in hand has one text an example; similarity takes (text, text2, score), in a "
        "file the columns text, text2 and label."
    )
    with pytest.raises(UsageError, match="The span is 5 to 0; give the lower score first"):
        tasks.similarity(ALIKE, span=(5, 0))
    with pytest.raises(UsageError, match="have no metric 'f1'; choose spearman, pearson or loss"):
        tasks.similarity(ALIKE, "f1")


@pytest.mark.real
@pytest.mark.data
def test_minilm_knows_what_is_alike(minilm: Subject, data_dir: Path) -> None:
    task = tasks.glue("stsb", data_dir / "glue", similarity=True).limit(30)
    outcome = task.evaluate(minilm)
    assert outcome.value > 0.7
    assert outcome.interval(draws=2000).low > 0.4
