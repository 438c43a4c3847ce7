from __future__ import annotations

import pytest
import torch
from tiny_subjects import translator, writer
from tiny_tokenizers import ENGLISH, PAIRS

from headcount import tasks
from headcount.errors import ModelError, UsageError

LABELLED = [(text, number % 2) for number, text in enumerate(ENGLISH)]


def test_a_decoder_with_a_head_classifies_by_its_last_word() -> None:
    subject = writer(model_class="GPT2ForSequenceClassification", pad_token_id=0, num_labels=2)
    outcome = tasks.classification(LABELLED).evaluate(subject, batch_size=4)
    for number, text in enumerate(ENGLISH):
        ids = torch.tensor([subject.tokenizer(text)["input_ids"]])  # type: ignore[misc]
        with torch.no_grad():
            said = subject.model(input_ids=ids).logits.argmax().item()
        assert outcome.outputs[number] == said


def test_a_decoder_without_padding_is_refused() -> None:
    subject = writer(model_class="GPT2ForSequenceClassification", pad_token_id=None, num_labels=2)
    with pytest.raises(ModelError, match=r"tiny gpt2 has no padding token.*config.pad_token_id"):
        tasks.classification(LABELLED).evaluate(subject)


def test_an_encoder_decoder_with_a_head_takes_single_texts() -> None:
    subject = translator("bart", model_class="BartForSequenceClassification", num_labels=2)
    outcome = tasks.classification(LABELLED).evaluate(subject, batch_size=4)
    for number, text in enumerate(ENGLISH):
        inputs = subject.tokenizer(text, return_tensors="pt")  # type: ignore[misc]
        with torch.no_grad():
            said = subject.model(**inputs).logits.argmax().item()
        assert outcome.outputs[number] == said
    with pytest.raises(UsageError) as error:
        tasks.classification([(a, b, 1) for a, b in PAIRS]).evaluate(subject)
    assert str(error.value) == (
        "A classification task on tiny bart, an encoder-decoder, takes single texts, and examples "
        "in hand has pairs; join each pair into one text."
    )
