"""The training loop that learned gates and healing share, on accelerate.

A step's batch, its dropout and its gates follow from the seed and the step's number alone: so
training that was killed goes on and ends with the same weights.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, UsageError
from headcount.pruning.checkpoint import Checkpoint, pack_adam, unpack_adam
from headcount.pruning.gates import Gates, gate_places
from headcount.pruning.lessons import Cursor, Lessons
from headcount.pruning.loss import Loss
from headcount.pruning.objective import Penalty
from headcount.pruning.recipe import Recipe
from headcount.subject import Subject
from headcount.wiring.valves import Valve

__all__ = ["Learner", "Training", "check_precision", "number_of", "settling"]

Row = dict[str, float]


class Learner(nn.Module):
    """Model, gates and their price as one module: processes average the gradients of all."""

    def __init__(
        self,
        subject: Subject,
        loss: Loss,
        gates: Gates | None = None,
        penalty: Penalty | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.model: nn.Module = subject.model
        self.subject, self.loss, self.seed = subject, loss, seed
        self.gates, self.penalty = gates, penalty
        self.opened: Valve | None = None
        if gates is not None:
            self.places = gate_places(subject, gates)
            self.ones = torch.ones(len(subject.heads), device=gates.log_a.device)

    def forward(self, batch: Any, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and number of predictions of a batch, and what the gates cost."""
        if self.gates is None or self.opened is None:
            total, count = self.loss(self.subject, batch)
            return total, count, total.new_zeros(())
        dice = torch.Generator().manual_seed(number_of("gates", self.seed, step))
        noise = torch.rand(self.gates.log_a.shape, generator=dice)  # the same in all processes
        self.opened.scales = self.ones.index_copy(0, self.places, self.gates(noise))
        total, count = self.loss(self.subject, batch)
        price = total.new_zeros(()) if self.penalty is None else self.penalty(self.gates, step)
        return total, count, price


