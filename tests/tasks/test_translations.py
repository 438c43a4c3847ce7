"""Tests of `tasks/translations.py`."""

from __future__ import annotations

import copy
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import TINY
from tiny_subjects import classifier, encoder, translator, writer
from tiny_tokenizers import ENGLISH, GERMAN, PAIRS
from watching import told

from headcount import tasks
from headcount.errors import InputError, ModelError, StatsError, UsageError
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.tasks.translations import (
    COLUMNS,
    bleu_counts,
    bleu_metric,
    chrf,
    chrf_counts,
    chrf_metric,
    longest_output,
    own_output,
    sentence_bleu,
    translate,
)
from headcount.text import Pair
from headcount.text.batch import Batch
from headcount.wiring import valve

beam = import_module("headcount.tasks.translations")


@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_the_metric_is_sacrebleus_of_the_outputs(taught: Subject, metric: str) -> None:
    outcome = tasks.translation(PAIRS, metric, beams=2).evaluate(taught)
    judge = sacrebleu.BLEU() if metric == "bleu" else sacrebleu.CHRF()
    judged = judge.corpus_score(list(outcome.outputs), [GERMAN]).score
    assert 20 < judged < 100
    assert outcome.value == pytest.approx(judged, abs=1e-9)
    assert outcome.signature == str(judge.get_signature())
    low, high = outcome.interval(draws=300)[1:]
    assert low < outcome.value < high


def test_the_loss_is_the_models_own(taught: Subject) -> None:
    outcome = tasks.translation(PAIRS, "loss").evaluate(taught)
    tokenizer = taught.tokenizer
    assert tokenizer is not None
    for number, (source, target) in enumerate(PAIRS[:3]):
        inputs = tokenizer(source, text_target=target, return_tensors="pt")
        tokens = inputs["labels"].shape[1]
        with torch.no_grad():
            loss = float(taught.model(**inputs).loss)
        assert outcome.statistics[number] == pytest.approx([loss * tokens, tokens], rel=1e-4)
        assert outcome.scores[number] == pytest.approx(loss, rel=1e-4)


def test_a_shut_decoder_speaks_worse_and_the_difference_is_told(taught: Subject) -> None:
    task = tasks.translation(PAIRS, "chrf", beams=1)
    plain = task.evaluate(taught)
    with valve(taught, {head: 0.0 for head in taught.heads if head.stack == "cross"}):
        shut = task.evaluate(taught)
    found = shut.against(plain, draws=300)
    assert found.value == shut.value - plain.value < -20
    assert found.high < 0
    assert (found.test, found.p) == ("bootstrap", pytest.approx(1 / 301, abs=1e-2))


def test_pairs_come_from_a_file(tmp_path: Path, taught: Subject) -> None:
    path = tmp_path / "test.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), encoding="utf-8")
    task = tasks.translation(path, "loss")
    assert task.name == str(path)
    assert task.hash == tasks.translation(PAIRS).hash
    assert task.evaluate(taught).value == tasks.translation(PAIRS, "loss").evaluate(taught).value


@pytest.mark.parametrize(("make", "name"), [(encoder, "BertModel"), (writer, "GPT2LMHeadModel")])
def test_a_model_that_cannot_translate_is_refused(make: object, name: str) -> None:
    with pytest.raises(ModelError) as error:
        tasks.translation(PAIRS).evaluate(make())  # type: ignore[operator]
    assert str(error.value).startswith(
        "translation needs an encoder-decoder with a language-modelling head"
    )
    assert str(error.value).endswith(f"is of the class {name}.")


def test_an_encoder_decoder_without_a_head_is_refused() -> None:
    with pytest.raises(ModelError, match="and tiny marian is of the class MarianModel"):
        tasks.translation(PAIRS).evaluate(translator(model_class="MarianModel"))


def test_the_tokenizer_of_bleu_can_be_chosen() -> None:
    assert "tok:char" in str(tasks.translation(PAIRS, tokenize="char").metric.signature)


@pytest.mark.parametrize(
    ("examples", "options", "message"),
    [
        (
            [],
            {},
            "There are no examples; tasks of the kind translation take a list of (source, target) "
            "pairs.",
        ),
        (
            [("a", "b")],
            {"metric": "accuracy"},
            "Tasks of the kind translation have no metric 'accuracy'; choose bleu, chrf or loss.",
        ),
        ([("a", "b"), (" ", "c")], {}, "Example 2 has no source; fill it in or drop the example."),
        ([("a", "b")], {"beams": 0}, "beams is 0; it must be 1 or more."),
        ([("a", "b")], {"max_new_tokens": 0}, "max_new_tokens is 0; it must be 1 or more."),
    ],
)
def test_what_is_wrong_is_told(
    examples: list[object], options: dict[str, int], message: str
) -> None:
    with pytest.raises((InputError, UsageError)) as error:
        tasks.translation(examples, **options)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_classes_are_not_translations() -> None:
    with pytest.raises(ModelError, match="is of the class BertForSequenceClassification"):
        tasks.translation(list(zip(ENGLISH, GERMAN, strict=True))).evaluate(classifier())


