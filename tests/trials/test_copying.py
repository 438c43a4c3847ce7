"""What a head adds to the right token: the derivative, the slow way, and nothing left behind."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from subjects import subject_of
from tiny import TINY

from headcount.models.subject import Subject
from headcount.survey.trials.repeats import Copying, Repeats
from headcount.wiring import valve

REPEATS = Repeats(length=6, examples=3, batch_size=2)
SUBJECTS = {
    "llama": Subject(TINY["llama"]().double()),
    "gpt2": Subject(TINY["gpt2"]().double()),
    "marian": Subject(TINY["marian"]().double()),
}


def spoken(subject: Subject, scales: dict[str, float], example: int) -> float:
    """The mean log-probability of the repeat's tokens of one example, one at a time."""
    batch = next(iter(Repeats(length=6, examples=3, batch_size=3).batches(subject)))
    place = REPEATS.layout(subject).second("target")
    ids = batch.sides["target"].ids[example]
    with torch.no_grad(), valve(subject, scales):
        logits = subject.model(**batch.inputs).logits[example]
    rows = range(place.start, place.stop - 1)
    return sum(float(logits[row].log_softmax(-1)[ids[row + 1]]) for row in rows) / len(rows)


@pytest.mark.parametrize("family", SUBJECTS)
def test_it_is_the_derivative_of_the_right_token(family: str) -> None:
    subject, step = SUBJECTS[family], 5e-3
    marks = Copying(REPEATS)(subject).columns[0].marks
    for site in list(marks)[::2]:
        counted = marks.of(site)
        for head in (0, site.heads - 1):
            name = str(site.names[head])
            for example in range(3):
                up, down = (spoken(subject, {name: 1 + sign * step}, example) for sign in (1, -1))
                found = counted.hits[example, head] / counted.cells[example, head]
                assert found == pytest.approx((up - down) / (2 * step), abs=2e-4)


def test_only_a_decoder_s_own_heads_are_asked() -> None:
    marks = Copying(REPEATS)(SUBJECTS["marian"]).columns[0].marks
    assert {site.stack for site in marks} == {"dec"}


def test_nothing_is_left_on_the_model() -> None:
    subject = Subject(TINY["llama"]().train())
    Copying(REPEATS)(subject)
    assert all(weight.grad is None for weight in subject.model.parameters())
    assert subject.model.training
    assert all(module.training for module in subject.model.modules())


def test_the_model_s_own_figures() -> None:
    measures = {one.name: one for one in Copying(REPEATS)(SUBJECTS["llama"]).measures}
    subject = SUBJECTS["llama"]
    loss = -np.mean([spoken(subject, {}, example) for example in range(3)])
    assert measures["loss in the repeat"].value == pytest.approx(loss)
    assert 0 <= measures["right tokens of the repeat"].value <= 1
    assert measures["loss before the repeat"].n == 3


def test_who_is_not_asked_and_why() -> None:
    assert Copying().unfit(subject_of("bert", "wordpiece")) == "the model has no decoder"
    mute = Subject(TINY["gpt2"](model_class="GPT2Model"))
    assert Copying().unfit(mute) == "the model has no layer that predicts tokens"
