"""Learn which heads to keep, train what is left, or train the same shape from random weights.

Voita et al. 2019 (section 6): hard-concrete gates on the heads, a price on every open one, and
training that goes on from the converged model. Distillation is that of Hinton et al. 2015 at
temperature 1.

Prunings in which weights learn: by gates that close, and by healing what is left.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from headcount.errors import UsageError
from headcount.models import Subject
from headcount.pruning import (
    check_stacks,
    prune,
    removable_units,
)
from headcount.records import Head, check_heads, heads_named, old_keywords, parse_heads
from headcount.rooms.gates.gates import (
    GatedHeads,
    Gates,
    Penalty,
    Price,
    Target,
    check_count,
    pruned_by,
)
from headcount.rooms.gates.training import Chosen, Row, Schedule, Session, TrainingData
from headcount.rooms.twins import random_twin

# --- Gates that close while the model trains ----------------------------------------------------

#: How far gates begin from `start`: no two cross the line together.
SPREAD = 0.5


@dataclass(frozen=True, repr=False)
class Learned(GatedHeads):
    """Gates that have learned, and the model that learned with them."""

    #: As trained, all heads still there.
    subject: Subject
    gates: Gates
    #: One row for every few steps: step, loss, price, expected, open, lr.
    log: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    def prune(self, keep: int | None = None) -> Subject:
        """The trained model without the closed heads, or with the `keep` most open gated ones."""
        return pruned_by(self.subject, self.gates, keep)

    def __repr__(self) -> str:
        open_, gated = len(self.gates.kept()), len(self.gates.heads)
        return f"Learned({self.subject.name}: {open_} of {gated} gates open)"


@old_keywords()
def learn_gates(
    subject: Subject,
    task: TrainingData,
    *,
    stacks: str | Iterable[str] | None = None,
    heads: str | Iterable[str | Head] | None = None,
    keep: int | None = None,
    penalty: Penalty | float | None = None,
    train: Chosen = "all",
    start: float | None = 3.0,
    gate_lr: float | None = None,
    teacher: Subject | None = None,
    share: float = 0.7,
    smoothing: float = 0.0,
    convention: str = "headcount",
    in_place: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    accelerator: Any = None,
    log: Callable[[Row], None] | None = None,
    **options: Any,
) -> Learned:
    """Train gates on heads, and the weights that `train` names, and say which heads stay.

    Give `keep`, how many of the gated heads should stay, or a `penalty`: a number is the paper's
    lambda, `Price` and `Target` say more, and any function of gates and step will do. All heads
    have gates unless `stacks` or `heads` name some; heads that can only go together share one.
    Gates begin open (`start`), or with `start=None` as the authors' do. `train` is "all",
    "gates" (no weight learns), "enc", "dec", names with * or a function of a name. `options` are
    the fields of a `Schedule`: steps, lr, batch_size, warmup, decay, clip, weight_decay, seed,
    mixed_precision. A `share` of the loss comes from a `teacher`, where there is one. Under the
    `convention` "code" lambda is the authors' `concrete_coef`, a gate may end between 0 and 1, and
    a head goes where it is exactly 0.

    A copy is trained and the subject not changed, unless `in_place`; on any exit nothing stays
    attached to either. With `checkpoint`, a folder, training that was killed goes on there and
    ends with the same gates. Train on texts that the result will not be judged on.
    """
    schedule = Schedule.of(options)
    gates = gates_for(subject, stacks, heads, start, schedule.seed, convention)
    price = penalty_for(gates, keep, penalty, schedule.steps)
    session = Session(
        kind="gates",
        task=task,
        schedule=schedule,
        train=train,
        teacher=teacher,
        share=share,
        smoothing=smoothing,
        gates=gates,
        penalty=price,
        gate_lr=gate_rate(schedule.steps) if gate_lr is None else gate_lr,
        in_place=in_place,
        checkpoint=checkpoint,
        accelerator=accelerator,
        log=log,
    )
    trained, rows = session(subject)
    notes = []
    left = len(gates.kept())
    if isinstance(price, Target) and abs(left - price.count) > 1:
        notes = [
            f"Training left {left} gates open where {price.count:g} were asked for; prune(keep=N) "
            "takes the most open ones, and more steps or a higher gate_lr come nearer."
        ]
    return Learned(trained, gates.cpu().eval(), rows, notes)


def gate_rate(steps: int) -> float:
    """A learning rate with which a gate can close in the time there is.

    >>> gate_rate(100), gate_rate(6000)
    (0.15, 0.03)
    """
    return max(0.03, 15 / steps)


def gates_for(
    subject: Subject,
    stacks: str | Iterable[str] | None = None,
    heads: str | Iterable[str | Head] | None = None,
    start: float | None = 3.0,
    seed: int = 0,
    convention: str = "headcount",
) -> Gates:
    """Gates for a model's heads, for those of some stacks, or for those that are named."""
    if heads is not None and stacks is not None:
        raise UsageError("Both heads and stacks say where gates go; give one of them.")
    if heads is not None:
        named = set(_named(heads, subject.heads))
        chosen = [head for head in subject.heads if head in named]
    else:
        words = stacks.split(",") if isinstance(stacks, str) else stacks
        wanted = check_stacks(words, subject.anatomy.stacks)
        chosen = [head for head in subject.heads if head.stack in wanted]
    units = removable_units(subject.anatomy, chosen)
    whole = {head for unit in units for head in unit}
    for head in chosen:
        if head not in whole:
            raise UsageError(
                f"{head} of {subject.name} cannot go alone: it shares keys or weights with heads "
                "that have no gate; give gates to whole layers."
            )
    return Gates(chosen, start=start, spread=SPREAD, seed=seed, units=units, convention=convention)


