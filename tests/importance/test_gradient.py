"""Gradient importance: its options, its journal, and what it says when it cannot be had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_subjects import classifier, encoder, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS
from watching import told

import headcount as hc
from headcount import tasks
from headcount.errors import HeadcountError, InputError, ModelError, UsageError
from headcount.importance.examples import Interrupted
from headcount.importance.gradient import gradient, slopes
from headcount.models.subject import Subject
from headcount.records.journal import Journal
from headcount.tasks.task import Task
from headcount.wiring import valve

LABELLED = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]


def classes(**settings: Any) -> Task:
    return tasks.classification(LABELLED, **settings)


def test_a_table_with_intervals_and_where_it_comes_from() -> None:
    table = gradient(classifier(), classes(), batch_size=4)
    assert table.names == ["gradient"]
    value, low, high = (part["gradient"] for part in table.parts())
    assert ((low >= 0) & (low <= value) & (value <= high)).all()
    assert not table.notes
    about = table.provenance
    assert about["task"]["kind"] == "classification"
    assert about["counts"] == {"examples": 10}
    assert about["settings"] == {"per": "example", "normalize": "none", "batch_size": 4}
    assert about["weights"]
    assert table.column("gradient").direction == "higher"


def test_layers_of_norm_1() -> None:
    table = gradient(classifier(), classes(), normalize="layer")
    norms = (table.frame["gradient"] ** 2).groupby(level=["stack", "layer"]).sum()
    np.testing.assert_allclose(norms, 1)


def test_half_precision_is_near() -> None:
    subject = classifier()
    exact = gradient(subject, classes()).frame["gradient"]
    subject.model.bfloat16()
    near = gradient(subject, classes()).frame["gradient"]
    assert np.corrcoef(exact, near)[0, 1] > 0.99


def test_one_example_has_no_interval() -> None:
    table = gradient(classifier(), classes().part([0]))
    assert table.frame["gradient"].notna().all()
    assert table.low["gradient"].isna().all()


# --- the journal --------------------------------------------------------------------------------


def fail_after(batches: int) -> Any:
    """Progress that breaks the work off."""
    calls = []

    def progress(done: int, total: int, title: str) -> None:
        calls.append(done)
        if len(calls) == batches:
            raise KeyboardInterrupt

    return told(progress)


@pytest.mark.parametrize("per", ["example", "token", "batch"])
def test_broken_off_and_gone_on_with_is_the_same_table(tmp_path: Path, per: Any) -> None:
    subject, path = classifier(), tmp_path / "journal.jsonl"
    whole = gradient(subject, classes(), batch_size=3, per=per)
    with (
        Journal.open(path, {"a": 1}) as journal,
        pytest.raises(KeyboardInterrupt),
        fail_after(2),
    ):
        gradient(subject, classes(), batch_size=3, per=per, journal=journal)
    with Journal.open(path, {"a": 1}) as journal:
        assert list(journal.done) == ["gradient settings", "gradient 0", "gradient 1"]
        seen: list[int] = []
        with told(lambda done, total, title: seen.append(done)):
            again = gradient(subject, classes(), batch_size=3, per=per, journal=journal)
    assert seen == [3, 6, 9, 10]
    for one, two in zip(whole.parts(), again.parts(), strict=True):
        assert one.equals(two)


def test_what_is_in_the_journal_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = classifier()
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        first = gradient(subject, classes(), batch_size=4, journal=journal)
    monkeypatch.setattr(type(classes()), "loss", lambda *_: pytest.fail("measured again"))
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        second = gradient(subject, classes(), batch_size=4, journal=journal)
    assert first.frame.equals(second.frame)


def test_an_interrupt_hands_over_what_there_is() -> None:
    with pytest.raises(Interrupted) as stopped, fail_after(3):
        gradient(classifier(), classes(), batch_size=3)
    table = stopped.value.table
    assert table.frame["gradient"].notna().all()
    assert table.notes["gradient"] == "interrupted after 6 of 10 examples"


# --- mistakes -----------------------------------------------------------------------------------


def not_differentiable(subject: Subject, texts: list[str]) -> torch.Tensor:
    return torch.tensor([float(len(text)) for text in texts])


def one_by_one(subject: Subject, texts: list[str]) -> torch.Tensor:
    each = [subject.tokenizer(text, return_tensors="pt") for text in texts]  # type: ignore[misc]
    return torch.stack([subject.model(**one).last_hidden_state.sum() for one in each])


def own(loss: Any = None) -> Task:
    return tasks.custom(ENGLISH, lambda subject, texts: [0.0] * len(texts), loss=loss)


def nan_bias() -> Subject:
    subject = classifier()
    with torch.no_grad():
        subject.model.classifier.bias.fill_(float("nan"))
    return subject


@pytest.mark.parametrize(
    ("make", "task", "settings", "kind", "message"),
    [
        (classifier, classes(), {"per": "word"}, UsageError, "per is 'word'; choose example, tok"),
        (classifier, classes(), {"normalize": "l2"}, UsageError, "normalize is 'l2'; choose layer"),
        (classifier, classes(), {"convention": "mine"}, UsageError, "no convention 'mine'"),
        (
            classifier,
            classes(),
            {"convention": "paper", "per": "token"},
            UsageError,
            "per is 'token', and the convention 'paper' is per example",
        ),
        (
            writer,
            tasks.lm(ENGLISH),
            {"convention": "code"},
            UsageError,
            "published no program for tasks of the kind lm on a model with dec heads",
        ),
        (encoder, own(), {}, UsageError, "This custom task has no loss, which gradients need"),
        (
            encoder,
            own(not_differentiable),
            {},
            UsageError,
            "The loss does not depend on the heads of tiny bert in a way that can be differ",
        ),
        (encoder, own(one_by_one), {}, UsageError, "called on 1 rows for a batch of 10 examples"),
        (
            encoder,
            own(one_by_one),
            {"per": "token", "batch_size": 1},
            UsageError,
            "per='token' needs to know which positions of enc are tokens",
        ),
        (translator, classes(), {}, HeadcountError, "classification needs a model with a classif"),
        (
            classifier,
            tasks.classification([("A fine film.", 7)]),
            {},
            InputError,
            "Example 1 has the label '7', which is not a class of tiny bert",
        ),
        (nan_bias, classes(), {}, ModelError, "The weight classifier.bias of tiny bert holds 2"),
    ],
)
def test_mistakes_are_told(
    make: Any, task: Task, settings: Any, kind: type[HeadcountError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        gradient(make(), task, **settings)


def test_one_example_at_a_time_works_for_a_loss_that_runs_them_so() -> None:
    subject = encoder()
    alone = gradient(subject, own(one_by_one), batch_size=1).frame["gradient"]
    assert (alone > 0).all()


def test_a_loss_that_is_no_number_names_its_example() -> None:
    def loss(subject: Subject, texts: list[str]) -> torch.Tensor:
        return one_by_one(subject, texts) * (float("inf") if texts[0] == ENGLISH[2] else 1.0)

    with pytest.raises(ModelError, match=r"Example 3 of examples in hand: the loss of tiny bert"):
        gradient(encoder(), own(loss), batch_size=1)


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(type(classes()), "loss", full)
    with pytest.raises(ModelError, match=r"not enough memory .* use a smaller --batch-size"):
        gradient(classifier(), classes())


# --- integrated gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [classifier, writer])
def test_slopes_over_gates_sum_to_what_all_heads_change_together(make: Any) -> None:
    """The axiom of completeness (Sundararajan 2017): four times the gates, much less is missing.

    The midpoint rule errs by the square of the width of a step.
    """
    subject = make()
    task = classes() if make is classifier else tasks.lm(ENGLISH[:6])
    (batch,) = task.batches(subject, 16)
    with torch.no_grad():
        whole = task.loss(subject, batch)
        with valve(subject, torch.zeros(len(subject.heads))):
            closed = task.loss(subject, batch)
    missing = {}
    for steps in (1, 10, 40):
        with slopes(subject, task, "example", steps) as measure:
            found = measure(batch)["slopes"].sum(axis=1)
        missing[steps] = np.abs(found - (whole - closed).numpy()).max()
    assert missing[40] < missing[10] / 4 + 1e-5
    assert missing[10] < missing[1]


def test_integrated_gradients_by_their_option() -> None:
    plain, path = (
        hc.score(classifier(), classes(), by="gradient", steps=steps, compare=False)
        for steps in (None, 8)
    )
    assert path.provenance["settings"]["steps"] == 8
    assert "steps" not in plain.provenance["settings"]
    assert not np.allclose(plain.frame, path.frame)
    with pytest.raises(UsageError, match="steps is 'many'; give a whole number of gates, 1 or"):
        gradient(classifier(), classes(), steps="many")
    with pytest.raises(UsageError, match="steps is 8, and the convention 'paper' takes the slope"):
        gradient(classifier(), classes(), steps=8, convention="paper")
