"""A recipe: how long and how fast a model learns."""

from __future__ import annotations

import hashlib
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Protocol, TypedDict

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div

from headcount.errors import InputError, UsageError
from headcount.models import Subject, core_of, eval_mode
from headcount.tasks import IGNORED, LOSS, Custom, HeadTask, Regression, Similarity, Task, labels_of
from headcount.text import Batch

# --- A recipe: how long and how fast a model learns ---------------------------------------------

DECAYS = ("linear", "cosine", "constant")
PRECISIONS = ("no", "bf16", "fp16")


class Options(TypedDict, total=False):
    """The fields of a `Schedule`, as `learn_gates` and `heal` take them by name."""

    steps: int
    lr: float
    batch_size: int
    warmup: int
    decay: str
    clip: float | None
    weight_decay: float
    seed: int
    mixed_precision: str
    log_every: int
    save_every: int


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
        _check_word("decay", self.decay, DECAYS)
        _check_word("mixed_precision", self.mixed_precision, PRECISIONS)

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
        settings = asdict(self)
        return {n: v for n, v in settings.items() if n not in ("log_every", "save_every")}


def recipe_of(options: Options) -> Schedule:
    """The recipe of options given by name."""
    known = [field.name for field in fields(Schedule)]
    for name in options:
        if name not in known:
            raise UsageError(f"There is no option '{name}'; there are {', '.join(known)}.")
    return Schedule(**options)


def _check_word(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"{name} is '{value}'; choose {', '.join(allowed[:-1])} or {allowed[-1]}.")


# --- Lessons ------------------------------------------------------------------------------------
# Which batch comes at which step follows from the seed alone, so that training that was killed goes
# on where it was. Processes share out each turn, a batch each: two with batches of 8 learn from
# the same examples as one with batches of 16.

#: The batches of one step, one a process; the last turn of an epoch may be short of some.
Turn = list[Any]
#: Epoch, part of the epoch, turn.
Cursor = tuple[int, int, int]

#: Turns that are laid out at a time: rows of one batch are about equally long.
_TURNS = 32


class Lessons(ABC):
    """Turns without end, from any place on."""

    parts: int

    @abstractmethod
    def part(self, epoch: int, number: int) -> list[Turn]:
        """The turns of one part of an epoch."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What must be the same for interrupted training to go on."""

    def turns(self, cursor: Cursor = (0, 0, 0)) -> Iterator[tuple[Turn, Cursor]]:
        """Turns from a place on, each with the place behind it."""
        epoch, part, first = cursor
        while True:
            laid = self.part(epoch, part)
            for place in range(first, len(laid)):
                yield laid[place], (epoch, part, place + 1)
            part, first = part + 1, 0
            if part == self.parts:
                epoch, part = epoch + 1, 0


