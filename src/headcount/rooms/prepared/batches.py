"""Batches that somebody else prepared, as a model takes them: images, sound, one's own collator."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from headcount import tasks
from headcount.errors import InputError, UsageError
from headcount.models import Subject
from headcount.tasks import Marks, Task, forward, labels_of, logits_of
from headcount.text import Batch, ready_batch, shift_of

#: What a row of a batch is called that says what is right.
_LABELS = ("labels", "label")


@dataclass(frozen=True, repr=False)
class Batches(Task):
    """Rows of prepared batches (images, sound), with their labels."""

    kind: ClassVar[str] = "batches"

    def encode(self, subject: Subject, batch_size: int) -> Iterator[Batch]:
        """Groups of neighbours with equal shapes, up to a size."""
        if batch_size < 1:
            raise UsageError(f"The batch size is {batch_size}; it must be 1 or more.")
        start = 0
        while start < len(self):
            most, end = min(len(self), start + batch_size), start + 1
            while end < most and self._shape(end) == self._shape(start):
                end += 1
            rows = [self.examples[number] for number in range(start, end)]
            inputs = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
            labels = inputs.pop(next(name for name in _LABELS if name in inputs))
            stacks = subject.anatomy.stacks
            starts = {"decoder_input_ids", "decoder_inputs_embeds"} & {*inputs}
            if "cross" in stacks and not starts and (shift := shift_of(subject.model)):
                inputs["decoder_input_ids"] = shift(labels)  # as the model itself would
            made = ready_batch(inputs, stacks, first=start)
            yield replace(made, labels=labels)
            start = end

    def _shape(self, number: int) -> dict[str, Any]:
        return {name: value.shape for name, value in self.examples[number].items()}

    def answer(self, subject: Subject, batch: Batch) -> Any:
        """Losses ``[example]``, or logits ``[example, class]`` for the accuracy."""
        if self.metric.name == "accuracy":
            return logits_of(subject, batch, axes=2, needs="accuracy needs one label an example")
        return self.loss(subject, batch)

    def loss(self, subject: Subject, batch: Batch) -> Tensor:
        """The model's own loss of each example alone: ``[example]``, differentiable."""
        assert batch.labels is not None  # encode put them in
        whole = batch.to(subject.device)
        labels = labels_of(whole, next(iter(whole.inputs.values())))
        if labels.dim() == 1 and not labels.is_floating_point():
            logits = getattr(forward(subject, whole), "logits", None)
            if isinstance(logits, Tensor) and logits.dim() == 2:
                return cross_entropy(logits.float(), labels, reduction="none")
        said = subject.model(**whole.inputs, labels=labels)
        each = _losses_of_rows(said, labels)
        if each is not None:
            return each
        losses = []
        for row in range(len(batch)):
            one = {name: value[row : row + 1] for name, value in whole.inputs.items()}
            loss = getattr(subject.model(**one, labels=labels[row : row + 1]), "loss", None)
            if loss is None:
                raise UsageError(
                    f"{subject.name} gives no loss for labels of the shape "
                    f"{tuple(labels.shape[1:])}; score it with a custom task (hc.tasks.custom)."
                )
            losses.append(loss.reshape(()))
        return torch.stack(losses)

    def mark(self, answer: Any, batch: Batch) -> Marks:
        """Losses, or hits."""
        said = answer.argmax(dim=1) if self.metric.name == "accuracy" else None
        hits = answer if said is None else (said == labels_of(batch, answer))
        counted = hits.detach().double().cpu().numpy()
        rows = np.stack([counted, np.ones(len(counted))], axis=1)
        return Marks(rows, [] if said is None else said.tolist())

    @cached_property
    def hash(self) -> str:
        """The sha256 of all tensors, in order."""
        digest = hashlib.sha256()
        for row in self.examples:
            for name in sorted(row):
                value = row[name].detach().cpu().contiguous()
                digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
                digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()


def _losses_of_rows(said: Any, labels: Tensor) -> Tensor | None:
    """The loss of each row from one forward of all, where a model's loss is that of its tokens.

    Labels stand at the tokens that they are of (translators, speech) or one place on (decoders):
    so as the mean over all tokens is the loss that the model says. None where neither is.
    """
    logits, loss = getattr(said, "logits", None), getattr(said, "loss", None)
    if loss is None or not isinstance(logits, Tensor) or logits.shape[:-1] != labels.shape:
        return None
    if labels.dim() != 2 or labels.is_floating_point():
        return None
    for ahead in (0, 1):
        right = labels[:, ahead:]
        scores = logits[:, : right.shape[1]].float().transpose(1, 2)
        tokens = cross_entropy(scores, right, reduction="none")
        real = (right != -100).sum(1)  # torch's mark of a token that does not count
        mean = tokens.sum() / real.sum()
        if torch.isclose(mean, loss.float().reshape(()), rtol=1e-5, atol=1e-6):
            return tokens.sum(1) / real
    return None


def batches(prepared: Iterable[Mapping[str, Any]], metric: str = "loss") -> Batches:
    """A task from batches as the model takes them, e.g. a DataLoader; each has `labels`.

    `metric` is "loss", the model's own of each example, or "accuracy" where a row of logits is said
    of each. All batches are held in memory. `hc.score` takes such batches as they are.

    >>> batches([{"input_ids": torch.tensor([[1, 2], [1, 3]]), "labels": torch.tensor([0, 1])}])
    Batches('prepared batches', 2 examples, loss)
    """
    known = {"loss": tasks.MEAN_LOSS, "accuracy": tasks.ACCURACY}
    chosen = tasks.choose_metric("batches", metric, known)
    rows: list[dict[str, Tensor]] = []
    for number, batch in enumerate(prepared):
        if not isinstance(batch, Mapping):
            raise InputError(
                f"Batch {number + 1} is a {type(batch).__name__}; give a mapping of names to "
                "tensors, as the model takes them, with labels."
            )
        tensors = {name: value for name, value in batch.items() if isinstance(value, Tensor)}
        if not set(_LABELS) & set(tensors):
            raise InputError(
                f"Batch {number + 1} has no labels (it has {', '.join(map(str, batch))}); add "
                "'labels', what is right for each row."
            )
        count = min(len(value) for value in tensors.values())
        rows += [{name: value[row] for name, value in tensors.items()} for row in range(count)]
    if not rows:
        raise InputError("There are no batches; give one or more.")
    return Batches(tuple(rows), chosen, "prepared batches")
