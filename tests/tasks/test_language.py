"""Tests of `tasks/language.py`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from subjects import subject_of
from tiny_subjects import classifier, encoder, filler, translator, writer
from tiny_tokenizers import ENGLISH

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.labels.hidden import hide


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


# ---  -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def subject() -> Subject:
    return filler()


def masked(subject: Subject, **options: object) -> dict[int, tuple[list[int], list[int]]]:
    """What each text became, and its labels, padding taken out."""
    found = {}
    for batch in tasks.mlm(ENGLISH, **options).batches(subject, 4):  # type: ignore[arg-type]
        assert batch.labels is not None
        for row, number in enumerate(batch.index):
            real = batch.sides["source"].real[row]
            found[number] = (
                batch.inputs["input_ids"][row][real].tolist(),
                batch.labels[row][real].tolist(),
            )
    return found


def test_a_share_of_the_tokens_is_hidden_and_told(subject: Subject) -> None:
    tokenizer = subject.tokenizer
    assert tokenizer is not None
    for number, (ids, labels) in masked(subject).items():
        plain = tokenizer(ENGLISH[number])["input_ids"]
        hidden = [place for place, label in enumerate(labels) if label != -100]
        assert len(hidden) == max(1, round(0.15 * (len(plain) - 2)))
        assert all(ids[place] == tokenizer.mask_token_id for place in hidden)
        back = [label if label != -100 else one for one, label in zip(ids, labels, strict=True)]
        assert back == plain
        assert 0 not in hidden
        assert len(plain) - 1 not in hidden


def test_the_same_seed_hides_the_same_tokens(subject: Subject) -> None:
    assert masked(subject) == masked(subject)
    assert masked(subject) != masked(subject, seed=1)


def test_bert_hides_by_other_words_too(subject: Subject) -> None:
    assert subject.tokenizer is not None
    mask, kinds = subject.tokenizer.mask_token_id, {"mask": 0, "kept": 0, "other": 0}
    for ids, labels in masked(subject, hiding="bert", share=0.9).values():
        for one, label in zip(ids, labels, strict=True):
            if label != -100:
                kinds["mask" if one == mask else "kept" if one == label else "other"] += 1
    total = sum(kinds.values())
    assert 0.7 < kinds["mask"] / total < 0.9
    assert kinds["kept"] > 0
    assert kinds["other"] > 0


def test_loss_and_accuracy_are_about_the_hidden_tokens(subject: Subject) -> None:
    task = tasks.mlm(ENGLISH, "accuracy", share=0.5)
    accuracy = task.evaluate(subject, batch_size=4)
    loss = tasks.mlm(ENGLISH, share=0.5).evaluate(subject, batch_size=4)
    hits, nats, count = 0, 0.0, 0
    for ids, labels in masked(subject, share=0.5).values():
        with torch.no_grad():
            told = subject.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        places = [place for place, label in enumerate(labels) if label != -100]
        hits += sum(told[place].argmax().item() == labels[place] for place in places)
        nats -= sum(told[place, labels[place]].item() for place in places)
        count += len(places)
    assert accuracy.value == hits / count
    assert loss.value == pytest.approx(nats / count, rel=1e-4)


def test_windows_hide_their_own_tokens() -> None:
    subject = filler(max_position_embeddings=8)
    outcome = tasks.mlm(ENGLISH[:2]).evaluate(subject)
    assert len(outcome) == 2
    assert "too long and gave" in outcome.notes[0]


def test_one_token_or_more_is_hidden() -> None:
    noise = np.random.default_rng(0)
    assert len(hide(np.array([4]), 0.15, noise)) == 1
    assert len(hide(np.arange(40), 0.15, noise)) == 6


@pytest.mark.parametrize(("make", "name"), [(encoder, "BertModel"), (writer, "GPT2LMHeadModel")])
def test_a_model_that_fills_nothing_in_is_refused(make: object, name: str) -> None:
    with pytest.raises(ModelError) as error:
        tasks.mlm(ENGLISH).evaluate(make())  # type: ignore[operator]
    assert str(error.value).startswith("mlm needs an encoder with a masked-language-modelling head")
    assert str(error.value).endswith(f"is of the class {name}.")


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    subject = subject_of("bert", "t5", model_class="BertForMaskedLM")
    with pytest.raises(ModelError, match="The tokenizer of bert has no mask token"):
        tasks.mlm(ENGLISH).evaluate(subject)


def test_mlm_what_is_wrong_is_told() -> None:
    with pytest.raises(
        UsageError, match="Tasks of the kind mlm have no metric 'f1'; choose loss or accuracy"
    ):
        tasks.mlm(ENGLISH, "f1")
    with pytest.raises(UsageError, match="share of hidden tokens is 1; it lies between 0 and 1"):
        tasks.mlm(ENGLISH, share=1)
    with pytest.raises(UsageError, match="hiding is 'roberta'; choose mask or bert"):
        tasks.mlm(ENGLISH, hiding="roberta")  # type: ignore[arg-type]
