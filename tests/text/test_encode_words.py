"""Annotated corpora become batches whose sides have words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_tokenizers import BUILDERS, ENGLISH, GERMAN, chatty, marian, wordpiece

from headcount.bundle import sample
from headcount.errors import InputError
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.rooms.words.counts import word_maps
from headcount.text import (
    Batch,
    Intake,
    Pair,
    Sentence,
    Side,
    Words,
    encode,
    intake_of,
    read_corpus,
)
from headcount.text.sentence import split_words
from headcount.wiring import tap

ALL = {"enc", "dec", "cross"}
#: An encoder-decoder that starts its decoder with token 0.
SHIFTING = Intake(shift=lambda labels: torch.cat([labels[:, :1] * 0, labels[:, :-1]], dim=1))


def sentence(text: str) -> Sentence:
    return Sentence(text, split_words(text))


def words_of(side: Side) -> Words:
    assert side.words is not None
    return side.words


def spelt(side: Side, row: int = 0) -> list[str]:
    """The tokens of each word of a row, joined."""
    words = words_of(side)
    real = side.real[row].nonzero()[:, 0].tolist()
    written = dict(zip(real, side.tokens[row], strict=True))
    return [
        "".join(written[place].replace("##", "").replace("▁", "") for place in places)
        for places in (word.nonzero()[:, 0].tolist() for word in words.pieces[row])
        if places
    ]


def by_item(batches: Any, side: str = "source") -> dict[int, list[list[int]]]:
    """Each item's words as the ids of their tokens."""
    found: dict[int, list[list[int]]] = {}
    for batch in batches:
        one = batch.sides[side]
        for row, index in enumerate(batch.index):
            found[index] = [one.ids[row][word].tolist() for word in words_of(one).pieces[row]]
            found[index] = [ids for ids in found[index] if ids]
    return found


def test_a_side_has_the_words_of_its_sentences() -> None:
    corpus = [sentence(text) for text in ENGLISH[:3]]
    (batch,) = encode(corpus, wordpiece(), stacks={"enc"})
    side = batch.sides["source"]
    words = words_of(side)
    assert [each and each.text for each in words.sentences] == [
        ENGLISH[index] for index in batch.index
    ]
    for row, index in enumerate(batch.index):
        forms = [word.form.lower() for word in split_words(ENGLISH[index])]
        assert spelt(side, row) == forms
        assert words.there[row].tolist() == [
            place < len(forms) for place in range(words.there.shape[1])
        ]
    assert not (words.pieces & side.special[:, None]).any()


def test_plain_text_has_none_and_mixed_corpora_have_some() -> None:
    (batch,) = encode(ENGLISH[:2], wordpiece(), stacks={"enc"})
    assert batch.sides["source"].words is None
    (batch,) = encode([sentence("Rain."), Sentence("Two crows.")], wordpiece(), stacks={"enc"})
    words = words_of(batch.sides["source"])
    both = dict(
        zip(
            batch.index, zip(words.sentences, words.there.any(1).tolist(), strict=True), strict=True
        )
    )
    assert both[0][0] is not None
    assert both[0][1]
    assert both[1] == (None, False)


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "xlm_roberta", "marian", "gpt2"])
def test_words_do_not_depend_on_batches_and_padding(kind: str, side: Any, size: int) -> None:
    corpus = [sentence(text) for text in ENGLISH]
    stacks = {"dec"} if kind == "gpt2" else {"enc"}
    name = "target" if kind == "gpt2" else "source"
    one = encode(corpus, BUILDERS[kind](), stacks=stacks)
    other = encode(corpus, BUILDERS[kind](), stacks=stacks, batch_size=size, padding_side=side)
    assert by_item(one, name) == by_item(other, name)
    assert other.report.words == sum(len(split_words(text)) for text in ENGLISH)
    assert other.report.unplaced == other.report.cut == 0


def test_a_silent_tokenizer_goes_on_unless_words_are_needed() -> None:
    corpus = [sentence("Rain fell.")]
    (batch,) = encode(corpus, BUILDERS["byt5"](), stacks={"enc"})
    assert batch.sides["source"].words is None
    with pytest.raises(InputError, match="ByT5Tokenizer does not give the places of its tokens"):
        encode(corpus, BUILDERS["byt5"](), stacks={"enc"}, words=True)
    with pytest.raises(InputError, match=r"texts in hand has no words, only text; give a treebank"):
        encode(["Rain fell."], wordpiece(), stacks={"enc"}, words=True)
    (batch,) = encode(corpus, wordpiece(), stacks={"enc"}, words=False)
    assert batch.sides["source"].words is None


def test_windows_keep_the_numbers_of_the_whole() -> None:
    encoded = encode([sentence(ENGLISH[0])], wordpiece(), stacks={"enc"}, max_length=8)
    batches = list(encoded)
    count = len(split_words(ENGLISH[0]))
    seen = torch.zeros(count)
    for batch in batches:
        there = words_of(batch.sides["source"]).there
        assert there.shape[1] == count
        seen += there.sum(0)
    assert encoded.report.windowed == 1
    assert seen.max() == 1, "no word is in two windows"
    assert int((seen == 0).sum()) == encoded.report.cut


