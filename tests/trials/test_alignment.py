"""Alignment on maps whose truth is known, copies and the diagonal."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from made import chances, pointing, scores, show, site_of

from headcount.survey.trials.alignment import (
    ALIGNMENT,
    Aligned,
    Aligner,
    Links,
    copies,
    diagonal,
    linked,
)
from headcount.survey.trials.trial import Finding
from headcount.text.batch import Batch, Side

SITE = site_of("cross", 2)


def side_of(tokens: list[str], special: list[int]) -> Side:
    """One row of tokens; the ids are their places in the alphabet of this file."""
    ids = torch.tensor([[sum(map(ord, token)) for token in tokens]])
    marked = torch.tensor([special], dtype=torch.bool)
    none = torch.zeros_like(marked)
    return Side(ids, torch.ones_like(marked), marked, none, none, none, [tokens])


def pair_of(source: str, target: str, number: int = 0) -> Batch:
    """Words with an end behind the source and a start before the target."""
    theirs, ours = source.split(), target.split()
    sides = {
        "source": side_of([*theirs, "</s>"], [0] * len(theirs) + [1]),
        "target": side_of(["<s>", *ours], [1] + [0] * len(ours)),
    }
    return Batch({}, sides, [number])


def asked(links: Links, row: int, batch: Batch, targets: list[list[int]]) -> Aligned:
    question = Aligned(Finding(ALIGNMENT, "the diagonal"), {0: links}, row)
    keys = batch.sides["source"].ids.shape[1]
    show(question, SITE, pointing(targets, keys), batch)
    return question


def test_the_row_before_predicts_and_the_own_row_reads() -> None:
    batch = pair_of("a b c", "C A B")
    links = [(0, 2), (1, 0), (2, 1)]
    # rows are <s> C A B: head 0 looks while it predicts, head 1 while it reads
    maps = [[2, 0, 1, 3], [3, 2, 0, 1]]
    for row, expected in ((-1, [1.0, 0.0]), (0, [0.0, 1.0])):
        question = asked(links, row, batch, maps)
        assert scores(question.finding.marks, SITE) == expected


def test_a_head_on_the_end_token_is_judged_by_what_it_looks_at_next() -> None:
    batch = pair_of("a b", "A B")
    maps = torch.zeros(1, 2, 3, 3)
    maps[0, :, :, 2] = 0.8  # the end of the source
    maps[0, 0, 1:, :2] = torch.eye(2) * 0.2
    maps[0, 1, 1:, :2] = torch.eye(2).flip(0) * 0.2
    question = Aligned(Finding(ALIGNMENT, "the diagonal"), {0: [(0, 0), (1, 1)]}, 0)
    show(question, SITE, maps, batch)
    assert scores(question.finding.marks, SITE) == [1.0, 0.0]


def test_the_diagonal_is_what_it_is_held_against() -> None:
    batch = pair_of("a b c d", "A B C D")
    question = asked([(0, 0), (1, 1), (2, 3), (3, 2)], 0, batch, [[0] * 5, [0] * 5])
    assert chances(question.finding.marks, SITE) == [0.5, 0.5]
    assert diagonal(torch.arange(2), 2, 6).tolist() == [1, 4]


def test_other_stacks_are_not_asked() -> None:
    question = Aligned(Finding(ALIGNMENT, "the diagonal"), {0: []}, 0)
    maps = torch.eye(4)[None, None].expand(1, 2, 4, 4)
    batch = pair_of("a b c", "A B C")
    show(question, replace(SITE, stack="dec"), maps, batch)
    assert not list(question.finding.marks)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("We met Tom there", "Wir trafen Tom dort", [(2, 2)]),
        ("Tom met us", "Wir sah Tom", []),  # first of a text: the capital means nothing
        ("I saw Tom and Tom", "Ich sah Tom und Tom", []),  # twice: which is which?
        ("it was in 1902 then", "es war 1902 in Rom", [(2, 3)]),  # 'in' may well be another word
    ],
)
def test_copies_are_exact_or_nothing(source: str, target: str, expected: Links) -> None:
    assert copies([pair_of(source, target)]) == {0: expected}


def test_links_do_not_depend_on_batches() -> None:
    texts = [("a b", "A B"), ("b c", "C B"), ("c a", "A C"), ("b", "B")]
    batches = [pair_of(*pair, number) for number, pair in enumerate(texts)]
    there = linked(batches[:2], batches[2:], Aligner())
    assert there == linked(batches[:2][::-1], batches[2:][::-1], Aligner())
    assert sorted(there) == [0, 1]
    assert there[1] == [(0, 1), (1, 0)]
