"""Gates that learn, what is left of the model afterwards, and pruned models that train on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import PartialState
from model_state import assert_same, state_of
from small_tasks import KINDS, TEXTS
from subjects import save
from tiny_subjects import classifier, filler, writer
from watching import told

from headcount import tasks
from headcount.errors import ModelError, RunError, UsageError
from headcount.models.loading import load
from headcount.models.subject import Subject
from headcount.pruning.remove import prune
from headcount.rooms.gates.gates import Price
from headcount.rooms.gates.learning import Learned, gates_for, heal, learn_gates, scratch
from headcount.rooms.gates.training import TaskLoss
from headcount.tasks.task import Task
from headcount.wiring.valves import valve

QUICK: dict[str, Any] = {"steps": 6, "batch_size": 2, "lr": 1e-3}


@pytest.fixture(autouse=True)
def uncollected(monkeypatch: pytest.MonkeyPatch) -> None:
    """accelerate collects garbage after every training, which takes longer than a tiny one."""
    monkeypatch.setattr("accelerate.utils.memory.clear_device_cache", lambda **_: None)


def sentiment(times: int = 4) -> Task:
    return tasks.classification([(text, len(text) % 2) for text in TEXTS * times])


def weights(subject: Subject) -> dict[str, torch.Tensor]:
    return {name: weight.detach().clone() for name, weight in subject.model.named_parameters()}


def calm(subject: Subject) -> Subject:
    """Nothing drops out: a few steps show what they teach."""
    for module in subject.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return subject


def test_the_subject_is_left_as_it_was() -> None:
    subject = classifier()
    before = state_of(subject)
    learned = learn_gates(subject, sentiment(), keep=4, **QUICK)
    assert_same(before, state_of(subject))
    after = state_of(learned.subject)
    for what in ("hooks", "attributes", "training", "gradients", "attention", "configs"):
        assert after[what] == before[what], what
    assert all(weight.grad is None for weight in learned.subject.model.parameters())
    assert any(not torch.equal(w, weights(subject)[n]) for n, w in weights(learned.subject).items())


@pytest.mark.parametrize("in_place", [False, True])
def test_nothing_stays_after_an_error(in_place: bool) -> None:
    subject = classifier()
    before = state_of(subject)

    def stop(done: int, total: int, title: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), told(stop):
        learn_gates(subject, sentiment(), keep=4, in_place=in_place, **(QUICK | {"lr": 0.0}))
    assert_same(before, state_of(subject))


def test_trained_in_place_where_that_is_asked() -> None:
    subject = classifier()
    before, known = weights(subject), subject.weights_hash
    learned = learn_gates(subject, sentiment(), keep=4, in_place=True, **QUICK)
    assert learned.subject is subject
    assert subject.weights_hash != known
    assert any(not torch.equal(before[name], weight) for name, weight in weights(subject).items())


@pytest.mark.parametrize("count", [2, 5])
def test_as_many_heads_stay_as_were_asked_for(count: int) -> None:
    learned = learn_gates(
        classifier(), sentiment(), keep=count, steps=60, batch_size=2, lr=1e-3, train="gates"
    )
    assert abs(len(learned.kept) - count) <= 1
    assert not learned.notes
    assert learned.log["expected"].iloc[0] > learned.log["expected"].iloc[-1]
    assert len(learned.prune(count).heads) == count


def test_a_target_that_was_missed_is_said() -> None:
    learned = learn_gates(classifier(), sentiment(), keep=1, gate_lr=1e-5, **QUICK)
    assert learned.notes == [
        "Training left 8 gates open where 1 were asked for; prune(keep=N) takes the most open "
        "ones, and more steps or a higher gate_lr come nearer."
    ]
    assert learned.prune() is learned.subject


def test_closed_gates_are_removed_heads() -> None:
    learned = learn_gates(classifier(), sentiment(), keep=4, steps=20, batch_size=2, lr=1e-3)
    gone = learned.removed
    assert gone
    assert sorted([*gone, *learned.kept]) == sorted(learned.subject.heads)
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    with torch.no_grad(), valve(learned.subject, dict.fromkeys(gone, 0.0)):
        switched_off = learned.subject.model(**inputs).logits
    with torch.no_grad():
        removed = learned.prune().model(**inputs).logits
    torch.testing.assert_close(removed, switched_off, atol=1e-5, rtol=0)


def test_what_is_frozen_stays_bit_for_bit() -> None:
    subject, task = KINDS["translation"]()
    learned = learn_gates(subject, task, keep=4, stacks="enc", train="enc", **QUICK)
    assert {head.stack for head in learned.gates.heads} == {"enc"}
    assert {head for head in subject.heads if head.stack != "enc"} <= set(learned.kept)
    moved = {
        n for n, w in weights(learned.subject).items() if not torch.equal(w, weights(subject)[n])
    }
    assert moved
    assert all(name.startswith("model.encoder.layers.") for name in moved)


def test_gates_alone_learn_without_a_copy() -> None:
    subject = classifier()
    before = state_of(subject)
    learned = learn_gates(subject, sentiment(), penalty=0.5, train="gates", **QUICK)
    assert learned.subject is subject
    assert_same(before, state_of(subject))
    assert learned.removed


@pytest.mark.parametrize("train", [["*attention*"], lambda name: "attention" in name])
def test_weights_by_name(train: Any) -> None:
    subject = classifier()
    learned = learn_gates(subject, sentiment(), penalty=0.1, train=train, **QUICK)
    same = {n: torch.equal(w, weights(subject)[n]) for n, w in weights(learned.subject).items()}
    assert not any(
        same for name, same in same.items() if "attention" in name and "key.bias" not in name
    )
    assert all(same for name, same in same.items() if "attention" not in name)


def test_a_price_by_step() -> None:
    asked: list[int] = []

    def weight(step: int) -> float:
        asked.append(step)
        return 0.1

    learned = learn_gates(classifier(), sentiment(), penalty=Price(weight), gate_lr=1e-5, **QUICK)
    assert asked == list(range(6))
    expected = learned.gates.expected().item()
    assert learned.log["price"].iloc[-1] == pytest.approx(0.1 * expected, rel=1e-3)


def test_heads_that_share_keys_share_a_gate() -> None:
    subject = writer("llama")
    gates = gates_for(subject)
    assert (len(gates.heads), len(gates.log_a)) == (8, 4)
    with torch.no_grad():
        gates.log_a.copy_(torch.tensor([1.0, -1.0, 2.0, 3.0]))
    assert [str(head) for head in gates.closed()] == ["dec.0.2", "dec.0.3"]
    assert len(gates.kept(5)) == 4
    assert gates.expected().item() == pytest.approx(
        2 * torch.sigmoid(gates.log_a + 0.7913).sum().item(), abs=1e-3
    )
    with pytest.raises(UsageError, match=r"dec\.0\.1 of tiny llama cannot go alone"):
        gates_for(subject, heads="dec.0.1")


def test_batches_of_ones_own() -> None:
    ids = torch.randint(5, 90, (4, 6))
    batches = [{"input_ids": ids, "labels": torch.tensor([0, 1, 0, 1])}] * 3
    learned = learn_gates(classifier(), batches, penalty=0.1, **QUICK)
    assert learned.log["loss"].notna().all()
    with pytest.raises(UsageError, match="'labels' among it"):
        learn_gates(classifier(), [{"input_ids": ids}], penalty=0.1, **QUICK)
    with pytest.raises(UsageError, match="a teacher or smoothed labels need a task"):
        learn_gates(classifier(), batches, penalty=0.1, smoothing=0.1, **QUICK)


def test_half_precision_goes_through_accelerate() -> None:
    before = dict(PartialState._shared_state)
    learned = learn_gates(classifier(), sentiment(), keep=4, mixed_precision="bf16", **QUICK)
    assert learned.subject.dtype == torch.float32
    assert torch.isfinite(learned.gates.log_a).all()
    assert PartialState._shared_state == before  # a Trainer that comes next has a free choice
    half = classifier()
    half.model.to(torch.bfloat16)
    with pytest.raises(UsageError, match="are in bfloat16, in which small steps vanish"):
        learn_gates(half, sentiment(), keep=4, **QUICK)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "Say what closes the gates: keep=N"),
        ({"keep": 2, "penalty": 0.1}, "Say what closes the gates: keep=N"),
        ({"keep": 9}, "9 heads cannot be kept; give a number from 0 to 8"),
        ({"keep": 2, "stacks": "dec"}, "There is no stack 'dec' in this model; it has enc"),
        ({"keep": 2, "stacks": "enc", "heads": "enc.0"}, "give one of them"),
        ({"keep": 2, "train": ["nothing*"]}, r"No weight of tiny bert is meant by \['nothing\*'\]"),
        ({"keep": 2, "steps": 0}, "steps is 0; it must be 1 or more"),
        ({"keep": 2, "decay": "fast"}, "decay is 'fast'; choose linear, cosine or constant"),
        ({"keep": 2, "stepz": 3}, "There is no option 'stepz'"),
        ({"keep": 2, "smoothing": 2.0}, "label smoothing is 2; it must be between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        learn_gates(classifier(), sentiment(), **(QUICK | wrong))


def test_a_loss_that_explodes_stops_training() -> None:
    with pytest.raises(ModelError, match="is not a number after step 6; lower the learning rate"):
        learn_gates(classifier(), sentiment(), keep=4, **(QUICK | {"lr": 1e30, "clip": None}))


# --- going on -------------------------------------------------------------------------------------

LONG: dict[str, Any] = {"steps": 12, "batch_size": 2, "lr": 1e-3, "save_every": 3, "log_every": 5}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier on disk: a tokenizer that is trained on the spot differs between processes."""
    head = {"model_class": "BertForSequenceClassification", "num_labels": 2}
    return save(tmp_path_factory.mktemp("model"), "bert", "wordpiece", **head)


