"""Gradient importance: how fast the loss moves when a head's scale moves.

Michel et al., NeurIPS 2019, section 4.1: I_h = E_x |dL(x)/dxi_h| = E_x |Att_h(x)^T dL/dAtt_h(x)|,
for all heads in one forward and backward a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from headcount import plugins
from headcount.errors import ModelError, UsageError, check_convention
from headcount.importance.examples import (
    Arrays,
    BatchWork,
    Measure,
    Score,
    ScoreOptions,
    ScoreWork,
    over_layer_norm,
    real_tokens,
    token_counts,
)
from headcount.models import Site, Subject, check_finite, enough_memory
from headcount.records import Column, Engine, EngineOptions, HeadTable, Journal
from headcount.stats import Floats
from headcount.tasks import Task
from headcount.text import Batch
from headcount.wiring import backflow, valve

# --- The slope of a task's loss in every head's scale, for one batch ----------------------------

#: Where the absolute value is taken: of an example's slope, a token's, or a whole batch's.
Per = Literal["example", "token", "batch"]


@contextmanager
def slopes(subject: Subject, task: Task, per: Per, steps: int = 1) -> Iterator[Measure]:
    """Within the block, a function that gives ``slopes`` of a batch, ``[example, head]``.

    With `steps` the slope is the mean over gates that are opened together from 0 to 1, at the
    middle of so many steps: integrated gradients (Sundararajan et al. 2017, equation 1), which sum
    to what all heads together change of the loss.

    Michel et al. 2019, equation 2, before the mean: one forward and backward a batch. The loss is
    summed over the batch, so that an example's slope knows nothing of its neighbours. Per token
    the absolute slopes of an example's positions are added up.

    >>> from headcount import tasks
    >>> from headcount.models.loading import load
    >>> translator = load("translator", device="cpu")
    >>> task = tasks.translation([("Rain fell.", "Regen fiel.")], metric="loss")
    >>> with slopes(translator, task, "example") as measure:
    ...     measure(next(task.batches(translator)))["slopes"].shape
    (1, 144)
    """
    heard = _Heard(per)
    gates = [(step + 0.5) / steps for step in range(steps)] if steps > 1 else [1.0]
    with backflow(subject, heard.receive) as flow:

        def slope(batch: Batch, gate: float) -> np.ndarray:
            open_to = torch.full((len(subject.heads),), gate)
            with nullcontext() if gate == 1 else valve(subject, open_to):
                heard.start(batch)
                losses = task.loss(subject, batch)
                flow.backward(losses.sum())
            _check_loss(subject, task, batch, losses.detach())
            return heard.slopes(subject.anatomy.sites) / gate

        def measure(batch: Batch) -> Arrays:
            found = np.mean([slope(batch, gate) for gate in gates], axis=0)
            if not np.isfinite(found).all():
                raise ModelError(
                    f"The gradient of {task.name} in the heads of {subject.name} is not a number, "
                    f"although its loss is; {str(subject.dtype).removeprefix('torch.')} may be too "
                    "narrow: load the model with dtype='float32'."
                )
            return {"slopes": found}

        yield measure


#: Bytes of gradients that wait to be multiplied together.
_WAITING = 2**26


class _Heard:
    """What came back to each site from one batch."""

    def __init__(self, per: Per) -> None:
        self.per = per
        self.batch = Batch({}, {}, [])
        self.found: dict[Site, Tensor] = {}
        #: Outputs and gradients of sites that are alike: on a GPU, each step alone costs a launch.
        self._waiting: list[tuple[Site, Tensor, Tensor]] = []

    def start(self, batch: Batch) -> None:
        """Listen to another batch."""
        self.batch, self.found, self._waiting = batch, {}, []

    def receive(self, site: Site, output: Tensor, gradient: Tensor) -> None:
        """Take in what one call of a site has to say."""
        if self._waiting and _kind(*self._waiting[0]) != _kind(site, output, gradient):
            self._multiply()
        self._waiting.append((site, output, gradient))
        if output.device.type == "cpu" or output.nbytes * len(self._waiting) >= _WAITING:
            self._multiply()

    def slopes(self, sites: Sequence[Site]) -> np.ndarray:
        """All slopes ``[example, head]``; 0 where the loss does not depend on a site's heads."""
        self._multiply()
        empty = next(iter(self.found.values()), torch.zeros(0))
        parts = [
            self.found[site].to(empty.device)
            if site in self.found
            else empty.new_zeros(len(self.batch), site.heads)
            for site in sites
        ]
        return torch.cat(parts, dim=1).cpu().numpy()

    def _multiply(self) -> None:
        """Add up what waits."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        sites, outputs, gradients = zip(*waiting, strict=True)
        stack = sites[0].stack
        output, gradient = (
            one[0][None] if len(one) == 1 else torch.stack(one) for one in (outputs, gradients)
        )
        weighed = _weighed(stack, output, gradient, self.batch, self.per)
        for site, own in zip(sites, _folded(weighed, len(self.batch)), strict=True):
            self.found[site] = self.found[site] + own if site in self.found else own


def _kind(site: Site, output: Tensor, _: Tensor) -> tuple[Any, ...]:
    """What sites have in common that are multiplied together."""
    return site.stack, output.shape, output.device


def _weighed(stack: str, output: Tensor, gradient: Tensor, batch: Batch, per: Per) -> Tensor:
    """Att · dL/dAtt, `[site, row, head]`: summed over dimensions, then over positions."""
    kind = torch.promote_types(output.dtype, torch.float32)  # half precision would round the sums
    if per != "token":
        return (output * gradient).sum((2, 4), dtype=kind)
    each = (output * gradient).sum(-1, dtype=kind)
    real = real_tokens(stack, batch).to(each.device)
    return (each.abs() * real[:, :, None]).sum(2)


def _folded(rows: Tensor, examples: int) -> Tensor:
    """Rows of one example stand one below the other and add up: `[site, example, head]`."""
    if rows.shape[1] % examples:
        raise UsageError(
            f"The model was called on {rows.shape[1]} rows for a batch of {examples} examples, so "
            "no row can be assigned to one; call it on all examples at once, or use batch_size=1."
        )
    return rows.unflatten(1, (examples, -1)).sum(2)


def _check_loss(subject: Subject, task: Task, batch: Batch, losses: Tensor) -> None:
    """Stop at a loss that is not a number, naming the weights to blame if any are."""
    broken = (~torch.isfinite(losses)).nonzero()
    if not len(broken):
        return
    check_finite(subject)
    raise ModelError(
        f"Example {batch.index[int(broken[0, 0])] + 1} of {task.name}: the loss of {subject.name} "
        f"is {float(losses[broken[0, 0]])}, although all its weights are numbers; check the "
        "example, or load the model with dtype='float32'."
    )


# --- How a gradient score is taken --------------------------------------------------------------

Normalize = Literal["layer", "none"]

#: What each convention says of `per` and `normalize`.
_DEFAULTS: dict[str, tuple[Per, Normalize]] = {
    "headcount": ("example", "none"),
    "paper": ("example", "layer"),
    "code": ("token", "none"),
}


@dataclass(frozen=True)
class Way:
    """A gradient score's settings, checked."""

    per: Per
    normalize: Normalize
    convention: str
    #: Gates between closed and open whose slopes are averaged; 1: open ones alone, as the paper.
    steps: int = 1
    #: The authors' program for the task, where it is followed.
    program: Any = None


