"""Gates in a transformers Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from model_state import HOOKS, state_of
from safetensors.torch import load_file
from tiny import TINY
from transformers import Trainer, TrainerCallback, TrainingArguments

from headcount.errors import UsageError
from headcount.models.subject import Subject
from headcount.rooms.gates.trainer import add_gates


def rows() -> list[dict[str, Any]]:
    noise = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 90, (24, 6), generator=noise)
    return [{"input_ids": row, "labels": int(row.sum()) % 2} for row in ids]


def trainer_of(folder: Path, **settings: Any) -> Trainer:
    model = TINY["bert"](model_class="BertForSequenceClassification", num_labels=2)
    common = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "logging_steps": 2}
    sizes = {"per_device_train_batch_size": 4, "learning_rate": 1e-3, "max_steps": 8}
    args = TrainingArguments(str(folder), **(common | sizes | settings))
    return Trainer(model, args, train_dataset=rows(), eval_dataset=rows())


def test_two_lines_in_a_script(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, max_steps=60, save_strategy="no", lr_scheduler_type="linear")
    before = state_of(Subject(trainer.model))
    gating = add_gates(trainer, keep=3)
    trainer.train()
    assert abs(len(gating.kept) - 3) <= 1
    assert len(gating.prune(3).heads) == 3
    after = state_of(gating.subject)
    assert after["hooks"] == before["hooks"]
    assert after["attention"] == before["attention"]
    assert "headcount_gates" not in dict(trainer.model.named_children())
    group = trainer.optimizer.param_groups[-1]
    assert (group["initial_lr"], group["weight_decay"]) == (gating.gate_lr, 0.0)
    assert group["params"] == [gating.gates.log_a]
    trainer.save_model(str(tmp_path / "end"))
    assert not [n for n in load_file(tmp_path / "end" / "model.safetensors") if "gates" in n]


def test_a_checkpoint_goes_on_to_the_same_gates(tmp_path: Path) -> None:
    whole = trainer_of(tmp_path / "whole", save_steps=4)
    unbroken = add_gates(whole, keep=3)
    whole.train()
    checkpoint = tmp_path / "whole" / "checkpoint-4"
    assert "headcount_gates.log_a" in load_file(checkpoint / "model.safetensors")
    assert "headcount" not in (checkpoint / "config.json").read_text()
    other = trainer_of(tmp_path / "other", save_steps=4)
    resumed = add_gates(other, keep=3)
    other.train(resume_from_checkpoint=str(checkpoint))
    assert other.state.global_step == 8
    torch.testing.assert_close(resumed.gates.log_a, unbroken.gates.log_a, rtol=0, atol=0)
    assert torch.equal(resumed.penalty.multiplier, unbroken.penalty.multiplier)  # type: ignore[attr-defined]
    for name, weight in whole.model.named_parameters():
        assert torch.equal(weight, other.model.get_parameter(name)), name


def test_the_price_counts_once_a_step_whatever_the_accumulation(tmp_path: Path) -> None:
    """The price is so high that the gates' gradient is the price's, to a thousandth."""
    found = []
    for each, times in ((8, 1), (4, 2)):
        sizes = {"per_device_train_batch_size": each, "gradient_accumulation_steps": times}
        trainer = trainer_of(tmp_path, save_strategy="no", max_steps=1, max_grad_norm=0.0, **sizes)
        gating = add_gates(trainer, penalty=1e4, gate_lr=0.0)
        seen: list[torch.Tensor] = []

        class Watch(TrainerCallback):
            def on_pre_optimizer_step(self, *args: Any, **kwargs: Any) -> None:
                seen.append(gating.gates.log_a.grad.clone())  # noqa: B023

        trainer.add_callback(Watch())
        trainer.train()
        found.append(seen[0])
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=0)


def test_the_multiplier_of_a_target_moves_once_a_step_whatever_the_accumulation(
    tmp_path: Path,
) -> None:
    """With 8 batches a step it was 8 times too high."""
    found = []
    for times in (1, 8):
        sizes = {"per_device_train_batch_size": 8 // times, "gradient_accumulation_steps": times}
        trainer = trainer_of(tmp_path, save_strategy="no", max_steps=3, max_grad_norm=0.0, **sizes)
        gating = add_gates(trainer, keep=3, gate_lr=0.0)
        trainer.train()
        found.append(float(gating.penalty.multiplier))  # type: ignore[attr-defined]
    assert found[1] == pytest.approx(found[0], rel=1e-6)


def test_in_evaluation_closed_heads_are_switched_off(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, save_strategy="no", eval_strategy="steps", eval_steps=8)
    gating = add_gates(trainer, heads="enc.0", penalty=5.0, gate_lr=1.0)
    trainer.train()
    told = [row["eval_loss"] for row in trainer.state.log_history if "eval_loss" in row]
    assert gating.removed
    small = gating.prune().model
    batch = {name: torch.stack([torch.as_tensor(r[name]) for r in rows()]) for name in rows()[0]}
    with torch.no_grad():
        assert small(**batch).loss.item() == pytest.approx(told[-1], abs=1e-5)


def test_nothing_stays_after_an_error(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path, save_strategy="no")
    gating = add_gates(trainer, keep=3)

    class Stop(TrainerCallback):
        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            raise KeyboardInterrupt

    trainer.add_callback(Stop())
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert "headcount_gates" not in dict(trainer.model.named_children())
    hooks = [getattr(m, name) for name in HOOKS for m in gating.subject.model.modules()]
    assert not any(hooks)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path)
    with pytest.raises(UsageError, match="added to a transformers Trainer, not a str"):
        add_gates("trainer", keep=3)
    with pytest.raises(UsageError, match="Say what closes the gates"):
        add_gates(trainer)
    add_gates(trainer, keep=3)
    with pytest.raises(UsageError, match="has gates already"):
        add_gates(trainer, keep=3)
    other = trainer_of(tmp_path)
    other.create_optimizer()
    with pytest.raises(UsageError, match="has an optimizer already"):
        add_gates(other, keep=3)
