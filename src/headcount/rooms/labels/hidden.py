"""Masked language modelling: texts of which some tokens are hidden, to be filled in.

Hiding as BERT was trained is Devlin et al. 2019, section 3.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from headcount.errors import ModelError, UsageError
from headcount.models import Subject
from headcount.stats import ratio
from headcount.tasks import (
    IGNORED,
    LOSS,
    Column,
    Marks,
    Metric,
    TokenTask,
    check_long,
    choose_metric,
    labels_of,
    read_texts,
    refuse,
    row_marks,
)
from headcount.text import Batch, Encoded, Long

#: How a token is hidden: always by the mask token, or as BERT was trained.
Hiding = Literal["mask", "bert"]


METRICS = {
    "loss": LOSS,
    "accuracy": Metric("accuracy", ("hits", "tokens"), ratio, test="sign-flip"),
}


@dataclass(frozen=True, repr=False)
class MaskedLanguageModelling(TokenTask):
    """Plain texts of which some tokens are hidden, always the same ones for the same seed."""

    kind: ClassVar[str] = "mlm"
    needs: ClassVar[str] = (
        "mlm needs an encoder with a masked-language-modelling head (load it with "
        "auto_class='AutoModelForMaskedLM')"
    )

    share: float = 0.15
    hiding: Hiding = "mask"
    seed: int = 0
    long: Long = "window"

    def check(self, subject: Subject) -> None:
        """Raise unless the model reads both ways and its tokenizer can hide a token."""
        if subject.kind != "enc":
            raise refuse(subject, self.needs)
        if subject.tokenizer is not None and subject.tokenizer.mask_token_id is None:
            raise ModelError(
                f"The tokenizer of {subject.name} has no mask token, so nothing can be hidden; an "
                "mlm task needs one."
            )

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Texts, longest first, nothing hidden yet."""
        return self.encoded(self.examples, subject, batch_size, long=self.long)

    def dress(self, batch: Batch, subject: Subject) -> Batch:
        """The batch with tokens hidden, and the hidden tokens as labels, ``[row, token]``."""
        side = batch.sides["source"]
        ids, labels = side.ids.clone(), torch.full_like(side.ids, IGNORED)
        for row, own in enumerate(zip(batch.index, batch.window, strict=True)):
            noise = np.random.default_rng([self.seed, *own])
            places = np.flatnonzero((side.real & ~side.special)[row].numpy())
            hidden = torch.from_numpy(hide(places, self.share, noise))
            labels[row, hidden] = ids[row, hidden]
            ids[row, hidden] = self._instead(ids[row, hidden], subject, noise)
        return replace(batch, inputs=batch.inputs | {"input_ids": ids}, labels=labels)

    def mark(self, answer: Any, batch: Batch) -> Marks:
        """Loss or hits, and the hidden tokens, of each row."""
        if self.metric.name == "loss":
            return super().mark(answer, batch)
        labels = labels_of(batch, answer)
        right = (answer.argmax(dim=-1) == labels).sum(dim=1).float()
        right = right.masked_fill(answer.isnan().flatten(1).any(dim=1), torch.nan)
        return row_marks(right, labels)

    def _instead(self, ids: Tensor, subject: Subject, noise: np.random.Generator) -> Tensor:
        """What stands in the place of hidden tokens."""
        tokenizer: Any = subject.tokenizer
        masked = torch.full_like(ids, tokenizer.mask_token_id)
        if self.hiding == "mask":
            return masked
        drawn = torch.from_numpy(noise.random(len(ids)))
        others = torch.from_numpy(noise.integers(0, tokenizer.vocab_size, len(ids)))
        # Devlin et al. 2019, section 3.1: 80% the mask token, 10% any token, 10% as it was.
        return torch.where(drawn < 0.8, masked, torch.where(drawn < 0.9, others, ids))


def hide(
    places: npt.NDArray[np.intp], share: float, noise: np.random.Generator
) -> npt.NDArray[np.intp]:
    """A share of the places, one or more, drawn at random.

    >>> len(hide(np.arange(20), 0.15, np.random.default_rng(0)))
    3
    """
    count = max(1, round(share * len(places)))
    return np.sort(noise.choice(places, count, replace=False))


def mlm(
    examples: Any,
    metric: str = "loss",
    *,
    share: float = 0.15,
    hiding: Hiding = "mask",
    seed: int = 0,
    long: Long = "window",
    text: Column = None,
    header: bool = True,
) -> MaskedLanguageModelling:
    """A masked-language-modelling task from texts, a .txt file, or a column of a file.

    `metric` is "loss", nats a hidden token, or "accuracy". A `share` of the tokens of each text
    is hidden, the same in every run with the same `seed`: behind the mask token, or with
    `hiding="bert"` as BERT was trained (80% mask, 10% another token, 10% left as it was).

    >>> mlm(["Rain fell.", "It stopped."], metric="accuracy")
    MaskedLanguageModelling('examples in hand', 2 examples, accuracy)
    """
    chosen = choose_metric("mlm", metric, METRICS)
    check_long(long)
    if not 0 < share < 1:
        raise UsageError(f"The share of hidden tokens is {share:g}; it lies between 0 and 1.")
    if hiding not in get_args(Hiding):
        raise UsageError(f"hiding is '{hiding}'; choose mask or bert.")
    found = read_texts(examples, kind="mlm", text=text, header=header)
    return MaskedLanguageModelling(found.examples, chosen, found.name, share, hiding, seed, long)