def _named(heads: str | Iterable[str | Head], known: list[Head]) -> list[Head]:
    named = heads_named(heads, known) if isinstance(heads, str) else parse_heads(heads)
    check_heads(named, known)
    return named


def penalty_for(
    gates: Gates, keep: int | None, penalty: Penalty | float | None, steps: int
) -> Penalty:
    """The price of the gates: lambda, a price of the caller's own, or one that leads to `keep`."""
    if (keep is None) == (penalty is None):
        raise UsageError(
            "Say what closes the gates: keep=N, the heads that should stay, or penalty=LAMBDA, the "
            "price of each; one of them."
        )
    if keep is not None:
        check_count(keep, len(gates.heads))
        return Target(keep, steps=max(1, round(0.6 * steps)), rate=0.2, hard=True)
    if isinstance(penalty, int | float):
        return Price(float(penalty), convention=gates.convention)
    assert penalty is not None
    return penalty


# --- Heal what is left --------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Healed:
    """A trained model, and the log of its training."""

    subject: Subject
    #: One row for every few steps: step, loss, price (0), lr.
    log: pd.DataFrame

    def __repr__(self) -> str:
        return f"Healed({self.subject.name}: loss {self.log['loss'].iloc[-1]:.4g})"


@old_keywords()
def heal(
    small: Subject,
    task: TrainingData,
    *,
    teacher: Subject | None = None,
    share: float = 0.7,
    smoothing: float = 0.0,
    train: Chosen = "all",
    in_place: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    accelerator: Any = None,
    log: Callable[[Row], None] | None = None,
    **options: Any,
) -> Healed:
    """Train a pruned model on a task, with a `share` of the loss from the unpruned `teacher`.

    `task` is what it learns from: never the part that the result is judged on (`task.split`
    makes two). `options` are the fields of a `Schedule`: steps, lr, batch_size, warmup, decay,
    clip, weight_decay, seed, mixed_precision. `train` says which weights learn, as in
    `learn_gates`.

    A copy is trained and `small` not changed, unless `in_place`. With `checkpoint`, a folder,
    training that was killed goes on there and ends with the same weights. A layer that lost all
    its heads stays without.
    """
    session = Session(
        kind="heal",
        task=task,
        schedule=Schedule.of(options),
        train=train,
        teacher=teacher,
        share=share,
        smoothing=smoothing,
        in_place=in_place,
        checkpoint=checkpoint,
        accelerator=accelerator,
        log=log,
    )
    return Healed(*session(small))


# --- The same heads from scratch ----------------------------------------------------------------
# Voita et al. 2019 (Table 2): the pruned model's configuration, trained from random weights, stays
# behind the model that was pruned after training.


def scratch(subject: Subject, heads: str | Iterable[str | Head], *, seed: int = 0) -> Subject:
    """The subject's shape with random weights and only these heads; `heal` trains it.

    Weights are drawn for the whole model by its own initialisation, then the other heads are cut
    out: each head that is left begins as it would in the whole model.

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> scratch(Subject(BertModel(config), name="mine"), "enc.0.1-2").name
    'random twin 0 of mine without 2 heads'
    """
    kept = set(_named(heads, subject.heads))
    gone = [head for head in subject.heads if head not in kept]
    twin = random_twin(subject, seed=seed)
    return prune(twin, gone) if gone else twin