# ---  -------------------------------------------------------------------------------------------


FAMILIES = ["marian", "t5", "bart", "mbart", "m2m100"]


def batch_of(subject: Subject, pairs: list[tuple[str, str]]) -> Batch:
    [batch] = tasks.translation(pairs).batches(subject, batch_size=len(pairs))
    return batch


def in_order(subject: Subject, pairs: list[tuple[str, str]], **options: int) -> list[str]:
    batch = batch_of(subject, pairs)
    told = dict(zip(batch.index, translate(subject, batch, **options), strict=True))  # type: ignore[arg-type]
    return [told[number] for number in range(len(pairs))]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("beams", [1, 3])
def test_a_translation_does_not_depend_on_its_neighbours(family: str, beams: int) -> None:
    subject = translator(family)
    pairs = PAIRS[:5]
    together = in_order(subject, pairs, beams=beams)
    alone = [in_order(subject, [pair], beams=beams)[0] for pair in pairs]
    assert together == alone
    assert len(set(together)) > 1


def test_a_taught_translator_translates(taught: Subject) -> None:
    told = in_order(taught, PAIRS, beams=4)
    assert sum(one == right for one, right in zip(told, GERMAN, strict=True)) >= 5
    assert in_order(taught, PAIRS, beams=4) == told


def test_beams_find_what_the_models_own_generate_finds(taught: Subject) -> None:
    inputs = taught.tokenizer(ENGLISH[:4], return_tensors="pt", padding=True)  # type: ignore[misc]
    ids = taught.model.generate(**inputs, num_beams=3, max_new_tokens=40, do_sample=False)
    told = taught.tokenizer.batch_decode(ids, skip_special_tokens=True)  # type: ignore[union-attr]
    assert in_order(taught, PAIRS[:4], beams=3, max_new_tokens=40) == told


@pytest.mark.parametrize("family", FAMILIES)
def test_the_decoder_starts_as_the_reference_does(family: str) -> None:
    subject = translator(family)
    batch = batch_of(subject, PAIRS[:3])
    started: list[torch.Tensor] = []

    def look(_: object, args: object, kwargs: dict[str, torch.Tensor]) -> None:
        started.append(kwargs["decoder_input_ids"])

    handle = subject.model.register_forward_pre_hook(look, with_kwargs=True)
    try:
        translate(subject, batch, beams=1, max_new_tokens=2)
    finally:
        handle.remove()
    first = started[0]
    assert torch.equal(first, batch.sides["target"].ids[:, : first.shape[1]])
    # M2M100's language code and BART's <s> follow the start token.
    assert first.shape[1] == (2 if family in ("m2m100", "bart") else 1)


def test_the_longest_output_is_the_sources_own() -> None:
    lengths = torch.tensor([4, 10])
    assert longest_output(lengths, None).tolist() == [24, 36]
    assert longest_output(lengths, 7).tolist() == [7, 7]


@pytest.mark.parametrize("beams", [1, 2])
def test_no_output_is_longer_than_asked(beams: int, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = translator()
    said: list[torch.Tensor] = []
    monkeypatch.setattr(
        subject.tokenizer, "batch_decode", lambda ids, **_: said.append(ids) or [""] * len(ids)
    )
    in_order(subject, PAIRS[:3], beams=beams, max_new_tokens=5)
    assert said[0].shape == (3, 1 + 5)  # the start token, then as many as asked for


def test_positions_are_never_exceeded() -> None:
    subject = translator(max_position_embeddings=24)
    assert len(in_order(subject, PAIRS, beams=2)) == 10


def test_the_models_own_settings_are_left_alone() -> None:
    subject = translator()
    settings = copy.deepcopy(subject.model.generation_config.to_dict())
    translate(subject, batch_of(subject, PAIRS[:2]), beams=3, max_new_tokens=3, length_penalty=0.5)
    assert subject.model.generation_config.to_dict() == settings


def test_special_tokens_are_not_spoken(taught: Subject) -> None:
    assert not any("<" in told or "▁" in told for told in in_order(taught, PAIRS, beams=2))


# ---  -------------------------------------------------------------------------------------------


WORDS = ["the", "cat", "sat", "on", "a", "mat", ".", ","]
SENTENCES = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
TEXTS = [
    ("The cat sat on the mat.", "The cat is on the mat."),
    ("It rains.", "It is raining, isn't it?"),
    ("", "Nothing was said here."),
    ("Two crows argued over bread", "Two crows argued over a crust of bread."),
]


def counts(texts: list[tuple[str, str]]) -> np.ndarray:
    return np.array([bleu_counts(*text) for text in texts], dtype=float)


def test_summed_counts_give_sacrebleus_corpus_bleu() -> None:
    told, references = [list(side) for side in zip(*TEXTS, strict=True)]
    judged = sacrebleu.corpus_bleu(told, [references]).score
    assert bleu_metric().value(counts(TEXTS)) == pytest.approx(judged, abs=1e-9)
    assert judged > 10


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=6))
def test_it_does_so_for_any_sentences(texts: list[tuple[str, str]]) -> None:
    told, references = [list(side) for side in zip(*texts, strict=True)]
    judged = sacrebleu.corpus_bleu(told, [references]).score
    assert bleu_metric().value(counts(texts)) == pytest.approx(judged, abs=1e-9)
    each = [sacrebleu.sentence_bleu(a, [b]).score for a, b in texts]
    assert sentence_bleu(counts(texts)) == pytest.approx(each, abs=1e-9)


