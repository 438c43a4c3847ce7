"""The largest sure removal: steps in turn, one-sided bounds, and a level that holds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from subjects import save
from tiny_subjects import classifier, translator, writer
from tiny_tokenizers import ENGLISH, PAIRS

import headcount as hc
from headcount import tasks
from headcount.errors import InputError, RunError, UsageError
from headcount.importance.sweeps.interventions import Intervention
from headcount.importance.sweeps.sweeping import Sweep
from headcount.pruning.curve import Order, point_name
from headcount.pruning.plan import plan_of_heads, prune_plan, search
from headcount.pruning.tolerance import can_go, point_of, points_in_words, share_bound
from headcount.records.heads import Head
from headcount.records.journal import Journal
from headcount.records.run import Run
from headcount.stats import ratio
from headcount.stats.paired import paired_share_interval
from headcount.tasks.comparison import Metric
from headcount.tasks.task import ACCURACY, MEAN_LOSS, Outcome
from headcount.wiring import valve

TASK = tasks.classification([(text, 0) for text in ENGLISH])
ORDER = Order("made", "all", tuple((Head("enc", 0, place),) for place in range(3)))


def made(metric: Metric, whole: np.ndarray, points: list[np.ndarray]) -> Sweep:
    """A sweep whose outcomes are known: a score an example."""

    def outcome(scores: np.ndarray) -> Outcome:
        return Outcome(metric, np.stack([scores, np.ones(len(scores))], axis=1))

    asked = [
        Intervention(ORDER.gone(step), name=point_name(ORDER, step))
        for step in range(1, len(points) + 1)
    ]
    return Sweep(TASK, tuple(asked), outcome(whole), tuple(map(outcome, points)), len(whole), True)


def test_the_first_failure_ends_it() -> None:
    noise = np.random.default_rng(0).normal(0, 0.01, (3, 400))
    whole = np.random.default_rng(1).random(400) + 1
    found = made(MEAN_LOSS, whole, [whole + noise[0], whole + 0.5, whole + noise[2]])
    answer = search(found, ORDER, 0.1)
    assert answer.step == 1  # the third would pass, but the second does not
    assert answer.bounds[0] < 0.01
    assert answer.bounds[1] == pytest.approx(0.5)
    assert search(found, ORDER, 0.6).step == 3
    better = made(MEAN_LOSS, whole, [whole - 0.3])
    assert search(better, Order("made", "all", ORDER.steps[:1]), 0).step == 1


@pytest.mark.parametrize("metric", [ACCURACY, MEAN_LOSS])
def test_an_order_without_steps_goes_nowhere(metric: Metric) -> None:
    found = search(made(metric, np.ones(20), []), Order("made", "all", ()), 1)
    assert (found.step, len(found.bounds)) == (0, 0)


def test_accuracy_is_not_sure_of_few_examples() -> None:
    right = np.ones(20)
    found = made(ACCURACY, right, [right] * 3)
    answer = search(found, ORDER, 5)
    assert answer.step == 0
    assert (answer.bounds > 0.08).all()  # the bootstrap would say 0
    many = np.ones(2000)
    assert search(made(ACCURACY, many, [many] * 3), ORDER, 0.5).step == 3


def test_few_examples_that_do_not_change_at_all_say_little() -> None:
    metric = Metric("bleu", ("hits", "examples"), lambda sums: 100 * ratio(sums))
    for n, sure in ((20, False), (400, True)):
        whole = np.linspace(0.2, 0.4, n)
        last = whole.copy()
        last[0] -= 0.2  # shows how far an example changes where it does
        answer = search(made(metric, whole, [whole, whole, last]), ORDER, 0.5)
        assert (answer.step == 3) is sure
        assert answer.bounds[0] == pytest.approx(20 * share_bound(n), rel=0.01)


def test_the_chance_of_too_much_loss_is_what_it_says() -> None:
    dice = np.random.default_rng(5)
    wrong = 0
    for _ in range(200):
        whole = dice.normal(1, 1, 60)
        # Every step truly loses 0.1, which is more than the 0.0999 that are allowed.
        points = [whole + dice.normal(0.1, 0.2, 60) for _ in range(3)]
        wrong += search(made(MEAN_LOSS, whole, points), ORDER, 0.0999, draws=500).step > 0
    assert wrong / 200 < 0.1  # 5% and the noise of 200 trials


def test_points_and_their_words() -> None:
    assert point_of("f1") == 0.01
    assert point_of("chrf") == point_of("loss") == 1
    assert points_in_words(1, "loss") == "1 nats"
    assert points_in_words(2, "speed") == "2 of speed"


def test_the_interval_of_paired_shares_covers() -> None:
    dice = np.random.default_rng(2)
    draws = dice.random((2000, 80))
    ours = (draws > 0.12).astype(float)  # 0.88 right, and the other 0.9: both on the same draws
    theirs = ((draws > 0.06) & (draws < 0.96)).astype(float)
    interval = paired_share_interval(ours.T, theirs.T, confidence=0.95)
    inside = (interval.low <= 0.88 - 0.9) & (interval.high >= 0.88 - 0.9)
    assert 0.93 < inside.mean() < 0.99
    with pytest.raises(Exception, match="sentences"):
        paired_share_interval(np.ones(3), np.ones(4))


# --- The plan of a pruning ----------------------------------------------------------------------


LABELLED = [(source, number % 2) for number, (source, _) in enumerate(PAIRS * 3)]
CLASSES = tasks.classification(LABELLED, metric="loss")


def test_each_point_is_the_model_with_these_heads_switched_off() -> None:
    subject = translator()
    task = tasks.translation(PAIRS * 2, metric="loss")
    plan = prune_plan(
        subject,
        task,
        "gradient,random",
        drop_share=0.5,
        ranking=hc.RankingOptions(step=25, randoms=2),
    )
    assert list(plan.curve.columns) == [
        *("order", "scope", "step", "heads_left", "removed", "metric", "more"),
        *("value", "low", "high", "delta", "delta_low", "delta_high", "p", "p_adjusted"),
        *("n", "part", "healed", "bound", "chance"),
    ]
    assert list(dict.fromkeys(plan.curve["order"])) == ["gradient", "random 0", "random 1"]
    choose, held_out = task.split(0.5, 0)
    whole = held_out.evaluate(subject)
    for order in plan.orders:
        rows = plan.curve[plan.curve["order"] == order.name]
        for step, row in zip(range(len(order) + 1), rows.to_dict("records"), strict=True):
            with valve(subject, dict.fromkeys(order.gone(step), 0.0)):
                found = held_out.evaluate(subject)
            assert row["value"] == pytest.approx(found.value, rel=1e-5)
            assert row["delta"] == pytest.approx(found.value - whole.value, abs=1e-5)
            assert row["heads_left"] == len(subject.heads) - len(order.gone(step))
            assert row["more"] == "worse"
    ranked = hc.score(subject, choose).rank("gradient")
    assert plan.going == tuple(reversed(ranked))[: len(plan.going)]
    assert len(plan.going) == len(subject.heads) // 2


def test_estimated_again_is_estimated_without_the_heads_that_are_gone() -> None:
    subject = classifier()
    plan = prune_plan(subject, CLASSES, keep=2, ranking=hc.RankingOptions(exact=True, step=25))
    choose, _ = CLASSES.split(0.5, 0)
    first = hc.score(subject, choose).rank("gradient")[::-1][:2]
    again = hc.score(hc.prune(subject, first), choose).rank("gradient")[::-1][:2]
    assert plan.orders[0].name == "gradient exact"
    assert plan.orders[0].steps[:2] == (tuple(first), tuple(again))
    assert len(plan.going) == 6


@pytest.mark.parametrize("normalize", ["layer", "none", None])
def test_the_order_of_the_authors_program(normalize: str | None) -> None:
    """Michel et al.: sort once, stably, over the norm of the layer where that was asked."""
    subject = classifier()
    choose, _ = CLASSES.split(0.5, 0)
    plan = prune_plan(
        subject,
        CLASSES,
        drop_share=0,
        ranking=hc.RankingOptions(convention="code", normalize=normalize, step=25),
    )
    table = hc.score(subject, choose, convention="code")
    scores = {head: float(table.numbers("gradient")[at]) for at, head in enumerate(table.heads)}
    if normalize == "layer":
        for layer in (0, 1):
            of = [head for head in scores if head.layer == layer]
            norm = sum(scores[head] ** 2 for head in of) ** 0.5 + 1e-20
            scores |= {head: scores[head] / norm for head in of}
    wanted = sorted(scores, key=lambda head: scores[head])
    assert plan.orders[0].gone(4) == tuple(wanted)
    assert [len(step) for step in plan.orders[0].steps] == [2, 2, 2, 2]


def test_stacks_by_themselves_and_heads_in_every_layer() -> None:
    subject, task = translator(), tasks.translation(PAIRS, metric="loss")
    plan = prune_plan(
        subject,
        task,
        "random",
        drop_share=0,
        ranking=hc.RankingOptions(randoms=1, step=50, by_stack=True),
    )
    assert [order.scope for order in plan.orders] == ["all", "enc", "dec", "cross"]
    assert {head.stack for head in plan.orders[2].gone(1)} == {"dec"}
    assert plan.going == ()
    kept = prune_plan(
        subject,
        task,
        "random",
        keep=2,
        ranking=hc.RankingOptions(stacks=["enc"], at_least=1, step=50),
    )
    left = {h.layer for h in subject.heads if h.stack == "enc" and h not in kept.going}
    assert left == {0, 1}
    with pytest.raises(UsageError, match="7 heads are to be pruned, but at most 6 can while every"):
        prune_plan(
            subject, task, "random", keep=1, ranking=hc.RankingOptions(stacks=["enc"], at_least=1)
        )


def test_groups_go_whole() -> None:
    subject = writer("llama", num_key_value_heads=2)
    plan = prune_plan(
        subject, tasks.lm(ENGLISH), drop_share=0.3, ranking=hc.RankingOptions(step=25)
    )
    assert len(plan.going) == 2  # 0.3 of 8 heads, and a group is 2
    assert hc.prune(subject, plan.going).heads == [h for h in subject.heads if h not in plan.going]


def test_a_column_of_ones_own_and_lower_is_more() -> None:
    subject = classifier()
    lower = hc.Column("mine", meaning="Mine.", direction="lower")
    table = hc.HeadTable.of(subject.heads, {"mine": np.arange(8.0)}, [lower])
    plan = prune_plan(subject, CLASSES, "mine", table=table, keep=7)
    assert plan.going == (subject.heads[-1],)


def test_the_largest_sure_removal_follows_from_the_curve() -> None:
    subject = classifier()
    plan = prune_plan(subject, CLASSES, max_loss=50, ranking=hc.RankingOptions(step=25))
    assert plan.found is not None
    gone = 8 - plan.curve["heads_left"]
    assert gone[plan.curve["order"] == "gradient"].tolist() == [0, 1, 2, 4, 6]  # one head first
    assert plan.step == 4
    assert len(plan.going) == 6
    decided = can_go(plan.curve, 50)[0]
    assert (decided.step, decided.heads, decided.bound) == (4, 6, plan.found.bounds[3])
    none = prune_plan(subject, CLASSES, max_loss=0, ranking=hc.RankingOptions(step=25))
    assert none.found is not None
    passed = none.found.bounds <= 0
    assert none.step == (4 if passed.all() else int(np.argmin(passed)))


def test_even_takes_as_many_from_every_layer() -> None:
    subject = classifier()
    plan = prune_plan(subject, CLASSES, keep=4, ranking=hc.RankingOptions(even=True))
    assert sorted(head.layer for head in plan.going) == [0, 0, 1, 1]
    assert plan.orders[0].name == "gradient even"
    odd = prune_plan(subject, CLASSES, keep=3, ranking=hc.RankingOptions(even=True))
    assert len(odd.going) == 4  # three cannot be shared by two layers
    with pytest.raises(UsageError, match="1 heads are to be pruned, and 2 is the fewest"):
        prune_plan(subject, CLASSES, keep=7, ranking=hc.RankingOptions(even=True))
    with pytest.raises(UsageError, match="as many heads from every layer by one score; leave out"):
        prune_plan(subject, CLASSES, keep=4, ranking=hc.RankingOptions(even=True, exact=True))


def test_heads_that_were_chosen_already() -> None:
    subject = classifier()
    heads = subject.heads[:3]
    plan = plan_of_heads(subject, CLASSES, heads)
    assert plan.curve["part"].tolist() == ["all", "all"]
    assert plan.curve["heads_left"].tolist() == [8, 5]
    assert plan.curve["n"].iloc[0] == len(CLASSES)


def test_too_few_examples_for_a_test_lose_no_curve() -> None:
    plan = prune_plan(
        classifier(), CLASSES.limit(4), drop_share=0, ranking=hc.RankingOptions(step=50)
    )
    assert plan.curve["p"].isna().all()
    assert any("The curve is not tested." in note for note in plan.notes)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keep": 2, "drop_share": 0.5}, "More than one goal was given"),
        ({"keep": 0}, "0 heads are to be kept; keep 1 or more"),
        ({"keep": 8}, "8 heads are to be kept, and there are 8 to choose from"),
        ({"drop_share": 1.5}, "The share to drop is 1.5; it must be above 0 and below 1"),
        ({"max_loss": -1}, "The loss allowed is -1 points"),
        ({"by": "gradiant"}, "There is no score 'gradiant'"),
        ({"stacks": ["dec"]}, "There is no stack 'dec' in this model; it has enc"),
        ({"step": 200}, "The step is 200; it must be above 0 and at most 100"),
    ],
)
def test_what_cannot_be_is_told(given: dict[str, Any], message: str) -> None:
    goals = {"max_loss", "keep", "drop_share"} & given.keys()
    given = given if goals else {"drop_share": 0} | given
    with pytest.raises(UsageError, match=message):
        prune_plan(classifier(), CLASSES, **given)


def test_steps_that_are_too_large_are_told_before_the_work() -> None:
    with pytest.raises(UsageError, match=r"A step of 100% of \d+ heads is more than may go"):
        prune_plan(classifier(), CLASSES, drop_share=0, ranking=hc.RankingOptions(step=100))


def test_one_example_cannot_be_halved() -> None:
    with pytest.raises(InputError, match="has 1 example; heads are chosen on one half"):
        prune_plan(classifier(), CLASSES.limit(1), drop_share=0)


# --- broken off, and gone on with ---------------------------------------------------------------


def test_broken_off_anywhere_it_ends_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = classifier()
    options: dict[str, Any] = {"exact": True, "step": 25, "keep": 4, "batch_size": 4}
    plain = prune_plan(subject, CLASSES, "gradient,random", **options)
    added, left = Journal.append, [0]

    def stopping(journal: Journal, unit: str, result: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        added(journal, unit, result)

    monkeypatch.setattr(Journal, "append", stopping)
    tries = 0
    while True:
        left[0], tries = 8, tries + 1
        try:
            plan = prune_plan(subject, CLASSES, "gradient,random", run=tmp_path / "run", **options)
            break
        except KeyboardInterrupt:
            assert tries < 60
    assert tries > 2
    assert plan.going == plain.going
    pd.testing.assert_frame_equal(plan.curve, plain.curve, rtol=1e-6)
    kept = Run.open(tmp_path / "run", create=False).read_frame("curve")
    pd.testing.assert_frame_equal(kept, plain.curve, check_dtype=False, rtol=1e-6)


def test_another_pruning_is_not_mixed_in(tmp_path: Path) -> None:
    subject = classifier()
    prune_plan(subject, CLASSES, "random", keep=4, run=tmp_path / "run")
    with pytest.raises(RunError, match=r"was begun with goal = .4 heads kept., and now goal"):
        prune_plan(subject, CLASSES, "random", keep=5, run=tmp_path / "run")


SCRIPT = """
import os, signal
import headcount as hc
from headcount.records.journal import Journal
from headcount.pruning.plan import prune_plan
added, left = Journal.append, 9
def append(journal, unit, result):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    added(journal, unit, result)
Journal.append = append
task = hc.tasks.classification("dev.tsv", metric="loss")
prune_plan(hc.load("model", device="cpu"), task, step=25, keep=4, batch_size=4, run="run")
"""


def test_killed_outright_it_goes_on(tmp_path: Path) -> None:
    save(tmp_path / "model", "bert", "wordpiece", model_class="BertForSequenceClassification")
    rows = [f"{text}\t{label}" for text, label in LABELLED]
    (tmp_path / "dev.tsv").write_text("\n".join(["text\tlabel", *rows]))
    killed = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=os.environ)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / "run" / "prune.jsonl").stat().st_size > 0
    subject = hc.load(str(tmp_path / "model"), device="cpu")
    task = tasks.classification(str(tmp_path / "dev.tsv"), metric="loss")
    options: dict[str, Any] = {"step": 25, "keep": 4, "batch_size": 4}
    again = prune_plan(subject, task, run=tmp_path / "run", **options)
    plain = prune_plan(subject, task, **options)
    assert again.going == plain.going
    pd.testing.assert_frame_equal(again.curve, plain.curve, rtol=1e-6)


def test_a_goal_is_asked_for_before_the_work() -> None:
    with pytest.raises(
        UsageError, match="No goal was given; say how many heads to prune, with one of max_"
    ):
        prune_plan(classifier(), CLASSES)
    with pytest.raises(UsageError, match=r"The loss allowed is '0\.5%'; give a number of points"):
        prune_plan(classifier(), CLASSES, max_loss="0.5%")  # type: ignore[arg-type]


def test_a_limit_takes_some_examples() -> None:
    plan = prune_plan(classifier(), CLASSES, drop_share=0, limit=6)
    assert plan.curve["n"].unique().tolist() == [3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda one: hc.survey(one.model, ["a"]),
            r"write hc.survey\(hc.Subject\(model, tokenizer\), c",
        ),
        (lambda one: hc.survey("mine", ["a"]), r"write hc.survey\(hc.load\('mine'\), corpus\)"),
        (lambda one: hc.score(one), r"score has no task; write hc.score\(subject, task\)"),
        (lambda one: hc.score(one, ["a"]), "score takes a task, not list"),
        (lambda one: hc.prune(one), r"prune has no heads; write hc.prune\(subject, heads\)"),
        (
            lambda one: hc.show(one, "a"),
            r"show has no head; write hc.show\(subject, sentence, head\)",
        ),
        (lambda one: hc.report(one), "report draws a run or a table, not Subject; to measure"),
    ],
)
def test_a_slip_in_python_gets_the_right_call(call: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(classifier())
