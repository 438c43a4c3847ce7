"""The training loop that learned gates and healing share, on accelerate.

A step's batch, its dropout and its gates follow from the seed and the step's number only: so
training that was killed goes on and ends with the same weights.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any

import pandas as pd
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from headcount.errors import ModelError, RunError, UsageError
from headcount.models import Subject
from headcount.records import InnerPath, Steps, json_decode, json_encode, version, working
from headcount.rooms.gates import recipe
from headcount.rooms.gates.gates import Gates, Penalty, Target, gate_valve
from headcount.tasks import Task

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
        for key in [*before, *(key for key in self.fingerprint if key not in before)]:
            was, now = before.get(key), self.fingerprint.get(key)
            if json_encode(was, sort_keys=True) != json_encode(now, sort_keys=True):
                raise RunError(
                    f"{self.path} was begun with {key} = {_short(was)}, and now {key} = "
                    f"{_short(now)}; train as before to continue, choose another folder, or "
                    "delete that file to start anew."
                )
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


def _short(value: Any) -> str:
    text = json_encode(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


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
    schedule: recipe.Schedule
    train: recipe.Chosen = "all"
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
        names = recipe.trainable(subject, self.train)
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
                weights = stack.enter_context(recipe.only_trainable(learning.model, names))
                if self.gates is not None:
                    learner.set_gates = stack.enter_context(gate_valve(learning, self.gates))
                rows = Training(self, learner, weights, batches, accelerator, checkpoint).run()
        learning.__dict__.pop("weights_hash", None)  # it has other weights now
        return learning, rows

    def _placed(self, subject: Subject, accelerator: Any, trains: bool) -> Subject:
        """The model to train and its gates, on the device of this process."""
        moves = accelerator.num_processes > 1 and accelerator.device != subject.device
        found = subject
        if not self.in_place and (trains or moves):
            found = replace(subject, model=deepcopy(subject.model), notes=list(subject.notes))
        if moves:
            found.model.to(accelerator.device)
        for part in (self.gates, self.penalty):
            if isinstance(part, nn.Module):
                part.to(found.device)
        return found

    def _data(self, subject: Subject, processes: int) -> tuple[recipe.TrainingBatches, recipe.Loss]:
        """The batches to learn from and the loss to learn by."""
        size, seed = self.schedule.batch_size, self.schedule.seed
        if isinstance(self.task, Task):
            batches = recipe.TaskBatches(self.task, subject, size, seed, processes)
            return batches, recipe.TaskLoss(self.task, self.teacher, self.share, self.smoothing)
        if self.teacher is not None or self.smoothing:
            raise UsageError(
                "Batches of your own come with the model's own loss; a teacher or smoothed labels "
                "need a task of hc.tasks."
            )
        return recipe.ReadyBatches(self.task, seed, processes), recipe.own_loss

    def _checkpoint(
        self, subject: Subject, batches: recipe.TrainingBatches, processes: int
    ) -> Checkpoint | None:
        """Where the state is kept, with what must be the same to go on."""
        if self.checkpoint is None:
            return None
        taught = None if self.teacher is None else self.teacher.weights_hash
        record: dict[str, Any] = {
            "kind": self.kind,
            "headcount": version(),
            "model": subject.weights_hash,
            "data": batches.describe(),
            **self.schedule.describe(),
            "train": recipe.describe_chosen(self.train),
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
        loss: recipe.Loss,
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
        batches: recipe.TrainingBatches,
        accelerator: Any,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.session, self.learner, self.weights = session, learner, dict(weights)
        self.batches, self.accelerator, self.checkpoint = batches, accelerator, checkpoint
        self.schedule = session.schedule
        self.optimizer = torch.optim.AdamW(self._groups(), lr=self.schedule.lr)
        self.step = 0
        self.cursor: recipe.Cursor = (0, 0, 0)
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
        with torch.random.fork_rng(devices=devices), shown as told:
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
                told.to(self.step)
        return pd.DataFrame(self.rows)

    def _take(self, model: nn.Module, optimizer: Any, batches: recipe.StepBatches) -> None:
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
        found: dict[str, Tensor] = {f"weight.{n}": w for n, w in self.weights.items()}
        for part in ("gates", "penalty"):
            module = getattr(self.learner, part)
            if isinstance(module, nn.Module):
                found |= {f"{part}.{name}": value for name, value in module.state_dict().items()}
        return found

    def _optimized(self) -> list[Tensor]:
        return [weight for group in self.optimizer.param_groups for weight in group["params"]]

    def _save(self) -> None:
        if self.checkpoint is None or not self.accelerator.is_main_process:
            return
        adam = {
            f"adam.{place}.{what}": value
            for place, weight in enumerate(self._optimized())
            for what, value in self.optimizer.state.get(weight, {}).items()
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
        weights = self._optimized()
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, place, what = name.split(".")
                weight = weights[int(place)]
                # Adam counts its steps on the CPU.
                kept = value if what == "step" else value.to(weight.device)
                self.optimizer.state[weight][what] = kept
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
