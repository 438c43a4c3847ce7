"""The end of the source, on maps whose truth is known."""

from __future__ import annotations

import pytest
import torch
from made import chances, scores, show, site_of

from headcount.survey.trials.alignment import Ending, endings
from headcount.text.batch import Batch, Side, bare_side

SITE = site_of("cross", 2)


def side_of(text: str, pads: int = 0) -> Side:
    """Words and marks, with an end token and padding behind."""
    words = [*text.split(), "</s>"]
    size = len(words) + pads
    real = torch.tensor([[place < len(words) for place in range(size)]])
    side = bare_side(torch.arange(size)[None], real)
    end = torch.tensor([[place == len(words) - 1 for place in range(size)]])
    marks = torch.tensor([[place < len(words) and words[place] in ".,!" for place in range(size)]])
    return Side(side.ids, real, end, end, marks, marks, [words])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a , b .", [0, 0, 0, 1, 1, 0]), ("a , b", [0, 0, 0, 1, 0]), ("a . b", [0, 0, 0, 1, 0])],
)
def test_the_end_token_and_the_mark_just_before_it(text: str, expected: list[int]) -> None:
    assert endings(side_of(text, pads=1))[0].tolist() == [bool(one) for one in expected]


def test_mass_on_the_end_and_its_chance() -> None:
    source, target = side_of("a b c .", pads=1), side_of("A B")
    maps = torch.zeros(1, 2, 3, 6)
    maps[0, 0, :, 3:5] = 0.5  # all of it on stop and end
    maps[0, 1, :, :5] = 0.2  # even
    question = Ending()
    show(question, SITE, maps, Batch({}, {"source": source, "target": target}, [0]))
    assert scores(question.finding.marks, SITE) == pytest.approx([1.0, 0.4])
    assert chances(question.finding.marks, SITE) == pytest.approx([0.4, 0.4])
