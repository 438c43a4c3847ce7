from __future__ import annotations

from pathlib import Path

import pytest
import scipy.stats
import torch
from tiny_subjects import encoder, filler, translator, writer
from tiny_tokenizers import PAIRS
from torch.nn.functional import cosine_similarity

from headcount import tasks
from headcount.errors import InputError, UsageError
from headcount.models.subject import Subject

GOLD = [0.0, 5.0, 1.0, 4.0, 2.0, 2.5, 3.0, 0.5, 1.5, 4.5]
ALIKE = [(*pair, gold) for pair, gold in zip(PAIRS, GOLD, strict=True)]


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
    assert outcome.value == pytest.approx(scipy.stats.spearmanr(cosines, GOLD)[0])
    pearson = tasks.similarity(ALIKE, "pearson").evaluate(subject)
    assert pearson.value == pytest.approx(scipy.stats.pearsonr(cosines, GOLD)[0], abs=1e-4)


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
    assert len(set(task.evaluate(writer()).outputs)) == 10


def test_the_loss_brings_scores_to_0_to_1() -> None:
    subject = encoder()
    task = tasks.similarity(ALIKE, "loss", span=(0, 5))
    cosines = tasks.similarity(ALIKE).evaluate(subject).outputs
    expected = [(said - gold / 5) ** 2 for said, gold in zip(cosines, GOLD, strict=True)]
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
        assert batch.labels.tolist() == [GOLD[number] for number in batch.index]


@pytest.mark.parametrize("place", [0, 1, 5, 9])
@pytest.mark.parametrize("side", [0, 1])
def test_a_text_without_a_token_is_told_and_shifts_nothing(place: int, side: int) -> None:
    examples = [list(example) for example in ALIKE]
    examples[place][side] = "\u200b"
    with pytest.raises(InputError, match=f"Example {place + 1} of .* finds no token; drop it"):
        tasks.similarity(examples).evaluate(encoder(), batch_size=2)


def test_what_is_wrong_is_told() -> None:
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
