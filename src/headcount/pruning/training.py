"""The training loop that learned gates and healing share, on accelerate.

A step's batch, its dropout and its gates follow from the seed and the step's number alone: so
training that was killed goes on and ends with the same weights.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, RunError, UsageError
from headcount.models import Subject
from headcount.pruning.gates import Gates, Penalty, Target, gate_places
from headcount.pruning.recipe import (
    Chosen,
    Cursor,
    Lessons,
    Loss,
    OwnLoss,
    ReadyLessons,
    Schedule,
    TaskLessons,
    TaskLoss,
    borrowed,
    describe_chosen,
    trainable,
)
from headcount.records import Progress, json_decode, json_encode, write_bytes
from headcount.tasks import Task
from headcount.wiring import Valve, valve

# --- A checkpoint of training -------------------------------------------------------------------
# One safetensors file, replaced in one step: whenever the process is killed, the file is whole.

FILE = "training.safetensors"
_KEY = "headcount"


class Checkpoint:
    """The file of one training run; `fingerprint` is what must be the same to go on."""

    def __init__(self, folder: str | Path, fingerprint: Mapping[str, Any]) -> None:
        self.path = Path(folder) / FILE
        self.fingerprint = json_decode(json_encode(fingerprint))

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Tensors and the rest, or None where nothing was saved yet."""
        if not self.path.exists():
            return None
        try:
            with safetensors.safe_open(self.path, framework="pt") as file:
                told = json_decode(file.metadata()[_KEY])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  a file is no dict
        except (OSError, KeyError, TypeError, ValueError, safetensors.SafetensorError) as error:
            raise RunError(
                f"{self.path} is not a checkpoint that headcount wrote; delete it to begin "
                "afresh, or choose another folder."
            ) from error
        self._check(told["fingerprint"])
        return tensors, told

    def write(self, tensors: Mapping[str, Tensor], told: Mapping[str, Any]) -> None:
        """Put everything on the disk; the old file stays whole until then."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        here = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        meta = {_KEY: json_encode({**told, "fingerprint": self.fingerprint})}
        write_bytes(self.path, safetensors.torch.save(here, meta))

    def _check(self, before: Mapping[str, Any]) -> None:
        """Refuse to go on with something else: name what differs, and both values."""
        for key in [*before, *(key for key in self.fingerprint if key not in before)]:
            was, now = before.get(key), self.fingerprint.get(key)
            if json_encode(was, sort_keys=True) != json_encode(now, sort_keys=True):
                raise RunError(
                    f"{self.path} was begun with {key} = {_short(was)}, and now {key} = "
                    f"{_short(now)}; train as before to go on, choose another folder, or delete "
                    "that file to begin afresh."
                )


def pack_adam(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What an optimiser remembers of each weight, by the weight's place."""
    return {
        f"adam.{place}.{what}": value
        for place, weight in enumerate(_weights(optimizer))
        for what, value in optimizer.state.get(weight, {}).items()
    }


