from __future__ import annotations

import pytest
from tiny import TINY

from headcount.errors import UsageError
from headcount.models.load import load
from headcount.models.subject import Subject
from headcount.tasks.translation import own_output
from headcount.text import Pair

SENTENCES = ["Tom is here.", "I have never seen such a beautiful house.", "Thank you!"]


def test_sources_come_back_in_order_with_the_models_words() -> None:
    translator = load("translator", device="cpu")
    done: list[tuple[int, int]] = []
    pairs = own_output(
        translator, SENTENCES, batch_size=2, progress=lambda *told: done.append(told)
    )
    assert [pair.source for pair in pairs] == SENTENCES
    assert pairs[1].target == "Ich habe noch nie so ein schönes Haus gesehen."
    assert done[-1] == (3, 3)
    given = [Pair(source, "Etwas ganz anderes.") for source in SENTENCES]
    assert own_output(translator, given, batch_size=3) == pairs


def test_a_model_that_does_not_translate_is_refused() -> None:
    subject = Subject(TINY["bert"]())
    with pytest.raises(UsageError, match="is a BertModel, which translates nothing"):
        own_output(subject, SENTENCES)


def test_a_source_of_which_nothing_came_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = load("translator", device="cpu")
    monkeypatch.setattr(
        "headcount.tasks.translation.translate",
        lambda subject, batch, beams: ["" if place == 1 else "Ja." for place in batch.index],
    )
    assert [pair.source for pair in own_output(translator, SENTENCES)] == SENTENCES[::2]
