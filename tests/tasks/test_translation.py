from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu
import torch
from tiny_subjects import classifier, encoder, translator, writer
from tiny_tokenizers import ENGLISH, GERMAN, PAIRS

from headcount import tasks
from headcount.errors import InputError, ModelError, UsageError
from headcount.models.subject import Subject
from headcount.wiring import valve


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
