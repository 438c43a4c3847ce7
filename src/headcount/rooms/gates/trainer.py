"""Gates in a transformers Trainer: two lines in a training script that exists already.

The price of open gates is added to the loss (Voita et al. 2019, eq. 7). While the Trainer
trains, the gates are a part of the model: so they are saved in its checkpoints, come back with
`resume_from_checkpoint`, and their gradients are averaged over processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from headcount.errors import UsageError
from headcount.models import Subject
from headcount.records import Head
from headcount.rooms.gates.gates import GatedHeads, Gates, Penalty, Target, gated, pruned_by
from headcount.rooms.gates.learning import gate_rate, gates_for, penalty_for
from headcount.rooms.gates.training import gate_schedule, number_of

#: What the gates are called in the model while it trains, and in checkpoints.
_PART = "headcount_gates"


class Gating(GatedHeads):
    """The gates of a Trainer; after `trainer.train()` they show which heads stay."""

    def __init__(
        self, trainer: Any, gates: Gates, penalty: Penalty, gate_lr: float, steps: int
    ) -> None:
        self.trainer, self.gates, self.penalty = trainer, gates, penalty
        self.gate_lr, self.steps = gate_lr, steps
        self.subject = Subject(trainer.model)
        self._drawn = (-1, 0)

    def prune(self, keep: int | None = None) -> Subject:
        """The trained model without the closed heads, or with the `keep` most open gated ones."""
        tokenizer = getattr(self.trainer, "processing_class", None)
        return pruned_by(Subject(self.trainer.model, tokenizer), self.gates, keep)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Within the block the model runs through its gates and holds them as a part."""
        model = self.subject.model
        model.add_module(_PART, self.gates)
        try:
            self.gates.to(self.subject.device)
            with gated(self.subject, self.gates, self._draw):
                yield
        finally:
            self.gates.eval()
            model._modules.pop(_PART, None)

    def price(self) -> Tensor:
        """What the gates cost at this step."""
        return self.penalty(self.gates, self.trainer.state.global_step)

    def _draw(self) -> Tensor:
        """One draw a batch, the same in all processes; in evaluation 0 or 1, as in the paper."""
        if not self.gates.training:
            return self.gates()
        step, count = self._drawn
        now = self.trainer.state.global_step
        self._drawn = (now, count + 1 if step == now else 0)
        seed = number_of("trainer", self.trainer.args.seed, *self._drawn)
        noise = torch.rand(self.gates.log_a.shape, generator=torch.Generator().manual_seed(seed))
        return self.gates(noise)


class _Gated:
    """What a Trainer with gates does besides what it did before."""

    gating: Gating

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train through the gates; nothing stays on the model, also after an error."""
        with self.gating.active():
            return super().train(*args, **kwargs)  # type: ignore[misc]

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The Trainer's own loss, and in training the price of the gates."""
        loss = super().compute_loss(model, inputs, *args, **kwargs)  # type: ignore[misc]
        if not model.training:
            return loss
        price = self.gating.price() * self._price_share(kwargs.get("num_items_in_batch"))
        return (loss[0] + price, *loss[1:]) if isinstance(loss, tuple) else loss + price

    def create_optimizer(self, *args: Any, **kwargs: Any) -> Any:
        """The Trainer's own optimiser, with the gates in a group of their own."""
        optimizer = super().create_optimizer(*args, **kwargs)  # type: ignore[misc]
        log_a = self.gating.gates.log_a
        for group in optimizer.param_groups:
            group["params"] = [weight for weight in group["params"] if weight is not log_a]
        settings = {"params": [log_a], "lr": self.gating.gate_lr, "weight_decay": 0.0}
        optimizer.add_param_group(settings)
        return optimizer

    def create_scheduler(self, *args: Any, **kwargs: Any) -> Any:
        """The Trainer's own schedule; gates keep their rate, and slow down at the end."""
        schedule = super().create_scheduler(*args, **kwargs)  # type: ignore[misc]
        if hasattr(schedule, "lr_lambdas"):
            schedule.lr_lambdas[-1] = partial(gate_schedule, steps=self.gating.steps)
        return schedule

    def _price_share(self, items: Any) -> float:
        """Where the Trainer will not divide by the batches of a step, this does."""
        trainer: Any = self
        scaled = getattr(trainer, "loss_is_scaled_for_ga", None)
        if scaled is None:
            counted = trainer.model_accepts_loss_kwargs and items is not None
            scaled = counted or trainer.compute_loss_func is not None
        return 1 / trainer.current_gradient_accumulation_steps if scaled else 1.0


def add_gates(
    trainer: Any,
    *,
    stacks: str | Iterable[str] | None = None,
    heads: str | Iterable[str | Head] | None = None,
    keep: int | None = None,
    penalty: Penalty | float | None = None,
    start: float | None = 3.0,
    gate_lr: float | None = None,
    convention: str = "headcount",
) -> Gating:
    """Put gates on the heads of a Trainer's model; `trainer.train()` then learns which stay.

    Arguments are those of `learn_gates`. The model is the Trainer's own and is trained in place,
    as ever. In evaluation, also in the middle of training, closed heads are switched off.
    """
    _check(trainer)
    subject, seed = Subject(trainer.model), trainer.args.seed
    gates = gates_for(subject, stacks, heads, start, seed, convention)
    steps = _steps(trainer)
    rate = gate_rate(steps) if gate_lr is None else gate_lr
    price = penalty_for(gates, keep, penalty, steps)
    if isinstance(price, Target):
        gates.add_module("price", price)  # so that it is saved and comes back with them
    gating = Gating(trainer, gates, price, rate, steps)
    own = type(trainer)
    trainer.__class__ = type(f"Gated{own.__name__}", (_Gated, own), {"gating": gating})
    return gating


def _check(trainer: Any) -> None:
    from transformers import Trainer

    if not isinstance(trainer, Trainer):
        raise UsageError(
            f"Gates are added to a transformers Trainer, not a {type(trainer).__name__}."
        )
    if isinstance(trainer, _Gated):
        raise UsageError("This Trainer has gates already; make a new one for other gates.")
    if trainer.optimizer is not None:
        raise UsageError(
            "This Trainer has an optimizer already, which knows nothing of gates; add them before "
            "it is made, and leave `optimizers` out."
        )
    if trainer.args.n_gpu > 1:
        raise UsageError(
            "Gates do not run on several GPUs in one process; start one process a GPU, with "
            "torchrun or accelerate launch."
        )


def _steps(trainer: Any) -> int:
    """How many steps the Trainer will take."""
    if trainer.args.max_steps > 0:
        return int(trainer.args.max_steps)
    batches = len(trainer.get_train_dataloader())
    each = -(-batches // trainer.args.gradient_accumulation_steps)
    return max(1, round(each * trainer.args.num_train_epochs))
