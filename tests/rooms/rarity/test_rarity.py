"""Rarity against its definition in loops; ties, causality, words, texts without a rare token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sightings import SEPARATOR, Text, batch_of, draw_texts
from tiny import INTERFACE
from tiny_subjects import encoder

import headcount as hc
from headcount.errors import InputError, UsageError
from headcount.models.site import Site
from headcount.models.subject import Subject
from headcount.rooms.rarity.rarity import (
    Frequencies,
    Rarity,
    corpus_frequencies,
    frequencies_of,
    training_frequencies,
)
from headcount.text import encode
from headcount.text.sentence import Sentence, Word
from headcount.wiring import tap

TEXTS = draw_texts(14, seed=8)
KINDS = {"bert": "enc", "llama": "dec", "bart": "enc-dec"}
COMMON = 6


def frequencies(kind: str) -> dict[str, Frequencies]:
    return corpus_frequencies([batch_of(TEXTS, kind)], common=COMMON)


def tallied(family: str, sizes: list[int], left: bool = False, extra: int = 0) -> Rarity:
    subject, kind = Subject(INTERFACE[family]()), KINDS[family]
    tally = Rarity(frequencies(kind))
    start = 0
    with tap(subject, tally.needs) as watch:
        for size in sizes:
            batch = batch_of(TEXTS[start : start + size], kind, left, extra)
            watch(batch, receive=tally.update)
            start += size
    assert start == len(TEXTS)
    return tally


def slow(family: str, stack: str, layer: int, head: int, two: bool) -> list[float]:
    """Share, chance and baseline of one head, token by token."""
    kind = KINDS[family]
    subject, counts = Subject(INTERFACE[family]()), frequencies(kind)
    sums = []
    with tap(subject) as watch:
        for text in TEXTS:
            for sighting in watch(batch_of([text], kind)):
                if (sighting.site.stack, sighting.site.layer) == (stack, layer):
                    maps = sighting.maps[0, head].numpy()
                    asks = text.target if kind == "enc-dec" and stack != "enc" else text.source
                    answers = text.target if (kind, stack) == ("enc-dec", "dec") else text.source
                    name = "target" if stack == "dec" else "source"
                    sums.append(
                        slow_sentence(maps, asks, answers, counts[name], sighting.site.causal, two)
                    )
    found = np.array([row for row in sums if row[3]])
    return (found[:, :3].sum(0) / found[:, 3].sum()).tolist()


def slow_sentence(
    maps: np.ndarray, asks: tuple[int, ...], answers: tuple[int, ...], known: Frequencies,
    causal: bool, two: bool,
) -> list[float]:  # fmt: skip
    hits, chance, baseline, rows = 0.0, 0.0, 0.0, 0
    for i, query in enumerate(asks):
        seen = [j for j in range(len(answers)) if j <= i or not causal]
        allowed = [j for j in seen if answers[j] != SEPARATOR]
        words = [j for j in allowed if answers[j] != 1]  # 1 begins a text: a special token
        counts = {answers[j]: known.of(str(answers[j])) for j in words}
        if query == SEPARATOR or not counts or min(counts.values()) > known.border:
            continue
        order = sorted(counts.values())
        limit = order[min(1, len(order) - 1)] if two else order[0]
        targets = [j for j in words if counts[answers[j]] <= limit]
        uncommon = [j for j in words if counts[answers[j]] <= known.border]
        hits += max(allowed, key=lambda j: maps[i, j]) in targets
        chance += len(targets) / len(allowed)
        baseline += len(set(targets) & set(uncommon)) / len(uncommon)
        rows += 1
    return [hits, chance, baseline, rows]


@pytest.mark.parametrize("family", KINDS)
def test_it_is_the_definition(family: str) -> None:
    frame = tallied(family, [len(TEXTS)]).details()["rarity"]
    assert set(frame["target"]) == {"rare", "rare_two"}
    for row in frame[frame["head"].isin([0, 3])].itertuples():
        wanted = slow(family, row.stack, row.layer, row.head, row.target == "rare_two")
        assert [row.share, row.chance, row.uncommon] == pytest.approx(wanted), row
    assert frame[["p", "p_uncommon"]].stack().between(0, 1).all()


@pytest.mark.parametrize("family", KINDS)
def test_batches_padding_and_shards_never_show(family: str) -> None:
    whole = tallied(family, [14]).details()["rarity"]
    left = KINDS[family] != "enc-dec"
    for sizes, side, extra in (([1] * 14, False, 0), ([5, 5, 4], left, 3)):
        again = tallied(family, sizes, left=side, extra=extra).details()["rarity"]
        figures = ["share", "low", "high", "chance", "uncommon", "p", "p_uncommon", "n"]
        np.testing.assert_allclose(whole[figures], again[figures], rtol=1e-9)


def test_two_halves_merge() -> None:
    subject = Subject(INTERFACE["bert"]())
    halves = [Rarity(frequencies("enc")) for _ in range(2)]
    for tally, texts in zip(halves, (TEXTS[:5], TEXTS[5:]), strict=True):
        with tap(subject, tally.needs) as watch:
            watch(batch_of(texts, "enc"), receive=tally.update)
    halves[0].merge(halves[1])
    whole = tallied("bert", [14]).details()["rarity"]
    np.testing.assert_allclose(halves[0].details()["rarity"]["share"], whole["share"])


def test_tied_tokens_all_count() -> None:
    text = [Text((1, 30, 31, 32, 32, 32, SEPARATOR))]
    known = Frequencies.from_counts({"30": 1, "31": 1, "32": 9}, by="token", common=1)
    tally = Rarity(known)
    with tap(Subject(INTERFACE["bert"]()), tally.needs) as watch:
        watch(batch_of(text, "enc"), receive=tally.update)
    frame = tally.details()["rarity"].set_index("target")
    # Two of the six tokens in sight share the lowest count: the second rarest is as rare.
    assert frame["chance"].round(6).unique().tolist() == [round(2 / 6, 6)]
    assert frame["uncommon"].unique().tolist() == [1.0]


def test_no_sentence_with_a_rare_token_is_told() -> None:
    common = corpus_frequencies([batch_of(TEXTS, "enc")], common=500)
    tally = Rarity(common)
    with tap(Subject(INTERFACE["bert"]()), tally.needs) as watch:
        watch(batch_of(TEXTS, "enc"), receive=tally.update)
    reading = tally.compute()[0]
    assert np.isnan(reading.value).all()
    assert reading.note == (
        "no sentence has a token that is not among the 500 most frequent of the corpus"
    )
    assert tally.details() == {}


def words_of(text: str) -> Sentence:
    """A sentence whose words are parted by spaces."""
    places, start = [], 0
    for form in text.split():
        start = text.index(form, start)
        places.append(Word(form, start=start, end=start + len(form)))
        start += len(form)
    return Sentence(text, tuple(places))


def test_by_word_all_pieces_of_the_rarest_word_count() -> None:
    subject = encoder()
    sentences = [words_of("The incomprehensible cat sat"), words_of("A cat sat")]
    known = Frequencies.from_counts({"the": 90, "cat": 9, "sat": 8, "a": 70}, common=1)
    tally = Rarity(known)
    batch = next(iter(encode(sentences, subject.tokenizer, stacks={"enc"})))
    with tap(subject, tally.needs) as watch:
        watch(batch, receive=tally.update)
    own = batch.sides["source"]
    assert own.words is not None
    pieces = [int(own.words.pieces[0, 1].sum()), int(own.words.pieces[1, 2].sum())]
    assert pieces[0] > 1
    frame = tally.details()["rarity"]
    tokens = int((own.real & ~own.separator).sum())
    # In each sentence every token hits with pieces / tokens of it, so with all its pieces together.
    assert frame["chance"].iloc[0] == pytest.approx(sum(pieces) / tokens)


def test_by_word_signs_are_no_rare_words() -> None:
    subject = encoder()
    known = Frequencies.from_counts({"the": 90, "cat": 9, "sat": 8}, common=1)
    tally = Rarity(known)
    batch = next(iter(encode([words_of("The cat sat .")], subject.tokenizer, stacks={"enc"})))
    with tap(subject, tally.needs) as watch:
        watch(batch, receive=tally.update)
    own = batch.sides["source"]
    assert own.words is not None
    sat = int(own.words.pieces[0, 2].sum())
    chance = tally.details()["rarity"]["chance"].iloc[0]
    assert chance == pytest.approx(sat / int((own.real & ~own.separator).sum()))


def test_frequencies_of_words_need_words() -> None:
    subject = encoder()
    tally = Rarity(Frequencies.from_counts({"the": 3}, common=1))
    batch = next(iter(encode(["The cat sat"], subject.tokenizer, stacks={"enc"})))
    with tap(subject, tally.needs) as watch:
        watch(batch, receive=tally.update)
    assert tally.compute()[0].note == (
        "frequencies of words need a corpus with words: a treebank, or parsed text"
    )


def test_ready_inputs_have_no_frequencies() -> None:
    site = Site("enc", 0, heads=4, kv_heads=4, head_dim=8, module="a")
    tally = Rarity({})
    tally.sums.add(site, {"silent": torch.zeros(())})
    assert tally.compute()[0].note == "nothing is known of the tokens of ready inputs"


def test_frequencies_come_in_many_ways(tmp_path) -> None:  # type: ignore[no-untyped-def]
    assert frequencies_of(None) is None
    assert frequencies_of("corpus") is None
    given = frequencies_of({"The": 5, "cat": 1}, common=1)
    assert given is not None
    assert (given.of("the"), given.border) == (5, 1)
    assert frequencies_of(given) is given
    path = tmp_path / "counts.tsv"
    path.write_text("the\t500\nice cream\t3\n\n")
    read = frequencies_of(path, common=1)
    assert read is not None
    assert (read.of("ice cream"), read.border, read.of("zebra")) == (3, 3, 0)


@pytest.mark.parametrize("line", ["the", "the many", "\t12"])
def test_a_line_without_a_count_is_told(tmp_path, line: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "counts.tsv"
    path.write_text(f"a\t3\n{line}\n")
    with pytest.raises(InputError, match=r"Line 2 of .*counts\.tsv is .* a word and its count"):
        frequencies_of(path)


def test_wordfreq_knows_its_languages() -> None:
    pytest.importorskip("wordfreq")
    english = frequencies_of("wordfreq")
    assert english is not None
    assert english.of("the") > english.border > english.of("zebra")
    with pytest.raises(UsageError, match="wordfreq has no language 'xx'; it has ar, bg"):
        frequencies_of("wordfreq:xx")


def test_wordfreq_that_is_not_installed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wordfreq", None)
    with pytest.raises(UsageError, match=r"pip install 'headcount\[words\]'"):
        frequencies_of("wordfreq:de")


def test_a_translators_cross_heads_look_at_the_source() -> None:
    assert set(tallied("bart", [14]).details()["rarity"]["stack"]) == {"enc", "dec", "cross"}


def test_the_bundled_translator_knows_how_often_its_tokens_occurred() -> None:
    tokenizer = hc.load("translator", device="cpu").tokenizer
    known = training_frequencies(tokenizer)
    assert set(known) == {"source", "target"}
    assert known["source"].of("▁the") > 50_000 > known["source"].of("▁zebra")
    assert known["target"].of("▁die") > known["target"].border
    assert known["source"].by == "token"


def test_a_model_without_counts_has_none(tmp_path: Path) -> None:
    class Bare:
        name_or_path = str(tmp_path)

    assert training_frequencies(Bare()) == {}
    (tmp_path / "token_counts.json").write_text("[1, 2]")
    with pytest.raises(InputError, match="holds no counts of tokens"):
        training_frequencies(Bare())


def test_counts_of_tokens_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "tokens.tsv").write_text("▁the\t900\n▁cat\t3\n")
    known = frequencies_of(f"tokens:{tmp_path / 'tokens.tsv'}")
    assert known is not None
    assert (known.by, known.of("▁the")) == ("token", 900)
