"""Sweeps of every kind of task: the short way, the long way, any batch size, any set of heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_subjects
import torch
from small_tasks import KINDS
from subjects import subject_of
from tiny_subjects import classifier
from tiny_tokenizers import PAIRS

import headcount as hc
from headcount import tasks
from headcount.errors import InputError, ModelError, UnknownHead, UnsupportedModel, UsageError
from headcount.importance.sweeps.interventions import (
    MODES,
    Intervention,
    others,
    sets,
    single_heads,
    whole_layers,
)
from headcount.importance.sweeps.sweeping import Sweep, done_examples, encoded, outcome_of, sweep
from headcount.models.subject import Subject
from headcount.records.engine import Answer, LocalEngine
from headcount.records.heads import Head
from headcount.records.journal import Journal
from headcount.records.watching import progress
from headcount.rooms.shortcut.shortcut import TOKENS, RecordedRun, ShortWay
from headcount.rooms.standins.standins import ring
from headcount.wiring import valve

SHORT = ("classification", "regression", "lm", "windows", "mlm", "similarity", "translation")


def everything(subject: Subject, mode: Any = "zero") -> list[Intervention]:
    """Some heads, their layers, and sets across layers and stacks."""
    anatomy = subject.anatomy
    return [
        *single_heads(anatomy, mode)[::3],
        *others(anatomy, mode)[1::4],
        *whole_layers(anatomy, mode),
        *sets({"across": subject.heads[::3], "late": subject.heads[-2:], "none": []}, mode),
    ]


def assert_equal(one: Sweep, other: Sweep, room: float = 1e-5) -> None:
    for mine, yours in zip(
        (one.baseline, *one.outcomes), (other.baseline, *other.outcomes), strict=True
    ):
        scale = np.abs(yours.statistics).max()
        np.testing.assert_allclose(mine.statistics, yours.statistics, atol=room * max(1.0, scale))


def test_both_ways_and_all_batch_sizes_agree(
    kind: str, subject_and_task: tuple[Subject, Any]
) -> None:
    subject, task = subject_and_task
    interventions = everything(subject)
    short = sweep(subject, task, interventions, batch_size=2)
    assert short.baseline.name == "loss"
    assert short.fast is (kind in SHORT)
    assert short.notes == () or kind == "windows"
    assert_equal(short, sweep(subject, task, interventions, batch_size=2, fast=False))
    assert_equal(short, sweep(subject, task, interventions, batch_size=7))
    changed = [one.value != short.baseline.value for one in short.outcomes]
    assert all(changed[:-1])
    assert not changed[-1]


def test_on_a_gpu_ablations_share_a_forward_by_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, task = tiny_subjects.writer("llama"), tasks.lm(PAIRS[0][:1])
    (batch,) = task.batches(subject, 4)
    way = ShortWay(subject, task, 4, None)  # type: ignore[arg-type]
    assert way._at_once(batch) == 4
    tokens, words = batch.inputs["input_ids"].numel(), subject.model.config.vocab_size
    free = [16 * words * 5 * tokens]
    monkeypatch.setattr(Subject, "device", torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free[0], 0))
    assert way._at_once(batch) == 5  # as much as memory has room for
    free[0] = 1 << 60
    assert way._at_once(batch) == TOKENS // tokens
    free[0] = 0
    assert way._at_once(batch) == 4


def test_own_metrics_are_exactly_the_same(kind: str, subject_and_task: tuple[Subject, Any]) -> None:
    subject, task = subject_and_task
    few = [*single_heads(subject.anatomy)[::5], *sets({"cross": subject.heads[-3:]})]
    both = [sweep(subject, task, few, metric="task", batch_size=3, fast=way) for way in (True, 0)]
    assert both[0].baseline.name == task.metric.name
    for mine, yours in zip(both[0].outcomes, both[1].outcomes, strict=True):
        assert mine.value == pytest.approx(yours.value, rel=1e-6, nan_ok=True)
        if kind in ("classification", "mlm", "translation"):  # counts, not sums of numbers
            assert np.array_equal(mine.statistics, yours.statistics)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("which", ["classification", "similarity", "windows", "translation"])
def test_every_mode_whatever_the_batches(mode: str, which: str) -> None:
    subject, task = KINDS[which]()
    interventions = everything(subject, mode)[::2]
    first = sweep(subject, task, interventions, batch_size=2)
    assert first.fast
    assert_equal(first, sweep(subject, task, interventions, batch_size=5), room=1e-5)
    assert_equal(first, sweep(subject, task, interventions, batch_size=3, fast=False), room=1e-5)


def test_modes_differ_and_share_one_sweep(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    mixed = [Intervention("enc.0.1", mode) for mode in MODES]  # type: ignore[arg-type]
    together = sweep(subject, task, mixed, batch_size=2)
    assert len({outcome.value for outcome in together.outcomes}) == len(MODES)
    for one, outcome in zip(mixed, together.outcomes, strict=True):
        alone = sweep(subject, task, [one], batch_size=2)
        assert alone.outcomes[0].value == pytest.approx(outcome.value, rel=1e-9)


def test_a_sweep_is_the_loop_that_anybody_would_write(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    found = sweep(subject, task, single_heads(subject.anatomy), metric="task")
    assert found.baseline.value == task.evaluate(subject).value
    for head, outcome in zip(subject.heads, found.outcomes, strict=True):
        with valve(subject, {head: 0.0}):
            assert outcome.value == task.evaluate(subject).value


def test_donors_depend_on_the_seed_and_means_on_the_reference(
    classifying: tuple[Subject, Any],
) -> None:
    subject, task = classifying
    one = [Intervention("enc.0.1", "resample")]
    seeds = [sweep(subject, task, one, seed=seed).outcomes[0].value for seed in (0, 0, 1)]
    assert seeds[0] == seeds[1] != seeds[2]
    assert sweep(subject, task, one).fast  # donors of a batch fit the few rows of the trial
    mean = [Intervention("enc.0.1", "mean")]
    other = tasks.classification([("Nothing like it at all.", 1)])
    values = [
        sweep(subject, task, mean, reference=r).outcomes[0].value for r in (None, task, other)
    ]
    assert values[0] == pytest.approx(values[1]) != values[2]


def test_the_long_way_is_taken_with_a_remark() -> None:
    subject = subject_of("xlnet", "xlnet", model_class="XLNetForSequenceClassification")
    task = tasks.classification([("The cat sat.", 0), ("A dog barked.", 1), ("Rain.", 1)])
    found = sweep(subject, task, single_heads(subject.anatomy)[::3])
    assert not found.fast
    assert found.notes[0].startswith("Every ablation ran the whole of xlnet: cut short it breaks")
    with valve(subject, {subject.heads[0]: 0.0}):
        whole = task.evaluate(subject)
    assert found.outcomes[0].value != found.baseline.value
    assert whole.outputs  # the model still speaks


@pytest.mark.parametrize("error", [AttributeError, NameError, AssertionError, TypeError])
def test_a_bug_of_ours_is_not_taken_for_a_model_that_cannot_be_cut_short(
    classifying: tuple[Subject, Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, task = classifying
    ours = {"__name__": "headcount.rooms.shortcut.shortcut", "error": error}
    exec("def given(*_):\n    raise error('slip')", ours)  # a frame of headcount
    monkeypatch.setattr(RecordedRun, "given", ours["given"])
    with pytest.raises(error, match="slip"):
        sweep(subject, task, single_heads(subject.anatomy))


@pytest.mark.parametrize("error", [MemoryError, torch.OutOfMemoryError, KeyboardInterrupt])
def test_running_out_of_memory_and_ctrl_c_do_not_lead_the_long_way(
    classifying: tuple[Subject, Any], error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, task = classifying
    _break(type(subject.model.bert.encoder.layer[1]), error, monkeypatch)
    told = error if error is KeyboardInterrupt else ModelError
    with pytest.raises(told):
        sweep(subject, task, single_heads(subject.anatomy), batch_size=1)


@pytest.mark.parametrize("error", [RuntimeError, ValueError, TypeError, IndexError, AssertionError])
def test_a_family_that_does_not_expect_more_rows_goes_the_long_way(
    classifying: tuple[Subject, Any], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, task = classifying
    _break(type(subject.model.bert.encoder.layer[1]), error, monkeypatch)
    found = sweep(subject, task, single_heads(subject.anatomy), batch_size=1)
    assert not found.fast
    assert f"cut short it breaks ({error.__name__}: too many rows)" in found.notes[0]


def _break(layer: type[Any], error: type[BaseException], patch: pytest.MonkeyPatch) -> None:
    """The layer raises for more than one row."""
    own = layer.forward

    def strict(self: Any, hidden: Any, *args: Any, **kwargs: Any) -> Any:
        if len(hidden) > 1:
            raise error("too many rows")
        return own(self, hidden, *args, **kwargs)

    patch.setattr(layer, "forward", strict)


def test_a_model_that_works_in_place_is_not_cut_short(
    classifying: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a whole run kept must not change under the hands of the next run."""
    subject, task = classifying
    second = subject.model.bert.encoder.layer[1]
    own = type(second).forward

    def careless(self: Any, hidden: Any, *args: Any, **kwargs: Any) -> Any:
        output = own(self, hidden, *args, **kwargs)
        hidden.add_(1.0)  # no layer norm sees that
        return output

    monkeypatch.setattr(type(second), "forward", careless)
    found = sweep(subject, task, single_heads(subject.anatomy))
    assert not found.fast
    assert "in place" in found.notes[0]