class Training:
    """Steps of AdamW over a learner; `run` takes them all and gives the log."""

    def __init__(
        self,
        learner: Learner,
        weights: Mapping[str, nn.Parameter],
        lessons: Lessons,
        recipe: Recipe,
        accelerator: Any,
        *,
        gate_lr: float = 0.0,
        checkpoint: Checkpoint | None = None,
        log: Callable[[Row], None] | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.learner, self.weights, self.lessons = learner, dict(weights), lessons
        self.recipe, self.accelerator, self.checkpoint = recipe, accelerator, checkpoint
        self.log, self.progress = log, progress
        self.gate_lr = gate_lr
        self.optimizer = torch.optim.AdamW(self._groups(), lr=recipe.lr)
        self.step = 0
        self.cursor: Cursor = (0, 0, 0)
        self.rows: list[Row] = []
        self.sums = torch.zeros(3, dtype=torch.float64)
        self._restore()

    def run(self) -> pd.DataFrame:
        """Take the steps that are left; one row for every `log_every` of them."""
        devices = sorted({w.device.index for w in self.learner.parameters() if w.is_cuda})
        with torch.random.fork_rng(devices=devices):
            self.learner.train()
            model, optimizer = self.accelerator.prepare(self.learner, self.optimizer)
            if self.step < self.recipe.steps:
                self._go(model, optimizer)
        return pd.DataFrame(self.rows)

    def _go(self, model: nn.Module, optimizer: Any) -> None:
        for turn, cursor in self.lessons.turns(self.cursor):
            self._take(model, optimizer, turn)
            self.step, self.cursor = self.step + 1, cursor
            done = self.step == self.recipe.steps
            if self.step % self.recipe.log_every == 0 or done:
                self._note()
            if self.step % self.recipe.save_every == 0 or done:
                self._save()
            if self.progress is not None and self.accelerator.is_main_process:
                self.progress(self.step, self.recipe.steps)
            if done:
                return

    def _take(self, model: nn.Module, optimizer: Any, turn: list[Any]) -> None:
        """One step on the batches of a turn."""
        mine, processes = self.accelerator.process_index, self.accelerator.num_processes
        # A process that the turn has no batch for goes along with one that does not count.
        share = float(mine < len(turn))
        torch.manual_seed(number_of("dropout", self.recipe.seed, self.step, mine))
        total, count, price = model(turn[mine] if share else turn[0], self.step)
        whole = self.accelerator.reduce(torch.stack([total.detach() * share, count * share]), "sum")
        self._rate()
        self.accelerator.backward(total * share / whole[1] * processes + price)
        if self.recipe.clip is not None and self.weights:
            self.accelerator.clip_grad_norm_(list(self.weights.values()), self.recipe.clip)
        optimizer.step()
        optimizer.zero_grad()
        self.sums += torch.stack([*whole, price.detach()]).double().cpu()

    def _rate(self) -> None:
        rate = self.recipe.rate(self.step)
        gates = self.gate_lr * settling(self.step, self.recipe.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = gates if group["gates"] else rate

    def _groups(self) -> list[dict[str, Any]]:
        """Matrices decay, the rest does not; gates have a rate of their own."""
        weights = list(self.weights.values())
        parts = [
            ([w for w in weights if w.dim() > 1], self.recipe.weight_decay),
            ([w for w in weights if w.dim() <= 1], 0.0),
        ]
        groups = [{"params": p, "weight_decay": d, "gates": False} for p, d in parts if p]
        if self.learner.gates is not None:
            own = {"params": [self.learner.gates.log_a], "weight_decay": 0.0}
            groups.append({**own, "gates": True})
        if not groups:
            raise UsageError("No weight and no gate would learn; name weights in `train`.")
        return groups

    def _note(self) -> None:
        """Write down how it goes; stop where the loss is no number."""
        steps = self.step - int(self.rows[-1]["step"] if self.rows else 0)
        total, count, price = self.sums.tolist()
        self.sums.zero_()
        if not math.isfinite(total):
            raise ModelError(
                f"The loss of {self.learner.subject.name} is not a number after step {self.step}; "
                "lower the learning rate, or train in float32."
            )
        row = {"step": float(self.step), "loss": total / count, "price": price / steps}
        row |= self._gate_figures() | {"lr": self.recipe.rate(self.step - 1)}
        self.rows.append(row)
        if self.log is not None and self.accelerator.is_main_process:
            self.log(row)

    def _gate_figures(self) -> Row:
        gates = self.learner.gates
        if gates is None:
            return {}
        figures = {"expected": gates.expected().item(), "open": gates.open().sum().item()}
        multiplier = getattr(self.learner.penalty, "multiplier", None)
        return figures if multiplier is None else {**figures, "multiplier": float(multiplier)}

    # --- going on after a kill ---------------------------------------------------------------

    def _tensors(self) -> dict[str, Tensor]:
        """All that has learned."""
        found: dict[str, Tensor] = {f"weight.{n}": w for n, w in self.weights.items()}
        for room in ("gates", "penalty"):
            module = getattr(self.learner, room)
            if isinstance(module, nn.Module):
                found |= {f"{room}.{name}": value for name, value in module.state_dict().items()}
        return found

    def _save(self) -> None:
        if self.checkpoint is None or not self.accelerator.is_main_process:
            return
        told = {"step": self.step, "cursor": self.cursor, "rows": self.rows}
        told["sums"] = self.sums.tolist()
        self.checkpoint.write(self._tensors() | pack_adam(self.optimizer), told)

    def _restore(self) -> None:
        saved = None if self.checkpoint is None else self.checkpoint.read()
        if saved is None:
            return
        tensors, told = saved
        with torch.no_grad():
            for name, value in self._tensors().items():
                value.copy_(tensors[name])
        unpack_adam(self.optimizer, tensors)
        self.step, self.rows = told["step"], told["rows"]
        epoch, part, turn = told["cursor"]
        self.cursor = (epoch, part, turn)
        self.sums = torch.tensor(told["sums"], dtype=torch.float64)


def settling(step: int, steps: int) -> float:
    """Gates move at their own rate until the last fifth of training, then they come to rest.

    >>> settling(0, 100), settling(79, 100), settling(90, 100)
    (1.0, 1.0, 0.5)
    """
    return min(1.0, (steps - step) / (0.2 * steps))


def number_of(*parts: object) -> int:
    """A seed from what it depends on; neighbours have nothing in common.

    >>> number_of("gates", 0, 1) == number_of("gates", 0, 1) != number_of("gates", 0, 2)
    True
    """
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7], "big")


def check_precision(subject: Subject, names: list[str]) -> None:
    """Refuse weights in which small steps would vanish."""
    if names and subject.dtype != torch.float32 and subject.dtype != torch.float64:
        kind = str(subject.dtype).removeprefix("torch.")
        raise UsageError(
            f"The weights of {subject.name} are in {kind}, in which small steps vanish; load it "
            "with dtype='float32' and train with mixed_precision='bf16'."
        )