@pytest.mark.parametrize("kind", ["marian", "marian_two_vocabularies", "m2m100", "mbart"])
def test_both_sides_of_a_translator(kind: str) -> None:
    pairs = [(sentence(one), sentence(two)) for one, two in zip(ENGLISH, GERMAN, strict=True)]
    encoded = encode(pairs, BUILDERS[kind](), stacks=ALL, intake=SHIFTING, batch_size=4)
    for batch in encoded:
        target = batch.sides["target"]
        assert not words_of(target).pieces[:, :, 0].any(), "the decoder's start is no word"
        assert batch.labels is not None
        moved = words_of(target).pieces[:, :, 1:]
        for row, index in enumerate(batch.index):
            labels = batch.labels[row, :-1]
            text = GERMAN[index]
            own = [labels[word].tolist() for word in moved[row]]
            assert [ids for ids in own if ids] == by_item([batch], "target")[index]
            assert sum(map(bool, own)) == len(split_words(text))
    assert encoded.report.words == sum(len(split_words(text)) for text in [*ENGLISH, *GERMAN])
    assert encoded.report.unplaced == encoded.report.cut == 0


def test_one_annotated_side_is_enough() -> None:
    (batch,) = encode([(sentence("Rain fell."), "Regen.")], marian(), stacks=ALL, intake=SHIFTING)
    assert words_of(batch.sides["source"]).there.all()
    assert words_of(batch.sides["target"]).sentences == [None]


def test_two_texts_in_one_row_are_one_sentence() -> None:
    first, second = "Rain fell.", "Two crows argued."
    (batch,) = encode([(sentence(first), sentence(second))], wordpiece(), stacks={"enc"})
    side = batch.sides["source"]
    (both,) = words_of(side).sentences
    assert both is not None
    assert both.text == f"{first} {second}"
    assert spelt(side) == [
        word.form.lower() for text in (first, second) for word in split_words(text)
    ]
    (batch,) = encode(
        [Pair(first, second, annotated=(None, sentence(second)))], wordpiece(), stacks={"enc"}
    )
    assert spelt(batch.sides["source"]) == [word.form.lower() for word in split_words(second)]


def test_a_chat_turn_knows_its_words() -> None:
    (batch,) = encode(
        [
            sentence("Rain fell."),
        ],
        chatty(),
        stacks={"dec"},
        chat=True,
    )
    side = batch.sides["target"]
    assert [word.replace("Ġ", "") for word in spelt(side)] == ["Rain", "fell", "."]


def test_the_sample_on_the_bundled_translator() -> None:
    subject = load("translator", device="cpu")
    intake = intake_of(subject.model, subject.tokenizer)
    corpus = read_corpus(sample.path())
    encoded = encode(corpus, subject.tokenizer, stacks={"enc"}, intake=intake, words=True)
    assert sum(int(words_of(batch.sides["source"]).there.sum()) for batch in encoded) == 3363
    assert (encoded.report.unplaced, encoded.report.cut) == (0, 0)
    pairs = read_corpus(sample.path(), translation="text_de", limit=2)
    (batch,) = encode(pairs, subject.tokenizer, stacks=ALL, intake=intake, words=True)
    with tap(subject) as watch:
        seen = watch(batch)
    assert {sighting.site.stack for sighting in seen} == ALL
    for sighting in seen:
        if sighting.site.stack == "enc":
            words = words_of(sighting.queries)
            assert sighting.maps is not None
            mass = word_maps(sighting.maps, words, words).sum(-1)[
                words.there[:, None].expand(-1, 8, -1)
            ]
            assert len(mass) == 8 * int(words.there.sum())
            assert bool((mass > 0).all())
            once = words.pieces.sum(1) <= 1
            assert bool(once.all()), "in these sentences no token serves two words"
            assert bool((mass <= 1 + 1e-5).all())


@pytest.mark.real
@pytest.mark.data
def test_a_treebank_on_a_real_tokenizer(minilm: Subject, data_dir: Path) -> None:
    corpus = read_corpus(data_dir / "treebanks" / "en_ewt-ud-dev.conllu.xz")
    encoded = encode(corpus, minilm.tokenizer, stacks={"enc"})
    there = sum(int(words_of(batch.sides["source"]).there.sum()) for batch in encoded)
    assert there == encoded.report.words == 25147
    assert encoded.report.unplaced == 0


def test_moving_a_batch_moves_its_words() -> None:
    (batch,) = encode([sentence("Rain fell.")], wordpiece(), stacks={"enc"})
    moved: Batch = batch.to("cpu")
    torch.testing.assert_close(
        words_of(moved.sides["source"]).pieces, words_of(batch.sides["source"]).pieces
    )
