"""Alignment on maps whose truth is known, copies and the diagonal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from made import chances, pointing, rows_of, scores, show, site_of, uniform
from subjects import subject_of
from tiny_tokenizers import ENGLISH

from headcount.errors import InputError
from headcount.rooms.trials.alignment import (
    ALIGNMENT,
    Aligner,
    AlignmentHits,
    Ids,
    Links,
    SinkMass,
    SinkTrial,
    SourceEndMass,
    copies,
    diagonal,
    linked,
    sink_frame,
    source_ends,
)
from headcount.surveys.trial import Finding
from headcount.text.batch import Batch, Side, bare_side

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


def asked(links: Links, row: int, batch: Batch, targets: list[list[int]]) -> AlignmentHits:
    question = AlignmentHits(Finding(ALIGNMENT, "the diagonal"), {0: links}, row)
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
        assert scores(question.finding.counts, SITE) == expected


def test_a_head_on_the_end_token_is_judged_by_what_it_looks_at_next() -> None:
    batch = pair_of("a b", "A B")
    maps = torch.zeros(1, 2, 3, 3)
    maps[0, :, :, 2] = 0.8  # the end of the source
    maps[0, 0, 1:, :2] = torch.eye(2) * 0.2
    maps[0, 1, 1:, :2] = torch.eye(2).flip(0) * 0.2
    question = AlignmentHits(Finding(ALIGNMENT, "the diagonal"), {0: [(0, 0), (1, 1)]}, 0)
    show(question, SITE, maps, batch)
    assert scores(question.finding.counts, SITE) == [1.0, 0.0]


def test_the_diagonal_is_what_it_is_held_against() -> None:
    batch = pair_of("a b c d", "A B C D")
    question = asked([(0, 0), (1, 1), (2, 3), (3, 2)], 0, batch, [[0] * 5, [0] * 5])
    assert chances(question.finding.counts, SITE) == [0.5, 0.5]
    assert diagonal(torch.arange(2), 2, 6).tolist() == [1, 4]


def test_other_stacks_are_not_asked() -> None:
    question = AlignmentHits(Finding(ALIGNMENT, "the diagonal"), {0: []}, 0)
    maps = torch.eye(4)[None, None].expand(1, 2, 4, 4)
    batch = pair_of("a b c", "A B C")
    show(question, replace(SITE, stack="dec"), maps, batch)
    assert not list(question.finding.counts)


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


# --- The aligner on languages whose dictionary is known -----------------------------------------


def made_pairs(count: int, seed: int = 0) -> tuple[list[Ids], list[set[tuple[int, int]]]]:
    """Distinct words, each translated by 100 more, in an order of their own."""
    rng = np.random.default_rng(seed)
    pairs, truth = [], []
    for _ in range(count):
        source = rng.choice(30, rng.integers(3, 8), replace=False)
        order = rng.permutation(len(source))
        pairs.append((source.tolist(), (source[order] + 100).tolist()))
        truth.append({(place, int(there)) for place, there in enumerate(order)})
    return pairs, truth


def test_it_learns_a_dictionary_whatever_the_order() -> None:
    pairs, truth = made_pairs(300)
    found = Aligner()(pairs)
    linked = sum(map(len, found))
    right = sum(len({*links} & true) for links, true in zip(found, truth, strict=True))
    assert right / sum(map(len, truth)) > 0.95
    assert right / linked > 0.99


def test_what_cannot_be_told_apart_is_not_linked() -> None:
    assert Aligner()([([1, 2], [7, 8])]) == [[]]
    assert Aligner()([([5, 5], [9])] * 20) == [[]] * 20  # which of the two 5s?


def test_a_word_without_a_translation_is_left_alone() -> None:
    pairs, truth = made_pairs(300)
    noisy = [(source, [*target, 500]) for source, target in pairs]
    found = Aligner()(noisy)
    touched = [len(target) for (_, target), links in zip(pairs, found, strict=True)
               if len(target) in dict(links)]  # fmt: skip
    assert not touched
    assert sum(map(len, found)) > 0.9 * sum(map(len, truth))


@pytest.mark.parametrize("pairs", [[], [([], [3])], [([], [])]])
def test_nothing_to_link(pairs: list[Ids]) -> None:
    assert Aligner()(pairs) == [[] for _ in pairs]


def test_the_order_of_pairs_does_not_show() -> None:
    pairs, _ = made_pairs(60)
    there = Aligner()(pairs)
    assert Aligner()(pairs[::-1])[::-1] == there


# --- The attention sink -------------------------------------------------------------------------


SITE_SINK = site_of("dec", 3, causal=True)
GPT2 = subject_of("gpt2", "gpt2")  # adds no token in front
LLAMA = subject_of("llama", "llama")  # adds a begin-of-sequence token


def seen(rows: list[list[int]]) -> SinkMass:
    """Head 0 rests on the first token, head 1 on the token 7, head 2 looks evenly."""
    size = len(rows[0])
    question = SinkMass(after=2)
    for number, row in enumerate(rows):
        maps = torch.zeros(1, 3, size, size)
        maps[0, 0, :, 0] = 1
        maps[0, 1, :, row.index(7)] = 1
        maps[0, 2] = uniform(size, causal=True)
        batch = rows_of([row], ["dec"])
        batch.index[:] = [number]
        show(question, SITE_SINK, maps, batch)
    return question


def test_the_first_token_another_token_and_no_sink() -> None:
    question = seen([[5, 6, 7, 8, 9], [3, 7, 4, 8, 9]])
    counts = question.finding.counts
    assert scores(counts, SITE_SINK) == pytest.approx([1, 0, chances(counts, SITE_SINK)[2]])
    frame = sink_frame(GPT2, question, "as written")
    assert frame["first_top"].tolist()[:2] == [1, 0]
    assert frame["token_top"].tolist()[:2] == [0.5, 1]  # first tokens differ, 7 is always 7
    assert frame["token"][1] == GPT2.tokenizer.convert_ids_to_tokens(7)
    assert frame["resting_texts"].tolist()[:2] == [1, 0]


def test_early_rows_are_not_asked() -> None:
    question = seen([[5, 6, 7, 8, 9]])
    assert question.finding.counts.of(SITE_SINK).cells.tolist() == [[3, 3, 3]]
    assert chances(question.finding.counts, SITE_SINK)[0] == pytest.approx(
        (1 / 3 + 1 / 4 + 1 / 5) / 3
    )


def test_texts_are_run_with_and_without_a_beginning() -> None:
    for subject, other in ((GPT2, "with BOS"), (LLAMA, "without BOS")):
        sinks = SinkTrial(ENGLISH, length=16, examples=4)(subject).details["sinks"]
        assert list(sinks["text"].unique()) == ["as written", other]
        assert len(sinks) == 2 * len(subject.heads)


def test_a_random_decoder_rests_nowhere_in_particular() -> None:
    found = SinkTrial(ENGLISH, length=16, examples=8)(subject_of("gpt2", "gpt2", seed=3))
    counts = found.columns[0].counts
    for site in counts:
        gap = np.array(scores(counts, site)) - np.array(chances(counts, site))
        assert abs(gap).max() < 0.3


def test_a_text_that_is_too_short_is_told() -> None:
    with pytest.raises(InputError, match="has 2 tokens and the trial reads windows of 64; give mo"):
        SinkTrial(["a b"])(GPT2)


def test_only_decoders_that_read_text_are_asked() -> None:
    bert = subject_of("bert", "wordpiece")
    assert SinkTrial(ENGLISH).unfit(bert) == "only decoders that read text by themselves are asked"


# --- The end of the source, on maps whose truth is known ----------------------------------------


def side_of_source_end(text: str, pads: int = 0) -> Side:
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
    found = source_ends(side_of_source_end(text, pads=1))[0].tolist()
    assert found == [bool(one) for one in expected]


def test_mass_on_the_end_and_its_chance() -> None:
    source, target = side_of_source_end("a b c .", pads=1), side_of_source_end("A B")
    maps = torch.zeros(1, 2, 3, 6)
    maps[0, 0, :, 3:5] = 0.5  # all of it on stop and end
    maps[0, 1, :, :5] = 0.2  # even
    question = SourceEndMass()
    show(question, SITE, maps, Batch({}, {"source": source, "target": target}, [0]))
    assert scores(question.finding.counts, SITE) == pytest.approx([1.0, 0.4])
    assert chances(question.finding.counts, SITE) == pytest.approx([0.4, 0.4])