def test_a_resample_is_bleu_of_the_sentences_drawn() -> None:
    drawn = [TEXTS[0], TEXTS[0], TEXTS[3], TEXTS[3]]
    told, references = [list(side) for side in zip(*drawn, strict=True)]
    [value] = bleu_metric().resample(counts(TEXTS), np.array([[2.0, 0, 0, 2]]))
    judged = sacrebleu.corpus_bleu(told, [references]).score
    assert value == pytest.approx(judged, abs=1e-9)


def test_the_signature_is_sacrebleus() -> None:
    judge = sacrebleu.BLEU()
    judge.corpus_score(["a"], [["a"]])
    assert bleu_metric().signature == str(judge.get_signature())
    assert "tok:char" in str(bleu_metric("char").signature)


def test_another_tokenizer_counts_otherwise() -> None:
    assert bleu_counts("ab", "ac", "char")[:2] == [2, 2]
    assert bleu_counts("ab", "ac")[:2] == [1, 1]
    assert len(COLUMNS) == len(bleu_counts("a", "a")) == 10


def test_an_unknown_tokenizer_is_told() -> None:
    with pytest.raises(UsageError, match=r"has no tokenizer 'moses'; choose one of .*13a"):
        bleu_metric("moses")


# ---  -------------------------------------------------------------------------------------------


TEXTS_CHRF = st.tuples(st.text("abc ü.", max_size=12), st.text("abc ü.", max_size=12))


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS_CHRF, min_size=1, max_size=5))
def test_summed_counts_give_sacrebleus_chrf(texts: list[tuple[str, str]]) -> None:
    told, references = [list(side) for side in zip(*texts, strict=True)]
    counts = np.array([chrf_counts(*text) for text in texts], dtype=float)
    judged = sacrebleu.corpus_chrf(told, [references]).score
    assert chrf_metric().value(counts) == pytest.approx(judged, abs=1e-9)
    each = [sacrebleu.sentence_chrf(a, [b]).score for a, b in texts]
    assert chrf_metric().scores(counts) == pytest.approx(each, abs=1e-9)


def test_a_perfect_translation_scores_100() -> None:
    counts = np.array(chrf_counts("Regen fiel.", "Regen fiel."), dtype=float)
    assert chrf(counts) == pytest.approx(100)


def test_chrf_the_signature_is_sacrebleus() -> None:
    judge = sacrebleu.CHRF()
    judge.corpus_score(["a"], [["a"]])
    assert chrf_metric().signature == str(judge.get_signature())


def test_other_statistics_are_refused() -> None:
    with pytest.raises(StatsError, match="chrF is made of 18 statistics, not of 10"):
        chrf(np.ones(10))


# ---  -------------------------------------------------------------------------------------------


SENTENCES_OWN_OUTPUT = ["Tom is here.", "I have never seen such a beautiful house.", "Thank you!"]


def test_sources_come_back_in_order_with_the_models_words() -> None:
    translator = load("translator", device="cpu")
    done: list[tuple[int, int]] = []
    with told(lambda count, total, title: done.append((count, total))):
        pairs = own_output(translator, SENTENCES_OWN_OUTPUT, batch_size=2)
    assert [pair.source for pair in pairs] == SENTENCES_OWN_OUTPUT
    assert pairs[1].target == "Ich habe noch nie so ein schönes Haus gesehen."
    assert done[-1] == (3, 3)
    given = [Pair(source, "Etwas ganz anderes.") for source in SENTENCES_OWN_OUTPUT]
    assert own_output(translator, given, batch_size=3) == pairs


def test_a_model_that_does_not_translate_is_refused() -> None:
    subject = Subject(TINY["bert"]())
    with pytest.raises(UsageError, match="is a BertModel, which translates nothing"):
        own_output(subject, SENTENCES_OWN_OUTPUT)


def test_a_source_of_which_nothing_came_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    translator = load("translator", device="cpu")
    monkeypatch.setattr(
        beam,
        "translate",
        lambda subject, batch, beams: ["" if place == 1 else "Ja." for place in batch.index],
    )
    assert [
        pair.source for pair in own_output(translator, SENTENCES_OWN_OUTPUT)
    ] == SENTENCES_OWN_OUTPUT[::2]
