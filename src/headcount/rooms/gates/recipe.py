"""What a training is made of: its schedule, its batches, its loss, and the weights that learn.

Distillation is that of Hinton et al. 2015, section 2, at temperature 1. Which weights are frozen
while gates learn follows Voita et al. 2019, section 6.2.
"""

from __future__ import annotations

import hashlib
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div

from headcount.errors import InputError, UsageError
from headcount.models import Subject, core_of, eval_mode
from headcount.rooms.labels import HeadTask, Regression, Similarity
from headcount.tasks import IGNORED, LOSS, Custom, Task, labels_of
from headcount.text import Batch

# --- The schedule: how long and how fast a model learns -----------------------------------------

_WORDS = {"decay": ("linear", "cosine", "constant"), "mixed_precision": ("no", "bf16", "fp16")}


@dataclass(frozen=True)
class Schedule:
    """Steps of AdamW, and the learning rate at each.

    The rate rises in `warmup` steps to `lr` and falls to 0 at the end (`decay` "linear" or
    "cosine"), or stays ("constant").

    >>> [Schedule(steps=4, lr=1.0, warmup=2).rate(step) for step in range(4)]
    [0.5, 1.0, 1.0, 0.5]
    """

    steps: int
    lr: float = 5e-5
    #: Rows of a batch in each process.
    batch_size: int = 16
    warmup: int = 0
    decay: str = "linear"
    #: The longest gradient of the weights; None for any.
    clip: float | None = 1.0
    weight_decay: float = 0.0
    seed: int = 0
    #: "no", "bf16" or "fp16"; weights stay in float32.
    mixed_precision: str = "no"
    log_every: int = 10
    save_every: int = 100

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name in ("steps", "batch_size", "log_every", "save_every"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        for name in ("lr", "warmup", "weight_decay"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name} is {getattr(self, name)}; it must be 0 or more.")
        for name, allowed in _WORDS.items():
            if getattr(self, name) not in allowed:
                choice = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
                raise UsageError(f"{name} is '{getattr(self, name)}'; choose {choice}.")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Schedule:
        """The schedule of options given by name."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise UsageError(f"There is no option '{name}'; there are {', '.join(known)}.")
        return cls(**options)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        done = (step - self.warmup) / max(1, self.steps - self.warmup)
        if self.decay == "linear":
            return self.lr * (1 - done)
        if self.decay == "cosine":
            return self.lr * (1 + math.cos(math.pi * done)) / 2
        return self.lr

    def describe(self) -> dict[str, Any]:
        """What the result depends on."""
        return {n: v for n, v in vars(self).items() if n not in ("log_every", "save_every")}


# --- The batches --------------------------------------------------------------------------------
# Which batch comes at which step follows from the seed only, so that training that was killed goes
# on where it was. Processes share out each step, a batch each: two with batches of 8 learn from
# the same examples as one with batches of 16.

#: The batches of one step, one a process; the last step of an epoch may be short of some.
StepBatches = list[Any]
#: Epoch, part of the epoch, step.
Cursor = tuple[int, int, int]

#: Steps that are batched at a time: rows of one batch are about equally long.
_POOL = 32


class TrainingBatches(ABC):
    """Batches without end, from any place on."""

    parts: int

    @abstractmethod
    def part(self, epoch: int, number: int) -> list[StepBatches]:
        """The steps of one part of an epoch."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What must be the same to continue interrupted training."""

    def steps(self, cursor: Cursor = (0, 0, 0)) -> Iterator[tuple[StepBatches, Cursor]]:
        """Steps from a place on, each with the place behind it."""
        epoch, part, first = cursor
        while True:
            made = self.part(epoch, part)
            for place in range(first, len(made)):
                yield made[place], (epoch, part, place + 1)
            part, first = part + 1, 0
            if part == self.parts:
                epoch, part = epoch + 1, 0


class TaskBatches(TrainingBatches):
    """The examples of a task, shuffled in each epoch."""

    def __init__(
        self, task: Task, subject: Subject, batch_size: int, seed: int, processes: int
    ) -> None:
        task.check(subject)
        self.task, self.subject, self.seed = task, subject, seed
        self.batch_size, self.processes = batch_size, processes
        self.size = _POOL * batch_size * processes
        self.parts = -(-len(task) // self.size)

    def part(self, epoch: int, number: int) -> list[StepBatches]:
        """Some examples, sorted by length into batches, the steps in a random order."""
        order = list(range(len(self.task)))
        random.Random(f"examples {self.seed} {epoch}").shuffle(order)
        chosen = self.task.part(order[number * self.size : (number + 1) * self.size])
        batches = list(chosen.batches(self.subject, self.batch_size))
        if not batches:
            raise InputError(f"{self.task.name} has no text to learn from in {len(chosen)} lines.")
        steps = _by_step(batches, self.processes)
        random.Random(f"turns {self.seed} {epoch} {number}").shuffle(steps)
        return steps

    def describe(self) -> dict[str, Any]:
        """The task and the rows of one step."""
        return {"task": self.task.describe(), "rows": self.batch_size * self.processes}


class ReadyBatches(TrainingBatches):
    """Batches that the caller made, with labels among them, shuffled in each epoch."""

    parts = 1

    def __init__(self, batches: Iterable[Any], seed: int, processes: int) -> None:
        self.batches = list(batches)
        if not self.batches:
            raise InputError("There are no batches to learn from; give one or more.")
        if not all(isinstance(batch, Mapping) and "labels" in batch for batch in self.batches):
            raise UsageError(
                "Batches of your own must be what the model's forward takes, by name, with "
                "'labels' among it; or give a task of hc.tasks."
            )
        self.seed, self.processes = seed, processes

    def part(self, epoch: int, number: int) -> list[StepBatches]:
        """All batches in a random order."""
        order = list(self.batches)
        random.Random(f"batches {self.seed} {epoch}").shuffle(order)
        return _by_step(order, self.processes)

    def describe(self) -> dict[str, Any]:
        """How many batches there are, and the sha256 of what they hold."""
        digest = hashlib.sha256()
        for batch in self.batches:
            for name, value in sorted(batch.items()):
                shown = value.tolist() if isinstance(value, Tensor) else value
                digest.update(f"{name} {shown}\n".encode())
        return {"batches": len(self.batches), "hash": digest.hexdigest()}


def _by_step(batches: Sequence[Any], processes: int) -> list[StepBatches]:
    """Neighbours together: a step is what one process would take as one large batch."""
    return [list(batches[start : start + processes]) for start in range(0, len(batches), processes)]


# --- The loss -----------------------------------------------------------------------------------


#: The loss of a batch, summed, and how many predictions it is over; differentiable.
Loss = Callable[[Subject, Any], tuple[Tensor, Tensor]]


def own_loss(subject: Subject, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """The mean loss that the model itself gives a batch with labels; every batch counts alike."""
    here = {n: v.to(subject.device) if isinstance(v, Tensor) else v for n, v in batch.items()}
    loss = subject.model(**here).loss
    return loss, torch.ones((), device=loss.device)


@dataclass(frozen=True)
class TaskLoss:
    """A task's loss, its labels smoothed and a `share` of it from a teacher where there is one.

    That share is the divergence of the teacher's distribution from the learner's; for tasks whose
    labels are numbers it is the squared difference.
    """

    task: Task
    teacher: Subject | None = None
    share: float = 0.7
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what the task cannot give."""
        for name, value in (("share", self.share), ("label smoothing", self.smoothing)):
            if not 0 <= value <= 1:
                raise UsageError(f"The {name} is {value:g}; it must be between 0 and 1.")
        if self.smoothing and self._of_numbers:
            raise UsageError(
                f"A {self.task.kind} task has no classes whose labels can be smoothed."
            )
        if self.teacher is not None and isinstance(self.task, Custom):
            raise UsageError(
                "A custom task gives its loss and nothing that a teacher could be compared by; "
                "train without a teacher, or use a task of another kind."
            )

    def __call__(self, subject: Subject, batch: Batch) -> tuple[Tensor, Tensor]:
        """Nats (or squared errors) summed over what is to be predicted, and how much that is."""
        if isinstance(self.task, Custom):
            losses = self.task.loss(subject, batch)
            return losses.sum(), losses.new_tensor(len(losses))
        output = self._output(subject, batch)
        taught = None
        if self.teacher is not None and self.share:
            with torch.no_grad(), eval_mode(self.teacher.model):
                taught = self._output(self.teacher, batch).to(output.device)
        labels = labels_of(batch, output)
        if self._of_numbers:
            if isinstance(self.task, Similarity):
                low, high = self.task.span
                labels = (labels - low) / (high - low)
            own = (output - labels).square().sum()
            apart = None if taught is None else (output - taught).square().sum()
            count = output.new_tensor(len(output))
        else:
            real = labels != IGNORED
            logits = output[real].float()
            own = cross_entropy(
                logits, labels[real], reduction="sum", label_smoothing=self.smoothing
            )
            apart = None if taught is None else _divergence(logits, taught[real].float())
            count = real.sum()
        loss = own if apart is None else (1 - self.share) * own + self.share * apart
        return loss, count

    @property
    def _of_numbers(self) -> bool:
        return isinstance(self.task, Regression | Similarity)

    def _output(self, subject: Subject, batch: Batch) -> Tensor:
        """Numbers, or logits at the labels; by the loss, so that nothing is generated."""
        if self._of_numbers:
            return self.task.answer(subject, batch).float()
        if isinstance(self.task, HeadTask):
            return self.task.logits(subject, batch)
        found: Tensor = replace(self.task, metric=LOSS).answer(subject, batch)
        return found


def _divergence(logits: Tensor, taught: Tensor) -> Tensor:
    if logits.shape != taught.shape:
        raise UsageError(
            f"The teacher has {taught.shape[-1]} classes or words and the learner "
            f"{logits.shape[-1]}; give the model that the heads were removed from."
        )
    learner, teacher = logits.log_softmax(-1), taught.log_softmax(-1)
    return kl_div(learner, teacher, reduction="sum", log_target=True)


# --- Which weights learn ------------------------------------------------------------------------

#: "all", "gates" (no weight), "enc", "dec", names with * or a function of a name.
Chosen = str | Sequence[str] | Callable[[str], bool]


def trainable(subject: Subject, chosen: Chosen) -> list[str]:
    """The names of the weights that learn; what its owner froze stays frozen.

    "enc" and "dec" are what belongs to that stack only: embeddings that both stacks use stay
    frozen, so that functions cannot move to the other stack (Voita et al. 2019, section 6.2).

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> trainable(Subject(BertModel(config)), ["*query*"])
    ['encoder.layer.0.attention.self.query.weight', 'encoder.layer.0.attention.self.query.bias']
    """
    # Positions that are a formula look like weights.
    tables = [m for m in subject.model.modules() if "Sinusoidal" in type(m).__name__]
    fixed = {id(weight) for table in tables for weight in table.parameters()}
    names = [
        name
        for name, weight in subject.model.named_parameters()
        if weight.is_floating_point() and weight.requires_grad and id(weight) not in fixed
    ]
    if chosen == "all":
        return names
    if chosen == "gates":
        return []
    if chosen in ("enc", "dec"):
        own = _weights_of_stack(subject, str(chosen))
        return [name for name in names if name in own]
    if callable(chosen):
        found = [name for name in names if chosen(name)]
    else:
        patterns = [chosen] if isinstance(chosen, str) else list(chosen)
        found = [n for n in names if any(fnmatchcase(n, pattern) for pattern in patterns)]
    if not found:
        raise UsageError(
            f"No weight of {subject.name} is meant by {describe_chosen(chosen)!r}; give 'all', "
            f"'gates', 'enc', 'dec' or names such as '{names[0] if names else '*'}', with * for "
            "any part."
        )
    return found


def describe_chosen(chosen: Chosen) -> Any:
    """The choice as a record keeps it."""
    if callable(chosen):
        return getattr(chosen, "__name__", "a function")
    return chosen if isinstance(chosen, str) else list(chosen)


def _weights_of_stack(subject: Subject, stack: str) -> set[str]:
    """Names of weights that are in one stack and nowhere else."""
    if subject.kind == "enc-dec":
        inner = subject.inner
        part: nn.Module = inner.get_encoder() if stack == "enc" else inner.get_decoder()
    elif stack == subject.kind:
        part = core_of(subject.model)
    else:
        raise UsageError(f"{subject.name} has no stack '{stack}'; it has {subject.kind}.")
    path = next(path for path, module in subject.model.named_modules() if module is part)
    prefix = f"{path}." if path else ""
    weights = list(subject.model.named_parameters(remove_duplicate=False))
    outside = {id(weight) for name, weight in weights if not name.startswith(prefix)}
    return {name for name, weight in weights if id(weight) not in outside}


@contextmanager
def only_trainable(model: nn.Module, names: Sequence[str]) -> Iterator[dict[str, nn.Parameter]]:
    """Within the block only these weights require a gradient; flags and modes come back."""
    weights = dict(model.named_parameters())
    flags = {name: weight.requires_grad for name, weight in weights.items()}
    modes = [(module, module.training) for module in model.modules()]
    learning = set(names)
    try:
        for name, weight in weights.items():
            weight.requires_grad_(name in learning)
        yield {name: weights[name] for name in names}
    finally:
        for name, weight in weights.items():
            weight.grad = None
            weight.requires_grad_(flags[name])
        for module, mode in modes:
            module.training = mode