def unpack_adam(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser its memory back."""
    weights = _weights(optimizer)
    for name, value in tensors.items():
        kind, _, rest = name.partition(".")
        if kind != "adam":
            continue
        place, what = rest.split(".")
        weight = weights[int(place)]
        # Adam counts its steps on the CPU.
        kept = value if what == "step" else value.to(weight.device)
        optimizer.state[weight][what] = kept


def _weights(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [weight for group in optimizer.param_groups for weight in group["params"]]


def _short(value: Any) -> str:
    told = json_encode(value)
    return told if len(told) <= 80 else f"{told[:77]}..."


# --- The training loop that learned gates and healing share, on accelerate ----------------------

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
        recipe: Schedule,
        accelerator: Any,
        *,
        gate_lr: float = 0.0,
        checkpoint: Checkpoint | None = None,
        log: Callable[[Row], None] | None = None,
        progress: Progress | None = None,
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
        gates = self.gate_lr * gate_schedule(self.step, self.recipe.steps)
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


def gate_schedule(step: int, steps: int) -> float:
    """Gates move at their own rate until the last fifth of training, then they come to rest.

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


def check_precision(subject: Subject, names: list[str]) -> None:
    """Refuse weights in which small steps would vanish."""
    if names and subject.dtype != torch.float32 and subject.dtype != torch.float64:
        kind = str(subject.dtype).removeprefix("torch.")
        raise UsageError(
            f"The weights of {subject.name} are in {kind}, in which small steps vanish; load it "
            "with dtype='float32' and train with mixed_precision='bf16'."
        )


# --- Where training runs ------------------------------------------------------------------------

_PLAIN = ("NO", "MULTI_CPU", "MULTI_GPU", "MULTI_XPU", "MULTI_NPU", "MULTI_MLU")


@contextmanager
def accelerated(subject: Subject, given: Any = None, precision: str = "no") -> Iterator[Any]:
    """An Accelerator for training this subject; one of the caller's own is used as it is.

    Alone, the model stays on its device. Under `accelerate launch` or `torchrun` every process
    has its own device, and gradients are averaged.
    """
    from accelerate import Accelerator, DistributedDataParallelKwargs

    if given is not None:
        yield _checked(given)
        return
    with _unremembered():
        made = Accelerator(
            cpu=_on_cpu(subject),
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
def _unremembered() -> Iterator[None]:
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


def _on_cpu(subject: Subject) -> bool:
    return subject.device.type == "cpu" and not (_launched() and torch.cuda.is_available())


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
Lesson = Task | Iterable[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Session:
    """Everything about a training but the subject."""

    kind: str
    task: Lesson
    recipe: Schedule
    train: Chosen = "all"
    teacher: Subject | None = None
    share: float = 0.7
    smoothing: float = 0.0
    gates: Gates | None = None
    penalty: Penalty | None = None
    gate_lr: float = 0.0
    in_place: bool = False
    checkpoint: str | Path | None = None
    accelerator: Any = None
    log: Callable[[Row], None] | None = None
    progress: Progress | None = None

    def __call__(self, subject: Subject) -> tuple[Subject, pd.DataFrame]:
        """Train a copy, or the subject itself where that is asked, and give the log.

        On any exit no hook stays, and weights ask for gradients as before.
        """
        names = trainable(subject, self.train)
        check_precision(subject, names)
        with accelerated(subject, self.accelerator, self.recipe.mixed_precision) as fleet:
            learning = self._placed(subject, fleet, trains=bool(names))
            lessons, loss = self._lessons(learning, fleet.num_processes)
            desk = self._desk(subject, lessons, fleet.num_processes)
            learner = Learner(learning, loss, self.gates, self.penalty, self.recipe.seed)
            with ExitStack() as stack:
                weights = stack.enter_context(borrowed(learning.model, names))
                if self.gates is not None:
                    learner.opened = stack.enter_context(valve(learning, learner.ones))
                rows = self._training(learner, weights, lessons, fleet, desk).run()
        learning.__dict__.pop("weights_hash", None)  # it has other weights now
        return learning, rows

    def _training(
        self,
        learner: Learner,
        weights: Mapping[str, nn.Parameter],
        lessons: Lessons,
        fleet: Any,
        desk: Checkpoint | None,
    ) -> Training:
        return Training(
            learner,
            weights,
            lessons,
            self.recipe,
            fleet,
            gate_lr=self.gate_lr,
            checkpoint=desk,
            log=self.log,
            progress=self.progress,
        )

    def _placed(self, subject: Subject, fleet: Any, trains: bool) -> Subject:
        """The model to train, on the device of this process, and the gates beside it."""
        moves = fleet.num_processes > 1 and fleet.device != subject.device
        found = subject
        if not self.in_place and (trains or moves):
            found = replace(subject, model=deepcopy(subject.model), notes=list(subject.notes))
        if moves:
            found.model.to(fleet.device)
        for part in (self.gates, self.penalty):
            if isinstance(part, nn.Module):
                part.to(found.device)
        return found

    def _lessons(self, subject: Subject, processes: int) -> tuple[Lessons, Loss]:
        """The batches to learn from and the loss to learn by."""
        recipe = self.recipe
        if isinstance(self.task, Task):
            lessons = TaskLessons(self.task, subject, recipe.batch_size, recipe.seed, processes)
            return lessons, TaskLoss(self.task, self.teacher, self.share, self.smoothing)
        if self.teacher is not None or self.smoothing:
            raise UsageError(
                "Batches of your own come with the model's own loss; a teacher or smoothed labels "
                "need a task of hc.tasks."
            )
        return ReadyLessons(self.task, recipe.seed, processes), OwnLoss()

    def _desk(self, subject: Subject, lessons: Lessons, processes: int) -> Checkpoint | None:
        """Where the state is kept, with what must be the same to go on."""
        if self.checkpoint is None:
            return None
        taught = None if self.teacher is None else self.teacher.weights_hash
        record: dict[str, Any] = {
            "kind": self.kind,
            "model": subject.weights_hash,
            "lessons": lessons.describe(),
            **self.recipe.describe(),
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
    if isinstance(penalty, Target):
        names = ("count", "steps", "rate", "stiffness", "hard")
        return {"target": {name: getattr(penalty, name) for name in names}}
    if is_dataclass(penalty) and not isinstance(penalty, type):
        return {n: v if not callable(v) else _name(v) for n, v in asdict(penalty).items()}
    return _name(penalty)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