def tiny_run(saved: Path, checkpoint: Path | None, **more: Any) -> Learned:
    subject = load(str(saved), device="cpu")
    return learn_gates(subject, sentiment(), keep=3, checkpoint=checkpoint, **(LONG | more))


class Killed(BaseException):
    """The process is gone."""


def die(done: int, total: int, title: str) -> None:
    if done == 8:
        raise Killed


def test_killed_training_goes_on_to_the_same_gates(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed), told(die):
        tiny_run(saved, tmp_path)
    steps: list[int] = []
    with told(lambda done, total, title: steps.append(done)):
        resumed = tiny_run(saved, tmp_path)
    unbroken = tiny_run(saved, None)
    assert steps[0] == 7  # the last state is that of step 6
    left = len(steps)
    assert torch.equal(resumed.gates.log_a, unbroken.gates.log_a)
    for name, weight in weights(unbroken.subject).items():
        assert torch.equal(weight, weights(resumed.subject)[name]), name
    assert resumed.log.equals(unbroken.log)
    with told(lambda done, total, title: steps.append(done)):
        again = tiny_run(saved, tmp_path)
    assert len(steps) == left  # nothing was left to do
    assert torch.equal(again.gates.log_a, unbroken.gates.log_a)


def test_another_training_is_not_mixed_in(saved: Path, tmp_path: Path) -> None:
    tiny_run(saved, tmp_path, steps=1)
    with pytest.raises(RunError, match=r"was begun with lr = 0\.001, and now lr = 0\.002"):
        tiny_run(saved, tmp_path, steps=1, lr=0.002)
    (tmp_path / "training.safetensors").write_bytes(b"no such thing")
    with pytest.raises(RunError, match="is not a checkpoint that headcount wrote"):
        tiny_run(saved, tmp_path)