def read_way(
    subject: Subject,
    task: Task,
    per: str | None,
    normalize: str | None,
    convention: str,
    steps: int | str | None = None,
) -> Way:
    """The settings, with the convention's own where none was given."""
    check_convention(convention)
    usual_per, usual_norm = _DEFAULTS[convention]
    chosen: Any = per or usual_per
    norm: Any = normalize or usual_norm
    _check(chosen, "per", get_args(Per))
    _check(norm, "normalize", get_args(Normalize))
    if convention != "headcount" and chosen != usual_per:
        raise UsageError(
            f"per is '{chosen}', and the convention '{convention}' is per {usual_per}; leave per "
            "out, or use the convention headcount."
        )
    many = str(1 if steps is None else steps)
    if not many.isdecimal() or int(many) < 1:
        raise UsageError(f"steps is '{steps}'; give a whole number of gates, 1 or more, e.g. 8.")
    if int(many) > 1 and convention != "headcount":
        raise UsageError(
            f"steps is {many}, and the convention '{convention}' takes the slope at open gates; "
            "leave steps out, or use the convention headcount."
        )
    program = plugins.get("parts", "gradient program") if convention == "code" else None
    return Way(chosen, norm, convention, int(many), program and program(subject, task))


def _check(value: str, name: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(f"{name} is '{value}'; choose {', '.join(known[:-1])} or {known[-1]}.")


# --- Gradient importance ------------------------------------------------------------------------

GRADIENT = Column(
    "gradient",
    meaning="How fast the loss changes with the head's scale: the mean of |dL/dxi|.",
    paper="Michel et al. 2019, section 4.1",
    range=(0, None),
    direction="higher",
    more="more important",
    group="How much it matters",
    format=".3g",
)


def gradient(
    subject: Subject,
    task: Task,
    *,
    per: Per | None = None,
    normalize: Normalize | None = None,
    steps: int | str | None = None,
    convention: str = "headcount",
    batch_size: int = 16,
    journal: Journal | None = None,
    engine: Engine | EngineOptions | str | None = None,
) -> HeadTable:
    """Score every head by the gradient of the task's loss, with an interval over examples.

    `per` says where the absolute value is taken: of each example's slope (the default, as in the
    paper), each token's (as in the authors' program), or each batch's, which depends on the batch
    size. `normalize="layer"` divides by the l2 norm of the layer, the default of the convention
    "paper". `steps=8` takes the mean slope over gates opened together from 0 to 1 (integrated
    gradients) at eight times the cost. The convention "code" is Michel
    et al.'s programs, whose figures depend on the batch size. Weights are asked for no gradient,
    and nothing of the model is changed.

    >>> from headcount import tasks
    >>> from headcount.models.loading import load
    >>> task = tasks.translation([("Rain fell.", "Regen fiel."), ("It rained.", "Es regnete.")])
    >>> gradient(load("translator", device="cpu"), task)
    HeadTable(144 heads: enc 48, dec 48, cross 48; 1 column: gradient)
    """
    way = read_way(subject, task, per, normalize, convention, steps)
    task.check(subject)
    work = _Work(subject, task, convention, way, batch_size)
    done = BatchWork(
        "gradient",
        subject,
        partial(_measuring, task=task, per=way.per, steps=way.steps),
        len(task),
        {"convention": convention, **work.settings},
        journal,
        engine,
    )
    return work.run(done, work.batches())


@contextmanager
def _measuring(subject: Subject, task: Task, per: Per, steps: int) -> Iterator[Measure]:
    with slopes(subject, task, per, steps) as measure, enough_memory(subject):
        yield measure


@dataclass
class _Work(ScoreWork):
    """A gradient score under way."""

    way: Way
    batch_size: int

    @property
    def settings(self) -> dict[str, Any]:
        """How it is measured, as provenance and journal keep it."""
        way = self.way
        about = {"per": way.per, "normalize": way.normalize, "batch_size": self.batch_size}
        return about | ({"steps": way.steps} if way.steps > 1 else {})

    def batches(self) -> Iterator[Batch]:
        """The task's batches; as the authors' programs have them, in the order of the examples."""
        if self.way.program is not None:
            yield from self.way.program.batches(self.batch_size)
        else:
            yield from self.task.batches(self.subject, self.batch_size)

    def add(self, number: int, batch: Batch, found: Arrays) -> None:
        """Take in one batch."""
        program = self.way.program
        unit = [number] * len(batch) if self.way.per == "batch" else batch.index
        scale = 1.0 if program is None else program.scale(batch)
        counts = np.array([[float(self._is_first(number))] for number in batch.index])
        if self.way.per == "token":
            counts = token_counts(self.subject, batch) if program is None else program.counts(batch)
        self.sums.add(unit, found["slopes"] * scale, counts)

    def _is_first(self, example: int) -> bool:
        """Whether an example was not seen before: its further windows do not count again."""
        before = len(self.seen)
        self.seen.add(example)
        return len(self.seen) > before

    def table(self) -> HeadTable:
        """What has been found so far."""
        found: Sequence[Floats] = self.sums.interval(absolute=self.way.per != "token")
        if self.way.normalize == "layer":
            found = over_layer_norm(self.subject.heads, *found)
        return self.column_table(GRADIENT, found)


class GradientScore(Score):
    """Gradient among the scores of the registry."""

    column, takes, per = GRADIENT, ("per", "normalize", "steps"), get_args(Per)

    def compute(self, subject: Subject, task: Task, options: ScoreOptions) -> HeadTable:
        """See `gradient`."""
        shared = options.shared("convention", "batch_size", "journal", "engine")
        return gradient(subject, task, **shared)