def test_progress_ends_at_its_total_and_the_time_is_told(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    shown = Shown()
    two = single_heads(subject.anatomy)[:2]
    with progress(shown):
        sweep(subject, task, two, batch_size=2)
        assert sum(shown.parts) == shown.total == 15
        assert not shown.told  # the short way is not long
        sweep(subject, task, two, batch_size=2, fast=False)
    assert shown.told == ["3 evaluations of 5 examples, about 0 s."]


class Shown:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.total, self.parts, self.told = 0, list[int](), list[str]()

    def start(self, total: int, title: str) -> None:
        self.total = total

    def advance(self, n: int = 1) -> None:
        self.parts.append(n)

    def done(self) -> None:
        pass

    def say(self, what: object) -> None:
        self.told.append(str(what))


class LateAnswers:
    """An engine that holds two pieces at once, as workers do, and answers the first of them."""

    remote, gpus_per_worker = False, 0.0

    def pack(self, thing: Any) -> Any:
        return lambda: thing

    def run(self, make: Any, pieces: Any) -> Any:
        held: list[Any] = []
        with make() as work:
            for piece in pieces:
                held.append(piece)
                if len(held) == 2:
                    yield self.answer(work, held.pop(0))
            for piece in held:
                yield self.answer(work, piece)

    def answer(self, work: Any, piece: Any) -> Answer:
        return Answer(piece.number, [(0, len(piece.parts), work(piece.parts))], [])


def test_pieces_that_are_out_together_are_told_apart(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    heads = single_heads(subject.anatomy)
    here = sweep(subject, task, heads, batch_size=2)
    late = sweep(subject, task, heads, batch_size=2, engine=LateAnswers())
    assert late.costs() == here.costs()


# --- bad input ----------------------------------------------------------------------------------


def test_heads_that_do_not_exist_are_named_before_anything_runs(
    classifying: tuple[Subject, Any],
) -> None:
    subject, task = classifying
    with pytest.raises(UnknownHead, match=r"There is no head enc.9.9; this model has enc.0.0 to"):
        sweep(subject, task, [Intervention([Head("enc", 9, 9)])])


def test_two_of_one_name_and_none_at_all_are_refused(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    with pytest.raises(UsageError, match=r"Two interventions are called 'enc.0.1'"):
        sweep(subject, task, [Intervention("enc.0.1"), Intervention("enc.0.1")])
    with pytest.raises(UsageError, match="There is nothing to ablate"):
        sweep(subject, task, [])


def test_a_task_without_examples_is_refused(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    with pytest.raises(InputError, match="has no examples; give one or more"):
        sweep(subject, task.part([]), single_heads(subject.anatomy))


def test_a_text_without_a_token_is_told_before_anything_runs() -> None:
    subject = tiny_subjects.filler()
    task = tasks.mlm(["The cat sat.", "\u200b"])
    assert subject.heads
    ran: list[int] = []
    subject.model.register_forward_hook(lambda *_: ran.append(1))
    with pytest.raises(InputError, match=r"Example 2 of examples in hand .* finds no token"):
        sweep(subject, task, single_heads(subject.anatomy))
    assert not ran


def test_a_loss_that_is_not_a_number_names_the_example(
    classifying: tuple[Subject, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, task = classifying
    subject.model.classifier.bias.data[:] = float("nan")
    with pytest.raises(ModelError, match=r"classifier\.bias"):
        sweep(subject, task, single_heads(subject.anatomy))


def test_a_loss_that_breaks_under_ablation_names_the_heads() -> None:
    subject = tiny_subjects.encoder()

    def score(subject: Subject, texts: list[str]) -> list[float]:
        fed = subject.tokenizer(texts, return_tensors="pt", padding=True)  # type: ignore[misc]
        value = float(subject.model(**fed).last_hidden_state.sum())
        return [1.0 if abs(value - whole[0]) < 1e-4 else float("inf")] * len(texts)

    whole = [0.0]
    fed = subject.tokenizer(["Rain."], return_tensors="pt")  # type: ignore[misc]
    whole[0] = float(subject.model(**fed).last_hidden_state.sum().detach())
    task = tasks.custom(["Rain."], score)
    with pytest.raises(InputError, match=r"Example 1 .*gets the score inf"):
        sweep(subject, task, single_heads(subject.anatomy))


def test_modes_that_cannot_be_had_are_refused_by_name(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    with pytest.raises(UsageError, match="There is no mode 'shuffle' of ablation; choose zero,"):
        Intervention("enc.0.0", "shuffle")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there is only one; give two examples or more"):
        sweep(subject, task.part([0]), single_heads(subject.anatomy, "resample"))
    outside = subject_of("gptj", "gpt2")
    with pytest.raises(UnsupportedModel, match="maps cannot be made uniform"):
        sweep(outside, tasks.lm(["Rain."]), single_heads(outside.anatomy, "uniform"))
    own = tasks.custom(["Rain."], lambda s, texts: [0.0])
    with pytest.raises(UsageError, match="a custom task has none that headcount can encode"):
        sweep(subject, own, single_heads(subject.anatomy, "mean"))
    with pytest.raises(UsageError, match="resample needs runs whose positions are known"):
        sweep(subject, own, single_heads(subject.anatomy, "resample"))


def test_metrics_that_there_are_not_are_refused(classifying: tuple[Subject, Any]) -> None:
    subject, task = classifying
    with pytest.raises(UsageError, match="metric of a sweep is 'loss' or 'task', not 'accuracy'"):
        sweep(subject, task, single_heads(subject.anatomy), metric="accuracy")  # type: ignore[arg-type]
    own = tasks.custom(["Rain."], lambda s, texts: [0.0])
    with pytest.raises(UsageError, match="This custom task has no loss"):
        sweep(subject, own, single_heads(subject.anatomy), metric="loss")
    assert sweep(subject, own, single_heads(subject.anatomy)).baseline.name == "score"


# --- From units to outcomes, also of a part of the examples -------------------------------------


def test_an_example_is_done_when_all_its_windows_are() -> None:
    subject, task = KINDS["windows"]()
    batches = encoded(task, subject, 2).batches
    rows = [number for batch in batches for number in batch.index]
    assert len(rows) > len(task)
    split = next(n for n in set(rows) if sum(n in batch.index for batch in batches) > 1)
    first = next(place for place, batch in enumerate(batches) if split in batch.index)
    assert split not in done_examples(batches, [first])
    assert done_examples(batches, range(len(batches))) == list(range(len(task)))


def test_windows_add_up_and_others_are_left_out() -> None:
    subject, task = KINDS["windows"]()
    batches = encoded(task, subject, 2).batches
    counted = {n: np.ones((len(batch), 2)) for n, batch in enumerate(batches)}
    numbers = [1, 3]
    outcome = outcome_of(task.part(numbers), subject, batches, counted, numbers, ["so"])
    windows = [sum(batch.index.count(number) for batch in batches) for number in numbers]
    assert outcome.statistics[:, 1].tolist() == windows
    assert outcome.notes == ("so",)


# --- Examples that break the model ----------------------------------------------------------------


@pytest.mark.parametrize("mode", ["zero", "mean"])
def test_an_example_that_breaks_the_model_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """In every score: named, counted, and the others are what they would be without it."""
    subject = classifier()
    rows = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]
    how: dict[str, Any] = {"by": "gradient,ablation,relevance", "batch_size": 4, "mode": mode}
    without = hc.score(subject, hc.tasks.classification([*rows[:5], *rows[6:]]), **how)
    poison = subject.tokenizer(rows[5][0])["input_ids"]
    forward = subject.model.forward

    def breaking(*args: Any, **inputs: Any) -> Any:
        for row in inputs["input_ids"].tolist():
            if row[: len(poison)] == poison:
                raise ZeroDivisionError("no such embedding")
        return forward(*args, **inputs)

    monkeypatch.setattr(subject.model, "forward", breaking)
    found = hc.score(subject, hc.tasks.classification(rows), **how, run=tmp_path / "run")
    np.testing.assert_allclose(found.frame, without.frame, atol=1e-6)
    for name in ("gradient", "ablation", "relevance"):
        about = found.origins.get(name, found.provenance)
        (told,) = [one for one in about["remarks"] if "set aside" in one]
        assert told.startswith("Example 6 ")
        assert told.endswith("was set aside: ZeroDivisionError: no such embedding")
        assert about["counts"]["examples"] == len(rows) - 1
    again = hc.score(subject, hc.tasks.classification(rows), **how, run=tmp_path / "run")
    np.testing.assert_allclose(again.frame, found.frame, atol=1e-12)


class Elsewhere(LocalEngine):
    """Workers that hold a copy of the model, as those of another process do."""

    remote = True


@pytest.mark.parametrize("engine", ["local", Elsewhere()])
@pytest.mark.parametrize("mode", ["zero", "resample", "mean"])
@pytest.mark.parametrize("first", [0, 5])
def test_two_examples_of_a_batch_that_break_different_units_are_both_set_aside(
    monkeypatch: pytest.MonkeyPatch, engine: Any, mode: Any, first: int
) -> None:
    """One breaks every run, the other only runs with heads ablated: both are named, once."""
    subject = classifier()
    rows = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]
    task = hc.tasks.classification(rows)
    (batch,) = encoded(task, subject, 64).batches
    always, ablated = batch.index[first], batch.index[first + 1]
    ids = [subject.tokenizer(rows[number][0])["input_ids"] for number in (always, ablated)]
    forward = type(subject.model).forward

    def breaking(self: Any, *args: Any, **inputs: Any) -> Any:
        seen = inputs["input_ids"].tolist()
        counts = [sum(row[: len(poison)] == poison for row in seen) for poison in ids]
        if counts[0] or counts[1] > 1:
            raise ZeroDivisionError("no such embedding")
        return forward(self, *args, **inputs)

    monkeypatch.setattr(type(subject.model), "forward", breaking)
    heads = single_heads(subject.anatomy, mode)
    found = sweep(subject, task, heads, batch_size=64, engine=engine, fast=False)
    told = sorted(note for note in found.notes if "set aside" in note)
    bad = {always, ablated}
    if mode == "resample":  # nobody lends to the one whose donor cannot be run
        donors = ring(range(len(rows)), seed=0)
        bad |= {number for number in donors if donors[number] == always}
    assert [note.split(" of ")[0] for note in told] == sorted(f"Example {one + 1}" for one in bad)
    assert len(found.baseline) == found.examples == len(rows) - len(bad)
    good = [row for number, row in enumerate(rows) if number not in bad]
    monkeypatch.undo()
    if mode == "zero":
        without = sweep(subject, hc.tasks.classification(good), heads, fast=False)
        for one, other in zip(found.outcomes, without.outcomes, strict=True):
            np.testing.assert_allclose(one.statistics, other.statistics, atol=1e-6)


def test_inputs_in_bfloat16_are_swept_as_others(tmp_path: Path) -> None:
    subject = classifier()
    subject.model.bfloat16()
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(4, 5, subject.inner.config.hidden_size, generator=draw)
    given = {"inputs_embeds": rows.bfloat16(), "labels": torch.tensor([0, 1, 0, 1])}
    heads = single_heads(subject.anatomy)[:2]
    with Journal.open(tmp_path / "journal.jsonl", {}) as journal:
        found = sweep(subject, tasks.batches([given]), heads, journal=journal)
    assert len(found.baseline) == 4


def test_a_bad_example_of_the_reference_is_in_no_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = classifier()
    rows = [(source, number % 2) for number, (source, _) in enumerate(PAIRS)]
    task, reference = (hc.tasks.classification(some) for some in (rows[:4], rows[4:]))
    good = hc.tasks.classification(rows[5:])
    heads = single_heads(subject.anatomy, "mean")
    without = sweep(subject, task, heads, reference=good)
    poison = subject.tokenizer(rows[4][0])["input_ids"]
    forward = subject.model.forward

    def breaking(*args: Any, **inputs: Any) -> Any:
        if any(row[: len(poison)] == poison for row in inputs["input_ids"].tolist()):
            raise ZeroDivisionError("no such embedding")
        return forward(*args, **inputs)

    monkeypatch.setattr(subject.model, "forward", breaking)
    found = sweep(subject, task, heads, reference=reference)
    (told,) = [note for note in found.notes if "in no mean" in note]
    assert told.startswith("Example 1 of ")
    assert told.endswith("is in no mean: ZeroDivisionError: no such embedding")
    np.testing.assert_allclose(found.costs(), without.costs(), atol=1e-6)
