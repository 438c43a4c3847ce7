from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_subjects import classifier, filler, translator, writer
from tiny_tokenizers import ENGLISH

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject


def alone(subject: Subject, text: str) -> tuple[float, int]:
    """The model's own mean loss on a text, and how many tokens it predicted."""
    ids = torch.tensor([subject.tokenizer(text)["input_ids"]])  # type: ignore[misc]
    with torch.no_grad():
        return float(subject.model(input_ids=ids, labels=ids).loss), ids.shape[1] - 1


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_the_loss_is_the_models_own(family: str) -> None:
    subject = writer(family)
    outcome = tasks.lm(ENGLISH).evaluate(subject, batch_size=4)
    told = [alone(subject, text) for text in ENGLISH]
    assert outcome.scores == pytest.approx([loss for loss, _ in told], rel=1e-4)
    assert outcome.statistics[:, 1].tolist() == [count for _, count in told]
    total = sum(loss * count for loss, count in told) / sum(count for _, count in told)
    assert outcome.value == pytest.approx(total, rel=1e-4)
    perplexity = tasks.lm(ENGLISH, "perplexity").evaluate(subject)
    assert perplexity.value == pytest.approx(np.exp(total), rel=1e-4)


def test_a_long_text_is_an_example_of_several_windows() -> None:
    subject = writer(n_positions=8)
    task = tasks.lm(ENGLISH[:3])
    outcome = task.evaluate(subject, batch_size=2)
    assert len(outcome) == 3
    assert outcome.notes[0].startswith("3 of 3 sentences were too long and gave ")
    windows = [window for batch in task.batches(subject, 2) for window in batch.index]
    assert len(windows) > 3
    ids = subject.tokenizer(ENGLISH[0])["input_ids"]  # type: ignore[misc]
    assert outcome.statistics[0, 1] == len(ids) - windows.count(0)
    cut = tasks.lm(ENGLISH[:3], long="truncate").evaluate(subject)
    assert cut.statistics[:, 1].tolist() == [7, 7, 7]


def test_a_text_of_one_token_predicts_nothing() -> None:
    outcome = tasks.lm(["a", *ENGLISH]).evaluate(writer())
    assert outcome.statistics[0].tolist() == [0, 0]
    assert np.isnan(outcome.scores[0])
    assert np.isfinite(outcome.value)


def test_nothing_to_predict_at_all_is_nan_with_a_reason() -> None:
    outcome = tasks.lm(["a"]).evaluate(writer())
    assert np.isnan(outcome.value)
    assert outcome.notes[-1] == "The loss is undefined: there was nothing to count."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (filler, "tiny bert is of the class BertForMaskedLM, with enc heads; use the task mlm."),
        (
            translator,
            "tiny marian is of the class MarianMTModel, with enc-dec heads; use the task "
            "translation.",
        ),
    ],
)
def test_a_model_that_reads_both_ways_is_refused(make: object, message: str) -> None:
    with pytest.raises(ModelError) as error:
        tasks.lm(ENGLISH).evaluate(make())  # type: ignore[operator]
    assert str(error.value) == (
        f"lm needs a decoder-only model with a language-modelling head, and {message}"
    )


def test_a_decoder_without_a_head_is_refused() -> None:
    with pytest.raises(
        ModelError, match=r"language-modelling head, and tiny gpt2 is of the class GPT2Model\."
    ):
        tasks.lm(ENGLISH).evaluate(writer(model_class="GPT2Model"))
    with pytest.raises(ModelError, match="use the task mlm"):
        tasks.lm(ENGLISH).evaluate(classifier())


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(
        UsageError, match="Tasks of the kind lm have no metric 'bleu'; choose loss or perpl"
    ):
        tasks.lm(ENGLISH, "bleu")
    with pytest.raises(UsageError, match="long is 'cut'; choose window, truncate or error"):
        tasks.lm(ENGLISH, long="cut")  # type: ignore[arg-type]
    with pytest.raises(
        InputError, match="There are no examples; tasks of the kind lm take a list of texts"
    ):
        tasks.lm([])
    with pytest.raises(InputError, match="Example 2 has no text"):
        tasks.lm(["a", " "])
