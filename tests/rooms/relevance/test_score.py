"""Relevance of heads: its options, its journal, what it explains, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from subjects import subject_of
from tiny import TINY
from tiny_subjects import classifier, encoder, filler, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS
from watching import told

import headcount as hc
from headcount import tasks
from headcount.bundle import sample
from headcount.errors import HeadcountError, ModelError, UnsupportedModel, UsageError
from headcount.importance.examples import ExampleSums, Interrupted
from headcount.models.subject import Subject
from headcount.records.journal import Journal
from headcount.records.run import Run
from headcount.records.table import HeadTable
from headcount.rooms.relevance.propagate import Relevance
from headcount.rooms.relevance.rules import EPS, ZPlus
from headcount.rooms.relevance.score import Draw, Start, head_shares, relevance
from headcount.tasks.task import Task

LABELLED = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]


def classes() -> Task:
    return tasks.classification(LABELLED)


def test_a_table_with_intervals_and_where_it_comes_from() -> None:
    table = relevance(classifier(), classes(), batch_size=4)
    assert table.names == ["relevance"]
    value, low, high = (part["relevance"] for part in table.parts())
    assert ((low >= 0) & (low <= value) & (value <= high) & (high <= 1)).all()
    settings = {"rule": "z+", "per": "step", "predictions": 8, "seed": 0}
    assert table.provenance["settings"] == settings
    assert table.provenance["task"]["kind"] == "classification"
    first, second = table.provenance["remarks"]
    assert first == "Explained is the logit of the class that the model chooses."
    assert second.startswith("Relevance (every cut keeps the total): a prediction")
    assert table.column("relevance").direction == "higher"


def test_the_flow_is_told_layer_by_layer(tmp_path: Path) -> None:
    table = relevance(translator(), tasks.translation(PAIRS[:3], metric="loss"))
    flow = table.details["relevance_flow"]
    assert list(zip(flow["stack"], flow["layer"], strict=True)) == [
        *(("enc", 0), ("enc", 1)),
        *(("dec", 0), ("dec", 1), ("dec", 2)),
    ]
    np.testing.assert_allclose(flow["through"], 1, atol=1e-3)
    assert (flow["worst_loss"] < 1e-3).all()
    table.save(tmp_path)
    again = HeadTable.load(tmp_path).details["relevance_flow"]
    np.testing.assert_allclose(again["through"], flow["through"])
    assert Run.open(tmp_path, create=False).read_table().provenance["remarks"]


@pytest.mark.parametrize(
    ("convention", "rule"), [("headcount", "z+"), ("paper", "ding"), ("code", "z+")]
)
def test_a_convention_has_its_rule(convention: str, rule: str) -> None:
    table = relevance(classifier(), classes(), convention=convention)
    assert table.provenance["settings"]["rule"] == rule
    named = relevance(classifier(), classes(), rule=rule)
    np.testing.assert_array_equal(table.frame, named.frame)


def test_a_sentence_in_one_backward_is_named_an_approximation() -> None:
    subject, task = translator(), tasks.translation(PAIRS[:4], metric="loss")
    steps, sentences = (relevance(subject, task, per=per) for per in ("step", "sentence"))
    assert "an approximation" in sentences.provenance["remarks"][1]
    assert not any("approximation" in words for words in steps.provenance["remarks"])
    assert float(np.abs(steps.frame - sentences.frame).to_numpy().max()) > 1e-3


def test_where_every_text_has_one_prediction_both_are_the_same() -> None:
    whole, steps = (relevance(classifier(), classes(), per=per) for per in ("sentence", "step"))
    np.testing.assert_array_equal(whole.frame, steps.frame)


def test_half_precision_is_near() -> None:
    subject = classifier()
    exact = relevance(subject, classes()).frame["relevance"]
    subject.model.bfloat16()
    near = relevance(subject, classes()).frame["relevance"]
    assert np.corrcoef(exact, near)[0, 1] > 0.9


# --- some predictions of a text -----------------------------------------------------------------


def test_each_prediction_is_as_likely_and_stands_for_those_left_out() -> None:
    predicted = torch.tensor(
        [[False] + [True] * 7 + [False] + [True] * 3, [True] * 2 + [False] * 10]
    )
    index = np.arange(3000)
    rows = predicted[:1].expand(len(index), -1)
    drawn, weights = Draw(3, seed=1).of(rows, index.tolist())
    assert (drawn.sum(dim=1) == 3).all()
    assert not drawn[:, ~predicted[0]].any()
    np.testing.assert_allclose(drawn.double().mean(dim=0)[predicted[0]], 0.3, atol=0.03)
    np.testing.assert_allclose(weights, 10 / 3)
    drawn, weights = Draw(3).of(predicted, [0, 1])
    assert drawn[1].equal(predicted[1])
    assert weights[1] == 1
    everything, ones = Draw().of(predicted, [0, 1])
    assert everything.equal(predicted)
    assert (ones == 1).all()


def test_few_predictions_are_right_on_average() -> None:
    subject, task = translator(), tasks.translation(PAIRS, metric="loss")
    whole = relevance(subject, task, predictions="all").frame["relevance"].to_numpy()
    drawn = [relevance(subject, task, predictions=2, seed=seed) for seed in range(40)]
    values = np.array([table.frame["relevance"] for table in drawn])
    error = values.std(axis=0) / np.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - whole) < 4 * error + 1e-4).all()
    assert not np.array_equal(values[0], values[1])
    said = drawn[0].provenance["remarks"][1]
    assert said.startswith("At most 2 predictions of a text are explained, 20 of ")
    stated = float(said.split("at most ")[1].split(",")[0])
    # A systematic draw is no worse than the simple one whose error is said.
    assert 0.3 * stated < values.std(axis=0).max() < 1.3 * stated


def test_intervals_hold_the_draw() -> None:
    """Texts whose shares are known, some predictions of each: 95 in a hundred hold the truth."""
    subject, noise = classifier(), torch.Generator().manual_seed(0)
    heads, texts, places, held = len(subject.heads), 24, 12, []
    for seed in range(150):
        tilt = torch.randn(1, texts, heads, generator=noise) * 0.2
        sizes = (tilt + torch.randn(places, texts, heads, generator=noise) * 0.6).exp()
        drawn, weights = Draw(3, seed).of(torch.ones(texts, places) > 0, range(texts))
        start = Start(
            torch.zeros(texts), torch.zeros(places, texts), drawn.T, None, weights=weights
        )
        found = head_shares(subject, Relevance(sizes, None), start)
        sums = ExampleSums()
        sums.add(range(texts), found["shares"], found["counts"])
        _, low, high = sums.interval(absolute=False)
        truth = 1 / np.array(
            [site.heads for site in subject.anatomy.sites for _ in range(site.heads)]
        )
        held.append((low <= truth) & (truth <= high))
    assert 0.93 < np.mean(held) < 0.97


def test_a_draw_is_of_seed_and_example_alone() -> None:
    subject, task = translator(), tasks.translation(PAIRS, metric="loss")
    one, three, other = (
        hc.score(subject, task, by="relevance", predictions="3", seed=seed, batch_size=size)
        for seed, size in ((5, 1), (5, 3), (6, 3))
    )
    np.testing.assert_allclose(one.frame, three.frame, rtol=0, atol=5e-6)
    assert np.abs(one.frame - other.frame).to_numpy().max() > 1e-4
    assert one.provenance["settings"]["predictions"] == 3
    few = relevance(subject, task, predictions=50)
    np.testing.assert_array_equal(few.frame, relevance(subject, task, predictions="all").frame)
    assert not any("At most" in said for said in few.provenance["remarks"])


def test_the_papers_explain_every_prediction(tmp_path: Path) -> None:
    table = relevance(classifier(), classes(), convention="paper")
    assert table.provenance["settings"]["predictions"] == "all"
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        relevance(classifier(), classes(), journal=journal)
        with pytest.raises(HeadcountError, match="predictions"):
            relevance(classifier(), classes(), predictions="all", journal=journal)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"predictions": 0}, "predictions is '0'; give how many of each text are explained, 1 or"),
        ({"predictions": "some"}, "predictions is 'some'; give how many .* or all"),
        ({"predictions": 2, "per": "sentence"}, "predictions is '2' and per is 'sentence', which"),
    ],
)
def test_numbers_of_predictions_that_mean_nothing(how: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        relevance(classifier(), classes(), **how)


# --- corpora ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "corpus", "explained"),
    [
        (translator(), PAIRS[:2], "of every target token"),
        (writer("llama"), ENGLISH[:2], "of every next token"),
        (filler(), ENGLISH[:2], "of every hidden token"),
        (encoder(), PAIRS[:2], "the cosine of the two embeddings"),
    ],
    ids=["pairs", "decoder", "filler", "encoder"],
)
def test_a_corpus_stands_for_a_task(subject: Subject, corpus: Any, explained: str) -> None:
    table = relevance(subject, corpus, rule="z+ extended")
    assert explained in table.provenance["remarks"][0]
    assert table.provenance["corpus"] == "texts in hand"
    assert table.frame["relevance"].notna().all()


def test_single_texts_leave_an_encoder_nothing_to_explain() -> None:
    with pytest.raises(UsageError, match="predicts no words, so single texts leave nothing to exp"):
        relevance(encoder(), ENGLISH[:2])


def test_stacks_that_no_relevance_reaches_are_missing() -> None:
    task = tasks.similarity([(a, b, 0.5) for a, b in PAIRS[:2]])
    table = relevance(translator(), task)
    assert table.stack("enc").frame["relevance"].notna().all()
    assert table.stack("dec").frame["relevance"].isna().all()
    assert "dec: no relevance reaches it in this task" in table.notes["relevance"]


# --- the journal --------------------------------------------------------------------------------


def fail_after(batches: int) -> Any:
    """Progress that breaks the work off."""
    calls = []

    def progress(done: int, total: int, title: str) -> None:
        calls.append(done)
        if len(calls) == batches:
            raise KeyboardInterrupt

    return told(progress)


def test_broken_off_and_gone_on_with_is_the_same_table(tmp_path: Path) -> None:
    subject, path = classifier(), tmp_path / "journal.jsonl"
    whole = relevance(subject, classes(), batch_size=3)
    stopping = pytest.raises(Interrupted)
    with Journal.open(path, {}) as journal, stopping as stopped, fail_after(2):
        relevance(subject, classes(), batch_size=3, journal=journal)
    assert stopped.value.table.notes["relevance"] == "interrupted after 3 of 10 examples"
    with Journal.open(path, {}) as journal:
        before = len(journal.done)
        resumed = relevance(subject, classes(), batch_size=3, journal=journal)
        assert len(journal.done) > before
    for ours, theirs in zip(whole.parts(), resumed.parts(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert resumed.details["relevance_flow"].equals(whole.details["relevance_flow"])


def test_a_journal_of_another_rule_is_refused(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        relevance(classifier(), classes(), journal=journal)
        with pytest.raises(HeadcountError, match="rule"):
            relevance(classifier(), classes(), rule="ding", journal=journal)


# --- what cannot be had ---------------------------------------------------------------------------


def test_words_that_mean_nothing() -> None:
    with pytest.raises(UsageError, match=r"no relevance rule 'lrp'; choose ding, z\+, al"):
        relevance(classifier(), classes(), rule="lrp")
    with pytest.raises(UsageError, match="per is 'token'; choose step, one backward a prediction"):
        relevance(classifier(), classes(), per="token")
    with pytest.raises(UsageError, match="no convention 'mine'; choose headcount, paper, code"):
        relevance(classifier(), classes(), convention="mine")


def test_a_task_without_predictions() -> None:
    task = tasks.custom(["a"], lambda subject, texts: [1.0 for _ in texts])
    with pytest.raises(UsageError, match="A custom task has no prediction that relevance could"):
        relevance(encoder(), task)


def test_a_model_without_the_head_that_a_task_needs() -> None:
    with pytest.raises(ModelError, match="classification needs a model with a classifier head"):
        relevance(encoder(), classes())
    with pytest.raises(ModelError, match="no linear layer that scores words, so there is no top-1"):
        relevance(encoder(), tasks.mlm(ENGLISH[:2]))


def test_a_broken_weight_is_named() -> None:
    subject = classifier()
    with torch.no_grad():
        subject.model.bert.encoder.layer[1].output.dense.bias[0] = float("nan")
    with pytest.raises(ModelError, match=r"bert.encoder.layer.1.output.dense.bias of tiny bert"):
        relevance(subject, classes())


def test_families_outside_the_interface_are_refused_by_name() -> None:
    subject = Subject(TINY["gptj"](), writer().tokenizer, name="mine")
    with pytest.raises(UnsupportedModel, match=r"mine \(GPTJForCausalLM\) does not speak"):
        relevance(subject, tasks.lm(ENGLISH[:1]))


def test_a_function_without_a_rule_is_refused_by_name() -> None:
    subject = subject_of("gpt_oss", "gpt2")
    with pytest.raises(UnsupportedModel, match=r"gpt_oss calls torch\.\w+, which no relev"):
        relevance(subject, tasks.lm(ENGLISH[:1]), rule="z+ extended")


def test_a_block_that_the_authors_did_not_have_is_refused() -> None:
    task = tasks.lm(ENGLISH[:1])
    with pytest.raises(UnsupportedModel, match=r"'z\+' has no definition for a root-mean-square"):
        relevance(writer("llama"), task)
    with pytest.raises(UnsupportedModel, match=r"for a root.*contribution, or rule="):
        relevance(writer("llama"), task, rule="alpha-beta")
    assert relevance(writer("llama"), task, rule="ding extended").frame["relevance"].notna().all()


#: Of several lengths, for padding; shorter still where `alpha-beta`, which is slow, reads them.
SHORT = sorted(sample.pairs(), key=lambda pair: len(pair[0]))[:6]
SHORTEST = [
    *(("No.", "Nein."), ("Come in.", "Komm rein."), ("Who?", "Wer?")),
    *(("I see.", "Ich verstehe."), ("Go!", "Geh!"), ("Yes.", "Ja.")),
]


def assert_batches_never_show(subject: Subject, pairs: Any, rule: str | None, sizes: Any) -> None:
    by = "contribution" if rule is None else "relevance"
    task = tasks.translation(pairs, metric="loss")
    before = subject.weights_hash
    one, *others = (
        hc.score(subject, task, by=by, rule=rule, batch_size=size).numbers(by) for size in sizes
    )
    # Contribution is computed as the model is, in float32; rules in float64.
    bound = 5e-6 if rule is None else 1e-9
    for other in others:
        np.testing.assert_allclose(other, one, rtol=0, atol=bound)
    assert hc.Subject(subject.model).weights_hash == before


@pytest.mark.parametrize("rule", [None, "ding", "z+", "alpha-beta"])
def test_the_batch_size_changes_no_number(rule: str | None) -> None:
    assert_batches_never_show(translator(), PAIRS, rule, (1, 2))


@pytest.mark.parametrize("rule", [None, "ding", "z+", "alpha-beta"])
def test_nor_on_the_real_translator(rule: str | None) -> None:
    """On which float32 was too narrow for `z+`."""
    pairs = SHORTEST if rule == "alpha-beta" else SHORT
    assert_batches_never_show(hc.load("translator", device="cpu"), pairs, rule, (1, 3, 6))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_programs_rule_gives_numbers_on_many_pairs(seed: int) -> None:
    """Draws of 64 pairs once ended in "not a number": with sixes of words most of them did."""
    rows = np.random.default_rng(seed).permutation(len(sample.pairs()))[:64]
    pairs = [tuple(" ".join(side.split()[:6]) for side in sample.pairs()[row]) for row in rows]
    subject, task = hc.load("translator", device="cpu"), tasks.translation(pairs, metric="loss")
    table = hc.score(subject, task, by="relevance", convention="code")
    value, low, high = (part["relevance"] for part in table.parts())
    assert np.isfinite([value, low, high]).all()
    assert ((low <= value) & (value <= high)).all()
    assert float(table.details["relevance_flow"]["worst_loss"].max()) < 1e-9


def test_a_sum_of_zero_gives_no_relevance_where_none_came_in() -> None:
    x = torch.zeros(1, 2, 3, dtype=torch.float64)
    first, second = ZPlus().add(x - EPS, x - EPS, x[..., :1].expand_as(x) * 0)
    assert not first.isnan().any()
    assert not second.isnan().any()
