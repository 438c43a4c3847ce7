"""Laws that every kind of task keeps, one row a kind; what a kind does alone is in its own file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from tiny_subjects import classifier, encoder, filler, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS
from watching import told

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.labels.labelled import SPEARMAN
from headcount.stats import bootstrap_interval, ratio
from headcount.tasks.task import (
    ACCURACY,
    IGNORED,
    LOSS,
    PERPLEXITY,
    Marks,
    Outcome,
    Sheet,
    Task,
    forward,
    label_counts,
    logits_of,
    row_losses,
    row_marks,
)
from headcount.wiring import valve

LABELLED = [(text, number % 2) for number, text in enumerate(ENGLISH)]
SCORED = [(text, float(number % 4)) for number, text in enumerate(ENGLISH)]
ALIKE = [(one, two, number % 4) for number, (one, two) in enumerate(PAIRS)]


class Case(NamedTuple):
    subject: Callable[[], Subject]
    make: Callable[[str], Task]
    metrics: tuple[str, ...]


CASES = {
    "translation": Case(
        lambda: translator(max_position_embeddings=128),
        lambda metric: tasks.translation(PAIRS, metric, beams=2, max_new_tokens=6),
        ("loss", "bleu", "chrf"),
    ),
    "t5": Case(
        lambda: translator("t5"), lambda metric: tasks.translation(PAIRS, metric), ("loss",)
    ),
    "classification": Case(
        classifier,
        lambda metric: tasks.classification(LABELLED, metric),
        ("loss", "accuracy", "f1", "matthews"),
    ),
    "regression": Case(
        lambda: classifier(1),
        lambda metric: tasks.regression(SCORED, metric),
        ("loss", "spearman", "pearson"),
    ),
    "similarity": Case(
        encoder, lambda metric: tasks.similarity(ALIKE, metric), ("loss", "spearman", "pearson")
    ),
    "lm": Case(writer, lambda metric: tasks.lm(ENGLISH, metric), ("loss", "perplexity")),
    "llama": Case(lambda: writer("llama"), lambda metric: tasks.lm(ENGLISH, metric), ("loss",)),
    "mlm": Case(filler, lambda metric: tasks.mlm(ENGLISH, metric), ("loss", "accuracy")),
}
EVERY = [(kind, metric) for kind, case in CASES.items() for metric in case.metrics]


@pytest.fixture(scope="module")
def subjects() -> dict[str, Subject]:
    return {kind: case.subject() for kind, case in CASES.items()}


@pytest.mark.parametrize(("kind", "metric"), EVERY)
def test_batch_size_never_shows(kind: str, metric: str, subjects: dict[str, Subject]) -> None:
    task = CASES[kind].make(metric)
    alone, together = (task.evaluate(subjects[kind], batch_size=size) for size in (1, 7))
    np.testing.assert_allclose(alone.statistics, together.statistics, rtol=1e-4, atol=1e-5)
    if alone.outputs and isinstance(alone.outputs[0], float):
        assert alone.outputs == pytest.approx(together.outputs, abs=1e-4)
    else:
        assert alone.outputs == together.outputs
    assert len(alone.scores) == len(alone) == len(task)


@pytest.mark.parametrize(("kind", "metric"), EVERY)
def test_it_works_under_a_valve_and_leaves_nothing(
    kind: str, metric: str, subjects: dict[str, Subject]
) -> None:
    subject, task = subjects[kind], CASES[kind].make(metric)
    plain = task.evaluate(subject)
    with valve(subject, torch.ones(len(subject.heads))):
        assert np.array_equal(task.evaluate(subject).statistics, plain.statistics)
    with valve(subject, torch.zeros(len(subject.heads))):
        task.evaluate(subject)
    assert np.array_equal(task.evaluate(subject).statistics, plain.statistics)


@pytest.mark.parametrize("kind", CASES)
def test_a_shut_valve_changes_the_loss(kind: str, subjects: dict[str, Subject]) -> None:
    subject, task = subjects[kind], CASES[kind].make("loss")
    with valve(subject, torch.zeros(len(subject.heads))):
        shut = task.evaluate(subject)
    assert np.all(shut.statistics[:, 0] != task.evaluate(subject).statistics[:, 0])


@pytest.mark.parametrize("kind", CASES)
def test_losses_of_batches_are_those_of_the_outcome(
    kind: str, subjects: dict[str, Subject]
) -> None:
    subject, task = subjects[kind], CASES[kind].make("loss")
    outcome = task.evaluate(subject)
    for batch in task.batches(subject, batch_size=4):
        losses = task.loss(subject, batch)
        assert losses.shape == (len(batch),)
        np.testing.assert_allclose(
            losses.detach().numpy(), outcome.statistics[batch.index, 0], rtol=1e-4, atol=1e-6
        )


@pytest.mark.parametrize("kind", CASES)
def test_gradients_in_the_scales_of_an_example_are_its_own(
    kind: str, subjects: dict[str, Subject]
) -> None:
    subject, task = subjects[kind], CASES[kind].make("loss")

    def gradients(batch_size: int) -> dict[int, torch.Tensor]:
        found = {}
        for batch in task.batches(subject, batch_size):
            scales = torch.ones(len(batch), len(subject.heads), requires_grad=True)
            with valve(subject, scales):
                losses = task.loss(subject, batch)
            (gradient,) = torch.autograd.grad(losses.sum(), scales)
            found.update(zip(batch.index, gradient, strict=True))
        return found

    alone, together = gradients(1), gradients(5)
    for number in range(len(task)):
        assert alone[number].abs().max() > 0
        torch.testing.assert_close(together[number], alone[number], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", CASES)
def test_mode_and_random_state_are_put_back(kind: str, subjects: dict[str, Subject]) -> None:
    subject, task = subjects[kind], CASES[kind].make(CASES[kind].metrics[-1])
    resting = task.evaluate(subject)
    subject.model.train()
    state = torch.get_rng_state()
    try:
        outcome = task.evaluate(subject)
        assert all(module.training for module in subject.model.modules())
    finally:
        subject.model.eval()
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(outcome.statistics, resting.statistics)


@pytest.mark.parametrize("kind", CASES)
def test_half_precision_gives_numbers(kind: str) -> None:
    subject = CASES[kind].subject()
    exact = CASES[kind].make("loss").evaluate(subject)
    subject.model.to(torch.bfloat16)
    rough = CASES[kind].make("loss").evaluate(subject)
    assert rough.value == pytest.approx(exact.value, rel=0.1, abs=0.05)
    assert rough.value != exact.value


@pytest.mark.parametrize(("kind", "metric"), EVERY)
def test_broken_weights_are_named(kind: str, metric: str) -> None:
    subject = CASES[kind].subject()
    weight = next(iter(subject.model.parameters()))
    weight.data.view(-1)[:] = float("nan")
    with pytest.raises(ModelError, match=r"The weight \S+ of tiny \w+ holds .* NaN or infinite"):
        CASES[kind].make(metric).evaluate(subject)


def test_numbers_that_overflow_are_told(subjects: dict[str, Subject]) -> None:
    subject = CASES["classification"].subject()
    subject.model.classifier.weight.data.fill_(3e38)
    with pytest.raises(ModelError) as error:
        CASES["classification"].make("loss").evaluate(subject)
    assert "the loss of tiny bert is not a number, although all its weights are" in str(error.value)


def test_ready_batches_give_the_same_outcome(subjects: dict[str, Subject]) -> None:
    task, subject = CASES["mlm"].make("loss"), subjects["mlm"]
    batches = list(task.batches(subject, 3))
    again = task.evaluate(subject, batches=batches)
    assert np.allclose(again.statistics, task.evaluate(subject).statistics, rtol=1e-4)


def test_parts_of_the_work_give_the_same_outcome(subjects: dict[str, Subject]) -> None:
    task, subject = CASES["classification"].make("matthews"), subjects["classification"]
    sheet = tasks.Sheet(len(task))
    with torch.no_grad():
        for batch in task.batches(subject, 4):
            sheet.add(batch.index, task.mark(task.answer(subject, batch), batch))
    assert task.outcome(sheet, subject).value == task.evaluate(subject).value


def test_progress_is_told(subjects: dict[str, Subject]) -> None:
    seen: list[tuple[int, int]] = []
    with told(lambda done, total, title: seen.append((done, total))):
        CASES["lm"].make("loss").evaluate(subjects["lm"], batch_size=4)
    assert seen == [(4, 10), (8, 10), (10, 10)]


def test_an_outcome_knows_its_task(subjects: dict[str, Subject]) -> None:
    task = CASES["translation"].make("chrf")
    outcome = task.limit(2).evaluate(subjects["translation"])
    told = outcome.provenance
    assert told["model"] == "tiny marian"
    assert told["task"]["kind"] == "translation"
    assert told["task"]["signature"] == outcome.signature
    assert (told["task"]["beams"], told["task"]["examples"]) == (2, 2)
    assert told["task"]["hash"] != task.hash


def test_the_hash_is_that_of_the_examples() -> None:
    one, two = tasks.lm(["a", "b"]), tasks.lm(["a", "b"], metric="perplexity")
    assert one.hash == two.hash
    assert one.hash != tasks.lm(["ab"]).hash != tasks.lm(["b", "a"]).hash


def test_a_long_text_is_cut_and_told() -> None:
    subject = classifier(max_position_embeddings=8)
    outcome = tasks.classification(LABELLED[:2]).evaluate(subject)
    assert outcome.notes == ("2 of 2 sentences were too long and lost the end.",)


def test_a_text_without_a_token_is_told() -> None:
    task = tasks.classification([("Rain.", 1), ("\u200b", 0)])
    with pytest.raises(InputError) as error:
        task.evaluate(classifier())
    assert str(error.value) == (
        "Example 2 of examples in hand has a text in which the tokenizer of tiny bert finds no "
        "token; drop it."
    )


def test_examples_can_be_limited() -> None:
    task = tasks.lm([str(number) for number in range(20)])
    assert [one.text for one in task.limit(3).examples] == ["0", "1", "2"]
    drawn = [int(one.text) for one in task.limit(5, seed=1).examples]
    assert drawn == sorted(drawn) != [0, 1, 2, 3, 4]
    assert task.limit(5, seed=1).examples == task.limit(5, seed=1).examples
    assert task.limit(99) is task
    with pytest.raises(UsageError, match="The limit is 0; it must be 1 or more"):
        task.limit(0)


def test_examples_can_be_split_to_choose_and_to_judge() -> None:
    task = tasks.lm([str(number) for number in range(20)])
    chosen, rest = task.split(0.25, seed=3)
    assert (len(chosen), len(rest)) == (5, 15)
    texts = [one.text for part in (chosen, rest) for one in part.examples]
    assert sorted(texts, key=int) == [str(number) for number in range(20)]
    with pytest.raises(UsageError, match="cuts 20 examples into 20 and 0; both parts need one"):
        task.split(1.0)


def test_a_batch_size_below_one_is_refused(subjects: dict[str, Subject]) -> None:
    with pytest.raises(UsageError, match="The batch size is 0"):
        CASES["lm"].make("loss").evaluate(subjects["lm"], batch_size=0)


def test_a_subject_without_tokenizer_is_refused() -> None:
    subject: Any = Subject(writer().model)
    with pytest.raises(UsageError, match="needs a tokenizer and this subject has none"):
        tasks.lm(["a"]).evaluate(subject)


# ---  -------------------------------------------------------------------------------------------


def test_nothing_is_cached_on_the_way() -> None:
    subject = writer()
    [batch] = tasks.lm(ENGLISH).batches(subject)
    assert forward(subject, batch).past_key_values is None


def test_logits_are_those_of_the_model() -> None:
    subject = filler()
    [batch] = tasks.mlm(ENGLISH).batches(subject)
    logits = logits_of(subject, batch, axes=3, needs="x")
    assert torch.equal(logits, subject.model(**batch.inputs).logits)


def test_other_logits_are_refused() -> None:
    subject = filler()
    [batch] = tasks.mlm(ENGLISH).batches(subject)
    with pytest.raises(ModelError, match=r"^x, and tiny bert is of the class BertForMaskedLM\.$"):
        logits_of(subject, batch, axes=2, needs="x")


# ---  -------------------------------------------------------------------------------------------


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


# ---  -------------------------------------------------------------------------------------------


def losses(examples: int = 30, worse: float = 0.0) -> Outcome:
    tokens = np.random.default_rng(1).integers(3, 9, examples)
    loss = tokens * (2 + worse + np.random.default_rng(2).normal(size=examples) / 5)
    return Outcome(LOSS, np.stack([loss, tokens], axis=1))


def test_what_it_shows_follows_from_its_statistics() -> None:
    outcome = losses()
    loss, tokens = outcome.statistics.sum(axis=0)
    assert outcome.value == pytest.approx(loss / tokens)
    assert outcome.scores == pytest.approx(outcome.statistics[:, 0] / outcome.statistics[:, 1])
    assert (outcome.name, outcome.higher_is_better, len(outcome)) == ("loss", False, 30)
    assert outcome.statistic is ratio
    assert outcome.signature is None
    assert repr(outcome) == f"Outcome(loss {outcome.value:.4g} over 30 examples)"


def test_the_interval_is_the_bootstraps() -> None:
    outcome = losses()
    found = outcome.interval(draws=500, seed=3)
    assert found == bootstrap_interval(outcome.statistics, ratio, draws=500, seed=3)
    assert found.low < found.value < found.high


def test_a_rank_correlation_has_an_interval_too() -> None:
    rng = np.random.default_rng(0)
    gold = rng.normal(size=40)
    outcome = Outcome(SPEARMAN, np.stack([gold + rng.normal(size=40), gold], axis=1))
    found = outcome.interval(draws=500)
    assert outcome.statistic is None
    assert found.value == outcome.value
    assert -1 < found.low < found.value < found.high < 1
    wider = outcome.interval(draws=500, confidence=0.99)
    assert wider.low < found.low


def test_weights_of_one_give_the_value() -> None:
    outcome = losses()
    assert outcome.resample(np.ones((1, 30)))[0] == pytest.approx(outcome.value)


def test_against_another_gives_the_difference_with_its_uncertainty() -> None:
    found = losses(worse=0.1).against(losses(), draws=500)
    assert found.value == pytest.approx(0.1)
    assert found.low == pytest.approx(0.1)
    assert found.test == "sign-flip"
    assert found.p < 0.01


def test_an_outcome_against_itself_is_nothing() -> None:
    rng = np.random.default_rng(0)
    right = Outcome(ACCURACY, np.stack([rng.integers(0, 2, 20), np.ones(20)], axis=1))
    found = right.against(right, draws=500)
    assert (found.value, found.low, found.high, found.p, found.test) == (0, 0, 0, 1, "mcnemar")


# ---  -------------------------------------------------------------------------------------------


def test_batches_fill_it_in_any_order() -> None:
    sheet = Sheet(3)
    sheet.add([2, 0], Marks(np.array([[1.0], [2.0]]), ["c", "a"]))
    assert (sheet.done, sheet.missing) == (2, [1])
    sheet.add([1], Marks(np.array([[5.0]]), ["b"]))
    assert sheet.statistics.tolist() == [[2.0], [5.0], [1.0]]
    assert sheet.outputs == ["a", "b", "c"]
    assert sheet.missing == []


def test_windows_of_one_example_add_up() -> None:
    sheet = Sheet(1)
    sheet.add([0, 0], Marks(np.array([[1.0, 3.0], [2.0, 4.0]]), []))
    sheet.add([0], Marks(np.array([[4.0, 1.0]]), []))
    assert sheet.statistics.tolist() == [[7.0, 8.0]]
    assert sheet.outputs == []


# ---  -------------------------------------------------------------------------------------------


def test_losses_are_sums_of_log_probabilities() -> None:
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[4, 0, 1], [2, IGNORED, IGNORED]])
    told = logits.log_softmax(-1)
    expected = torch.stack([-(told[0, 0, 4] + told[0, 1, 0] + told[0, 2, 1]), -told[1, 0, 2]])
    torch.testing.assert_close(row_losses(logits, labels), expected)
    assert label_counts(labels).tolist() == [3, 1]
    marks = row_marks(row_losses(logits, labels), labels)
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
