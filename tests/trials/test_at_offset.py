"""Induction, duplicate and previous token on maps whose truth is known."""

from __future__ import annotations

import pytest
import torch
from made import chances, rows_of, scores, show, site_of, uniform

from headcount.models.site import Site
from headcount.survey.trials.repeats import (
    AtOffset,
    duplicate_question,
    induction_question,
    previous_question,
)
from headcount.survey.trials.trial import Layout
from headcount.wiring.sighting import look

LENGTH, BEFORE = 5, 1
LAYOUT = Layout(LENGTH, {"source": BEFORE, "target": BEFORE})
QUESTIONS = {
    "induction": induction_question,
    "duplicate": duplicate_question,
    "previous": previous_question,
}
ROW = [1, *range(10, 15), *range(10, 15)]


def perfect(offset: int) -> torch.Tensor:
    """A map with all weight at one offset, on the first token where there is no such place."""
    size = len(ROW)
    maps = torch.zeros(size, size)
    for query in range(size):
        key = query + offset
        maps[query, key if 0 <= key < size else 0] = 1
    return maps


def ask(name: str, maps: list[torch.Tensor], site: Site) -> AtOffset:
    question = QUESTIONS[name](LAYOUT)
    show(question, site, torch.stack(maps)[None], rows_of([ROW], [site.stack]))
    return question


@pytest.mark.parametrize(
    ("name", "offset"), [("induction", 1 - LENGTH), ("duplicate", -LENGTH), ("previous", -1)]
)
def test_a_head_that_does_it_has_1_and_the_others_0(name: str, offset: int) -> None:
    site = site_of("dec", 3, causal=True)
    offsets = [1 - LENGTH, -LENGTH, -1]
    question = ask(name, [perfect(one) for one in offsets], site)
    assert scores(question.finding.marks, site) == [float(one == offset) for one in offsets]


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("causal", [True, False])
def test_even_attention_gets_exactly_chance(name: str, causal: bool) -> None:
    if name == "induction" and not causal:
        pytest.skip("nobody asks encoders for induction")
    site = site_of("dec" if causal else "enc", 1, causal=causal)
    question = ask(name, [uniform(len(ROW), causal=causal)], site)
    marks = question.finding.marks
    assert scores(marks, site) == pytest.approx(chances(marks, site))


def test_chance_counts_what_each_query_may_see() -> None:
    site = site_of("dec", 1, causal=True)
    marks = ask("induction", [perfect(0)], site).finding.marks
    seen = range(BEFORE + LENGTH + 1, BEFORE + 2 * LENGTH + 1)  # keys that the repeat's rows see
    assert chances(marks, site) == pytest.approx([sum(1 / n for n in seen) / LENGTH])


def test_an_encoder_is_asked_for_duplicates_both_ways_and_not_for_induction() -> None:
    site = site_of("enc", 1)
    maps = perfect(-LENGTH)
    for query in range(BEFORE, BEFORE + LENGTH):
        maps[query] = 0
        maps[query, query + LENGTH] = 1
    assert scores(ask("duplicate", [maps], site).finding.marks, site) == [1.0]
    assert not list(ask("induction", [maps], site).finding.marks)


def test_a_window_that_ends_before_the_repeat_has_no_score() -> None:
    site = site_of("dec", 1, causal=True)
    question = induction_question(LAYOUT)
    near = torch.ones(len(ROW), len(ROW)).tril() * torch.ones(len(ROW), len(ROW)).triu(-2)
    mask = torch.where(near > 0, 0.0, torch.finfo(torch.float32).min)[None, None]
    batch = rows_of([ROW], ["dec"])
    question.update(
        look(site, (near / near.sum(-1, keepdim=True))[None, None], mask, batch, question.needs)
    )
    assert not question.finding.marks.of(site).cells.any()
    assert question.finding.silent["dec"] == "the windows of some layers end before the repeat"
