"""The slope of a task's loss in every head's scale, for one batch: dL/dxi_h."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from headcount.errors import ModelError, UsageError
from headcount.importance.by_batch import Arrays
from headcount.importance.token_counts import real_tokens
from headcount.models.finite import check_finite
from headcount.models.site import Site
from headcount.subject import Subject
from headcount.tasks.task import Task
from headcount.text.batch import Batch
from headcount.wiring.outputs import backflow

__all__ = ["Measure", "Per", "slopes"]

Measure = Callable[[Batch], Arrays]

#: Where the absolute value is taken: of an example's slope, a token's, or a whole batch's.
Per = Literal["example", "token", "batch"]


@contextmanager
def slopes(subject: Subject, task: Task, per: Per) -> Iterator[Measure]:
    """Within the block, a function that gives ``slopes`` of a batch, ``[example, head]``.

    Michel et al. 2019, equation 2, before the mean: one forward and backward a batch. The loss is
    summed over the batch, so that an example's slope knows nothing of its neighbours. Per token
    the absolute slopes of an example's positions are added up.

    >>> from headcount import tasks
    >>> from headcount.models.load import load
    >>> translator = load("translator", device="cpu")
    >>> task = tasks.translation([("Rain fell.", "Regen fiel.")], metric="loss")
    >>> with slopes(translator, task, "example") as measure:
    ...     measure(next(task.batches(translator)))["slopes"].shape
    (1, 144)
    """
    heard = _Heard(per)
    with backflow(subject, heard.receive) as flow:

        def measure(batch: Batch) -> Arrays:
            heard.start(batch)
            losses = task.loss(subject, batch)
            flow.backward(losses.sum())
            _check_loss(subject, task, batch, losses.detach())
            found = np.concatenate([heard.of(site) for site in subject.anatomy.sites], axis=1)
            _check_slopes(subject, task, found)
            return {"slopes": found}

        yield measure


class _Heard:
    """What came back to each site from one batch."""

    def __init__(self, per: Per) -> None:
        self.per = per
        self.batch = Batch({}, {}, [])
        self.found: dict[Site, Tensor] = {}

    def start(self, batch: Batch) -> None:
        """Listen to another batch."""
        self.batch, self.found = batch, {}

    def receive(self, site: Site, output: Tensor, gradient: Tensor) -> None:
        """Add what one call of a site has to say."""
        weighed = _weighed(site, output, gradient, self.batch, self.per)
        folded = _folded(weighed, len(self.batch))
        self.found[site] = self.found[site] + folded if site in self.found else folded

    def of(self, site: Site) -> np.ndarray:
        """A site's slopes; exactly 0 where the loss does not depend on its heads at all."""
        if site not in self.found:
            return np.zeros((len(self.batch), site.heads), dtype=np.float32)
        return self.found[site].cpu().numpy()


def _weighed(site: Site, output: Tensor, gradient: Tensor, batch: Batch, per: Per) -> Tensor:
    """Att · dL/dAtt, `[row, head]`: summed over dimensions, then over positions."""
    kind = torch.promote_types(output.dtype, torch.float32)  # half precision would round the sums
    each = (output * gradient).sum(-1, dtype=kind)
    if per != "token":
        return each.sum(1)
    real = real_tokens(site.stack, batch).to(each.device)
    return (each.abs() * real[:, :, None]).sum(1)


def _folded(rows: Tensor, examples: int) -> Tensor:
    """Rows of one example stand one below the other and add up: `[example, head]`."""
    if rows.shape[0] % examples:
        raise UsageError(
            f"The model was called on {rows.shape[0]} rows for a batch of {examples} examples, so "
            "no row can be told whose it is; call it on all examples at once, or use batch_size=1."
        )
    return rows.view(examples, -1, rows.shape[-1]).sum(1)


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


def _check_slopes(subject: Subject, task: Task, found: np.ndarray) -> None:
    if not np.isfinite(found).all():
        raise ModelError(
            f"The gradient of {task.name} in the heads of {subject.name} is not a number, although "
            f"its loss is; {str(subject.dtype).removeprefix('torch.')} may be too narrow: load the "
            "model with dtype='float32'."
        )
