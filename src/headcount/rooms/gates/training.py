"""The training loop that learned gates and healing share, on accelerate.

A step's batch, its dropout and its gates follow from the seed and the step's number only: so
training that was killed goes on and ends with the same weights.

What a training is made of: its schedule, its batches, its loss, and the weights that learn.

Distillation is that of Hinton et al. 2015, section 2, at temperature 1. Which weights are frozen
while gates learn follows Voita et al. 2019, section 6.2.
"""

from __future__ import annotations

import hashlib
import math
import os
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import pandas as pd
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div

from headcount.errors import InputError, ModelError, RunError, UsageError
from headcount.models import Subject, core_of, eval_mode
from headcount.records import (
    InnerPath,
    Steps,
    check_same,
    hash_strings,
    json_decode,
    json_encode,
    version,
    working,
)
from headcount.rooms.gates.gates import Gates, Penalty, Target, gate_valve
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


@dataclass(frozen=True)
class TrainingBatches:
    """Batches without end, from any place on."""

    #: Of each epoch, the number of its parts; the steps of one of them.
    parts: int
    part: Callable[[int, int], list[StepBatches]]
    #: What must be the same for interrupted training to go on.
    about: dict[str, Any]

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


def task_batches(
    task: Task, subject: Subject, batch_size: int, seed: int, processes: int
) -> TrainingBatches:
    """The examples of a task, shuffled in each epoch."""
    task.check(subject)
    size = _POOL * batch_size * processes

    def part(epoch: int, number: int) -> list[StepBatches]:
        """Some examples, sorted by length into batches, the steps in a random order."""
        order = list(range(len(task)))
        random.Random(f"examples {seed} {epoch}").shuffle(order)
        chosen = task.part(order[number * size : (number + 1) * size])
        batches = list(chosen.batches(subject, batch_size))
        if not batches:
            raise InputError(f"{task.name} has no text to learn from in {len(chosen)} lines.")
        steps = _by_step(batches, processes)
        random.Random(f"turns {seed} {epoch} {number}").shuffle(steps)
        return steps

    about = {"task": task.describe(), "rows": batch_size * processes}
    return TrainingBatches(-(-len(task) // size), part, about)


def ready_batches(given: Iterable[Any], seed: int, processes: int) -> TrainingBatches:
    """Batches that the caller made, with labels among them, shuffled in each epoch."""
    batches = list(given)
    if not batches:
        raise InputError("There are no batches to learn from; give one or more.")
    if not all(isinstance(batch, Mapping) and "labels" in batch for batch in batches):
        raise UsageError(
            "Batches of your own must be what the model's forward takes, by name, with "
            "'labels' among it; or give a task of hc.tasks."
        )

    def part(epoch: int, number: int) -> list[StepBatches]:
        order = list(batches)
        random.Random(f"batches {seed} {epoch}").shuffle(order)
        return _by_step(order, processes)

    held = (
        f"{name} {value.tolist() if isinstance(value, Tensor) else value}"
        for batch in batches
        for name, value in sorted(batch.items())
    )
    return TrainingBatches(1, part, {"batches": len(batches), "hash": hash_strings(held)})


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
        logits: Tensor = replace(self.task, metric=LOSS).answer(subject, batch)
        return logits


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
        meant = [name for name in names if chosen(name)]
    else:
        patterns = [chosen] if isinstance(chosen, str) else list(chosen)
        meant = [n for n in names if any(fnmatchcase(n, pattern) for pattern in patterns)]
    if not meant:
        raise UsageError(
            f"No weight of {subject.name} is meant by {describe_chosen(chosen)!r}; give 'all', "
            f"'gates', 'enc', 'dec' or names such as '{names[0] if names else '*'}', with * for "
            "any part."
        )
    return meant


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


# --- A checkpoint of training -------------------------------------------------------------------
# One safetensors file, replaced in one step: whenever the process is killed, the file is whole.

FILE = "training.safetensors"
_KEY = "headcount"


class Checkpoint:
    """The file of one training run; `fingerprint` must match to continue."""

    def __init__(self, folder: str | os.PathLike[str], fingerprint: Mapping[str, Any]) -> None:
        self.path = InnerPath.of(folder) / FILE
        self.fingerprint = json_decode(json_encode(fingerprint))

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and the rest, or None where nothing was saved yet.

        A training with another fingerprint is refused: what differs is named, with both values.
        """
        if not self.path.exists():
            return None
        try:
            data = self.path.read()
            tensors = safetensors.torch.load(data)
            header = json_decode(data[8 : 8 + int.from_bytes(data[:8], "little")])
            state = json_decode(header["__metadata__"][_KEY])
            before = dict(state["fingerprint"])
        except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
            raise self.damaged() from error
        check_same(before, self.fingerprint, f"{self.path} was begun")
        return tensors, state

    def damaged(self) -> RunError:
        """The file holds something else than what was written there."""
        return RunError(
            f"{self.path} is not a checkpoint that headcount wrote; delete it to start anew, or "
            "choose another folder."
        )

    def write(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Put everything on the disk; the old file stays whole until then."""
        self.path.parent.make()
        here = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        meta = {_KEY: json_encode({**state, "fingerprint": self.fingerprint})}
        self.path.write(safetensors.torch.save(here, meta))


# --- Where training runs ------------------------------------------------------------------------

_PLAIN = ("NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_NPU", "MULTI_MLU")


@contextmanager
def accelerated(subject: Subject, given: Any = None, precision: str = "no") -> Iterator[Any]:
    """An Accelerator for training this subject; one of the caller's own is used as it is.

    In one process the model stays on its device. Under `accelerate launch` or `torchrun` every
    process has its own device, and gradients are averaged.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs

    if given is not None:
        yield _checked(given)
        return
    on_cpu = subject.device.type == "cpu" and not (_launched() and torch.cuda.is_available())
    with _own_state():
        made = Accelerator(
            cpu=on_cpu,
            mixed_precision=precision,
            device_placement=False,
            # A part without labels, such as a pooler, has no gradient: nobody waits for it.
            kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
        )
        try:
            yield _checked(made)
        finally:
            made.free_memory()


@contextmanager
def _own_state() -> Iterator[None]:
    """Within the block accelerate knows of no earlier Accelerator, afterwards of no later one.

    It keeps the device and precision of the first for the whole process, and a Trainer may have
    made it, or may come next. The connection between launched processes stays.
    """
    from accelerate import PartialState
    from accelerate.state import AcceleratorState

    kinds = [AcceleratorState] if _launched() else [AcceleratorState, PartialState]
    before = [(kind._shared_state, dict(kind._shared_state)) for kind in kinds]
    try:
        for state, _ in before:
            state.clear()
        yield
    finally:
        for state, values in before:
            state.clear()
            state.update(values)


def _launched() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def _checked(accelerator: Any) -> Any:
    kind = str(accelerator.distributed_type.value)
    if kind not in _PLAIN:
        raise UsageError(
            f"Training here runs in one process or several that each hold the whole model, not "
            f"under {kind}; launch it with `accelerate launch --multi_gpu`."
        )
    return accelerator


# --- A session of training, from a subject to a trained one -------------------------------------

#: A task, or batches with labels that the model's forward takes.
TrainingData = Task | Iterable[Mapping[str, Any]]
Row = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Session:
    """Everything about a training but the subject."""

    kind: str
    task: TrainingData
    schedule: Schedule
    train: Chosen = "all"
    teacher: Subject | None = None
    share: float = 0.7
    smoothing: float = 0.0
    gates: Gates | None = None
    penalty: Penalty | None = None
    gate_lr: float = 0.0
    in_place: bool = False
    checkpoint: str | os.PathLike[str] | None = None
    accelerator: Any = None
    log: Callable[[Row], None] | None = None

    def __call__(self, subject: Subject) -> tuple[Subject, pd.DataFrame]:
        """Train a copy, or the subject itself with `in_place`, and give the log.

        On any exit no hook stays, and weights require gradients as before.
        """
        names = trainable(subject, self.train)
        if names and subject.dtype not in (torch.float32, torch.float64):
            kind = str(subject.dtype).removeprefix("torch.")
            raise UsageError(
                f"The weights of {subject.name} are in {kind}, in which small steps vanish; load "
                "it with dtype='float32' and train with mixed_precision='bf16'."
            )
        precision = self.schedule.mixed_precision
        with accelerated(subject, self.accelerator, precision) as accelerator:
            learning = self._placed(subject, accelerator, trains=bool(names))
            batches, loss = self._data(learning, accelerator.num_processes)
            checkpoint = self._checkpoint(subject, batches, accelerator.num_processes)
            learner = Learner(learning, loss, self.gates, self.penalty, self.schedule.seed)
            with ExitStack() as stack:
                weights = stack.enter_context(only_trainable(learning.model, names))
                if self.gates is not None:
                    learner.set_gates = stack.enter_context(gate_valve(learning, self.gates))
                rows = Training(self, learner, weights, batches, accelerator, checkpoint).run()
        learning.__dict__.pop("weights_hash", None)  # it has other weights now
        return learning, rows

    def _placed(self, subject: Subject, accelerator: Any, trains: bool) -> Subject:
        """The model to train and its gates, on the device of this process."""
        moves = accelerator.num_processes > 1 and accelerator.device != subject.device
        placed = subject
        if not self.in_place and (trains or moves):
            placed = replace(subject, model=deepcopy(subject.model), notes=list(subject.notes))
        if moves:
            placed.model.to(accelerator.device)
        for part in (self.gates, self.penalty):
            if isinstance(part, nn.Module):
                part.to(placed.device)
        return placed

    def _data(self, subject: Subject, processes: int) -> tuple[TrainingBatches, Loss]:
        """The batches to learn from and the loss to learn by."""
        size, seed = self.schedule.batch_size, self.schedule.seed
        if isinstance(self.task, Task):
            batches = task_batches(self.task, subject, size, seed, processes)
            return batches, TaskLoss(self.task, self.teacher, self.share, self.smoothing)
        if self.teacher is not None or self.smoothing:
            raise UsageError(
                "Batches of your own come with the model's own loss; a teacher or smoothed labels "
                "need a task of hc.tasks."
            )
        return ready_batches(self.task, seed, processes), own_loss

    def _checkpoint(
        self, subject: Subject, batches: TrainingBatches, processes: int
    ) -> Checkpoint | None:
        """Where the state is kept, with what must be the same to go on."""
        if self.checkpoint is None:
            return None
        taught = None if self.teacher is None else self.teacher.weights_hash
        record: dict[str, Any] = {
            "kind": self.kind,
            "headcount": version(),
            "model": subject.weights_hash,
            "data": batches.about,
            **self.schedule.describe(),
            "train": describe_chosen(self.train),
            "teacher": taught,
            "share": self.share if taught is not None else None,
            "smoothing": self.smoothing,
            "processes": processes,
        }
        if self.gates is not None:
            record["heads"] = list(self.gates.heads)
            record["convention"] = self.gates.convention
            record["gates_begin"] = self.gates.log_a.tolist()
            record |= {"gate_lr": self.gate_lr, "penalty": _describe(self.penalty)}
        return Checkpoint(self.checkpoint, record)


def _describe(penalty: Penalty | None) -> Any:
    """A price as a record keeps it; a function is kept by its name."""

    def name(function: object) -> str:
        return str(getattr(function, "__name__", type(function).__name__))

    if isinstance(penalty, Target):
        names = ("count", "steps", "rate", "stiffness", "hard")
        return {"target": {name: getattr(penalty, name) for name in names}}
    if is_dataclass(penalty) and not isinstance(penalty, type):
        return {n: v if not callable(v) else name(v) for n, v in asdict(penalty).items()}
    return name(penalty)


# --- The loop -----------------------------------------------------------------------------------


class Learner(nn.Module):
    """Model, gates and their price as one module: processes average the gradients of all."""

    def __init__(
        self,
        subject: Subject,
        loss: Loss,
        gates: Gates | None,
        penalty: Penalty | None,
        seed: int,
    ) -> None:
        super().__init__()
        self.model: nn.Module = subject.model
        self.subject, self.loss, self.seed = subject, loss, seed
        self.gates, self.penalty = gates, penalty
        self.set_gates: Callable[[Tensor], None] | None = None

    def forward(self, batch: Any, step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and number of predictions of a batch, and what the gates cost."""
        if self.gates is not None and self.set_gates is not None:
            draw = torch.Generator().manual_seed(number_of("gates", self.seed, step))
            noise = torch.rand(self.gates.log_a.shape, generator=draw)  # the same in all processes
            self.set_gates(self.gates(noise))
        total, count = self.loss(self.subject, batch)
        price = total.new_zeros(())
        if self.gates is not None and self.penalty is not None:
            price = self.penalty(self.gates, step)
        return total, count, price


class Training:
    """Steps of AdamW over a learner; `run` takes them all and gives the log."""

    def __init__(
        self,
        session: Session,
        learner: Learner,
        weights: Mapping[str, nn.Parameter],
        batches: TrainingBatches,
        accelerator: Any,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.session, self.learner, self.weights = session, learner, dict(weights)
        self.batches, self.accelerator, self.checkpoint = batches, accelerator, checkpoint
        self.schedule = session.schedule
        self.optimizer = torch.optim.AdamW(self._groups(), lr=self.schedule.lr)
        self.step = 0
        self.cursor: Cursor = (0, 0, 0)
        self.rows: list[Row] = []
        self.sums = torch.zeros(3, dtype=torch.float64)
        self._restore()

    def run(self) -> pd.DataFrame:
        """Take the steps that are left; one row for every `log_every` of them."""
        devices = sorted({w.device.index for w in self.learner.parameters() if w.is_cuda})
        steps = self.schedule.steps
        title = {"gates": "Learning gates", "heal": "Healing"}.get(self.session.kind, "Training")
        mine = self.accelerator.is_main_process
        shown = working(title, steps) if mine else nullcontext(Steps())
        with torch.random.fork_rng(devices=devices), shown as bar:
            self.learner.train()
            model, optimizer = self.accelerator.prepare(self.learner, self.optimizer)
            coming = self.batches.steps(self.cursor)
            while self.step < steps:
                batches, cursor = next(coming)
                self._take(model, optimizer, batches)
                self.step, self.cursor = self.step + 1, cursor
                if self.step % self.schedule.log_every == 0 or self.step == steps:
                    self._log()
                if self.step % self.schedule.save_every == 0 or self.step == steps:
                    self._save()
                bar.to(self.step)
        return pd.DataFrame(self.rows)

    def _take(self, model: nn.Module, optimizer: Any, batches: StepBatches) -> None:
        """One step on the batches of all processes."""
        mine, processes = self.accelerator.process_index, self.accelerator.num_processes
        # A process that the step has no batch for goes along with one that does not count.
        share = float(mine < len(batches))
        torch.manual_seed(number_of("dropout", self.schedule.seed, self.step, mine))
        total, count, price = model(batches[mine] if share else batches[0], self.step)
        whole = self.accelerator.reduce(torch.stack([total.detach() * share, count * share]), "sum")
        gate_lr = self.session.gate_lr * gate_schedule(self.step, self.schedule.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = gate_lr if group["gates"] else self.schedule.rate(self.step)
        self.accelerator.backward(total * share / whole[1] * processes + price)
        if self.schedule.clip is not None and self.weights:
            self.accelerator.clip_grad_norm_(list(self.weights.values()), self.schedule.clip)
        optimizer.step()
        optimizer.zero_grad()
        self.sums += torch.stack([*whole, price.detach()]).double().cpu()

    def _groups(self) -> list[dict[str, Any]]:
        """Matrices decay, the rest does not; gates have a rate of their own."""
        weights, gates = self.weights.values(), self.learner.gates
        decay = self.schedule.weight_decay
        every: list[dict[str, Any]] = [
            {"params": [w for w in weights if w.dim() > 1], "gates": False, "weight_decay": decay},
            {"params": [w for w in weights if w.dim() <= 1], "gates": False, "weight_decay": 0.0},
            {"params": [] if gates is None else [gates.log_a], "gates": True, "weight_decay": 0.0},
        ]
        groups = [
            {"weight_decay": self.schedule.weight_decay} | one for one in every if one["params"]
        ]
        if not groups:
            raise UsageError("No weight and no gate would learn; name weights in `train`.")
        return groups

    def _log(self) -> None:
        """Add a row to the log; stop where the loss is no number."""
        steps = self.step - int(self.rows[-1]["step"] if self.rows else 0)
        total, count, price = self.sums.tolist()
        self.sums.zero_()
        if not math.isfinite(total):
            raise ModelError(
                f"The loss of {self.learner.subject.name} is not a number after step {self.step}; "
                "lower the learning rate, or train in float32."
            )
        row = {"step": float(self.step), "loss": total / count, "price": price / steps}
        gates = self.learner.gates
        if gates is not None:
            row |= {"expected": gates.expected().item(), "open": gates.open().sum().item()}
            multiplier = getattr(self.learner.penalty, "multiplier", None)
            row |= {} if multiplier is None else {"multiplier": float(multiplier)}
        self.rows.append(row | {"lr": self.schedule.rate(self.step - 1)})
        if self.session.log is not None and self.accelerator.is_main_process:
            self.session.log(self.rows[-1])

    def _state(self) -> dict[str, Tensor]:
        """All that has learned."""
        tensors: dict[str, Tensor] = {f"weight.{n}": w for n, w in self.weights.items()}
        for part in ("gates", "penalty"):
            module = getattr(self.learner, part)
            if isinstance(module, nn.Module):
                tensors |= {f"{part}.{name}": value for name, value in module.state_dict().items()}
        return tensors

    def _save(self) -> None:
        if self.checkpoint is None or not self.accelerator.is_main_process:
            return
        adam = {
            f"adam.{place}.{what}": value
            for place, kept in self.optimizer.state_dict()["state"].items()
            for what, value in kept.items()
        }
        state = {"step": self.step, "cursor": self.cursor, "rows": self.rows}
        self.checkpoint.write(self._state() | adam, state | {"sums": self.sums.tolist()})

    def _restore(self) -> None:
        if self.checkpoint is None or (saved := self.checkpoint.read()) is None:
            return
        try:
            self._go_on(*saved)
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise self.checkpoint.damaged() from error

    def _go_on(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        with torch.no_grad():
            for name, value in self._state().items():
                value.copy_(tensors[name])
        adam: dict[int, dict[str, Tensor]] = defaultdict(dict)
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, place, what = name.split(".")
                adam[int(place)][what] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": adam})
        self.step, self.rows = state["step"], state["rows"]
        epoch, part, step = state["cursor"]
        self.cursor = (epoch, part, step)
        self.sums = torch.tensor(state["sums"], dtype=torch.float64)


def gate_schedule(step: int, steps: int) -> float:
    """Gates move at their own rate until the last fifth of training, then they slow down to 0.

    >>> gate_schedule(0, 100), gate_schedule(79, 100), gate_schedule(90, 100)
    (1.0, 1.0, 0.5)
    """
    return min(1.0, (steps - step) / (0.2 * steps))


def number_of(*parts: object) -> int:
    """A seed from what it depends on; neighbours have nothing in common.

    >>> number_of("gates", 0, 1) == number_of("gates", 0, 1) != number_of("gates", 0, 2)
    True
    """
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:7], "big")
