from __future__ import annotations

import numpy as np
import pytest
import torch
from subjects import subject_of
from tiny_subjects import encoder, filler, writer
from tiny_tokenizers import ENGLISH

from headcount import tasks
from headcount.errors import ModelError, UsageError
from headcount.models.subject import Subject
from headcount.tasks.language import hide


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


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(
        UsageError, match="Tasks of the kind mlm have no metric 'f1'; choose loss or accuracy"
    ):
        tasks.mlm(ENGLISH, "f1")
    with pytest.raises(UsageError, match="share of hidden tokens is 1; it lies between 0 and 1"):
        tasks.mlm(ENGLISH, share=1)
    with pytest.raises(UsageError, match="hiding is 'roberta'; choose mask or bert"):
        tasks.mlm(ENGLISH, hiding="roberta")  # type: ignore[arg-type]
