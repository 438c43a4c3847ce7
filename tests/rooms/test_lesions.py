"""Word by head: losses of words with heads off, and whether a verdict has a cause."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from report_runs import made_table
from subjects import subject_of

import headcount as hc
from headcount.errors import UsageError
from headcount.importance import Intervention, sweep
from headcount.models import Subject
from headcount.records import Head, HeadTable
from headcount.reports import Source
from headcount.rooms.lesions import word_losses
from headcount.rooms.lesions.by_word import Place
from headcount.rooms.lesions.causation import COLUMNS, cause_part, effect
from headcount.surveys.roles import Verdict, verdict_frame
from headcount.text import Sentence, read_sample

PAIRS = [("Rain fell.", "Regen fiel."), ("The cat sat there.", "Die Katze sass dort.")]


@pytest.fixture(scope="module")
def translator() -> Subject:
    return subject_of("marian", "marian")


def test_words_share_the_loss_that_the_task_has(translator: Subject) -> None:
    """A law: losses of words and of the end add up to those of the sentences, head by head."""
    off = [Intervention([head]) for head in translator.heads[::5]]
    task = hc.tasks.translation(PAIRS, metric="loss")
    whole = sweep(translator, task, off)
    words = word_losses(translator, list(task.examples), off)
    item = np.array([word.item for word in words.words])
    for place in range(2):
        own = item == place
        assert words.whole[own].sum() == pytest.approx(whole.baseline.statistics[place, 0])
        for number, outcome in enumerate(whole.outcomes):
            assert words.off[number, own].sum() == pytest.approx(
                outcome.statistics[place, 0], abs=1e-4
            )


def test_a_decoder_predicts_its_own_words() -> None:
    decoder = subject_of("llama", "llama")
    off = [Intervention([head]) for head in decoder.heads[:2]]
    texts = [Sentence("Rain fell on the town."), Sentence("It stopped.")]
    task = hc.tasks.lm(texts)
    words = word_losses(decoder, texts, off)
    told = sweep(decoder, task, off)
    assert [word.text for word in words.words if word.item == 1][-2:] == ["stopped", "."]
    assert words.whole.sum() <= told.baseline.statistics[:, 0].sum() + 1e-4
    assert words.added.shape == (2, len(words.words))


def test_a_masked_model_predicts_each_word_from_all_others() -> None:
    encoder = subject_of("bert", "wordpiece", model_class="BertForMaskedLM")
    found = hc.lesions(encoder, "Rain fell.")
    assert found.words == ("Rain", "fell", ".")
    assert found.added.shape == (len(encoder.heads), 3)
    assert (found.whole > 0).all()


def test_a_table_says_what_was_lost(translator: Subject) -> None:
    found = hc.lesions(translator, *PAIRS[0])
    assert found.words == ("Regen", "fiel", ".", "(end)")
    assert found.frame.shape == (len(translator.heads), 4)
    head, word, added = found.strongest(1)[0]
    assert added == found.added.max()
    assert str(head) in repr(found)
    assert f"'{word}'" in repr(found)
    assert found.to_dict()["heads"][0] == "enc.0.0"


def test_what_cannot_be_read_is_refused(translator: Subject) -> None:
    with pytest.raises(UsageError, match="The sentence is empty; give one with a word in it"):
        hc.lesions(translator, " ")
    decoder = subject_of("llama", "llama")
    with pytest.raises(UsageError, match="translates nothing; leave target"):
        hc.lesions(decoder, "Rain fell.", "Regen fiel.")


def test_an_effect_is_of_the_words_concerned_and_its_interval_covers() -> None:
    covered, rounds = 0, 60
    for seed in range(rounds):
        rng = np.random.default_rng(seed)
        words = [Place(item, number, "w") for item in range(60) for number in range(6)]
        mask = np.array([word.word == 2 for word in words])
        added = rng.normal(0.1, 0.3, len(words)) + 0.2 * mask
        found = effect(added, mask, words)
        covered += found.low <= 0.2 <= found.high
    assert covered >= 51  # 95% of 60 less three standard errors


def test_causes_of_a_survey_are_of_its_verdicts(translator: Subject) -> None:
    heads = [Head("enc", 0, 1), Head("cross", 1, 0)]
    verdicts = [
        Verdict(heads[0], "syntactic", "det dep->head", 0.9),
        Verdict(heads[1], "alignment", "when read", 0.9),
    ]
    table = HeadTable.of(translator.heads, {}, details={"roles": verdict_frame(verdicts)})
    pairs = list(read_sample(translation="text_de"))[:40]
    found = hc.causes(translator, table, pairs)
    assert found["role"].tolist() == ["syntactic", "alignment"]
    assert set(found["causal"]) <= {"yes", "no", "not compared"}
    assert (found["words"] + found["others"]).nunique() == 1
    alone = hc.causes(translator, table, pairs, matched=False)
    assert alone["cause"].tolist() == pytest.approx(found["cause"].tolist(), nan_ok=True)
    assert alone["matched"].tolist() == [0, 0]
    with pytest.raises(UsageError, match="A cause is asked of words"):
        hc.causes(translator, table, PAIRS)


def test_causes_are_on_the_page() -> None:
    sizes = {"enc": (2, 2), "dec": (2, 2), "cross": (2, 2)}
    frame = pd.DataFrame(
        [["enc", 0, 1, "syntactic", "det head->dep", 97, 800, 0.07, 0.012, -0.07, 0.09]],
        columns=list(COLUMNS[:11]),
    )
    unknown = frame.assign(head=0, cause=np.nan)
    source = Source(made_table(sizes), frames={"causes": pd.concat([frame, unknown])})
    (found,) = cause_part(source)
    assert found["head"] == 1
    assert found["said"].startswith("is named for det; without it 97 such words lose no more than")
    assert cause_part(Source(made_table(sizes))) == []
