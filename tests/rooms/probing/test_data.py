"""A treebank becomes examples: what stands for ROOT, the words' maps, what is left out."""

from __future__ import annotations

import pytest
import torch
from tiny_subjects import encoder, translator, writer
from trees import tree

from headcount.errors import InputError, UsageError
from headcount.models.subject import Subject
from headcount.rooms.probing.data import OwnVectors, Room, gather, placed, settings_for
from headcount.rooms.words.counts import word_maps
from headcount.text import Sentence, Words, encode, intake_of, read_corpus
from headcount.wiring import tap

TREES = [
    tree("The/det/3 old/amod/3 ferry/nsubj/4 leaves/root/0 ./punct/4"),
    tree("Rain/nsubj/2 fell/root/0"),
    tree("She/nsubj/2 mends/root/0 clocks/obj/2"),
]
EXACT = settings_for("paper")


def test_maps_are_those_between_words_with_cls_and_sep_in_front() -> None:
    subject = encoder()
    found = gather(subject, read_corpus(TREES), EXACT)
    stacks, heads = {"enc"}, len(subject.heads) // 2
    for one, sentence in zip(found.examples, TREES, strict=True):
        (batch,) = encode([sentence], subject.tokenizer, stacks=stacks)
        with tap(subject) as watch:
            seen = watch(batch)
        for layer, sighting in enumerate(seen):
            assert sighting.maps is not None
            words = sighting.queries.words
            ends = torch.eye(sighting.maps.shape[-1], dtype=torch.bool)[[0, -1]]
            pieces = torch.cat([ends[None], words.pieces], dim=1)
            words = Words(pieces, pieces.any(-1), words.sentences)
            clark = word_maps(sighting.maps, words, words)[0]
            assert one.maps is not None
            ours = one.maps[layer * heads : (layer + 1) * heads]
            torch.testing.assert_close(ours, clark)


@pytest.mark.parametrize("subject", [encoder(), writer()], ids=["encoder", "decoder"])
def test_batch_size_changes_no_map(subject: Subject) -> None:
    one, three = (gather(subject, read_corpus(TREES), EXACT, batch_size=size) for size in (1, 3))
    for ours, theirs in zip(one.examples, three.examples, strict=True):
        torch.testing.assert_close(ours.maps, theirs.maps, atol=1e-6, rtol=1e-5)
        assert ours.heads.tolist() == theirs.heads.tolist()
        assert ours.forms == theirs.forms


@pytest.mark.parametrize(
    ("subject", "stack", "start", "end"),
    [
        (encoder(), "enc", [True, False, False], [False, False, True]),
        (writer(), "dec", [True, False, False], [False, False, False]),
        (translator(), "enc", [False, False, False], [False, False, True]),
    ],
    ids=["[CLS] and [SEP]", "the first token", "</s> alone"],
)
def test_what_stands_for_root(
    subject: Subject, stack: str, start: list[bool], end: list[bool]
) -> None:
    intake = intake_of(subject.model, subject.tokenizer)
    (batch,) = encode(TREES[1:2], subject.tokenizer, stacks={stack}, intake=intake)
    side = batch.query(stack)
    assert side is not None
    ends = placed(side).pieces[0, :2]
    shown = ends[:, [0, ends.shape[1] // 2, -1]]
    assert shown.tolist() == [start, end]


def test_gold_heads_and_what_counts() -> None:
    (first, *_) = gather(encoder(), read_corpus(TREES), EXACT, maps=False).examples
    assert first.heads.tolist() == [3, 3, 4, 0, 4]
    assert first.scored.tolist() == [True, True, True, True, False]
    assert first.maps is None


def test_own_vectors_are_the_means_of_pieces() -> None:
    subject = encoder()
    vectors = OwnVectors(subject)
    (first, *_) = gather(subject, read_corpus(TREES), EXACT, vectors=vectors).examples
    weight = subject.model.get_input_embeddings().weight.detach()
    assert subject.tokenizer is not None
    ids = subject.tokenizer("ferry", add_special_tokens=False)["input_ids"]
    mean = weight[ids].mean(0) / weight.square().mean().sqrt()
    torch.testing.assert_close(vectors.table()[first.words[2]], mean)


def test_sentences_that_do_not_fit_are_left_out_and_told() -> None:
    long = tree(" ".join(["Rain/nsubj/2", "fell/root/0", *["again/advmod/2"] * 90]))
    bare = Sentence("Go on", tree("Go on").words)
    found = gather(encoder(), read_corpus([*TREES, long, bare]), EXACT)
    assert [one.index for one in found.examples] == [0, 1, 2]
    assert found.remarks == [
        "1 sentences of texts in hand were too long for the model and left out.",
        "1 sentences of texts in hand were without a head and left out.",
    ]


def test_what_is_no_treebank() -> None:
    with pytest.raises(InputError, match="has no words and no trees, only text"):
        gather(encoder(), read_corpus(["Rain fell."]), EXACT)
    with pytest.raises(InputError, match="has no trees: no word has a HEAD"):
        gather(encoder(), read_corpus([tree("Go on")]), EXACT)
    with pytest.raises(UsageError, match="holds pairs"):
        gather(encoder(), read_corpus([("Rain.", "Regen.")]), EXACT)


def test_room_beyond_memory_is_a_file() -> None:
    small, large = Room(6, torch.float16), Room(6, torch.float16, in_memory=1)
    assert (small._folder is None, large._folder is None) == (True, False)
    large.block(2, 2).fill_(3)
    block = large.block(2)
    block.fill_(5)
    assert block.tolist() == [5, 5]