# --- several processes ----------------------------------------------------------------------------


def without_dropout(saved: Path, batch_size: int) -> Learned:
    subject = load(str(saved), device="cpu")
    return learn_gates(
        calm(subject), sentiment(), keep=3, gate_lr=0.1, **(LONG | {"batch_size": batch_size})
    )


def one_of_two(saved: Path, out: Path) -> None:
    """What each of two processes runs, and what came out of it."""
    learned = without_dropout(saved, 3)
    told = {"gates": learned.gates.log_a.tolist(), "loss": learned.log["loss"].tolist()}
    (out / f"{os.environ['RANK']}.json").write_text(json.dumps(told))


def script(folder: Path, line: str) -> str:
    """A program that runs one line with this file at hand."""
    here = Path(__file__).parent
    file = folder / "script.py"
    paths = [str(here), str(here.parents[1])]
    file.write_text(
        f"import sys; sys.path[:0] = {paths!r}\nfrom pathlib import Path\n"
        f"import test_learning\n{line}\n"
    )
    return str(file)


def test_two_processes_learn_as_one_with_twice_the_batch(saved: Path, tmp_path: Path) -> None:
    line = f"test_learning.one_of_two(Path({str(saved)!r}), Path({str(tmp_path)!r}))"
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    words = [*launch, script(tmp_path, line)]
    done = subprocess.run(words, capture_output=True, text=True, env=alone, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first == second  # both hold the same gates
    one = without_dropout(saved, 6)
    assert first["gates"] == pytest.approx(one.gates.log_a.tolist(), abs=1e-4)
    assert first["loss"] == pytest.approx(one.log["loss"].tolist(), abs=1e-5)


# --- Pruned models that train on ----------------------------------------------------------------


QUICK_HEAL: dict[str, Any] = {"steps": 12, "batch_size": 3, "lr": 1e-3, "log_every": 3}


@pytest.mark.parametrize("kind", ["classification", "regression", "lm", "mlm", "translation"])
def test_a_taught_model_comes_nearer_to_its_teacher(kind: str) -> None:
    teacher, task = KINDS[kind]()
    small = calm(prune(teacher, teacher.heads[: len(teacher.heads) // 2]))
    before, whole = state_of(small), state_of(teacher)
    healed = heal(small, task, teacher=teacher, share=1.0, **QUICK_HEAL)
    assert_same(before, state_of(small))
    assert_same(whole, state_of(teacher))
    assert healed.subject.heads == small.heads

    def apart(subject: Any) -> float:
        loss = TaskLoss(task, teacher, share=1.0)
        with torch.no_grad():
            return sum(float(loss(subject, b)[0]) for b in task.batches(subject, 3))

    assert apart(healed.subject) < apart(small)
    assert apart(teacher) == pytest.approx(0.0, abs=1e-4)


def test_without_a_teacher_the_task_alone_teaches() -> None:
    small = calm(prune(classifier(), "enc.0.1"))
    healed = heal(small, sentiment(1), **(QUICK_HEAL | {"steps": 24}))
    assert healed.log["loss"].iloc[-1] < healed.log["loss"].iloc[0]
    assert repr(healed).startswith("Healed(tiny bert without 1 head: loss ")


def test_the_loss_is_the_tasks_own() -> None:
    for kind in ("classification", "regression", "lm", "windows", "mlm", "similarity", "custom"):
        subject, task = KINDS[kind]()
        for batch in task.batches(subject, 2):
            with torch.no_grad():
                total, count = TaskLoss(task)(subject, batch)
                own = task.loss(subject, batch)
            assert float(total) == pytest.approx(float(own.sum()), rel=1e-5)
            assert count >= len(own)


def test_labels_are_smoothed() -> None:
    subject, task = classifier(), sentiment(1)
    batch = next(task.batches(subject, 5))
    with torch.no_grad():
        logits = subject.model(**batch.inputs).logits.log_softmax(-1)
        smooth, _ = TaskLoss(task, smoothing=0.2)(subject, batch)
    assert batch.labels is not None
    right = logits.gather(1, batch.labels[:, None])[:, 0]
    assert float(smooth) == pytest.approx(float(-(0.8 * right + 0.2 * logits.mean(1)).sum()))


def test_a_layer_without_heads_stays_without() -> None:
    small = prune(filler(), "enc.0")
    healed = heal(small, KINDS["mlm"]()[1], **(QUICK_HEAL | {"weight_decay": 0.1}))
    layer = healed.subject.model.bert.encoder.layer[0].attention
    assert not layer.self.value.weight.any()
    assert not layer.output.dense.weight.any()
    assert layer.output.dense.bias.any()


def test_healing_goes_on(tmp_path: Path) -> None:
    small = prune(classifier(), "enc.0.1")

    def stop(done: int, total: int, title: str) -> None:
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), told(stop):
        heal(small, sentiment(1), checkpoint=tmp_path, save_every=5, **QUICK_HEAL)
    resumed = heal(small, sentiment(1), checkpoint=tmp_path, save_every=5, **QUICK_HEAL)
    unbroken = heal(small, sentiment(1), **QUICK_HEAL)
    assert resumed.subject.weights_hash == unbroken.subject.weights_hash
    assert resumed.log.equals(unbroken.log)


def test_from_scratch_only_these_heads_are_there() -> None:
    whole = classifier()
    fresh = calm(scratch(whole, "enc.0.1,enc.1.0-1", seed=3))
    assert [str(head) for head in fresh.heads] == ["enc.0.1", "enc.1.0", "enc.1.1"]
    assert scratch(whole, "enc.0.1,enc.1.0-1", seed=3).weights_hash == fresh.weights_hash
    healed = heal(fresh, sentiment(1), **(QUICK_HEAL | {"steps": 36}))
    assert healed.log["loss"].iloc[-1] < healed.log["loss"].iloc[0]


def test_heal_what_cannot_be_is_refused() -> None:
    other = classifier(3)
    with pytest.raises(UsageError, match="The teacher has 3 classes or words and the learner 2"):
        heal(classifier(), sentiment(1), teacher=other, **QUICK_HEAL)
    subject, task = KINDS["custom"]()
    with pytest.raises(UsageError, match="A custom task gives its loss and nothing"):
        heal(subject, task, teacher=subject, **QUICK_HEAL)
    number, numbers = KINDS["regression"]()
    with pytest.raises(UsageError, match="A regression task has no classes"):
        heal(number, numbers, smoothing=0.1, **QUICK_HEAL)