class TaskLessons(Lessons):
    """The examples of a task, shuffled in each epoch."""

    def __init__(
        self, task: Task, subject: Subject, batch_size: int, seed: int, processes: int = 1
    ) -> None:
        task.check(subject)
        self.task, self.subject, self.seed = task, subject, seed
        self.batch_size, self.processes = batch_size, processes
        self.size = _TURNS * batch_size * processes
        self.parts = -(-len(task) // self.size)

    def part(self, epoch: int, number: int) -> list[Turn]:
        """Some examples, sorted by length into batches, the turns in a random order."""
        order = list(range(len(self.task)))
        random.Random(f"examples {self.seed} {epoch}").shuffle(order)
        chosen = self.task.part(order[number * self.size : (number + 1) * self.size])
        batches = list(chosen.batches(self.subject, self.batch_size))
        if not batches:
            raise InputError(f"{self.task.name} has no text to learn from in {len(chosen)} lines.")
        turns = _dealt(batches, self.processes)
        random.Random(f"turns {self.seed} {epoch} {number}").shuffle(turns)
        return turns

    def describe(self) -> dict[str, Any]:
        """The task and the rows of one step."""
        return {"task": self.task.describe(), "rows": self.batch_size * self.processes}


class ReadyLessons(Lessons):
    """Batches that the caller made, with labels among them, shuffled in each epoch."""

    parts = 1

    def __init__(self, batches: Iterable[Any], seed: int, processes: int = 1) -> None:
        self.batches = list(batches)
        if not self.batches:
            raise InputError("There are no batches to learn from; give one or more.")
        if not all(isinstance(batch, Mapping) and "labels" in batch for batch in self.batches):
            raise UsageError(
                "Batches of your own must be what the model's forward takes, by name, with "
                "'labels' among it; or give a task of hc.tasks."
            )
        self.seed, self.processes = seed, processes

    def part(self, epoch: int, number: int) -> list[Turn]:
        """All batches, dealt out in a random order."""
        order = list(self.batches)
        random.Random(f"batches {self.seed} {epoch}").shuffle(order)
        return _dealt(order, self.processes)

    def describe(self) -> dict[str, Any]:
        """How many batches there are, and the sha256 of what they hold."""
        digest = hashlib.sha256()
        for batch in self.batches:
            for name, value in sorted(batch.items()):
                shown = value.tolist() if isinstance(value, Tensor) else value
                digest.update(f"{name} {shown}\n".encode())
        return {"batches": len(self.batches), "hash": digest.hexdigest()}


def _dealt(batches: Sequence[Any], processes: int) -> list[Turn]:
    """Neighbours together: a turn is what one process would take as one large batch."""
    return [list(batches[start : start + processes]) for start in range(0, len(batches), processes)]


# --- What a model learns from a batch -----------------------------------------------------------
# Hinton et al. 2015, section 2, at temperature 1: a share of the loss is the divergence of the
# teacher's distribution from the learner's.


class Loss(Protocol):
    """The loss of a batch, summed, and how many predictions it is over."""

    def __call__(self, subject: Subject, batch: Any) -> tuple[Tensor, Tensor]:
        """Sum and count; differentiable in the subject's weights."""


@dataclass(frozen=True)
class OwnLoss:
    """The loss that the model itself gives a batch with labels; every batch counts alike."""

    def __call__(self, subject: Subject, batch: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """The model's mean loss, over one prediction."""
        here = {n: v.to(subject.device) if isinstance(v, Tensor) else v for n, v in batch.items()}
        loss = subject.model(**here).loss
        return loss, torch.ones((), device=loss.device)


@dataclass(frozen=True)
class TaskLoss:
    """A task's loss, its labels smoothed and a `share` of it from a teacher where there is one."""

    task: Task
    teacher: Subject | None = None
    share: float = 0.7
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what the task cannot give."""
        for name, value in (("share", self.share), ("label smoothing", self.smoothing)):
            if not 0 <= value <= 1:
                raise UsageError(f"The {name} is {value:g}; it lies between 0 and 1.")
        if self.smoothing and _gives_numbers(self.task):
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
        if _gives_numbers(self.task):
            return self._numbers(subject, batch)
        return self._classes(subject, batch)

    def _numbers(self, subject: Subject, batch: Batch) -> tuple[Tensor, Tensor]:
        said = self.task.answer(subject, batch).float()
        own = (said - self._gold(batch, said)).square().sum()
        taught = self._taught(batch)
        apart = None if taught is None else (said - taught.to(said)).square().sum()
        return self._mixed(own, apart), said.new_tensor(len(said))

    def _classes(self, subject: Subject, batch: Batch) -> tuple[Tensor, Tensor]:
        logits = _logits(self.task, subject, batch)
        real = labels_of(batch, logits) != IGNORED
        said, labels = logits[real].float(), labels_of(batch, logits)[real]
        own = cross_entropy(said, labels, reduction="sum", label_smoothing=self.smoothing)
        taught = self._taught(batch)
        apart = None if taught is None else _divergence(said, taught.to(real.device)[real])
        return self._mixed(own, apart), real.sum()

    def _mixed(self, own: Tensor, apart: Tensor | None) -> Tensor:
        return own if apart is None else (1 - self.share) * own + self.share * apart

    def _gold(self, batch: Batch, like: Tensor) -> Tensor:
        gold = labels_of(batch, like)
        if isinstance(self.task, Similarity):
            low, high = self.task.span
            return (gold - low) / (high - low)
        return gold

    def _taught(self, batch: Batch) -> Tensor | None:
        """What the teacher says, at rest and without gradients."""
        if self.teacher is None or not self.share:
            return None
        with torch.no_grad(), eval_mode(self.teacher.model):
            if _gives_numbers(self.task):
                return self.task.answer(self.teacher, batch).float()
            return _logits(self.task, self.teacher, batch)


def _gives_numbers(task: Task) -> bool:
    return isinstance(task, Regression | Similarity)


def _logits(task: Task, subject: Subject, batch: Batch) -> Tensor:
    """Logits where labels stand; nothing is translated or argued about on the way."""
    if isinstance(task, HeadTask):
        return task.logits(subject, batch)
    found: Tensor = replace(task, metric=LOSS).answer(subject, batch)
    return found


def _divergence(said: Tensor, taught: Tensor) -> Tensor:
    if said.shape != taught.shape:
        raise UsageError(
            f"The teacher has {taught.shape[-1]} classes or words and the learner "
            f"{said.shape[-1]}; give the model that the heads were removed from."
        )
    learned, told = said.log_softmax(-1), taught.float().log_softmax(-1)
    return kl_div(learned, told, reduction="sum", log_target=True)


# --- Which weights learn ------------------------------------------------------------------------

#: "all", "gates" (no weight), "enc", "dec", names with * or a function of a name.
Chosen = str | Sequence[str] | Callable[[str], bool]


def trainable(subject: Subject, chosen: Chosen) -> list[str]:
    """The names of the weights that learn.

    "enc" and "dec" are what belongs to that stack alone: embeddings that both stacks use stay
    frozen, so that functions cannot move to the other stack (Voita et al. 2019, section 6.2).

    >>> from transformers import BertConfig, BertModel
    >>> config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=4,
    ...                     intermediate_size=16, vocab_size=32)
    >>> trainable(Subject(BertModel(config)), ["*query*"])
    ['encoder.layer.0.attention.self.query.weight', 'encoder.layer.0.attention.self.query.bias']
    """
    fixed = _sinusoids(subject.model)
    names = [n for n, w in subject.model.named_parameters() if _can_learn(w, fixed)]
    if chosen == "all":
        return names
    if chosen == "gates":
        return []
    if chosen in ("enc", "dec"):
        own = _of_stack(subject, str(chosen))
        return [name for name in names if name in own]
    return _picked(subject, names, chosen)


def describe_chosen(chosen: Chosen) -> Any:
    """The choice as a record keeps it."""
    if callable(chosen):
        return getattr(chosen, "__name__", "a function")
    return chosen if isinstance(chosen, str) else list(chosen)


@contextmanager
def borrowed(model: nn.Module, names: Sequence[str]) -> Iterator[dict[str, nn.Parameter]]:
    """Within the block only these weights ask for a gradient; flags and modes come back."""
    weights = dict(model.named_parameters())
    asked = {name: weight.requires_grad for name, weight in weights.items()}
    modes = [(module, module.training) for module in model.modules()]
    learning = set(names)
    try:
        for name, weight in weights.items():
            weight.requires_grad_(name in learning)
        yield {name: weights[name] for name in names}
    finally:
        for name, weight in weights.items():
            weight.grad = None
            weight.requires_grad_(asked[name])
        for module, mode in modes:
            module.training = mode


def _can_learn(weight: nn.Parameter, fixed: set[int]) -> bool:
    """What was frozen by its owner stays so."""
    return weight.is_floating_point() and weight.requires_grad and id(weight) not in fixed


def _sinusoids(model: nn.Module) -> set[int]:
    """Positions that are a formula, although they look like weights."""
    tables = [module for module in model.modules() if "Sinusoidal" in type(module).__name__]
    return {id(weight) for table in tables for weight in table.parameters()}


def _of_stack(subject: Subject, stack: str) -> set[str]:
    """Names of weights that stand in one stack and nowhere else."""
    prefix = _path(subject.model, _stack(subject, stack))
    places: dict[int, list[str]] = {}
    for name, weight in subject.model.named_parameters(remove_duplicate=False):
        places.setdefault(id(weight), []).append(name)
    return {
        name
        for names in places.values()
        if all(name.startswith(prefix) for name in names)
        for name in names
    }


def _stack(subject: Subject, stack: str) -> nn.Module:
    inner = subject.inner
    if subject.kind == "enc-dec":
        found: nn.Module = inner.get_encoder() if stack == "enc" else inner.get_decoder()
        return found
    if stack != subject.kind:
        raise UsageError(f"{subject.name} has no stack '{stack}'; it has {subject.kind}.")
    return core_of(subject.model)


def _path(model: nn.Module, part: nn.Module) -> str:
    """Where a part's weights begin in names."""
    path = next(path for path, module in model.named_modules() if module is part)
    return f"{path}." if path else ""


def _picked(subject: Subject, names: Sequence[str], chosen: Any) -> list[str]:
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
